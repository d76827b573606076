/* SPDX-License-Identifier: MIT */
/* subsystem.c - hooks of src/slab/ for the runtime: fork handlers, statistics. */
#include "runtime/subsystem.h"

#include "slab.h"

static void fork_prepare(void)
{
	quiesce__caches_fork_prepare();
	quiesce__region_fork_prepare();
}

static void fork_parent(void)
{
	quiesce__region_fork_parent();
	quiesce__caches_fork_parent();
}

static void fork_child(void)
{
	quiesce__region_fork_child();
	quiesce__caches_fork_child();
}

static void stats(struct quiesce_stats *ret_stats)
{
	ret_stats->slab_bytes = quiesce__region_bytes();
}

extern const struct quiesce__subsystem quiesce__slab_subsystem;
const struct quiesce__subsystem quiesce__slab_subsystem = {
	.stats = stats,
	.fork_prepare = fork_prepare,
	.fork_parent = fork_parent,
	.fork_child = fork_child,
};
