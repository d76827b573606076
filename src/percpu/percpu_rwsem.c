/* SPDX-License-Identifier: MIT */
/* percpu_rwsem.c - slow paths: the queue, writers, and readers that meet a writer.
 *
 *   reader                                   writer
 *   open? (acquire) entered + 1  -> inside   rcu_sync_enter(): closed, sequences restarted   PW1
 *   else entered + 1, full fence        PW1  block = 1, or queue until the lock is granted
 *   block == 0? (acquire)        -> inside   full fence                                      PW1
 *   left + 1, queue                          sleep until entered == left              PC2, WQ1
 *   ... inside ...                           ... inside ...
 *   open? left + 1 (release)                 rcu_sync_exit()
 *   else left + 1, full fence           WQ1  admit the readers at the head of the queue
 *   wake the draining writer                 block = 0, or grant the lock to the next writer PW3
 *                                            ... and later, open (release)                   PW2
 *
 * The check of open and the count after it are one restartable sequence.
 *
 * I1. block is 1 exactly while a writer drains or is inside; it changes under the lock.
 * I2. Waiters are queued and dequeued under the lock; the queue is empty while block is 0.
 * I3. Readers take the slow path from the arrival of a writer to the end of its section, because each writer enters
 *     rcu_sync before it queues.
 * I4. A waiter that another thread dequeues is granted the lock: a reader has been counted as entered by then, and a
 *     writer owns block.  Once it is granted, the waiter's memory is not accessed any more.  The memory of the lock is
 *     accessed after a grant to readers only while the queue's lock is held, and percpu_free_rwsem() waits for that lock.
 *     A reader that has counted as left accesses no memory of the lock, only the word where the writer sleeps, which
 *     belongs to the library.
 * I5. open is not 0 only while the rcu_sync state is idle: both change under the lock of rcu_sync.
 * I6. All-zero memory is a valid lock.  Only writers use the operations of its rcu_sync, and each sets them before it enters.
 *
 * PW1  open read, then reader counted, in one step | closed, sequences restarted, then counts read
 *      reader counted, then block read             | block set, then counts read
 * PW2  what the last writer did, then open         | open read, then inside
 * PW3  lock granted, or block cleared              | the waiter returns, or a reader sees block clear
 * WQ1  reader has left, then the queue's word read | the word made odd, then counts read
 * PC2  see percpu.c
 * RS1  see rcu_sync.c
 */
#include "percpu_rwsem.h"

#include "platform/probe.h"
#include "rcu_sync.h"
#include "runtime/waitq.h"

#include <errno.h>

#define WORDS 2u
#define STALL_CHECK_NS 100000000u /* how often a draining writer checks for a stall */
#if defined(QUIESCE_SIM)
#define QUEUE_SLEEPS_FOREVER 1 /* in the simulator, to find lost wake-ups */
#else
#define QUEUE_SLEEPS_FOREVER 0
#endif
#define DRAIN_SPIN_NS (12u * QUIESCE_SPIN_NS) /* longer than it takes most threads to wake up */
enum { ENTERED = QUIESCE_RWSEM_ENTERED, LEFT = QUIESCE_RWSEM_LEFT };

enum { WAITING, GRANTED };

static uint64_t deadline_in(uint64_t timeout_ns)
{
	uint64_t now = platform_now_ns();

	return timeout_ns < PLATFORM_FOREVER - now ? now + timeout_ns : PLATFORM_FOREVER;
}

/* Time to sleep until @deadline, at most @max. */
static uint64_t time_until(uint64_t deadline, uint64_t max)
{
	uint64_t now = platform_now_ns();

	if (deadline == PLATFORM_FOREVER)
		return max;
	return deadline <= now ? 0 : deadline - now < max ? deadline - now : max;
}

static uint64_t inside(const struct percpu_rw_semaphore *sem)
{
	return quiesce__rwsem_inside(sem);
}

static bool is_drained(void *sem)
{
	return !inside(sem);
}

static bool is_granted(void *waiter)
{
	const struct quiesce__rwsem_waiter *w = waiter;

	/* PW3: acquire, pairs with PW3 in grant() */
	return quiesce_load_acquire(PW3, &w->state) == GRANTED;
}

static uint64_t cpu_bit(void)
{
	return 1ull << platform_cpu() % 64;
}

/* ---- the queue; under the lock ---- */

static void enqueue(struct percpu_rw_semaphore *sem, struct quiesce__rwsem_waiter *w)
{
	if (sem->first) {
		w->nr = sem->last->nr + 1;
		sem->last->next = w;
	} else {
		sem->first = w;
	}
	sem->last = w;
	w->ahead = w->nr - sem->first->nr;
}

static void dequeue(struct percpu_rw_semaphore *sem, struct quiesce__rwsem_waiter *w)
{
	struct quiesce__rwsem_waiter **at = &sem->first, *before = NULL;

	while (*at != w) {
		before = *at;
		at = &before->next;
	}
	*at = w->next;
	if (sem->last == w)
		sem->last = before;
}

static void grant(struct quiesce__rwsem_waiter *w)
{
	/* PW3: release, pairs with PW3 in is_granted() */
	quiesce_store_release(PW3, &w->state, GRANTED);
}

/* Admit all readers at the head of the queue; true if there are any.  They may leave before the queue's lock is
 * released, but the lock cannot be freed before that (I4). */
static bool admit_readers(struct percpu_rw_semaphore *sem)
{
	struct quiesce__rwsem_waiter *w, *next;
	uint64_t woken_on = 0;
	bool any = false;

	for (w = sem->first; w && !w->writer; w = next) {
		next = w->next;
		woken_on |= quiesce_load_relaxed(&w->slept_on); /* Relaxed: a hint. */
		if (!QUIESCE_MUTANT(rwsem_grant_uncounted))
			quiesce__percpu_add(&sem->percpu, sem->shared, ENTERED);
		grant(w);
		any = true;
	}
	sem->first = w;
	quiesce_store_relaxed(&sem->woken_on, woken_on); /* Relaxed: a hint. */
	if (any)
		/* PW3: release, pairs with PW3 in wait_in_queue() */
		quiesce_store_release(PW3, &sem->wake_seq, sem->wake_seq + 1);
	return any;
}

/* Dequeue the writer at the head of the queue, which inherits block; NULL if the queue is empty: block is cleared. */
static struct quiesce__rwsem_waiter *take_writer(struct percpu_rw_semaphore *sem)
{
	struct quiesce__rwsem_waiter *w = sem->first;

	if (w)
		sem->first = w->next;
	else
		/* PW3: release, pairs with PW3 in may_enter() */
		quiesce_store_release(PW3, &sem->block, 0);
	return w;
}

/* Time until the next check whether a stall report is due; short enough that a wait is counted in full. */
static uint64_t time_until_check(void)
{
	uint64_t limit = quiesce_load_relaxed(&quiesce__settings.stall_ns); /* Relaxed: a setting. */

	return !limit || QUEUE_SLEEPS_FOREVER ? PLATFORM_FOREVER : limit / QUIESCE_STALL_CHECKS + 1;
}

/* Most sections of writers are short.  With more waiters ahead than CPUs spinning would only take the CPU from the holder. */
static bool spin_in_queue(const struct percpu_rw_semaphore *sem, struct quiesce__rwsem_waiter *w, uint64_t deadline)
{
	return w->ahead < quiesce__percpu_nr_sets(&sem->percpu) && quiesce__wait_spin_for(is_granted, w, QUIESCE_SPIN_NS, deadline);
}

/* Sleep until @w is granted the lock; false if @deadline came first.  Readers sleep on one shared word, so that one
 * wake-up serves all: a wake-up for each of them would let the woken readers take the waker's CPU. */
static bool wait_in_queue(struct percpu_rw_semaphore *sem, struct quiesce__rwsem_waiter *w, uint64_t deadline)
{
	struct quiesce__wait_policy stalls = { .start = platform_now_ns() };
	uint32_t *word = w->writer ? &w->state : &sem->wake_seq;
	bool granted;

	if (spin_in_queue(sem, w, deadline))
		return true;
	for (;;) {
		/* PW3: acquire, pairs with PW3 in admit_readers() */
		uint32_t seen = quiesce_load_acquire(PW3, word);
		uint64_t ns;

		if (is_granted(w))
			return true;
		if (quiesce__wait_policy_take_report(&stalls, platform_now_ns()))
			quiesce__rwsem_report_queue(sem, w, &stalls);
		ns = time_until(deadline, time_until_check());
		if (ns) {
			quiesce_store_relaxed(&w->slept_on, cpu_bit()); /* Relaxed: a hint. */
			platform_futex_wait(word, seen, ns);
			continue;
		}
		quiesce__lock(&sem->lock);
		granted = true;
		for (struct quiesce__rwsem_waiter *q = sem->first; q; q = q->next)
			granted = granted && q != w;
		if (!granted)
			dequeue(sem, w);
		quiesce__unlock(&sem->lock);
		if (!granted)
			return false;
		deadline = PLATFORM_FOREVER; /* the thread that dequeued @w grants it the lock, or has done so */
	}
}

/* Wait until @w is granted the lock; false if @deadline came first. */
static bool wait_for_lock(struct percpu_rw_semaphore *sem, struct quiesce__rwsem_waiter *w, uint64_t deadline)
{
	uint64_t since = quiesce_probe_clock(queue_wait_end);
	bool granted;

	quiesce_probe(queue_wait_begin, sem, w->writer);
	granted = wait_in_queue(sem, w, deadline);
	quiesce_probe(queue_wait_end, sem, w->writer, granted, quiesce_probe_since(since));
	return granted;
}

/* ---- readers ---- */

/* The next holder may free the lock once this reader has counted as left: from then on @sem is only an address. */
static void leave(struct percpu_rw_semaphore *sem)
{
	uint32_t *word = quiesce__waitq_of(sem);

	if (!quiesce__percpu_add(&sem->percpu, sem->shared, LEFT))
		/* WQ1: full, pairs with WQ1 in quiesce__waitq_prepare() */
		quiesce_fence_full(WQ1);
	if (!QUIESCE_MUTANT(rwsem_wake_lost))
		quiesce__waitq_wake(word);
}

/* True if the reader, which has been counted, may enter.  The caller has a full fence after the count. */
static bool may_enter(const struct percpu_rw_semaphore *sem)
{
	if (rcu_sync_is_idle(&sem->rss))
		return true;
	/* PW3: acquire, pairs with PW3 in take_writer() */
	return !quiesce_load_acquire(PW3, &sem->block);
}

static bool queue_reader(struct percpu_rw_semaphore *sem, uint64_t deadline)
{
	struct quiesce__rwsem_waiter w = { .state = WAITING };

	quiesce__init();
	quiesce__lock(&sem->lock);
	if (!sem->block) {
		/* The next writer sets block under the lock, so its sum includes this count. */
		quiesce__percpu_add(&sem->percpu, sem->shared, ENTERED);
		quiesce__unlock(&sem->lock);
		return true;
	}
	enqueue(sem, &w);
	quiesce__unlock(&sem->lock);
	return wait_for_lock(sem, &w, deadline);
}

void quiesce__rwsem_set_idle(struct rcu_sync *rss, bool idle)
{
	struct percpu_rw_semaphore *sem = (struct percpu_rw_semaphore *)(void *)((char *)rss - offsetof(struct percpu_rw_semaphore, rss));

	/* PW2: release, pairs with PW2 in quiesce__percpu_down_read() and quiesce__percpu_down_read_trylock() */
	quiesce_store_release(PW2, &sem->open, idle ? quiesce__percpu_open_word(&sem->percpu) : 0);
}

/* A statically initialised lock gets its counters and is opened here.  Never waits for the lock of rcu_sync,
 * because the caller may be a signal handler: another reader will open it. */
static QUIESCE_COLD void open_first(uint32_t layout, struct percpu_rw_semaphore *sem)
{
	quiesce__check_layout(layout);
	if (quiesce__percpu_open(&sem->percpu, WORDS) || !quiesce__trylock(&sem->rss.lock))
		return;
	if (rcu_sync_is_idle(&sem->rss))
		quiesce__rwsem_set_idle(&sem->rss, true);
	quiesce__unlock(&sem->rss.lock);
}

/* Relaxed throughout: hints; open_first() checks again. */
static bool may_open(const struct percpu_rw_semaphore *sem)
{
	if (!quiesce_load_relaxed(&sem->percpu.base))
		return true;
	return quiesce__percpu_uses_sequences() && !quiesce_load_relaxed(&sem->open) && !quiesce_load_relaxed(&sem->rss.gp_state) &&
	       quiesce__percpu_open_word(&sem->percpu);
}

bool quiesce__percpu_down_read_until(uint32_t layout, struct percpu_rw_semaphore *sem, uint64_t deadline)
{
	if (quiesce_unlikely(may_open(sem)))
		open_first(layout, sem);
	/* Count in a sequence by a call, for programs whose inline code cannot read the thread's id. */
	/* RS1: acquire, pairs with RS1 in set_state() */
	if (quiesce__percpu_uses_sequences() && !quiesce_load_relaxed(&sem->rss.gp_state) && /* Relaxed: a hint. */
	    quiesce_count_unless(RS1, &sem->percpu, QUIESCE__ENTERED, &sem->rss.gp_state))
		return true;
	/* Relaxed: a hint.  Readers that only try are not counted, or they might keep the writer's sum from zero
	 * for ever. */
	if (quiesce_load_relaxed(&sem->block) && !QUIESCE_MUTANT(rwsem_timed_counts))
		return deadline && queue_reader(sem, deadline);
	if (!quiesce__percpu_add(&sem->percpu, sem->shared, ENTERED))
		/* PW1: full, pairs with PW1 in begin_write() */
		quiesce_fence_full(PW1);
	if (quiesce_likely(may_enter(sem)))
		return true;
	leave(sem);
	return deadline && queue_reader(sem, deadline);
}

void quiesce__percpu_down_read_slow(uint32_t layout, struct percpu_rw_semaphore *sem)
{
	quiesce__percpu_down_read_until(layout, sem, PLATFORM_FOREVER);
}

bool quiesce_percpu_down_read_timeout(struct percpu_rw_semaphore *sem, uint64_t timeout_ns)
{
	if (quiesce__percpu_down_read_trylock(sem))
		return true;
	return timeout_ns && quiesce__percpu_down_read_until(QUIESCE_LAYOUT, sem, deadline_in(timeout_ns));
}

void quiesce__percpu_up_read_slow(struct percpu_rw_semaphore *sem)
{
	/* PC2: release, pairs with PC2 in sum() */
	if (quiesce__percpu_uses_sequences() && !quiesce_load_relaxed(&sem->rss.gp_state) && /* Relaxed: a hint. */
	    quiesce_count_release_unless(PC2, &sem->percpu, QUIESCE__LEFT, &sem->rss.gp_state))
		return;
	leave(sem);
}

/* ---- writers ---- */

/* Most sections are short.  If a reader inside has just been woken, a writer that slept as well would be woken late by it, while it
 * queues and falls asleep again: each section of a writer would take two wake-ups.  But where the reader needs this CPU a
 * spinning writer only delays it. */
static uint64_t drain_spin_ns(const struct percpu_rw_semaphore *sem)
{
	uint64_t woken_on = quiesce_load_relaxed(&sem->woken_on); /* Relaxed: a hint. */

	return !woken_on ? QUIESCE_SPIN_NS : woken_on & cpu_bit() ? 0 : DRAIN_SPIN_NS;
}

/* The caller owns block: sleep until the readers that entered before have left; false if @deadline came first. */
static bool drain(struct percpu_rw_semaphore *sem, uint64_t deadline)
{
	struct quiesce__wait_policy p = { .start = 0 };
	uint32_t *word = quiesce__waitq_of(sem);

	if (QUIESCE_MUTANT(rwsem_no_drain) || quiesce__wait_spin_for(is_drained, sem, drain_spin_ns(sem), deadline))
		return true;
	p.start = platform_now_ns();
	quiesce_probe(drain_begin, sem);
	for (;;) {
		uint64_t ns = time_until(deadline, STALL_CHECK_NS);
		uint32_t value = quiesce__waitq_prepare(word);
		bool drained;

		/* One check per wake-up is enough: readers that enter, find block and back out may be in the next
		 * sum. */
		drained = !inside(sem);
		if (drained || !ns) {
			quiesce_probe(drain_end, sem, drained, platform_now_ns() - p.start);
			return drained;
		}
		platform_futex_wait(word, value, ns);
		if (quiesce__wait_policy_take_report(&p, platform_now_ns()))
			quiesce__rwsem_report_drain(sem, deadline != PLATFORM_FOREVER, &p);
	}
}

/* I6: set the operations of an all-zero lock before its first use. */
void quiesce__rwsem_ensure_ops(struct percpu_rw_semaphore *sem)
{
	/* Relaxed throughout: all writers store the same value. */
	if (quiesce_unlikely(!quiesce_load_relaxed(&sem->rss.ops)) && !QUIESCE_MUTANT(rwsem_ops_unset))
		quiesce_store_relaxed(&sem->rss.ops, &quiesce_rwsem_sync);
}

/* Take block, or queue for it if @deadline is not 0; true if the caller owns it. */
static bool begin_write(struct percpu_rw_semaphore *sem, uint64_t deadline)
{
	struct quiesce__rwsem_waiter w = { .state = WAITING, .writer = true };
	bool ours;

	quiesce__lock(&sem->lock);
	ours = !sem->block;
	if (ours)
		quiesce_store_relaxed(&sem->block, 1); /* Relaxed: the fence follows. */
	else if (deadline)
		enqueue(sem, &w);
	quiesce__unlock(&sem->lock);
	if (!ours && (!deadline || !wait_for_lock(sem, &w, deadline)))
		return false;
	quiesce_store_relaxed(&sem->owner_tid, quiesce__tid()); /* Relaxed: for reports. */
	/* PW1: full, pairs with PW1 in quiesce__percpu_down_read_until() */
	quiesce_fence_full(PW1);
	return true;
}

/* Exits rcu_sync first: the lock may be freed as soon as another thread has been granted it. */
static void end_write(struct percpu_rw_semaphore *sem)
{
	struct quiesce__rwsem_waiter *writer;
	bool readers;

	if (!QUIESCE_MUTANT(rwsem_exit_late))
		quiesce_rcu_sync_exit(&sem->rss);
	quiesce_store_relaxed(&sem->owner_tid, 0); /* Relaxed: for reports. */
	quiesce__lock(&sem->lock);
	readers = admit_readers(sem);
	writer = take_writer(sem);
	quiesce__unlock(&sem->lock);
	/* Wake-ups use addresses only: the lock and the waiters may have been freed. */
	if (readers)
		platform_futex_wake(&sem->wake_seq, INT32_MAX);
	if (writer) {
		grant(writer);
		platform_futex_wake(&writer->state, 1);
	}
	if (QUIESCE_MUTANT(rwsem_exit_late))
		quiesce_rcu_sync_exit(&sem->rss);
}

bool quiesce__rwsem_write_until(struct percpu_rw_semaphore *sem, uint64_t deadline)
{
	if (!begin_write(sem, deadline)) {
		quiesce_rcu_sync_exit(&sem->rss);
		return false;
	}
	if (!drain(sem, deadline)) {
		if (QUIESCE_MUTANT(rwsem_keeps_block))
			quiesce_rcu_sync_exit(&sem->rss);
		else
			end_write(sem);
		return false;
	}
	quiesce_store_relaxed(&sem->owner, quiesce__self()); /* Relaxed: for percpu_is_write_locked_by_me(). */
	return true;
}

static bool down_write_until(struct percpu_rw_semaphore *sem, uint64_t deadline)
{
	/* A try that would fail does not push readers onto the slow path. */
	if (!deadline && inside(sem))
		return false;
	quiesce__rwsem_ensure_ops(sem);
	quiesce_rcu_sync_enter(&sem->rss);
	return quiesce__rwsem_write_until(sem, deadline);
}

void quiesce_percpu_down_write(struct percpu_rw_semaphore *sem)
{
	down_write_until(sem, PLATFORM_FOREVER);
}

bool quiesce_percpu_down_write_timeout(struct percpu_rw_semaphore *sem, uint64_t timeout_ns)
{
	return down_write_until(sem, timeout_ns ? deadline_in(timeout_ns) : 0);
}

static QUIESCE_COLD void report_up_write(const struct percpu_rw_semaphore *sem, const void *caller)
{
	struct platform_location here;

	quiesce__misuse(QUIESCE_MISUSE_UNBALANCED_UNLOCK, "percpu_up_write() at %s of %p, which no writer holds",
			platform_location(caller, &here), (const void *)sem);
}

void quiesce__rwsem_up_write(struct percpu_rw_semaphore *sem, const void *caller)
{
	/* Relaxed: it does not change while the caller holds the lock. */
	if (quiesce_unlikely(!quiesce_load_relaxed(&sem->block))) {
		report_up_write(sem, caller);
		return;
	}
	quiesce_store_relaxed(&sem->owner, NULL); /* Relaxed: for percpu_is_write_locked_by_me(). */
	end_write(sem);
}

void quiesce_percpu_up_write(struct percpu_rw_semaphore *sem)
{
	quiesce__rwsem_up_write(sem, quiesce__caller());
}

/* ---- queries ---- */

bool quiesce_percpu_is_read_locked(const struct percpu_rw_semaphore *sem)
{
	return inside(sem) != 0;
}

bool quiesce_percpu_is_write_locked(const struct percpu_rw_semaphore *sem)
{
	return quiesce_load_relaxed(&sem->block) != 0; /* Relaxed: a snapshot. */
}

bool quiesce_percpu_is_write_locked_by_me(const struct percpu_rw_semaphore *sem)
{
	/* Relaxed: only this thread stores its own identity there. */
	return quiesce_load_relaxed(&sem->owner) == (const void *)quiesce__self();
}

void quiesce__percpu_rwsem_not_held(const struct percpu_rw_semaphore *sem, const char *where)
{
	quiesce__misuse(QUIESCE_MISUSE_NOT_HELD, "percpu_rw_semaphore %p is not held for %s by this thread", (const void *)sem, where);
}

/* ---- begin and end ---- */

int quiesce_percpu_init_rwsem(uint32_t layout, struct percpu_rw_semaphore *sem)
{
	int err;

	quiesce__check_layout(layout);
	*sem = (struct percpu_rw_semaphore)PERCPU_RWSEM_INIT;
	err = quiesce__percpu_open(&sem->percpu, WORDS);
	if (!err)
		quiesce__rwsem_set_idle(&sem->rss, true);
	return err;
}

void quiesce_percpu_rwsem_after_fork_child(struct percpu_rw_semaphore *sem)
{
	quiesce__init();
	if (quiesce_unlikely(!quiesce__is_child("percpu_rwsem_after_fork_child()")))
		return;
	quiesce__percpu_count_all_left(&sem->percpu, sem->shared, ENTERED, LEFT);
	quiesce__lock_reset(&sem->lock, false);
	sem->first = sem->last = NULL;
	sem->rss = (struct rcu_sync){ .ops = &quiesce_rwsem_sync };
	quiesce__rwsem_set_idle(&sem->rss, true);
	/* Relaxed: no thread uses the lock yet. */
	quiesce_store_relaxed(&sem->owner, NULL);
	quiesce_store_relaxed(&sem->block, 0);
}

void quiesce_percpu_free_rwsem(struct percpu_rw_semaphore *sem)
{
	bool used;

	quiesce__init();
	quiesce__lock(&sem->lock);
	used = sem->block || sem->rss.gp_count || inside(sem);
	quiesce__unlock(&sem->lock);
	if (quiesce_unlikely(used)) {
		quiesce__misuse(QUIESCE_MISUSE_IN_USE, "percpu_free_rwsem() of %p, which is held or waited for", (void *)sem);
		return;
	}
	quiesce_rcu_sync_dtor(&sem->rss);
	quiesce__percpu_close(&sem->percpu);
	*sem = (struct percpu_rw_semaphore)PERCPU_RWSEM_INIT;
}
