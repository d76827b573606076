/* SPDX-License-Identifier: MIT */
/* urcu/system.h - accesses to what other threads access, of any type; urcu/uatomic.h has those with an order. */
#ifndef QUIESCE_URCU_SYSTEM_H
#define QUIESCE_URCU_SYSTEM_H

#include <urcu/arch.h>
#include <urcu/compiler.h>

/* The lvalue @p, loaded once. */
#define _CMM_LOAD_SHARED(p) CMM_ACCESS_ONCE(p)

/* The same, and the compiler moves nothing from before it behind it. */
#define CMM_LOAD_SHARED(p)                                                                                             \
	__extension__({                                                                                                \
		cmm_smp_rmc();                                                                                         \
		_CMM_LOAD_SHARED(p);                                                                                   \
	})

/* @v to the lvalue @x, stored once.  Returns it. */
#define _CMM_STORE_SHARED(x, v) quiesce_urcu__store_shared(x, v, QUIESCE_CAST(void, 0))

/* The same, and the compiler moves nothing from behind it before it. */
#define CMM_STORE_SHARED(x, v) quiesce_urcu__store_shared(x, v, cmm_smp_wmc())

/* Its last statement is one that compilers do not find unused. */
#define quiesce_urcu__store_shared(x, v, then)                                                                         \
	__extension__({                                                                                                \
		quiesce_urcu__typeof(x) quiesce_urcu__shared = (v);                                                              \
		CMM_ACCESS_ONCE(x) = quiesce_urcu__shared;                                                             \
		then;                                                                                                  \
		quiesce_urcu__shared = quiesce_urcu__shared;                                                           \
	})

#endif
