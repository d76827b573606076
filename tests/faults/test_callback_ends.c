/* SPDX-License-Identifier: MIT */
/* test_callback_ends.c - callbacks that end their thread, or in which it is cancelled: others run, and no caller waits for ever.
 *
 * Each kind of callback is queued in a thread of its own, which may be the one that runs it; then each call that waits for
 * callbacks has to return, a fork must not wait, and all queued callbacks have run.
 */
#include "no_threads.h"

#include <quiesce/counted_ptr.h>
#include <quiesce/hazptr.h>
#include <quiesce/percpu_ref.h>
#include <quiesce/rcu_sync.h>
#include <quiesce/srcu.h>

#include <sched.h>

enum { NR = 40 };

/* The act by which a callback ends. */
enum action { RETURN, EXIT, BE_CANCELLED, ALLOW_AND_BE_CANCELLED, NR_ACTIONS };

struct object {
	union {
		struct rcu_head rcu;
		struct hazptr_head hazptr;
		struct counted counted;
		void *first;
	};
	enum action action;
};

static struct object objects[NR];
static int nr_ran, nr_reported;
static uint32_t batch = 1; /* with 1 an owner reclaims every object in a visit, with 8 a few, in steps */
static char reported[400];

static void hook(enum quiesce_misuse kind, const char *text)
{
	if (kind != QUIESCE_MISUSE_EXIT_IN_CALLBACK)
		abort();
	snprintf(reported, sizeof reported, "%s", text);
	count_up(&nr_reported);
}

/* A cancellation point, such as close() or printf(), inside a callback. */
static void cancelled_here(void)
{
	pthread_cancel(pthread_self());
	short_rest();
}

static void act(const struct object *o)
{
	count_up(&nr_ran);
	if (o->action == ALLOW_AND_BE_CANCELLED)
		pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	if (o->action == EXIT)
		pthread_exit(NULL);
	else if (o->action != RETURN)
		cancelled_here();
}

static void run_rcu(struct rcu_head *head)
{
	act((struct object *)(void *)head);
}

static void run_hazptr(struct hazptr_head *head)
{
	act((struct object *)(void *)head);
}

static void run_counted(struct counted *counted)
{
	act((struct object *)(void *)counted);
}

static void run_object(void *object)
{
	act(object);
}

/* ---- the kinds ---- */

DEFINE_STATIC_SRCU(domain);
static struct hazptr_cohort cohort = HAZPTR_COHORT_INIT;

static void queue_rcu(struct object *o) { call_rcu(&o->rcu, run_rcu); }
static void queue_srcu(struct object *o) { call_srcu(&domain, &o->rcu, run_rcu); }
static void queue_hazptr(struct object *o) { call_hazptr(&o->hazptr, run_hazptr); }
static void queue_inline(struct object *o) { call_hazptr_inline(&o->hazptr, run_hazptr); }
static void queue_retire(struct object *o) { hazptr_retire(o, run_object); }
static void queue_cohort(struct object *o) { call_hazptr_cohort(&cohort, &o->hazptr, run_hazptr); }

static void queue_counted(struct object *o)
{
	counted_init(&o->counted, run_counted);
	counted_put(&o->counted);
}

static void wait_srcu(void) { srcu_barrier(&domain); }
static void wait_cohort(void) { synchronize_hazptr_cohort(&cohort); }

static const struct kind {
	const char *name, *call;
	void (*queue)(struct object *o);
	void (*wait)(void);
} kinds[] = {
	{ "call_rcu", "call_rcu()", queue_rcu, rcu_barrier },
	{ "call_srcu", "call_srcu()", queue_srcu, wait_srcu },
	{ "call_hazptr", "call_hazptr()", queue_hazptr, hazptr_barrier },
	{ "call_hazptr_inline", "call_hazptr", queue_inline, hazptr_barrier },
	{ "hazptr_retire", "call_hazptr", queue_retire, hazptr_barrier },
	{ "a cohort", "call_hazptr_cohort()", queue_cohort, wait_cohort },
	{ "a counted pointer", "call_hazptr()", queue_counted, hazptr_barrier },
};
enum { NR_KINDS = sizeof kinds / sizeof kinds[0] };

/* ---- afterwards ---- */

static void forks_at_once(void)
{
	uint64_t begun = now_ns();
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(in_time(begun));
}

static void nothing_is_left(void)
{
	struct quiesce_stats stats;

	assert_int_equal(quiesce_shutdown(0), 0);
	stats = stats_now();
	assert_int_equal(stats.callbacks_queued, stats.callbacks_run);
	assert_int_equal(stats.srcu_callbacks_queued, stats.srcu_callbacks_run);
	assert_int_equal(stats.hazptr_retired, stats.hazptr_reclaimed);
	assert_int_equal(stats.garbage_objects, 0);
}

static void everything_goes_on(void)
{
	int before = flag_get(&nr_ran);
	static struct object more[NR_KINDS];

	for (int i = 0; i < NR_KINDS; i++) {
		more[i].action = RETURN;
		kinds[i].queue(&more[i]);
	}
	for (int i = 0; i < NR_KINDS; i++)
		kinds[i].wait();
	assert_int_equal(flag_get(&nr_ran), before + NR_KINDS);
	forks_at_once();
	nothing_is_left();
}

/* ---- a thread that queues, and may be the one that runs callbacks ---- */

struct job {
	const struct kind *kind;
	int nr, next;       /* objects; the next to be queued */
	bool waits;         /* the thread waits for its callbacks */
	bool survived;      /* the thread reached its own cancellation point */
};

static void *queue_all(void *arg)
{
	struct job *job = arg;
	int state;

	may_create = 1;
	quiesce_set_thread_hazptr_batch(batch, batch);
	while (job->next < job->nr)
		job->kind->queue(&objects[job->next++]);
	if (job->waits)
		job->kind->wait();
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	assert_int_equal(state, PTHREAD_CANCEL_ENABLE); /* the state that the callback had before */
	pthread_setcancelstate(state, NULL);
	job->survived = true;
	pthread_testcancel();
	return NULL;
}

struct waiter {
	const struct kind *kind;
	bool returned;
};

static void *wait_once(void *arg)
{
	struct waiter *w = arg;

	may_create = 1;
	w->kind->wait();
	w->returned = true;
	return NULL;
}

/* A waiter may run callbacks, which end its thread, so other threads than this one wait. */
static void wait_in_threads(const struct kind *kind)
{
	struct waiter w = { .kind = kind };

	while (!w.returned) {
		pthread_t thread;

		thread_must(pthread_create(&thread, NULL, wait_once, &w));
		pthread_join(thread, NULL);
	}
}

/* Queue @nr objects; the callback of every @every-th of them does @action. */
static bool run_job(const struct kind *kind, bool waits, enum action action, int nr, int every)
{
	struct job job = { .kind = kind, .nr = nr, .waits = waits };
	pthread_t thread;

	memset(objects, 0, sizeof objects);
	for (int i = 0; i < nr; i++)
		objects[i].action = i % every ? RETURN : action;
	quiesce_store_relaxed(&nr_ran, 0);      /* Relaxed: a count of the test. */
	quiesce_store_relaxed(&nr_reported, 0); /* Relaxed: a count of the test. */
	do {
		thread_must(pthread_create(&thread, NULL, queue_all, &job));
		pthread_join(thread, NULL);
	} while (job.next < nr);
	wait_in_threads(kind);
	assert_int_equal(flag_get(&nr_ran), nr);
	return job.survived;
}

static void tells(const struct kind *kind)
{
	char module[64];

	snprintf(module, sizeof module, "in the callback %s+0x", program_invocation_short_name);
	if (!strstr(reported, module) || !strstr(reported, kind->call))
		fail_msg("%s: \"%s\" does not name it", kind->name, reported);
}

static void each_kind(enum action action, bool waits)
{
	bool ends = action == EXIT || action == ALLOW_AND_BE_CANCELLED;

	quiesce_set_misuse_hook(hook);
	for (int n = 0; n < 2 * NR_KINDS; n++) {
		int i = n / 2;
		bool survived;

		batch = n % 2 ? 8 : 1;
		quiesce_set_hazptr_batch(batch, batch);
		survived = run_job(&kinds[i], waits, action, NR, 7);
		assert_int_equal(quiesce_shutdown(0), 0); /* a thread that ends reports after it has released everything */
		if (flag_get(&nr_reported) != (ends ? (NR + 6) / 7 : 0))
			fail_msg("%s: %d reports, %s", kinds[i].name, flag_get(&nr_reported), reported);
		if (ends)
			tells(&kinds[i]);
		if (!ends && !survived)
			fail_msg("%s: the thread was cancelled in a callback", kinds[i].name);
		everything_goes_on();
	}
	quiesce_set_hazptr_batch(0, 0);
	quiesce_set_misuse_hook(NULL);
}

static void callbacks_are_not_cancelled(void **state)
{
	(void)state;
	each_kind(BE_CANCELLED, false);
	each_kind(BE_CANCELLED, true);
}

static void a_callback_may_end_its_thread(void **state)
{
	(void)state;
	each_kind(EXIT, false);
	each_kind(EXIT, true);
}

static void a_callback_may_allow_its_cancellation(void **state)
{
	(void)state;
	each_kind(ALLOW_AND_BE_CANCELLED, false);
	each_kind(ALLOW_AND_BE_CANCELLED, true);
}

static void without_threads_others_run_what_is_left(void **state)
{
	(void)state;
	assert_int_equal(quiesce_shutdown(0), 0);
	may_create = 1;
	flag_set(&no_threads);
	each_kind(EXIT, true);
	each_kind(BE_CANCELLED, true);
	quiesce_store_relaxed(&no_threads, 0); /* Relaxed: a flag of the test. */
	may_create = 0;
}

/* A new thread runs the next callback each time, so no stack grows. */
static void each_callback_may_end_its_thread(void **state)
{
	static struct object many[2000];

	(void)state;
	quiesce_set_misuse_hook(hook);
	for (int i = 0; i < 3; i++) {
		quiesce_store_relaxed(&nr_ran, 0); /* Relaxed: a count of the test. */
		for (int k = 0; k < 2000; k++) {
			many[k].action = EXIT;
			kinds[i].queue(&many[k]);
		}
		wait_in_threads(&kinds[i]);
		assert_int_equal(flag_get(&nr_ran), 2000);
		alarm(watchdog_seconds());
	}
	everything_goes_on();
	quiesce_set_misuse_hook(NULL);
}

/* ---- without a hook the end is reported, and the process goes on ---- */

static void end_one(void)
{
	objects[0].action = EXIT;
	queue_rcu(&objects[0]);
	wait_in_threads(&kinds[0]);
}

static void a_callback_end_is_only_reported(void **state)
{
	struct outcome o;

	(void)state;
	in_child(end_one, &o);
	expect_success(&o);
	assert_int_equal(count_lines(o.text), 1);
	assert_non_null(strstr(o.text, "quiesce: thread "));
	assert_non_null(strstr(o.text, " of call_rcu(), which has to return"));
}

/* ---- functions that are called synchronously ---- */

static struct percpu_ref ref;
static int nr_released;

static void released(struct percpu_ref *unused)
{
	(void)unused;
	count_up(&nr_released);
}

static void confirm_and_end(struct percpu_ref *unused)
{
	(void)unused;
	pthread_exit(NULL);
}

static void *kill_ref(void *unused)
{
	percpu_ref_kill_and_confirm(&ref, confirm_and_end);
	return unused;
}

static void a_confirm_function_may_end_its_thread(void **state)
{
	pthread_t thread;

	(void)state;
	quiesce_set_misuse_hook(hook);
	quiesce_store_relaxed(&nr_reported, 0); /* Relaxed: a count of the test. */
	assert_int_equal(percpu_ref_init(&ref, released, PERCPU_REF_ALLOW_REINIT), 0);
	percpu_ref_get(&ref);
	thread_must(pthread_create(&thread, NULL, kill_ref, NULL));
	pthread_join(thread, NULL);
	assert_int_equal(flag_get(&nr_reported), 1);
	assert_non_null(strstr(reported, "of percpu_ref_kill_and_confirm()"));
	assert_true(percpu_ref_is_dying(&ref));
	assert_int_equal(nr_released, 0);
	percpu_ref_put(&ref);
	assert_int_equal(nr_released, 1);
	percpu_ref_reinit(&ref); /* this would hang if the lock of a mode change were still held */
	percpu_ref_kill(&ref);
	assert_int_equal(nr_released, 2);
	percpu_ref_exit(&ref);
	quiesce_set_misuse_hook(NULL);
}

static struct rcu_sync sync_state;
static sem_t in_wait, end_wait;
static int nr_waits;

/* The first caller of this function ends in it, with its thread. */
static void wait_or_end(void *unused)
{
	(void)unused;
	if (quiesce_fetch_add_relaxed(&nr_waits, 1)) /* Relaxed: a count of the test's. */
		return;
	sem_post(&in_wait);
	wait_for(&end_wait);
	pthread_exit(NULL);
}

static void call_at_once(void *unused, struct rcu_head *head, void (*func)(struct rcu_head *head))
{
	(void)unused;
	func(head);
}

static void no_barrier(void *unused, struct rcu_head *head)
{
	(void)unused, (void)head;
}

static const struct rcu_sync_ops ops_that_end = { wait_or_end, call_at_once, no_barrier, NULL };

static void *enter_and_exit(void *unused)
{
	rcu_sync_enter(&sync_state);
	assert_false(rcu_sync_is_idle(&sync_state));
	rcu_sync_exit(&sync_state);
	return unused;
}

static void other_updaters_wait_in_the_place_of_one_that_ends(void **state)
{
	pthread_t first, others[3];

	(void)state;
	quiesce_set_misuse_hook(hook);
	quiesce_store_relaxed(&nr_reported, 0); /* Relaxed: a count of the test. */
	sem_init(&in_wait, 0, 0);
	sem_init(&end_wait, 0, 0);
	rcu_sync_init_ops(&sync_state, &ops_that_end, NULL);
	thread_must(pthread_create(&first, NULL, enter_and_exit, NULL));
	wait_for(&in_wait);
	threads_begin(others, 3, enter_and_exit, NULL);
	for (int i = 0; i < 10; i++)
		short_rest();
	assert_int_equal(flag_get(&nr_waits), 1);
	sem_post(&end_wait);
	pthread_join(first, NULL);
	threads_end(others, 3);
	assert_true(flag_get(&nr_waits) >= 2);
	assert_int_equal(flag_get(&nr_reported), 1);
	assert_true(rcu_sync_is_idle(&sync_state));
	rcu_sync_dtor(&sync_state);
	quiesce_set_misuse_hook(NULL);
}

/* ---- hooks ---- */

static void cancelled_in_a_hook(enum quiesce_misuse kind, const char *text)
{
	(void)kind, (void)text;
	cancelled_here();
	count_up(&nr_reported);
}

static void *misuses(void *survived)
{
	call_rcu(NULL, run_rcu);
	*(bool *)survived = true;
	pthread_testcancel();
	return NULL;
}

static void hooks_are_not_cancelled(void **state)
{
	bool survived = false;
	pthread_t thread;

	(void)state;
	quiesce_store_relaxed(&nr_reported, 0); /* Relaxed: a count of the test. */
	quiesce_set_misuse_hook(cancelled_in_a_hook);
	thread_must(pthread_create(&thread, NULL, misuses, &survived));
	pthread_join(thread, NULL);
	quiesce_set_misuse_hook(NULL);
	assert_int_equal(flag_get(&nr_reported), 1);
	assert_true(survived);
}

static void end_in_report(const struct quiesce_report *report)
{
	(void)report;
	pthread_exit(NULL);
}

static void report_hook_ends(void)
{
	struct held reader;

	quiesce_set_stall_timeout(1000000);
	quiesce_set_report_hook(end_in_report);
	held_begin(&reader, NULL);
	synchronize_rcu();
}

static void a_report_hook_must_not_end_its_thread(void **state)
{
	struct outcome o;

	(void)state;
	in_child(report_hook_ends, &o);
	assert_true(WIFSIGNALED(o.status));
	assert_int_equal(WTERMSIG(o.status), SIGABRT);
	assert_non_null(strstr(o.text, "in the middle of synchronize_rcu()"));
}

/* ---- longjmp() ---- */

static jmp_buf out;

static void jump(struct rcu_head *head)
{
	(void)head;
	longjmp(out, 1);
}

static void *jump_out(void *unused)
{
	flag_set(&no_threads);
	call_rcu(&objects[0].rcu, jump);
	if (!setjmp(out))
		rcu_barrier();
	return unused;
}

static void left_by_longjmp(void)
{
	pthread_t thread;

	may_create = 1;
	thread_must(pthread_create(&thread, NULL, jump_out, NULL));
	pthread_join(thread, NULL);
}

static void a_jump_out_is_reported_when_the_thread_ends(void **state)
{
	struct outcome o;

	(void)state;
	in_child(left_by_longjmp, &o);
	expect_success(&o);
	assert_non_null(strstr(o.text, "was it left by longjmp()?"));
}

/* ---- one inside the other ---- */

static void wait_for_another(struct hazptr_head *head)
{
	static struct object inner = { .action = EXIT };

	(void)head;
	count_up(&nr_ran);
	queue_cohort(&inner);
	wait_cohort();
}

/* A callback waits for another one, which ends the thread: neither returns, both count as run, and one report is made. */
static void both_of_two_that_do_not_return_count_as_run(void **state)
{
	static struct object outer;

	(void)state;
	may_create = 1;
	quiesce_set_misuse_hook(hook);
	quiesce_store_relaxed(&nr_reported, 0); /* Relaxed: no other thread reports. */
	call_hazptr(&outer.hazptr, wait_for_another);
	wait_until(flag_get(&nr_reported) == 1);
	everything_goes_on();
	assert_int_equal(flag_get(&nr_reported), 1);
	quiesce_set_misuse_hook(NULL);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(callbacks_are_not_cancelled),
		TEST(a_callback_may_end_its_thread),
		TEST(a_callback_may_allow_its_cancellation),
		TEST(without_threads_others_run_what_is_left),
		TEST(each_callback_may_end_its_thread),
		TEST(a_callback_end_is_only_reported),
		TEST(both_of_two_that_do_not_return_count_as_run),
		TEST(a_confirm_function_may_end_its_thread),
		TEST(other_updaters_wait_in_the_place_of_one_that_ends),
		TEST(hooks_are_not_cancelled),
		TEST(a_report_hook_must_not_end_its_thread),
		TEST(a_jump_out_is_reported_when_the_thread_ends),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
