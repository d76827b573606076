/* SPDX-License-Identifier: MIT */
/* test_flavor.c - liburcu's promises for each flavour; built once for each, under the short names. */
#define _GNU_SOURCE
#if defined(TEST_QSBR)
#include <urcu-qsbr.h>
#elif defined(TEST_BP)
#include <urcu-bp.h>
#else
#include <urcu.h>
#endif

#include "../sanitized.h"
#include "../unit/watched.h"

#include <sched.h>

/* Built with headers of liburcu's own, for our objects of its names, the test uses no more than these headers have. */
#if __has_include(<urcu/urcu-poll.h>)
#define POLLING 1
#else
#define POLLING 0
#endif

struct object {
	struct rcu_head head;
	pthread_t called_by;
	uint32_t *nr_called;
};

static void called(struct rcu_head *head)
{
	struct object *o = (struct object *)(void *)head;

	o->called_by = pthread_self();
	count_up(o->nr_called);
}

static void call(struct object *o, uint32_t *nr_called)
{
	o->nr_called = nr_called;
	call_rcu(&o->head, called);
}

/* ---- readers ---- */

static sem_t inside, leave;
static uint32_t left, entered;

static void *reader(void *unused)
{
	(void)unused;
	rcu_register_thread();
	rcu_read_lock();
	rcu_read_lock();
	rcu_read_unlock();
	assert_true(rcu_read_ongoing());
	sem_post(&inside);
	wait_for(&leave);
	flag_set(&left);
	rcu_read_unlock();
	rcu_quiescent_state();
	rcu_unregister_thread();
	return NULL;
}

static void *waiter(void *unused)
{
	(void)unused;
	flag_set(&entered);
	synchronize_rcu();
	return (void *)(uintptr_t)flag_get(&left);
}

static void a_reader_is_waited_for(void **state)
{
	pthread_t read, wait;
	void *saw;

	(void)state;
	sem_init(&inside, 0, 0);
	sem_init(&leave, 0, 0);
	left = entered = 0;
	pthread_create(&read, NULL, reader, NULL);
	wait_for(&inside);
	pthread_create(&wait, NULL, waiter, NULL);
	wait_until(flag_get(&entered));
	for (int i = 0; i < 100; i++)
		short_rest();
	sem_post(&leave);
	rcu_thread_offline();
	pthread_join(wait, &saw);
	rcu_thread_online();
	assert_non_null(saw);
	pthread_join(read, NULL);
	synchronize_rcu();
}

#if POLLING
static void a_cookie_is_done_when_the_reader_has_left(void **state)
{
	struct urcu_gp_poll_state cookie;
	pthread_t read;

	(void)state;
	sem_init(&inside, 0, 0);
	sem_init(&leave, 0, 0);
	pthread_create(&read, NULL, reader, NULL);
	wait_for(&inside);
	cookie = start_poll_synchronize_rcu();
	for (int i = 0; i < 10; i++) {
		rcu_quiescent_state();
		assert_false(poll_state_synchronize_rcu(cookie));
		short_rest();
	}
	sem_post(&leave);
	while (!poll_state_synchronize_rcu(cookie)) {
		rcu_quiescent_state();
		short_rest();
	}
	pthread_join(read, NULL);
}
#endif

static void a_pointer_is_published_and_replaced(void **state)
{
	static int one = 1, two = 2, *shared;

	(void)state;
	rcu_assign_pointer(shared, &one);
	rcu_read_lock();
	assert_ptr_equal(rcu_dereference(shared), &one);
	rcu_read_unlock();
	assert_ptr_equal(rcu_xchg_pointer(&shared, &two), &one);
	assert_ptr_equal(rcu_cmpxchg_pointer(&shared, &one, NULL), &two);
	assert_ptr_equal(rcu_cmpxchg_pointer(&shared, &two, &one), &two);
	assert_ptr_equal(rcu_dereference(shared), &one);
	rcu_set_pointer(&shared, NULL);
	assert_null(rcu_dereference(shared));
}

static void the_table_of_functions_is_the_flavour(void **state)
{
	const struct rcu_flavor_struct *f = &rcu_flavor;

	(void)state;
	f->read_lock();
	assert_true(f->read_ongoing());
	assert_true(rcu_read_ongoing());
	f->read_unlock();
	f->thread_offline();
	assert_false(f->read_ongoing());
	f->thread_online();
	f->read_quiescent_state();
	f->update_synchronize_rcu();
	f->barrier();
#if POLLING && !defined(TEST_ABI)
	struct urcu_gp_poll_state cookie = f->update_start_poll_synchronize_rcu();
	while (!f->update_poll_state_synchronize_rcu(cookie))
		f->read_quiescent_state();
#endif
}

/* ---- callbacks ---- */

static void the_barrier_waits_for_callbacks(void **state)
{
	static struct object o[1000];
	uint32_t nr = 0;

	(void)state;
	for (int i = 0; i < 1000; i++)
		call(&o[i], &nr);
	rcu_barrier();
	assert_int_equal(flag_get(&nr), 1000);
}

/* Join a thread whose id was requested and whose queue has been freed. */
static void join(pthread_t thread)
{
	rcu_thread_offline();
	assert_int_equal(pthread_join(thread, NULL), 0);
	rcu_thread_online();
}

static void a_queue_has_a_thread_of_its_own(void **state)
{
	pthread_t thread;
	struct call_rcu_data *c = create_call_rcu_data(0, -1);
	struct object o;
	uint32_t nr = 0;

	(void)state;
	assert_non_null(c);
	assert_null(get_thread_call_rcu_data());
	set_thread_call_rcu_data(c);
	assert_ptr_equal(get_thread_call_rcu_data(), c);
	assert_ptr_equal(get_call_rcu_data(), c);
	call(&o, &nr);
	rcu_barrier();
	assert_int_equal(flag_get(&nr), 1);
	thread = get_call_rcu_thread(c);
	assert_true(pthread_equal(o.called_by, thread));
	set_thread_call_rcu_data(NULL);
	call_rcu_data_free(c);
	join(thread);
}

static void queued_callbacks_are_called_before_the_end(void **state)
{
	static struct object o[100];
	struct call_rcu_data *c = create_call_rcu_data(URCU_CALL_RCU_RT, 0);
	uint32_t nr = 0;

	(void)state;
	assert_non_null(c);
	set_thread_call_rcu_data(c);
	for (int i = 0; i < 100; i++)
		call(&o[i], &nr);
	set_thread_call_rcu_data(NULL);
	call_rcu_data_free(c);
	rcu_barrier();
	assert_int_equal(flag_get(&nr), 100);
}

static void queues_without_wake_ups_are_polled(void **state)
{
	struct call_rcu_data *c = create_call_rcu_data(URCU_CALL_RCU_RT, -1);
	static struct object o; /* static, because only the flag shows that the thread no longer uses it */
	static uint32_t nr;

	(void)state;
	assert_non_null(c);
	set_thread_call_rcu_data(c);
	call(&o, &nr);
	rcu_thread_offline();
	wait_until(flag_get(&nr));
	rcu_thread_online();
	set_thread_call_rcu_data(NULL);
	call_rcu_data_free(c);
}

static void each_cpu_may_have_one(void **state)
{
	int nr_cpus = (int)sysconf(_SC_NPROCESSORS_CONF);
	struct object o;
	uint32_t nr = 0;
	cpu_set_t one;
	pthread_t thread;

	(void)state;
	assert_int_equal(create_all_cpu_call_rcu_data(0), 0);
	for (int cpu = 0; cpu < nr_cpus; cpu++)
		assert_non_null(get_cpu_call_rcu_data(cpu));
	assert_null(get_cpu_call_rcu_data(nr_cpus));
	assert_null(get_cpu_call_rcu_data(-1));
	assert_int_equal(set_cpu_call_rcu_data(nr_cpus, NULL), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(set_cpu_call_rcu_data(0, get_cpu_call_rcu_data(0)), -1);
	assert_int_equal(errno, EEXIST);
	thread = get_call_rcu_thread(get_cpu_call_rcu_data(0));
	assert_int_equal(pthread_getaffinity_np(thread, sizeof one, &one), 0);
	assert_int_equal(CPU_COUNT(&one), 1);
	call(&o, &nr);
	rcu_barrier();
	assert_int_equal(flag_get(&nr), 1);
	free_all_cpu_call_rcu_data();
	join(thread);
	assert_null(get_cpu_call_rcu_data(0));
	call(&o, &nr);
	rcu_barrier();
	assert_int_equal(flag_get(&nr), 2);
}

/* ---- the threads of queues ---- */

/* A callback notes how its thread runs. */
struct seen {
	struct rcu_head head;
	int policy, nice;
	cpu_set_t cpus;
	unsigned long long blocked;
	sem_t done;
};

static void note_attributes(struct seen *s)
{
	s->policy = sched_getscheduler(0);
	s->nice = getpriority(PRIO_PROCESS, (id_t)my_tid());
	assert_int_equal(sched_getaffinity(0, sizeof s->cpus, &s->cpus), 0);
	s->blocked = blocked_signals(my_tid());
	sem_post(&s->done);
}

static void called_here(struct rcu_head *head) { note_attributes((struct seen *)(void *)head); }
static void deferred_here(void *arg) { note_attributes(arg); }

static struct {
	cpu_set_t all, one;
	int unprivileged, nice;
	struct call_rcu_data *any, *pinned;
	struct seen implicit, of_any, of_pinned, deferred;
} heirs;

/* The first caller, pinned and with a real-time priority, starts all threads. */
static void *starts_all(void *unused)
{
	struct sched_param param = { .sched_priority = 3 };

	(void)unused;
	sem_init(&heirs.implicit.done, 0, 0);
	sem_init(&heirs.of_any.done, 0, 0);
	sem_init(&heirs.of_pinned.done, 0, 0);
	sem_init(&heirs.deferred.done, 0, 0);
	CPU_ZERO(&heirs.one);
	CPU_SET((unsigned int)sched_getcpu(), &heirs.one);
	assert_int_equal(sched_setaffinity(0, sizeof heirs.one, &heirs.one), 0);
	if (setpriority(PRIO_PROCESS, (id_t)my_tid(), -5) || sched_setscheduler(0, SCHED_FIFO, &param))
		heirs.unprivileged = 1;
	rcu_register_thread();
	call_rcu(&heirs.implicit.head, called_here);
	heirs.any = create_call_rcu_data(0, -1);
	heirs.pinned = create_call_rcu_data(0, sched_getcpu());
	set_thread_call_rcu_data(heirs.any);
	call_rcu(&heirs.of_any.head, called_here);
	set_thread_call_rcu_data(heirs.pinned);
	call_rcu(&heirs.of_pinned.head, called_here);
	set_thread_call_rcu_data(NULL);
	assert_int_equal(rcu_defer_register_thread(), 0);
	defer_rcu(deferred_here, &heirs.deferred);
	rcu_thread_offline();
	wait_for(&heirs.deferred.done); /* called by the thread for it, and not at the end of this one */
	sem_post(&heirs.deferred.done);
	rcu_thread_online();
	rcu_defer_unregister_thread();
	rcu_unregister_thread();
	return NULL;
}

static void assert_seen(struct seen *s, const cpu_set_t *cpus)
{
	wait_for(&s->done);
	assert_int_equal(s->policy, SCHED_OTHER);
	assert_int_equal(s->nice, heirs.nice);
	assert_true(CPU_EQUAL(&s->cpus, cpus));
	for (int sig = 1; sig < 32; sig++)
		if (sig != SIGKILL && sig != SIGSTOP)
			assert_int_equal(s->blocked >> (sig - 1) & 1, !is_fault(sig));
}

/* Comes first: the default of some flavours has a thread from the first call on. */
static void threads_inherit_nothing(void **state)
{
	pthread_t thread;

	(void)state;
	sched_getaffinity(0, sizeof heirs.all, &heirs.all);
	heirs.nice = default_nice();
	thread_must(pthread_create(&thread, NULL, starts_all, NULL));
	rcu_thread_offline();
	pthread_join(thread, NULL);
	assert_seen(&heirs.implicit, &heirs.all);
	assert_seen(&heirs.of_any, &heirs.all);
	assert_seen(&heirs.of_pinned, &heirs.one);
	assert_seen(&heirs.deferred, &heirs.all);
	rcu_thread_online();
	call_rcu_data_free(heirs.any);
	call_rcu_data_free(heirs.pinned);
	if (heirs.unprivileged)
		print_message("# without privileges: only the CPUs of the starter were others\n");
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void takes_the_lock(struct rcu_head *head)
{
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	called(head);
}

/* The test queues more callbacks than any queue holds whose callers wait when it is full. */
static void to_call_waits_for_no_callback(void **state)
{
	static struct object o[100000];
	uint32_t nr = 0;

	(void)state;
	pthread_mutex_lock(&lock);
	rcu_read_lock();
	for (int i = 0; i < 100000; i++) {
		o[i].nr_called = &nr;
		call_rcu(&o[i].head, takes_the_lock);
	}
	rcu_read_unlock();
	pthread_mutex_unlock(&lock);
	rcu_barrier();
	assert_int_equal(flag_get(&nr), 100000);
}

static struct object again_object;

static void again(struct rcu_head *head)
{
	static int rounds;

	if (++rounds < 5)
		call_rcu(head, again);
	else
		count_up(again_object.nr_called);
}

static void a_callback_may_queue_itself(void **state)
{
	static uint32_t nr; /* static, because only the flag shows that the thread no longer uses it */

	(void)state;
	again_object.nr_called = &nr;
	call_rcu(&again_object.head, again);
	rcu_thread_offline();
	wait_until(flag_get(&nr));
	rcu_thread_online();
}

/* ---- fork ---- */

#if !SANITIZED
static int child_calls(struct object *before, uint32_t *nr)
{
	struct object o;

	(void)before;
	call(&o, nr);
	synchronize_rcu();
	rcu_barrier();
	return flag_get(nr) == 2 ? 0 : 1;
}

static void fork_and_call(int hooks)
{
	struct call_rcu_data *c = create_call_rcu_data(0, -1);
	struct object before;
	uint32_t nr = 0;
	int status;
	pid_t child;

	assert_non_null(c);
	set_thread_call_rcu_data(c);
	rcu_read_lock(); /* the callback is still queued, or waits in the queue's thread, at the fork */
	if (hooks)
		call_rcu_before_fork();
	call(&before, &nr);
	child = fork();
	if (!child) {
		if (hooks)
			call_rcu_after_fork_child();
		rcu_read_unlock();
		_exit(child_calls(&before, &nr));
	}
	if (hooks)
		call_rcu_after_fork_parent();
	rcu_read_unlock();
	rcu_thread_offline();
	assert_int_equal(waitpid(child, &status, 0), child);
	rcu_thread_online();
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	rcu_barrier();
	assert_int_equal(flag_get(&nr), 1);
	set_thread_call_rcu_data(NULL);
	call_rcu_data_free(c);
}

static void a_child_has_what_was_queued(void **state)
{
	(void)state;
	fork_and_call(1);
	fork_and_call(1);
}
#endif

/* ---- deferred ---- */

static uintptr_t next_deferred;

static void in_order(void *arg)
{
	assert_int_equal((uintptr_t)arg, next_deferred);
	flag_get(&next_deferred);
	quiesce_store_relaxed(&next_deferred, next_deferred + 1);
}

static void deferred_calls_come_in_order(void **state)
{
	(void)state;
	assert_int_equal(rcu_defer_register_thread(), 0);
	next_deferred = 0;
	for (uintptr_t i = 0; i < 10000; i++)
		defer_rcu(in_order, (void *)i);
	rcu_defer_barrier_thread();
	assert_int_equal(flag_get(&next_deferred), 10000);
	defer_rcu(in_order, (void *)10000);
	rcu_defer_barrier();
	assert_int_equal(flag_get(&next_deferred), 10001);
	defer_rcu(in_order, (void *)10001);
	rcu_thread_offline();
	wait_until(flag_get(&next_deferred) == 10002); /* the library's thread calls the functions */
	rcu_thread_online();
	defer_rcu(in_order, (void *)10002);
	rcu_defer_unregister_thread();
	assert_int_equal(flag_get(&next_deferred), 10003);
}

#if defined(TEST_ABI)
/* Check that the program runs with our object, and not with liburcu. */
static void the_object_is_ours(void **state)
{
	static const char *const name[] = {
		"liburcu.so.8", "liburcu-memb.so.8", "liburcu-mb.so.8", "liburcu-bp.so.8", "liburcu-qsbr.so.8"
	};
	char line[512];
	int ours = 0, others = 0;
	FILE *maps = fopen("/proc/self/maps", "r");

	(void)state;
	assert_non_null(maps);
	while (fgets(line, sizeof line, maps))
		for (size_t i = 0; i < sizeof name / sizeof name[0]; i++) {
			const char *at = strstr(line, name[i]);

			ours += at && strstr(line, "/liburcu/abi/");
			others += at && !strstr(line, "/liburcu/abi/");
		}
	fclose(maps);
	assert_true(ours);
	assert_false(others);
}
#endif

/* ---- the default; last, as it stays ---- */

static void the_default_has_a_thread_once_it_is_asked_for(void **state)
{
	struct call_rcu_data *c = get_default_call_rcu_data();
	struct object o;
	uint32_t nr = 0;

	(void)state;
	assert_non_null(c);
	assert_ptr_equal(get_call_rcu_data(), c);
	call(&o, &nr);
	rcu_barrier();
	assert_int_equal(flag_get(&nr), 1);
	assert_true(pthread_equal(o.called_by, get_call_rcu_thread(c)));
	call_rcu_data_free(c); /* the default stays */
	call(&o, &nr);
	rcu_barrier();
	assert_int_equal(flag_get(&nr), 2);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(threads_inherit_nothing),
		TEST(a_reader_is_waited_for),
#if POLLING
		TEST(a_cookie_is_done_when_the_reader_has_left),
#endif
		TEST(a_pointer_is_published_and_replaced),
		TEST(the_table_of_functions_is_the_flavour),
		TEST(the_barrier_waits_for_callbacks),
		TEST(a_queue_has_a_thread_of_its_own),
		TEST(queued_callbacks_are_called_before_the_end),
		TEST(queues_without_wake_ups_are_polled),
		TEST(each_cpu_may_have_one),
		TEST(to_call_waits_for_no_callback),
		TEST(a_callback_may_queue_itself),
		TEST(deferred_calls_come_in_order),
#if defined(TEST_ABI)
		TEST(the_object_is_ours),
#endif
#if !SANITIZED
		TEST(a_child_has_what_was_queued),
#endif
		TEST(the_default_has_a_thread_once_it_is_asked_for),
	};
	int failed;

	testing_choose(argc, argv);
#if !defined(TEST_QSBR)
	rcu_init();
#endif
	rcu_register_thread();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rcu_unregister_thread();
	return failed;
}
