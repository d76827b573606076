/* SPDX-License-Identifier: MIT */
/* refcnt.c - one shared reference count, up and down. */
#include "loop.h"
#include "registry.h"

static struct {
	uint64_t count;
} __attribute__((aligned(128))) shared = { 1 };

#define GET() ({ (void)quiesce_fetch_add_relaxed(&shared.count, 1); quiesce_fence_light(REF); })
#define PUT() ({ quiesce_fence_light(REF); (void)quiesce_fetch_add_relaxed(&shared.count, -1); })

OP_READ(refcnt, GET(), OP_LOAD, PUT());

TYPE(refcnt, .rank = 1520, .groups = PEER_COUNT | RUN_READ | RUN_OBJECT | REPORT_READ | FAMILY_OBJECT,
	.what = "one shared atomic reference count, up and down",
	.reason = "with full fences ours is one shared count as well, behind a test of its mode",
	.read = &refcnt_read);
