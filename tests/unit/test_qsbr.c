/* SPDX-License-Identifier: MIT */
/* test_qsbr.c - the RCU whose threads report their quiescent states: for which threads updaters wait. */
#include "reports.h"

#include <quiesce/detail/qsbr.h>

#include "../sanitized.h"

#include <sys/syscall.h>

static void enter(struct stayer *s)
{
	(void)s;
	if (quiesce_qsbr_register(QUIESCE_LAYOUT))
		abort();
}

static void enter_offline(struct stayer *s)
{
	enter(s);
	quiesce__qsbr_offline();
}

static int left;

static void leave_by_state(struct stayer *s)
{
	(void)s;
	flag_set(&left);
	quiesce__qsbr_quiescent_state();
	wait_for(&s->go);
	quiesce_qsbr_unregister();
}

static void leave_by_offline(struct stayer *s)
{
	(void)s;
	flag_set(&left);
	quiesce__qsbr_offline();
	wait_for(&s->go);
	quiesce_qsbr_unregister();
}

static void leave_by_unregister(struct stayer *s)
{
	(void)s;
	flag_set(&left);
	quiesce_qsbr_unregister();
	wait_for(&s->go);
}

/* The reader leaves at the end of its thread. */
static void leave_at_last(struct stayer *s)
{
	(void)s;
	flag_set(&left);
}

static int saw_left[2], nr_over;

static void *waits(void *seen)
{
	quiesce_qsbr_synchronize();
	quiesce_store_relaxed((int *)seen, flag_get(&left)); /* Relaxed: read after the thread has been joined. */
	count_up(&nr_over);
	return NULL;
}

static void waited_for(void (*leave)(struct stayer *), int nr)
{
	uint64_t sleeps = stats_now().sleeps;
	pthread_t updater[2];
	struct stayer s;

	quiesce_store_relaxed(&left, 0); /* Relaxed: threads begin later. */
	quiesce_store_relaxed(&nr_over, 0); /* Relaxed: threads begin later. */
	stayer_begin(&s, enter, leave, NULL);
	for (int i = 0; i < nr; i++)
		thread_must(pthread_create(&updater[i], NULL, waits, &saw_left[i]));
	wait_until(stats_now().sleeps >= sleeps + (uint64_t)nr);
	assert_int_equal(flag_get(&nr_over), 0);
	sem_post(&s.go);
	for (int i = 0; i < nr; i++) {
		pthread_join(updater[i], NULL);
		assert_true(saw_left[i]);
	}
	stayer_end(&s);
}

static void an_online_thread_is_waited_for(void **state)
{
	(void)state;
	waited_for(leave_by_state, 1);
	waited_for(leave_by_offline, 1);
	waited_for(leave_by_unregister, 1);
}

static void two_updaters_wait(void **state)
{
	(void)state;
	waited_for(leave_by_state, 2);
	waited_for(leave_by_offline, 2);
}

static void the_end_of_a_thread_is_its_last_quiescent_state(void **state)
{
	(void)state;
	waited_for(leave_at_last, 2);
}

static void enter_and_leave(struct stayer *s)
{
	enter(s);
	quiesce_qsbr_unregister();
}

static void enter_nothing(struct stayer *s)
{
	(void)s;
}

static void others_are_not_waited_for(void **state)
{
	static void (*const enters[])(struct stayer *) = { enter_offline, enter_and_leave, enter_nothing };
	struct stayer s[3];

	(void)state;
	for (int i = 0; i < 3; i++)
		stayer_begin(&s[i], enters[i], NULL, NULL);
	quiesce_qsbr_synchronize();
	for (int i = 0; i < 3; i++)
		stayer_end(&s[i]);
}

static void a_waiter_is_offline_meanwhile(void **state)
{
	(void)state;
	assert_int_equal(quiesce_qsbr_register(QUIESCE_LAYOUT), 0);
	quiesce_qsbr_synchronize();
	assert_true(quiesce__qsbr_ongoing());
	quiesce__qsbr_offline();
	quiesce_qsbr_synchronize();
	assert_false(quiesce__qsbr_ongoing());
	quiesce_qsbr_unregister();
}

static void only_registered_threads_come_online(void **state)
{
	(void)state;
	assert_false(quiesce__qsbr_ongoing());
	quiesce__qsbr_online();
	assert_false(quiesce__qsbr_ongoing());
	quiesce__qsbr_quiescent_state();
	assert_false(quiesce__qsbr_ongoing());
	assert_int_equal(quiesce_qsbr_register(QUIESCE_LAYOUT), 0);
	assert_true(quiesce__qsbr_ongoing());
	quiesce__qsbr_offline();
	quiesce__qsbr_quiescent_state();
	assert_false(quiesce__qsbr_ongoing());
	quiesce__qsbr_online();
	assert_true(quiesce__qsbr_ongoing());
	quiesce_qsbr_unregister();
	assert_false(quiesce__qsbr_ongoing());
}

/* A thread that registers or comes online once more may still be reading. */
static void once_more_is_no_quiescent_state(void **state)
{
	uint64_t cookie;

	(void)state;
	assert_int_equal(quiesce_qsbr_register(QUIESCE_LAYOUT), 0);
	cookie = quiesce_qsbr_start_poll();
	assert_int_equal(quiesce_qsbr_register(QUIESCE_LAYOUT), 0);
	assert_false(quiesce_qsbr_poll(cookie));
	quiesce__qsbr_online();
	assert_false(quiesce_qsbr_poll(cookie));
	quiesce__qsbr_quiescent_state();
	assert_true(quiesce_qsbr_poll(cookie));
	quiesce_qsbr_unregister();
}

static void cookies(void **state)
{
	uint64_t first, second;
	struct stayer s;

	(void)state;
	first = quiesce_qsbr_start_poll();
	assert_true(quiesce_qsbr_poll(first));
	stayer_begin(&s, enter, NULL, NULL);
	second = quiesce_qsbr_start_poll();
	assert_false(quiesce_qsbr_poll(second));
	assert_true(quiesce_qsbr_poll(first));
	stayer_end(&s);
	assert_true(quiesce_qsbr_poll(second));
	first = quiesce_qsbr_start_poll();
	quiesce_qsbr_synchronize();
	assert_true(quiesce_qsbr_poll(first));
}

/* ---- a stall ---- */

static void a_thread_that_stays_online_is_reported(void **state)
{
	static void (*const call)(void) = quiesce_qsbr_synchronize;
	pthread_t thread;
	struct stayer s;
	struct kept k;

	(void)state;
	reports_begin();
	stayer_begin(&s, enter, NULL, NULL);
	call_begin(&thread, &call);
	k = wait_for_report("urcu_qsbr_synchronize_rcu", "waiting for ");
	must_say(&k, "thread %d (stayer), ", (int)s.tid);
	must_say(&k, ", which is online and reports no quiescent state");
	assert_int_equal(k.report.holder, s.tid);
	assert_true(k.report.waited_ns >= STALL_NS);
	stayer_end(&s);
	pthread_join(thread, NULL);
	reports_end();
}

/* ---- fork ---- */

#if !QUIESCE_TSAN
static void in_the_child(void)
{
	uint64_t cookie;

	if (!quiesce__qsbr_ongoing())
		_exit(3);
	quiesce_qsbr_synchronize();
	cookie = quiesce_qsbr_start_poll();
	if (quiesce_qsbr_poll(cookie))
		_exit(4);
	quiesce__qsbr_quiescent_state();
	if (!quiesce_qsbr_poll(cookie))
		_exit(5);
}

static void a_child_has_only_itself(void **state)
{
	struct outcome o;
	struct stayer s;

	(void)state;
	stayer_begin(&s, enter, NULL, NULL);
	assert_int_equal(quiesce_qsbr_register(QUIESCE_LAYOUT), 0);
	in_child(in_the_child, &o);
	assert_string_equal(o.text, "");
	assert_int_equal(o.status, 0);
	quiesce_qsbr_unregister();
	stayer_end(&s);
}
#endif

/* ---- threads that are gone ---- */

enum { NR_GONE = 100 };

static sem_t entered;

/* The thread vanishes without its destructors, as one of another run-time library may. */
static void *vanish_online(void *unused)
{
	(void)unused;
	pthread_detach(pthread_self());
	enter(NULL);
	sem_post(&entered);
	syscall(SYS_exit, 0);
	return NULL;
}

static void vanished_delay_no_wait(void)
{
	uint64_t sleeps;
	pthread_t thread;

	sem_init(&entered, 0, 0);
	for (int i = 0; i < NR_GONE; i++) {
		thread_must(pthread_create(&thread, NULL, vanish_online, NULL));
		wait_for(&entered);
	}
	sleeps = stats_now().sleeps;
	quiesce_qsbr_synchronize();
	_exit(stats_now().sleeps - sleeps < NR_GONE / 2 ? 0 : 3); /* all are given up in the first second, not one in each second */
}

static void vanished_threads_are_given_up_together(void **state)
{
	struct outcome o;

	(void)state;
	in_child(vanished_delay_no_wait, &o);
	assert_int_equal(o.status, 0);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(an_online_thread_is_waited_for), TEST(two_updaters_wait), TEST(the_end_of_a_thread_is_its_last_quiescent_state),
		TEST(others_are_not_waited_for), TEST(a_waiter_is_offline_meanwhile), TEST(only_registered_threads_come_online),
		TEST(once_more_is_no_quiescent_state), TEST(cookies),
		TEST(vanished_threads_are_given_up_together), TEST(a_thread_that_stays_online_is_reported),
#if !QUIESCE_TSAN
		TEST(a_child_has_only_itself),
#endif
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
