/* SPDX-License-Identifier: MIT */
/* shutdown.c - run every queued callback of every kind, then stop the library's threads. */
#include "hazptr/hazptr.h"
#include "runtime/helper.h"
#include "runtime/thread.h"
#include "rcu/reclaim.h"
#include "shazptr/shazptr.h"
#include "srcu/srcu_all.h"

#include <errno.h>

#define REFUSED_MAX 100u /* attempts to stop the threads while other callers keep starting work for them */

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

/* True if no callback of any kind is queued or running.  A callback of one kind may queue callbacks of
 * another, so the number of callbacks ever queued has to be the same before and after the check.  @srcu:
 * count callbacks of SRCU domains too. */
static bool all_done(uint64_t deadline, bool srcu)
{
	struct quiesce_stats before = { .garbage_objects = 0 }, after = before;

	srcu = srcu && !QUIESCE_MUTANT(shutdown_srcu_left);
	count_queued(&before);
	if (anything_queued(&before, srcu) || !quiesce__hazptr_check_all_done(deadline))
		return false;
	count_queued(&after);
	return !anything_queued(&after, srcu) && nr_queued(&after, srcu) == nr_queued(&before, srcu);
}

static uint64_t deadline_in(uint64_t timeout_ns)
{
	uint64_t now = platform_now_ns();

	return timeout_ns < PLATFORM_FOREVER - now ? now + timeout_ns : PLATFORM_FOREVER;
}

static bool is_over(uint64_t deadline)
{
	return deadline && platform_now_ns() >= deadline;
}

/* Run callbacks until none is queued; false if @deadline passes first.  Without a deadline *@srcu becomes
 * false, and callbacks of SRCU domains no longer count, once all that remain wait for readers of the parent
 * that a forked child cannot see. */
static bool drain(uint64_t deadline, bool *srcu)
{
	/* Callbacks of one kind may queue the others. */
	while (!all_done(deadline, *srcu)) {
		if (is_over(deadline))
			return false;
		if (!quiesce__hazptr_barrier_until(deadline) ||
		    (!quiesce__nothing_queued() && !quiesce__pass_wait("quiesce_shutdown", deadline)))
			return false;
		*srcu = quiesce__srcu_drain_until(deadline);
		if (!*srcu && deadline) {
			quiesce__helper_stop(deadline); /* the helper keeps running if a job needs it */
			return false;
		}
	}
	return true;
}

/* False if a caller needs one of the threads. */
static bool stop_threads(uint64_t deadline)
{
	bool worker = quiesce__worker_stop(deadline) && quiesce__reclaimers_stop(deadline), scan = quiesce__shazptr_stop_thread(deadline);

	return quiesce__helper_stop(deadline) && worker && scan;
}

int quiesce_shutdown(uint64_t timeout_ns)
{
	uint64_t deadline = 0;
	uint32_t refused = 0;
	bool drained = true;

	quiesce__init();
	if (timeout_ns)
		deadline = deadline_in(timeout_ns);
	if (quiesce__barrier_is_misuse("quiesce_shutdown()", quiesce__caller()))
		return -EDEADLK;
	do {
		if (!drain(deadline, &drained))
			return -ETIMEDOUT;
		/* The last work of a thread may queue a callback, which starts another thread. */
		refused += !stop_threads(deadline);
		if (quiesce__threads_await_end() && all_done(deadline, drained))
			return drained ? 0 : -ETIMEDOUT;
	} while (!is_over(deadline) && refused < REFUSED_MAX);
	return is_over(deadline) ? -ETIMEDOUT : -EBUSY;
}
