/* SPDX-License-Identifier: MIT */
/* test_shazptr_report.c - reports of waits that take too long and, in the debug build, of misuse.
 *
 * Runs with QUIESCE_STALL_MS=20: nothing depends on how long that really takes.
 */
#include "guards.h"
#include "misuses.h"

#include <fcntl.h>

static int p_object, q_object;
static void *const p = &p_object, *const q = &q_object;

/* ---- stderr, kept ---- */

static int real_stderr, kept_fd;
static char said[16384];

static void keep_stderr(void)
{
	FILE *file = tmpfile();

	assert_non_null(file);
	real_stderr = dup(STDERR_FILENO);
	kept_fd = fileno(file);
	dup2(kept_fd, STDERR_FILENO);
}

static void release_stderr(void)
{
	ssize_t n = pread(kept_fd, said, sizeof said - 1, 0);

	dup2(real_stderr, STDERR_FILENO);
	close(real_stderr);
	close(kept_fd);
	said[n > 0 ? n : 0] = '\0';
}

static void must_say(const char *format, ...)
{
	char text[200];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	if (!strstr(said, text))
		fail_msg("\"%s\" does not say \"%s\"", said, text);
}

/* ---- stalls ---- */

static pid_t holder;

static void do_name(void *name)
{
	holder = my_tid();
	pthread_setname_np(pthread_self(), name);
}

/* Check the report of a wait for @address that @actor's guard delays. */
static void stall(struct actor *actor, void (*clear)(void *), void *guard, const void *address)
{
	uint64_t before = stats_now().stalls;
	struct waiter w;

	keep_stderr();
	waiter_begin(&w, address, NULL);
	wait_until(flag_get(&w.returned) || stats_now().stalls >= before + 2); /* until it returned, or its stall was reported twice */
	wait_until(lseek(kept_fd, 0, SEEK_END) > 0);
	actor_do(actor, clear, guard);
	waiter_end(&w);
	release_stderr();
	assert_true(stats_now().stalls >= before + 2);
	must_say("synchronize_shazptr(%p): waiting for ", address);
	must_say("; 0 more callers wait for guards\n");
#ifdef QUIESCE_DEBUG
	must_say(" thread %d (holder), ", (int)holder);
	must_say(", inside for ");
	must_say(" ms, from 0x");
	must_say(" (test_shazptr_report-debug+0x");
#else
	assert_null(strstr(said, ", inside for "));
	assert_null(strstr(said, ", from 0x"));
#endif
}

static const char *name_of_place(enum quiesce_slots place)
{
	switch (place) {
	case QUIESCE_SLOTS_THREAD:
		return "in a slot of thread ";
	case QUIESCE_SLOTS_CPU_ID:
		return "in a slot of CPU ";
	case QUIESCE_SLOTS_MM_CID:
		return "in a slot of concurrency id ";
	default:
		return "in a shared slot";
	}
}

static void a_wait_that_stalls_is_reported_with_its_place(void **state)
{
	struct actor settler[MAX_SETTLERS], actor;
	int nr_settlers;
	static struct placement at;
	enum quiesce_slots places[3];
	int nr = kinds_of_places(places);

	(void)state;
	nr_settlers = settlers_begin(settler);
	actor_begin(&actor);
	actor_do(&actor, do_name, (void *)(uintptr_t)"holder");
	for (int i = 0; i < nr; i++) {
		at.ptr = p;
		at.place = places[i];
		actor_do(&actor, do_place, &at);
		assert_true(at.nr_fillers < MAX_FILLERS);
		stall(&actor, do_clear_placed, &at, p);
		must_say("%s", name_of_place(places[i]));
		must_say(" ms for a guard of %p", p);
	}
	actor_end(&actor);
	settlers_end(settler, nr_settlers);
}

static void a_wildcard_that_stalls_a_wait_is_reported(void **state)
{
	struct take t = { .ptr = SHAZPTR_WILDCARD };
	struct actor actor;

	(void)state;
	actor_begin(&actor);
	actor_do(&actor, do_name, (void *)(uintptr_t)"holder");
	actor_do(&actor, do_acquire, &t);
	stall(&actor, do_clear, &t, p);
	must_say(" ms for a guard of everything, SHAZPTR_WILDCARD, in a ");
	actor_end(&actor);
}

/* A report names no waiter that found no guard, and no reader beside the one that stalls. */
static void waits_that_do_not_stall_are_not_reported(void **state)
{
	uint64_t before = stats_now().stalls;

	(void)state;
	keep_stderr();
	for (int i = 0; i < 100; i++)
		synchronize_shazptr(q);
	release_stderr();
	assert_int_equal(stats_now().stalls, before);
	assert_string_equal(said, "");
}

/* ---- misuse, as far as the debug build knows ---- */

#ifdef QUIESCE_DEBUG

static void wait_for_own_guard(void)
{
	shazptr_scoped struct shazptr_guard guard = shazptr_acquire(p);

	synchronize_shazptr(p);
	synchronize_shazptr(q);
}

static void wait_for_own_wildcard(void)
{
	shazptr_scoped struct shazptr_guard guard = shazptr_acquire(SHAZPTR_WILDCARD);

	synchronize_shazptr(q);
}

static void wildcard_wait_with_own_guard(void)
{
	shazptr_scoped struct shazptr_guard guard = shazptr_acquire(p);

	synchronize_shazptr(SHAZPTR_WILDCARD);
}

static void wait_for_own_fetched_guard(void)
{
	static void *variable;
	shazptr_scoped struct shazptr_guard guard = { NULL, NULL };

	variable = p;
	guard = shazptr_protect(&variable);
	synchronize_shazptr(p);
}

static void a_wait_for_ones_own_guard_is_reported_and_does_not_wait(void **state)
{
	(void)state;
	misuse(wait_for_own_guard, QUIESCE_MISUSE_WAIT_IN_READER, "synchronize_shazptr(");
	misuse(wait_for_own_wildcard, QUIESCE_MISUSE_WAIT_IN_READER, "synchronize_shazptr(");
	misuse(wildcard_wait_with_own_guard, QUIESCE_MISUSE_WAIT_IN_READER, "synchronize_shazptr(");
	misuse(wait_for_own_fetched_guard, QUIESCE_MISUSE_WAIT_IN_READER, "synchronize_shazptr(");
	synchronize_shazptr(SHAZPTR_WILDCARD); /* nothing is left of it */
}

static void clear_twice(void)
{
	struct shazptr_guard guard = shazptr_acquire(p);

	shazptr_clear(guard);
	shazptr_clear(guard);
}

static struct shazptr_guard other;

static void clear_again_when_the_slot_is_anothers(void)
{
	struct shazptr_guard guard = shazptr_acquire(p);

	shazptr_clear(guard);
	other = shazptr_acquire(q);
	shazptr_clear(guard);
	if (other.slot != guard.slot || quiesce_load_relaxed(other.slot) != (uintptr_t)q)
		abort();
	shazptr_clear(other);
}

static void a_guard_that_is_cleared_twice_is_reported(void **state)
{
	(void)state;
	misuse(clear_twice, QUIESCE_MISUSE_UNBALANCED_UNLOCK, "cleared before");
	misuse(clear_again_when_the_slot_is_anothers, QUIESCE_MISUSE_UNBALANCED_UNLOCK, "cleared before");
	synchronize_shazptr(SHAZPTR_WILDCARD);
}

static struct take handed_over;

/* The guard is cleared while the wait for it is under way. */
static void *clear_later(void *unused)
{
	uint64_t scans = stats_now().scans;

	(void)unused;
	wait_until(stats_now().scans >= scans + SCANS_ENOUGH || flag_get(&nr_reports));
	do_clear(&handed_over);
	return NULL;
}

/* The guard of another thread is no misuse, nor one that another thread has cleared, nor one that it will clear. */
static void guards_of_others_are_not_reported(void **state)
{
	struct take t = { .ptr = p }, mine = { .ptr = q };
	struct actor actor;
	pthread_t thread;
	struct waiter w;

	(void)state;
	quiesce_set_misuse_hook(keep_report);
	quiesce_store_relaxed(&nr_reports, 0);
	actor_begin(&actor);
	actor_do(&actor, do_acquire, &t);
	waiter_begin(&w, p, NULL);
	assert_waits(&w);
	actor_do(&actor, do_clear, &t);
	waiter_end(&w);
	do_acquire(&mine);
	actor_do(&actor, do_clear, &mine);
	synchronize_shazptr(q);
	handed_over = mine;
	do_acquire(&handed_over);
	shazptr_detach(handed_over.guard);
	thread_must(pthread_create(&thread, NULL, clear_later, NULL));
	synchronize_shazptr(q);
	pthread_join(thread, NULL);
	actor_end(&actor);
	quiesce_set_misuse_hook(NULL);
	assert_int_equal(nr_reports, 0);
}

#define DEBUG_TESTS                                                             \
	TEST(a_wait_for_ones_own_guard_is_reported_and_does_not_wait),          \
	TEST(a_guard_that_is_cleared_twice_is_reported),                        \
	TEST(guards_of_others_are_not_reported),
#else
#define DEBUG_TESTS
#endif

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(a_wait_that_stalls_is_reported_with_its_place),
		TEST(a_wildcard_that_stalls_a_wait_is_reported),
		TEST(waits_that_do_not_stall_are_not_reported),
		DEBUG_TESTS
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
