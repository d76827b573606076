/* SPDX-License-Identifier: MIT */
/* rwlock_busted.c - a lock that locks nothing. */
#include "registry.h"
#include "types/rwlock.h"

static void nothing(void)
{
}

static const struct rwlock_op busted = { .what = "locks nothing: rwscale must notice", .read_lock = nothing,
					 .read_unlock = nothing, .write_lock = nothing, .write_unlock = nothing };

TYPE(busted, .rank = 2000, .broken = true, .rwlock = &busted);
