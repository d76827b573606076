/* SPDX-License-Identifier: MIT */
/* test_base.c - the face's references, pointers, TLS, futex and its macros of compiler and CPU.
 *
 * raw, whole file: it tests volatile.
 */
#define _GNU_SOURCE
#undef NDEBUG
#define DEBUG_RCU
#include <urcu/annotate.h>
#include <urcu/debug.h>
#include <urcu/futex.h>
#include <urcu/pointer.h>
#include <urcu/ref.h>
#include <urcu/tls-compat.h>

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

/* True if a child that calls @f() aborts. */
static int aborts(void (*f)(void))
{
	int status = 0;
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child) {
		signal(SIGABRT, SIG_DFL);
		if (!freopen("/dev/null", "w", stderr))
			_exit(2);
		f();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

/* ---- references ---- */

static struct urcu_ref ref;
static int nr_released;

static void released(struct urcu_ref *r)
{
	assert_ptr_equal(r, &ref);
	nr_released++;
}

static void the_last_put_releases(void **state)
{
	(void)state;
	nr_released = 0;
	urcu_ref_init(&ref);
	assert_int_equal(ref.refcount, 1);
	urcu_ref_get(&ref);
	assert_true(urcu_ref_get_unless_zero(&ref));
	assert_true(urcu_ref_get_safe(&ref));
	assert_int_equal(ref.refcount, 4);
	for (int left = 3; left >= 0; left--) {
		urcu_ref_put(&ref, released);
		assert_int_equal(nr_released, left == 0);
	}
	assert_false(urcu_ref_get_unless_zero(&ref));
	assert_int_equal(ref.refcount, 0);
}

static void get_one_too_many(void)
{
	urcu_ref_set(&ref, LONG_MAX);
	urcu_ref_get(&ref);
}

static void put_one_too_many(void)
{
	urcu_ref_set(&ref, 0);
	urcu_ref_put(&ref, released);
}

static void get_the_last(void)
{
	urcu_ref_set(&ref, LONG_MAX - 1);
	urcu_ref_get(&ref);
}

static void references_have_two_ends(void **state)
{
	(void)state;
	urcu_ref_set(&ref, LONG_MAX - 1);
	assert_true(urcu_ref_get_safe(&ref));
	assert_false(urcu_ref_get_safe(&ref));
	assert_false(urcu_ref_get_unless_zero(&ref));
	assert_true(ref.refcount == LONG_MAX);
	urcu_ref_set(&ref, -3); /* the value is not checked */
	assert_true(urcu_ref_get_unless_zero(&ref));
	assert_int_equal(ref.refcount, -2);
	assert_true(aborts(get_one_too_many));
	assert_true(aborts(put_one_too_many));
	assert_false(aborts(get_the_last));
}

/* ---- pointers ---- */

static void pointers_are_exchanged(void **state)
{
	int a = 1, b = 2, *p = NULL, *const fixed = &a, *volatile shared = &b;

	(void)state;
	rcu_assign_pointer(p, &a);
	assert_ptr_equal(rcu_dereference(p), &a);
	rcu_set_pointer(&p, NULL);
	assert_null(rcu_dereference(p));
	assert_null(rcu_xchg_pointer(&p, &a));
	assert_ptr_equal(rcu_cmpxchg_pointer(&p, &b, NULL), &a);
	assert_ptr_equal(p, &a);
	assert_ptr_equal(rcu_cmpxchg_pointer(&p, &a, &b), &a);
	assert_ptr_equal(p, &b);
	assert_int_equal(*rcu_dereference(fixed) + *rcu_dereference(shared), 3);
	assert_true(cmm_ptr_eq(p, &b));
	assert_false(cmm_ptr_eq(p, &a));
}

static void functions_exchange_pointers_too(void **state)
{
	int a, b;
	void *p = NULL;

	(void)state;
	assert_ptr_equal(rcu_set_pointer_sym(&p, &a), &a);
	assert_ptr_equal(p, &a);
	assert_ptr_equal(rcu_dereference_sym(p), &a);
	assert_ptr_equal(rcu_dereference_sym2(&p), &a);
	assert_ptr_equal(rcu_cmpxchg_pointer_sym(&p, &b, NULL), &a);
	assert_ptr_equal(rcu_cmpxchg_pointer_sym(&p, &a, &b), &a);
	assert_ptr_equal(rcu_xchg_pointer_sym(&p, NULL), &b);
	assert_null(p);
}

/* ---- TLS ---- */

typedef int quad[4];
static DEFINE_URCU_TLS_INIT(int, depth, 5);
static DEFINE_URCU_TLS(quad, four);
extern DECLARE_URCU_TLS(quad, elsewhere);
DEFINE_URCU_TLS(quad, elsewhere);

static void *other_thread(void *ret_depth)
{
	*(int *)ret_depth = URCU_TLS(depth) + URCU_TLS(four)[2] + URCU_TLS(elsewhere)[3];
	URCU_TLS(depth) = 100;
	URCU_TLS(four)[2] = 100;
	return NULL;
}

static void each_thread_has_its_own(void **state)
{
	pthread_t thread;
	int found = 0;

	(void)state;
	URCU_TLS(depth)++;
	URCU_TLS(four)[2] = URCU_TLS(elsewhere)[3] = 7;
	assert_int_equal(pthread_create(&thread, NULL, other_thread, &found), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(found, 5);
	assert_int_equal(URCU_TLS(depth), 6);
	assert_int_equal(URCU_TLS(four)[2], 7);
}

/* ---- futex ---- */

typedef int futex_call(int32_t *uaddr, int op, int32_t val, const struct timespec *timeout, int32_t *uaddr2, int32_t val3);
static futex_call *wait_by, *wake_by;
static int32_t word;

static void *sleeper(void *unused)
{
	(void)unused;
	while (uatomic_load(&word, CMM_ACQUIRE) == -1)
		wait_by(&word, FUTEX_WAIT, -1, NULL, NULL, 0);
	return NULL;
}

static void waiters_are_woken(void **state)
{
	futex_call *const pairs[][2] = {
		{ futex_async, futex_async }, { futex_noasync, futex_noasync },
		{ compat_futex_async, compat_futex_async }, { compat_futex_noasync, compat_futex_noasync },
	};

	(void)state;
	for (size_t i = 0; i < CAA_ARRAY_SIZE(pairs); i++) {
		pthread_t thread;

		wait_by = pairs[i][0];
		wake_by = pairs[i][1];
		uatomic_set(&word, -1);
		assert_int_equal(pthread_create(&thread, NULL, sleeper, NULL), 0);
		uatomic_store(&word, 0, CMM_RELEASE);
		assert_true(wake_by(&word, FUTEX_WAKE, 1, NULL, NULL, 0) >= 0);
		assert_int_equal(pthread_join(thread, NULL), 0);
	}
}

static void a_word_that_has_changed_is_not_waited_for(void **state)
{
	const struct timespec soon = { 0, 1000 };

	(void)state;
	word = 3;
	assert_int_equal(futex_async(&word, FUTEX_WAIT, 4, NULL, NULL, 0), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(futex_noasync(&word, FUTEX_WAIT, 3, &soon, NULL, 0), -1);
	assert_int_equal(errno, ETIMEDOUT);
	assert_int_equal(compat_futex_async(&word, FUTEX_WAIT, 4, NULL, NULL, 0), 0);
	assert_int_equal(compat_futex_async(&word, FUTEX_WAIT, 3, &soon, NULL, 0), -1);
	assert_int_equal(errno, EINVAL);
	errno = 0;
	assert_int_equal(compat_futex_noasync(&word, 99, 3, NULL, NULL, 0), -1);
	assert_int_equal(errno, EINVAL);
}

/* ---- compiler and CPU ---- */

struct holder {
	long before;
	int field;
	int row[3];
};

static void a_field_leads_to_its_object(void **state)
{
	struct holder h = { 1, 2, { 3, 4, 5 } };
	const int *field = &h.field;
	int (*row)[3] = &h.row;

	(void)state;
	assert_ptr_equal(caa_container_of(field, struct holder, field), &h);
	assert_ptr_equal(caa_container_of((void *)&h.field, struct holder, field), &h);
	assert_ptr_equal(caa_container_of(row, struct holder, row), &h);
	assert_ptr_equal(caa_container_of_check_null(&h.field, struct holder, field), &h);
	field = NULL;
	assert_null(caa_container_of_check_null(field, struct holder, field));
	caa_container_of(&h.field, struct holder, field)->before = 9;
	assert_int_equal(h.before, 9);
}

static void numbers_and_types(void **state)
{
	int n[7], CAA_COMBINE_TOKENS(na, me) = 1;

	(void)state;
	(void)n;
	assert_int_equal(name, 1);
	assert_int_equal(caa_max(1, 2) + 10 * caa_min(1, 2), 12);
	assert_int_equal(CAA_ARRAY_SIZE(n), 7);
	assert_int_equal(CAA_BITS_PER_LONG, sizeof(long) * CHAR_BIT);
	assert_true(caa_is_signed_type(int) && caa_is_signed_type(signed char));
	assert_false(caa_is_signed_type(unsigned int) || caa_is_signed_type(uint8_t) || caa_is_signed_type(size_t));
	assert_true(caa_cast_long_keep_sign((signed char)-1) == ~0ul && caa_cast_long_keep_sign(~0u) == 0xffffffff);
	assert_int_equal(CAA_BUILD_BUG_ON_ZERO(sizeof(int) != 4), 0);
	CAA_BUILD_BUG_ON(sizeof(long) != 8);
	urcu_static_assert(sizeof(char) == 1, "a char", a_char);
	assert_true(caa_likely(5) == 1 && caa_unlikely(0) == 0);
}

static void shared_accesses_have_a_value(void **state)
{
	struct holder h = { 1, 2, { 0 } }, copy;
	void *p = &h;

	(void)state;
	assert_int_equal(CMM_STORE_SHARED(h.field, 300), 300);
	assert_int_equal(_CMM_STORE_SHARED(h.before, -4), -4);
	CMM_STORE_SHARED(p, NULL);
	assert_int_equal(CMM_LOAD_SHARED(h.field) + _CMM_LOAD_SHARED(h.before), 296);
	CMM_ACCESS_ONCE(h.field) = 3;
	assert_int_equal(CMM_ACCESS_ONCE(h.field), 3);
	copy = CMM_LOAD_SHARED(h); /* any type */
	assert_int_equal(copy.field, 3);
	assert_null(CMM_LOAD_SHARED(p));
}

static void barriers_and_clock(void **state)
{
	caa_cycles_t begin = caa_get_cycles();

	(void)state;
	cmm_mb();
	cmm_smp_mb();
	cmm_smp_mb__before_uatomic_add();
	cmm_smp_mb__after_uatomic_dec();
	cmm_rmb();
	cmm_wmb();
	cmm_smp_rmb();
	cmm_smp_wmb();
	cmm_mc();
	cmm_rmc();
	cmm_wmc();
	cmm_smp_mc();
	cmm_smp_rmc();
	cmm_smp_wmc();
	cmm_barrier();
	cmm_read_barrier_depends();
	cmm_smp_read_barrier_depends();
	cmm_emit_legacy_smp_mb();
	while (caa_get_cycles() == begin)
		caa_cpu_relax();
	assert_true(begin != 0 && CAA_CACHE_LINE_SIZE >= 64);
}

static void assert_what_is_false(void) { urcu_assert(nr_released < 0); }

static void debug_assertions_abort(void **state)
{
	(void)state;
	urcu_assert(true);
	assert_true(aborts(assert_what_is_false));
}

static void annotations_fit_their_group(void **state)
{
	int n = uatomic_load(&nr_released);
	cmm_annotate_define(loads);
	cmm_annotate_define(stores);

	(void)state;
	cmm_annotate_group_mem_acquire(&loads, &nr_released);
	cmm_annotate_group_mb_acquire(&loads);
	cmm_annotate_group_mb_release(&stores);
	cmm_annotate_group_mem_release(&stores, &n);
	cmm_annotate_mem_release(&n);
	cmm_annotate_mem_acquire(&n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_put_releases),
		cmocka_unit_test(references_have_two_ends),
		cmocka_unit_test(pointers_are_exchanged),
		cmocka_unit_test(functions_exchange_pointers_too),
		cmocka_unit_test(each_thread_has_its_own),
		cmocka_unit_test(waiters_are_woken),
		cmocka_unit_test(a_word_that_has_changed_is_not_waited_for),
		cmocka_unit_test(a_field_leads_to_its_object),
		cmocka_unit_test(numbers_and_types),
		cmocka_unit_test(shared_accesses_have_a_value),
		cmocka_unit_test(barriers_and_clock),
		cmocka_unit_test(debug_assertions_abort),
		cmocka_unit_test(annotations_fit_their_group),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
