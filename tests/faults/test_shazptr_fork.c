/* SPDX-License-Identifier: MIT */
/* test_shazptr_fork.c - hazard pointers across forks: the owners of guards, and the thread that scans. */
#include "children.h"
#include "holders.h"
#include "use.h"

#include <sched.h>

static int object[200];

/* Check that guards work, and waits that use the scan thread. */
static void guards_work(void)
{
	struct shazptr_guard guard = shazptr_acquire(&object[0]);

	must(is_free(&object[1]));
	must(ends_with(guard, &object[0]));
	must(use_everything());
	must(use_with_threads(2, 2));
}

static void child_has_a_scan_of_its_own(void)
{
	must(!stats_now().scan_thread_running);
	guards_work();
	must(stats_now().scan_thread_running);
	must(quiesce_shutdown(0) == 0);
	must(!stats_now().scan_thread_running);
}

/* ---- guards of other threads ---- */

enum { HOLDERS = 24, NESTED = 100 };

static void nothing_is_protected(void)
{
	for (int i = 0; i < HOLDERS; i++)
		must(is_free(&object[i]));
	must(is_free(SHAZPTR_WILDCARD));
	child_has_a_scan_of_its_own();
}

static void guards_of_others_stay_in_the_parent(void **state)
{
	static struct holder h[HOLDERS];

	(void)state;
	for (int i = 0; i < HOLDERS; i++)
		holder_begin(&h[i], i ? &object[i] : SHAZPTR_WILDCARD);
	in_good_child(nothing_is_protected);
	for (int i = 1; i < HOLDERS; i++)
		holder_end(&h[i]);
	assert_true(ends_with(h[0].guard, &object[150]));
	h[0].guard.ptr = NULL;
	holder_end(&h[0]);
}

/* ---- guards of the thread that forks ---- */

static struct shazptr_guard inherited[NESTED];

static void inherit(void)
{
	for (int i = 0; i < NESTED; i++)
		inherited[i] = shazptr_acquire(&object[i]);
}

static void clear_inherited(void)
{
	for (int i = 0; i < NESTED; i++)
		shazptr_clear(inherited[i]);
}

static void clear_and_use(void)
{
	clear_inherited();
	guards_work();
}

/* A clear of an inherited guard does not affect guards that were claimed since. */
static void claim_then_clear(void)
{
	static struct shazptr_guard fresh[NESTED];

	for (int i = 0; i < NESTED; i++)
		must(is_free(&object[i]));
	for (int i = 0; i < NESTED; i++)
		fresh[i] = shazptr_acquire(&object[i]);
	clear_inherited();
	for (int i = 0; i < NESTED; i += 9)
		must(ends_with(fresh[i], &object[i]));
	for (int i = 0; i < NESTED; i++)
		if (i % 9)
			shazptr_clear(fresh[i]);
	must(is_free(SHAZPTR_WILDCARD));
	guards_work();
}

static void still_protected(void)
{
	for (int i = 0; i < NESTED; i += 9)
		assert_true(ends_with(inherited[i], &object[i]));
	for (int i = 0; i < NESTED; i++)
		if (i % 9)
			shazptr_clear(inherited[i]);
	assert_true(is_free(SHAZPTR_WILDCARD));
}

static void guards_held_across_fork_protect_in_the_parent(void **state)
{
	(void)state;
	inherit();
	in_good_child(guards_work);
	in_good_child(clear_and_use);
	in_good_child(claim_then_clear);
	still_protected();
}

/* A clear takes the slow path while a waiter scans. */
static void guards_are_inherited_while_a_caller_waits(void **state)
{
	struct waiter w;

	(void)state;
	inherit();
	waiter_begin(&w, &object[0]);
	assert_true(waiter_is_blocked(&w));
	in_good_child(clear_and_use);
	in_good_child(claim_then_clear);
	assert_true(waiter_is_blocked(&w));
	shazptr_clear(inherited[0]);
	waiter_end(&w);
	inherited[0] = shazptr_acquire(&object[0]);
	still_protected();
}

/* ---- generations ---- */

static void each_generation(int depth)
{
	struct shazptr_guard old[NESTED];
	int status;
	pid_t pid;

	memcpy(old, inherited, sizeof old);
	inherit();
	pid = depth ? fork() : -1;
	if (pid == 0) {
		alarm(watchdog_seconds() / 3);
		each_generation(depth - 1);
		_exit(0);
	}
	must(!depth || (waitpid(pid, &status, 0) == pid && exited_with(status, 0)));
	for (int i = 0; i < NESTED; i++)
		shazptr_clear(old[i]);
	must(ends_with(inherited[33], &object[33]));
	inherited[33].ptr = NULL;
	clear_inherited();
	guards_work();
}

static void three_generations(void)
{
	each_generation(3);
}

static void each_generation_clears_what_it_inherited(void **state)
{
	(void)state;
	inherit();
	in_good_child(three_generations);
	still_protected();
}

/* ---- while others wait ---- */

static void fork_while_the_scan_thread_waits(void **state)
{
	struct waiter w[3];
	struct holder h;

	(void)state;
	holder_begin(&h, &object[0]);
	for (int i = 0; i < 3; i++)
		waiter_begin(&w[i], &object[0]);
	for (int i = 0; i < 3; i++)
		assert_true(waiter_is_blocked(&w[i]));
	assert_true(stats_now().scan_thread_running);
	for (int i = 0; i < 5; i++)
		in_good_child(child_has_a_scan_of_its_own);
	for (int i = 0; i < 3; i++)
		assert_int_equal(flag_get(&w[i].done), 0);
	holder_end(&h);
	for (int i = 0; i < 3; i++)
		waiter_end(&w[i]);
}

static int busy_stop;

static void *busy_reader(void *unused)
{
	(void)unused;
	for (int i = 0; !flag_get(&busy_stop); i++) {
		use_guards();
		if (i % 64 == 0)
			short_rest();
	}
	return NULL;
}

static void *busy_updater(void *skip)
{
	for (int i = 0; !flag_get(&busy_stop); i++) {
		use_replace_single(skip != NULL);
		if (i % 64 == 0)
			short_rest();
	}
	return NULL;
}

static void fork_anywhere_in_claims_and_waits(void **state)
{
	pthread_t thread[4];

	(void)state;
	threads_begin(thread, 2, busy_reader, NULL);
	for (int i = 2; i < 4; i++)
		thread_must(pthread_create(&thread[i], NULL, busy_updater, i == 3 ? thread : NULL));
	for (int i = 0; i < 10; i++)
		in_good_child(guards_work);
	flag_set(&busy_stop);
	threads_end(thread, 4);
	assert_true(use_everything());
}

/* ---- in a signal handler that interrupts claims ---- */

static void claims_in_the_child(void)
{
	struct shazptr_guard guard[NESTED];

	for (int round = 0; round < 20; round++)
		for (int i = 0; i < NESTED; i++) {
			guard[i] = shazptr_acquire(&object[i]);
			if (i % 2)
				shazptr_clear(guard[i]);
		}
	must(ends_with(shazptr_acquire(&object[1]), &object[1]));
	must(use_everything());
}

static void claim_once(void)
{
	struct shazptr_guard guard[3];

	for (int i = 0; i < 3; i++)
		guard[i] = shazptr_acquire(&object[i]);
	for (int i = 0; i < 3; i++)
		shazptr_clear(guard[i]);
}

static void fork_in_a_handler_that_interrupts_a_claim(void **state)
{
	(void)state;
	fork_in_handlers(claim_once, claims_in_the_child);
	assert_true(use_everything());
}

/* ---- forks without handlers ---- */

static void first_wait_for_anothers(void)
{
	must(is_free(&object[0]));
	guards_work();
}

static void first_wait_for_all(void)
{
	must(is_free(SHAZPTR_WILDCARD));
	guards_work();
}

static void first_clear(void)
{
	clear_inherited();
	must(is_free(SHAZPTR_WILDCARD));
	guards_work();
}

static void a_raw_clone_has_no_guards(void **state)
{
	static void (*const fn[])(void) = { first_wait_for_anothers, first_wait_for_all, first_clear };
	struct waiter w;
	struct holder h;

	(void)state;
	holder_begin(&h, &object[0]);
	inherit();
	waiter_begin(&w, &object[0]);
	assert_true(waiter_is_blocked(&w));
	for (size_t i = 0; i < sizeof fn / sizeof *fn; i++) {
		int status = -1;
		pid_t pid = raw_clone();

		if (pid == 0) {
			alarm(watchdog_seconds() / 3);
			fn[i]();
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
	assert_int_equal(flag_get(&w.done), 0);
	holder_end(&h);
	still_protected();
	waiter_end(&w);
}

/* ---- a daemon ---- */

static int daemon_pipe[2];

static void become_daemon(void)
{
	char ok = 'y';

	must(daemon(1, 1) == 0);
	alarm(watchdog_seconds() / 3);
	child_has_a_scan_of_its_own();
	must(write(daemon_pipe[1], &ok, 1) == 1);
}

static void a_daemon_has_a_scan_thread_of_its_own(void **state)
{
	char reported = '?';

	(void)state;
	quiesce_set_skip_self_scan(1);
	assert_true(is_free(&object[0]));
	quiesce_set_skip_self_scan(0);
	assert_true(stats_now().scan_thread_running);
	assert_int_equal(pipe(daemon_pipe), 0);
	in_good_child(become_daemon);
	close(daemon_pipe[1]);
	assert_int_equal(read(daemon_pipe[0], &reported, 1), 1);
	assert_int_equal(reported, 'y');
	close(daemon_pipe[0]);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(guards_of_others_stay_in_the_parent),
		TEST(guards_held_across_fork_protect_in_the_parent),
		TEST(guards_are_inherited_while_a_caller_waits),
		TEST(each_generation_clears_what_it_inherited),
		TEST(fork_while_the_scan_thread_waits),
		TEST(fork_anywhere_in_claims_and_waits),
		TEST(fork_in_a_handler_that_interrupts_a_claim),
		TEST(a_raw_clone_has_no_guards),
		TEST(a_daemon_has_a_scan_thread_of_its_own),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
