/* SPDX-License-Identifier: MIT */
/* test_queues.c - the queues of call_rcu(): their cost, the passes that visit them, the progress of chains. */
#include "heap.h"
#include "testing.h"

#include <sched.h>

struct object {
	struct rcu_head rcu;
	struct object *next;
};

/* ---- the cost of a rarely used queue ---- */

#define OWNERS 300

struct owner {
	pthread_t thread;
	sem_t go, done;
	int stop;
};

static struct owner *owner;

static void retire_one(void)
{
	struct object *o = malloc(sizeof *o);

	kfree_rcu(o, rcu);
}

static void *own(void *arg)
{
	struct owner *me = arg;

	for (;;) {
		wait_for(&me->go);
		if (me->stop)
			return NULL;
		retire_one();
		sem_post(&me->done);
	}
}

static void owners_begin(void)
{
	owner = calloc(OWNERS, sizeof *owner);
	assert_non_null(owner);
	for (int i = 0; i < OWNERS; i++) {
		sem_init(&owner[i].go, 0, 0);
		sem_init(&owner[i].done, 0, 0);
		thread_must(pthread_create(&owner[i].thread, NULL, own, &owner[i]));
	}
}

static void owner_retires(int i)
{
	sem_post(&owner[i].go);
	wait_for(&owner[i].done);
}

static void owners_end(void)
{
	for (int i = 0; i < OWNERS; i++) {
		owner[i].stop = 1;
		sem_post(&owner[i].go);
		pthread_join(owner[i].thread, NULL);
	}
	free(owner);
}

/* The queue's memory is counted in the allocator and in pages of our own; a thread's arena does not belong to its queue. */
static void a_rarely_used_queue_is_small(void **state)
{
	size_t before;

	(void)state;
	owners_begin();
	owner_retires(0);
	rcu_barrier();
	before = heap_used();
	for (int i = 1; i < OWNERS; i++)
		owner_retires(i);
	rcu_barrier();
	if (HEAP_COUNTED)
		assert_in_range((heap_used() - before) / (OWNERS - 1), 1, 4096);
	assert_int_equal(stats_now().queues, OWNERS);
	owners_end();
}

/* ---- visits ---- */

/* A pass, and the visit of queues whose owners have not returned, scan the queue that has objects. */
static void a_pass_visits_what_has_something(void **state)
{
	enum { N = 50 };
	uint64_t visited;

	(void)state;
	owners_begin();
	for (int i = 0; i < OWNERS; i++)
		owner_retires(i);
	rcu_barrier();
	visited = stats_now().queues_visited;
	for (int i = 0; i < N; i++) {
		owner_retires(i);
		rcu_barrier();
	}
	assert_in_range(stats_now().queues_visited - visited, N, 4 * N);
	visited = stats_now().queues_visited;
	for (int i = 0; i < N; i++) {
		uint64_t run = stats_now().callbacks_run;

		owner_retires(i);
		wait_until(stats_now().callbacks_run > run);
	}
	assert_in_range(stats_now().queues_visited - visited, N, 6 * N);
	owners_end();
}

/* A queue is freed with its thread. */
static void queues_of_threads_that_exit_go(void **state)
{
	(void)state;
	owners_begin();
	for (int i = 0; i < OWNERS; i++)
		owner_retires(i);
	owners_end();
	retire_one();
	rcu_barrier();
	retire_one();
	rcu_barrier();
	assert_in_range(stats_now().queues, 1, 3);
	assert_int_equal(stats_now().garbage_objects, 0);
}

/* ---- chains ---- */

static int nr_links;
static long first_rests, last_rests; /* how often the worker had slept when it ran the first, and the last */

static void note_rests(int first)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	last_rests = usage.ru_nvcsw;
	if (first)
		first_rests = last_rests;
}

static void run_link(struct rcu_head *head)
{
	struct object *o = (struct object *)head, *next = o->next;

	note_rests(nr_links == 0);
	free(o);
	count_up(&nr_links);
	if (next)
		call_rcu(&next->rcu, run_link);
}

/* Each callback takes a pass, but the worker does not sleep before each. */
static void a_chain_goes_on(void **state)
{
	enum { N = 20000 };
	struct object *first = NULL;

	(void)state;
	for (int i = 0; i < N; i++) {
		struct object *o = malloc(sizeof *o);

		assert_non_null(o);
		o->next = first;
		first = o;
	}
	nr_links = 0;
	call_rcu(&first->rcu, run_link);
	wait_until(flag_get(&nr_links) == N);
	rcu_barrier();
	if (!getenv("TEST_SLOWER")) /* in an emulator passes are dear, and the worker rests after those */
		assert_in_range(last_rests - first_rests, 0, N / 2);
}

#define TIMES 50

/* The bound does not include objects whose callbacks queue them again: they may do so for ever. */
static void run_and_come_back(struct rcu_head *head)
{
	note_rests(nr_links == -TIMES);
	if (quiesce_fetch_add_relaxed(&nr_links, 1) < 0) /* Relaxed: a count. */
		call_rcu(head, run_and_come_back);
}

static void the_worker_rests_where_an_object_comes_back(void **state)
{
	static struct rcu_head head;

	(void)state;
	nr_links = -TIMES;
	call_rcu(&head, run_and_come_back);
	wait_until(flag_get(&nr_links) > 0);
	rcu_barrier();
	assert_in_range(last_rests - first_rests, TIMES / 2, INT64_MAX);
}

/* ---- priorities ---- */

static int become_fifo(void)
{
	struct sched_param param = { .sched_priority = 50 };
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET((unsigned int)sched_getcpu(), &one);
	return sched_setaffinity(0, sizeof one, &one) || sched_setscheduler(0, SCHED_FIFO, &param) ? -1 : 0;
}

/* The worker, which has the policy and the CPU of its creator, lets the threads run that it has woken. */
static int barrier_under_fifo(void)
{
	alarm(20);
	if (become_fifo())
		_exit(77);
	retire_one();
	rcu_barrier();
	return 0;
}

static void a_waiter_of_the_same_real_time_priority_gets_on(void **state)
{
	int status;
	pid_t child;

	(void)state;
	assert_int_equal(quiesce_shutdown(0), 0);
	child = fork();
	if (!child)
		_exit(barrier_under_fifo());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		print_message("# no real-time priorities here: not tried\n");
	else
		assert_int_equal(WEXITSTATUS(status), 0);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(a_rarely_used_queue_is_small),
		TEST(a_pass_visits_what_has_something),
		TEST(queues_of_threads_that_exit_go),
		TEST(a_chain_goes_on),
		TEST(the_worker_rests_where_an_object_comes_back),
		TEST(a_waiter_of_the_same_real_time_priority_gets_on),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
