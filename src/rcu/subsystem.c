/* SPDX-License-Identifier: MIT */
/* subsystem.c - the functions of RCU that the runtime calls.
 *
 * RU2  see rcu_gp.c
 */
#include "runtime/subsystem.h"

#include "queue.h"
#include "rcu.h"
#include "reclaim.h"

static void fork_prepare(void)
{
	quiesce__lock(&quiesce__queues.lock);
}

static void fork_parent(void)
{
	quiesce__unlock(&quiesce__queues.lock);
}

static void fork_child(void)
{
	const struct quiesce_tls_v1 *survivor = quiesce__fork_survivor;

	quiesce__holdouts_fork_child();
	quiesce__holdout_hook_fork_child();
	quiesce__rcu_fork_child();
	quiesce__lock_reset(&quiesce__queues.lock, false);
	/* If a callback in the worker called fork(), the worker is the child's only thread. */
	quiesce__worker = (struct quiesce__worker){
		.running = survivor && (survivor->state & QUIESCE_TLS_WORKER) ? QUIESCE_WORKER_RUNS : QUIESCE_WORKER_NONE,
	};
	quiesce__throttle_fork_child();
	quiesce__pass_fork_child();
}

static void fork_survivor(struct quiesce_tls_v1 *self)
{
	self->queue = NULL; /* the queue is the parent's, and has been listed for the child's passes */
}

static void thread_report(const struct quiesce_tls_v1 *self)
{
	struct platform_location began;

	if (!rcu_read_lock_held())
		return;
	if (self->site)
		quiesce__misuse(QUIESCE_MISUSE_EXIT_IN_READER,
				"thread %u exited inside an RCU read-side section that began near %s; the section is ended",
				platform_tid(), platform_location(self->site, &began));
	else
		quiesce__misuse(QUIESCE_MISUSE_EXIT_IN_READER,
				"thread %u exited inside an RCU read-side section; the section is ended", platform_tid());
}

/* Only the debug build reports this: a thread that calls exit() inside a section because of an error does no harm. */
static void process_report(const struct quiesce_tls_v1 *self)
{
	struct platform_location began;

	if (self->site)
		quiesce__misuse(QUIESCE_MISUSE_EXIT_IN_READER,
				"the process exits in thread %u inside an RCU read-side section that began near %s", platform_tid(),
				platform_location(self->site, &began));
}

static void reader_end(struct quiesce_tls_v1 *self)
{
	quiesce__unregistered_leave(self);
	/* RU2: release, pairs with RU2 in quiesce__rcu_blocks() */
	quiesce_store_release(RU2, &self->rcu_word, QUIESCE_RCU_UNREG);
}

static void settings_changed(void)
{
	quiesce__report_bytes_changed();
	quiesce__reclaimers_changed();
}

static void stats(struct quiesce_stats *stats)
{
	quiesce__reclaim_stats(stats);
	quiesce__reclaimers_stats(stats);
}

extern const struct quiesce__subsystem quiesce__rcu_subsystem;
const struct quiesce__subsystem quiesce__rcu_subsystem = {
	.settings_changed = settings_changed,
	.stats = stats,
	.paused = quiesce__reclaimers_paused,
	.fork_prepare = fork_prepare,
	.fork_parent = fork_parent,
	.fork_child = fork_child,
	.fork_survivor = fork_survivor,
	.thread_report = thread_report,
	.process_report = process_report,
	.thread_exit = quiesce__reclaim_thread_exit,
	.thread_end = reader_end,
	.reader_gone = quiesce__holdouts_notify,
};
