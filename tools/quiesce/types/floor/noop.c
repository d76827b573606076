/* SPDX-License-Identifier: MIT */
/* noop.c - the empty operation: the control row, which shows the cost of loop and clock. */
#include "loop.h"
#include "registry.h"

static inline __attribute__((always_inline)) uint64_t noop_section(struct op_target *t)
{
	(void)t;
	quiesce_fence_light(NOOP); /* keeps the compiler from removing the loop */
	return 0;
}

OP_PADS(OP_LOOP, noop)

static void nothing(void)
{
}

static const struct op_read noop_read = {
	.loop = { noop_loop0, noop_loop1, noop_loop2, noop_loop3 }, .lock = nothing, .unlock = nothing,
};

TYPE(noop, .rank = 100, .groups = RUN_READ | RUN_WAITS,
	.what = "nothing: the empty loop, and a wait that returns at once",
	.read = &noop_read, .wait = &(const struct op_wait){ .wait = nothing });
