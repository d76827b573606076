/* SPDX-License-Identifier: MIT */
/* test_blocked.c - callbacks that block the helper: other domains, locks and hazard pointers go on; how many threads there are. */
#include <quiesce/hazptr.h>
#include <quiesce/srcu.h>

#include "rwsems.h"

#define NR 40 /* more callbacks than there may be threads */
#define MAX_THREADS 32

static struct srcu_struct domain[NR], waited_for;
static struct rcu_head head[NR];
static int nr_inside, nr_run, go;

static void begin(int nr)
{
	nr_inside = nr_run = go = 0;
	for (int i = 0; i < nr; i++)
		assert_int_equal(init_srcu_struct(&domain[i]), 0);
}

static void end(int nr)
{
	for (int i = 0; i < nr; i++) {
		srcu_barrier(&domain[i]);
		cleanup_srcu_struct(&domain[i]);
	}
}

static void run(struct rcu_head *unused)
{
	(void)unused;
	count_up(&nr_run);
}

static void block(struct rcu_head *unused)
{
	(void)unused;
	count_up(&nr_inside);
	wait_until(flag_get(&go));
	count_up(&nr_run);
}

static void wait_in_another(struct rcu_head *unused)
{
	(void)unused;
	count_up(&nr_inside);
	synchronize_srcu(&waited_for);
	count_up(&nr_run);
}

static int nr_helpers(void)
{
	pid_t one;

	return threads_named("quiesce-helper", &one);
}

static void a_callback_that_waits_in_another_domain_stops_no_third(void **state)
{
	int idx;

	(void)state;
	begin(2);
	assert_int_equal(init_srcu_struct(&waited_for), 0);
	idx = srcu_read_lock(&waited_for);
	call_srcu(&domain[0], &head[0], wait_in_another);
	wait_until(flag_get(&nr_inside));
	call_srcu(&domain[1], &head[1], run);
	srcu_barrier(&domain[1]);
	assert_int_equal(flag_get(&nr_run), 1);
	srcu_read_unlock(&waited_for, idx);
	end(2);
	assert_int_equal(nr_run, 2);
	cleanup_srcu_struct(&waited_for);
}

/* Both domains are listed when the first callback begins. */
static void a_callback_that_was_queued_before_is_run_too(void **state)
{
	int idx[2];

	(void)state;
	begin(2);
	for (int i = 0; i < 2; i++) {
		idx[i] = srcu_read_lock(&domain[i]);
		call_srcu(&domain[i], &head[i], i ? run : block);
	}
	for (int i = 0; i < 2; i++)
		srcu_read_unlock(&domain[i], idx[i]);
	wait_until(flag_get(&nr_inside) && flag_get(&nr_run));
	flag_set(&go);
	end(2);
}

static void readers_of_a_lock_are_fast_again(void **state)
{
	struct percpu_rw_semaphore sem = PERCPU_RWSEM_INIT;

	(void)state;
	begin(1);
	percpu_down_write(&sem);
	call_srcu(&domain[0], &head[0], block);
	wait_until(flag_get(&nr_inside));
	percpu_up_write(&sem);
	wait_until(rcu_sync_is_idle(&sem.rss));
	assert_int_equal(flag_get(&nr_run), 0);
	flag_set(&go);
	end(1);
	percpu_free_rwsem(&sem);
}

static void run_hazptr(struct hazptr_head *unused)
{
	(void)unused;
	count_up(&nr_run);
}

static void block_hazptr(struct hazptr_head *unused)
{
	(void)unused;
	block(NULL);
}

static void hazard_pointers_and_domains_do_not_wait_for_each_other(void **state)
{
	static struct hazptr_head object[2];

	(void)state;
	begin(2);
	call_srcu(&domain[0], &head[0], block);
	wait_until(flag_get(&nr_inside) == 1);
	call_hazptr(&object[0], run_hazptr);
	hazptr_barrier();
	assert_int_equal(flag_get(&nr_run), 1);
	call_hazptr(&object[1], block_hazptr);
	wait_until(flag_get(&nr_inside) == 2);
	call_srcu(&domain[1], &head[1], run);
	srcu_barrier(&domain[1]);
	assert_int_equal(flag_get(&nr_run), 2);
	flag_set(&go);
	end(2);
	hazptr_barrier();
}

static void threads_are_bounded_and_end(void **state)
{
	(void)state;
	begin(NR);
	for (int i = 0; i < NR; i++)
		call_srcu(&domain[i], &head[i], block);
	wait_until(flag_get(&nr_inside) == MAX_THREADS);
	wait_until(nr_helpers() == MAX_THREADS);
	for (int i = 0; i < 500; i++)
		short_rest(); /* longer than a helper waits for a callback */
	assert_int_equal(flag_get(&nr_inside), MAX_THREADS);
	flag_set(&go);
	end(NR);
	assert_int_equal(nr_run, NR);
	wait_until(nr_helpers() == 1);
}

static void callbacks_that_do_not_block_make_no_threads(void **state)
{
	(void)state;
	begin(NR);
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < NR; i++)
			call_srcu(&domain[i], &head[i], run);
		for (int i = 0; i < NR; i++)
			srcu_barrier(&domain[i]);
		assert_true(nr_helpers() <= 2); /* one helper runs jobs, and one may watch it */
	}
	end(NR);
	wait_until(nr_helpers() == 1);
}

#if !QUIESCE_TSAN
static void goes_on(void)
{
	flag_set(&go);
	call_srcu(&domain[1], &head[1], run);
	srcu_barrier(&domain[1]);
	srcu_barrier(&domain[0]); /* the callback that was running counts as done */
	fprintf(stderr, "run %d\n", nr_run);
}

static void a_child_goes_on(void **state)
{
	struct outcome o;

	(void)state;
	begin(2);
	call_srcu(&domain[0], &head[0], block);
	wait_until(flag_get(&nr_inside));
	in_child(goes_on, &o);
	assert_true(WIFEXITED(o.status) && !WEXITSTATUS(o.status));
	assert_non_null(strstr(o.text, "run 1"));
	flag_set(&go);
	end(2);
}
#endif

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(a_callback_that_waits_in_another_domain_stops_no_third),
		TEST(a_callback_that_was_queued_before_is_run_too),
		TEST(readers_of_a_lock_are_fast_again),
		TEST(hazard_pointers_and_domains_do_not_wait_for_each_other),
		TEST(threads_are_bounded_and_end),
		TEST(callbacks_that_do_not_block_make_no_threads),
#if !QUIESCE_TSAN
		TEST(a_child_goes_on),
#endif
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
