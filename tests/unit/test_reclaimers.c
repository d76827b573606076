/* SPDX-License-Identifier: MIT */
/* test_reclaimers.c - several threads that run callbacks of call_rcu(). */
#include "reports.h"

#include <sched.h>
#include <stdbool.h>

enum { NR_QUEUERS = 4, NR_EACH = 300, IDLE_NS = 1000000000 };

struct numbered {
	struct rcu_head head;
	int by, nr;
};

static struct numbered objects[NR_QUEUERS][NR_EACH];
static int next_of[NR_QUEUERS], nr_run, nr_disordered, running_of[NR_QUEUERS];
static void (*act)(struct numbered *object);

static bool two_cpus(void)
{
	cpu_set_t cpus;

	sched_getaffinity(getpid(), sizeof cpus, &cpus);
	return CPU_COUNT(&cpus) > 1;
}

/* Callbacks of one thread run one after the other, in order. */
static void run(struct rcu_head *head)
{
	struct numbered *object = (struct numbered *)(void *)head;

	if (quiesce_fetch_add_relaxed(&running_of[object->by], 1) || next_of[object->by] != object->nr) /* Relaxed: it has one runner. */
		count_up(&nr_disordered);
	next_of[object->by]++;
	if (act)
		act(object);
	quiesce_fetch_add_relaxed(&running_of[object->by], -1); /* Relaxed: it has one runner. */
	count_up(&nr_run);
}

struct queuer {
	pthread_t thread;
	int by, nr;
};

static void *queue_all(void *arg)
{
	struct queuer *q = arg;

	for (int i = 0; i < q->nr; i++) {
		objects[q->by][i].by = q->by;
		objects[q->by][i].nr = i;
		call_rcu(&objects[q->by][i].head, run);
	}
	return NULL;
}

static void do_nothing(struct rcu_head *head)
{
	(void)head;
}

/* Begin a pass, which does not end before the caller's section does. */
static void begin_a_pass(void)
{
	static struct rcu_head head;
	uint64_t visited = stats_now().queues_visited;

	call_rcu(&head, do_nothing);
	wait_until(stats_now().queues_visited > visited);
}

/* Queue @nr callbacks in each of @threads threads, all of which the next pass finds. */
static void queue_of_threads(int threads, int nr, void (*what)(struct numbered *object))
{
	struct queuer q[NR_QUEUERS];

	act = what;
	memset(next_of, 0, sizeof next_of);
	rcu_barrier();
	rcu_read_lock();
	begin_a_pass();
	for (int i = 0; i < threads; i++) {
		q[i].by = i;
		q[i].nr = nr;
		thread_must(pthread_create(&q[i].thread, NULL, queue_all, &q[i]));
	}
	for (int i = 0; i < threads; i++)
		pthread_join(q[i].thread, NULL);
	rcu_read_unlock();
}

static void run_of_threads(int threads, int nr, void (*what)(struct numbered *object))
{
	quiesce_store_relaxed(&nr_run, 0); /* Relaxed: no callback is queued. */
	queue_of_threads(threads, nr, what);
	rcu_barrier();
	assert_int_equal(flag_get(&nr_run), threads * nr);
	assert_int_equal(flag_get(&nr_disordered), 0);
}

static void rest(struct numbered *object)
{
	(void)object;
	short_rest();
}

/* Queue callbacks until a further reclaimer has run some. */
static void share_callbacks(void)
{
	uint64_t before = stats_now().queues_helped;

	do
		run_of_threads(NR_QUEUERS, NR_EACH, NULL);
	while (stats_now().queues_helped == before);
}

static void assert_setting(unsigned int nr)
{
	char text[400], want[40];

	quiesce_describe_settings(text, sizeof text);
	snprintf(want, sizeof want, " QUIESCE_RECLAIMERS=%u ", nr);
	assert_non_null(strstr(text, want));
}

static void a_number_is_taken_or_refused(void **state)
{
	cpu_set_t cpus;

	(void)state;
	assert_setting(1);
	assert_int_equal(quiesce_set_reclaimers(0), -EINVAL);
	assert_int_equal(quiesce_set_reclaimers(QUIESCE_RECLAIMERS_MAX + 1), -EINVAL);
	assert_int_equal(quiesce_set_reclaimers(UINT32_MAX), -EINVAL);
	assert_setting(1);
	assert_int_equal(quiesce_set_reclaimers(QUIESCE_RECLAIMERS_MAX), 0);
	sched_getaffinity(getpid(), sizeof cpus, &cpus);
	assert_setting(CPU_COUNT(&cpus) < QUIESCE_RECLAIMERS_MAX ? (unsigned int)CPU_COUNT(&cpus) : QUIESCE_RECLAIMERS_MAX);
	assert_int_equal(quiesce_set_reclaimers(1), 0);
	assert_setting(1);
}

static void one_reclaimer_is_the_worker_alone(void **state)
{
	(void)state;
	for (int i = 0; i < 5; i++)
		run_of_threads(NR_QUEUERS, NR_EACH, i == 4 ? rest : NULL);
	assert_int_equal(stats_now().queues_helped, 0);
	assert_int_equal(stats_now().reclaimers_running, 0);
	assert_int_equal(thread_named("quiesce-reclaim"), 0);
}

static void little_work_starts_no_reclaimer(void **state)
{
	(void)state;
	assert_int_equal(quiesce_set_reclaimers(2), 0);
	run_of_threads(2, 1, NULL);
	run_of_threads(1, NR_EACH, NULL); /* no further reclaimer can run callbacks of a single thread */
	assert_int_equal(stats_now().reclaimers_running, 0);
}

static void reclaimers_run_callbacks_in_the_order_of_their_thread(void **state)
{
	(void)state;
	share_callbacks();
	assert_int_equal(stats_now().reclaimers_running, 1);
	assert_in_range(thread_named("quiesce-reclaim"), 1, INT32_MAX);
	for (int i = 0; i < 20; i++)
		run_of_threads(NR_QUEUERS, NR_EACH, NULL);
}

/* Each callback waits until one of the other thread has begun, so a single runner would not make progress. */
static sem_t met[2];

static void meet(struct numbered *object)
{
	sem_post(&met[1 - object->by]);
	wait_for(&met[object->by]);
}

static void callbacks_of_two_threads_run_at_the_same_time(void **state)
{
	(void)state;
	sem_init(&met[0], 0, 0);
	sem_init(&met[1], 0, 0);
	run_of_threads(2, NR_EACH, meet);
}

/* A callback that blocks delays the other callbacks of its thread, and the end of the pass. */
static sem_t held, goes_on;

static void block_first(struct numbered *object)
{
	if (object->by || object->nr)
		return;
	sem_post(&held);
	wait_for(&goes_on);
}

static void *wait_for_all(void *unused)
{
	rcu_barrier();
	return unused;
}

static void a_callback_that_blocks_holds_up_its_threads_only(void **state)
{
	pthread_t waiter;
	struct kept k;

	(void)state;
	sem_init(&held, 0, 0);
	sem_init(&goes_on, 0, 0);
	quiesce_store_relaxed(&nr_run, 0); /* Relaxed: no callback is queued. */
	queue_of_threads(2, NR_EACH, block_first);
	wait_for(&held);
	wait_until(flag_get(&nr_run) == NR_EACH);
	reports_begin();
	thread_must(pthread_create(&waiter, NULL, wait_for_all, NULL));
	k = wait_for_report("rcu_barrier", "in the callback ");
	assert_non_null(strstr(k.text, "(quiesce"));
	assert_in_range(k.report.holder, 1, INT32_MAX);
	assert_int_equal(flag_get(&nr_run), NR_EACH);
	sem_post(&goes_on);
	pthread_join(waiter, NULL);
	reports_end();
	assert_int_equal(flag_get(&nr_run), 2 * NR_EACH);
	assert_int_equal(flag_get(&nr_disordered), 0);
}

/* ---- the threads ---- */

static bool runs_on(pid_t tid, int cpu)
{
	cpu_set_t cpus;

	return sched_getaffinity(tid, sizeof cpus, &cpus) == 0 && CPU_COUNT(&cpus) == 1 && CPU_ISSET((unsigned int)cpu, &cpus);
}

static void reclaimers_run_as_the_worker_unless_chosen(void **state)
{
	struct quiesce_thread_attr attr = QUIESCE_THREAD_ATTR_INIT;
	int cpu = sched_getcpu();

	(void)state;
	share_callbacks();
	if (quiesce_set_worker_cpu(cpu) == -ENOSYS) {
		print_message("# this C library does not set the attributes of threads\n");
		return;
	}
	assert_true(runs_on(thread_named("quiesce-reclaim"), cpu));
	assert_int_equal(quiesce_shutdown(0), 0);
	share_callbacks();
	assert_true(runs_on(thread_named("quiesce-reclaim"), cpu));
	attr.name = "another name";
	assert_int_equal(quiesce_set_thread_attr(QUIESCE_THREAD_RECLAIMER, &attr), 0);
	assert_false(runs_on(thread_named("another name"), cpu));
	assert_true(runs_on(thread_named("quiesce"), cpu));
	assert_int_equal(quiesce_set_thread_attr(QUIESCE_THREAD_RECLAIMER, NULL), 0);
	assert_true(runs_on(thread_named("quiesce-reclaim"), cpu));
	assert_int_equal(quiesce_set_worker_cpu(-1), 0);
	assert_false(runs_on(thread_named("quiesce-reclaim"), cpu));
}

static void reclaimers_end(void **state)
{
	uint64_t begun;

	(void)state;
	share_callbacks();
	begun = now_ns();
	assert_int_equal(quiesce_set_reclaimers(1), 0);
	wait_until(stats_now().reclaimers_running == 0);
	if (now_ns() - begun > IDLE_NS)
		print_message("# it ended because it was idle\n");
	wait_until(!thread_named("quiesce-reclaim"));
	assert_int_equal(quiesce_set_reclaimers(2), 0);
	share_callbacks();
	assert_int_equal(quiesce_shutdown(0), 0);
	assert_int_equal(stats_now().reclaimers_running, 0);
	share_callbacks();
	wait_until(stats_now().reclaimers_running == 0); /* no queue needs the reclaimer */
	share_callbacks();
}

/* ---- callbacks that end their thread ---- */

static int nr_reported;

static void hook(enum quiesce_misuse kind, const char *text)
{
	if (kind != QUIESCE_MISUSE_EXIT_IN_CALLBACK || !strstr(text, " of call_rcu()"))
		abort();
	count_up(&nr_reported);
}

static void end_some(struct numbered *object)
{
	if (object->nr % 50)
		return;
	quiesce_fetch_add_relaxed(&running_of[object->by], -1); /* Relaxed: it has one runner. */
	count_up(&nr_run);
	pthread_exit(NULL);
}

static void other_reclaimers_go_on_where_one_ends(void **state)
{
	(void)state;
	quiesce_set_misuse_hook(hook);
	for (int i = 0; i < 10; i++)
		run_of_threads(NR_QUEUERS, NR_EACH, end_some);
	assert_int_equal(quiesce_shutdown(0), 0);
	quiesce_set_misuse_hook(NULL);
	assert_int_equal(flag_get(&nr_reported), 10 * NR_QUEUERS * NR_EACH / 50);
	assert_int_equal(stats_now().callbacks_queued, stats_now().callbacks_run);
	assert_int_equal(stats_now().garbage_bytes, 0);
	share_callbacks();
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(a_number_is_taken_or_refused),
		TEST(one_reclaimer_is_the_worker_alone),
		TEST(little_work_starts_no_reclaimer),
		TEST(reclaimers_run_callbacks_in_the_order_of_their_thread),
		TEST(callbacks_of_two_threads_run_at_the_same_time),
		TEST(a_callback_that_blocks_holds_up_its_threads_only),
		TEST(reclaimers_run_as_the_worker_unless_chosen),
		TEST(reclaimers_end),
		TEST(other_reclaimers_go_on_where_one_ends),
	};

	static const struct CMUnitTest on_one_cpu[] = {
		TEST(a_number_is_taken_or_refused),
		TEST(one_reclaimer_is_the_worker_alone),
	};

	testing_choose(argc, argv);
	return two_cpus() ? cmocka_run_group_tests(tests, NULL, NULL) : cmocka_run_group_tests(on_one_cpu, NULL, NULL);
}
