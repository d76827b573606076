/* SPDX-License-Identifier: MIT */
/* subsystem.c - hooks of src/percpu/ for the runtime: statistics, and fork handlers. */
#include "runtime/subsystem.h"

#include "percpu.h"
#include "rcu_sync.h"
#include "srcu/srcu_all.h"

static void fork_child(void)
{
	quiesce__percpu_fork_child();
	quiesce__rcu_sync_fork_child();
	quiesce__srcu_fork_child();
}

extern const struct quiesce__subsystem quiesce__percpu_subsystem;
const struct quiesce__subsystem quiesce__percpu_subsystem = {
	.stats = quiesce__srcu_stats,
	.fork_prepare = quiesce__percpu_fork_prepare,
	.fork_parent = quiesce__percpu_fork_parent,
	.fork_child = fork_child,
};
