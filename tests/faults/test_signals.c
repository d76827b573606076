/* SPDX-License-Identifier: MIT */
/* test_signals.c - readers in signal handlers: at any place, and as the first call of a thread. */
#include "../unit/testing.h"

#define GOOD 0x600dcafeu
#define POISON 0x6b6b6b6bu
#define QUARANTINE 64 /* updates before a poisoned object is used again */

static unsigned int pool[QUARANTINE];
static unsigned int *shared;
static int stop, nr_handled, nr_bad, nr_bad_errno;

static void check_shared(void)
{
	unsigned int *p;

	rcu_read_lock();
	p = rcu_dereference(shared);
	if (quiesce_load_relaxed(p) != GOOD) /* Relaxed: the test is about the ordering of RCU. */
		count_up(&nr_bad);
	rcu_read_lock();
	rcu_read_unlock();
	if (quiesce_load_relaxed(p) != GOOD)
		count_up(&nr_bad);
	rcu_read_unlock();
}

static void on_signal(int sig)
{
	int saved = errno;

	(void)sig;
	errno = 4711;
	check_shared();
	if (errno != 4711)
		count_up(&nr_bad_errno);
	count_up(&nr_handled);
	errno = saved;
}

static void catch_signals(void)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };

	sigemptyset(&action.sa_mask);
	sigaction(SIGUSR1, &action, NULL);
	quiesce_store_relaxed(&nr_handled, 0);
	quiesce_store_relaxed(&nr_bad, 0);
	quiesce_store_relaxed(&nr_bad_errno, 0);
	quiesce_store_relaxed(&stop, 0);
	pool[0] = GOOD;
	rcu_assign_pointer(shared, &pool[0]);
}

static void *reader_main(void *unused)
{
	(void)unused;
	while (!flag_get(&stop))
		check_shared();
	return NULL;
}

static void update(int i)
{
	unsigned int *fresh = &pool[i % QUARANTINE], *old;

	quiesce_store_relaxed(fresh, GOOD);
	old = rcu_xchg_pointer(&shared, fresh);
	if (i % 8)
		synchronize_rcu();
	else
		synchronize_rcu_expedited();
	quiesce_store_relaxed(old, POISON);
}

static void *updater_main(void *nr_updates)
{
	for (int i = 1; !flag_get(&stop); i++) {
		update(i);
		count_up((int *)nr_updates);
	}
	return NULL;
}

static void queued_run(struct rcu_head *head)
{
	(void)head;
}

static void *queuer_main(void *nr_queued)
{
	static struct rcu_head head[64];

	while (!flag_get(&stop)) {
		for (int i = 0; i < 64; i++)
			call_rcu(&head[i], queued_run);
		count_up((int *)nr_queued);
		rcu_barrier();
	}
	return NULL;
}

static void a_storm_over_readers_and_updaters(void **state)
{
	enum { THREADS = 4, SIGNALS = 12000 };
	int nr_updates = 0, nr_queued = 0;
	pthread_t thread[THREADS];

	(void)state;
	catch_signals();
	thread_must(pthread_create(&thread[0], NULL, reader_main, NULL));
	thread_must(pthread_create(&thread[1], NULL, reader_main, NULL));
	thread_must(pthread_create(&thread[2], NULL, updater_main, &nr_updates));
	thread_must(pthread_create(&thread[3], NULL, queuer_main, &nr_queued));
	for (int i = 0; i < SIGNALS; i++) {
		pthread_kill(thread[i % THREADS], SIGUSR1);
		if (i % 8 == 0)
			short_rest();
	}
	wait_until(flag_get(&nr_updates) > 100 && flag_get(&nr_queued) > 5);
	flag_set(&stop);
	threads_end(thread, THREADS);
	assert_int_equal(nr_bad, 0);
	assert_int_equal(nr_bad_errno, 0);
	assert_true(nr_handled > 100);
	print_message("# %d signals handled, %d updates\n", nr_handled, nr_updates);
}

/* ---- the handler makes the thread's first call ---- */

static sem_t ready;

static void *only_in_handler(void *seen)
{
	int before = flag_get(&nr_handled);

	sem_post(&ready);
	while (flag_get(&nr_handled) == before)
		short_rest();
	*(uint32_t *)seen = stats_now().readers;
	return NULL;
}

static void a_handler_may_be_the_first_user(void **state)
{
	uint32_t before, during = 0;
	pthread_t thread;

	(void)state;
	catch_signals();
	sem_init(&ready, 0, 0);
	before = stats_now().readers;
	for (int i = 0; i < 20; i++) {
		thread_must(pthread_create(&thread, NULL, only_in_handler, &during));
		wait_for(&ready);
		pthread_kill(thread, SIGUSR1);
		pthread_join(thread, NULL);
		assert_int_equal(during, before + 1);
		assert_int_equal(stats_now().readers, before);
	}
	assert_int_equal(nr_bad, 0);
}

/* ---- signals while threads begin, register and end ---- */

static void *short_life(void *unused)
{
	(void)unused;
	check_shared();
	return NULL;
}

static void *kill_them(void *thread)
{
	while (!flag_get(&stop)) {
		pthread_t target = quiesce_load_relaxed((pthread_t *)thread); /* Relaxed: joined only after us. */

		pthread_kill(target, SIGUSR1);
	}
	return NULL;
}

/* The target is joined only after the killer, so its handle stays valid. */
static void one_short_life(void)
{
	static pthread_t target;
	pthread_t thread, killer;

	quiesce_store_relaxed(&stop, 0);
	thread_must(pthread_create(&thread, NULL, short_life, NULL));
	quiesce_store_relaxed(&target, thread);
	thread_must(pthread_create(&killer, NULL, kill_them, &target));
	synchronize_rcu();
	short_rest();
	flag_set(&stop);
	pthread_join(killer, NULL);
	pthread_join(thread, NULL);
}

static void signals_at_birth_and_death(void **state)
{
	uint32_t before;

	(void)state;
	catch_signals();
	before = stats_now().readers;
	for (int i = 0; i < 300; i++)
		one_short_life();
	synchronize_rcu();
	assert_int_equal(stats_now().readers, before);
	assert_int_equal(nr_bad, 0);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(a_storm_over_readers_and_updaters),
		TEST(a_handler_may_be_the_first_user),
		TEST(signals_at_birth_and_death),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
