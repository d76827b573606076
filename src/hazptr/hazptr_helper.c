/* SPDX-License-Identifier: MIT */
/* hazptr_helper.c - sweeps by the helper thread: when, and for how long.
 *
 * I1. The helper's step records when the next step comes, then checks once more whether objects were left; a
 *     thread that leaves objects checks afterwards whether the next step comes soon enough, and else starts
 *     one.
 * I2. A slice of a sweep takes the objects that other threads have handed over, and continues with those that its
 *     callbacks retire, for a limited time, so that other jobs of the helper run in between.  Objects that
 *     return in the same slice wait for the next one, after a pause.
 * I3. Queues are visited at intervals, not whenever objects are handed over.
 *
 * HP5  objects left, then scheduled read | scheduled stored, then objects left checked
 */
#include "hazptr_retired.h"

#define SWEEP_NS 100000000u
#define SWEEP_MAX_NS 1600000000u
#define PAUSE_NS 1000000u      /* pause for objects that are retired again by their own callbacks, or while another thread sweeps */
#define YIELD_NS 100000u
#define SLICE_NS 2000000u
#define AT_ONCE_NS 1u

static uint64_t step(struct quiesce__job *job);

static struct quiesce__job sweep_job = { .step = step, .own_gate = true };
/* State of the step: when queues are visited next, and the interval. */
static uint64_t visit_at, visit_ns; /* visit_at is 0 when there is nothing to visit */

/* ---- threads that leave objects ---- */

void quiesce__sweep_schedule(enum quiesce__sweeps when)
{
	uint32_t found;

	/* HP5: pairs with HP5 in schedule_next_step() */
	quiesce_fence_full(HP5);
	found = quiesce_load_relaxed(&quiesce__sweep.scheduled); /* Relaxed: HP5. */
	if (quiesce_unlikely(found >= when && !quiesce__helper_running()) && !QUIESCE_MUTANT(hazptr_ended_trusted))
		quiesce__helper_ensure(); /* the last thread ended in a callback, and was not replaced; the job is listed */
	while (found < when)
		/* HP5: full, pairs with HP5 in schedule_next_step() */
		if (quiesce_cmpxchg(HP5, &quiesce__sweep.scheduled, &found, when)) {
			if (!quiesce__job_start(&sweep_job))
				/* Relaxed: the next caller tries again; too low a value does no harm. */
				quiesce_store_relaxed(&quiesce__sweep.scheduled, QUIESCE_SWEEPS_NEVER);
			return;
		}
}

/* ---- the helper ---- */

static void set_scheduled(enum quiesce__sweeps when)
{
	quiesce_store_relaxed(&quiesce__sweep.scheduled, when); /* Relaxed: a fence follows, or a check of everything. */
}

/* Sweep until nothing is left, or for SLICE_NS; with @due, visit the queues first.  True: objects are left. */
static bool sweep_slice(uint64_t now, bool due)
{
	struct quiesce__sweep *s = &quiesce__sweep;
	uint64_t end = now + SLICE_NS;
	bool some = true;

	quiesce__sweep_new_slice();
	if (due) {
		quiesce__sweep_visit(false, QUIESCE_NO_DEADLINE);
		quiesce__sweep_scan();
	}
	while (quiesce__sweep_run(end) && some && platform_now_ns() < end) {
		quiesce__sweep_gather();
		some = quiesce__sweep_scan();
	}
	return s->ready || s->fresh || some;
}

/* Plan the next visits.  Objects that stay protected for long are scanned for at longer intervals. */
static void plan_visits(uint64_t now, bool was_due, bool useful)
{
	struct quiesce__sweep *s = &quiesce__sweep;

	if (!s->to_visit && !s->to_recheck && !s->kept && !quiesce__sweep_any_listed()) {
		visit_at = 0;
		return;
	}
	if (was_due)
		visit_ns = useful || s->any_busy ? SWEEP_NS : visit_ns < SWEEP_MAX_NS ? 2 * visit_ns : visit_ns;
	else if (!visit_at || quiesce__sweep_any_listed())
		visit_ns = SWEEP_NS;
	if (was_due || !visit_at || visit_at > now + visit_ns)
		visit_at = now + visit_ns;
}

/* True if objects are left, by a barrier too, and the next step would not sweep them within @ns. */
static bool anything_left(uint64_t ns)
{
	if (QUIESCE_MUTANT(hazptr_rest_unchecked))
		return false;
	return quiesce__sweep_any_handed_over() || (ns > SWEEP_NS && quiesce__sweep_any_listed()) ||
	       (ns == PLATFORM_FOREVER && quiesce_load_relaxed(&quiesce__sweep.has_objects)); /* Relaxed: HP5. */
}

/* I1: the return value of a step that wants to be called again after @ns. */
static uint64_t schedule_next_step(uint64_t ns)
{
	set_scheduled(ns == PLATFORM_FOREVER ? QUIESCE_SWEEPS_NEVER : ns > SWEEP_NS ? QUIESCE_SWEEPS_RARELY : QUIESCE_SWEEPS_LATER);
	/* HP5: pairs with HP5 in quiesce__sweep_schedule() */
	quiesce_fence_full(HP5);
	if (!anything_left(ns))
		return ns;
	set_scheduled(QUIESCE_SWEEPS_SOON);
	return AT_ONCE_NS;
}

struct sweep_run {
	struct quiesce__run run;
	uint64_t ns; /* return value of the step */
};

static uint64_t sweep(void)
{
	struct quiesce__sweep *s = &quiesce__sweep;
	uint64_t now = platform_now_ns(), ran = s->callbacks_run;
	bool due = visit_at && now >= visit_at, more, again;
	uintptr_t kept;

	more = sweep_slice(now, due);
	plan_visits(platform_now_ns(), due, s->callbacks_run != ran);
	again = s->retired_again != NULL;
	kept = s->kept ? quiesce__head_address(s->kept) : 0;
	quiesce__sweep_end();
	if (due)
		quiesce__hazptr_check_garbage(kept);
	if (again)
		return schedule_next_step(PAUSE_NS);
	if (more)
		return AT_ONCE_NS;
	now = platform_now_ns();
	return schedule_next_step(!visit_at ? PLATFORM_FOREVER : visit_at > now ? visit_at - now : AT_ONCE_NS);
}

static void sweep_in_run(struct quiesce__run *run)
{
	((struct sweep_run *)run)->ns = sweep();
}

static uint64_t sweep_if_free(void)
{
	struct sweep_run s = { .run.call = "call_hazptr()" };

	if (quiesce_load_relaxed(&quiesce__sweep.wanted)) /* Relaxed: a hint. */
		return YIELD_NS;
	if (!quiesce__sweep_try_begin())
		return PAUSE_NS;
	quiesce__run(&s.run, sweep_in_run, quiesce__sweep_ended);
	return s.ns;
}

static uint64_t step(struct quiesce__job *job)
{
	uint64_t ns;

	(void)job;
	set_scheduled(QUIESCE_SWEEPS_SOON);
	ns = sweep_if_free();
	if (!quiesce__helper_running()) /* a step at a safe point of a caller: no further step comes by itself */
		set_scheduled(QUIESCE_SWEEPS_NEVER);
	return ns;
}
