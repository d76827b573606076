/* SPDX-License-Identifier: MIT */
/* test_hazptr_regress.c - general hazard pointers: faults that reviews found, each with a test that keeps it from coming back. */
#include "hazptrs.h"

#include <quiesce/shazptr.h>

static struct thing p_object, q_object;
static struct thing *const p = &p_object, *const q = &q_object;

static int runs(struct thing *t)
{
	return flag_get(&t->runs);
}

static void fresh(struct thing *t)
{
	memset(t, 0, sizeof *t);
}

/* ---- pointers that lead nowhere ---- */

/* Such pointers are a marked NULL, as in lists that mark nodes under removal; an error, by its field; a count. */
static void a_pointer_that_leads_nowhere_leaves_the_slot_taken(void **state)
{
	static const intptr_t odd[] = { 1, 2, 7, 1 - (intptr_t)offsetof(struct thing, other), -1 };
	hazptr_t *mine = hazptr_alloc(NULL);

	(void)state;
	assert_non_null(mine);
	for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
		struct thing *place = (struct thing *)odd[i];
		hazptr_t *next;

		if (i == 3)
			assert_ptr_equal(hazptr_protect(mine, &place, other), place);
		else
			assert_ptr_equal(hazptr_protect(mine, &place), place);
		next = hazptr_alloc(NULL);
		assert_non_null(next);
		assert_ptr_not_equal(next, mine);
		hazptr_free(NULL, next);
		hazptr_clear(mine);
	}
	hazptr_free(NULL, mine);
}

/* ---- a waiter delays no other caller ---- */

static void *barrier_main(void *done)
{
	hazptr_barrier();
	flag_set((int *)done);
	return NULL;
}

/* Start a thread in hazptr_barrier() that has found a slot, and waits. */
static void begin_to_wait(pthread_t *thread, int *done)
{
	uint64_t before = stats_now().shazptr_blocked;

	thread_must(pthread_create(thread, NULL, barrier_main, done));
	wait_until(stats_now().shazptr_blocked != before);
}

/* The worker reclaims all other objects while a barrier waits for one. */
static void a_waiting_barrier_delays_no_retirer(void **state)
{
	hazptr_t *slot;
	pthread_t thread;
	int done = 0;

	(void)state;
	fresh(p);
	fresh(q);
	slot = slot_with(NULL, p);
	thing_retire(p);
	begin_to_wait(&thread, &done);
	thing_retire(q);
	wait_until(runs(q) == 1);
	assert_int_equal(runs(p), 0);
	assert_int_equal(flag_get(&done), 0);
	hazptr_free(NULL, slot);
	pthread_join(thread, NULL);
	assert_int_equal(runs(p), 1);
	hazptr_barrier(); /* q is used again, and the other barrier came before it */
}

/* ---- wildcards, of which one is held at any time but none for long ---- */

static int wild, enough;

static void *wildcards_main(void *unused)
{
	struct shazptr_guard one = shazptr_acquire(SHAZPTR_WILDCARD), other;

	(void)unused;
	flag_set(&wild);
	while (!flag_get(&enough)) {
		other = shazptr_acquire(SHAZPTR_WILDCARD);
		short_rest();
		shazptr_clear(one);
		one = shazptr_acquire(SHAZPTR_WILDCARD);
		short_rest();
		shazptr_clear(other);
	}
	shazptr_clear(one);
	return NULL;
}

static void wildcards_that_overlap_end_for_a_barrier(void **state)
{
	struct hazptr_cohort cohort = HAZPTR_COHORT_INIT;
	pthread_t thread;

	(void)state;
	fresh(p);
	fresh(q);
	thread_must(pthread_create(&thread, NULL, wildcards_main, NULL));
	wait_until(flag_get(&wild));
	thing_retire(p);
	hazptr_barrier();
	assert_int_equal(runs(p), 1);
	call_hazptr_cohort(&cohort, &q->hazptr, thing_run);
	synchronize_hazptr_cohort(&cohort);
	assert_int_equal(runs(q), 1);
	flag_set(&enough);
	pthread_join(thread, NULL);
}

/* ---- objects that retire themselves again ---- */

#define NR_AGAIN (2 * HAZPTR_BATCH_MAX)
static struct thing again[NR_AGAIN];
static int no_more;

static void run_again(struct hazptr_head *head)
{
	thing_run(head);
	if (!flag_get(&no_more))
		call_hazptr(head, run_again);
}

static void objects_that_retire_themselves_again_let_go(void **state)
{
	(void)state;
	for (int i = 0; i < NR_AGAIN; i++)
		call_hazptr(&again[i].hazptr, run_again);
	hazptr_barrier();
	for (int i = 0; i < NR_AGAIN; i++)
		assert_true(runs(&again[i]) >= 1);
	flag_set(&no_more);
	assert_int_equal(quiesce_shutdown(0), 0);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(a_pointer_that_leads_nowhere_leaves_the_slot_taken),
		TEST(a_waiting_barrier_delays_no_retirer),
		TEST(wildcards_that_overlap_end_for_a_barrier),
		TEST(objects_that_retire_themselves_again_let_go),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
