/* SPDX-License-Identifier: MIT */
/* srcu_report.c - stall reports of waits for a domain, and of garbage that waits for it. */
#include "srcu_all.h"

#include "srcu.h"
#include "rcu/garbage.h"
#include "runtime/report.h"

static void report_domain(struct quiesce__report *r, struct srcu_struct *ssp, uint32_t idx)
{
	uint64_t inside = quiesce__srcu_inside(ssp, idx), others = quiesce__srcu_inside(ssp, !idx);

	quiesce__report_count(r, inside, "readers");
	quiesce__report_add(r, " of %s, index %u", quiesce__srcu_name(ssp), idx);
	if ((int64_t)inside > 0)
		quiesce__report_held(r, ssp, QUIESCE_HELD_SRCU);
	if ((int64_t)others < 0)
		quiesce__report_add(r, "; index %u has %llu more unlocks than locks, as after an unlock with the wrong index", !idx,
				    (unsigned long long)-others);
}

/* Estimate of the bytes of callbacks that have not run. */
static uint64_t bytes_pending(const struct quiesce__srcu_usage *u)
{
	return quiesce__srcu_bytes_in(u) - quiesce_load_relaxed(&u->bytes_out); /* Relaxed: a report. */
}

static void report_behind(struct quiesce__report *r, struct quiesce__srcu_usage *u)
{
	uint32_t callers = 0;

	quiesce__lock(&u->lock);
	for (const struct quiesce__srcu_waiter *w = u->waiters; w; w = w->next)
		callers++;
	quiesce__unlock(&u->lock);
	quiesce__report_add(r, "; behind it %u more callers, and %llu callbacks (%llu bytes)", callers,
			    (unsigned long long)quiesce__srcu_pending(u), (unsigned long long)bytes_pending(u));
}

void quiesce__srcu_report_stall(struct srcu_struct *ssp, const char *call, uint32_t idx, uint64_t ns)
{
	struct quiesce__report r;

	quiesce__report_stall(&r, call, ssp, ns);
	report_domain(&r, ssp, idx);
	report_behind(&r, quiesce__srcu_usage(ssp));
	quiesce__report_end(&r);
}

/* Report that a callback of the domain has been running for @ns, or that none has run. */
void quiesce__srcu_report_barrier(struct srcu_struct *ssp, uint64_t ns)
{
	struct quiesce__srcu_usage *u = quiesce__srcu_usage(ssp);
	struct quiesce__report r;

	quiesce__report_stall(&r, "srcu_barrier", ssp, ns);
	quiesce__report_thread(&r, quiesce__lock_holder(&u->step_lock), quiesce__tid());
	quiesce__report_add(&r, ", which runs callbacks of %s, of which %llu are left", quiesce__srcu_name(ssp),
			    (unsigned long long)quiesce__srcu_pending(u));
	quiesce__report_end(&r);
}

void quiesce__srcu_check_garbage(struct srcu_struct *ssp)
{
	struct quiesce__srcu_usage *u = quiesce__srcu_usage(ssp);
	int64_t bytes = quiesce_load_relaxed(&quiesce__garbage_srcu); /* Relaxed: a sum. */
	struct quiesce_stats stats = { .readers = 0 };
	struct quiesce__report r;

	if (!quiesce__garbage_take_report(QUIESCE_GARBAGE_SRCU, bytes > 0 ? (uint64_t)bytes : 0))
		return;
	quiesce__srcu_stats(&stats);
	quiesce__report_garbage(&r, "call_srcu()", (uint64_t)bytes, stats.garbage_objects);
	r.reported.object = ssp;
	quiesce__report_add(&r, ", of them %llu objects (%llu bytes) of the domain at %p, which has ",
			    (unsigned long long)quiesce__srcu_pending(u), (unsigned long long)bytes_pending(u), (const void *)ssp);
	report_domain(&r, ssp, !quiesce__srcu_inside(ssp, 0));
	quiesce__report_end(&r);
}
