/* SPDX-License-Identifier: MIT */
/* test_misuse_args.c - misuse that every build detects: of objects that are NULL, not initialised, or still in use. */
#define _GNU_SOURCE
#include "misuses.h"

#include <quiesce/hazptr.h>
#include <quiesce/percpu_ref.h>
#include <quiesce/srcu.h>

/* ---- NULL ---- */

static struct srcu_struct *no_domain;

static void null_synchronize(void)
{
	synchronize_srcu(no_domain);
}

static void null_expedited(void)
{
	synchronize_srcu_expedited(no_domain);
}

static void null_barrier(void)
{
	srcu_barrier(no_domain);
}

static void never(struct rcu_head *head)
{
	(void)head;
	abort();
}

static void null_call(void)
{
	static struct rcu_head head;

	call_srcu(no_domain, &head, never);
}

static void null_domains(void **state)
{
	(void)state;
	misuse(null_synchronize, QUIESCE_MISUSE_NULL, "synchronize_srcu() with a NULL domain");
	misuse(null_expedited, QUIESCE_MISUSE_NULL, "synchronize_srcu_expedited() with a NULL domain");
	misuse(null_barrier, QUIESCE_MISUSE_NULL, "srcu_barrier() with a NULL domain");
	misuse(null_call, QUIESCE_MISUSE_NULL, "call_srcu() with a NULL domain");
}

struct freeable {
	long first;
	struct rcu_head rcu;
	struct hazptr_head hazptr;
};

/* NULL is allowed as in free(NULL), also where the head is not the first member. */
static void null_is_freed_by_doing_nothing(void **state)
{
	struct quiesce_stats before = stats_now(), after;
	struct freeable *none = NULL;

	(void)state;
	quiesce_set_misuse_hook(keep_report);
	kfree_rcu(none, rcu);
	kfree_rcu_mightsleep(none);
	kfree_hazptr(none, hazptr);
	quiesce_set_misuse_hook(NULL);
	after = stats_now();
	assert_int_equal(after.callbacks_queued, before.callbacks_queued);
	assert_int_equal(after.hazptr_retired, before.hazptr_retired);
	assert_int_equal(after.garbage_bytes, before.garbage_bytes);
}

/* ---- cleanups without initialisation, and too early ---- */

DEFINE_STATIC_SRCU(a_domain);

/* Make the call behind srcu_read_unlock(), because a sanitizer would report the inline's access past the array. */
static void index_that_cannot_be(void)
{
	quiesce__srcu_unlock_slow(&a_domain, 7);
}

static void a_section_has_index_0_or_1(void **state)
{
	int idx = srcu_read_lock(&a_domain);

	(void)state;
	misuse(index_that_cannot_be, QUIESCE_MISUSE_UNBALANCED_UNLOCK, "srcu_read_unlock(a_domain) with 7");
	srcu_read_unlock(&a_domain, idx);
	synchronize_srcu(&a_domain);
}

static void confirm_nothing(struct percpu_ref *ref)
{
	(void)ref;
}

static struct percpu_ref used;

static void exit_used(void)
{
	percpu_ref_exit(&used);
}

static void put_used(void)
{
	percpu_ref_put(&used);
}

static void get_used(void)
{
	percpu_ref_get(&used);
}

static void a_count_in_use_stays(unsigned int flags)
{
	assert_int_equal(percpu_ref_init(&used, confirm_nothing, flags), 0);
	percpu_ref_get(&used);
	percpu_ref_get(&used);
	misuse(exit_used, QUIESCE_MISUSE_IN_USE, "with 2 references that have not been put");
	percpu_ref_put(&used);
	percpu_ref_kill(&used);
	misuse(exit_used, QUIESCE_MISUSE_IN_USE, "with 1 references that have not been put");
	assert_false(percpu_ref_is_zero(&used));
	percpu_ref_put(&used);
	assert_true(percpu_ref_is_zero(&used));
	percpu_ref_exit(&used);
	percpu_ref_exit(&used);
}

/* An exit without a kill is allowed, for an object whose construction failed. */
static void a_count_ends_without_users(void **state)
{
	(void)state;
	a_count_in_use_stays(0);
	a_count_in_use_stays(PERCPU_REF_INIT_ATOMIC);
	a_count_in_use_stays(PERCPU_REF_ALLOW_REINIT);
	assert_int_equal(percpu_ref_init(&used, confirm_nothing, 0), 0);
	percpu_ref_exit(&used);
	assert_false(percpu_ref_tryget(&used));
	misuse(put_used, QUIESCE_MISUSE_COUNT, "percpu_ref_put()");
	misuse(get_used, QUIESCE_MISUSE_COUNT, "percpu_ref_get()");
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(null_domains),
		TEST(null_is_freed_by_doing_nothing),
		TEST(a_section_has_index_0_or_1),
		TEST(a_count_ends_without_users),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
