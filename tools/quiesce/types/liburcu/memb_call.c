/* SPDX-License-Identifier: MIT */
/* memb_call.c - liburcu's membarrier flavour through library calls, as non-LGPL programs use it. */
#include <urcu/urcu-memb.h>

#include "loop.h"
#include "registry.h"

OP_READ(liburcu_memb_call, urcu_memb_read_lock(), rcu_dereference(t->ptr), urcu_memb_read_unlock());

OP_FUNCTION(thread_enter, urcu_memb_register_thread())
OP_FUNCTION(thread_exit, urcu_memb_unregister_thread())

TYPE(liburcu_memb_call, .rank = 1010,
	.what = "liburcu's membarrier flavour through library calls",
	.read = &liburcu_memb_call_read, .thread_enter = thread_enter, .thread_exit = thread_exit);
