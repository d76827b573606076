/* SPDX-License-Identifier: MIT */
/* busted.h - facets of the types that are broken on purpose: their updaters do not wait, and free at once. */
#ifndef QUIESCE_TOOL_BUSTED_H
#define QUIESCE_TOOL_BUSTED_H

#include "op.h"

OP_FUNCTION(busted_nothing, (void)0)

static inline void busted_object(void *object)
{
	(void)object;
}

static inline void busted_call(struct op_head *head)
{
	head->fn(head);
}

static inline uint64_t busted_cookie(void)
{
	return 0;
}

static inline int busted_poll(uint64_t cookie)
{
	(void)cookie;
	return 1;
}

static inline void busted_cond(uint64_t cookie)
{
	(void)cookie;
}

static const struct op_wait busted_wait = { .wait = busted_nothing, .expedited = busted_nothing };
static const struct op_wait busted_object_wait = { .wait = busted_nothing, .per_object = true };
static const struct op_retire busted_retire = { .call = busted_call, .barrier = busted_nothing };
static const struct op_polled busted_polled = { busted_cookie, busted_cookie, busted_poll, busted_cond };

#endif
