/* SPDX-License-Identifier: MIT */
/* test_reports_garbage.c - growing garbage is reported at the threshold and at each doubling, with the readers that delay it. */
#include "reports.h"

#include <quiesce/hazptr.h>
#include <quiesce/shazptr.h>
#include <quiesce/srcu.h>

#define THRESHOLD (64u << 10)

DEFINE_STATIC_SRCU(domain);

struct object {
	union {
		struct rcu_head rcu;
		struct hazptr_head hazptr;
	};
	char more[4000];
};

static void garbage_begin(void)
{
	reports_begin();
	quiesce_set_stall_timeout(0);
	quiesce_set_garbage_warning(THRESHOLD);
}

static void *new_object(void)
{
	struct object *o = malloc(sizeof *o);

	if (!o)
		abort();
	return o;
}

/* Check that each report is of another doubling than the one before, and that its figures fit. */
static void check_reports(const char *calls, const void *object, uint32_t holder)
{
	uint64_t last = THRESHOLD / 2;

	pthread_mutex_lock(&kept_lock);
	for (int i = 0; i < nr_kept; i++) {
		uint64_t bytes = kept[i].report.garbage_bytes, doubled = THRESHOLD;

		assert_int_equal(kept[i].report.kind, QUIESCE_REPORT_GARBAGE);
		assert_string_equal(kept[i].call, calls);
		assert_true(bytes >= THRESHOLD);
		while (2 * doubled <= bytes)
			doubled *= 2;
		assert_true(doubled > last);
		last = doubled;
		if (object)
			assert_ptr_equal(kept[i].report.object, object);
		if (holder)
			assert_int_equal(kept[i].report.holder, holder);
	}
	pthread_mutex_unlock(&kept_lock);
}

/* ---- RCU ---- */

static void garbage_of_rcu_is_reported(void **state)
{
	uint64_t warnings = stats_now().garbage_warnings;
	struct stayer s;
	struct kept k;

	(void)state;
	garbage_begin();
	stayer_begin(&s, rcu_enter, rcu_leave, NULL);
	for (int nr = 0; nr < 3; nr = nr_of_reports()) {
		struct object *o = new_object();

		kfree_rcu(o, rcu);
		short_rest();
	}
	stayer_end(&s);
	k = wait_for_report("call_rcu() and kfree_rcu()", "garbage: ");
	check_reports("call_rcu() and kfree_rcu()", NULL, (uint32_t)s.tid);
	must_say(&k, ": a grace period has waited for ");
	must_say(&k, " ms for thread %d (stayer)", (int)s.tid);
	must_say_since(&k);
	assert_true(stats_now().garbage_warnings >= warnings + 3);
	reports_end();
	rcu_barrier();
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

static void free_rcu_object(struct rcu_head *head)
{
	free(head);
}

static void garbage_of_domains_is_reported(void **state)
{
	struct stayer s;
	struct kept k;

	(void)state;
	garbage_begin();
	stayer_begin(&s, srcu_enter, srcu_leave, NULL);
	for (int nr = 0; nr < 3; nr = nr_of_reports()) {
		struct object *o = new_object();

		quiesce_call_srcu(&domain, &o->rcu, free_rcu_object, sizeof *o);
		short_rest();
	}
	k = wait_for_report("call_srcu()", "garbage: ");
	must_say(&k, " of the domain at %p, which has 1 readers of domain, index %d", (void *)&domain, s.idx);
	must_say_since(&k);
#ifdef QUIESCE_DEBUG
	check_reports("call_srcu()", &domain, (uint32_t)s.tid);
#else
	check_reports("call_srcu()", &domain, 0);
#endif
	stayer_end(&s);
	reports_end();
	srcu_barrier(&domain);
}

/* ---- hazard pointers ---- */

static void free_hazptr_object(struct hazptr_head *head)
{
	free(head);
}

static void garbage_behind_a_wildcard_is_reported(void **state)
{
	struct stayer s;
	struct kept k;

	(void)state;
	garbage_begin();
	stayer_begin(&s, wildcard_enter, wildcard_leave, NULL);
	for (int nr = 0; nr < 2; nr = nr_of_reports()) {
		struct object *o = new_object();

		quiesce_call_hazptr(&o->hazptr, free_hazptr_object, sizeof *o);
		short_rest();
	}
	check_reports("call_hazptr()", NULL, 0);
	k = wait_for_report("call_hazptr()", "garbage: ");
	must_say(&k, "one by a guard of everything, SHAZPTR_WILDCARD, in a ");
	must_say_since(&k);
#ifdef QUIESCE_DEBUG
	must_say(&k, "thread %d (stayer)", (int)s.tid);
#endif
	stayer_end(&s);
	reports_end();
	hazptr_barrier();
}

#define NR_EXITING 30

static void *retires_and_exits(void *all_there)
{
	for (int i = 0; i < 3; i++) {
		struct object *o = new_object();

		quiesce_call_hazptr(&o->hazptr, free_hazptr_object, sizeof *o);
	}
	pthread_barrier_wait(all_there); /* no thread may take over the queue of another that has ended */
	return NULL;
}

/* The queues of ended threads go, and the sizes of the objects that were in them stay in the sum. */
static void garbage_of_ended_threads_is_reported(void **state)
{
	pthread_t thread[NR_EXITING];
	pthread_barrier_t all_there;
	struct stayer s;

	(void)state;
	garbage_begin();
	quiesce_set_garbage_warning(2 * NR_EXITING * sizeof(struct object)); /* each thread retires three objects */
	stayer_begin(&s, wildcard_enter, wildcard_leave, NULL);
	pthread_barrier_init(&all_there, NULL, NR_EXITING);
	for (int i = 0; i < NR_EXITING; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, retires_and_exits, &all_there), 0);
	threads_end(thread, NR_EXITING);
	pthread_barrier_destroy(&all_there);
	wait_for_report("call_hazptr()", "garbage: ");
	stayer_end(&s);
	reports_end();
	hazptr_barrier();
}

static void nothing_is_reported_where_the_program_wants_none(void **state)
{
	struct stayer s;

	(void)state;
	garbage_begin();
	quiesce_set_garbage_warning(0);
	stayer_begin(&s, rcu_enter, rcu_leave, NULL);
	for (int i = 0; i < 100; i++) {
		struct object *o = new_object();

		kfree_rcu(o, rcu);
	}
	wait_until(stats_now().garbage_bytes >= 100 * sizeof(struct object));
	stayer_end(&s);
	rcu_barrier();
	assert_int_equal(nr_of_reports(), 0);
	reports_end();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(garbage_of_rcu_is_reported),
		TEST(garbage_of_domains_is_reported),
		TEST(garbage_of_ended_threads_is_reported), /* first: garbage that has been reported is not reported again */
		TEST(garbage_behind_a_wildcard_is_reported),
		TEST(nothing_is_reported_where_the_program_wants_none),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
