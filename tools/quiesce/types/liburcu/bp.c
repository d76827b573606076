/* SPDX-License-Identifier: MIT */
/* bp.c - liburcu's bulletproof flavour: threads register themselves, readers inlined. */
#include "own.h"

#define _LGPL_SOURCE
#define URCU_INLINE_SMALL_FUNCTIONS
#include <urcu/urcu-bp.h>

#include "loop.h"
#include "registry.h"

OP_READ(liburcu_bp, urcu_bp_read_lock(), rcu_dereference(t->ptr), urcu_bp_read_unlock());

OP_FUNCTION(first_section, urcu_bp_read_lock(); urcu_bp_read_unlock())
OP_FUNCTION(wait_plain, urcu_bp_synchronize_rcu())

static const struct op_wait liburcu_bp_wait = { .wait = wait_plain };

TYPE(liburcu_bp, .rank = 1030, .groups = PEER_RCU | RUN_READ | RUN_WAIT | REPORT_READ | REPORT_WAIT | FAMILY_ALL,
	.what = "liburcu's self-registering flavour, inlined",
	.reason = "a waiter sleeps until a reader wakes it; ours wakes now and then, to scan for a reader that has stopped or ended",
	.read = &liburcu_bp_read, .wait = &liburcu_bp_wait, .init = liburcu_bp_init, .thread_enter = first_section);
