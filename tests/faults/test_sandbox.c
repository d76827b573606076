/* SPDX-License-Identifier: MIT */
/* test_sandbox.c - calls of the kernel that are denied from the start, or later while the library is in use. */
#include "children.h"
#include "../unit/testing.h"
#include "filter.h"
#include "use.h"

/* ---- membarrier ---- */

static void use_in_a_child(void)
{
	must(use_everything());
	must(use_with_threads(2, 2));
}

/* The library was loaded without the filter, and may have queried the kernel then. */
static void choose_full_fences(void)
{
	struct outcome o;

	must(quiesce_set_fence(QUIESCE_FENCE_FULL) == 0);
	filter_now("membarrier=kill");
	use_in_a_child();
	in_child(use_in_a_child, &o);
	must(exited_with(o.status, 0) && !o.length);
	must(quiesce_shutdown(0) == 0);
}

/* Act as the first user in the process, whose fences are not yet chosen. */
static void chosen_full_fences_need_no_membarrier(void **state)
{
	(void)state;
	succeeds(choose_full_fences);
}

static void lose_membarrier(void)
{
	must(use_everything());
	filter_now("membarrier=EPERM");
	for (int i = 0; i < 3; i++)
		must(use_everything());
	must(use_with_threads(2, 5));
	must(quiesce_shutdown(0) == 0);
}

static void losing_membarrier_is_said_once(void **state)
{
	(void)state;
	loses_membarrier(lose_membarrier);
}

static void lose_turns_too(void)
{
	must(use_everything());
	must(quiesce_shutdown(0) == 0); /* the worker would print the message, too */
	filter_now("membarrier=EPERM");
	filter_now("sched_setaffinity=EPERM");
	synchronize_rcu();
}

static void losing_every_fence_is_fatal_and_said(void **state)
{
	struct outcome o;

	(void)state;
	if (quiesce_fence() == QUIESCE_FENCE_FULL) { /* full fences do not need membarriers */
		succeeds(lose_turns_too);
		return;
	}
	in_child(lose_turns_too, &o);
	assert_true(WIFSIGNALED(o.status));
	assert_int_equal(WTERMSIG(o.status), SIGABRT);
	assert_int_equal(count_lines(o.text), 1);
	assert_non_null(strstr(o.text, "quiesce: membarrier worked at start-up and now fails"));
	assert_non_null(strstr(o.text, "QUIESCE_FENCE=full"));
}

static void use_nothing(void)
{
}

/* ---- retiring where every fence is refused ---- */

struct retired {
	struct rcu_head rcu;
	char bytes[48];
};

static int callback_begun;

static void stays(struct rcu_head *head)
{
	(void)head;
	flag_set(&callback_begun);
	for (;;)
		pause();
}

/* The worker is in a callback, so an owner of many objects polls grace periods itself. */
static void retire_without_fences(void)
{
	static struct rcu_head head;
	uint64_t before;

	call_rcu(&head, stays);
	wait_until(flag_get(&callback_begun));
	filter_now("membarrier=EPERM");
	filter_now("sched_setaffinity=EPERM");
	before = stats_now().membarriers;
	for (int i = 0; i < 50000; i++) {
		struct retired *object = malloc(sizeof(*object));

		must(object != NULL);
		kfree_rcu(object, rcu);
	}
	must(stats_now().membarriers - before <= 1);
	_exit(0);
}

static void retiring_needs_no_fence(void **state)
{
	(void)state;
	succeeds(retire_without_fences);
}

/* ---- a fork where every fence is refused, or would be fatal ---- */

static void fork_without_fences(void)
{
	struct outcome o;

	rcu_read_lock();
	rcu_read_unlock();
	filter_now("membarrier=kill");
	in_child(use_nothing, &o);
	must(exited_with(o.status, 0));
	_exit(0);
}

struct protected {
	struct hazptr_head hazptr;
};

static void fork_of_a_retirer(void)
{
	struct outcome o;

	for (int i = 0; i < 100; i++) {
		struct protected *object = malloc(sizeof(*object));

		must(object != NULL);
		kfree_hazptr(object, hazptr);
	}
	filter_now("membarrier=EPERM");
	filter_now("sched_setaffinity=EPERM");
	in_child(use_nothing, &o);
	must(exited_with(o.status, 0));
	_exit(0);
}

static void a_fork_needs_no_fence(void **state)
{
	(void)state;
	succeeds(fork_without_fences);
	succeeds(fork_of_a_retirer);
}

/* ---- no memory for the registry: sections are counted together ---- */

static sem_t go[2], inside, leave;
static int updater_done, updater_calls, seen_at_unlock;
static uint32_t updater_tid;

static void *late_reader(void *unused)
{
	(void)unused;
	wait_for(&go[0]);
	rcu_read_lock();
	rcu_read_lock();
	rcu_read_unlock();
	sem_post(&inside);
	wait_for(&leave);
	seen_at_unlock = flag_get(&updater_done);
	rcu_read_unlock();
	return NULL;
}

static void *late_updater(void *unused)
{
	(void)unused;
	wait_for(&go[1]);
	quiesce_store_relaxed(&updater_tid, (uint32_t)my_tid()); /* Relaxed: the thread publishes its own id. */
	flag_set(&updater_calls);
	synchronize_rcu();
	flag_set(&updater_done);
	return NULL;
}

static void prepare_sems(void)
{
	sem_init(&go[0], 0, 0);
	sem_init(&go[1], 0, 0);
	sem_init(&inside, 0, 0);
	sem_init(&leave, 0, 0);
}

static void read_without_registry(void)
{
	pthread_t reader, updater;
	uint32_t before = stats_now().readers;
	struct rcu_gp_seq seq;

	prepare_sems();
	thread_must(pthread_create(&reader, NULL, late_reader, NULL));
	thread_must(pthread_create(&updater, NULL, late_updater, NULL));
	filter_now("mprotect=ENOMEM");
	sem_post(&go[0]);
	wait_for(&inside);
	must(stats_now().readers == before);
	seq = get_state_synchronize_rcu();
	must(!poll_state_synchronize_rcu(seq));
	sem_post(&go[1]);
	wait_until(flag_get(&updater_calls));
	wait_until(thread_state((pid_t)quiesce_load_relaxed(&updater_tid)) == 'S'); /* Relaxed: set before. */
	must(!poll_state_synchronize_rcu(seq));
	sem_post(&leave);
	pthread_join(reader, NULL);
	pthread_join(updater, NULL);
	must(!seen_at_unlock);
	must(poll_state_synchronize_rcu(seq));
	must(use_everything());
	must(stats_now().readers == before);
}

/* Act as the first user in the process, so that no committed part of the registry is left. */
static void sections_without_registry_are_waited_for(void **state)
{
	(void)state;
	assert_int_equal(stats_now().readers, 0);
	succeeds(read_without_registry);
}

/* One of two readers is always inside: the updater must wait for some of their sections, not for all. */
static int newest_section, relay_over;

static void *relay(void *first)
{
	for (int k = *(int *)first; !flag_get(&relay_over); k += 2) {
		wait_until(flag_get(&newest_section) == k - 1);
		rcu_read_lock();
		quiesce_store_relaxed(&newest_section, k); /* Relaxed: a baton. */
		wait_until(flag_get(&newest_section) == k + 1 || flag_get(&relay_over));
		rcu_read_unlock();
		if (flag_get(&relay_over))
			break;
	}
	return NULL;
}

static void relay_without_registry(void)
{
	static int first[2] = { 1, 2 };
	uint32_t before = stats_now().readers;
	pthread_t thread[2];

	newest_section = -1; /* no reader begins yet */
	for (int i = 0; i < 2; i++)
		thread_must(pthread_create(&thread[i], NULL, relay, &first[i]));
	filter_now("mprotect=ENOMEM");
	quiesce_store_relaxed(&newest_section, 0);
	wait_until(flag_get(&newest_section) > 2);
	must(stats_now().readers == before);
	for (int i = 0; i < 10; i++)
		synchronize_rcu();
	flag_set(&relay_over);
	threads_end(thread, 2);
}

static void overlapping_sections_without_registry_do_not_starve(void **state)
{
	(void)state;
	assert_int_equal(stats_now().readers, 0);
	succeeds(relay_without_registry);
}

/* ---- no memory for queues, and none for threads ---- */

static void queue_without_pages(void)
{
	filter_now("mmap=ENOMEM");
	for (int i = 0; i < 100; i++)
		must(use_everything());
	rcu_read_lock();
	for (int i = 0; i < 100; i++) {
		struct use_object *o = use_new();

		must(o != NULL);
		call_rcu(&o->rcu, use_run);
	}
	rcu_read_unlock();
	must(stats_now().garbage_objects >= 100);
	rcu_barrier();
	must(stats_now().garbage_objects == 0);
	must(!stats_now().worker_running);
	must(quiesce_shutdown(0) == 0);
}

static void callbacks_without_queues_run(void **state)
{
	(void)state;
	succeeds(queue_without_pages);
}

/* ---- threads come back ---- */

static void *read_main(void *ok)
{
	*(int *)ok = use_everything();
	return NULL;
}

static void lose_threads(void)
{
	int ok = 0;
	pthread_t thread;

	thread_must(pthread_create(&thread, NULL, read_main, &ok));
	pthread_join(thread, NULL);
	must(ok && stats_now().worker_running);
	/* In its last steps the worker starts another if there is work, also for the callbacks below, without the filter. */
	do
		must(quiesce_shutdown(0) == 0);
	while (thread_named("quiesce"));
	filter_now("clone3=ENOSYS");
	filter_now("clone&0x10000=EAGAIN");
	must(use_everything());
	must(!stats_now().worker_running);
	must(quiesce_shutdown(0) == 0);
}

static void the_worker_cannot_be_started_again(void **state)
{
	(void)state;
	succeeds(lose_threads);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(chosen_full_fences_need_no_membarrier),
		TEST(sections_without_registry_are_waited_for),
		TEST(overlapping_sections_without_registry_do_not_starve),
		TEST(losing_membarrier_is_said_once),
		TEST(losing_every_fence_is_fatal_and_said),
		TEST(retiring_needs_no_fence),
		TEST(a_fork_needs_no_fence),
		TEST(callbacks_without_queues_run),
		TEST(the_worker_cannot_be_started_again),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
