/* SPDX-License-Identifier: MIT */
/* test_hazptr_retire.c - retired objects: each is reclaimed once, and not while a slot protects it. */
#include "hazptrs.h"

#include <quiesce/shazptr.h>

static struct thing p_object, q_object;
static struct thing *const p = &p_object, *const q = &q_object;

static void fresh(struct thing *t)
{
	memset(t, 0, sizeof *t);
}

/* ---- one object ---- */

static void a_callback_runs_once(void **state)
{
	(void)state;
	fresh(p);
	thing_retire(p);
	hazptr_barrier();
	assert_int_equal(runs_of(p), 1);
	retire_plenty();
	hazptr_barrier();
	assert_int_equal(runs_of(p), 1);
}

/* Without any further call the worker reclaims the object. */
static void a_callback_runs_without_further_calls(void **state)
{
	(void)state;
	fresh(p);
	thing_retire(p);
	wait_until(runs_of(p) == 1);
}

/* Retire @head of @t while @slot protects it, and check that the callback runs after @end and not before. */
static void kept_until(void (*end)(hazptr_t *), hazptr_t *slot, struct thing *t, struct hazptr_head *head,
		       void (*run)(struct hazptr_head *))
{
	fresh(t);
	call_hazptr(head, run);
	retire_plenty();
	assert_int_equal(runs_of(t), 0);
	end(slot);
	hazptr_barrier();
	assert_int_equal(runs_of(t), 1);
}

static void protect_q(hazptr_t *slot)
{
	protect_in(slot, q);
}

static void free_own(hazptr_t *slot)
{
	hazptr_free(NULL, slot);
}

static void an_object_stays_while_it_is_protected(void **state)
{
	hazptr_t *slot = slot_with(NULL, p);

	(void)state;
	kept_until(hazptr_clear, slot, p, &p->hazptr, thing_run);
	protect_in(slot, p);
	kept_until(protect_q, slot, p, &p->hazptr, thing_run);
	kept_until(free_own, slot, q, &q->hazptr, thing_run);
}

/* Without any further call the worker scans, again and again. */
static void the_worker_comes_when_the_protection_is_over(void **state)
{
	uint64_t scans = stats_now().hazptr_scans;
	hazptr_t *slot = slot_with(NULL, p);

	(void)state;
	fresh(p);
	thing_retire(p);
	wait_until(stats_now().hazptr_scans >= scans + 2);
	assert_int_equal(runs_of(p), 0);
	hazptr_free(NULL, slot);
	wait_until(runs_of(p) == 1);
}

static void an_object_stays_while_its_field_is_protected(void **state)
{
	hazptr_t *slot = hazptr_alloc(NULL);
	struct thing *current = p;

	(void)state;
	assert_ptr_equal(hazptr_protect(slot, &current, other), p);
	kept_until(hazptr_clear, slot, p, &p->other, other_run);
	hazptr_free(NULL, slot);
}

/* The address in a slot is compared with the head, not with the object around it. */
static void another_address_of_the_object_protects_nothing(void **state)
{
	hazptr_t *slot = slot_with(NULL, &p->other);

	(void)state;
	fresh(p);
	thing_retire(p);
	hazptr_barrier();
	assert_int_equal(runs_of(p), 1);
	hazptr_free(NULL, slot);
}

static void a_slot_of_a_context_and_a_detached_one_protect(void **state)
{
	struct hazptr_context ctx;
	hazptr_t *slot;

	(void)state;
	assert_int_equal(init_hazptr_context(&ctx), 0);
	slot = slot_with(&ctx, p);
	kept_until(hazptr_clear, slot, p, &p->hazptr, thing_run);
	hazptr_free(&ctx, slot);
	cleanup_hazptr_context(&ctx);
	slot = hazptr_alloc_detached();
	protect_in(slot, p);
	kept_until(free_own, slot, p, &p->hazptr, thing_run);
}

static struct shazptr_guard guard;

static void end_guard(hazptr_t *unused)
{
	(void)unused;
	shazptr_clear(guard);
}

static void guards_protect_too(void **state)
{
	(void)state;
	guard = shazptr_acquire(p);
	kept_until(end_guard, NULL, p, &p->hazptr, thing_run);
}

/* A wildcard protects all objects, so no plenty of objects is retired meanwhile. */
static void a_wildcard_keeps_everything(void **state)
{
	uint64_t scans = stats_now().hazptr_scans;

	(void)state;
	guard = shazptr_acquire(SHAZPTR_WILDCARD);
	fresh(p);
	fresh(q);
	thing_retire(p);
	thing_retire(q);
	wait_until(stats_now().hazptr_scans > scans);
	assert_int_equal(runs_of(p) + runs_of(q), 0);
	shazptr_clear(guard);
	hazptr_barrier();
	assert_int_equal(runs_of(p) + runs_of(q), 2);
}

/* ---- whose thread ---- */

static void *retire_in_thread(void *object)
{
	thing_retire(object);
	return NULL;
}

static void objects_of_an_exited_thread_are_reclaimed(void **state)
{
	enum { N = 40 };
	static struct thing object[N];

	(void)state;
	memset(object, 0, sizeof object);
	for (int i = 0; i < N; i++)
		in_thread(retire_in_thread, &object[i]);
	wait_until(things_run(object, N) == N);
}

static hazptr_t *left_by_thread;

static void *protect_and_retire(void *object)
{
	left_by_thread = slot_with(NULL, object);
	thing_retire(object);
	return NULL;
}

/* The thread has ended, and its slot has another owner now. */
static void a_slot_that_was_handed_over_protects(void **state)
{
	uint64_t scans = stats_now().hazptr_scans;

	(void)state;
	fresh(q);
	in_thread(protect_and_retire, q);
	wait_until(stats_now().hazptr_scans > scans);
	assert_int_equal(runs_of(q), 0);
	free_own(left_by_thread);
	hazptr_barrier();
	assert_int_equal(runs_of(q), 1);
}

static void *be_protected_by_another(void *object)
{
	fresh(object);
	thing_retire(object);
	retire_plenty();
	assert_int_equal(runs_of(object), 0);
	return NULL;
}

static void a_retirer_scans_the_slots_of_all_threads(void **state)
{
	hazptr_t *slot = slot_with(NULL, p);

	(void)state;
	in_thread(be_protected_by_another, p);
	hazptr_free(NULL, slot);
	hazptr_barrier();
	assert_int_equal(runs_of(p), 1);
}

static void retire_q(struct rcu_head *head)
{
	(void)head;
	thing_retire(q);
}

static void in_a_section_and_in_a_callback_of_rcu(void **state)
{
	static struct rcu_head head;

	(void)state;
	fresh(p);
	fresh(q);
	rcu_read_lock();
	thing_retire(p);
	retire_plenty();
	call_rcu(&head, retire_q);
	wait_until(runs_of(p) == 1); /* reclaimed by now, unless the worker is just reclaiming it */
	rcu_read_unlock();
	rcu_barrier();
	hazptr_barrier();
	assert_int_equal(runs_of(q), 1);
}

/* ---- in callbacks ---- */

struct node {
	struct hazptr_head hazptr;
	struct node *child[2];
};

static int nr_freed;

static void free_tree(struct hazptr_head *head)
{
	struct node *node = (struct node *)(void *)head;

	for (int i = 0; i < 2; i++)
		if (node->child[i])
			call_hazptr(&node->child[i]->hazptr, free_tree);
	free(node);
	count_up(&nr_freed);
}

static struct node *tree_new(int nr)
{
	struct node *node = nr ? calloc(1, sizeof *node) : NULL;

	if (node) {
		node->child[0] = tree_new((nr - 1) / 2);
		node->child[1] = tree_new(nr - 1 - (nr - 1) / 2);
	}
	return node;
}

static void a_tree_is_freed_from_its_root(void **state)
{
	enum { N = 10000 };

	(void)state;
	quiesce_store_relaxed(&nr_freed, 0);
	call_hazptr(&tree_new(N)->hazptr, free_tree);
	wait_until(flag_get(&nr_freed) == N);
	call_hazptr(&tree_new(N)->hazptr, free_tree);
	while (flag_get(&nr_freed) < 2 * N)
		hazptr_barrier();
	call_hazptr(&tree_new(N)->hazptr, free_tree);
	retire_plenty();
	wait_until(flag_get(&nr_freed) == 3 * N);
	hazptr_barrier();
	assert_int_equal(flag_get(&nr_freed), 3 * N);
}

static void a_list_is_freed_from_its_head(void **state)
{
	enum { N = 3000 };
	struct node *first = NULL, *node;

	(void)state;
	quiesce_store_relaxed(&nr_freed, 0);
	for (int i = 0; i < N; i++) {
		node = calloc(1, sizeof *node);
		assert_non_null(node);
		node->child[0] = first;
		first = node;
	}
	call_hazptr(&first->hazptr, free_tree);
	wait_until(flag_get(&nr_freed) == N);
}

/* One callback retires more objects than a queue holds. */
#define NR_BURST (3 * HAZPTR_BATCH_MAX)
static struct thing burst[NR_BURST];

static void retire_burst(struct hazptr_head *head)
{
	thing_run(head);
	for (int i = 0; i < NR_BURST; i++)
		thing_retire(&burst[i]);
}

static void a_callback_may_retire_more_than_fits(void **state)
{
	(void)state;
	for (int round = 0; round < 2; round++) {
		memset(burst, 0, sizeof burst);
		fresh(p);
		call_hazptr(&p->hazptr, retire_burst);
		if (round)
			retire_plenty(); /* the scan runs in this thread */
		wait_until(runs_of(p) == 1 && things_run(burst, NR_BURST) == NR_BURST);
	}
	hazptr_barrier();
	assert_int_equal(things_run(burst, NR_BURST), NR_BURST);
}

struct with_rcu {
	struct rcu_head rcu;
};

static int stop_again;

static void once_more(struct hazptr_head *head)
{
	has_run(p);
	if (!flag_get(&stop_again))
		call_hazptr(head, once_more);
}

/* An object that retires itself for ever does not stop other reclaims. */
static void an_object_may_retire_itself_again(void **state)
{
	int before;

	(void)state;
	fresh(p);
	quiesce_store_relaxed(&stop_again, 0);
	call_hazptr(&p->hazptr, once_more);
	wait_until(runs_of(p) > 2);
	for (int i = 0; i < 20; i++) {
		struct with_rcu *o = malloc(sizeof *o);

		kfree_rcu(o, rcu);
		rcu_barrier();
		fresh(q);
		thing_retire(q);
		hazptr_barrier();
		assert_int_equal(runs_of(q), 1);
	}
	flag_set(&stop_again);
	before = runs_of(p);
	wait_until(stats_now().hazptr_retired == stats_now().hazptr_reclaimed);
	assert_true(runs_of(p) >= before);
}

/* ---- many protected at once ---- */

#define NR_MANY 20000
static struct thing many[NR_MANY];

/* Every other of the first 2 * @nr is protected, half of them in contexts. */
static void many_protected(int nr)
{
	struct hazptr_context *ctx = calloc((size_t)nr, sizeof *ctx);
	hazptr_t **slot = calloc((size_t)nr, sizeof *slot);

	memset(many, 0, sizeof many);
	for (int i = 0; i < nr; i++) {
		struct hazptr_context *of = i / 7 % 2 ? &ctx[i / 7] : NULL;

		if (of && i % 7 == 0)
			assert_int_equal(init_hazptr_context(of), 0);
		slot[i] = slot_with(of, &many[2 * i]);
	}
	for (int i = 0; i < NR_MANY; i++)
		thing_retire(&many[i]);
	retire_plenty();
	wait_until(things_run(many, NR_MANY) == NR_MANY - nr);
	for (int i = 0; i < nr; i++)
		assert_int_equal(runs_of(&many[2 * i]), 0);
	hazptr_clear(slot[nr / 2]);
	wait_until(runs_of(&many[nr / 2 * 2]) == 1);
	for (int i = 0; i < nr; i++)
		hazptr_free(NULL, slot[i]);
	hazptr_barrier();
	assert_int_equal(things_run(many, NR_MANY), NR_MANY);
	for (int i = 0; i < nr; i += 7)
		cleanup_hazptr_context(&ctx[i / 7]);
	free(ctx);
	free(slot);
}

static void many_protected_at_once(void **state)
{
	(void)state;
	many_protected(300); /* beyond the small table */
	many_protected(5000);
	many_protected(10);
	many_protected(9000); /* more than a queue holds */
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(a_callback_runs_once),
		TEST(a_callback_runs_without_further_calls),
		TEST(an_object_stays_while_it_is_protected),
		TEST(the_worker_comes_when_the_protection_is_over),
		TEST(an_object_stays_while_its_field_is_protected),
		TEST(another_address_of_the_object_protects_nothing),
		TEST(a_slot_of_a_context_and_a_detached_one_protect),
		TEST(guards_protect_too),
		TEST(a_wildcard_keeps_everything),
		TEST(objects_of_an_exited_thread_are_reclaimed),
		TEST(a_slot_that_was_handed_over_protects),
		TEST(a_retirer_scans_the_slots_of_all_threads),
		TEST(in_a_section_and_in_a_callback_of_rcu),
		TEST(a_tree_is_freed_from_its_root),
		TEST(a_list_is_freed_from_its_head),
		TEST(a_callback_may_retire_more_than_fits),
		TEST(an_object_may_retire_itself_again),
		TEST(many_protected_at_once),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
