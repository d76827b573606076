/* SPDX-License-Identifier: MIT */
/* test_many.c - calls that take several objects: none, many, the same one twice, NULL, one that is in no state for it. */
#define _GNU_SOURCE
#include "misuses.h"

#include <quiesce/percpu_ref.h>
#include <quiesce/percpu_rwsem.h>

#include <sys/mman.h>

#ifdef QUIESCE_DEBUG
enum { DEBUG_BUILD = 1 };
#else
enum { DEBUG_BUILD = 0 };
#endif

/* Count what is reported, and go on. */
static int nr_of_kind[QUIESCE_MISUSE_TWICE + 1];

static void count_kinds(enum quiesce_misuse kind, const char *text)
{
	(void)text;
	nr_of_kind[kind]++;
}

static void begin_counting(void)
{
	memset(nr_of_kind, 0, sizeof nr_of_kind);
	quiesce_set_misuse_hook(count_kinds);
}

static int end_counting(enum quiesce_misuse kind)
{
	int all = 0;

	quiesce_set_misuse_hook(NULL);
	for (size_t i = 0; i < sizeof nr_of_kind / sizeof nr_of_kind[0]; i++)
		all += nr_of_kind[i];
	assert_int_equal(all, nr_of_kind[kind]);
	return all;
}

/* ---- percpu_ref_kill_many() ---- */

static int released;

static void on_release(struct percpu_ref *ref)
{
	(void)ref;
	count_up(&released);
}

static void many_are_killed_for_one_membarrier(void **state)
{
	enum { MANY = 1000 };
	static struct percpu_ref refs[MANY], *list[MANY];
	struct quiesce_stats before;

	(void)state;
	released = 0;
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(percpu_ref_init(&refs[i], on_release, i % 3 ? 0 : PERCPU_REF_INIT_ATOMIC), 0);
		list[i] = &refs[i];
		if (i % 2)
			percpu_ref_get(&refs[i]);
	}
	before = stats_now();
	percpu_ref_kill_many(list, MANY);
	assert_in_range(stats_now().membarriers - before.membarriers, 0, 1);
	assert_int_equal(released, MANY / 2);
	for (int i = 0; i < MANY; i++) {
		assert_true(percpu_ref_is_dying(&refs[i]));
		assert_false(percpu_ref_tryget_live(&refs[i]));
		assert_int_equal(percpu_ref_is_zero(&refs[i]), i % 2 == 0);
		if (i % 2)
			percpu_ref_put(&refs[i]);
		percpu_ref_exit(&refs[i]);
	}
	assert_int_equal(released, MANY);
	percpu_ref_kill_many(NULL, 0);
}

static void unmap(struct percpu_ref *ref)
{
	percpu_ref_exit(ref);
	assert_int_equal(munmap(ref, (size_t)sysconf(_SC_PAGESIZE)), 0);
	count_up(&released);
}

static struct percpu_ref *mapped(void)
{
	struct percpu_ref *ref =
		mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(ref, MAP_FAILED);
	assert_int_equal(percpu_ref_init(ref, unmap, 0), 0);
	return ref;
}

/* The release function gives the memory back in which the count of another entry would be. */
static void a_count_that_stands_there_twice_is_killed_once(void **state)
{
	struct percpu_ref *ref = mapped(), *other = mapped(), *list[] = { ref, other, ref, ref };

	(void)state;
	released = 0;
	begin_counting();
	percpu_ref_kill_many(list, 4);
	assert_int_equal(end_counting(QUIESCE_MISUSE_COUNT), 2);
	assert_int_equal(released, 2);
}

static struct percpu_ref together[3];

/* None is released while another one is live. */
static void release_together(struct percpu_ref *ref)
{
	for (size_t i = 0; i < 3; i++)
		assert_false(percpu_ref_tryget_live(&together[i]));
	assert_true(percpu_ref_is_dying(ref));
	count_up(&released);
}

static void begin_together(void)
{
	released = 0;
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(percpu_ref_init(&together[i], release_together, PERCPU_REF_ALLOW_REINIT), 0);
}

static void end_together(void)
{
	assert_int_equal(released, 3);
	for (size_t i = 0; i < 3; i++)
		percpu_ref_exit(&together[i]);
}

static void what_cannot_be_killed_stops_no_other(void **state)
{
	struct percpu_ref dead, never = { .state = 0 }, gone;
	struct percpu_ref *list[] = { &dead, &together[0], NULL, &together[1], &never, &gone, &together[2] };

	(void)state;
	begin_together();
	assert_int_equal(percpu_ref_init(&dead, on_release, PERCPU_REF_INIT_DEAD), 0);
	assert_int_equal(percpu_ref_init(&gone, on_release, PERCPU_REF_INIT_DEAD), 0);
	percpu_ref_exit(&gone);
	begin_counting();
	percpu_ref_kill_many(list, sizeof list / sizeof list[0]);
	quiesce_set_misuse_hook(NULL);
	assert_int_equal(nr_of_kind[QUIESCE_MISUSE_COUNT], 3);
	assert_int_equal(nr_of_kind[QUIESCE_MISUSE_NULL], 1);
	end_together();
	percpu_ref_exit(&dead);
}

static int confirming;
static sem_t may_go_on;

static void confirm_late(struct percpu_ref *ref)
{
	(void)ref;
	flag_set(&confirming);
	wait_for(&may_go_on);
}

static void *switch_second(void *unused)
{
	percpu_ref_switch_to_atomic(&together[1], confirm_late);
	return unused;
}

static void *kill_all_three(void *tid)
{
	struct percpu_ref *list[] = { &together[0], &together[1], &together[2] };

	quiesce_store_relaxed((pid_t *)tid, my_tid());
	percpu_ref_kill_many(list, 3);
	return NULL;
}

static void one_that_changes_is_waited_for_before_any_is_released(void **state)
{
	pthread_t switcher, killer;
	pid_t tid = 0;

	(void)state;
	begin_together();
	confirming = 0;
	sem_init(&may_go_on, 0, 0);
	percpu_ref_get(&together[1]);
	thread_must(pthread_create(&switcher, NULL, switch_second, NULL));
	wait_until(flag_get(&confirming));
	thread_must(pthread_create(&killer, NULL, kill_all_three, &tid));
	wait_until(percpu_ref_is_dying(&together[0]) && percpu_ref_is_dying(&together[2]));
	wait_until(thread_state(quiesce_load_relaxed(&tid)) == 'S');
	assert_int_equal(flag_get(&released), 0);
	sem_post(&may_go_on);
	pthread_join(killer, NULL);
	pthread_join(switcher, NULL);
	assert_int_equal(released, 2);
	percpu_ref_put(&together[1]);
	end_together();
}

static void confirm_that_kills_many(struct percpu_ref *ref)
{
	struct percpu_ref *list[] = { &together[0], ref, &together[2] };

	percpu_ref_kill_many(list, 3);
	assert_false(percpu_ref_is_dying(ref));
	assert_true(percpu_ref_is_dying(&together[0]) && percpu_ref_is_dying(&together[2]));
}

static void many_in_a_confirm_function_are_killed_but_its_own(void **state)
{
	(void)state;
	begin_together();
	for (size_t i = 0; i < 3; i++)
		together[i].release = on_release;
	begin_counting();
	percpu_ref_switch_to_atomic(&together[1], confirm_that_kills_many);
	assert_int_equal(end_counting(QUIESCE_MISUSE_WAIT_IN_CALLBACK), 1);
	assert_int_equal(released, 2);
	percpu_ref_kill(&together[1]);
	end_together();
}

static void kill_null(void)
{
	percpu_ref_kill(NULL);
}

static void kill_twice(void)
{
	struct percpu_ref *list[] = { &together[0], &together[0] };

	begin_together();
	percpu_ref_kill_many(list, 2);
}

static void by_default_it_is_fatal(void **state)
{
	(void)state;
	if (QUIESCE_TSAN)
		return; /* it does not survive a fork of a process that had threads */
	fatal(kill_null, "percpu_ref_kill() of NULL");
	fatal(kill_twice, "which has been killed");
}

/* ---- percpu_down_write_many() ---- */

static struct percpu_rw_semaphore locks[3] = { PERCPU_RWSEM_INIT };

static void a_lock_that_stands_there_twice_is_acquired_once(void **state)
{
	struct percpu_rw_semaphore *list[] = { &locks[0], &locks[1], &locks[0], NULL, &locks[2], &locks[2], &locks[1] };

	(void)state;
	for (int round = 0; round < 2; round++) {
		begin_counting();
		percpu_down_write_many(list, sizeof list / sizeof list[0]);
		quiesce_set_misuse_hook(NULL);
		assert_int_equal(nr_of_kind[QUIESCE_MISUSE_TWICE], 3);
		assert_int_equal(nr_of_kind[QUIESCE_MISUSE_NULL], 1);
		for (size_t i = 0; i < 3; i++) {
			assert_true(percpu_is_write_locked_by_me(&locks[i]));
			assert_int_equal(locks[i].rss.gp_count, 1);
			assert_false(percpu_down_read_trylock(&locks[i]));
			percpu_up_write(&locks[i]);
			assert_false(percpu_is_write_locked(&locks[i]));
			assert_true(percpu_down_read_trylock(&locks[i]));
			percpu_up_read(&locks[i]);
			begin_counting();
			percpu_up_write(&locks[i]);
			assert_int_equal(end_counting(QUIESCE_MISUSE_UNBALANCED_UNLOCK), 1);
		}
	}
	for (size_t i = 0; i < 3; i++)
		percpu_free_rwsem(&locks[i]);
}

static void *release_first(void *unused)
{
	wait_for(&may_go_on);
	percpu_up_write(&locks[0]);
	return unused;
}

/* Which is no misuse: it was not acquired by this call. */
static void a_lock_that_another_thread_will_release_is_waited_for(void **state)
{
	struct percpu_rw_semaphore *list[] = { &locks[1], &locks[0] };
	pthread_t thread;

	(void)state;
	if (DEBUG_BUILD) { /* to which this thread holds it */
		print_message("# the debug build reports it\n");
		return;
	}
	sem_init(&may_go_on, 0, 0);
	percpu_down_write(&locks[0]);
	thread_must(pthread_create(&thread, NULL, release_first, NULL));
	begin_counting();
	sem_post(&may_go_on);
	percpu_down_write_many(list, 2);
	assert_int_equal(end_counting(QUIESCE_MISUSE_TWICE), 0);
	pthread_join(thread, NULL);
	percpu_up_write(&locks[0]);
	percpu_up_write(&locks[1]);
	percpu_free_rwsem(&locks[0]);
	percpu_free_rwsem(&locks[1]);
}

static struct percpu_rw_semaphore zero;
static int writing, stop, beside, nr_sections;

static void *read_zero(void *unused)
{
	while (!flag_get(&stop)) {
		percpu_down_read(&zero);
		if (flag_get(&writing))
			flag_set(&beside);
		count_up(&nr_sections);
		percpu_up_read(&zero);
	}
	return unused;
}

/* A member of what calloc() gave, say. */
static void a_lock_that_is_all_zero_excludes(void **state)
{
	struct percpu_rw_semaphore *list[] = { &zero, &zero };
	pthread_t thread;

	(void)state;
	stop = 0;
	thread_must(pthread_create(&thread, NULL, read_zero, NULL));
	wait_until(flag_get(&nr_sections) > 1000);
	for (int i = 0; i < 20; i++) {
		begin_counting();
		percpu_down_write_many(list, 1 + i % 2);
		assert_int_equal(end_counting(QUIESCE_MISUSE_TWICE), i % 2);
		flag_set(&writing);
		for (int k = 0; k < 20; k++)
			short_rest();
		quiesce_store_relaxed(&writing, 0);
		percpu_up_write(&zero);
	}
	flag_set(&stop);
	pthread_join(thread, NULL);
	assert_false(beside);
	percpu_free_rwsem(&zero);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(many_are_killed_for_one_membarrier),
		TEST(a_count_that_stands_there_twice_is_killed_once),
		TEST(what_cannot_be_killed_stops_no_other),
		TEST(one_that_changes_is_waited_for_before_any_is_released),
		TEST(many_in_a_confirm_function_are_killed_but_its_own),
		TEST(by_default_it_is_fatal),
		TEST(a_lock_that_stands_there_twice_is_acquired_once),
		TEST(a_lock_that_another_thread_will_release_is_waited_for),
		TEST(a_lock_that_is_all_zero_excludes),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
