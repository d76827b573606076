/* SPDX-License-Identifier: MIT */
/* test_shazptr_steps.c - a signal after each single instruction of claims and clears.
 *
 * Threads begin, claim for the first time, nest and clear, one thread for each instruction of that
 * (after their registration, which is not new).  The CPU traps after every instruction; at the one
 * that is tried, the handler claims too.  A restartable sequence would be restarted by each
 * trap and never end, so this is for other claims: QUIESCE_FENCE=full or QUIESCE_SLOTS=thread.
 * The same traps count what a claim takes while many guards are held.
 * Traps are expensive: one of 48 instructions is tried, others in each run; STEPS_STRIDE=1 tries all.
 */
#include "holders.h"
#include "steps.h"

#include <sys/mman.h>

static int object[4];
static int nr_bad;

static void check(struct shazptr_guard guard, const void *of)
{
	/* Relaxed: the guard's own. */
	if ((quiesce_load_relaxed(guard.slot) ^ (uintptr_t)of) << 1)
		count_up(&nr_bad);
}

/* ---- steps ---- */

static __thread int steps_left, keep, nr_steps;
static __thread struct shazptr_guard kept;

static void on_trap(int sig)
{
	struct shazptr_guard guard;

	(void)sig;
	nr_steps++;
	if (blocked || steps_left < 0 || steps_left-- > 0)
		return;
	guard = keep ? shazptr_acquire_detached(&object[2]) : shazptr_acquire(&object[2]);
	check(guard, &object[2]);
	if (keep)
		kept = guard;
	else
		shazptr_clear(guard);
}

struct one {
	int step, keep;
	int nr_steps; /* number of instructions */
};

static void *one_thread(void *arg)
{
	struct one *one = arg;
	struct shazptr_guard a, b;

	steps_left = one->step;
	keep = one->keep;
	wants_traps = 1;
	a = shazptr_acquire(&object[0]);
	b = shazptr_acquire(&object[1]);
	wants_traps = 0;
	trap_off();
	check(a, &object[0]);
	check(b, &object[1]);
	if (kept.ptr)
		check(kept, &object[2]);
	if (kept.ptr && (kept.slot == a.slot || kept.slot == b.slot))
		count_up(&nr_bad);
	trap_on();
	shazptr_clear(a);
	shazptr_clear(b);
	trap_off();
	shazptr_clear(kept);
	one->nr_steps = nr_steps;
	return NULL;
}

static void a_handler_after_each_instruction(void **state)
{
	struct sigaction action = { .sa_handler = on_trap };
	struct one one = { .step = 0 };
	const char *text = getenv("STEPS_STRIDE");
	int stride = text ? atoi(text) : 48, first = getpid() % stride;
	uint32_t lines = 0;
	pthread_t thread;

	(void)state;
	assert_true(quiesce_fence() == QUIESCE_FENCE_FULL || quiesce_slots() == QUIESCE_SLOTS_THREAD);
	sigaction(SIGTRAP, &action, NULL);
	for (one.step = first, one.nr_steps = first + 1; one.step < one.nr_steps; one.step += stride)
		for (one.keep = 0; one.keep < 2; one.keep++) {
			thread_must(pthread_create(&thread, NULL, one_thread, &one));
			pthread_join(thread, NULL);
			assert_int_equal(nr_bad, 0);
			assert_true(one.nr_steps > 50); /* otherwise nothing was interrupted */
			if (one.step == first)
				lines = stats_now().slots_lines;
			alarm(watchdog_seconds());
		}
	print_message("# %d of %d instructions, from number %d on\n", one.nr_steps / stride, one.nr_steps, first);
	/* Threads run one after the other, and none leaves a line behind. */
	assert_in_range(stats_now().slots_lines, 1, lines + 2);
	assert_true(is_free(SHAZPTR_WILDCARD));
}

/* ---- the number of instructions of a claim ---- */

#define NR_HELD 20000
#define NR_MEASURED 140

/* Return the mean number of instructions of one more claim, with @nr guards held, over NR_MEASURED claims. */
static int steps_with(int nr, struct shazptr_guard *guard)
{
	int before = nr_steps;

	steps_left = -1;
	wants_traps = 1;
	trap_on();
	for (int i = 0; i < NR_MEASURED; i++)
		guard[nr + i] = shazptr_acquire(&object[0]);
	wants_traps = 0;
	trap_off();
	return (nr_steps - before) / NR_MEASURED;
}

static void one_more_guard_is_as_dear_as_the_first_hundreds(void **state)
{
	static struct shazptr_guard guard[NR_HELD + NR_MEASURED];
	struct sigaction action = { .sa_handler = on_trap };
	int steps;

	(void)state;
	sigaction(SIGTRAP, &action, NULL);
	for (int i = 0; i < NR_HELD; i++)
		guard[i] = shazptr_acquire(&object[0]);
	steps = steps_with(NR_HELD, guard);
	print_message("# %d instructions each\n", steps);
	for (int i = 0; i < NR_HELD + NR_MEASURED; i++)
		shazptr_clear(guard[i]);
	assert_in_range(steps, 20, 2000); /* a walk of all lines would be 100 times that */
	assert_true(is_free(&object[0]));
}

/* ---- a handler that forks in the midst of a guard without a slot ---- */

#define NR_MOST 40000 /* guards: more than have slots where the array does not grow */
#define NR_SMALL 400  /* guards: more than have slots where there is no array */

static int refuses, nr_children, bad_status;
static pid_t parent;
static struct shazptr_guard of_child;

/* The library gets no memory, neither for more lines nor, in a child, for an array. */
void *mmap(void *at, size_t length, int protection, int flags, int fd, off_t offset)
{
	if (refuses) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return (void *)syscall(SYS_mmap, at, length, protection, flags, fd, offset);
}

/* Hold guards until there is no slot for one more; false: there were more than @most. */
static int hold_all(int most)
{
	uint64_t before = stats_now().fallback_guards;

	while (most--) {
		struct shazptr_guard guard = shazptr_acquire_detached(&object[0]);

		if (stats_now().fallback_guards == before)
			continue;
		shazptr_clear(guard);
		return 1;
	}
	return 0;
}

static void child_goes_on(void)
{
	alarm(watchdog_seconds() / 3);
	if (nr_children % 2) /* child_ends() takes the guard in such a child */
		return;
	must(hold_all(NR_SMALL));
	of_child = shazptr_acquire_detached(&object[2]);
}

static void on_fork_trap(int sig)
{
	int status = -1;
	pid_t pid;

	(void)sig;
	nr_steps++;
	if (blocked || steps_left < 0 || steps_left-- > 0)
		return;
	nr_children++;
	pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (pid == 0)
		child_goes_on();
	else if (pid < 0)
		bad_status = -errno;
	else if (waitpid(pid, &status, 0) != pid || status)
		bad_status = status;
}

/* The object that the handler protected is still protected, and no other is. */
static void child_ends(void)
{
	if (!of_child.ptr) {
		must(is_free(&object[0]));
		must(hold_all(NR_SMALL));
		of_child = shazptr_acquire_detached(&object[2]);
	}
	must(quiesce_shazptr_slot(of_child) == QUIESCE_SLOTS_SHARED);
	must(ends_with(of_child, &object[2]));
	_exit(0);
}

static void a_handler_forks_in_the_midst_of_a_guard_without_a_slot(void **state)
{
	struct sigaction action = { .sa_handler = on_fork_trap };
	const char *text = getenv("STEPS_STRIDE");
	int stride = text ? atoi(text) : 48, first = getpid() % stride;
	struct shazptr_guard guard;

	(void)state;
	parent = getpid();
	refuses = 1;
	assert_true(hold_all(NR_MOST));
	sigaction(SIGTRAP, &action, NULL);
	for (int step = first, end = first + 1; step < end; step += stride) {
		nr_steps = 0;
		steps_left = step;
		wants_traps = 1;
		trap_on();
		guard = shazptr_acquire_detached(&object[1]);
		shazptr_clear(guard);
		wants_traps = 0;
		trap_off();
		steps_left = -1;
		if (getpid() != parent)
			child_ends();
		assert_int_equal(bad_status, 0); /* else a wait status, or minus the errno of the fork */
		end = nr_steps;
		alarm(watchdog_seconds());
	}
	print_message("# %d children\n", nr_children);
	assert_true(nr_children > 4);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(one_more_guard_is_as_dear_as_the_first_hundreds),
		TEST(a_handler_after_each_instruction),
		TEST(a_handler_forks_in_the_midst_of_a_guard_without_a_slot), /* last, because it leaves many guards */
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
