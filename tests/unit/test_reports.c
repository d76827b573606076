/* SPDX-License-Identifier: MIT */
/* test_reports.c - reports of waits that last: the call, the holder, and the callers behind it.
 *
 * Each test waits for a report and checks its text; nothing depends on how long that takes.
 */
#include "reports.h"

#include <quiesce/hazptr.h>
#include <quiesce/shazptr.h>
#include <quiesce/srcu.h>

DEFINE_STATIC_SRCU(domain);

/* Check the fields that each report of a stall with one holder has. */
static void must_name(const struct kept *k, const struct stayer *s, const void *object)
{
	assert_int_equal(k->report.kind, QUIESCE_REPORT_STALL);
	assert_ptr_equal(k->report.object, object);
	assert_true(k->report.waited_ns >= STALL_NS);
	assert_int_equal(k->report.garbage_bytes, 0);
	assert_int_equal(k->report.holder, s->tid);
	must_say(k, "thread %d (stayer), ", (int)s->tid);
	must_say_since(k);
}

/* True if the report of @call names the callers behind it: two, or one if the leader was late, because one then waits by itself. */
static bool are_behind(const char *call, struct kept *k)
{
	return find_report(call, "; behind it 2 more callers, and ", k) || find_report(call, "; behind it 1 more callers, and ", k);
}

/* ---- RCU ---- */

static void synchronize_calls(void (*first)(void), const char *call)
{
	static void (*const other)(void) = quiesce_synchronize_rcu;
	pthread_t thread[3];
	struct stayer s;
	struct kept k;

	reports_begin();
	stayer_begin(&s, rcu_enter, rcu_leave, NULL);
	call_begin(&thread[0], &first);
	k = wait_for_report(call, "waiting for ");
	must_name(&k, &s, NULL);
	must_say(&k, "%s: waiting for ", call);
	must_say(&k, "; behind it 0 more callers, and ");
	call_begin(&thread[1], &other);
	call_begin(&thread[2], &other);
	wait_until(are_behind(call, &k));
	stayer_end(&s);
	threads_end(thread, 3);
	reports_end();
}

static void a_wait_for_readers_of_rcu_is_reported(void **state)
{
	uint64_t stalls = stats_now().stalls;

	(void)state;
	synchronize_calls(quiesce_synchronize_rcu, "synchronize_rcu");
	synchronize_calls(quiesce_synchronize_rcu_expedited, "synchronize_rcu_expedited");
	assert_true(stats_now().stalls >= stalls + 2);
}

static void nothing(struct rcu_head *head)
{
	(void)head;
}

static void callbacks_of_rcu_are_reported_with_their_number(void **state)
{
	static struct rcu_head head[7];
	struct stayer s;
	struct kept k;

	(void)state;
	rcu_barrier();
	reports_begin();
	stayer_begin(&s, rcu_enter, rcu_leave, NULL);
	for (int i = 0; i < 7; i++)
		call_rcu(&head[i], nothing);
	k = wait_for_report("call_rcu", "and 7 objects (");
	must_name(&k, &s, NULL);
	stayer_end(&s);
	rcu_barrier();
	reports_end();
}

static sem_t in_callback, end_callback;

static void block(struct rcu_head *head)
{
	(void)head;
	sem_post(&in_callback);
	wait_for(&end_callback);
}

/* The report names the callback and its thread. */
static void waits_behind_a_callback_that_blocks_are_reported(void **state)
{
	static void (*const barrier)(void) = quiesce_rcu_barrier, (*const throttle)(void) = quiesce_rcu_throttle;
	static struct rcu_head head;
	pthread_t thread[2];
	struct kept k;

	(void)state;
	sem_init(&in_callback, 0, 0);
	sem_init(&end_callback, 0, 0);
	reports_begin();
	quiesce_set_garbage_ceiling(1 << 20);
	call_rcu_sized(&head, block, 2 << 20);
	wait_for(&in_callback);
	call_begin(&thread[0], &barrier);
	call_begin(&thread[1], &throttle);
	k = wait_for_report("rcu_barrier", ", in the callback 0x");
	assert_int_equal(k.report.holder, thread_named("quiesce"));
	must_say(&k, "%p (test_reports", (void *)(uintptr_t)block);
	k = wait_for_report("rcu_throttle", ", in the callback 0x");
	assert_int_equal(k.report.holder, thread_named("quiesce"));
	sem_post(&end_callback);
	threads_end(thread, 2);
	quiesce_set_garbage_ceiling(64ull << 20);
	reports_end();
}

static int nr_retired, nr_freed;

static void count_freed(struct rcu_head *head)
{
	free(head);
	count_up(&nr_freed);
}

/* A hook may retire, also in the middle of a wait for the same readers. */
static void retire_in_hook(const struct quiesce_report *report)
{
	struct rcu_head *head = malloc(sizeof *head);

	(void)report;
	if (!head)
		abort();
	call_rcu(head, count_freed);
	count_up(&nr_retired);
}

static void a_hook_may_retire(void **state)
{
	static void (*const wait)(void) = quiesce_synchronize_rcu;
	pthread_t thread;
	struct stayer s;

	(void)state;
	reports_begin();
	quiesce_set_report_hook(retire_in_hook);
	stayer_begin(&s, rcu_enter, rcu_leave, NULL);
	call_begin(&thread, &wait);
	wait_until(flag_get(&nr_retired) >= 3); /* reported by the waiter, and by the worker that waits for its objects */
	stayer_end(&s);
	pthread_join(thread, NULL);
	reports_end();
	rcu_barrier();
	assert_int_equal(flag_get(&nr_freed), flag_get(&nr_retired));
}

/* ---- SRCU ---- */

static void srcu_enter(struct stayer *s)
{
	s->idx = srcu_read_lock(&domain);
}

static void srcu_leave(struct stayer *s)
{
	srcu_read_unlock(&domain, s->idx);
}

static void wait_plain(void)
{
	synchronize_srcu(&domain);
}

static void wait_expedited(void)
{
	synchronize_srcu_expedited(&domain);
}

static void queue_one(void)
{
	static struct rcu_head head;

	call_srcu(&domain, &head, nothing);
}

static void wait_for_callbacks(void)
{
	srcu_barrier(&domain);
}

/* A release build does not know which threads are inside. */
static void must_name_domain(const struct kept *k, const struct stayer *s)
{
	assert_ptr_equal(k->report.object, &domain);
	assert_true(k->report.waited_ns >= STALL_NS);
	must_say(k, "(%p): waiting for ", (void *)&domain);
	must_say(k, " ms for 1 readers of domain, index %d", s->idx);
	must_say_since(k);
#ifdef QUIESCE_DEBUG
	assert_int_equal(k->report.holder, s->tid);
	must_say(k, "thread %d (stayer), ", (int)s->tid);
#else
	assert_int_equal(k->report.holder, 0);
	must_say(k, "QUIESCE_DEBUG");
#endif
}

static void waits_for_a_domain_are_reported(void **state)
{
	static void (*const wait[])(void) = { wait_plain, wait_expedited, queue_one, wait_for_callbacks };
	static const char *const name[] = { "synchronize_srcu", "synchronize_srcu_expedited", "call_srcu", "srcu_barrier" };
	pthread_t thread;
	struct stayer s;
	struct kept k;

	(void)state;
	for (int i = 0; i < 4; i++) {
		reports_begin();
		stayer_begin(&s, srcu_enter, srcu_leave, NULL);
		if (i == 3)
			queue_one();
		call_begin(&thread, &wait[i]);
		k = wait_for_report(name[i], i < 2 ? "and 0 callbacks" : "and 1 callbacks");
		must_name_domain(&k, &s);
		stayer_end(&s);
		pthread_join(thread, NULL);
		srcu_barrier(&domain);
		reports_end();
	}
}

enum { MAX_CALLERS = 40 };

static bool is_any_behind(void)
{
	struct kept k;
	char text[40];
	bool found = false;

	for (int n = 1; n < MAX_CALLERS && !found; n++) {
		snprintf(text, sizeof text, "; behind it %d more callers, and ", n);
		found = find_report("synchronize_srcu", text, &k);
	}
	return found;
}

/* A caller that finds the one before it overdue, which has lost its CPU, waits by itself: then it is behind no other, and more callers
 * join. */
static void callers_behind_a_wait_for_a_domain_are_counted(void **state)
{
	static void (*const wait)(void) = wait_plain;
	pthread_t thread[MAX_CALLERS];
	struct stayer s;
	int nr = 0;

	(void)state;
	reports_begin();
	stayer_begin(&s, srcu_enter, srcu_leave, NULL);
	while (nr < 3)
		call_begin(&thread[nr++], &wait);
	while (!is_any_behind()) {
		if (nr < MAX_CALLERS)
			call_begin(&thread[nr++], &wait);
		rest_ms(100);
	}
	stayer_end(&s);
	threads_end(thread, nr);
	reports_end();
}

#if !defined(QUIESCE_DEBUG) /* a debug build reports the unlock */
/* The wait never ends, so it runs in a child. */
static void unlock_twice(void)
{
	static void (*const wait)(void) = wait_plain;
	pthread_t thread;
	int idx = srcu_read_lock(&domain);

	srcu_read_unlock(&domain, idx);
	srcu_read_unlock(&domain, idx);
	reports_begin();
	call_begin(&thread, &wait);
	wait_for_report("synchronize_srcu", "there are 1 more unlocks than locks");
}

static void unlock_the_wrong_index(void)
{
	static void (*const wait)(void) = wait_plain;
	pthread_t thread;
	int idx = srcu_read_lock(&domain);

	srcu_read_unlock(&domain, !idx);
	reports_begin();
	call_begin(&thread, &wait);
	wait_for_report("synchronize_srcu", "more unlocks than locks");
}

static void more_unlocks_than_locks_are_reported_as_such(void **state)
{
	(void)state;
	succeeds(unlock_twice);
	succeeds(unlock_the_wrong_index);
}
#endif

/* ---- hazard pointers ---- */

static struct thing {
	struct hazptr_head head;
} thing;
static struct thing *published;

static void hazptr_enter(struct stayer *s)
{
	s->arg = hazptr_alloc(NULL);
	hazptr_protect((hazptr_t *)s->arg, &published);
}

static void hazptr_leave(struct stayer *s)
{
	hazptr_free(NULL, s->arg);
}

static void reclaimed(struct hazptr_head *head)
{
	(void)head;
}

static void retire_and_wait(void)
{
	call_hazptr(&thing.head, reclaimed);
	hazptr_barrier();
}

static void wait_for_thing(void)
{
	synchronize_hazptr(&thing);
}

static void wait_for_slot(void (*const *wait)(void), const char *call, void (*enter)(struct stayer *), void (*leave)(struct stayer *),
			  const char *what)
{
	pthread_t thread;
	struct stayer s;
	struct kept k;

	reports_begin();
	published = &thing;
	stayer_begin(&s, enter, leave, NULL);
	published = NULL;
	call_begin(&thread, wait);
	k = wait_for_report(call, what);
	assert_ptr_equal(k.report.object, &thing);
	must_say(&k, "; 0 more callers wait for guards");
	must_say_since(&k);
#ifdef QUIESCE_DEBUG
	assert_int_equal(k.report.holder, s.tid);
	must_say(&k, "thread %d (stayer), ", (int)s.tid);
#endif
	stayer_end(&s);
	pthread_join(thread, NULL);
	reports_end();
}

static void waits_for_slots_are_reported(void **state)
{
	static void (*const retire)(void) = retire_and_wait, (*const wait)(void) = wait_for_thing;
	char guard[80];

	(void)state;
	snprintf(guard, sizeof guard, " ms for a guard of %p, in a ", (void *)&thing);
	wait_for_slot(&retire, "hazptr_barrier", hazptr_enter, hazptr_leave, guard);
	wait_for_slot(&wait, "synchronize_shazptr", hazptr_enter, hazptr_leave, guard);
	wait_for_slot(&wait, "synchronize_shazptr", wildcard_enter, wildcard_leave,
		      " ms for a guard of everything, SHAZPTR_WILDCARD, in a ");
}

#ifdef QUIESCE_DEBUG
static void ignore_misuse(enum quiesce_misuse kind, const char *text)
{
	(void)kind, (void)text;
}

/* A holder that has ended is reported, too, as far as the debug build knows it. */
static void a_thread_that_ended_with_a_slot_is_reported(void **state)
{
	static void (*const wait)(void) = wait_for_thing;
	pthread_t thread;
	struct stayer s;

	(void)state;
	quiesce_set_misuse_hook(ignore_misuse);
	reports_begin();
	published = &thing;
	stayer_begin(&s, hazptr_enter, NULL, NULL);
	stayer_end(&s);
	call_begin(&thread, &wait);
	wait_for_report("synchronize_shazptr", ", which has ended, inside for ");
	hazptr_free(NULL, s.arg);
	pthread_join(thread, NULL);
	reports_end();
	quiesce_set_misuse_hook(NULL);
}
#define DEBUG_TESTS TEST(a_thread_that_ended_with_a_slot_is_reported),
#else
/* The hook ends the child: the wait never ends.  The debug build reports the call as misuse. */
static void expect_self(const struct quiesce_report *report)
{
	must(strstr(report->text, "a guard of "));
	must(strstr(report->text, ", the one that waits") || strstr(report->text, "in a slot of concurrency id ") ||
	     strstr(report->text, "in a slot of CPU ") || strstr(report->text, "in a shared slot"));
	must(!strcmp(report->call, "synchronize_shazptr"));
	_exit(0);
}

static void wait_for_oneself(void)
{
	struct shazptr_guard guard = shazptr_acquire(&thing);

	(void)guard;
	quiesce_set_report_hook(expect_self);
	quiesce_set_stall_timeout(STALL_NS);
	synchronize_shazptr(&thing);
}

static void a_caller_that_waits_for_itself_is_reported(void **state)
{
	(void)state;
	succeeds(wait_for_oneself);
}
#define DEBUG_TESTS TEST(more_unlocks_than_locks_are_reported_as_such), TEST(a_caller_that_waits_for_itself_is_reported),
#endif

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(a_wait_for_readers_of_rcu_is_reported),
		TEST(callbacks_of_rcu_are_reported_with_their_number),
		TEST(waits_behind_a_callback_that_blocks_are_reported),
		TEST(a_hook_may_retire),
		TEST(waits_for_a_domain_are_reported),
		TEST(callers_behind_a_wait_for_a_domain_are_counted),
		TEST(waits_for_slots_are_reported),
		DEBUG_TESTS
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
