/* SPDX-License-Identifier: MIT */
/* subsystem.c - the functions of both kinds of hazard pointers that the runtime calls. */
#include "runtime/subsystem.h"

#include "hazptr.h"
#include "shazptr/shazptr.h"

static void init(void)
{
	quiesce__slots_init();
	quiesce__hazptr_init();
}

static void fence_chosen(void)
{
	quiesce__slots_fence_chosen();
	quiesce__hazptr_fence_chosen();
}

static void stats(struct quiesce_stats *stats)
{
	stats->slots_lines = quiesce__slots_lines();
	stats->scan_thread_running = quiesce__shazptr_thread_running();
	quiesce__hazptr_stats(stats);
}

static void fork_prepare(void)
{
	quiesce__retired_fork_prepare();
	quiesce__shazptr_fork_prepare();
}

static void fork_parent(void)
{
	quiesce__shazptr_fork_parent();
	quiesce__retired_fork_parent();
}

static void fork_child(void)
{
	quiesce__hazptr_fork_child();
	quiesce__slots_fork_child();
	quiesce__shazptr_debug_fork_child();
	quiesce__shazptr_fork_child();
	quiesce__retired_fork_child();
}

static void fork_survivor(struct quiesce_tls_v1 *self)
{
	quiesce__hazptr_fork_survivor(self);
	quiesce__shazptr_claims_fork_survivor(self);
	quiesce__retired_fork_survivor(self);
}

static void thread_end(struct quiesce_tls_v1 *self)
{
	quiesce__shazptr_thread_end(self);
	quiesce__hazptr_thread_end(self);
}

extern const struct quiesce__subsystem quiesce__hazard_subsystem;
const struct quiesce__subsystem quiesce__hazard_subsystem = {
	.init = init,
	.fence_chosen = fence_chosen,
	.stats = stats,
	.paused = quiesce__retired_paused,
	.fork_prepare = fork_prepare,
	.fork_parent = fork_parent,
	.fork_child = fork_child,
	.fork_survivor = fork_survivor,
	.thread_report = quiesce__hazptr_thread_report,
	.process_report = quiesce__hazptr_process_report,
	.thread_exit = quiesce__hazptr_thread_exit,
	.thread_end = thread_end,
};
