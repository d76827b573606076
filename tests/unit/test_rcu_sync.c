/* SPDX-License-Identifier: MIT */
/* test_rcu_sync.c - the states of rcu_sync, one after the other by grace periods of our own, and the library's kinds. */
#include <quiesce/rcu_sync.h>
#include <quiesce/srcu.h>

#include "testing.h"

/* ---- grace periods that the test ends ---- */

static struct hand {
	int waits, calls, barriers; /* number of requests for each */
	struct rcu_head *head;
	void (*func)(struct rcu_head *head);
	int slow;          /* waits last until @go */
	int waiting, go;
} hand;
static struct rcu_sync rss;

static void hand_wait(void *domain)
{
	struct hand *h = domain;

	count_up(&h->waits);
	if (!flag_get(&h->slow))
		return;
	flag_set(&h->waiting);
	wait_until(flag_get(&h->go));
}

static void hand_call(void *domain, struct rcu_head *head, void (*func)(struct rcu_head *head))
{
	struct hand *h = domain;

	count_up(&h->calls);
	assert_null(h->head); /* rcu_sync requests one callback at a time */
	h->head = head;
	h->func = func;
}

/* End the grace period that a caller of call() has requested; false if there is none. */
static bool hand_over(struct hand *h)
{
	struct rcu_head *head = h->head;

	h->head = NULL;
	if (head)
		h->func(head);
	return head != NULL;
}

static void hand_barrier(void *domain, struct rcu_head *head)
{
	struct hand *h = domain;

	assert_ptr_equal(head, &rss.head);
	count_up(&h->barriers);
	hand_over(h);
}

static const struct rcu_sync_ops by_hand = { hand_wait, hand_call, hand_barrier, NULL };

static void fresh(void)
{
	hand = (struct hand){ .waits = 0 };
	rcu_sync_init_ops(&rss, &by_hand, &hand);
	assert_true(rcu_sync_is_idle(&rss));
}

static void is_in(enum rcu_sync_state state, int waits, int calls)
{
	assert_int_equal(flag_get(&rss.gp_state), state);
	assert_int_equal(rcu_sync_is_idle(&rss), state == RCU_SYNC_IDLE);
	assert_int_equal(flag_get(&hand.waits), waits);
	assert_int_equal(flag_get(&hand.calls), calls);
}

static void the_first_enter_waits_and_the_last_exit_calls(void **state)
{
	(void)state;
	fresh();
	rcu_sync_enter(&rss);
	is_in(RCU_SYNC_PASSED, 1, 0);
	rcu_sync_enter(&rss);
	is_in(RCU_SYNC_PASSED, 1, 0);
	rcu_sync_exit(&rss);
	is_in(RCU_SYNC_PASSED, 1, 0);
	rcu_sync_exit(&rss);
	is_in(RCU_SYNC_EXIT, 1, 1);
	assert_true(hand_over(&hand));
	is_in(RCU_SYNC_IDLE, 1, 1);
	assert_false(hand_over(&hand));
	rcu_sync_enter(&rss);
	is_in(RCU_SYNC_PASSED, 2, 1);
	rcu_sync_exit(&rss);
	assert_true(hand_over(&hand));
	is_in(RCU_SYNC_IDLE, 2, 2);
	rcu_sync_dtor(&rss);
	assert_int_equal(hand.barriers, 0);
}

static void an_enter_before_the_callback_pays_nothing(void **state)
{
	(void)state;
	fresh();
	rcu_sync_enter(&rss);
	rcu_sync_exit(&rss);
	is_in(RCU_SYNC_EXIT, 1, 1);
	rcu_sync_enter(&rss);
	is_in(RCU_SYNC_EXIT, 1, 1);
	assert_true(hand_over(&hand));
	is_in(RCU_SYNC_PASSED, 1, 1); /* an updater is inside */
	rcu_sync_exit(&rss);
	is_in(RCU_SYNC_EXIT, 1, 2);
	assert_true(hand_over(&hand));
	is_in(RCU_SYNC_IDLE, 1, 2);
	rcu_sync_dtor(&rss);
}

/* An exit after the callback was queued needs a grace period of its own. */
static void an_exit_beside_the_callback_asks_for_another(void **state)
{
	(void)state;
	fresh();
	rcu_sync_enter(&rss);
	rcu_sync_exit(&rss);
	for (int i = 0; i < 3; i++) {
		rcu_sync_enter(&rss);
		is_in(i ? RCU_SYNC_REPLAY : RCU_SYNC_EXIT, 1, 1);
		rcu_sync_exit(&rss);
		is_in(RCU_SYNC_REPLAY, 1, 1);
	}
	assert_true(hand_over(&hand));
	is_in(RCU_SYNC_EXIT, 1, 2);
	rcu_sync_enter(&rss);
	rcu_sync_exit(&rss);
	is_in(RCU_SYNC_REPLAY, 1, 2);
	rcu_sync_enter(&rss);
	assert_true(hand_over(&hand));
	is_in(RCU_SYNC_PASSED, 1, 2);
	rcu_sync_exit(&rss);
	is_in(RCU_SYNC_EXIT, 1, 3);
	assert_true(hand_over(&hand));
	is_in(RCU_SYNC_IDLE, 1, 3);
	rcu_sync_dtor(&rss);
}

/* ---- two at once ---- */

struct updater {
	pthread_t thread;
	struct rcu_sync *rss;
	int begun, entered;
	int leave;
};

static void *updater_main(void *arg)
{
	struct updater *u = arg;

	flag_set(&u->begun);
	rcu_sync_enter(u->rss);
	flag_set(&u->entered);
	wait_until(flag_get(&u->leave));
	rcu_sync_exit(u->rss);
	return NULL;
}

static void updater_begin(struct updater *u, struct rcu_sync *of)
{
	*u = (struct updater){ .rss = of };
	thread_must(pthread_create(&u->thread, NULL, updater_main, u));
	wait_until(flag_get(&u->begun));
}

static void updater_end(struct updater *u)
{
	flag_set(&u->leave);
	pthread_join(u->thread, NULL);
}

/* Return the number of updaters between enter and exit, loaded from outside and hidden from race detectors. */
__attribute__((noinline, no_sanitize("thread"))) static uint32_t count_inside(void)
{
	return *(volatile uint32_t *)&rss.gp_count; /* raw: the library writes it plainly, under its lock */
}

static void enters_share_the_first_grace_period(void **state)
{
	struct updater u[4];

	(void)state;
	fresh();
	hand.slow = 1;
	updater_begin(&u[0], &rss);
	wait_until(flag_get(&hand.waiting));
	assert_false(rcu_sync_is_idle(&rss));
	for (int i = 1; i < 4; i++)
		updater_begin(&u[i], &rss);
	wait_until(count_inside() == 4);
	for (int k = 0; k < 5; k++) {
		short_rest();
		for (int i = 0; i < 4; i++)
			assert_false(flag_get(&u[i].entered));
	}
	flag_set(&hand.go);
	for (int i = 0; i < 4; i++)
		wait_until(flag_get(&u[i].entered));
	is_in(RCU_SYNC_PASSED, 1, 0);
	for (int i = 0; i < 4; i++)
		updater_end(&u[i]);
	is_in(RCU_SYNC_EXIT, 1, 1);
	assert_true(hand_over(&hand));
	is_in(RCU_SYNC_IDLE, 1, 1);
	rcu_sync_dtor(&rss);
}

/* ---- the end ---- */

static void the_end_waits_for_the_callback(void **state)
{
	(void)state;
	fresh();
	rcu_sync_enter(&rss);
	rcu_sync_exit(&rss);
	rcu_sync_dtor(&rss);
	is_in(RCU_SYNC_IDLE, 1, 1);
	assert_int_equal(hand.barriers, 1);
	fresh();
	rcu_sync_enter(&rss);
	rcu_sync_exit(&rss);
	rcu_sync_enter(&rss);
	rcu_sync_exit(&rss);
	is_in(RCU_SYNC_REPLAY, 1, 1);
	rcu_sync_dtor(&rss); /* no updater will enter: no replay is needed */
	assert_true(rcu_sync_is_idle(&rss));
	assert_null(hand.head);
}

/* ---- misuse ---- */

static int nr_reported;
static enum quiesce_misuse reported_kind;

static void note_misuse(enum quiesce_misuse kind, const char *text)
{
	assert_non_null(strstr(text, "rcu_sync_"));
	reported_kind = kind;
	count_up(&nr_reported);
}

#define REPORTED(kind, call)                           \
	do {                                           \
		nr_reported = 0;                       \
		quiesce_set_misuse_hook(note_misuse);  \
		call;                                  \
		quiesce_set_misuse_hook(NULL);         \
		assert_int_equal(nr_reported, 1);      \
		assert_int_equal(reported_kind, kind); \
	} while (0)

static void misuse_is_reported_and_changes_nothing(void **state)
{
	(void)state;
	fresh();
	REPORTED(QUIESCE_MISUSE_UNBALANCED_UNLOCK, rcu_sync_exit(&rss));
	is_in(RCU_SYNC_IDLE, 0, 0);
	rcu_sync_enter(&rss);
	REPORTED(QUIESCE_MISUSE_IN_USE, rcu_sync_dtor(&rss));
	is_in(RCU_SYNC_PASSED, 1, 0);
	rcu_sync_exit(&rss);
	is_in(RCU_SYNC_EXIT, 1, 1);
	REPORTED(QUIESCE_MISUSE_UNBALANCED_UNLOCK, rcu_sync_exit(&rss));
	is_in(RCU_SYNC_EXIT, 1, 1);
	rcu_sync_enter(&rss);
	REPORTED(QUIESCE_MISUSE_IN_USE, rcu_sync_dtor(&rss));
	rcu_sync_exit(&rss);
	is_in(RCU_SYNC_REPLAY, 1, 1);
	REPORTED(QUIESCE_MISUSE_UNBALANCED_UNLOCK, rcu_sync_exit(&rss));
	is_in(RCU_SYNC_REPLAY, 1, 1);
	assert_true(hand_over(&hand));
	assert_true(hand_over(&hand));
	rcu_sync_dtor(&rss);
	is_in(RCU_SYNC_IDLE, 1, 2);
}

/* ---- the library's kinds ---- */

DEFINE_RCU_SYNC(global);
static struct rcu_sync local = RCU_SYNC_INIT;

/* Enter waits for readers that saw "idle" in a section of RCU; and readers are fast again some time after the exit. */
static void by_rcu(struct rcu_sync *of)
{
	struct updater u;

	for (int i = 0; i < 3; i++) {
		struct held h;

		wait_until(rcu_sync_is_idle(of));
		held_begin(&h, NULL);
		assert_true(rcu_sync_is_idle(of));
		updater_begin(&u, of);
		wait_until(!rcu_sync_is_idle(of));
		for (int k = 0; k < 5; k++) {
			short_rest();
			assert_false(flag_get(&u.entered));
		}
		held_end(&h);
		wait_until(flag_get(&u.entered));
		assert_false(rcu_sync_is_idle(of));
		rcu_sync_enter(of);
		rcu_sync_exit(of);
		updater_end(&u);
	}
	wait_until(rcu_sync_is_idle(of));
	rcu_sync_enter(of);
	rcu_sync_exit(of);
	rcu_sync_dtor(of);
	assert_true(rcu_sync_is_idle(of));
}

static void rcu_waits_for_sections(void **state)
{
	(void)state;
	by_rcu(&global);
	by_rcu(&local);
	rcu_sync_init(&local);
	by_rcu(&local);
	rcu_sync_init_ops(&local, &quiesce_rcu_sync_rcu, NULL);
	by_rcu(&local);
	rcu_sync_init_ops(&local, &quiesce_rcu_sync_rcu_expedited, NULL);
	by_rcu(&local);
}

/* A burst has one grace period before it; those of the callback may run beside it. */
static void fences_wait_for_no_reader(void **state)
{
	struct quiesce_stats before, after;
	struct held h;

	(void)state;
	rcu_sync_init_ops(&local, &quiesce_rcu_sync_fence, NULL);
	held_begin(&h, NULL); /* a section of RCU is nothing to it */
	before = stats_now();
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 100; i++) {
			rcu_sync_enter(&local);
			assert_false(rcu_sync_is_idle(&local));
			rcu_sync_exit(&local);
		}
		wait_until(rcu_sync_is_idle(&local));
	}
	rcu_sync_enter(&local);
	rcu_sync_exit(&local);
	rcu_sync_dtor(&local);
	assert_true(rcu_sync_is_idle(&local));
	after = stats_now();
	assert_int_equal(after.grace_periods, before.grace_periods);
	if (quiesce_fence() == QUIESCE_FENCE_LIGHT)
		assert_true(after.membarriers >= before.membarriers + 3);
	held_end(&h);
}

/* A program's own kind of grace period: a domain of SRCU. */
DEFINE_STATIC_SRCU(domain);

static void srcu_wait(void *of) { synchronize_srcu(of); }
static void srcu_call(void *of, struct rcu_head *head, void (*func)(struct rcu_head *head)) { call_srcu(of, head, func); }
static void srcu_wait_for_calls(void *of, struct rcu_head *head) { (void)head, srcu_barrier(of); }

static void a_domain_is_as_good(void **state)
{
	static const struct rcu_sync_ops by_srcu = { srcu_wait, srcu_call, srcu_wait_for_calls, NULL };
	struct updater u;
	int idx;

	(void)state;
	rcu_sync_init_ops(&local, &by_srcu, &domain);
	for (int i = 0; i < 3; i++) {
		idx = srcu_read_lock(&domain);
		assert_true(rcu_sync_is_idle(&local));
		updater_begin(&u, &local);
		wait_until(!rcu_sync_is_idle(&local));
		short_rest();
		assert_false(flag_get(&u.entered));
		srcu_read_unlock(&domain, idx);
		wait_until(flag_get(&u.entered));
		updater_end(&u);
		wait_until(rcu_sync_is_idle(&local));
	}
	rcu_sync_enter(&local);
	rcu_sync_exit(&local);
	rcu_sync_dtor(&local);
	assert_true(rcu_sync_is_idle(&local));
}

/* ---- under load ---- */

enum { NR_READERS = 2, NR_UPDATERS = 2, ENOUGH = 400 };

static int stop, nr_wrong, nr_updating;
static uint64_t nr_fast, nr_slow, nr_updates;

static void *reader_main(void *unused)
{
	while (!flag_get(&stop)) {
		rcu_read_lock();
		if (rcu_sync_is_idle(&local)) {
			if (flag_get(&nr_updating))
				count_up(&nr_wrong);
			count_up(&nr_fast);
			if (flag_get(&nr_updating))
				count_up(&nr_wrong);
		} else {
			count_up(&nr_slow);
		}
		rcu_read_unlock();
	}
	return unused;
}

static void *burst_main(void *unused)
{
	while (!flag_get(&stop)) {
		for (int i = 0; i < 5; i++) {
			rcu_sync_enter(&local);
			count_up(&nr_updating);
			count_up(&nr_updates);
			quiesce_fetch_add_relaxed(&nr_updating, -1); /* Relaxed: a count of the test. */
			rcu_sync_exit(&local);
		}
		/* Relaxed: one burst in so many fast sections. */
		for (uint64_t seen = quiesce_load_relaxed(&nr_fast); quiesce_load_relaxed(&nr_fast) == seen && !flag_get(&stop);)
			short_rest();
	}
	return unused;
}

/* No reader is fast while an updater is inside. */
static void fast_readers_and_updaters_exclude_each_other(void **state)
{
	pthread_t thread[NR_READERS + NR_UPDATERS];

	(void)state;
	rcu_sync_init(&local);
	for (int i = 0; i < NR_READERS + NR_UPDATERS; i++)
		thread_must(pthread_create(&thread[i], NULL, i < NR_READERS ? reader_main : burst_main, NULL));
	wait_until(flag_get(&nr_updates) > ENOUGH && flag_get(&nr_fast) > ENOUGH && flag_get(&nr_slow) > ENOUGH);
	flag_set(&stop);
	threads_end(thread, NR_READERS + NR_UPDATERS);
	assert_int_equal(nr_wrong, 0);
	rcu_sync_dtor(&local);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(the_first_enter_waits_and_the_last_exit_calls),
		TEST(an_enter_before_the_callback_pays_nothing),
		TEST(an_exit_beside_the_callback_asks_for_another),
		TEST(enters_share_the_first_grace_period),
		TEST(the_end_waits_for_the_callback),
		TEST(misuse_is_reported_and_changes_nothing),
		TEST(rcu_waits_for_sections),
		TEST(fences_wait_for_no_reader),
		TEST(a_domain_is_as_good),
		TEST(fast_readers_and_updaters_exclude_each_other),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
