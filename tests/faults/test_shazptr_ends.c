/* SPDX-License-Identifier: MIT */
/* test_shazptr_ends.c - guards where threads and processes begin and end: handed over, left behind, in destructors. */
#include "holders.h"
#include "use.h"

#include <limits.h>

static int object[4000];

/* ---- this program executed again, with another environment ---- */

static const char *role;

static void become(void)
{
	execl("/proc/self/exe", "test_shazptr_ends", "--as", role, (char *)NULL);
	_exit(127);
}

static void run_as(const char *name, const char *variable, const char *value, struct outcome *o)
{
	role = name;
	setenv(variable, value, 1);
	in_child(become, o);
	unsetenv(variable);
	alarm(watchdog_seconds());
}

/* ---- handed over ---- */

static void *acquire_and_exit(void *guard)
{
	struct shazptr_guard *g = guard;

	*g = shazptr_acquire(g->ptr);
	return NULL;
}

/* The next threads get the line; they must not use slots that are held in it. */
static void guards_outlive_their_threads(void **state)
{
	enum { N = 20 };
	static struct shazptr_guard old[N], next[N];
	pthread_t thread;

	(void)state;
	for (int i = 0; i < N; i++) {
		old[i].ptr = &object[i];
		thread_must(pthread_create(&thread, NULL, acquire_and_exit, &old[i]));
		pthread_join(thread, NULL);
	}
	for (int i = 0; i < N; i++) {
		next[i].ptr = &object[N + i];
		thread_must(pthread_create(&thread, NULL, acquire_and_exit, &next[i]));
		pthread_join(thread, NULL);
		for (int k = 0; k < N; k++)
			assert_ptr_not_equal(next[i].slot, old[k].slot);
	}
	assert_true(is_free(&object[2 * N]));
	for (int i = 0; i < N; i++) {
		assert_true(ends_with(old[i], &object[i]));
		assert_true(ends_with(next[i], &object[N + i]));
	}
	assert_true(is_free(SHAZPTR_WILDCARD));
}

/* ---- destructors of thread-specific data, which run after the library's own ---- */

static pthread_key_t late_key;
static struct shazptr_guard left_behind;
static int late_ok;

static void late_destructor(void *round)
{
	uintptr_t n = (uintptr_t)round;
	struct shazptr_guard a = shazptr_acquire(&object[0]), b = shazptr_acquire(&object[1]);

	late_ok += is_free(&object[2]);
	late_ok += ends_with(a, &object[0]);
	shazptr_clear(b);
	if (n == PTHREAD_DESTRUCTOR_ITERATIONS - 1)
		left_behind = shazptr_acquire(&object[3]);
	pthread_setspecific(late_key, (void *)(n + 1)); /* the last registration has no effect */
}

enum before { NOTHING, SECTIONS, GUARDS };

static void *leave_late(void *before)
{
	if ((intptr_t)before == SECTIONS) {
		rcu_read_lock();
		rcu_read_unlock();
	}
	if ((intptr_t)before == GUARDS)
		shazptr_clear(shazptr_acquire(&object[0]));
	pthread_setspecific(late_key, (void *)(uintptr_t)1);
	return NULL;
}

static void guards_in_late_destructors(enum before before)
{
	pthread_t thread;

	late_ok = 0;
	left_behind.ptr = NULL;
	assert_int_equal(pthread_key_create(&late_key, late_destructor), 0);
	thread_must(pthread_create(&thread, NULL, leave_late, (void *)(intptr_t)before));
	pthread_join(thread, NULL);
	pthread_key_delete(late_key);
	assert_in_range(late_ok, 2 * (PTHREAD_DESTRUCTOR_ITERATIONS - 1), 2 * PTHREAD_DESTRUCTOR_ITERATIONS);
	assert_true(ends_with(left_behind, &object[3]));
	assert_true(is_free(SHAZPTR_WILDCARD));
}

static void destructors_of_a_thread_that_used_nothing(void **state)
{
	(void)state;
	guards_in_late_destructors(NOTHING);
}

static void destructors_of_a_thread_that_had_sections(void **state)
{
	(void)state;
	guards_in_late_destructors(SECTIONS);
}

static void destructors_of_a_thread_that_had_guards(void **state)
{
	(void)state;
	guards_in_late_destructors(GUARDS);
}

/* ---- threads that vanish without destructors ---- */

static sem_t ready;

static void *vanish(void *guard)
{
	pthread_detach(pthread_self());
	acquire_and_exit(guard);
	sem_post(&ready);
	syscall(SYS_exit, 0);
	return NULL;
}

static struct shazptr_guard guard_of_the_vanished(void *of)
{
	struct shazptr_guard guard = { NULL, of };
	pthread_t thread;

	sem_init(&ready, 0, 0);
	thread_must(pthread_create(&thread, NULL, vanish, &guard));
	wait_for(&ready);
	return guard;
}

/* Only a waiter for the object of the vanished thread is delayed, and its stall is reported. */
static void wait_for_the_vanished(void)
{
	struct shazptr_guard guard = guard_of_the_vanished(&object[0]);
	struct waiter w;

	waiter_begin(&w, &object[0]);
	must(waiter_is_blocked(&w));
	for (int i = 1; i < 20; i++)
		must(is_free(&object[i]));
	must(use_everything());
	wait_until(stats_now().stalls > 0);
	must(!flag_get(&w.done));
	shazptr_clear(guard);
	waiter_end(&w);
}

static void waits_for_the_vanished_are_reported(void **state)
{
	struct outcome o;

	(void)state;
	run_as("wait_for_the_vanished", "QUIESCE_STALL_MS", "20", &o);
	expect_success(&o);
	assert_non_null(strstr(o.text, "): waiting for "));
	assert_non_null(strstr(o.text, " in a s")); /* slot, or shared slot */
}

static uintptr_t line_of(const uintptr_t *slot)
{
	return (uintptr_t)slot & ~(uintptr_t)127;
}

/* With a line for each thread: one gets the line of the vanished thread, and does not use the slot of its guard. */
static void let_the_line_again(void)
{
	enum { MANY = 150 };
	static struct holder h[MANY];
	struct shazptr_guard guard;
	int heirs = 0;

	must(quiesce_slots() == QUIESCE_SLOTS_THREAD);
	guard = guard_of_the_vanished(&object[0]);
	for (int i = 0; i < MANY; i++) {
		holder_begin(&h[i], &object[i + 1]);
		must(h[i].guard.slot != guard.slot);
		heirs += line_of(h[i].guard.slot) == line_of(guard.slot);
	}
	must(heirs == 1);
	must(ends_with(guard, &object[0]));
	for (int i = 0; i < MANY; i++)
		holder_end(&h[i]);
	must(is_free(SHAZPTR_WILDCARD));
}

static void the_line_of_the_vanished_is_let_again(void **state)
{
	struct outcome o;

	(void)state;
	run_as("let_the_line_again", "QUIESCE_SLOTS", "thread", &o);
	expect_success(&o);
}

/* ---- cancellation ---- */

static struct shazptr_guard cancelled_guard;

static void clear_on_cancel(void *guard)
{
	shazptr_clear(*(struct shazptr_guard *)guard);
}

static void *be_cancelled_inside(void *unused)
{
	cancelled_guard = shazptr_acquire(&object[0]);
	pthread_cleanup_push(clear_on_cancel, &cancelled_guard);
	sem_post(&ready);
	for (;;)
		pause();
	pthread_cleanup_pop(0);
	return unused;
}

static void cancel_of_a_holder_ends_the_wait(void **state)
{
	pthread_t thread;
	struct waiter w;

	(void)state;
	sem_init(&ready, 0, 0);
	thread_must(pthread_create(&thread, NULL, be_cancelled_inside, NULL));
	wait_for(&ready);
	waiter_begin(&w, &object[0]);
	assert_true(waiter_is_blocked(&w));
	pthread_cancel(thread);
	pthread_join(thread, NULL);
	waiter_end(&w);
}

/* A waiter is in lists of other threads: it must stay until its wait has ended. */
static void a_wait_is_no_cancellation_point(void **state)
{
	struct waiter w[2];
	struct holder h;

	(void)state;
	for (int skip = 0; skip < 2; skip++) {
		holder_begin(&h, &object[0]);
		quiesce_set_skip_self_scan(skip);
		for (int i = 0; i < 2; i++) {
			waiter_begin(&w[i], &object[0]);
			assert_true(waiter_is_blocked(&w[i]));
			pthread_cancel(w[i].thread);
			assert_true(waiter_is_blocked(&w[i]));
		}
		holder_end(&h);
		for (int i = 0; i < 2; i++) {
			waiter_end(&w[i]);
			assert_int_equal(flag_get(&w[i].done), 1);
		}
		quiesce_set_skip_self_scan(0);
	}
}

/* ---- waits in strange places ---- */

static struct holder held_for_callback;
static int callback_waits, callback_done;

static void wait_in_callback(struct rcu_head *head)
{
	(void)head;
	flag_set(&callback_waits);
	synchronize_shazptr(&object[0]);
	flag_set(&callback_done);
}

static void a_callback_may_wait(void **state)
{
	static struct rcu_head head;
	uint64_t blocked = stats_now().shazptr_blocked;

	(void)state;
	holder_begin(&held_for_callback, &object[0]);
	call_rcu(&head, wait_in_callback);
	wait_until(stats_now().shazptr_blocked > blocked);
	assert_int_equal(flag_get(&callback_done), 0);
	holder_end(&held_for_callback);
	rcu_barrier();
	assert_int_equal(flag_get(&callback_done), 1);
}

static int nr_stages;

static void one_stage(void)
{
	struct shazptr_guard guard = shazptr_acquire(&object[0]);

	must(is_free(&object[1]));
	must(ends_with(guard, &object[0]));
	must(use_everything());
	nr_stages++;
}

__attribute__((destructor(101))) static void last_stage(void)
{
	if (!role || strcmp(role, "use_at_exit"))
		return;
	one_stage();
	must(quiesce_shutdown(0) == 0);
	one_stage();
	if (nr_stages != 4)
		_exit(4);
}

static void use_at_exit(void)
{
	one_stage();
	atexit(one_stage);
	exit(0);
}

static void waits_after_main(void **state)
{
	struct outcome o;

	(void)state;
	run_as("use_at_exit", "QUIESCE_SLOTS", "auto", &o);
	expect_success(&o);
	assert_int_equal(o.length, 0);
}

/* ---- shutdown beside a waiter ---- */

static void waiters_return_after_a_shutdown(void **state)
{
	struct waiter w[3];
	struct holder h;

	(void)state;
	for (int skip = 0; skip < 2; skip++) {
		quiesce_set_skip_self_scan(skip);
		holder_begin(&h, &object[0]);
		for (int i = 0; i < 3; i++)
			waiter_begin(&w[i], &object[0]);
		for (int i = 0; i < 3; i++)
			assert_true(waiter_is_blocked(&w[i]));
		quiesce_shutdown(1000000);
		for (int i = 0; i < 3; i++)
			assert_true(waiter_is_blocked(&w[i]));
		holder_end(&h);
		for (int i = 0; i < 3; i++)
			waiter_end(&w[i]);
	}
	quiesce_set_skip_self_scan(0);
	assert_int_equal(quiesce_shutdown(0), 0);
	assert_false(stats_now().scan_thread_running);
}

/* ---- signal handlers that come first ---- */

static int stop;
static __thread struct shazptr_guard kept;
static __thread int kept_over;
static int nr_handled, nr_bad;

static void check(struct shazptr_guard guard, const void *of)
{
	/* Relaxed: the guard's own. */
	if ((quiesce_load_relaxed(guard.slot) ^ (uintptr_t)of) << 1)
		count_up(&nr_bad);
}

/* The handler leaves a guard for the thread to clear, once. */
static void on_signal(int sig)
{
	struct shazptr_guard guard = shazptr_acquire(&object[1]);

	(void)sig;
	check(guard, &object[1]);
	if (!kept.ptr && !flag_get(&kept_over))
		kept = shazptr_acquire_detached(&object[2]);
	if (!flag_get(&kept_over))
		check(kept, &object[2]);
	check(guard, &object[1]);
	shazptr_clear(guard);
	count_up(&nr_handled);
}

static void *short_life(void *unused)
{
	struct shazptr_guard guard[3];

	do {
		for (int i = 0; i < 3; i++)
			guard[i] = shazptr_acquire(&object[3 + i]);
		for (int i = 0; i < 3; i++)
			check(guard[i], &object[3 + i]);
		for (int i = 0; i < 3; i++)
			shazptr_clear(guard[i]);
	} while (!flag_get(&stop));
	flag_set(&kept_over);
	shazptr_clear(kept);
	return unused;
}

static void *kill_them(void *thread)
{
	while (!flag_get(&stop)) {
		pthread_t target = quiesce_load_relaxed((pthread_t *)thread); /* Relaxed: joined only after us. */

		pthread_kill(target, SIGUSR1);
	}
	return NULL;
}

static void signals_at_birth_and_death(void **state)
{
	static pthread_t target;
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	pthread_t thread, killer;

	(void)state;
	sigaction(SIGUSR1, &action, NULL);
	for (int i = 0; i < 200; i++) {
		quiesce_store_relaxed(&stop, 0);
		thread_must(pthread_create(&thread, NULL, short_life, NULL));
		quiesce_store_relaxed(&target, thread);
		thread_must(pthread_create(&killer, NULL, kill_them, &target));
		synchronize_shazptr(&object[1]);
		wait_until(flag_get(&nr_handled) > 0);
		flag_set(&stop);
		pthread_join(killer, NULL);
		pthread_join(thread, NULL);
	}
	assert_int_equal(nr_bad, 0);
	assert_true(is_free(SHAZPTR_WILDCARD));
}

/* ---- very many threads, one guard each ---- */

static void lines_are_let_again(void **state)
{
	enum { ROUNDS = 60, AT_ONCE = 50 };
	static struct holder h[AT_ONCE];
	uint32_t lines = 0;

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < AT_ONCE; i++)
			holder_begin(&h[i], &object[i]);
		for (int i = 0; i < AT_ONCE; i++)
			holder_end(&h[i]);
		if (round == 0)
			lines = stats_now().slots_lines;
	}
	/* The CPUs of threads differ from round to round, but lines of 3000 ended threads are reused. */
	assert_in_range(stats_now().slots_lines, 1, lines + 2 * AT_ONCE);
	assert_true(is_free(SHAZPTR_WILDCARD));
}

/* ---- settings ---- */

static void say_slots(void)
{
	static const char *const name[] = { "thread", "cpu_id", "mm_cid" };

	fprintf(stderr, "kind %s\n", name[quiesce_slots()]);
	must(use_everything());
}

static void a_wrong_kind_of_slots_is_reported(void **state)
{
	struct outcome o;

	(void)state;
	run_as("say_slots", "QUIESCE_SLOTS", "nonsense", &o);
	expect_success(&o);
	assert_non_null(strstr(o.text, "quiesce: QUIESCE_SLOTS=nonsense is none of auto, mm_cid, cpu_id, thread; using "));
	assert_int_equal(count_lines(o.text), 2);
	run_as("say_slots", "QUIESCE_SLOTS", "thread", &o);
	expect_success(&o);
	assert_string_equal(o.text, "kind thread\n");
}

static const struct {
	const char *name;
	void (*fn)(void);
} roles[] = {
	{ "wait_for_the_vanished", wait_for_the_vanished },
	{ "let_the_line_again", let_the_line_again },
	{ "use_at_exit", use_at_exit },
	{ "say_slots", say_slots },
};

static int play(const char *name)
{
	role = name;
	alarm(watchdog_seconds() / 2);
	for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++)
		if (!strcmp(roles[i].name, name)) {
			roles[i].fn();
			return 0;
		}
	return 2;
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(guards_outlive_their_threads),
		TEST(destructors_of_a_thread_that_used_nothing),
		TEST(destructors_of_a_thread_that_had_guards),
		TEST(destructors_of_a_thread_that_had_sections),
		TEST(waits_for_the_vanished_are_reported),
		TEST(the_line_of_the_vanished_is_let_again),
		TEST(cancel_of_a_holder_ends_the_wait),
		TEST(a_wait_is_no_cancellation_point),
		TEST(a_callback_may_wait),
		TEST(waits_after_main),
		TEST(waiters_return_after_a_shutdown),
		TEST(lines_are_let_again),
		TEST(a_wrong_kind_of_slots_is_reported),
		TEST(signals_at_birth_and_death),
	};

	if (argc == 3 && !strcmp(argv[1], "--as"))
		return play(argv[2]);
	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
