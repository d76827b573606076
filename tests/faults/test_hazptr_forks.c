/* SPDX-License-Identifier: MIT */
/* test_hazptr_forks.c - forks at any time: beside threads that retire, in callbacks and handlers, without handlers. */
#include "children.h"
#include "hazptr_holders.h"

/* Fork by @make; the child runs @fn and has to end successfully. */
static int child_ends_well(pid_t (*make)(void), void (*fn)(void))
{
	int status = status_of_child(make, fn);

	if (!exited_with(status, 0))
		print_error("child: wait status %#x\n", (unsigned int)status);
	return exited_with(status, 0);
}

/* ---- beside threads that retire and reclaim as fast as they can ---- */

#define NR_THREADS 3
#define NR_OWN 6000 /* number of objects, which fill several batches */

struct cell {
	struct hazptr_head hazptr;
	int retired, run;
};

static struct cell cell[NR_THREADS][NR_OWN];
static int stop, nr_rounds;

static void run_cell(struct hazptr_head *head)
{
	count_up(&((struct cell *)(void *)head)->run);
}

/* Each cell whose callback has run is retired once more, repeatedly; all are protected now and then. */
static void *retire_cells(void *arg)
{
	struct cell *own = arg;
	hazptr_t *slot = hazptr_alloc(NULL);

	for (int round = 0; !flag_get(&stop); round++) {
		protect_in(slot, &own[round % NR_OWN]);
		for (int i = 0; i < NR_OWN; i++) {
			if (flag_get(&own[i].run) != flag_get(&own[i].retired))
				continue;
			count_up(&own[i].retired);
			call_hazptr(&own[i].hazptr, run_cell);
		}
		count_up(&nr_rounds);
		if (round % 16 == 0)
			short_rest();
	}
	hazptr_free(NULL, slot);
	return NULL;
}

static void *barriers(void *unused)
{
	while (!flag_get(&stop)) {
		hazptr_barrier();
		short_rest();
	}
	return unused;
}

/* Check that no callback ran twice, and that no object is lost but those that a thread was about to retire. */
static void all_have_run(void)
{
	int missing = 0;

	hazptr_barrier();
	for (int t = 0; t < NR_THREADS; t++)
		for (int i = 0; i < NR_OWN; i++) {
			must(cell[t][i].run <= cell[t][i].retired);
			missing += cell[t][i].retired - cell[t][i].run;
		}
	must(missing <= NR_THREADS);
	must(stats_now().hazptr_retired == stats_now().hazptr_reclaimed);
}

static void forks_beside_threads_that_retire(void **state)
{
	pthread_t thread[NR_THREADS], waits;

	(void)state;
	quiesce_store_relaxed(&stop, 0);
	for (int i = 0; i < NR_THREADS; i++)
		thread_must(pthread_create(&thread[i], NULL, retire_cells, cell[i]));
	thread_must(pthread_create(&waits, NULL, barriers, NULL));
	wait_until(flag_get(&nr_rounds) > NR_THREADS);
	for (int i = 0; i < 100; i++)
		assert_true(child_ends_well(fork, all_have_run));
	flag_set(&stop);
	threads_end(thread, NR_THREADS);
	pthread_join(waits, NULL);
	all_have_run();
}

/* ---- callbacks that do not wait are never left half done in a child ---- */

#define NR_HALVES 3000

static int halves;

static void two_halves(struct hazptr_head *head)
{
	struct timespec rest = { .tv_nsec = 50000 };

	(void)head;
	count_up(&halves);
	nanosleep(&rest, NULL);
	count_up(&halves);
}

/* One sweep of these objects takes longer than the time limit of a fork. */
static void *retire_halves(void *unused)
{
	static struct hazptr_head head[NR_HALVES];

	for (int i = 0; i < NR_HALVES; i++)
		call_hazptr(&head[i], two_halves);
	hazptr_barrier();
	flag_set(&stop);
	return unused;
}

static uint64_t fork_begun;
static int nr_in_time;

static pid_t timed_fork(void)
{
	pid_t pid;

	fork_begun = now_ns();
	pid = fork();
	nr_in_time += in_time(fork_begun);
	return pid;
}

static void is_whole(void)
{
	must(!in_time(fork_begun) || flag_get(&halves) % 2 == 0);
}

static void fork_beside_halves(void)
{
	pthread_t thread;

	quiesce_store_relaxed(&stop, 0);
	quiesce_store_relaxed(&halves, 0);
	thread_must(pthread_create(&thread, NULL, retire_halves, NULL));
	wait_until(flag_get(&halves) > 0);
	while (!flag_get(&stop))
		assert_true(child_ends_well(timed_fork, is_whole));
	pthread_join(thread, NULL);
	assert_int_equal(halves, 2 * NR_HALVES);
}

static void forks_cut_no_callback(void **state)
{
	(void)state;
	do /* a fork that never gets between two callbacks lasts until the watchdog ends the test */
		fork_beside_halves();
	while (nr_in_time <= 3);
}

/* ---- in callbacks ---- */

#define NR_AFTER 200

static struct thing after[NR_AFTER];
static int report[2];
static int nr_last; /* threads that found all callbacks run, in this process */

static void uses_and_ends(void)
{
	struct thing t = { .id = 0 };
	hazptr_t *slot = slot_with(NULL, &t);

	synchronize_hazptr(&after[0]);
	thing_retire(&t);
	hazptr_free(NULL, slot);
}

static void fork_and_end(struct hazptr_head *head)
{
	nr_bad_children += !child_ends_well(fork, uses_and_ends);
	thing_run(head);
}

/* Report the process whose last callback this is, once: two threads may have run the last two. */
static void report_if_last(void)
{
	char what = getpid() == first_process ? 'p' : 'c';

	if (things_run(after, NR_AFTER) != NR_AFTER || quiesce_fetch_add_relaxed(&nr_last, 1)) /* Relaxed: a count. */
		return;
	must(write(report[1], &what, 1) == 1);
	if (what == 'c')
		_exit(0);
}

/* The child returns from the callback, too, and continues its thread's work.  The fork may have waited for all others, which another
 * thread ran. */
static void fork_and_return(struct hazptr_head *head)
{
	if (fork() == 0)
		alarm(watchdog_seconds() / 3);
	thing_run(head);
	report_if_last();
}

static void report_process(struct hazptr_head *head)
{
	thing_run(head);
	report_if_last();
}

static void retire_after(void (*first)(struct hazptr_head *), void (*then)(struct hazptr_head *))
{
	memset(after, 0, sizeof after);
	for (int i = 0; i < NR_AFTER; i++)
		call_hazptr(&after[i].hazptr, i == NR_AFTER / 2 ? first : then);
}

static void forks_in_callbacks(void **state)
{
	(void)state;
	for (int how = 0; how < 3; how++) {
		retire_after(fork_and_end, thing_run);
		if (how == 0)
			hazptr_barrier(); /* the barrier runs the callbacks */
		else if (how == 1)
			retire_plenty();
		wait_until(things_run(after, NR_AFTER) == NR_AFTER);
	}
	assert_int_equal(nr_bad_children, 0);
	assert_true(hazptrs_work());
}

static void a_forking_callback_returns_in_both(void **state)
{
	char seen[2] = "";

	(void)state;
	first_process = getpid();
	assert_int_equal(pipe(report), 0);
	for (int how = 0; how < 3; how++) {
		quiesce_store_relaxed(&nr_last, 0); /* Relaxed: no callback is left. */
		retire_after(fork_and_return, report_process);
		if (how == 0)
			hazptr_barrier();
		else if (how == 1)
			retire_plenty();
		for (int i = 0; i < 2; i++)
			assert_int_equal(read(report[0], &seen[i], 1), 1);
		assert_int_equal(seen[0] + seen[1], 'p' + 'c');
		wait(NULL);
		wait_until(things_run(after, NR_AFTER) == NR_AFTER);
	}
	assert_true(hazptrs_work());
}

/* ---- in a signal handler that interrupts readers ---- */

/* One round of a reader, also if a fork came in between. */
static void read_once(void)
{
	struct thing *current = &after[1];
	struct hazptr_context ctx;
	hazptr_t *slot[10];

	if (init_hazptr_context(&ctx))
		abort();
	for (int i = 0; i < 10; i++) {
		slot[i] = hazptr_alloc(i < 8 ? NULL : &ctx);
		if (hazptr_protect(slot[i], &current) != current || slot_value(slot[i]) != (uintptr_t)current)
			abort();
	}
	for (int i = 0; i < 10; i++)
		if (slot_value(slot[i]) != (uintptr_t)current)
			abort();
	for (int i = 0; i < 10; i++)
		hazptr_free(NULL, slot[i]);
	cleanup_hazptr_context(&ctx);
}

static void read_often(void)
{
	for (int i = 0; i < 100; i++)
		read_once();
	must(hazptrs_work());
}

static void forks_in_handlers_that_interrupt_readers(void **state)
{
	(void)state;
	fork_in_handlers(read_once, read_often);
	assert_true(hazptrs_work());
}

/* ---- forks without handlers ---- */

static hazptr_t *mine;

static void first_barrier(void)
{
	hazptr_clear(mine);
	hazptr_barrier();
	must(things_run(after, NR_AFTER) == NR_AFTER);
}

static void first_wait(void)
{
	synchronize_hazptr(&after[1]); /* another thread has protected the object */
	first_barrier();
}

static void first_retire(void)
{
	static struct thing t;

	thing_retire(&t);
	wait_until(runs_of(&t) == 1);
}

static void first_retire_plenty(void)
{
	retire_plenty();
	must(runs_of(&after[0]) == 0);
}

static void first_slots(void)
{
	read_once();
	hazptr_clear(mine);
	must(hazptrs_work());
}

static void first_cohort(void)
{
	must(cohort_works());
}

static void first_shutdown(void)
{
	hazptr_clear(mine);
	must(quiesce_shutdown(0) == 0);
	must(things_run(after, NR_AFTER) == NR_AFTER);
}

static void first_detached(void)
{
	hazptr_t *slot = hazptr_alloc_detached();

	protect_in(slot, &after[3]);
	must(keeps(slot, &after[3]));
}

static void children_without_handlers(void **state)
{
	static void (*const first[])(void) = { first_barrier, first_wait, first_retire, first_retire_plenty,
					       first_slots, first_cohort, first_shutdown };
	static struct keeper k;
	struct waiter w;

	(void)state;
	retire_after(thing_run, thing_run);
	hazptr_barrier();
	assert_true(child_ends_well(raw_clone, first_detached));
	mine = slot_with(NULL, &after[0]);
	keeper_begin(&k, &after[1], &after[2]);
	retire_after(thing_run, thing_run);
	waiter_begin(&w, &after[1]);
	assert_true(waiter_is_blocked(&w));
	for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
		if (!child_ends_well(raw_clone, first[i]))
			fail_msg("first use %zu", i);
		alarm(watchdog_seconds());
	}
	assert_int_equal(runs_of(&after[0]), 0);
	keeper_end(&k);
	waiter_end(&w);
	hazptr_free(NULL, mine);
	hazptr_barrier();
	assert_int_equal(things_run(after, NR_AFTER), NR_AFTER);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(forks_beside_threads_that_retire),
		TEST(forks_cut_no_callback),
		TEST(forks_in_callbacks),
		TEST(a_forking_callback_returns_in_both),
		TEST(forks_in_handlers_that_interrupt_readers),
		TEST(children_without_handlers),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
