/* SPDX-License-Identifier: MIT */
/* worker.c - the thread that runs callbacks, and the passes that it (or a caller) makes.
 *
 * I1. What a pass runs was queued before its grace period began: snapshot first.
 * I2. A callback is taken from its ring (@taken) before it runs and counted (@run)
 *     after it returned, so after a fork nothing runs twice.
 * I3. The worker sleeps only after a heavy fence and one more look.
 * I4. One pass at a time (pass.lock).  Callers make passes only while there is no
 *     worker; whoever finds the lock taken sets @again, and its holder goes on.
 * I5. fork() waits until the worker is between two chunks of callbacks.
 *
 * CB1  slot written, then queued raised     | queued read, then slot read
 * CB2  slot read, then taken raised         | taken read, then slot written again
 * CB3  queued raised, then sleep read       | sleep set, then queued read
 * CB4  callbacks have run, then done        | done read, then rcu_barrier() returns
 * CB5  object written, then pushed          | overflow list taken, then objects read
 * CB6  blocked set, then taken read         | taken raised, then blocked read
 * CB7  callback queued, then begun read     | begun raised, then rings read
 * CB8  again set, then lock tried           | lock given up, then again read
 * FK1  gate closed, then running read       | running set, then closed read
 */
#include "helper.h"
#include "hazptr.h"
#include "rcu.h"
#include "reclaim.h"
#include "ring.h"

#define NAP_NS 1000000u   /* the worker gathers this long before a small batch */
#define SMALL_BATCH (QUIESCE_RING_SLOTS / 4)
#define CHUNK 16u         /* callbacks between two looks at the fork gate */
#define PREFETCH 8u
#define NO_WORKER_RETRY 64u /* failed starts between two attempts */
#define FORK_PATIENCE_NS 100000000u
#define FORK_STEP_NS 50000u

struct quiesce__queues quiesce__queues;
struct quiesce__pass quiesce__pass;
struct quiesce__worker quiesce__worker;

static struct {
	uint32_t closed;  /* a fork is being prepared */
	uint32_t running; /* a chunk of callbacks runs */
} gate;

/* ---- what to do ---- */

/* Objects waiting to be taken, without regard to order. */
static uint64_t nr_waiting(void)
{
	struct quiesce__queues *q = &quiesce__queues;
	uint64_t nr = 0;

	quiesce__lock(&q->lock);
	for (struct quiesce__ring *ring = q->rings; ring; ring = ring->next)
		/* Relaxed: CB3's fence orders it. */
		nr += quiesce_load_relaxed(&ring->queued) - quiesce_load_relaxed(&ring->taken);
	quiesce__unlock(&q->lock);
	/* Relaxed: as above. */
	return nr + (quiesce_load_relaxed(&q->overflow) != NULL);
}

static bool gp_wanted(void)
{
	uint64_t cookie = quiesce_load_relaxed(&quiesce__worker.gp_wanted); /* Relaxed: CB3. */

	return cookie && !quiesce__rcu_cookie_done(cookie);
}

/* Does somebody wait for a pass? */
static bool somebody_waits(void)
{
	/* Relaxed: CB3. */
	return quiesce_load_relaxed(&quiesce__pass.waiting) || quiesce_load_relaxed(&quiesce__worker.stop) || gp_wanted();
}

static bool under_pressure(void)
{
	uint64_t ceiling = quiesce_load_relaxed(&quiesce__settings.ceiling); /* Relaxed: a setting. */

	return quiesce_load_relaxed(&quiesce__worker.urgent) || /* Relaxed: a wish. */
	       quiesce__garbage_above(ceiling / 2);
}

/* ---- taking ---- */

static uint64_t snapshot_ring(struct quiesce__ring *ring)
{
	/* CB1: acquire, pairs with CB1 in quiesce__ring_push() */
	ring->snap = quiesce_load_acquire(CB1, &ring->queued);
	/* Relaxed: at least the bytes of what the snapshot covers, because of CB1; what is more
	 * is not counted again. */
	ring->bytes_snap = quiesce_load_relaxed(&ring->bytes_in);
	return ring->snap - ring->taken;
}

/* Remember what is queued now.  Returns how much that is, and the newest ring that was
 * looked at: newer ones come before it in the list, and it may be walked from there
 * without the lock, because only a pass takes rings out. */
static uint64_t snapshot(struct quiesce__ring **ret_first)
{
	struct quiesce__queues *q = &quiesce__queues;
	uint64_t nr = 0;

	quiesce__lock(&q->lock);
	*ret_first = q->rings;
	for (struct quiesce__ring *ring = q->rings; ring; ring = ring->next)
		nr += snapshot_ring(ring);
	if (!QUIESCE_MUTANT(cb_overflow_lost))
		/* CB5: full, pairs with CB5 in push_overflow() */
		q->taken_overflow = quiesce_xchg(CB5, &q->overflow, NULL);
	quiesce__unlock(&q->lock); /* held over the move, so that a fork sees the list in one place */
	return nr + (q->taken_overflow || q->ready_overflow);
}

/* ---- running ---- */

static void run_head(struct rcu_head *head)
{
	uintptr_t func = (uintptr_t)head->func;

	if (func <= QUIESCE_KFREE_OFFSET_MAX)
		platform_free((char *)head - (func - 1));
	else
		head->func(head);
}

static void run_item(uintptr_t item)
{
	if (item & QUIESCE_SLOT_FREE)
		platform_free((void *)(item - QUIESCE_SLOT_FREE));
	else
		run_head((struct rcu_head *)item);
}

void quiesce__gate_enter(uint32_t *running)
{
	for (;;) {
		uint32_t closed;

		quiesce_store_relaxed(running, 1); /* Relaxed: the fence follows. */
		/* FK1: full, pairs with FK1 in quiesce__reclaim_fork_prepare() */
		quiesce_fence_full(FK1);
		closed = quiesce_load_relaxed(&gate.closed); /* Relaxed: FK1. */
		if (quiesce_likely(!closed))
			return;
		quiesce_store_relaxed(running, 0); /* Relaxed: nothing ran. */
		platform_futex_wait(&gate.closed, closed, PLATFORM_FOREVER);
	}
}

void quiesce__gate_leave(uint32_t *running)
{
	/* FK1: release, pairs with FK1 in callbacks_paused() and quiesce__retired_paused() and quiesce__helper_paused() */
	quiesce_store_release(FK1, running, 0);
}

static void prefetch_item(struct quiesce__ring *ring, uint64_t i)
{
	if (ring->snap - i > PREFETCH)
		/* Relaxed: a hint. */
		__builtin_prefetch((void *)quiesce_load_relaxed(&ring->slot[(i + PREFETCH) % QUIESCE_RING_SLOTS]));
}

static void run_chunk(struct quiesce__ring *ring, uint64_t end)
{
	quiesce__gate_enter(&gate.running);
	for (uint64_t i = ring->taken; i != end; i++) {
		uintptr_t item = quiesce_load_relaxed(&ring->slot[i % QUIESCE_RING_SLOTS]); /* Relaxed: CB1. */

		prefetch_item(ring, i);
		/* CB2: release, pairs with CB2 in quiesce__ring_full() */
		quiesce_store_release(CB2, &ring->taken, i + 1);
		run_item(item);
		/* CB4: release, pairs with CB4 in add_ring() */
		quiesce_store_release(CB4, &ring->run, i + 1);
	}
	quiesce__gate_leave(&gate.running);
}

static void unblock_owner(struct quiesce__ring *ring)
{
	/* CB6: full, pairs with CB6 in wait_for_room() */
	if (quiesce_xchg(CB6, &ring->blocked, 0))
		platform_futex_wake(&ring->blocked, 1);
}

static void run_ring(struct quiesce__ring *ring)
{
	uint64_t end = ring->snap;
	int64_t bytes = (int64_t)(ring->bytes_snap - ring->bytes_out);

	if (QUIESCE_MUTANT(cb_snapshot_after))
		end = quiesce_load_relaxed(&ring->queued);
	if (ring->taken == end)
		return;
	while (ring->taken != end)
		run_chunk(ring, end - ring->taken < CHUNK ? end : ring->taken + CHUNK);
	quiesce_store_relaxed(&ring->bytes_out, ring->bytes_out + (uint64_t)bytes); /* Relaxed: a sum. */
	quiesce__garbage_add(-bytes);
	unblock_owner(ring);
}

static void run_overflow(void)
{
	struct quiesce__queues *q = &quiesce__queues;
	struct rcu_head *head;

	while ((head = q->ready_overflow)) {
		quiesce__gate_enter(&gate.running);
		q->ready_overflow = head->next;
		q->overflow_running = true;
		run_head(head);
		q->overflow_running = false;
		/* CB4: release, pairs with CB4 in add_overflow() */
		quiesce_store_release(CB4, &q->overflow_run, q->overflow_run + 1);
		quiesce__gate_leave(&gate.running);
	}
}

/* Return to the system the rings of exited threads that are empty. */
static void free_rings(void)
{
	struct quiesce__ring **at = &quiesce__queues.rings, *ring, *gone = NULL;

	quiesce__lock(&quiesce__queues.lock);
	while ((ring = *at)) {
		/* CB1: acquire, pairs with CB1 in quiesce__reclaim_thread_exit() */
		if (quiesce_load_acquire(CB1, &ring->owner_gone) &&
		    ring->taken == quiesce_load_relaxed(&ring->queued)) { /* Relaxed: no owner. */
			*at = ring->next;
			ring->next = gone;
			gone = ring;
			quiesce__queues.freed_run += ring->run;
		} else {
			at = &ring->next;
		}
	}
	quiesce__unlock(&quiesce__queues.lock);
	while ((ring = gone)) {
		gone = ring->next;
		platform_pages_put(ring, sizeof *ring);
	}
}

static void run_snapshot(struct quiesce__ring *first)
{
	struct quiesce_tls_v1 *self = quiesce__self();

	self->state |= QUIESCE_TLS_IN_CALLBACK;
	run_overflow(); /* what a fork() left of a pass of the parent */
	quiesce__lock(&quiesce__queues.lock);
	quiesce__queues.ready_overflow = quiesce__queues.taken_overflow;
	quiesce__queues.taken_overflow = NULL;
	quiesce__unlock(&quiesce__queues.lock);
	for (struct quiesce__ring *ring = first; ring; ring = ring->next)
		run_ring(ring);
	run_overflow();
	self->state &= ~QUIESCE_TLS_IN_CALLBACK;
	free_rings();
}

/* ---- passes ---- */

static uint64_t pass_begin(void)
{
	uint64_t number = quiesce__pass.begun + 1;

	/* CB7: full, pairs with CB7 in quiesce__pass_wait() */
	quiesce_xchg(CB7, &quiesce__pass.begun, number);
	return number;
}

static void pass_end(uint64_t number)
{
	/* CB4: release, pairs with CB4 in quiesce__pass_wait() */
	quiesce_store_release(CB4, &quiesce__pass.done, number);
	/* CB4: full, pairs with CB4 in quiesce__pass_wait() */
	quiesce_fetch_add(CB4, &quiesce__pass.done_word, 1u);
	if (quiesce_load_relaxed(&quiesce__pass.waiting)) /* Relaxed: CB4. */
		platform_futex_wake(&quiesce__pass.done_word, INT32_MAX);
}

/* Who only queued does not wait for the pass: then readers are left alone, as long as there is room. */
static enum quiesce__haste haste(void)
{
	if (under_pressure())
		return QUIESCE_EXPEDITED;
	return somebody_waits() || !(quiesce__self()->state & QUIESCE_TLS_WORKER) ? QUIESCE_PLAIN : QUIESCE_PATIENT;
}

/* Under pass.lock: one pass. */
static void run_pass(void)
{
	struct quiesce__ring *first;
	uint64_t number = pass_begin();
	bool work = snapshot(&first) != 0;

	if (work || gp_wanted()) {
		enum quiesce__haste how = haste();

		quiesce_store_relaxed(&quiesce__worker.urgent, 0); /* Relaxed: a wish. */
		if (!QUIESCE_MUTANT(cb_no_gp))
			quiesce__rcu_wait(how);
		run_snapshot(first);
	}
	pass_end(number);
}

static bool pass_trylock(void)
{
	uint32_t free = 0;

	/* CB8: full, pairs with CB8 in quiesce__pass_yourself() */
	return quiesce_cmpxchg(CB8, &quiesce__pass.lock.word, &free, 1);
}

void quiesce__pass_yourself(void)
{
	/* CB8: full, pairs with CB8 in pass_trylock() */
	quiesce_xchg(CB8, &quiesce__pass.again, 1);
	while (quiesce_load_relaxed(&quiesce__pass.again) && pass_trylock()) { /* Relaxed: CB8. */
		/* CB8: full, pairs with CB8 in pass_trylock() */
		quiesce_xchg(CB8, &quiesce__pass.again, 0);
		run_pass();
		quiesce__unlock(&quiesce__pass.lock);
	}
}

/* ---- the thread ---- */

void quiesce__worker_kick(void)
{
	/* CB3: full, pairs with CB3 in worker_sleep() */
	if (quiesce_xchg(CB3, &quiesce__worker.sleep, QUIESCE_AWAKE) != QUIESCE_AWAKE)
		platform_futex_wake(&quiesce__worker.sleep, 1);
	else
		quiesce__scan_press(QUIESCE_PLAIN); /* it may be in a grace period */
}

static void worker_sleep(uint32_t how, uint64_t ns)
{
	bool rest = true;

	quiesce_store_relaxed(&quiesce__worker.sleep, how); /* Relaxed: the fence follows. */
	if (how != QUIESCE_NAPPING && !QUIESCE_MUTANT(cb_sleep_unchecked)) {
		/* CB3: pairs with CB3 in rouse_worker() and quiesce__retired_tell_worker() */
		/* HP4: pairs with HP4 in queue() */
		quiesce_fence_heavy(CB3);
		rest = !nr_waiting() && (how == QUIESCE_DOZING || !quiesce__hazptr_left());
	}
	if (rest && !somebody_waits())
		platform_futex_wait(&quiesce__worker.sleep, how, ns);
	quiesce_store_relaxed(&quiesce__worker.sleep, QUIESCE_AWAKE); /* Relaxed: the worker looks next. */
}

static void worker_step(void)
{
	uint64_t sweep_ns = quiesce__hazptr_sweep(platform_now_ns()), nr = nr_waiting();

	if (!nr && !somebody_waits()) {
		worker_sleep(sweep_ns == PLATFORM_FOREVER ? QUIESCE_ASLEEP : QUIESCE_DOZING, sweep_ns);
		return;
	}
	if (nr < SMALL_BATCH && !under_pressure())
		worker_sleep(QUIESCE_NAPPING, NAP_NS); /* small batches wait for company */
	quiesce__lock(&quiesce__pass.lock);
	run_pass();
	quiesce__unlock(&quiesce__pass.lock);
}

static bool worker_start(void);

static void worker_main(void *unused)
{
	(void)unused;
	quiesce__self()->state |= QUIESCE_TLS_WORKER;
	while (!quiesce_load_relaxed(&quiesce__worker.stop)) /* Relaxed: kicked after it was set. */
		worker_step();
	/* CB4: full, pairs with CB4 in stop_worker() */
	quiesce_xchg(CB4, &quiesce__worker.running, 0);
	/* CB3: pairs with CB3 in rouse_worker() */
	quiesce_fence_heavy(CB3);
	/* Somebody may have queued, or begun to wait, trusting in this thread. */
	if (nr_waiting() || quiesce__hazptr_left() || quiesce_load_relaxed(&quiesce__pass.waiting) || gp_wanted()) /* Relaxed: CB3. */
		worker_start();
	platform_futex_wake(&quiesce__worker.running, INT32_MAX);
}

bool quiesce__reclaim_has_worker(void)
{
	return quiesce_load_relaxed(&quiesce__worker.running) != 0; /* Relaxed: it only ever helps. */
}

static bool worker_start(void)
{
	struct quiesce__worker *w = &quiesce__worker;
	uint32_t none = 0;

	/* CB4: full, pairs with CB4 in worker_main() */
	if (!quiesce_cmpxchg(CB4, &w->running, &none, 1))
		return true;
	quiesce_store_relaxed(&w->stop, 0); /* Relaxed: before the thread begins. */
	if (platform_thread_start(worker_main, NULL, "quiesce", quiesce__settings.worker_cpu) == 0) {
		quiesce_store_relaxed(&w->failures, 0); /* Relaxed: a rate limit. */
		return true;
	}
	quiesce_store_relaxed(&w->failures, 1); /* Relaxed: a rate limit. */
	/* Relaxed: whoever trusted in this start looks again soon. */
	quiesce_store_relaxed(&w->running, 0);
	return false;
}

bool quiesce__worker_ensure(void)
{
	if (quiesce_likely(quiesce__reclaim_has_worker()))
		return true;
	quiesce__init();
	/* Relaxed: a rate limit for attempts that failed. */
	if (quiesce_load_relaxed(&quiesce__worker.failures) &&
	    quiesce_fetch_add_relaxed(&quiesce__worker.failures, 1u) % NO_WORKER_RETRY)
		return false;
	return worker_start();
}

void quiesce__reclaim_request_gp(uint64_t cookie)
{
	uint64_t old;

	quiesce__fork_check(); /* first: it forgets what the parent wanted */
	old = quiesce_load_relaxed(&quiesce__worker.gp_wanted); /* Relaxed: the exchange decides. */
	/* The latest cookie covers the earlier ones. */
	while (!old || (int64_t)((cookie << 16) - (old << 16)) > 0)
		/* CB3: full, pairs with CB3 in worker_sleep() */
		if (quiesce_cmpxchg(CB3, &quiesce__worker.gp_wanted, &old, cookie))
			break;
	if (quiesce__worker_ensure())
		quiesce__worker_kick();
}

/* ---- fork ---- */

static bool callbacks_paused(void)
{
	/* FK1: acquire, pairs with FK1 in quiesce__gate_leave() */
	return !quiesce_load_acquire(FK1, &gate.running) && quiesce__retired_paused() && quiesce__helper_paused();
}

void quiesce__reclaim_fork_prepare(void)
{
	uint64_t end;

	if (!(quiesce__self()->state & QUIESCE_TLS_CALLBACKS)) {
		/* FK1: full, pairs with FK1 in quiesce__gate_enter() */
		quiesce_fetch_add(FK1, &gate.closed, 1u);
		end = platform_now_ns() + FORK_PATIENCE_NS;
		/* A callback that waits for a lock of this thread must not hang fork() for ever;
		 * it then counts as done in the child. */
		while (!callbacks_paused() && platform_now_ns() < end)
			/* Relaxed: a nap. */
			platform_futex_wait(&gate.closed, quiesce_load_relaxed(&gate.closed), FORK_STEP_NS);
	}
	quiesce__lock(&quiesce__queues.lock);
}

void quiesce__reclaim_fork_parent(void)
{
	quiesce__unlock(&quiesce__queues.lock);
	if (quiesce__self()->state & QUIESCE_TLS_CALLBACKS)
		return; /* it has not closed the gate */
	quiesce_fetch_add_relaxed(&gate.closed, (uint32_t)-1); /* Relaxed: the wake-up is a fence. */
	platform_futex_wake(&gate.closed, INT32_MAX);
}

static uint64_t list_length(const struct rcu_head *head)
{
	uint64_t nr = 0;

	for (; head; head = head->next)
		nr++;
	return nr;
}

/* The grace period that the parent's pass waits for is not the child's: queue again. */
static void requeue_taken(struct quiesce__queues *q)
{
	struct rcu_head **end = &q->taken_overflow;

	while (*end)
		end = &(*end)->next;
	*end = q->overflow;
	q->overflow = q->taken_overflow;
	q->taken_overflow = NULL;
}

/* What is in no list has run, or was running in a thread that the child does not have. */
static void recount_overflow(const struct quiesce_tls_v1 *self)
{
	struct quiesce__queues *q = &quiesce__queues;
	uint64_t left = list_length(q->overflow) + list_length(q->ready_overflow);

	q->overflow_running = q->overflow_running && (self->state & QUIESCE_TLS_IN_CALLBACK);
	q->overflow_run = q->overflow_pushed - left - q->overflow_running;
}

void quiesce__reclaim_fork_child(void)
{
	struct quiesce_tls_v1 *self = quiesce__self();

	quiesce__lock_reset(&quiesce__queues.lock);
	quiesce__lock_reset(&quiesce__pass.lock);
	if (self->state & QUIESCE_TLS_IN_CALLBACK)
		quiesce__pass.lock.word = 1; /* the pass that this callback belongs to goes on */
	gate.closed = gate.running = 0;
	quiesce__pass.waiting = quiesce__pass.again = 0;
	/* A callback may have called fork(): then the worker is the child's only thread. */
	quiesce__worker = (struct quiesce__worker){ .running = (self->state & QUIESCE_TLS_WORKER) != 0 };
	requeue_taken(&quiesce__queues);
	recount_overflow(self);
	for (struct quiesce__ring *ring = quiesce__queues.rings; ring; ring = ring->next) {
		ring->blocked = 0;
		ring->run = ring->taken;
		ring->owner_gone |= ring != self->ring;
		quiesce__ring_tell(ring);
	}
}
