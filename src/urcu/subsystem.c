/* SPDX-License-Identifier: MIT */
/* subsystem.c - the functions of the readers of liburcu's face that the runtime calls. */
#include "runtime/subsystem.h"

#include "qsbr.h"
#include "urcu_words.h"

extern const struct quiesce__subsystem quiesce__urcu_subsystem;
const struct quiesce__subsystem quiesce__urcu_subsystem = {
	.fork_prepare = quiesce__urcu_fork_prepare,
	.fork_parent = quiesce__urcu_fork_parent,
	.fork_child = quiesce__urcu_fork_child,
	.fork_survivor = quiesce__urcu_fork_survivor,
	.thread_end = quiesce__qsbr_thread_end,
};
