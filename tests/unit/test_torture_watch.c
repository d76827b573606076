/* SPDX-License-Identifier: MIT */
/* test_torture_watch.c - the watchdog of torture: it counts the turns of readers, not seconds, and ends each hang. */
#include "torture_watch.h"

#include "testing.h"

#define READERS 64
#define POLLS_PER_S (1000000000ull / WATCH_POLL_NS)

static uint64_t before[READERS], reads[READERS];
static struct torture_watch watch;
static struct torture_watched writer;
static uint64_t now;

static int begin(void **state)
{
	(void)state;
	memset(before, 0, sizeof(before));
	memset(reads, 0, sizeof(reads));
	watch = (struct torture_watch){ .reads = before };
	writer = (struct torture_watched){ 0 };
	now = 1;
	return 0;
}

/* One poll, during which the readers from @first to before @end finished a section. */
static bool poll_once(uint32_t active, uint32_t first, uint32_t end, uint64_t ns)
{
	now += ns;
	for (uint32_t i = first; i < end; i++)
		reads[i]++;
	torture_watch_poll(&watch, reads, READERS, active, now);
	return torture_watch_hangs(&watch, &writer, 7, false);
}

static void test_a_writer_hangs_while_readers_go_on(void **state)
{
	int polls = 0;

	(void)state;
	while (!poll_once(READERS, 0, READERS, WATCH_POLL_NS))
		assert_in_range(++polls, 1, WATCH_TURNS);
	assert_int_equal(polls, WATCH_TURNS);
}

/* One reader in each poll: a turn takes 33 polls, of 60 ms each.  After 100 s the writer is only late. */
static void test_a_starved_machine_is_late(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 1600; i++)
		assert_false(poll_once(READERS, i % READERS, i % READERS + 1, 60000000));
	assert_in_range(watch.turns, 1600 / 34, 1600 / 32);
}

static void test_a_starved_machine_hangs_in_the_end(void **state)
{
	uint32_t i = 0;

	(void)state;
	while (!poll_once(READERS, i % READERS, i % READERS + 1, 60000000))
		i++;
	assert_in_range((now - 1) / 1000000000, WATCH_MAX_S, WATCH_MAX_S + 1);
}

/* A reader that hangs with the writer does not keep the turns back. */
static void test_one_reader_hangs_too(void **state)
{
	int polls = 0;

	(void)state;
	while (!poll_once(READERS, 1, READERS, WATCH_POLL_NS))
		assert_in_range(++polls, 1, WATCH_TURNS);
}

/* The other half goes on, as a starved machine's readers do: there are no turns, and seconds decide. */
static void test_half_of_the_readers_hang_too(void **state)
{
	(void)state;
	while (!poll_once(READERS, 0, READERS / 2, WATCH_POLL_NS))
		assert_int_equal(watch.turns, 0);
	assert_int_equal((now - 1) / 1000000000, WATCH_MAX_S);
}

/* One more goes on, and there are turns. */
static void test_less_than_half_hang_too(void **state)
{
	int polls = 0;

	(void)state;
	while (!poll_once(READERS, 0, READERS / 2 + 1, WATCH_POLL_NS))
		assert_in_range(++polls, 1, WATCH_TURNS);
	assert_int_equal(polls, WATCH_TURNS);
}

static void test_all_readers_hang_too(void **state)
{
	int polls = 0;

	(void)state;
	while (!poll_once(READERS, 0, 0, WATCH_POLL_NS))
		assert_in_range(++polls, 1, WATCH_TURNS + 1);
}

/* The writer went on just before: no reader finished a section for long, but it did. */
static void test_progress_begins_anew(void **state)
{
	(void)state;
	for (int i = 0; i < WATCH_TURNS - 1; i++)
		assert_false(poll_once(READERS, 0, READERS, WATCH_POLL_NS));
	assert_false(torture_watch_hangs(&watch, &writer, 8, false));
	writer.progress = 7; /* what poll_once() reports */
	for (int i = 0; i < WATCH_TURNS - 1; i++)
		assert_false(poll_once(READERS, 0, READERS, WATCH_POLL_NS));
	assert_true(poll_once(READERS, 0, READERS, WATCH_POLL_NS));
}

static void test_a_thread_that_rests_does_not_hang(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 200 * POLLS_PER_S; i++) {
		now += WATCH_POLL_NS;
		torture_watch_poll(&watch, reads, READERS, READERS, now);
		assert_false(torture_watch_hangs(&watch, &writer, 7, true));
	}
}

/* A process is stopped for an hour and continued: what counts is a second, and the polls after it. */
static void test_a_stopped_process_does_not_hang(void **state)
{
	int polls = 0;

	(void)state;
	for (int i = 0; i < 5; i++)
		assert_false(poll_once(READERS, 0, READERS, WATCH_POLL_NS));
	assert_false(poll_once(READERS, 0, READERS, 3600000000000));
	assert_int_equal(watch.ns, 4ull * WATCH_POLL_NS + WATCH_STEP_NS);
	while (!poll_once(READERS, 0, READERS, WATCH_POLL_NS))
		assert_in_range(++polls, 1, WATCH_TURNS);
	assert_int_equal(polls, WATCH_TURNS - 6);
}

/* One poll each hour, as where a machine sleeps: a wait is a hang only after as many polls as there are seconds in WATCH_MAX_S. */
static void test_a_machine_that_sleeps_hangs_in_the_end(void **state)
{
	int polls = 0;

	(void)state;
	while (!poll_once(READERS, 0, 1, 3600000000000))
		assert_in_range(++polls, 1, WATCH_MAX_S);
	assert_int_equal(polls, WATCH_MAX_S);
}

static bool is_still(uint64_t activity)
{
	now += WATCH_POLL_NS;
	return torture_watch_is_still(&watch, &writer, activity, now);
}

/* An end in which something is done at each poll, or now and then, may take an hour. */
static void test_a_long_end_does_not_hang(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 3600 * POLLS_PER_S; i++)
		assert_false(is_still(i < 1800 * POLLS_PER_S ? i : i / (WATCH_TURNS - 1)));
}

static void test_an_end_without_activity_hangs(void **state)
{
	int polls = 0;

	(void)state;
	for (uint64_t i = 0; i < 200 * POLLS_PER_S; i++)
		assert_false(is_still(i));
	while (!is_still(200 * POLLS_PER_S - 1))
		assert_in_range(++polls, 1, WATCH_TURNS);
	assert_int_equal(polls, WATCH_TURNS - 1);
}

/* Readers that are not active do not count. */
static void test_active_readers_make_turns(void **state)
{
	(void)state;
	assert_false(poll_once(1, 1, READERS, WATCH_POLL_NS));
	assert_int_equal(watch.turns, 0);
	assert_false(poll_once(1, 0, 1, WATCH_POLL_NS));
	assert_int_equal(watch.turns, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_a_writer_hangs_while_readers_go_on, begin),
		cmocka_unit_test_setup(test_a_starved_machine_is_late, begin),
		cmocka_unit_test_setup(test_a_starved_machine_hangs_in_the_end, begin),
		cmocka_unit_test_setup(test_one_reader_hangs_too, begin),
		cmocka_unit_test_setup(test_half_of_the_readers_hang_too, begin),
		cmocka_unit_test_setup(test_less_than_half_hang_too, begin),
		cmocka_unit_test_setup(test_all_readers_hang_too, begin),
		cmocka_unit_test_setup(test_progress_begins_anew, begin),
		cmocka_unit_test_setup(test_a_thread_that_rests_does_not_hang, begin),
		cmocka_unit_test_setup(test_a_stopped_process_does_not_hang, begin),
		cmocka_unit_test_setup(test_a_machine_that_sleeps_hangs_in_the_end, begin),
		cmocka_unit_test_setup(test_a_long_end_does_not_hang, begin),
		cmocka_unit_test_setup(test_an_end_without_activity_hangs, begin),
		cmocka_unit_test_setup(test_active_readers_make_turns, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
