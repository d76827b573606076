/* SPDX-License-Identifier: MIT */
/* urcu/system.h - accesses to shared objects of any type; urcu/uatomic.h has accesses with an order. */
#ifndef QUIESCE_URCU_SYSTEM_H
#define QUIESCE_URCU_SYSTEM_H

#include <urcu/arch.h>
#include <urcu/compiler.h>

/* Loads the lvalue @p once. */
#define _CMM_LOAD_SHARED(p) CMM_ACCESS_ONCE(p)

/* As _CMM_LOAD_SHARED(), and the compiler moves no earlier access after it. */
#define CMM_LOAD_SHARED(p)                                                                                             \
	__extension__({                                                                                                \
		cmm_smp_rmc();                                                                                         \
		_CMM_LOAD_SHARED(p);                                                                                   \
	})

/* Stores @v to the lvalue @x once and returns it. */
#define _CMM_STORE_SHARED(x, v) quiesce_urcu__store_shared(x, v, QUIESCE_CAST(void, 0))

/* As _CMM_STORE_SHARED(), and the compiler moves no later access before it. */
#define CMM_STORE_SHARED(x, v) quiesce_urcu__store_shared(x, v, cmm_smp_wmc())

/* Its last statement is one that causes no warning about an unused value. */
#define quiesce_urcu__store_shared(x, v, then)                                                                         \
	__extension__({                                                                                                \
		quiesce_urcu__typeof(x) quiesce_urcu__shared = (v);                                                              \
		CMM_ACCESS_ONCE(x) = quiesce_urcu__shared;                                                             \
		then;                                                                                                  \
		quiesce_urcu__shared = quiesce_urcu__shared;                                                           \
	})

#endif
