/* SPDX-License-Identifier: MIT */
/* test_uatomic.c - each operation on each size, signed and not, between neighbours that it must not touch; and its order.
 *
 * raw, whole file: it tests volatile.
 */
#define _GNU_SOURCE
#include <urcu/uatomic.h>

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static int nr_evaluated; /* number of evaluated arguments */

static long once(long value)
{
	nr_evaluated++;
	return value;
}

static int *at(int *place)
{
	nr_evaluated++;
	return place;
}

/* Expand @f for each integer type. */
#define FOR_EACH_TYPE(f)                                                                             \
	f(schar, signed char) f(uchar, unsigned char) f(sshort, short) f(ushort, unsigned short) f(sint, int)          \
	f(uint, unsigned int) f(slong, long) f(ulong, unsigned long) f(sllong, long long) f(ullong, unsigned long long)

#define MAX(type) ((type)(caa_is_signed_type(type) ? ((1ull << (sizeof(type) * 8 - 1)) - 1) : ~0ull))
#define MIN(type) ((type)(MAX(type) + 1ull))

/* CELL() declares an object between two neighbours, and IS() checks its value and theirs. */
#define CELL(type)                                                                                                     \
	struct {                                                                                                       \
		type before, x, behind;                                                                                \
	} cell = { (type)0x5a, 0, (type)0xa5 };                                                                        \
	type *const p = &cell.x
#define IS(type, value)                                                                                                \
	do {                                                                                                           \
		assert_true(cell.x == (type)(value));                                                                  \
		assert_true(cell.before == (type)0x5a && cell.behind == (type)0xa5);                                   \
	} while (0)
#define SAME_TYPE(expression, type) assert_true(__builtin_types_compatible_p(__typeof__(expression), type))

#define LOADS_AND_STORES(name, type)                                                                                   \
	{                                                                                                              \
		CELL(type);                                                                                            \
		uatomic_set(p, MAX(type));                                                                             \
		IS(type, MAX(type));                                                                                   \
		assert_true(uatomic_read(p) == MAX(type));                                                             \
		uatomic_store(p, MIN(type), CMM_RELEASE);                                                              \
		assert_true(uatomic_load(p, CMM_ACQUIRE) == MIN(type));                                                \
		uatomic_store_mo(p, 7, CMM_SEQ_CST_FENCE);                                                             \
		IS(type, 7);                                                                                           \
		assert_true(uatomic_load_mo(p, CMM_SEQ_CST_FENCE) == 7 && uatomic_load(p, CMM_CONSUME) == 7);          \
		SAME_TYPE(uatomic_read(p), type);                                                                      \
	}

static void loads_and_stores(void **state)
{
	(void)state;
	FOR_EACH_TYPE(LOADS_AND_STORES)
}

#define EXCHANGES(name, type)                                                                                          \
	{                                                                                                              \
		CELL(type);                                                                                            \
		assert_true(uatomic_xchg(p, -1L) == 0);                                                                \
		IS(type, -1L);                                                                                         \
		assert_true(uatomic_xchg(p, 5, CMM_RELAXED) == (type)-1L);                                             \
		assert_true(uatomic_xchg_mo(p, MIN(type), CMM_ACQ_REL) == 5);                                          \
		IS(type, MIN(type));                                                                                   \
		assert_true(uatomic_cmpxchg(p, 5, 6) == MIN(type)); /* the sign comes back */                          \
		IS(type, MIN(type));                                                                                   \
		assert_true(uatomic_cmpxchg(p, MIN(type), -1L) == MIN(type));                                          \
		IS(type, -1L);                                                                                         \
		assert_true(uatomic_cmpxchg(p, -1L, 22, CMM_ACQUIRE) == (type)-1L);                                    \
		assert_true(uatomic_cmpxchg(p, 23, 24, CMM_ACQ_REL, CMM_ACQUIRE) == 22);                               \
		assert_true(uatomic_cmpxchg_mo(p, 22, 24, CMM_SEQ_CST_FENCE, CMM_SEQ_CST_FENCE) == 22);                \
		IS(type, 24);                                                                                          \
		SAME_TYPE(uatomic_xchg(p, 1), type);                                                                   \
		SAME_TYPE(uatomic_cmpxchg(p, 1, 2), type);                                                             \
	}

static void exchanges(void **state)
{
	(void)state;
	FOR_EACH_TYPE(EXCHANGES)
}

#define SUMS(name, type)                                                                                               \
	{                                                                                                              \
		CELL(type);                                                                                            \
		assert_true(uatomic_add_return(p, MAX(type)) == MAX(type));                                            \
		assert_true(uatomic_add_return(p, 1) == MIN(type)); /* the value wraps, and its neighbour stays */     \
		IS(type, MIN(type));                                                                                   \
		assert_true(uatomic_sub_return(p, 1u) == MAX(type));                                                   \
		IS(type, MAX(type));                                                                                   \
		assert_true(uatomic_sub_return(p, MAX(type), CMM_RELAXED) == 0);                                       \
		assert_true(uatomic_sub_return_mo(p, 1, CMM_SEQ_CST_FENCE) == (type)-1L);                              \
		assert_true(uatomic_add_return(p, -1L, CMM_ACQUIRE) == (type)-2L);                                     \
		assert_true((uatomic_add_return(p, 0) < 1) == caa_is_signed_type(type));                               \
		IS(type, -2L);                                                                                         \
		SAME_TYPE(uatomic_add_return(p, 1), type);                                                             \
		SAME_TYPE(uatomic_sub_return(p, 1), type);                                                             \
	}

static void sums_are_returned(void **state)
{
	(void)state;
	FOR_EACH_TYPE(SUMS)
}

#define CHANGES(name, type)                                                                                            \
	{                                                                                                              \
		CELL(type);                                                                                            \
		uatomic_add(p, 10);                                                                                    \
		uatomic_add(p, -11UL);                                                                                 \
		IS(type, -1L);                                                                                         \
		uatomic_inc(p);                                                                                        \
		uatomic_inc(p, CMM_RELEASE);                                                                           \
		IS(type, 1);                                                                                           \
		uatomic_dec(p);                                                                                        \
		uatomic_dec(p, CMM_SEQ_CST_FENCE);                                                                     \
		IS(type, -1L);                                                                                         \
		uatomic_sub(p, (unsigned int)2);                                                                       \
		IS(type, -3L);                                                                                         \
		uatomic_sub(p, -3L, CMM_ACQUIRE);                                                                      \
		IS(type, 0);                                                                                           \
		uatomic_or(p, MIN(type));                                                                              \
		uatomic_or(p, 6, CMM_RELEASE);                                                                         \
		uatomic_or(p, 2); /* the bit is set already */                                                         \
		IS(type, MIN(type) | 6);                                                                               \
		uatomic_and(p, ~2);                                                                                    \
		IS(type, MIN(type) | 4);                                                                               \
		uatomic_and(p, 5, CMM_RELAXED);                                                                        \
		IS(type, 4);                                                                                           \
	}

static void changes_return_nothing(void **state)
{
	(void)state;
	FOR_EACH_TYPE(CHANGES)
}

static void pointers_and_numbers_go_for_each_other(void **state)
{
	char text[4], *c = text;
	void *v = NULL;
	bool set = false;
	enum colour { RED, GREEN } colour = RED;

	(void)state;
	assert_ptr_equal(uatomic_cmpxchg(&v, NULL, text), NULL);
	assert_ptr_equal(uatomic_xchg(&v, 0), text);
	uatomic_or(&v, 3UL);
	uatomic_and(&v, ~1UL);
	assert_int_equal((uintptr_t)v, 2);
	uatomic_add(&c, 2); /* pointers count in bytes */
	assert_ptr_equal(c, text + 2);
	assert_ptr_equal(uatomic_sub_return(&c, 1), text + 1);
	assert_false(uatomic_xchg(&set, true));
	assert_true(uatomic_cmpxchg(&set, true, false));
	assert_false(set);
	assert_int_equal(uatomic_xchg(&colour, GREEN), RED);
	assert_int_equal(uatomic_read(&colour), GREEN);
}

static void arguments_are_evaluated_once(void **state)
{
	int n[1] = { 0 }, *p = n;

	(void)state;
	nr_evaluated = 0;
	uatomic_set(at(p), once(4));
	(void)uatomic_load(at(p), CMM_ACQUIRE);
	(void)uatomic_xchg(at(p), once(1));
	(void)uatomic_cmpxchg(at(p), once(1), once(2));
	(void)uatomic_add_return(at(p), once(1));
	uatomic_or(at(p), once(8));
	uatomic_inc(at(p));
	assert_int_equal(nr_evaluated, 13);
	assert_int_equal(n[0], 12);
}

static void operations_are_expressions(void **state)
{
	const int two = 2;
	volatile int n = 0, i;

	(void)state;
	for (i = 0; i < 3; uatomic_inc(&n), i++)
		;
	uatomic_set(&n, uatomic_xchg(&n, uatomic_read(&two)) + uatomic_load(&n));
	if (uatomic_read(&n) == 5)
		uatomic_dec(&n);
	else
		uatomic_set(&n, 99);
	assert_int_equal(n, 4);
}

static void orders_are_the_compilers(void **state)
{
	(void)state;
	assert_int_equal(CMM_RELAXED, __ATOMIC_RELAXED);
	assert_int_equal(CMM_CONSUME, __ATOMIC_CONSUME);
	assert_int_equal(CMM_ACQUIRE, __ATOMIC_ACQUIRE);
	assert_int_equal(CMM_RELEASE, __ATOMIC_RELEASE);
	assert_int_equal(CMM_ACQ_REL, __ATOMIC_ACQ_REL);
	assert_int_equal(CMM_SEQ_CST, __ATOMIC_SEQ_CST);
	assert_true(CMM_SEQ_CST_FENCE > CMM_SEQ_CST);
	assert_int_equal(cmm_to_c11(CMM_SEQ_CST_FENCE), __ATOMIC_SEQ_CST);
	assert_int_equal(cmm_to_c11(CMM_RELEASE), __ATOMIC_RELEASE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loads_and_stores),
		cmocka_unit_test(exchanges),
		cmocka_unit_test(sums_are_returned),
		cmocka_unit_test(changes_return_nothing),
		cmocka_unit_test(pointers_and_numbers_go_for_each_other),
		cmocka_unit_test(arguments_are_evaluated_once),
		cmocka_unit_test(operations_are_expressions),
		cmocka_unit_test(orders_are_the_compilers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
