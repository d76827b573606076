/* SPDX-License-Identifier: MIT */
/* test_shazptr_wait.c - waits: many at once, against readers that never pause, their cost, and which thread scans. */
#include "guards.h"

#include <dirent.h>
#include <sys/auxv.h>

static int p_object, q_object, r_object;
static void *const p = &p_object, *const q = &q_object;

static int is_light(void)
{
	return quiesce_fence() == QUIESCE_FENCE_LIGHT;
}

/* ---- several waiters ---- */

#define NR_WAITERS 8

static void all_waiters_for_one_address_return(void **state)
{
	struct shazptr_guard guard = shazptr_acquire(p);
	struct waiter w[NR_WAITERS];
	int flag = 0;

	(void)state;
	for (int i = 0; i < NR_WAITERS; i++)
		waiter_begin(&w[i], p, &flag);
	assert_all_wait(w);
	flag_set(&flag);
	shazptr_clear(guard);
	for (int i = 0; i < NR_WAITERS; i++) {
		waiter_end(&w[i]);
		assert_int_equal(w[i].seen, 1);
	}
}

/* One guard is held for long; others come and go beside it. */
static void only_those_wait_whose_address_is_held(void **state)
{
	struct shazptr_guard stays = shazptr_acquire(p), goes;
	struct waiter long_one, other[NR_WAITERS];

	(void)state;
	waiter_begin(&long_one, p, NULL);
	for (int round = 0; round < 5; round++) {
		goes = shazptr_acquire(q);
		for (int i = 0; i < NR_WAITERS; i++)
			waiter_begin(&other[i], i % 2 ? (void *)q : &r_object, NULL);
		for (int i = 0; i < NR_WAITERS; i += 2)
			waiter_end(&other[i]); /* no guard protects it */
		shazptr_clear(goes);
		for (int i = 1; i < NR_WAITERS; i += 2)
			waiter_end(&other[i]);
		assert_int_equal(flag_get(&long_one.returned), 0);
	}
	assert_waits(&long_one);
	shazptr_clear(stays);
	waiter_end(&long_one);
}

/* A guard that is set after the wait began delays no waiter; one that was set before does. */
static void a_later_guard_is_not_waited_for(void **state)
{
	struct shazptr_guard before = shazptr_acquire(p), after;
	struct waiter w, late;

	(void)state;
	waiter_begin(&w, p, NULL);
	assert_waits(&w);
	after = shazptr_acquire(p);
	waiter_begin(&late, p, NULL);
	assert_waits(&late);
	shazptr_clear(before);
	waiter_end(&w);
	assert_waits(&late);
	shazptr_clear(after);
	waiter_end(&late);
}

/* ---- readers that never rest ---- */

#define NR_READERS 4
#define NR_UPDATERS 4
#define NR_WAITS 50

static int stop;
static uint64_t nr_protected;

/* Hold a guard of @arg all the time: take the next one before the last one is cleared. */
static void *protect_for_ever(void *arg)
{
	struct shazptr_guard guard = shazptr_acquire(arg), next;
	uint64_t n = 0;

	while (!flag_get(&stop)) {
		next = shazptr_acquire(arg);
		shazptr_clear(guard);
		guard = next;
		if (n++ == 0)
			count_up(&nr_protected);
	}
	shazptr_clear(guard);
	return NULL;
}

static void *wait_often(void *address)
{
	for (int i = 0; i < NR_WAITS; i++)
		synchronize_shazptr(address);
	return NULL;
}

static void waits_end_against(void *guarded, void *const address[NR_UPDATERS])
{
	pthread_t reader[NR_READERS], updater[NR_UPDATERS];
	uint64_t blocked = stats_now().shazptr_blocked;

	quiesce_store_relaxed(&stop, 0);
	quiesce_store_relaxed(&nr_protected, 0);
	threads_begin(reader, NR_READERS, protect_for_ever, guarded);
	wait_until(flag_get(&nr_protected) == NR_READERS);
	for (int i = 0; i < NR_UPDATERS; i++)
		thread_must(pthread_create(&updater[i], NULL, wait_often, address[i]));
	threads_end(updater, NR_UPDATERS);
	flag_set(&stop);
	threads_end(reader, NR_READERS);
	assert_true(stats_now().shazptr_blocked > blocked); /* otherwise no guard has blocked a wait, and nothing was tested */
}

static void endless_guards_of_one_address_starve_no_waiter(void **state)
{
	(void)state;
	waits_end_against(p, (void *const[]){ p, p, p, p });
}

static void endless_wildcards_starve_no_waiter(void **state)
{
	(void)state;
	waits_end_against(SHAZPTR_WILDCARD, (void *const[]){ p, q, &r_object, p });
}

static void endless_guards_do_not_starve_a_wildcard_wait(void **state)
{
	(void)state;
	waits_end_against(p, (void *const[]){ SHAZPTR_WILDCARD, p, q, SHAZPTR_WILDCARD });
}

/* ---- cost ---- */

static void a_free_address_costs_one_membarrier_or_none(void **state)
{
	uint64_t before;

	(void)state;
	quiesce_shutdown(0);
	before = stats_now().membarriers;
	for (int i = 0; i < 100; i++)
		synchronize_shazptr(p);
	assert_int_equal(stats_now().membarriers, before + (is_light() ? 100 : 0));
}

static void callers_at_once_never_need_more_membarriers(void **state)
{
	pthread_t updater[NR_WAITERS];
	uint64_t before;

	(void)state;
	quiesce_shutdown(0);
	before = stats_now().membarriers;
	threads_begin(updater, NR_WAITERS, wait_often, p);
	threads_end(updater, NR_WAITERS);
	if (is_light())
		assert_in_range(stats_now().membarriers - before, 1, NR_WAITERS * NR_WAITS);
	else
		assert_int_equal(stats_now().membarriers, before);
}

/* ---- counters ---- */

static void waits_are_counted(void **state)
{
	struct shazptr_guard guard = shazptr_acquire(p);
	struct quiesce_stats before = stats_now(), after;
	struct waiter w;

	(void)state;
	assert_true(before.slots_lines >= 1);
	synchronize_shazptr(q);
	after = stats_now();
	assert_int_equal(after.shazptr_waits, before.shazptr_waits + 1);
	assert_int_equal(after.shazptr_blocked, before.shazptr_blocked);
	assert_int_equal(after.scans, before.scans);
	waiter_begin(&w, p, NULL);
	assert_waits(&w);
	shazptr_clear(guard);
	waiter_end(&w);
	after = stats_now();
	assert_int_equal(after.shazptr_waits, before.shazptr_waits + 2);
	assert_int_equal(after.shazptr_blocked, before.shazptr_blocked + 1);
	assert_true(after.scans > before.scans);
	assert_int_equal(after.stalls, before.stalls);
}

static void a_short_structure_gets_the_first_counters(void **state)
{
	struct quiesce_stats whole = stats_now(), first;

	(void)state;
	memset(&first, 0xee, sizeof first);
	quiesce_get_stats(&first, offsetof(struct quiesce_stats, shazptr_blocked));
	assert_int_equal(first.shazptr_waits, whole.shazptr_waits);
	assert_int_equal(first.shazptr_blocked, 0xeeeeeeeeeeeeeeeeull);
}

#define NR_MANY 200

/* Hold that many guards at once; return how many lines a scan reads then. */
static uint32_t lines_with_many(void)
{
	struct shazptr_guard guard[NR_MANY];
	uint32_t lines;

	for (int i = 0; i < NR_MANY; i++)
		guard[i] = shazptr_acquire(p);
	lines = stats_now().slots_lines;
	for (int i = 0; i < NR_MANY; i++)
		shazptr_clear(guard[i]);
	return lines;
}

/* The places of one time are used again the next.  A thread that has got another concurrency id or CPU meanwhile
 * uses that one's block, too, so there may be more for a while, but that ends.  If it does not the watchdog comes. */
static void many_guards_take_lines_once(void **state)
{
	struct quiesce_stats before = stats_now();
	uint32_t first = lines_with_many(), lines = first;

	(void)state;
	assert_true(first >= NR_MANY / 8);
	assert_true(first >= before.slots_lines);
	for (int same = 0; same < 5;) {
		uint32_t next = lines_with_many();

		assert_true(next >= lines);
		same = next == lines ? same + 1 : 0;
		lines = next;
	}
	assert_int_equal(stats_now().slots_lines, lines);
	assert_true(stats_now().overflows >= before.overflows);
	assert_int_equal(stats_now().fallback_guards, before.fallback_guards);
}

/* Whether a clear finds the scan asleep is chance, so try until one does. */
static void a_clear_wakes_the_scan(void **state)
{
	uint64_t before = stats_now().wakeups;
	struct waiter w;

	(void)state;
	while (stats_now().wakeups == before) {
		struct shazptr_guard guard = shazptr_acquire(p);

		waiter_begin(&w, p, NULL);
		assert_waits(&w);
		shazptr_clear(guard);
		waiter_end(&w);
	}
}

/* ---- readers that give way ---- */

static void touch(void)
{
	shazptr_clear(shazptr_acquire(q));
}

static void clears_yield_while_a_wait_forces_them_to(void **state)
{
	struct shazptr_guard guard = shazptr_acquire(p);
	uint64_t before = stats_now().yields;
	struct waiter w;

	(void)state;
	waiter_begin(&w, p, NULL);
	while (stats_now().yields == before)
		touch();
	shazptr_clear(guard);
	waiter_end(&w);
	do { /* the waiter is completed a little before the readers are notified */
		before = stats_now().yields;
		touch();
	} while (stats_now().yields != before);
	for (int i = 0; i < 1000; i++)
		touch();
	assert_int_equal(stats_now().yields, before);
}

static void clears_do_not_yield_if_that_is_switched_off(void **state)
{
	struct shazptr_guard guard = shazptr_acquire(p);
	uint64_t before = stats_now().yields;
	struct waiter w;

	(void)state;
	quiesce_set_yield(0);
	waiter_begin(&w, p, NULL);
	for (int i = 0; i < 1000; i++)
		touch();
	assert_waits(&w);
	for (int i = 0; i < 1000; i++)
		touch();
	shazptr_clear(guard);
	waiter_end(&w);
	assert_int_equal(stats_now().yields, before);
	quiesce_set_yield(1);
}

/* ---- the scan thread ---- */

static void wait_that_is_blocked(void)
{
	struct shazptr_guard guard = shazptr_acquire(p);
	struct waiter w;

	waiter_begin(&w, p, NULL);
	assert_waits(&w);
	shazptr_clear(guard);
	waiter_end(&w);
}

static void the_scan_thread_is_there_when_it_is_needed(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(quiesce_shutdown(0), 0);
		for (int k = 0; k < 20; k++)
			synchronize_shazptr(p);
		assert_int_equal(stats_now().scan_thread_running, 0);
		wait_until(thread_named("quiesce-scan") == 0);
		wait_that_is_blocked();
		assert_int_equal(stats_now().scan_thread_running, 1);
		wait_until(thread_named("quiesce-scan") != 0);
	}
}

static void the_scan_thread_takes_no_signals(void **state)
{
	uint64_t mask, all = ~0ull & ~(1ull << (SIGKILL - 1)) & ~(1ull << (SIGSTOP - 1)) & ~(7ull << 31); /* signals of libc */
	pid_t tid;

	(void)state;
	wait_that_is_blocked();
	wait_until((tid = thread_named("quiesce-scan")) != 0);
	mask = blocked_signals(tid);
	for (int sig = 1; sig < 32; sig++)
		if (is_fault(sig))
			all &= ~(1ull << (sig - 1));
	assert_int_equal(mask & all, all);
}

/* The scan thread ends when there is no waiter left; a waiter that arrives meanwhile is still served. */
static void a_shutdown_beside_a_wait_costs_it_nothing(void **state)
{
	struct shazptr_guard guard = shazptr_acquire(p);
	struct waiter w, late;

	(void)state;
	waiter_begin(&w, p, NULL);
	/* The waiter leads for some scans, starts the thread, and sleeps; the scans that are counted then are the thread's. */
	wait_until(stats_now().scan_thread_running);
	assert_waits(&w);
	assert_int_equal(quiesce_shutdown(1), -ETIMEDOUT);
	assert_waits(&w);
	waiter_begin(&late, p, NULL);
	assert_waits(&late);
	shazptr_clear(guard);
	waiter_end(&w);
	waiter_end(&late);
	wait_that_is_blocked();
}

static void *shut_down_often(void *unused)
{
	(void)unused;
	for (int i = 0; i < 20; i++)
		quiesce_shutdown(1000000);
	return NULL;
}

static void waits_and_shutdowns_at_once(void **state)
{
	pthread_t reader, updater, closer;

	(void)state;
	quiesce_store_relaxed(&stop, 0);
	thread_must(pthread_create(&reader, NULL, protect_for_ever, p));
	thread_must(pthread_create(&updater, NULL, wait_often, p));
	thread_must(pthread_create(&closer, NULL, shut_down_often, NULL));
	pthread_join(closer, NULL);
	pthread_join(updater, NULL);
	flag_set(&stop);
	pthread_join(reader, NULL);
	wait_that_is_blocked();
}

static void without_a_self_scan_the_thread_does_everything(void **state)
{
	struct quiesce_stats before, after;

	(void)state;
	quiesce_shutdown(0);
	before = stats_now();
	quiesce_set_skip_self_scan(1);
	for (int i = 0; i < 20; i++)
		synchronize_shazptr(p);
	quiesce_set_skip_self_scan(0);
	after = stats_now();
	assert_int_equal(after.shazptr_blocked, before.shazptr_blocked + 20);
	assert_true(after.membarriers >= before.membarriers + (is_light() ? 20 : 0));
	assert_true(after.membarriers <= before.membarriers + (is_light() ? 40 : 0)); /* a caller that finds the scan overdue scans, too */
	assert_true(after.scans >= before.scans + 20);
	assert_int_equal(after.scan_thread_running, 1);
	synchronize_shazptr(p);
	assert_int_equal(stats_now().shazptr_blocked, after.shazptr_blocked);
}

/* ---- where guards are ---- */

/* raw: a variable of the C library's registration, which not every C library has. */
extern __attribute__((weak)) const unsigned int __rseq_size;

#ifndef AT_RSEQ_FEATURE_SIZE
#define AT_RSEQ_FEATURE_SIZE 27
#endif
#define FEATURES_WITH_MM_CID 24

/* Return the kind of slots that the library must choose here. */
static enum quiesce_slots best_kind(void)
{
	static const char *const name[] = { "thread", "cpu_id" };
	const char *asked = getenv("QUIESCE_SLOTS");
	enum quiesce_slots best = QUIESCE_SLOTS_MM_CID;

	if (!&__rseq_size || __rseq_size == 0)
		return QUIESCE_SLOTS_THREAD;
	if (getauxval(AT_RSEQ_FEATURE_SIZE) < FEATURES_WITH_MM_CID)
		best = QUIESCE_SLOTS_CPU_ID;
	for (int i = 0; i < (int)best; i++)
		if (asked && !strcmp(asked, name[i]))
			return (enum quiesce_slots)i;
	return best;
}

#define NR_ACTORS 40 /* more threads than there are lines at the start */

static void guards_are_where_the_kernel_lets_them(void **state)
{
	const enum quiesce_slots kind = best_kind();
	enum quiesce_slots last = QUIESCE_SLOTS_SHARED;
	struct actor actor[NR_ACTORS];
	struct take t[NR_ACTORS];
	int nr[4] = { 0 };

	(void)state;
	assert_int_equal(quiesce_slots(), kind);
	for (int i = 0; i < NR_ACTORS; i++) {
		actor_begin(&actor[i]);
		t[i].ptr = p;
		actor_do(&actor[i], do_acquire, &t[i]);
		last = quiesce_shazptr_slot(t[i].guard);
		nr[last]++;
	}
	for (int i = 0; i < NR_ACTORS; i++) {
		actor_do(&actor[i], do_clear, &t[i]);
		actor_end(&actor[i]);
	}
	if (kind == QUIESCE_SLOTS_THREAD)
		assert_int_equal(nr[QUIESCE_SLOTS_THREAD], NR_ACTORS);
	else
		assert_in_range(nr[kind], is_light() ? 1 : NR_ACTORS, NR_ACTORS);
	assert_int_equal(nr[kind] + nr[QUIESCE_SLOTS_THREAD], kind == QUIESCE_SLOTS_THREAD ? 2 * NR_ACTORS : NR_ACTORS);
	assert_int_equal(last, kind);
	assert_int_equal(nr[QUIESCE_SLOTS_SHARED], 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(the_scan_thread_is_there_when_it_is_needed),
		TEST(the_scan_thread_takes_no_signals),
		TEST(a_shutdown_beside_a_wait_costs_it_nothing),
		TEST(waits_and_shutdowns_at_once),
		TEST(without_a_self_scan_the_thread_does_everything),
		TEST(all_waiters_for_one_address_return),
		TEST(only_those_wait_whose_address_is_held),
		TEST(a_later_guard_is_not_waited_for),
		TEST(endless_guards_of_one_address_starve_no_waiter),
		TEST(endless_wildcards_starve_no_waiter),
		TEST(endless_guards_do_not_starve_a_wildcard_wait),
		TEST(a_free_address_costs_one_membarrier_or_none),
		TEST(callers_at_once_never_need_more_membarriers),
		TEST(waits_are_counted),
		TEST(a_short_structure_gets_the_first_counters),
		TEST(many_guards_take_lines_once),
		TEST(a_clear_wakes_the_scan),
		TEST(clears_yield_while_a_wait_forces_them_to),
		TEST(clears_do_not_yield_if_that_is_switched_off),
		TEST(guards_are_where_the_kernel_lets_them),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
