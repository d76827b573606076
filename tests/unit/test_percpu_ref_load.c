/* SPDX-License-Identifier: MIT */
/* test_percpu_ref_load.c - references counted per CPU, with many users: no user is inside a frozen object. */
#include <quiesce/percpu_ref.h>

#include "testing.h"

enum { NR_USERS = 4, ROUNDS = 100, HANDED = 64 };

static struct {
	struct percpu_ref ref;
	uint64_t a, b;          /* equal while users may read them */
	uint32_t open;          /* set while the object is not frozen */
	uint64_t checks, wrong, handed;
	uint32_t ends;
	void *stock[HANDED];    /* references handed over: got by one thread, put by another */
	sem_t unused;
} q;

static void queue_unused(struct percpu_ref *ref)
{
	assert_ptr_equal(ref, &q.ref);
	sem_post(&q.unused);
}

static void check_inside(void)
{
	/* Relaxed: the test is about their order. */
	uint64_t a = quiesce_load_relaxed(&q.a), b = quiesce_load_relaxed(&q.b);

	if (a != b || !quiesce_load_relaxed(&q.open))
		count_up(&q.wrong);
	count_up(&q.checks);
}

/* Leave the reference in the stock, or take another one from there and put that. */
static void hand_over(uint32_t i)
{
	void *none = NULL, *mine = &q;

	if (i % 7 == 0 && quiesce_cmpxchg(RU3, &q.stock[i % HANDED], &none, mine))
		return;
	percpu_ref_put(&q.ref);
	if (i % 5 == 0 && quiesce_xchg(RU3, &q.stock[i * 7 % HANDED], NULL)) {
		percpu_ref_put(&q.ref);
		count_up(&q.handed);
	}
}

static void *user_main(void *arg)
{
	for (uint32_t i = (uint32_t)(uintptr_t)arg; !flag_get(&q.ends); i++) {
		if (!percpu_ref_tryget_live(&q.ref)) {
			short_rest();
			continue;
		}
		check_inside();
		percpu_ref_get(&q.ref);
		percpu_ref_put(&q.ref);
		check_inside();
		hand_over(i);
	}
	return NULL;
}

static void clear_stock(void)
{
	for (int i = 0; i < HANDED; i++)
		if (quiesce_xchg(RU3, &q.stock[i], NULL))
			percpu_ref_put(&q.ref);
}

/* Freeze, change the words that users read, and thaw. */
static void freeze_once(uint32_t round)
{
	uint64_t checks = flag_get(&q.checks);

	wait_until(flag_get(&q.checks) > checks);
	if (round % 3 == 0)
		percpu_ref_switch_to_atomic_sync(&q.ref);
	percpu_ref_kill(&q.ref);
	while (sem_trywait(&q.unused)) {
		clear_stock(); /* a user that is still inside may add to it */
		short_rest();
	}
	assert_true(percpu_ref_is_zero(&q.ref));
	quiesce_store_relaxed(&q.open, 0u); /* Relaxed: the count orders it. */
	quiesce_store_relaxed(&q.a, q.a + 1); /* Relaxed: the count orders it. */
	quiesce_store_relaxed(&q.b, q.b + 1); /* Relaxed: the count orders it. */
	quiesce_store_relaxed(&q.open, 1u); /* Relaxed: the count orders it. */
	if (round % 3 == 1)
		percpu_ref_switch_to_percpu(&q.ref);
	percpu_ref_reinit(&q.ref);
}

static void no_user_is_inside_a_frozen_queue(void **state)
{
	pthread_t thread[NR_USERS];

	(void)state;
	sem_init(&q.unused, 0, 0);
	q.open = 1;
	assert_int_equal(percpu_ref_init(&q.ref, queue_unused, PERCPU_REF_ALLOW_REINIT), 0);
	for (int i = 0; i < NR_USERS; i++)
		thread_must(pthread_create(&thread[i], NULL, user_main, (void *)(uintptr_t)i));
	for (uint32_t i = 0; i < ROUNDS; i++)
		freeze_once(i);
	wait_until(flag_get(&q.handed) > 0);
	flag_set(&q.ends);
	threads_end(thread, NR_USERS);
	percpu_ref_kill(&q.ref);
	clear_stock();
	assert_int_equal(sem_trywait(&q.unused), 0);
	assert_int_not_equal(sem_trywait(&q.unused), 0);
	assert_int_equal(q.wrong, 0);
	assert_true(q.checks >= ROUNDS);
	percpu_ref_exit(&q.ref);
}

/* Several threads change the mode of one count while others use it. */
static struct percpu_ref restless;
static int released;

static void on_release(struct percpu_ref *ref)
{
	assert_ptr_equal(ref, &restless);
	count_up(&released);
}

static void *changer_main(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		percpu_ref_get(&restless);
		if (i % 2 == (arg != NULL))
			percpu_ref_switch_to_atomic_sync(&restless);
		else
			percpu_ref_switch_to_percpu(&restless);
		percpu_ref_put(&restless);
	}
	return NULL;
}

static void changes_of_mode_take_turns(void **state)
{
	pthread_t thread[4];

	(void)state;
	assert_int_equal(percpu_ref_init(&restless, on_release, PERCPU_REF_ALLOW_REINIT), 0);
	for (int i = 0; i < 4; i++)
		thread_must(pthread_create(&thread[i], NULL, changer_main, (void *)(uintptr_t)(i % 2)));
	threads_end(thread, 4);
	percpu_ref_switch_to_atomic_sync(&restless);
	assert_int_equal(restless.count / 2, 1);
	assert_int_equal(released, 0);
	percpu_ref_kill(&restless);
	assert_int_equal(released, 1);
	percpu_ref_exit(&restless);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(no_user_is_inside_a_frozen_queue),
		TEST(changes_of_mode_take_turns),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
