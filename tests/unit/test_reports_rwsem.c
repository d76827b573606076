/* SPDX-License-Identifier: MIT */
/* test_reports_rwsem.c - reports of lasting waits for a percpu_rw_semaphore: waits for readers, for a writer, and in the queue. */
#include "reports.h"
#include "rwsems.h"

DEFINE_STATIC_PERCPU_RWSEM(sem);

static void read_enter(struct stayer *s)
{
	(void)s;
	percpu_down_read(&sem);
}

static void read_leave(struct stayer *s)
{
	(void)s;
	percpu_up_read(&sem);
}

static void write_enter(struct stayer *s)
{
	(void)s;
	percpu_down_write(&sem);
}

static void write_leave(struct stayer *s)
{
	(void)s;
	percpu_up_write(&sem);
}

static void must_be_of_sem(const struct kept *k)
{
	assert_int_equal(k->report.kind, QUIESCE_REPORT_STALL);
	assert_ptr_equal(k->report.object, &sem);
	assert_true(k->report.waited_ns >= STALL_NS);
	must_say(k, "%s(%p): waiting for ", k->call, (void *)&sem);
}

/* A writer that waits for readers is reported, with the waiters that queue behind it. */
static void a_writer_that_waits_for_readers_is_reported(void **state)
{
	struct user writer, reader[2], next;
	struct stayer s;
	struct kept k;

	(void)state;
	reports_begin();
	stayer_begin(&s, read_enter, read_leave, NULL);
	user_drains(&writer, &sem, 0);
	user_queued(&reader[0], &sem, false, 0);
	user_queued(&reader[1], &sem, false, 0);
	user_queued(&next, &sem, true, 0);
	k = wait_for_report("percpu_down_write", "; 2 readers and 1 writers are queued");
	k = wait_for_report("percpu_down_write", " ms for 1 readers");
	must_be_of_sem(&k);
	must_say_since(&k);
#ifdef QUIESCE_DEBUG
	assert_int_equal(k.report.holder, s.tid);
	must_say(&k, ": thread %d (stayer), ", (int)s.tid);
#else
	assert_int_equal(k.report.holder, 0);
	must_say(&k, "QUIESCE_DEBUG");
#endif
	stayer_end(&s);
	user_leave(&writer);
	user_leave(&reader[0]);
	user_leave(&reader[1]);
	user_leave(&next);
	reports_end();
}

/* The first waiter behind a writer reports the queue, and names the writer. */
static void a_reader_behind_a_writer_is_reported(void **state)
{
	struct user reader[3], next;
	struct stayer s;
	struct kept k;

	(void)state;
	reports_begin();
	stayer_begin(&s, write_enter, write_leave, NULL);
	user_queued(&reader[0], &sem, false, 0);
	user_queued(&reader[1], &sem, false, 0);
	user_queued(&next, &sem, true, 0);
	user_queued(&reader[2], &sem, false, 0);
	k = wait_for_report("percpu_down_read", "; 3 readers and 1 writers are queued");
	must_be_of_sem(&k);
	assert_int_equal(k.report.holder, s.tid);
	must_say(&k, " ms for a writer, thread %d (stayer), ", (int)s.tid);
	must_say_since(&k);
	wait_until(nr_of_reports() >= 4);
	assert_true(all_reported_by(k.reported_by));
	stayer_end(&s);
	user_leave(&reader[0]);
	user_leave(&reader[1]);
	user_leave(&next);
	user_leave(&reader[2]);
	reports_end();
}

static void a_writer_behind_a_writer_is_reported(void **state)
{
	struct user next;
	struct stayer s;
	struct kept k;

	(void)state;
	reports_begin();
	stayer_begin(&s, write_enter, write_leave, NULL);
	user_queued(&next, &sem, true, 0);
	k = wait_for_report("percpu_down_write", "; 0 readers and 1 writers are queued");
	must_be_of_sem(&k);
	assert_int_equal(k.report.holder, s.tid);
	stayer_end(&s);
	user_leave(&next);
	reports_end();
}

/* A waiter behind a writer that waits itself reports both. */
static void a_reader_behind_a_waiting_writer_is_reported(void **state)
{
	struct user writer, reader;
	struct stayer s;
	struct kept k;

	(void)state;
	reports_begin();
	stayer_begin(&s, read_enter, read_leave, NULL);
	user_drains(&writer, &sem, 0);
	user_queued(&reader, &sem, false, 0);
	k = wait_for_report("percpu_down_read", ", which waits for 1 readers");
	must_be_of_sem(&k);
	assert_int_not_equal(k.report.holder, s.tid);
	must_say(&k, " ms for a writer, thread %u (", k.report.holder);
	stayer_end(&s);
	user_leave(&writer);
	user_leave(&reader);
	reports_end();
}

#if !defined(QUIESCE_DEBUG) /* a debug build reports the unlock */
static void unlock_twice(void)
{
	struct user writer;

	percpu_down_read(&sem);
	percpu_up_read(&sem);
	percpu_up_read(&sem);
	reports_begin();
	user_begin(&writer, &sem, true, 0);
	wait_for_report("percpu_down_write", "there are 1 more unlocks than locks");
}

/* The hook ends the child: the wait never ends. */
static void expect_self(const struct quiesce_report *report)
{
	must(strstr(report->text, ", the one that waits"));
	must(report->holder == (uint32_t)my_tid());
	_exit(0);
}

static void wait_for_oneself(void)
{
	quiesce_set_report_hook(expect_self);
	quiesce_set_stall_timeout(STALL_NS);
	percpu_down_write(&sem);
	percpu_down_read(&sem);
}

static void a_caller_that_waits_for_itself_is_reported(void **state)
{
	(void)state;
	succeeds(wait_for_oneself);
}

static void more_unlocks_than_locks_are_reported_as_such(void **state)
{
	(void)state;
	succeeds(unlock_twice);
}
#endif

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(a_writer_that_waits_for_readers_is_reported),
		TEST(a_reader_behind_a_writer_is_reported),
		TEST(a_writer_behind_a_writer_is_reported),
		TEST(a_reader_behind_a_waiting_writer_is_reported),
#if !defined(QUIESCE_DEBUG)
		TEST(more_unlocks_than_locks_are_reported_as_such),
		TEST(a_caller_that_waits_for_itself_is_reported),
#endif
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
