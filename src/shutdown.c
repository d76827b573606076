/* SPDX-License-Identifier: MIT */
/* shutdown.c - run everything that is queued, of each kind, then stop the library's threads. */
#include "hazard/hazptr.h"
#include "runtime/helper.h"
#include "rcu/reclaim.h"
#include "hazard/shazptr.h"
#include "percpu/srcu_all.h"

#include <errno.h>

static uint64_t nr_queued(const struct quiesce_stats *stats, bool srcu)
{
	return stats->callbacks_queued + (srcu ? stats->srcu_callbacks_queued : 0);
}

static void count_queued(struct quiesce_stats *stats)
{
	quiesce__reclaim_stats(stats);
	quiesce__srcu_stats(stats);
}

static bool anything_queued(const struct quiesce_stats *stats, bool srcu)
{
	uint64_t of_domains = stats->srcu_callbacks_queued - stats->srcu_callbacks_run;

	return stats->garbage_objects - (srcu ? 0 : of_domains) != 0;
}

/* Is nothing queued of any kind, of which each may queue the others, and nothing under way?  @srcu: of domains too. */
static bool all_done(uint64_t deadline, bool srcu)
{
	struct quiesce_stats before = { .garbage_objects = 0 }, after = before;

	count_queued(&before);
	if (anything_queued(&before, srcu) || !quiesce__hazptr_all_done(deadline))
		return false;
	count_queued(&after);
	return !anything_queued(&after, srcu) && nr_queued(&after, srcu) == nr_queued(&before, srcu);
}

int quiesce_shutdown(uint64_t timeout_ns)
{
	uint64_t deadline = 0;
	bool drained = true;

	quiesce__init();
	quiesce__fork_check();
	if (timeout_ns)
		deadline = platform_now_ns() + timeout_ns;
	if (quiesce__barrier_is_misuse("quiesce_shutdown()", __builtin_return_address(0)))
		return -EDEADLK;
	/* Callbacks of one kind may queue the others. */
	while (!all_done(deadline, drained && !QUIESCE_MUTANT(shutdown_srcu_left))) {
		if (deadline && platform_now_ns() >= deadline)
			return -ETIMEDOUT;
		if (!quiesce__hazptr_barrier_until(deadline) ||
		    (!quiesce__nothing_queued() && !quiesce__pass_wait("quiesce_shutdown", deadline)))
			return -ETIMEDOUT;
		drained = quiesce__srcu_drain_until(deadline);
		if (!drained && deadline) {
			quiesce__helper_stop(deadline); /* it stays if somebody needs it */
			return -ETIMEDOUT;
		}
	}
	quiesce__worker_stop(deadline);
	quiesce__shazptr_stop_thread(deadline);
	quiesce__helper_stop(deadline);
	return drained ? 0 : -ETIMEDOUT;
}
