/* SPDX-License-Identifier: MIT */
/* migrate.h - stories: functions that migrate to another thread now and then, in C by contexts (unit/test_fibers.c), in C++ as coroutines
 * (build/coroutines.cpp).  The test defines before it includes this file:
 *
 *   STORY(name)    declares a function that can move to another thread
 *   MOVE()         go on in the other thread
 *
 * and runs each in two threads: @here is the one in which it runs now, and blocks[] has the library's block of each.  A compiler that
 * keeps the address of a thread-local variable over MOVE() claims, counts and clears in the thread that it came from.
 */
#ifndef QUIESCE_TESTS_MIGRATE_H
#define QUIESCE_TESTS_MIGRATE_H

#include <quiesce/counted_ptr.h>
#include <quiesce/detail/qsbr.h>
#include <quiesce/percpu_ref.h>
#include <quiesce/percpu_rwsem.h>
#include <quiesce/shazptr.h>
#include <quiesce/srcu.h>

#include <stdio.h>

#define NR_MOVES 6 /* more than once to and fro */

static struct quiesce_tls_v1 *blocks[2];
static int here;
static int failures;

#define expect(condition) ((condition) ? (void)0 : fails(__LINE__, #condition))

static void fails(int line, const char *what)
{
	if (failures++ < 20)
		printf("# migrate.h:%d, in thread %d: not so: %s\n", line, here, what);
}

/* Return the words of this thread, or of the other one.  These are calls, so that no access to a thread is inlined in a story. */
static __attribute__((noinline, unused)) uint64_t depth_in(int thread)
{
	/* Relaxed: the threads take turns. */
	return quiesce_load_relaxed(&blocks[thread]->rcu_word) & QUIESCE_RCU_DEPTH;
}

static __attribute__((noinline, unused)) uint64_t qsbr_word_in(int thread)
{
	return quiesce_load_relaxed(&blocks[thread]->qsbr_word); /* Relaxed: the threads take turns. */
}

/* True if @slot is in this thread's own line; a thread without a line claims in another place. */
static __attribute__((noinline, unused)) int is_own(const uintptr_t *slot, const uintptr_t *line)
{
	return !line || (uintptr_t)slot / QUIESCE_CACHELINE == (uintptr_t)line / QUIESCE_CACHELINE;
}

static __attribute__((noinline, unused)) int holds(const uintptr_t *slot, const void *ptr)
{
	return quiesce_load_relaxed(slot) << 1 >> 1 == (uintptr_t)ptr; /* Relaxed: the threads take turns. */
}

struct thing {
	struct counted counted;
	int value;
};

static struct thing thing;
static struct thing *current = &thing;
DEFINE_STATIC_SRCU(domain);
DEFINE_STATIC_PERCPU_RWSEM(rwsem);
static struct percpu_ref ref;
static int nr_released;

static inline void unused_now(struct percpu_ref *unused) { (void)unused, nr_released++; }

static inline void never(struct counted *unused) { (void)unused, fails(__LINE__, "released"); }

static struct shazptr_guard kept;

/* Check that the guard belongs to this thread, and protects @ptr. */
static __attribute__((noinline, unused)) void expect_own(const void *ptr)
{
	expect(!ptr || (is_own(kept.slot, blocks[here]->shazptr_own) && holds(kept.slot, ptr)));
}

/* A section ends in the thread that it began in. */
STORY(story_rcu)
{
	for (int i = 0; i < NR_MOVES; i++) {
		rcu_read_lock();
		expect(depth_in(here) == 1 && !depth_in(!here));
		rcu_read_lock();
		expect(depth_in(here) == 2 && !depth_in(!here));
		expect(rcu_dereference(current) == &thing && rcu_read_lock_held());
		rcu_read_unlock();
		rcu_read_unlock();
		expect(!depth_in(here) && !depth_in(!here));
		MOVE();
		expect(!rcu_read_lock_held());
	}
	rcu_read_lock();
	expect(depth_in(here) == 1 && !depth_in(!here));
	rcu_read_unlock();
	END();
}

/* A guard moves with the story, and is cleared by another thread, which has one of its own by then. */
STORY(story_shazptr)
{
	struct shazptr_guard before = shazptr_protect(&current);

	shazptr_detach(before);
	for (int i = 0; i < NR_MOVES; i++) {
		struct shazptr_guard guard, more;

		expect(is_own(before.slot, blocks[here]->shazptr_own) && holds(before.slot, current));
		MOVE();
		expect(holds(before.slot, current));
		guard = shazptr_acquire(&domain);
		more = shazptr_tryprotect(&current);
		expect(is_own(guard.slot, blocks[here]->shazptr_own) && is_own(more.slot, blocks[here]->shazptr_own));
		expect(holds(guard.slot, &domain) && holds(more.slot, current) && holds(before.slot, current));
		expect(guard.slot != before.slot && more.slot != before.slot && guard.slot != more.slot);
		shazptr_clear(before);
		shazptr_clear(guard);
		expect(holds(before.slot, NULL) && holds(guard.slot, NULL) && holds(more.slot, current));
		before = more;
		shazptr_detach(before);
	}
	shazptr_clear(before);
	END();
}

/* Where several calls, some of them in a loop, are ways of one function, a compiler takes addresses out of the loop. */
STORY(story_ways)
{
	if (here)
		kept = shazptr_acquire(&thing);
	else
		MOVE();
	for (int i = 0; i < 4 * NR_MOVES; i++) {
		if (i & 1) {
			kept = shazptr_acquire(&thing);
			expect_own(&thing);
			shazptr_detach(kept);
			MOVE();
		} else {
			expect_own(NULL);
			kept = shazptr_acquire(&rwsem);
			expect_own(&rwsem);
		}
		shazptr_clear(kept);
	}
	kept = shazptr_acquire(&thing);
	expect_own(&thing);
	shazptr_clear(kept);
	END();
}

/* Slots move with the story, and so does a context of its own. */
STORY(story_hazptr)
{
	hazptr_t *before = hazptr_alloc(NULL), *slot, *row;
	struct hazptr_context ctx;

	expect(!init_hazptr_context(&ctx));
	for (int i = 0; i < NR_MOVES; i++) {
		expect(hazptr_protect(before, &current) == current);
		expect(is_own(&before->value, blocks[here]->hazptr));
		MOVE();
		expect(holds(&before->value, current));
		slot = hazptr_alloc(&ctx);
		expect(slot && hazptr_protect(slot, &current) == current);
		row = hazptr_alloc_array(NULL, 2);
		expect(row && is_own(&row->value, blocks[here]->hazptr) && row != before && row + 1 != before);
		hazptr_free_array(NULL, row, 2);
		hazptr_free(NULL, before);
		before = hazptr_alloc(NULL);
		expect(before && is_own(&before->value, blocks[here]->hazptr));
		MOVE();
		hazptr_free(&ctx, slot);
		hazptr_free(NULL, before);
		before = hazptr_alloc(NULL);
		expect(before && is_own(&before->value, blocks[here]->hazptr));
	}
	hazptr_free(NULL, before);
	cleanup_hazptr_context(&ctx);
	END();
}

/* Counts per CPU do not depend on the thread. */
STORY(story_counts)
{
	for (int i = 0; i < NR_MOVES; i++) {
		int idx = srcu_down_read(&domain);
		struct thing *mine = counted_load(&current, counted);
		struct rcu_gp_seq seq = start_poll_synchronize_srcu(&domain);

		percpu_down_read(&rwsem);
		percpu_ref_get(&ref);
		MOVE();
		expect(!poll_state_synchronize_srcu(&domain, seq) && percpu_is_read_locked(&rwsem));
		srcu_up_read(&domain, idx);
		percpu_up_read(&rwsem);
		percpu_ref_put(&ref);
		expect(counted_read(&thing.counted) == 2 && !counted_put(&mine->counted));
		synchronize_srcu(&domain);
		percpu_down_write(&rwsem);
		MOVE();
		expect(percpu_is_write_locked(&rwsem));
		percpu_up_write(&rwsem);
	}
	percpu_ref_kill(&ref);
	expect(nr_released == 1);
	END();
}

/* QSBR threads report quiescent states, each for itself. */
STORY(story_qsbr)
{
	for (int i = 0; i < NR_MOVES; i++) {
		quiesce__qsbr_online();
		expect(qsbr_word_in(here) && !qsbr_word_in(!here));
		quiesce__qsbr_quiescent_state();
		expect(quiesce__qsbr_ongoing());
		quiesce__qsbr_offline();
		expect(!qsbr_word_in(here) && !quiesce__qsbr_ongoing());
		MOVE();
		expect(!quiesce__qsbr_ongoing());
	}
	END();
}

/* Begin in each of the two threads, before the first story. */
static __attribute__((noinline)) void migrate_enter(int thread)
{
	blocks[thread] = quiesce__self();
	if (quiesce_qsbr_register(QUIESCE_LAYOUT))
		fails(__LINE__, "registered");
	quiesce__qsbr_offline();
}

static inline void migrate_begin(void)
{
	counted_init(&thing.counted, never);
	if (percpu_ref_init(&ref, unused_now, 0))
		fails(__LINE__, "counters");
	nr_released = 0;
}

#endif
