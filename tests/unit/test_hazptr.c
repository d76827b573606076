/* SPDX-License-Identifier: MIT */
/* test_hazptr.c - slots of hazard pointers: allocation, protection, freeing. */
#include "hazptrs.h"
#include "guards.h"

#define NR_OWN HAZPTR_SLOT_PER_CTX

static struct thing p_object = { .id = 1 }, q_object = { .id = 2 };
static struct thing *const p = &p_object, *const q = &q_object;
static char bytes[2000]; /* distinct addresses to protect */

/* True if a wait for @address finds no slot that blocks it. */
static int is_unprotected(const void *address)
{
	uint64_t blocked = stats_now().shazptr_blocked;

	synchronize_hazptr(address);
	return stats_now().shazptr_blocked == blocked;
}

static void free_own(hazptr_t *slot)
{
	hazptr_free(NULL, slot);
}

static void protect_q(hazptr_t *slot)
{
	protect_in(slot, q);
}

/* ---- taking and giving back ---- */

static void all_differ(hazptr_t *const *slot, int nr)
{
	for (int i = 0; i < nr; i++)
		for (int k = 0; k < i; k++)
			assert_ptr_not_equal(slot[i], slot[k]);
}

static void *take_the_first(void *unused)
{
	hazptr_t *slot = hazptr_alloc(NULL);

	assert_non_null(slot);
	assert_int_equal(slot_value(slot), 0);
	protect_in(slot, p);
	assert_int_equal(slot_value(slot), p);
	hazptr_free(NULL, slot);
	return unused;
}

static void the_thread_s_own_slots_need_no_set_up(void **state)
{
	(void)state;
	in_thread(take_the_first, NULL);
	take_the_first(NULL);
	assert_true(is_unprotected(p));
}

static void a_slot_is_the_first_again_once_it_is_free(void **state)
{
	hazptr_t *slot = hazptr_alloc(NULL);

	(void)state;
	hazptr_free(NULL, slot);
	assert_ptr_equal(hazptr_alloc(NULL), slot);
	assert_ptr_not_equal(hazptr_alloc(NULL), slot);
	hazptr_free(NULL, slot + 1);
	hazptr_free(NULL, slot);
	hazptr_free(NULL, NULL);
}

/* A thread whose line is full borrows slots from a pool. */
static void the_thread_s_own_slots_have_no_end(void **state)
{
	enum { N = 200 };
	hazptr_t *slot[N];

	(void)state;
	for (int i = 0; i < N; i++)
		slot[i] = slot_with(NULL, bytes + i);
	all_differ(slot, N);
	for (int i = 0; i < N; i++)
		assert_int_equal(slot_value(slot[i]), bytes + i);
	for (int i = 0; i < N; i += 2)
		hazptr_free(NULL, slot[i]);
	for (int i = 0; i < N; i++)
		if (i % 50 == 0)
			assert_true(is_unprotected(bytes + i));
	waits_until(free_own, slot[1], bytes + 1);
	waits_until(free_own, slot[N - 1], bytes + N - 1);
	for (int i = 3; i < N - 1; i += 2)
		hazptr_free(NULL, slot[i]);
	assert_true(is_unprotected(SHAZPTR_WILDCARD));
}

/* Return how many lines were added in @rounds, in each of which the pool gives @nr slots and gets them back. */
static uint32_t lines_after(int rounds, int nr)
{
	hazptr_t *slot[300];
	uint32_t before = stats_now().slots_lines;

	for (int round = 0; round < rounds; round++) {
		for (int i = 0; i < nr; i++)
			slot[i] = hazptr_alloc_detached();
		for (int i = 0; i < nr; i++)
			hazptr_free(NULL, slot[i]);
	}
	return stats_now().slots_lines - before;
}

static void borrowed_slots_are_borrowed_again(void **state)
{
	(void)state;
	lines_after(1, 300);
	assert_int_equal(lines_after(5, 300), 0);
}

/* Lines of contexts come first, then full ones; each group is longer than one search. */
static void a_search_goes_on_where_the_last_one_ended(void **state)
{
	enum { CONTEXTS = 100, KEPT = 700 };
	static struct hazptr_context ctx[CONTEXTS];
	static hazptr_t *kept[KEPT];

	(void)state;
	for (int i = 0; i < CONTEXTS; i++)
		assert_int_equal(init_hazptr_context(&ctx[i]), 0);
	for (int i = 0; i < KEPT; i++)
		kept[i] = hazptr_alloc_detached();
	assert_in_range(lines_after(200, 100), 0, 100 / NR_OWN + KEPT / NR_OWN + 2);
	assert_int_equal(lines_after(200, 100), 0);
	hazptr_free_batch(NULL, kept, KEPT);
	for (int i = 0; i < CONTEXTS; i++)
		cleanup_hazptr_context(&ctx[i]);
}

/* ---- contexts ---- */

static void a_context_has_seven_slots_and_no_more(void **state)
{
	struct hazptr_context ctx;
	hazptr_t *slot[NR_OWN];

	(void)state;
	assert_int_equal(init_hazptr_context(&ctx), 0);
	for (int i = 0; i < NR_OWN; i++)
		slot[i] = slot_with(&ctx, bytes + i);
	all_differ(slot, NR_OWN);
	assert_null(hazptr_alloc(&ctx));
	for (int i = 0; i < NR_OWN; i++) {
		hazptr_free(&ctx, slot[i]);
		assert_ptr_equal(hazptr_alloc(&ctx), slot[i]); /* the only free slot */
		assert_int_equal(slot_value(slot[i]), 0);
		assert_null(hazptr_alloc(&ctx));
	}
	hazptr_free_batch(&ctx, slot, NR_OWN);
	cleanup_hazptr_context(&ctx);
	assert_null(hazptr_alloc(&ctx)); /* a context that was cleaned up gives no slot */
	cleanup_hazptr_context(&ctx);
}

static void slots_are_freed_in_any_order(void **state)
{
	static const int step[] = { 1, 2, 3, 5, 6 }; /* steps that visit all of seven slots */
	struct hazptr_context ctx;
	hazptr_t *slot[NR_OWN];

	(void)state;
	assert_int_equal(init_hazptr_context(&ctx), 0);
	for (size_t s = 0; s < sizeof step / sizeof *step; s++) {
		for (int i = 0; i < NR_OWN; i++)
			slot[i] = slot_with(&ctx, bytes + i);
		for (int i = 0, k = 3; i < NR_OWN; i++, k = (k + step[s]) % NR_OWN) {
			assert_int_equal(slot_value(slot[k]), bytes + k);
			hazptr_free(&ctx, slot[k]);
			assert_true(is_unprotected(bytes + k));
		}
	}
	cleanup_hazptr_context(&ctx);
}

static void contexts_and_threads_share_no_slot(void **state)
{
	struct hazptr_context a, b;
	hazptr_t *slot[3 * NR_OWN];

	(void)state;
	assert_int_equal(init_hazptr_context(&a), 0);
	assert_int_equal(init_hazptr_context(&b), 0);
	assert_true(hazptr_alloc_batch(&a, slot, NR_OWN));
	assert_true(hazptr_alloc_batch(NULL, slot + NR_OWN, NR_OWN));
	assert_true(hazptr_alloc_batch(&b, slot + 2 * NR_OWN, NR_OWN));
	all_differ(slot, 3 * NR_OWN);
	hazptr_free_batch(&a, slot, NR_OWN);
	hazptr_free_batch(NULL, slot + NR_OWN, NR_OWN);
	hazptr_free_batch(&b, slot + 2 * NR_OWN, NR_OWN);
	cleanup_hazptr_context(&b);
	cleanup_hazptr_context(&a);
}

static void two_thousand_contexts(void **state)
{
	enum { N = 2000 };
	struct hazptr_context *ctx = calloc(N, sizeof *ctx);
	hazptr_t **slot = calloc(N, sizeof *slot);
	uint32_t lines = 0;

	(void)state;
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < N; i++) {
			assert_int_equal(init_hazptr_context(&ctx[i]), 0);
			slot[i] = slot_with(&ctx[i], bytes + i);
		}
		waits_until(free_own, slot[round], bytes + round);
		waits_until(free_own, slot[N - 1], bytes + N - 1);
		for (int i = N - 1; i >= 0; i--) {
			if (i != round && i != N - 1)
				hazptr_free(&ctx[i], slot[i]);
			cleanup_hazptr_context(&ctx[i]);
		}
		assert_true(is_unprotected(SHAZPTR_WILDCARD));
		if (round == 0)
			lines = stats_now().slots_lines;
	}
	assert_int_equal(stats_now().slots_lines, lines); /* the lines are used again */
	free(ctx);
	free(slot);
}

static void a_context_may_be_moved(void **state)
{
	struct hazptr_context *heap = malloc(sizeof *heap), stack;
	hazptr_t *slot;

	(void)state;
	assert_int_equal(init_hazptr_context(&stack), 0);
	slot = slot_with(&stack, p);
	*heap = stack;
	memset(&stack, 0xee, sizeof stack);
	assert_ptr_not_equal(hazptr_alloc(heap), slot);
	waits_until(hazptr_clear, slot, p);
	hazptr_free(heap, slot);
	hazptr_free(heap, slot + 1);
	cleanup_hazptr_context(heap);
	free(heap);
}

static void *init_context(void *ctx)
{
	assert_int_equal(init_hazptr_context(ctx), 0);
	return NULL;
}

static void *cleanup_context(void *ctx)
{
	cleanup_hazptr_context(ctx);
	return NULL;
}

/* A context is initialised by a thread that has ended, used here, and cleaned up by a third. */
static void a_context_may_go_from_thread_to_thread(void **state)
{
	struct hazptr_context ctx, other;
	hazptr_t *slot;

	(void)state;
	in_thread(init_context, &ctx);
	slot = slot_with(&ctx, p);
	in_thread(init_context, &other);
	assert_ptr_not_equal(other.first, ctx.first);
	waits_until(hazptr_clear, slot, p);
	hazptr_free(&ctx, slot);
	in_thread(cleanup_context, &ctx);
	cleanup_hazptr_context(&other);
}

/* ---- protecting ---- */

static void protect_returns_the_current_pointer(void **state)
{
	hazptr_t *slot = hazptr_alloc(NULL);
	struct thing *current = p, *found;

	(void)state;
	found = hazptr_protect(slot, &current);
	assert_ptr_equal(found, p);
	assert_int_equal(slot_value(slot), p);
	current = q;
	assert_ptr_equal(hazptr_tryprotect(slot, &current), q);
	assert_int_equal(slot_value(slot), q);
	assert_true(is_unprotected(p));
	waits_until(hazptr_clear, slot, q);
	hazptr_free(NULL, slot);
}

static void null_leaves_the_slot_empty(void **state)
{
	hazptr_t *slot = slot_with(NULL, p);
	struct thing *current = NULL;

	(void)state;
	assert_null(hazptr_protect(slot, &current));
	assert_int_equal(slot_value(slot), 0);
	protect_in(slot, p);
	assert_null(hazptr_protect(slot, &current, other));
	assert_int_equal(slot_value(slot), 0);
	protect_in(slot, p);
	assert_null(hazptr_tryprotect(slot, &current));
	assert_int_equal(slot_value(slot), 0);
	protect_in(slot, p);
	assert_null(hazptr_tryprotect(slot, &current, other));
	assert_int_equal(slot_value(slot), 0);
	synchronize_hazptr(NULL);
	assert_true(is_unprotected(p) && is_unprotected(SHAZPTR_WILDCARD));
	hazptr_free(NULL, slot);
}

static void a_field_is_protected_by_its_address(void **state)
{
	hazptr_t *slot = hazptr_alloc(NULL);
	struct thing *current = p, *found = hazptr_protect(slot, &current, other);

	(void)state;
	assert_ptr_equal(found, p);
	assert_int_equal(found->id, 1);
	assert_int_equal(slot_value(slot), &p->other);
	assert_true(is_unprotected(p));
	waits_until(protect_q, slot, &p->other);
	current = q;
	assert_ptr_equal(hazptr_tryprotect(slot, &current, other), q);
	assert_int_equal(slot_value(slot), &q->other);
	assert_ptr_equal(hazptr_protect(slot, &current, hazptr), q); /* the first field is the object */
	waits_until(hazptr_clear, slot, q);
	hazptr_free(NULL, slot);
}

/* A protection ends by another protection, a clear or a free, and not before. */
static void a_protection_ends_in_three_ways(void **state)
{
	hazptr_t *slot = slot_with(NULL, p);

	(void)state;
	waits_until(protect_q, slot, p);
	waits_until(hazptr_clear, slot, q);
	assert_int_equal(slot_value(slot), 0);
	hazptr_clear(slot);
	protect_in(slot, p);
	waits_until(free_own, slot, p);
	assert_true(is_unprotected(SHAZPTR_WILDCARD));
}

static void slots_of_one_address_are_as_many_protections(void **state)
{
	hazptr_t *first = slot_with(NULL, p), *second = slot_with(NULL, p);
	struct shazptr_guard guard = shazptr_acquire(p);

	(void)state;
	hazptr_free(NULL, first);
	shazptr_clear(guard);
	waits_until(hazptr_clear, second, p);
	hazptr_free(NULL, second);
}

/* ---- several at once ---- */

static void a_batch_is_had_whole_or_not_at_all(void **state)
{
	hazptr_t *some[3], *rest[NR_OWN];
	struct hazptr_context ctx;

	(void)state;
	assert_int_equal(init_hazptr_context(&ctx), 0);
	assert_true(hazptr_alloc_batch(&ctx, some, 3));
	assert_false(hazptr_alloc_batch(&ctx, rest, NR_OWN - 2));
	assert_true(hazptr_alloc_batch(&ctx, rest, 0));
	assert_true(hazptr_alloc_batch(&ctx, rest, NR_OWN - 3)); /* nothing of the failed one is left */
	assert_null(hazptr_alloc(&ctx));
	hazptr_free_batch(&ctx, some, 3);
	hazptr_free_batch(&ctx, rest, NR_OWN - 3);
	assert_true(hazptr_alloc_batch(&ctx, rest, NR_OWN));
	hazptr_free_batch(&ctx, rest, NR_OWN);
	cleanup_hazptr_context(&ctx);
}

static void a_batch_protects_each(void **state)
{
	enum { N = 40 };
	static struct thing object[N], *pointer[N];
	void *found[N], **where[N];
	hazptr_t *slot[N];

	(void)state;
	assert_true(hazptr_alloc_batch(NULL, slot, N));
	for (int i = 0; i < N; i++) {
		pointer[i] = i == 5 ? NULL : &object[i];
		where[i] = (void **)(void *)&pointer[i];
	}
	hazptr_protect_batch(slot, where, found, N);
	for (int i = 0; i < N; i++) {
		assert_ptr_equal(found[i], pointer[i]);
		assert_int_equal(slot_value(slot[i]), pointer[i]);
	}
	waits_until(hazptr_clear, slot[N - 1], &object[N - 1]);
	hazptr_clear_batch(slot, N);
	for (int i = 0; i < N; i++)
		assert_int_equal(slot_value(slot[i]), 0);
	assert_true(is_unprotected(SHAZPTR_WILDCARD));
	hazptr_free_batch(NULL, slot, N);
	assert_ptr_equal(hazptr_alloc(NULL), slot[0]);
	hazptr_free(NULL, slot[0]);
}

/* ---- from thread to thread ---- */

struct handed {
	hazptr_t *slot;
	struct thing *object;
};

static void *take_and_leave(void *arg)
{
	struct handed *h = arg;

	h->slot = slot_with(NULL, h->object);
	return NULL;
}

static void *free_handed(void *arg)
{
	hazptr_free(NULL, ((struct handed *)arg)->slot);
	return NULL;
}

/* The next threads get the line, and do not use slots that are still held in it. */
static void a_protection_outlives_its_thread(void **state)
{
	enum { N = 20 };
	static struct thing object[N];
	struct handed old[N];

	(void)state;
	for (int i = 0; i < N; i++) {
		old[i].object = &object[i];
		in_thread(take_and_leave, &old[i]);
		for (int k = 0; k < i; k++)
			assert_ptr_not_equal(old[i].slot, old[k].slot);
	}
	for (int i = 0; i < N; i++)
		assert_int_equal(slot_value(old[i].slot), &object[i]);
	for (int i = 0; i < N; i += 3)
		waits_until(hazptr_clear, old[i].slot, &object[i]);
	for (int i = 0; i < N; i++)
		in_thread(free_handed, &old[i]);
	assert_true(is_unprotected(SHAZPTR_WILDCARD));
}

static void *detached_in_thread(void *arg)
{
	struct handed *h = arg;

	h->slot = hazptr_alloc_detached();
	protect_in(h->slot, h->object);
	return NULL;
}

static void a_detached_slot_belongs_to_no_thread(void **state)
{
	struct handed h = { .object = p };
	hazptr_t *mine = hazptr_alloc_detached(), *own = hazptr_alloc(NULL);

	(void)state;
	assert_int_equal(slot_value(mine), 0);
	assert_ptr_not_equal(mine, own);
	in_thread(detached_in_thread, &h);
	assert_ptr_not_equal(h.slot, mine);
	waits_until(protect_q, h.slot, p);
	waits_until(free_own, h.slot, q);
	hazptr_free(NULL, mine);
	hazptr_free(NULL, own);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(the_thread_s_own_slots_need_no_set_up),
		TEST(a_slot_is_the_first_again_once_it_is_free),
		TEST(the_thread_s_own_slots_have_no_end),
		TEST(borrowed_slots_are_borrowed_again),
		TEST(a_search_goes_on_where_the_last_one_ended),
		TEST(a_context_has_seven_slots_and_no_more),
		TEST(slots_are_freed_in_any_order),
		TEST(contexts_and_threads_share_no_slot),
		TEST(two_thousand_contexts),
		TEST(a_context_may_be_moved),
		TEST(a_context_may_go_from_thread_to_thread),
		TEST(protect_returns_the_current_pointer),
		TEST(null_leaves_the_slot_empty),
		TEST(a_field_is_protected_by_its_address),
		TEST(a_protection_ends_in_three_ways),
		TEST(slots_of_one_address_are_as_many_protections),
		TEST(a_batch_is_had_whole_or_not_at_all),
		TEST(a_batch_protects_each),
		TEST(a_protection_outlives_its_thread),
		TEST(a_detached_slot_belongs_to_no_thread),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
