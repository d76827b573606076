/* SPDX-License-Identifier: MIT */
/* test_hazptr_kfree.c - kfree_hazptr(): the right address is freed, once, when no slot protects it.
 *
 * This program has its own free(), which the library calls too, and watches one address.
 */
#include "hazptrs.h"

extern void __libc_free(void *p);

static void *watched;
static int nr_freed;

void free(void *p)
{
	if (p && p == quiesce_load_relaxed(&watched)) { /* Relaxed: set before any thread frees the address. */
		quiesce_store_relaxed(&watched, NULL);
		count_up(&nr_freed);
	}
	__libc_free(p);
}

static void watch(void *p)
{
	assert_non_null(p);
	quiesce_store_relaxed(&nr_freed, 0);
	quiesce_store_relaxed(&watched, p);
}

struct inner {
	char payload[1000];
	struct hazptr_head hazptr;
};

struct far {
	char payload[4095 / sizeof(void *) * sizeof(void *)]; /* the furthest that is possible */
	struct hazptr_head hazptr;
};

/* An object that is retired while a slot protects its head is freed after the slot is cleared, by the first scan. */
#define freed_when_let_go(object, scan)                                     \
	do {                                                                \
		hazptr_t *slot = slot_with(NULL, &(object)->hazptr);        \
                                                                            \
		watch(object);                                              \
		kfree_hazptr(object, hazptr);                               \
		retire_plenty();                                            \
		assert_int_equal(flag_get(&nr_freed), 0);                   \
		hazptr_free(NULL, slot);                                    \
		scan();                                                     \
		wait_until(flag_get(&nr_freed) == 1);                       \
	} while (0)

static void the_head_may_be_first(void **state)
{
	struct thing *o = malloc(sizeof *o), *more = malloc(sizeof *more);

	(void)state;
	freed_when_let_go(o, retire_plenty);
	freed_when_let_go(more, hazptr_barrier);
}

static void the_head_may_be_inside(void **state)
{
	struct inner *o = malloc(sizeof *o), *more = malloc(sizeof *more);

	(void)state;
	freed_when_let_go(o, retire_plenty);
	freed_when_let_go(more, hazptr_barrier);
}

static void the_head_may_be_far_inside(void **state)
{
	struct far *o = malloc(sizeof *o), *more = malloc(sizeof *more);

	(void)state;
	freed_when_let_go(o, retire_plenty);
	freed_when_let_go(more, hazptr_barrier);
}

struct outer {
	long payload[7];
	struct {
		int kind;
		struct inner node;
	} base;
};

static void the_head_may_be_in_a_member(void **state)
{
	struct outer *o = malloc(sizeof *o);

	(void)state;
	watch(o);
	kfree_hazptr(o, base.node.hazptr);
	hazptr_barrier();
	assert_int_equal(flag_get(&nr_freed), 1);
}

/* As a generic container does, which knows the head and where it is. */
static void the_type_need_not_be_known(void **state)
{
	struct outer *o = malloc(sizeof *o);
	struct hazptr_head *head = &o->base.node.hazptr;
	hazptr_t *slot = slot_with(NULL, head);

	(void)state;
	kfree_hazptr_head(NULL, 8, 0);
	watch(o);
	kfree_hazptr_head(head, (size_t)((char *)head - (char *)o), sizeof *o);
	hazptr_try_barrier();
	assert_int_equal(flag_get(&nr_freed), 0);
	hazptr_free(NULL, slot);
	hazptr_barrier();
	assert_int_equal(flag_get(&nr_freed), 1);
}

static int nr_asked;

static struct inner *next_object(struct inner *o)
{
	nr_asked++;
	return o;
}

/* Callers write kfree_hazptr(rcu_xchg_pointer(&config, fresh), hazptr): the argument is evaluated once. */
static void the_pointer_is_asked_for_once(void **state)
{
	struct inner *o = malloc(sizeof *o);

	(void)state;
	watch(o);
	nr_asked = 0;
	kfree_hazptr(next_object(o), hazptr);
	hazptr_barrier();
	assert_int_equal(nr_asked, 1);
	assert_int_equal(flag_get(&nr_freed), 1);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(the_head_may_be_first),
		TEST(the_head_may_be_inside),
		TEST(the_head_may_be_far_inside),
		TEST(the_head_may_be_in_a_member),
		TEST(the_type_need_not_be_known),
		TEST(the_pointer_is_asked_for_once),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
