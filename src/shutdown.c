/* SPDX-License-Identifier: MIT */
/* shutdown.c - run everything that is queued, of each kind, then stop the library's threads. */
#include "hazptr.h"
#include "helper.h"
#include "reclaim.h"
#include "shazptr.h"

#include <errno.h>

/* Is nothing queued of either kind, of which each may queue the other, and nothing under way? */
static bool all_done(uint64_t deadline)
{
	struct quiesce_stats before = { .garbage_objects = 0 }, after = before;

	quiesce__reclaim_stats(&before);
	if (before.garbage_objects || !quiesce__hazptr_all_done(deadline))
		return false;
	quiesce__reclaim_stats(&after);
	return !after.garbage_objects && after.callbacks_queued == before.callbacks_queued;
}

int quiesce_shutdown(uint64_t timeout_ns)
{
	uint64_t deadline = 0;

	quiesce__init();
	quiesce__fork_check();
	if (timeout_ns)
		deadline = platform_now_ns() + timeout_ns;
	if (quiesce__barrier_is_misuse())
		return -EDEADLK;
	/* Callbacks of one kind may queue the other. */
	while (!all_done(deadline)) {
		if (deadline && platform_now_ns() >= deadline)
			return -ETIMEDOUT;
		if (!quiesce__hazptr_barrier_until(deadline) || (!quiesce__nothing_queued() && !quiesce__pass_wait(deadline)))
			return -ETIMEDOUT;
	}
	quiesce__worker_stop(deadline);
	quiesce__shazptr_stop_thread(deadline);
	quiesce__helper_stop(deadline);
	return 0;
}
