/* SPDX-License-Identifier: MIT */
/* calls_control.c - settings, statistics, the end of the library's threads. */
#include "world.h"

static bool call_settings(struct world *w)
{
	(void)w;
	quiesce_set_skip_self_scan(1);
	quiesce_set_skip_self_scan(0);
	quiesce_set_yield(0);
	quiesce_set_yield(1);
	quiesce_set_garbage_ceiling(1 << 20);
	quiesce_set_garbage_ceiling(64 << 20);
	quiesce_set_throttle(0);
	quiesce_set_garbage_warning(1 << 30);
	quiesce_set_stall_timeout(STALL_NS);
	if (quiesce_set_reclaimers(2) || quiesce_set_reclaimers(1) || quiesce_set_reclaimers(0) != -EINVAL)
		return false;
	return quiesce_set_fence(QUIESCE_FENCE_AUTO) == -EBUSY;
}

static bool call_hooks(struct world *w)
{
	if (w->has_hook)
		return true;
	quiesce_set_report_hook(NULL);
	quiesce_set_misuse_hook(NULL);
	return true;
}

static void take_note(int tid, uint64_t waited_ns, void *arg)
{
	(void)tid, (void)waited_ns;
	must(!flag_get((int *)arg));
}

/* The hook's argument may be freed once the hook has been removed; in the hook itself it is still in use. */
static bool call_holdout_hook(struct world *w)
{
	static int gone;
	int err = quiesce_set_holdout_hook(take_note, &gone);

	(void)w;
	return (!err || err == -EAGAIN) && !quiesce_set_holdout_hook(NULL, NULL);
}

static bool call_questions(struct world *w)
{
	struct quiesce_stats stats;
	char text[400];

	(void)w;
	quiesce_get_stats(&stats, sizeof stats);
	return quiesce_describe_settings(text, sizeof text) < sizeof text && strstr(text, quiesce_version()) &&
	       quiesce_fence() != QUIESCE_FENCE_AUTO && quiesce_slots() != QUIESCE_SLOTS_SHARED;
}

static bool call_threads(struct world *w)
{
	struct quiesce_thread_attr attr = QUIESCE_THREAD_ATTR_INIT;
	bool ok = true;

	(void)w;
	for (int which = 0; which < QUIESCE_NR_THREADS; which++)
		ok = ok && quiesce_set_thread_attr((enum quiesce_thread)which, &attr) == 0;
	return ok && quiesce_set_worker_cpu(-1) == 0 && quiesce_set_thread_attr(QUIESCE_THREAD_WORKER, NULL) == 0;
}

/* Bystanders go on, and may start threads again at once. */
static bool call_shutdown(struct world *w)
{
	int err, before = flag_get(&w->paid);

	call_rcu(&object_owed(w)->rcu, object_rcu);
	err = quiesce_shutdown(0);
	return (err == 0 || err == -EBUSY) && flag_get(&w->paid) > before;
}

const struct call calls_control[] = {
	CALL(settings, "quiesce_set_skip_self_scan quiesce_set_yield quiesce_set_garbage_ceiling quiesce_set_throttle"
	     " quiesce_set_garbage_warning quiesce_set_stall_timeout quiesce_set_reclaimers quiesce_set_fence",
	     IN_READER | IN_CALLBACK | AT_THREAD_END),
	CALL(hooks, "quiesce_set_report_hook quiesce_set_misuse_hook", IN_READER | IN_CALLBACK | AT_THREAD_END),
	CALL(holdout_hook, "quiesce_set_holdout_hook", IN_READER | IN_CALLBACK | AT_THREAD_END),
	CALL(questions, "quiesce_get_stats quiesce_describe_settings quiesce_version quiesce_fence quiesce_slots",
	     IN_READER | IN_CALLBACK | AT_THREAD_END),
	CALL(threads, "quiesce_set_thread_attr quiesce_set_worker_cpu", IN_CALLBACK | AT_THREAD_END),
	CALL(shutdown, "quiesce_shutdown", WAITS | FOR_CALLBACKS | AT_THREAD_END),
	END_OF_CALLS,
};
