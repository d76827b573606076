/* SPDX-License-Identifier: MIT */
/* test_hazptr_wait.c - waiting for hazard pointers: hazptr_barrier(), synchronize_hazptr(), cohorts. */
#include "hazptrs.h"
#include "guards.h"

static struct thing p_object, q_object;
static struct thing *const p = &p_object, *const q = &q_object;

static void fresh(struct thing *t)
{
	memset(t, 0, sizeof *t);
}

/* ---- a thread in a call that waits ---- */

struct caller {
	pthread_t thread;
	void (*fn)(void);
	int returned;
	int *before;    /* flag that must be set before the return; NULL: none */
	int seen;
};

static void *caller_main(void *arg)
{
	struct caller *c = arg;

	c->fn();
	if (c->before)
		c->seen = flag_get(c->before);
	flag_set(&c->returned);
	return NULL;
}

static void caller_begin(struct caller *c, void (*fn)(void), int *before)
{
	*c = (struct caller){ .fn = fn, .before = before };
	thread_must(pthread_create(&c->thread, NULL, caller_main, c));
}

static void caller_end(struct caller *c)
{
	pthread_join(c->thread, NULL);
}

/* True if the caller has scanned all slots several times, and waits. */
static int caller_waits(struct caller *c)
{
	uint64_t scans = stats_now().scans;

	wait_until(flag_get(&c->returned) || stats_now().scans >= scans + SCANS_ENOUGH);
	return !flag_get(&c->returned);
}

/* ---- hazptr_barrier() ---- */

static void do_retire(void *object)
{
	thing_retire(object);
}

static void *retire_in_thread(void *object)
{
	thing_retire(object);
	return NULL;
}

static void a_barrier_waits_for_what_all_threads_retired(void **state)
{
	enum { N = 12 };
	static struct thing object[N];
	struct actor actor[N / 2];

	(void)state;
	for (int round = 0; round < 5; round++) {
		memset(object, 0, sizeof object);
		for (int i = 0; i < N / 2; i++) {
			actor_begin(&actor[i]); /* this thread lives on and makes no further call */
			actor_do(&actor[i], do_retire, &object[i]);
		}
		for (int i = N / 2; i < N; i++)
			in_thread(retire_in_thread, &object[i]); /* this thread has ended */
		hazptr_barrier();
		assert_int_equal(things_run(object, N), N);
		for (int i = 0; i < N / 2; i++)
			actor_end(&actor[i]);
	}
	hazptr_barrier();
}

static void a_barrier_that_is_tried_leaves_alone_what_is_protected(void **state)
{
	hazptr_t *slot = slot_with(NULL, p);

	(void)state;
	fresh(p);
	fresh(q);
	thing_retire(p);
	in_thread(retire_in_thread, q);
	assert_false(hazptr_try_barrier());
	assert_int_equal(flag_get(&p->runs), 0);
	assert_int_equal(flag_get(&q->runs), 1);
	hazptr_free(NULL, slot);
	assert_true(hazptr_try_barrier());
	assert_int_equal(flag_get(&p->runs), 1);
}

static void a_barrier_waits_for_what_is_protected(void **state)
{
	hazptr_t *slot = slot_with(NULL, p);
	struct caller c[2];
	int flag = 0;

	(void)state;
	fresh(p);
	fresh(q);
	thing_retire(p);
	thing_retire(q);
	for (int i = 0; i < 2; i++)
		caller_begin(&c[i], hazptr_barrier, &flag);
	assert_true(caller_waits(&c[0]) && caller_waits(&c[1]));
	assert_int_equal(runs_of(p), 0);
	assert_int_equal(runs_of(q), 1);
	flag_set(&flag);
	hazptr_clear(slot);
	for (int i = 0; i < 2; i++) {
		caller_end(&c[i]);
		assert_int_equal(c[i].seen, 1);
	}
	assert_int_equal(runs_of(p), 1);
	hazptr_free(NULL, slot);
}

/* A wait lasts until the callback has returned, not only until it has begun, whichever thread runs it. */
static sem_t in_callback, go_on;

static void run_slowly(struct hazptr_head *head)
{
	sem_post(&in_callback);
	wait_for(&go_on);
	thing_run(head);
}

static void *retire_slow_and_plenty(void *unused)
{
	call_hazptr(&p->hazptr, run_slowly);
	retire_plenty();
	return unused;
}

static void a_barrier_waits_for_a_callback_that_runs(void **state)
{
	struct caller c;
	pthread_t thread;

	(void)state;
	sem_init(&in_callback, 0, 0);
	sem_init(&go_on, 0, 0);
	for (int by_worker = 0; by_worker < 2; by_worker++) {
		fresh(p);
		if (by_worker)
			call_hazptr(&p->hazptr, run_slowly);
		else
			thread_must(pthread_create(&thread, NULL, retire_slow_and_plenty, NULL));
		wait_for(&in_callback);
		caller_begin(&c, hazptr_barrier, &p->runs);
		for (int i = 0; i < 20; i++)
			short_rest(); /* a chance to return too early */
		assert_int_equal(flag_get(&c.returned), 0);
		sem_post(&go_on);
		caller_end(&c);
		assert_int_equal(c.seen, 1);
		if (!by_worker)
			pthread_join(thread, NULL);
	}
}

/* Each caller finds its own objects reclaimed, while others retire and wait. */
#define NR_BARRIERS 100
#define NR_EACH 150

static int stop, nr_wrong;

static void *retire_and_wait(void *unused)
{
	struct thing *object = malloc(NR_EACH * sizeof *object);

	assert_non_null(object);
	for (int round = 0; round < NR_BARRIERS; round++) {
		memset(object, 0, NR_EACH * sizeof *object);
		for (int i = 0; i < NR_EACH; i++)
			thing_retire(&object[i]);
		hazptr_barrier();
		if (things_run(object, NR_EACH) != NR_EACH)
			count_up(&nr_wrong);
	}
	free(object);
	return unused;
}

static void *retire_for_ever(void *unused)
{
	while (!flag_get(&stop)) {
		for (int i = 0; i < 500; i++) {
			struct thing *t = malloc(sizeof *t);

			assert_non_null(t);
			kfree_hazptr(t, hazptr);
		}
		short_rest();
	}
	return unused;
}

static void barriers_at_once(void **state)
{
	pthread_t waiter[4], other[2];

	(void)state;
	quiesce_store_relaxed(&stop, 0);
	threads_begin(other, 2, retire_for_ever, NULL);
	threads_begin(waiter, 4, retire_and_wait, NULL);
	threads_end(waiter, 4);
	flag_set(&stop);
	threads_end(other, 2);
	assert_int_equal(nr_wrong, 0);
}

/* ---- synchronize_hazptr() ---- */

static void only_that_object_is_waited_for(void **state)
{
	hazptr_t *on_p = slot_with(NULL, p), *on_q = slot_with(NULL, q);
	uint64_t blocked = stats_now().shazptr_blocked;
	struct waiter w;

	(void)state;
	synchronize_hazptr(&p->other);
	synchronize_hazptr(&stop);
	synchronize_hazptr(NULL);
	assert_int_equal(stats_now().shazptr_blocked, blocked);
	waiter_begin(&w, p, NULL);
	hazptr_clear(on_q);
	assert_waits(&w);
	hazptr_clear(on_p);
	waiter_end(&w);
	hazptr_free(NULL, on_q);
	hazptr_free(NULL, on_p);
}

static void a_later_protection_is_not_waited_for(void **state)
{
	hazptr_t *before = slot_with(NULL, p), *after;
	struct waiter w, late;

	(void)state;
	waiter_begin(&w, p, NULL);
	assert_waits(&w);
	after = slot_with(NULL, p);
	protect_in(before, p); /* again, in the same slot */
	waiter_end(&w);
	waiter_begin(&late, p, NULL);
	assert_waits(&late);
	hazptr_free(NULL, before);
	assert_waits(&late);
	hazptr_free(NULL, after);
	waiter_end(&late);
}

static void a_wildcard_wait_waits_for_slots(void **state)
{
	hazptr_t *slot = slot_with(NULL, p), *empty = hazptr_alloc(NULL);
	struct waiter w;

	(void)state;
	waiter_begin(&w, SHAZPTR_WILDCARD, NULL);
	assert_waits(&w);
	hazptr_clear(slot);
	waiter_end(&w);
	hazptr_free(NULL, slot);
	synchronize_hazptr(SHAZPTR_WILDCARD);
	hazptr_free(NULL, empty);
}

/* Whether the scan sleeps just then is chance, so try until it does. */
static void woken_by(void (*end)(hazptr_t *))
{
	uint64_t before = stats_now().wakeups;
	struct waiter w;

	while (stats_now().wakeups == before) {
		hazptr_t *slot = slot_with(NULL, p);

		waiter_begin(&w, p, NULL);
		assert_waits(&w);
		end(slot);
		waiter_end(&w);
		hazptr_free(NULL, slot);
	}
}

static void protect_q(hazptr_t *slot)
{
	protect_in(slot, q);
}

static void clear_then_protect(hazptr_t *slot)
{
	hazptr_clear(slot);
	protect_in(slot, q);
}

static void free_and_take(hazptr_t *slot)
{
	hazptr_free(NULL, slot);
	assert_ptr_equal(hazptr_alloc(NULL), slot);
}

static void a_wait_is_woken_by_the_next_protection_or_the_free(void **state)
{
	(void)state;
	woken_by(protect_q);
	woken_by(clear_then_protect);
	woken_by(free_and_take);
}

/* Protect @p all the time, in one slot or in two alternately: there is always one. */
static void *protect_for_ever(void *two)
{
	hazptr_t *slot[2] = { hazptr_alloc(NULL), hazptr_alloc(NULL) };

	for (int i = 0; !flag_get(&stop); i ^= two != NULL) {
		protect_in(slot[i], p);
		if (two)
			hazptr_clear(slot[!i]);
		flag_set(&q->runs);
	}
	hazptr_free_batch(NULL, slot, 2);
	return NULL;
}

static void endless_protections_starve_no_waiter(void **state)
{
	pthread_t reader[2];
	uint64_t blocked = stats_now().shazptr_blocked;

	(void)state;
	for (int two = 0; two < 2; two++) {
		quiesce_store_relaxed(&stop, 0);
		fresh(q);
		threads_begin(reader, 2, protect_for_ever, two ? q : NULL);
		wait_until(runs_of(q));
		for (int i = 0; i < 40; i++)
			synchronize_hazptr(p);
		flag_set(&stop);
		threads_end(reader, 2);
	}
	assert_true(stats_now().shazptr_blocked > blocked);
}

/* ---- cohorts ---- */

static struct hazptr_cohort cohort = HAZPTR_COHORT_INIT;

static void wait_for_cohort(void)
{
	synchronize_hazptr_cohort(&cohort);
}

static void retire_into(struct hazptr_cohort *c, struct thing *t)
{
	call_hazptr_cohort(c, &t->hazptr, thing_run);
}

static void a_cohort_is_waited_for_alone(void **state)
{
	struct hazptr_cohort other = HAZPTR_COHORT_INIT;
	hazptr_t *slot = slot_with(NULL, p), *more = slot_with(NULL, &p->other);
	struct thing mine = { .id = 0 };

	(void)state;
	fresh(p);
	call_hazptr(&p->other, other_run);
	retire_into(&other, p);
	retire_into(&cohort, &mine);
	synchronize_hazptr_cohort(&cohort); /* objects outside the cohort do not delay it */
	assert_int_equal(runs_of(&mine), 1);
	assert_int_equal(runs_of(p), 0);
	synchronize_hazptr_cohort(&cohort);
	assert_int_equal(runs_of(&mine), 1);
	hazptr_free(NULL, slot);
	hazptr_free(NULL, more);
	hazptr_barrier();
	assert_int_equal(runs_of(p), 1);
	synchronize_hazptr_cohort(&other);
	assert_int_equal(runs_of(p), 2);
}

static void a_cohort_waits_for_what_is_protected(void **state)
{
	hazptr_t *slot = slot_with(NULL, p);
	struct caller c;
	int flag = 0;

	(void)state;
	fresh(p);
	fresh(q);
	retire_into(&cohort, p);
	retire_into(&cohort, q);
	caller_begin(&c, wait_for_cohort, &flag);
	assert_true(caller_waits(&c));
	assert_int_equal(runs_of(p), 0);
	flag_set(&flag);
	hazptr_clear(slot);
	caller_end(&c);
	assert_int_equal(c.seen, 1);
	assert_int_equal(runs_of(p) + runs_of(q), 2);
	hazptr_free(NULL, slot);
}

static void only_its_wait_reclaims_a_cohort(void **state)
{
	(void)state;
	fresh(p);
	retire_into(&cohort, p);
	hazptr_barrier();
	retire_plenty();
	assert_int_equal(quiesce_shutdown(0), 0);
	assert_int_equal(runs_of(p), 0);
	synchronize_hazptr_cohort(&cohort);
	assert_int_equal(runs_of(p), 1);
}

#define NR_MEMBERS 20000
static struct thing member[NR_MEMBERS];

static void a_big_cohort_is_reclaimed_as_it_grows(void **state)
{
	hazptr_t *slot = slot_with(NULL, &member[3]);

	(void)state;
	memset(member, 0, sizeof member);
	for (int i = 0; i < NR_MEMBERS; i++)
		retire_into(&cohort, &member[i]);
	assert_in_range(things_run(member, NR_MEMBERS), NR_MEMBERS - HAZPTR_BATCH_MAX, NR_MEMBERS - 1);
	assert_int_equal(runs_of(&member[3]), 0);
	hazptr_free(NULL, slot);
	synchronize_hazptr_cohort(&cohort);
	assert_int_equal(things_run(member, NR_MEMBERS), NR_MEMBERS);
}

/* The structure lives for a round: threads retire into its cohort, then it is destroyed. */
struct structure {
	struct hazptr_cohort cohort;
	struct thing *member;
	int nr_next;
};

static void *retire_members(void *arg)
{
	struct structure *s = arg;
	int i;

	while ((i = quiesce_fetch_add_relaxed(&s->nr_next, 1)) < NR_MEMBERS) { /* Relaxed: a number. */
		retire_into(&s->cohort, &s->member[i]);
		if (i % 5000 == 0)
			synchronize_hazptr_cohort(&s->cohort);
	}
	return NULL;
}

static void a_cohort_is_destroyed_after_the_wait(void **state)
{
	pthread_t thread[3];

	(void)state;
	for (int round = 0; round < 3; round++) {
		struct structure *s = calloc(1, sizeof *s);

		assert_non_null(s);
		s->member = calloc(NR_MEMBERS, sizeof *s->member);
		assert_non_null(s->member);
		threads_begin(thread, 3, retire_members, s);
		threads_end(thread, 3);
		synchronize_hazptr_cohort(&s->cohort);
		assert_int_equal(things_run(s->member, NR_MEMBERS), NR_MEMBERS);
		free(s->member);
		memset(s, 0xee, sizeof *s);
		free(s);
	}
}

static void retire_next(struct hazptr_head *head)
{
	struct thing *t = (struct thing *)(void *)head;

	thing_run(head);
	if (t->id)
		call_hazptr_cohort(&cohort, &t[1].hazptr, retire_next);
}

/* A cohort's wait includes all objects that its callbacks retire into it, down to the last. */
static void callbacks_may_retire_into_their_cohort(void **state)
{
	enum { N = 3000 };

	(void)state;
	memset(member, 0, sizeof member);
	for (int i = 0; i < N - 1; i++)
		member[i].id = 1;
	call_hazptr_cohort(&cohort, &member[0].hazptr, retire_next);
	synchronize_hazptr_cohort(&cohort);
	assert_int_equal(things_run(member, N), N);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(a_barrier_waits_for_what_all_threads_retired),
		TEST(a_barrier_that_is_tried_leaves_alone_what_is_protected),
		TEST(a_barrier_waits_for_what_is_protected),
		TEST(a_barrier_waits_for_a_callback_that_runs),
		TEST(barriers_at_once),
		TEST(only_that_object_is_waited_for),
		TEST(a_later_protection_is_not_waited_for),
		TEST(a_wildcard_wait_waits_for_slots),
		TEST(a_wait_is_woken_by_the_next_protection_or_the_free),
		TEST(endless_protections_starve_no_waiter),
		TEST(a_cohort_is_waited_for_alone),
		TEST(a_cohort_waits_for_what_is_protected),
		TEST(only_its_wait_reclaims_a_cohort),
		TEST(a_big_cohort_is_reclaimed_as_it_grows),
		TEST(a_cohort_is_destroyed_after_the_wait),
		TEST(callbacks_may_retire_into_their_cohort),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
