/* SPDX-License-Identifier: MIT */
/* hazptr_barrier.c - wait until everything that was retired before the call has been reclaimed.
 *
 *   under the sweeper's lock: gather all objects, scan, reclaim those that are not protected; take the others, and a number.
 *   without the lock: wait until the first is not protected, reclaim it, scan again; then wait for barriers of lower numbers.
 *
 * I1. Each object that was retired before the call is reclaimed by this thread; or by a sweep or an owner
 *     whose lock or step this thread has waited for; or is in the list of a barrier with a lower number.
 * I2. No thread holds a lock while it waits for a reader, so a reader that stays delays the barriers that
 *     wait for it, and no sweep.
 * I3. A completed wait for an address proves that its object may be reclaimed, even while wildcards are held
 *     without end.
 */
#include "hazptr_retired.h"

#define POLL_NS 1000000u

/* Take the protected objects, and a number; the caller sweeps. */
static void begin(struct quiesce__barrier *b)
{
	b->by = quiesce__self();
	quiesce__lock(&quiesce__sweep.lists_lock);
	b->number = ++quiesce__sweep.nr_barriers;
	b->list = quiesce__sweep.kept;
	quiesce__sweep.kept = NULL;
	b->next = quiesce__sweep.barriers;
	quiesce__sweep.barriers = b;
	quiesce__unlock(&quiesce__sweep.lists_lock);
}

static void end(struct quiesce__barrier *b)
{
	struct quiesce__barrier **at = &quiesce__sweep.barriers;
	bool others;

	quiesce__lock(&quiesce__sweep.lists_lock);
	while (*at != b)
		at = &(*at)->next;
	*at = b->next;
	others = quiesce__sweep.barriers != NULL;
	/* Relaxed: under the lock. */
	quiesce_store_relaxed(&quiesce__sweep.barriers_gone, quiesce_load_relaxed(&quiesce__sweep.barriers_gone) + 1);
	quiesce__unlock(&quiesce__sweep.lists_lock);
	if (others)
		platform_futex_wake(&quiesce__sweep.barriers_gone, INT32_MAX);
}

static void run(struct quiesce__barrier *b, struct hazptr_head **list, uint32_t nr)
{
	quiesce__gate_enter(&b->in_gate);
	quiesce__hazptr_run_list(list, nr);
	quiesce__gate_leave(&b->in_gate);
}

/* Push the objects that @b holds back to a shard's list. */
static void give_back(struct quiesce__barrier *b)
{
	struct hazptr_head **list = &quiesce__sweep.shard[b->number % QUIESCE_NR_SWEEP_SHARDS].handed_over;

	quiesce__gate_enter(&b->in_gate);
	quiesce__hazptr_push_list(list, b->list);
	quiesce__hazptr_push_list(list, b->ready);
	b->list = b->ready = NULL;
	quiesce__gate_leave(&b->in_gate);
}

static void run_when_unprotected(struct quiesce__barrier *b)
{
	while (b->list) {
		struct quiesce__reclaim parts;

		if (!quiesce__hazptr_wait_for(b->list, "hazptr_barrier")) { /* misuse, which has been reported */
			give_back(b);
			return;
		}
		run(b, &b->list, 1); /* I3 */
		if (!b->list)
			break;
		quiesce__gate_enter(&b->in_gate);
		quiesce__hazptr_partition(b->list, &parts);
		b->list = parts.kept;
		b->ready = parts.ready;
		quiesce__gate_leave(&b->in_gate);
		while (b->ready)
			run(b, &b->ready, QUIESCE_SWEEP_CHUNK);
	}
}

static void wait_for_earlier(uint64_t number)
{
	for (;;) {
		const struct quiesce__barrier *b;
		uint32_t gone;

		quiesce__lock(&quiesce__sweep.lists_lock);
		gone = quiesce_load_relaxed(&quiesce__sweep.barriers_gone); /* Relaxed: under the lock. */
		for (b = quiesce__sweep.barriers; b && b->number >= number; b = b->next)
			;
		quiesce__unlock(&quiesce__sweep.lists_lock);
		if (!b)
			return;
		platform_futex_wait(&quiesce__sweep.barriers_gone, gone, PLATFORM_FOREVER);
	}
}

/* Scan for every object that was retired before, and reclaim those that are not protected.  False at
 * @deadline. */
static bool sweep_all(uint64_t deadline)
{
	struct quiesce__sweep *s = &quiesce__sweep;
	bool gathered;

	quiesce__sweep_new_slice();
	gathered = quiesce__sweep_visit(true, deadline);
	quiesce__sweep_gather(); /* last, because owners may have handed over objects of their queues meanwhile */
	while (quiesce__sweep_scan() || s->ready)
		quiesce__sweep_run(PLATFORM_FOREVER);
	return gathered;
}

struct barrier_run {
	struct quiesce__run run;
	struct quiesce__barrier b;
};

static void barrier_in_run(struct quiesce__run *run)
{
	struct quiesce__barrier *b = &((struct barrier_run *)run)->b;

	quiesce__sweep_begin(QUIESCE_NO_DEADLINE);
	sweep_all(0);
	begin(b);
	quiesce__sweep_end();
	run_when_unprotected(b);
	wait_for_earlier(b->number);
	end(b);
}

/* A callback has ended the thread, before the barrier took its number or later. */
static void barrier_ended(struct quiesce__run *run)
{
	struct quiesce__barrier *b = &((struct barrier_run *)run)->b;

	if (quiesce__is_sweeper()) {
		quiesce__sweep_ended(run);
		return;
	}
	quiesce__hazptr_list_ended(run);
	quiesce__gate_leave(&b->in_gate);
	if (!QUIESCE_MUTANT(hazptr_ended_barrier_lost))
		give_back(b);
	end(b);
	quiesce__sweep_schedule(QUIESCE_SWEEPS_SOON);
}

static void run_barrier(void)
{
	struct barrier_run barrier = { .run.call = "call_hazptr()" };

	quiesce__run(&barrier.run, barrier_in_run, barrier_ended);
}

static bool any_barriers(void)
{
	bool any;

	quiesce__lock(&quiesce__sweep.lists_lock);
	any = quiesce__sweep.barriers != NULL;
	quiesce__unlock(&quiesce__sweep.lists_lock);
	return any;
}

struct one_sweep {
	struct quiesce__run run;
	uint64_t deadline;
	bool done;
};

static void sweep_in_run(struct quiesce__run *run)
{
	struct one_sweep *one = (struct one_sweep *)run;

	one->done = sweep_all(one->deadline) && !quiesce__sweep.kept;
}

/* Sweep once, including what callbacks retire.  True: nothing is left; false at @deadline, too. */
static bool sweep_once(uint64_t deadline, uint64_t *ret_ran)
{
	struct one_sweep one = { .run.call = "call_hazptr()", .deadline = deadline };

	*ret_ran = 0;
	if (!quiesce__sweep_begin(deadline))
		return false;
	*ret_ran = quiesce__sweep.callbacks_run;
	quiesce__run(&one.run, sweep_in_run, quiesce__sweep_ended);
	*ret_ran = quiesce__sweep.callbacks_run - *ret_ran;
	quiesce__sweep_end();
	return one.done && !any_barriers();
}

/* Sweep repeatedly until nothing is left, or until @deadline. */
static bool poll_until(uint64_t deadline)
{
	for (;;) {
		uint32_t never = 0;
		uint64_t ran;

		if (sweep_once(deadline, &ran))
			return true;
		if (platform_now_ns() >= deadline)
			return false;
		if (!ran)
			platform_futex_wait(&never, 0, POLL_NS);
	}
}

/* Objects may have been retired while their queue was drained. */
static void schedule_if_left(void)
{
	if (quiesce__hazptr_any_left())
		quiesce__sweep_schedule(QUIESCE_SWEEPS_LATER);
}

bool quiesce__hazptr_barrier_until(uint64_t deadline)
{
	bool done = true;

	if (deadline)
		done = poll_until(deadline);
	else
		run_barrier();
	schedule_if_left();
	return done;
}

static bool barrier_is_misuse(const char *call)
{
	quiesce__init();
	if (!(quiesce__self()->state & QUIESCE_TLS_CALLBACKS))
		return false;
	quiesce__misuse(QUIESCE_MISUSE_WAIT_IN_CALLBACK, "%s() inside a callback would wait for itself", call);
	return true;
}

void quiesce_hazptr_barrier(void)
{
	if (!barrier_is_misuse("hazptr_barrier"))
		quiesce__hazptr_barrier_until(0);
}

bool quiesce_hazptr_try_barrier(void)
{
	uint64_t ran;
	bool done;

	if (barrier_is_misuse("hazptr_try_barrier"))
		return false;
	done = sweep_once(0, &ran);
	schedule_if_left();
	return done;
}

/* In a forked child: gather the objects of barriers whose threads the child does not have.  Under the list's
 * lock. */
void quiesce__barriers_fork_child(void)
{
	struct quiesce__barrier **at = &quiesce__sweep.barriers, *b;

	while ((b = *at)) {
		if (b->by == quiesce__fork_survivor) {
			at = &b->next;
			continue;
		}
		*at = b->next;
		quiesce__sweep.reclaimed += b->in_gate; /* still in the gate: its callback counts as run */
		quiesce__sweep_add(&quiesce__sweep.fresh, b->list);
		quiesce__sweep_add(&quiesce__sweep.fresh, b->ready);
	}
}
