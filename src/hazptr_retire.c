/* SPDX-License-Identifier: MIT */
/* hazptr_retire.c - call_hazptr(): a thread's queue of retired objects, and sweeping what is left behind.
 *
 *   owner:   push to own queue -> at the limit: fence, look at all slots, run what nobody protects,
 *            push what somebody does again
 *   sweeper: (the worker now and then, or hazptr_barrier()) drain queues into a list -> fence, look ->
 *            run what nobody protects, keep the rest in the list
 *
 *        taken                    queued     limit
 *          |                        |          |
 *   ...    v                        v          v
 *   [run ][ waiting                ][ free ... look here
 *
 * I1. What is reclaimed was queued before the fence that comes before the look.
 * I2. @taken, @limit and what lies between @taken and @queued belong to who holds the queue's lock; only the
 *     owner pushes.  The limit is never beyond what the queue has room for, and after each visit at the
 *     limit there is room for one more.
 * I3. An object is taken from its queue or list before its callback runs, and chunks of callbacks run
 *     inside the gate (worker.c), so after a fork nothing runs twice.
 * I4. An owner's queue that is empty has the limit 0: the next object makes the owner look whether the worker
 *     sleeps.  So the worker may sleep for good when all queues and the list are empty.
 * I5. Callbacks do not reclaim: what they retire is queued, or if there is no room pushed to the list.
 *
 * HP2  object queued                                 | queue drained
 * HP4  object queued, then limit read                | limit 0, fence, then queued read
 * CB9  object queued, then is the worker asleep      | asleep, then any objects
 */
#include "retired.h"

#define CHUNK 64u            /* callbacks between two visits of the fork gate */
#define PREFETCH 8u
#define ROUNDS 16u
#if defined(QUIESCE_SIM)
#define BATCH_DEAR QUIESCE_HAZPTR_BATCH
#else
#define BATCH_DEAR (4 * QUIESCE_HAZPTR_BATCH) /* where a heavy fence interrupts others */
#endif
#define DEAR_NS 3000u        /* one that interrupts nobody takes less */

/* The queue of a thread that has gone, with what is in it. */
static struct quiesce__retired *adopt(void)
{
	struct quiesce__retired *r;

	quiesce__lock(&quiesce__sweep.lock);
	r = quiesce__sweep.rings;
	/* Relaxed throughout: under the lock, but for hints. */
	while (r && !quiesce_load_relaxed(&r->owner_gone))
		r = r->next;
	if (r)
		quiesce_store_relaxed(&r->owner_gone, 0);
	quiesce__unlock(&quiesce__sweep.lock);
	return r;
}

QUIESCE_COLD struct quiesce__retired *quiesce__retired_new(struct quiesce_tls_v1 *self)
{
	struct quiesce__retired *r;

	if (!quiesce__may_have_queue(self))
		return NULL;
	r = adopt();
	if (r) {
		self->retired = r;
		return r;
	}
	r = platform_pages_get(sizeof *r);
	if (!r)
		return NULL;
	r->batch = QUIESCE_HAZPTR_BATCH;
	quiesce__lock(&quiesce__sweep.lock);
	r->next = quiesce__sweep.rings;
	quiesce__sweep.rings = r;
	quiesce__unlock(&quiesce__sweep.lock);
	self->retired = r;
	return r;
}

static void push(struct quiesce__retired *r, uintptr_t item)
{
	uint64_t queued = quiesce_load_relaxed(&r->queued); /* Relaxed: the owner's own. */

	quiesce_store_relaxed(&r->slot[queued % QUIESCE_RETIRED_SLOTS], item); /* Relaxed: HP2 publishes it. */
	/* HP2: release, pairs with HP2 in quiesce__retired_waiting() */
	quiesce_store_release(HP2, &r->queued, queued + 1);
}

/* One round of several: mark what is protected. */
static void mark(struct quiesce__retired *r, uint64_t end, const struct quiesce__hazards *set)
{
	for (uint64_t i = r->taken; i != end; i++) {
		uintptr_t item = quiesce_load_relaxed(quiesce__retired_entry(r, i)); /* Relaxed: the lock's. */

		if (quiesce__hazards_has(set, item))
			quiesce_store_relaxed(quiesce__retired_entry(r, i), item | QUIESCE_RETIRED_MARK); /* Relaxed: as above. */
	}
}

static void run_one(struct quiesce__retired *r, uint64_t i, const struct quiesce__hazards *set)
{
	uintptr_t item = quiesce_load_relaxed(quiesce__retired_entry(r, i)); /* Relaxed: the lock's. */

	/* Relaxed: a hint. */
	__builtin_prefetch((const void *)quiesce_load_relaxed(quiesce__retired_entry(r, i + PREFETCH)));
	quiesce_store_relaxed(&r->taken, i + 1); /* Relaxed: the lock's. */
	if (((item & QUIESCE_RETIRED_MARK) || quiesce__hazards_has(set, item)) && !QUIESCE_MUTANT(hazptr_no_look)) {
		push(r, item & ~QUIESCE_RETIRED_MARK);
		quiesce_store_relaxed(&r->again, r->again + 1); /* Relaxed: a statistic. */
	} else {
		quiesce__hazptr_run((struct hazptr_head *)item);
		quiesce_store_relaxed(&r->run, r->run + 1); /* Relaxed: a statistic. */
	}
}

/* Inside the gate; a callback of call_rcu() that retires is inside already. */
static void enter_gate(struct quiesce__retired *r)
{
	if (!(quiesce__self()->state & QUIESCE_TLS_IN_CALLBACK))
		quiesce__gate_enter(&r->running);
}

static void leave_gate(struct quiesce__retired *r)
{
	if (!(quiesce__self()->state & QUIESCE_TLS_IN_CALLBACK))
		quiesce__gate_leave(&r->running);
}

static void run_until(struct quiesce__retired *r, uint64_t end, const struct quiesce__hazards *set)
{
	while (r->taken != end) {
		uint64_t stop = end - r->taken < CHUNK ? end : r->taken + CHUNK;

		enter_gate(r);
		while (r->taken != stop)
			run_one(r, r->taken, set);
		leave_gate(r);
	}
}

static QUIESCE_COLD void grow_table(struct quiesce__retired *r)
{
	uint32_t size = r->table ? r->table_size : 2 * QUIESCE_HAZARDS_SMALL;

	if (r->table)
		platform_pages_put(r->table, r->table_size * sizeof *r->table);
	size *= 4;
	r->table = platform_pages_get(size * sizeof *r->table);
	r->table_size = r->table_look = r->table ? size : 0;
}

/* A large table takes long to clear: use as much of it as the next look needs, if it finds as much as this one. */
void quiesce__retired_fit_table(struct quiesce__retired *r, const struct quiesce__hazards *set, bool many)
{
	uint32_t wanted = 4 * set->nr;

	if (many && r->table_look == r->table_size) {
		grow_table(r);
		return;
	}
	if (many)
		wanted = r->table_size;
	for (r->table_look = r->table_size; r->table_look / 2 >= wanted && r->table_look > 2 * QUIESCE_HAZARDS_SMALL;)
		r->table_look /= 2;
}

/* A heavy fence that interrupts others is to serve more objects. */
static void adapt(struct quiesce__retired *r, uint32_t fence_ns)
{
	if (fence_ns > DEAR_NS && r->batch < BATCH_DEAR)
		r->batch *= 2;
	else if (fence_ns <= DEAR_NS && r->batch > QUIESCE_HAZPTR_BATCH)
		r->batch /= 2;
}

/* Under the lock, by the owner, not in a callback. */
static void reclaim_own(struct quiesce_tls_v1 *self, struct quiesce__retired *r)
{
	uint64_t end = quiesce_load_relaxed(&r->queued); /* Relaxed: the owner's own. */
	struct quiesce__hazards set;
	bool many;

	quiesce__hazards_begin(&set, r->table, r->table_look);
	many = quiesce__hazards_more(&set);
	while (quiesce__hazards_more(&set)) {
		mark(r, end, &set);
		quiesce__hazards_next(&set);
	}
	r->consuming = 1;
	self->state |= QUIESCE_TLS_IN_HAZPTR;
	run_until(r, end, &set);
	self->state &= ~QUIESCE_TLS_IN_HAZPTR;
	r->consuming = 0;
	adapt(r, set.fence_ns);
	quiesce__retired_fit_table(r, &set, many);
}

struct hazptr_head *quiesce__retired_drain(struct quiesce__retired *r, struct hazptr_head *list)
{
	uint64_t nr = quiesce__retired_waiting(r);

	if (nr && !QUIESCE_MUTANT(hazptr_drain_unmarked))
		quiesce_store_relaxed(&r->limit, 0); /* Relaxed: I4; HP4's fence follows, before anybody relies on it. */
	for (; nr; nr--) {
		/* Relaxed: HP2, and the lock's. */
		uintptr_t item = quiesce_load_relaxed(quiesce__retired_entry(r, r->taken));
		struct hazptr_head *head = (struct hazptr_head *)(item & ~QUIESCE_RETIRED_MARK);

		quiesce_store_relaxed(&r->taken, r->taken + 1); /* Relaxed: the lock's. */
		head->next = list;
		list = head;
		r->swept++;
		quiesce__count(hazptr_swept);
	}
	return list;
}

bool quiesce__retired_tell_worker(void)
{
	/* CB9: full, pairs with CB9 in worker_sleep() */
	quiesce_fence_full(CB9);
	if (!quiesce__worker_ensure())
		return false;
	if (quiesce_load_relaxed(&quiesce__worker.sleep) == QUIESCE_ASLEEP) /* Relaxed: CB9. */
		quiesce__worker_wake();
	return true;
}

/* As many are protected, or callbacks retire them: nobody waits for them here. */
static void leave_behind(const struct quiesce_tls_v1 *self, struct quiesce__retired *r)
{
	bool gate = !(self->state & QUIESCE_TLS_CALLBACKS) || (self->state & QUIESCE_TLS_UNGATED); /* else inside already */

	if (gate)
		quiesce__gate_enter(&r->running);
	quiesce__hazptr_push_list(&quiesce__sweep.left, quiesce__retired_drain(r, NULL));
	if (gate)
		quiesce__gate_leave(&r->running);
}

/* I2, I4: the next visit, when @target objects wait. */
static void set_limit(struct quiesce__retired *r, uint64_t target)
{
	if (target > QUIESCE_RETIRED_SLOTS - 1)
		target = QUIESCE_RETIRED_SLOTS - 1;
	quiesce_store_relaxed(&r->limit, quiesce__retired_waiting(r) ? r->taken + target : 0); /* Relaxed: the lock's. */
}

/* In the owner's own reclaim: the lock is ours.  If there is no room take the last object back. */
static void at_limit_inside(struct quiesce__retired *r)
{
	uint64_t queued = quiesce_load_relaxed(&r->queued); /* Relaxed: the owner's own. */

	if (quiesce__retired_waiting(r) == QUIESCE_RETIRED_SLOTS) {
		quiesce_store_relaxed(&r->queued, --queued); /* Relaxed: nobody takes meanwhile. */
		/* Relaxed: the owner's own. */
		quiesce__hazptr_push(&quiesce__sweep.left, (void *)quiesce_load_relaxed(quiesce__retired_entry(r, queued)));
		quiesce__hazptr_count_pushed();
	}
	quiesce_store_relaxed(&r->limit, r->taken + QUIESCE_RETIRED_SLOTS); /* Relaxed: the lock's. */
}

/* Until no batch is left, because callbacks may have retired another; but not for ever. */
static void reclaim_batches(struct quiesce_tls_v1 *self, struct quiesce__retired *r)
{
	uint64_t run, again;

	for (uint32_t i = 0; i < ROUNDS; i++) {
		run = r->run;
		again = r->again;
		reclaim_own(self, r);
		if (quiesce__retired_waiting(r) - (r->again - again) < r->batch || r->run == run)
			return;
	}
}

static QUIESCE_COLD void at_limit(struct quiesce_tls_v1 *self, struct quiesce__retired *r)
{
	uint64_t target;

	if (r->consuming) {
		at_limit_inside(r);
		return;
	}
	quiesce__lock(&r->lock);
	target = r->batch;
	if (self->state & QUIESCE_TLS_IN_HAZPTR) {
		target = QUIESCE_RETIRED_SLOTS; /* I5 */
	} else if (quiesce__retired_waiting(r) >= target) {
		reclaim_batches(self, r);
		target = quiesce__retired_waiting(r) + r->batch;
	}
	if (quiesce__retired_waiting(r) > QUIESCE_RETIRED_SLOTS / 2)
		leave_behind(self, r);
	set_limit(r, target);
	quiesce__unlock(&r->lock);
	if (!quiesce__retired_tell_worker() && quiesce__hazptr_left_behind())
		quiesce__hazptr_sweep_yourself();
}

static inline void queue(struct quiesce_tls_v1 *self, struct quiesce__retired *r, struct hazptr_head *head)
{
	push(r, (uintptr_t)head);
	/* HP4: pairs with HP4 in quiesce__hazards_begin() and worker_sleep() */
	quiesce_fence_mode(HP4);
	/* Relaxed: HP4. */
	if (quiesce_unlikely(quiesce_load_relaxed(&r->queued) >= quiesce_load_relaxed(&r->limit)))
		at_limit(self, r);
}

/* The first of a thread or of a forked child; or wrong. */
static QUIESCE_COLD void call_slowly(struct hazptr_head *head, void (*func)(struct hazptr_head *head))
{
	struct quiesce_tls_v1 *self = quiesce__self();
	struct quiesce__retired *r;

	if (!head || !func) {
		quiesce__misuse(QUIESCE_MISUSE_NULL, "call_hazptr() with a NULL %s", head ? "function" : "hazptr_head");
		return;
	}
	quiesce__fork_check();
	head->func = func;
	r = self->retired ? self->retired : quiesce__retired_new(self);
	if (r) {
		queue(self, r, head);
		return;
	}
	quiesce__hazptr_push(&quiesce__sweep.left, head);
	quiesce__hazptr_count_pushed();
	/* No memory, and no worker: sweep now and then.  Relaxed: how often is a policy. */
	if (!quiesce__retired_tell_worker() &&
	    quiesce_fetch_add_relaxed(&quiesce__sweep.nr_unqueued, 1u) % QUIESCE_HAZPTR_BATCH == QUIESCE_HAZPTR_BATCH - 1)
		quiesce__hazptr_sweep_yourself();
}

void quiesce_call_hazptr(struct hazptr_head *head, void (*func)(struct hazptr_head *head))
{
	struct quiesce_tls_v1 *self = quiesce__self();
	struct quiesce__retired *r = self->retired;

	/* Relaxed: as in quiesce__fork_check(). */
	if (quiesce_unlikely(!head || !func || !r || !quiesce_load_relaxed(quiesce__fork_canary))) {
		call_slowly(head, func);
		return;
	}
	head->func = func;
	queue(self, r, head);
}

void quiesce__hazptr_thread_exit(struct quiesce_tls_v1 *self)
{
	struct quiesce__retired *r = self->retired;
	bool left;

	if (!r)
		return;
	self->retired = NULL;
	left = quiesce__retired_waiting(r) != 0;
	quiesce__lock(&quiesce__sweep.lock);
	quiesce_store_relaxed(&r->owner_gone, 1); /* Relaxed: under the lock. */
	quiesce__unlock(&quiesce__sweep.lock);
	if (left)
		quiesce__retired_tell_worker();
}
