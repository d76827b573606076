/* SPDX-License-Identifier: MIT */
/* test_shazptr_signal.c - a signal handler or a writer comes in between, at each instruction.
 *
 * On x86 a thread can be stepped.  A restartable sequence begins anew after every step, so where
 * claims are such sequences the steps go as far as the first of them; full fences, and slots of
 * threads, have none.  A handler at random times does the rest.
 */
#include "guards.h"

#include <sched.h>

#define VALUE(guard) (quiesce_load_relaxed((guard).slot) & UINTPTR_MAX >> 1) /* without the scan's tag */

static int p_object, q_object, r_object;
static void *const p = &p_object, *const q = &q_object, *const r = &r_object;

/* Check that no slot holds an address. */
static void assert_unprotected(void)
{
	uint64_t blocked = stats_now().shazptr_blocked;

	synchronize_shazptr(SHAZPTR_WILDCARD);
	assert_int_equal(stats_now().shazptr_blocked, blocked);
}

/* ---- steps ---- */

#if defined(__x86_64__)
#include <ucontext.h>
#include <x86intrin.h>

#define TRAP_FLAG 0x100ull
#define MAX_STEPS 400

static int steps_left;
static void (*in_between)(void);

static void on_step(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	(void)sig, (void)info;
	if (--steps_left)
		return;
	uc->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
	in_between();
}

static void step_setup(void)
{
	struct sigaction action = { .sa_sigaction = on_step, .sa_flags = SA_SIGINFO };

	sigemptyset(&action.sa_mask);
	sigaction(SIGTRAP, &action, NULL);
}

/* Call @fn(@arg), and @between after @steps instructions.  False: it ended before. */
static int stepped(int steps, void (*between)(void), void (*fn)(void *), void *arg)
{
	steps_left = steps;
	in_between = between;
	quiesce_fence_light(none); /* the handler's variables are in memory */
	__writeeflags(__readeflags() | TRAP_FLAG);
	fn(arg);
	__writeeflags(__readeflags() & ~TRAP_FLAG);
	quiesce_fence_light(none);
	return steps_left <= 0;
}

/* A sequence that restarts after every step never ends. */
static int nr_steps(void)
{
	return quiesce_fence() == QUIESCE_FENCE_LIGHT && quiesce_slots() != QUIESCE_SLOTS_THREAD ? 60 : MAX_STEPS;
}

/* Try each of the first 25 steps, then some: the later ones repeat the same code for one slot after the other. */
static int stride(int steps)
{
	return 1 + steps / 25;
}

static struct take outer, inner;

static int nr_wrong;

/* The allowed acts of a handler: hold a guard while it runs, or leave one behind that is not in the thread's own slots. */
static void have_guard(void)
{
	struct shazptr_guard guard = shazptr_acquire(r);

	if (VALUE(guard) != (uintptr_t)r)
		nr_wrong++;
	shazptr_clear(guard);
}

static void leave_guard(void)
{
	have_guard();
	inner.guard = shazptr_acquire_detached(inner.ptr);
	have_guard();
}

static void both_hold(void)
{
	assert_ptr_not_equal(outer.guard.slot, inner.guard.slot);
	assert_int_equal(VALUE(outer.guard), outer.ptr);
	assert_int_equal(VALUE(inner.guard), inner.ptr);
}

/* Take @nr slots before; return how many steps were made. */
static int interrupted_claims(int nr)
{
	struct shazptr_guard before[16];
	int steps, on = 1;

	outer.ptr = p;
	inner.ptr = q;
	for (int i = 0; i < nr; i++)
		before[i] = shazptr_acquire(r);
	for (steps = 1; on && steps < nr_steps(); steps += stride(steps)) {
		stepped(steps, have_guard, do_acquire, &outer);
		assert_int_equal(VALUE(outer.guard), p);
		shazptr_clear(outer.guard);
		on = stepped(steps, leave_guard, do_acquire, &outer);
		if (!on)
			break;
		both_hold();
		shazptr_clear(steps & 1 ? outer.guard : inner.guard);
		shazptr_clear(steps & 1 ? inner.guard : outer.guard);
	}
	if (!on)
		shazptr_clear(outer.guard);
	for (int i = 0; i < nr; i++) {
		assert_int_equal(VALUE(before[i]), r);
		shazptr_clear(before[i]);
	}
	assert_int_equal(nr_wrong, 0);
	assert_unprotected();
	return steps;
}

static void a_handler_may_acquire_at_each_step_of_an_acquisition(void **state)
{
	(void)state;
	step_setup();
	interrupted_claims(16); /* all the memory and lines that it takes are there now */
	assert_true(interrupted_claims(0) > 5);
	assert_true(interrupted_claims(1) > 5);
	assert_true(interrupted_claims(6) > 5);
	assert_true(interrupted_claims(7) > 5);
}

static void interrupted_clears(void)
{
	int steps;

	outer.ptr = p;
	inner.ptr = q;
	for (steps = 1; steps < MAX_STEPS; steps += stride(steps)) {
		int on;

		do_acquire(&outer);
		on = stepped(steps, leave_guard, do_clear, &outer);
		if (!on)
			break;
		assert_int_equal(VALUE(inner.guard), q);
		shazptr_clear(inner.guard);
	}
	assert_true(steps < MAX_STEPS);
	assert_int_equal(nr_wrong, 0);
}

static void a_handler_may_acquire_at_each_step_of_a_clear(void **state)
{
	struct take held = { .ptr = &held };
	struct actor actor;
	struct waiter w;

	(void)state;
	step_setup();
	interrupted_clears();
	actor_begin(&actor);
	actor_do(&actor, do_acquire, &held);
	waiter_begin(&w, &held, NULL); /* with a waiter clears take the slow path */
	interrupted_clears();
	assert_int_equal(flag_get(&w.returned), 0);
	actor_do(&actor, do_clear, &held);
	waiter_end(&w);
	actor_end(&actor);
	assert_unprotected();
}

/* ---- the pointer changes meanwhile ---- */

static void *variable;
static struct shazptr_guard fetched;

static void write_q(void)
{
	variable = q;
}

static __attribute__((noinline)) void do_tryprotect(void *where)
{
	fetched = shazptr_tryprotect((void **)where);
}

static __attribute__((noinline)) void do_protect(void *where)
{
	fetched = shazptr_protect((void **)where);
}

/* Change the pointer from p to q after each number of steps, and count the guards that are empty, of p, of q. */
static void changed_meanwhile(void (*fn)(void *), int nr[3])
{
	nr[0] = nr[1] = nr[2] = 0;
	for (int steps = 1, on = 1; on && steps < nr_steps(); steps++) {
		void *got;

		variable = p;
		on = stepped(steps, write_q, fn, &variable);
		got = shazptr_ptr(fetched);
		assert_true(got == p || got == q || !got);
		if (got)
			assert_int_equal(VALUE(fetched), got);
		nr[!got ? 0 : got == p ? 1 : 2]++;
		shazptr_clear(fetched);
	}
	assert_unprotected();
}

static void tryprotect_fails_if_the_pointer_changes(void **state)
{
	int nr[3];

	(void)state;
	step_setup();
	changed_meanwhile(do_tryprotect, nr);
	assert_true(nr[0] > 0 && nr[2] > 0);
	if (nr_steps() == MAX_STEPS)
		assert_true(nr[1] > 0);
}

static void protect_returns_the_pointer_that_is_there_now(void **state)
{
	int nr[3];

	(void)state;
	step_setup();
	changed_meanwhile(do_protect, nr);
	assert_true(nr[0] == 0 && nr[2] > 0);
	if (nr_steps() == MAX_STEPS)
		assert_true(nr[1] > 0);
}

#define STEP_TESTS                                                      \
	TEST(a_handler_may_acquire_at_each_step_of_an_acquisition),     \
	TEST(a_handler_may_acquire_at_each_step_of_a_clear),            \
	TEST(tryprotect_fails_if_the_pointer_changes),                  \
	TEST(protect_returns_the_pointer_that_is_there_now),
#else
#define STEP_TESTS
#endif

/* ---- a pointer that stays, and one that a writer changes all the time ---- */

static void protect_guards_what_the_pointer_says(void **state)
{
	int *pointer = NULL;
	struct shazptr_guard guard = shazptr_protect(&pointer), tried = shazptr_tryprotect(&pointer);

	(void)state;
	assert_null(shazptr_ptr(guard));
	assert_null(shazptr_ptr(tried));
	shazptr_clear(guard);
	shazptr_clear(tried);
	pointer = &p_object;
	guard = shazptr_protect(&pointer);
	tried = shazptr_tryprotect(&pointer);
	assert_ptr_equal(shazptr_ptr(guard), p);
	assert_ptr_equal(shazptr_ptr(tried), p);
	assert_int_equal(VALUE(guard), p);
	assert_int_equal(VALUE(tried), p);
	shazptr_clear(guard);
	shazptr_clear(tried);
	assert_unprotected();
}

#define NR_OBJECTS 16
#define NR_REPLACED 300
#define GOOD 0x600d
#define FREED 0xdead

static int object[NR_OBJECTS], *current, stop, nr_bad, nr_seen;

static void *protect_often(void *unused)
{
	(void)unused;
	while (!flag_get(&stop)) {
		shazptr_scoped struct shazptr_guard guard = shazptr_protect(&current);
		int *o = shazptr_ptr(guard);

		if (quiesce_load_relaxed(o) != GOOD) /* Relaxed: the guard is what is tested. */
			count_up(&nr_bad);
		count_up(&nr_seen);
	}
	return NULL;
}

static void a_protected_object_is_not_freed(void **state)
{
	pthread_t reader[3];
	int *old;

	(void)state;
	object[0] = GOOD;
	current = &object[0];
	threads_begin(reader, 3, protect_often, NULL);
	wait_until(flag_get(&nr_seen) > 0);
	for (int i = 1; i < NR_REPLACED; i++) {
		quiesce_store_relaxed(&object[i % NR_OBJECTS], GOOD); /* Relaxed: published by the exchange. */
		old = rcu_xchg_pointer(&current, &object[i % NR_OBJECTS]);
		synchronize_shazptr(old);
		quiesce_store_relaxed(old, FREED); /* Relaxed: a reader that sees it is wrong anyhow. */
	}
	flag_set(&stop);
	threads_end(reader, 3);
	assert_int_equal(nr_bad, 0);
}

/* ---- a handler at random times ---- */

#define NR_SIGNALS 240
#define NR_THREADS 12

static int nr_handled, nr_bad_value;
static struct shazptr_guard kept; /* the handler leaves this guard, and the thread clears it */
static sem_t ready;

static void check_value(struct shazptr_guard guard)
{
	if (VALUE(guard) != (uintptr_t)shazptr_ptr(guard))
		count_up(&nr_bad_value);
}

static void on_signal(int sig)
{
	struct shazptr_guard guard = shazptr_acquire(r);

	(void)sig;
	if (!shazptr_ptr(kept)) {
		kept = shazptr_acquire_detached(q);
		check_value(kept);
	}
	check_value(guard);
	shazptr_clear(guard);
	count_up(&nr_handled);
}

static void clear_kept(void)
{
	struct shazptr_guard guard;

	quiesce_fence_light(none); /* the handler writes and reads the pointer */
	if (!kept.ptr)
		return;
	quiesce_fence_light(none); /* from now on the handler leaves the guard alone */
	guard = kept;
	check_value(guard);
	kept.ptr = NULL;
	quiesce_fence_light(none);
	shazptr_clear(guard);
}

/* Guards come and go, one to ten at a time, each with its own address. */
static void *be_disturbed(void *arg)
{
	char *address = arg;
	struct shazptr_guard guard[10];

	sem_post(&ready);
	for (int n = 0; flag_get(&nr_handled) < NR_SIGNALS / NR_THREADS; n++) {
		for (int i = 0; i <= n % 10; i++)
			guard[i] = shazptr_acquire(address + i);
		clear_kept();
		for (int i = 0; i <= n % 10; i++) {
			check_value(guard[i]);
			shazptr_clear(guard[i]);
		}
	}
	pthread_sigmask(SIG_BLOCK, &(sigset_t){ { 1ul << (SIGUSR1 - 1) } }, NULL);
	clear_kept();
	sem_post(&ready);
	return NULL;
}

static void a_handler_may_acquire_at_any_time(void **state)
{
	static char addresses[10];
	pthread_t thread;

	(void)state;
	signal(SIGUSR1, on_signal);
	sem_init(&ready, 0, 0);
	for (int i = 0; i < NR_THREADS; i++) {
		quiesce_store_relaxed(&nr_handled, 0);
		thread_must(pthread_create(&thread, NULL, be_disturbed, addresses));
		do {
			pthread_kill(thread, SIGUSR1);
			sched_yield();
		} while (flag_get(&nr_handled) < NR_SIGNALS / NR_THREADS);
		wait_for(&ready);
		wait_for(&ready);
		pthread_join(thread, NULL);
		assert_int_equal(nr_bad_value, 0);
		assert_unprotected();
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		STEP_TESTS
		TEST(protect_guards_what_the_pointer_says),
		TEST(a_protected_object_is_not_freed),
		TEST(a_handler_may_acquire_at_any_time),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
