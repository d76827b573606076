/* SPDX-License-Identifier: MIT */
/* percpu_rwsem_report.c - stall reports: a writer that waits for readers, and callers in the queue.
 *
 * The first caller in the queue reports for all of them.
 */
#include "percpu_rwsem.h"

#include "runtime/report.h"

static void report_queue(struct quiesce__report *r, struct percpu_rw_semaphore *sem)
{
	uint32_t nr[2] = { 0, 0 };

	quiesce__lock(&sem->lock);
	for (const struct quiesce__rwsem_waiter *w = sem->first; w; w = w->next)
		nr[w->writer]++;
	quiesce__unlock(&sem->lock);
	quiesce__report_add(r, "; %u readers and %u writers are queued", nr[0], nr[1]);
}

void quiesce__rwsem_report_drain(struct percpu_rw_semaphore *sem, bool timeout, const struct quiesce__wait_policy *p)
{
	uint64_t inside = quiesce__rwsem_inside(sem);
	struct quiesce__report r;

	quiesce__report_stall(&r, timeout ? "percpu_down_write_timeout" : "percpu_down_write", sem, platform_now_ns() - p->start);
	quiesce__report_count(&r, inside, "readers");
	if ((int64_t)inside > 0)
		quiesce__report_held(&r, sem, QUIESCE_HELD_READ);
	report_queue(&r, sem);
	quiesce__report_end(&r);
}

static bool is_first(struct percpu_rw_semaphore *sem, const struct quiesce__rwsem_waiter *w)
{
	bool first;

	quiesce__lock(&sem->lock);
	first = sem->first == w;
	quiesce__unlock(&sem->lock);
	return first;
}

/* Describe the writer that holds the lock or is next to hold it. */
static void report_writer(struct quiesce__report *r, const struct percpu_rw_semaphore *sem)
{
	struct quiesce__holder h = quiesce__held_longest(sem, QUIESCE_HELD_WRITE);
	uint32_t tid = quiesce_load_relaxed(&sem->owner_tid); /* Relaxed: a report. */

	quiesce__report_add(r, "a writer, ");
	quiesce__report_thread(r, tid, quiesce__tid());
	if (h.nr && h.tid == tid)
		quiesce__report_since(r, h.since, h.site);
	if (!quiesce_load_relaxed(&sem->owner)) { /* Relaxed: a report. */
		quiesce__report_add(r, ", which waits for ");
		quiesce__report_count(r, quiesce__rwsem_inside(sem), "readers");
	}
}

void quiesce__rwsem_report_queue(struct percpu_rw_semaphore *sem, const struct quiesce__rwsem_waiter *w,
				 const struct quiesce__wait_policy *p)
{
	struct quiesce__report r;

	if (!is_first(sem, w))
		return;
	quiesce__report_stall(&r, w->writer ? "percpu_down_write" : "percpu_down_read", sem, platform_now_ns() - p->start);
	report_writer(&r, sem);
	report_queue(&r, sem);
	quiesce__report_end(&r);
}
