/* SPDX-License-Identifier: MIT */
/* test_callback_ends.c - callbacks of liburcu's calls that end their thread, and threads that are cancelled in its waits. */
#define _GNU_SOURCE
#include <urcu/urcu-memb.h>
/* The last of these headers defines the short names. */
#include <urcu-qsbr.h>

#include "../unit/watched.h"

#include <quiesce/control.h>

static uint32_t refuse; /* further threads */
static uint32_t nr_called, nr_reported;

int __real_pthread_create(pthread_t *ret, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);
int __wrap_pthread_create(pthread_t *ret, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);
int __wrap_pthread_create(pthread_t *ret, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
	return flag_get(&refuse) ? EAGAIN : __real_pthread_create(ret, attr, fn, arg);
}

static void hook(enum quiesce_misuse kind, const char *text)
{
	if (kind == QUIESCE_MISUSE_EXIT_IN_CALLBACK && (strstr(text, "of call_rcu()") || strstr(text, "of defer_rcu()")))
		count_up(&nr_reported);
}

struct object {
	struct rcu_head head;
	int ends; /* the callback ends its thread */
};

enum { NR = 60 };
static struct object objects[NR];

static void act(const struct object *o)
{
	count_up(&nr_called);
	if (o->ends)
		pthread_exit(NULL);
}

static void called(struct rcu_head *head)
{
	act((struct object *)(void *)head);
}

static void deferred(void *object)
{
	act(object);
}

static void begin(int every)
{
	quiesce_set_misuse_hook(hook);
	quiesce_store_relaxed(&nr_called, 0u);   /* Relaxed: a count of the test. */
	quiesce_store_relaxed(&nr_reported, 0u); /* Relaxed: a count of the test. */
	for (int i = 0; i < NR; i++)
		objects[i].ends = every && i % every == 0;
}

static void all_were_called(int every)
{
	assert_int_equal(flag_get(&nr_called), NR);
	assert_int_equal(flag_get(&nr_reported), (NR + every - 1) / every);
}

/* ---- barriers in callbacks ---- */

static void waits_for_memb(struct rcu_head *head)
{
	(void)head;
	urcu_memb_barrier();
	count_up(&nr_called);
}

static void a_callback_waits_for_those_of_another_flavour(void **state)
{
	static struct rcu_head head;

	(void)state;
	begin(0);
	urcu_memb_call_rcu(&objects[0].head, called);
	call_rcu(&head, waits_for_memb);
	rcu_barrier();
	assert_int_equal(flag_get(&nr_called), 2);
}

/* ---- queues with threads of their own ---- */

static void another_thread_goes_on(void **state)
{
	(void)state;
	begin(4);
	for (int i = 0; i < NR; i++)
		call_rcu(&objects[i].head, called);
	rcu_barrier();
	all_were_called(4);
	begin(3);
	urcu_memb_get_default_call_rcu_data();
	for (int i = 0; i < NR; i++)
		urcu_memb_call_rcu(&objects[i].head, called);
	urcu_memb_barrier();
	all_were_called(3);
}

static void a_queue_is_freed_beside_it(void **state)
{
	(void)state;
	for (int round = 0; round < 20; round++) {
		struct call_rcu_data *c = create_call_rcu_data(round & 1 ? URCU_CALL_RCU_RT : 0, -1);

		assert_non_null(c);
		begin(5);
		set_thread_call_rcu_data(c);
		for (int i = 0; i < NR; i++)
			call_rcu(&objects[i].head, called);
		if (round & 2)
			short_rest();
		set_thread_call_rcu_data(NULL);
		call_rcu_data_free(c);
		rcu_barrier();
		all_were_called(5);
	}
}

static void forks_wait_for_no_callback(void **state)
{
	(void)state;
	for (int round = 0; round < 10; round++) {
		begin(2);
		for (int i = 0; i < NR; i++)
			call_rcu(&objects[i].head, called);
		call_rcu_before_fork();
		call_rcu_after_fork_parent();
		rcu_barrier();
		all_were_called(2);
	}
}

/* A program may get the id of a queue's thread, but a cancellation has no effect there. */
static void a_queues_thread_is_not_cancelled(void **state)
{
	struct call_rcu_data *c = create_call_rcu_data(0, -1);
	pthread_t thread;

	(void)state;
	assert_non_null(c);
	begin(0);
	thread = get_call_rcu_thread(c);
	pthread_cancel(thread);
	set_thread_call_rcu_data(c);
	for (int i = 0; i < NR; i++)
		call_rcu(&objects[i].head, called);
	set_thread_call_rcu_data(NULL);
	rcu_barrier();
	assert_int_equal(flag_get(&nr_called), NR);
	call_rcu_data_free(c);
	rcu_thread_offline();
	assert_int_equal(pthread_join(thread, NULL), 0);
	rcu_thread_online();
}

static pthread_t called_by;

static void allows_cancellation(struct rcu_head *head)
{
	(void)head;
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	called_by = pthread_self();
	count_up(&nr_called);
}

/* The queue's thread is not cancelled even after a callback that has allowed cancellation. */
static void a_queues_thread_is_not_cancelled_between_callbacks(void **state)
{
	struct call_rcu_data *c = create_call_rcu_data(0, -1);
	pthread_t thread = get_call_rcu_thread(c);

	(void)state;
	begin(0);
	set_thread_call_rcu_data(c);
	call_rcu(&objects[0].head, allows_cancellation);
	rcu_barrier();
	for (int i = 0; i < 20; i++)
		short_rest(); /* until it waits for work */
	pthread_cancel(thread);
	for (int i = 0; i < 20; i++)
		short_rest();
	call_rcu(&objects[1].head, allows_cancellation);
	rcu_barrier();
	set_thread_call_rcu_data(NULL);
	assert_int_equal(flag_get(&nr_called), 2);
	assert_true(pthread_equal(called_by, thread));
	call_rcu_data_free(c);
	rcu_thread_offline();
	assert_int_equal(pthread_join(thread, NULL), 0);
	rcu_thread_online();
}

/* ---- a waiter runs callbacks, and may end ---- */

static void *wait_once(void *returned)
{
	urcu_memb_register_thread();
	urcu_memb_barrier();
	*(int *)returned = 1;
	urcu_memb_unregister_thread();
	return NULL;
}

static void without_threads(void **state)
{
	struct call_rcu_data *c = urcu_memb_create_call_rcu_data(0, -1);
	int returned = 0, nr = 0;

	(void)state;
	assert_non_null(c);
	begin(20);
	quiesce_store_relaxed(&refuse, 1u); /* Relaxed: a flag of the test. */
	urcu_memb_set_thread_call_rcu_data(c);
	for (int i = 0; i < NR; i++)
		urcu_memb_call_rcu(&objects[i].head, called);
	while (!returned && nr++ < 10) {
		pthread_t thread;

		thread_must(__real_pthread_create(&thread, NULL, wait_once, &returned));
		pthread_join(thread, NULL);
	}
	assert_true(returned);
	all_were_called(20);
	quiesce_store_relaxed(&refuse, 0u); /* Relaxed: a flag of the test. */
	urcu_memb_set_thread_call_rcu_data(NULL);
	urcu_memb_call_rcu_data_free(c);
}

/* ---- rings ---- */

enum { RING = 4096 };
static struct object deferred_object[2];

/* The first function ends the thread in the call that finds the ring full; the function that this call was to put in is in the ring. */
static void *fill_and_end(void *unused)
{
	urcu_memb_register_thread();
	if (urcu_memb_defer_register_thread())
		abort();
	for (int i = 0; i < 2 * RING; i++)
		urcu_memb_defer_rcu(deferred, &deferred_object[i == 0]);
	return unused;
}

static void rings_are_called_by_others(void **state)
{
	pthread_t thread;

	(void)state;
	begin(1);
	deferred_object[1].ends = 1;
	thread_must(pthread_create(&thread, NULL, fill_and_end, NULL));
	pthread_join(thread, NULL);
	wait_until(flag_get(&nr_reported) == 1);
	/* The functions that fitted have run, and the one without room; or more, if the library's thread was the one that ended. */
	wait_until(flag_get(&nr_called) == RING + 1 || flag_get(&nr_called) == 2 * RING);
	assert_int_equal(urcu_memb_defer_register_thread(), 0);
	urcu_memb_defer_rcu(deferred, &deferred_object[0]);
	wait_until(flag_get(&nr_called) == RING + 2 || flag_get(&nr_called) == 2 * RING + 1); /* the library's thread calls the functions */
	urcu_memb_defer_unregister_thread();
}

/* ---- cancellation in a wait ---- */

static sem_t in_callback, go_on;

static void blocks(struct rcu_head *head)
{
	(void)head;
	sem_post(&in_callback);
	wait_for(&go_on);
}

static void *waits(void *returned)
{
	rcu_register_thread();
	rcu_barrier();
	*(int *)returned = 1;
	rcu_unregister_thread();
	pthread_testcancel();
	return NULL;
}

static void a_barrier_is_not_cancelled(void **state)
{
	static struct rcu_head head;
	int returned = 0;
	pthread_t thread;

	(void)state;
	sem_init(&in_callback, 0, 0);
	sem_init(&go_on, 0, 0);
	call_rcu(&head, blocks);
	rcu_thread_offline();
	wait_for(&in_callback);
	thread_must(pthread_create(&thread, NULL, waits, &returned));
	short_rest();
	pthread_cancel(thread);
	short_rest();
	sem_post(&go_on);
	pthread_join(thread, NULL);
	rcu_thread_online();
	assert_true(returned);
	rcu_barrier();
}

static struct call_rcu_data *made_meanwhile;

/* The thread of a new queue has not answered yet when the fork is over. */
static void *forks_and_is_cancelled(void *returned)
{
	call_rcu_before_fork();
	made_meanwhile = create_call_rcu_data(0, -1);
	pthread_cancel(pthread_self());
	call_rcu_after_fork_parent();
	*(int *)returned = 1;
	pthread_testcancel();
	return NULL;
}

static void the_end_of_a_fork_is_not_cancelled(void **state)
{
	int returned = 0;
	pthread_t thread;

	(void)state;
	thread_must(pthread_create(&thread, NULL, forks_and_is_cancelled, &returned));
	pthread_join(thread, NULL);
	assert_true(returned);
	call_rcu_before_fork();
	call_rcu_after_fork_parent();
	call_rcu_data_free(made_meanwhile);
}

static int prepare(void **state)
{
	(void)state;
	rcu_register_thread();
	urcu_memb_register_thread();
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(a_callback_waits_for_those_of_another_flavour),
		TEST(another_thread_goes_on),
		TEST(a_queue_is_freed_beside_it),
		TEST(forks_wait_for_no_callback),
		TEST(a_queues_thread_is_not_cancelled),
		TEST(a_queues_thread_is_not_cancelled_between_callbacks),
		TEST(without_threads),
		TEST(rings_are_called_by_others),
		TEST(a_barrier_is_not_cancelled),
		TEST(the_end_of_a_fork_is_not_cancelled),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, prepare, NULL);
}
