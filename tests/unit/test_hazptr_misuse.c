/* SPDX-License-Identifier: MIT */
/* test_hazptr_misuse.c - wrong uses of hazard pointers that are detected: with a hook, and with the default. */
#include "hazptrs.h"
#include "guards.h"
#include "misuses.h"

static struct thing p_object;
static struct thing *const p = &p_object;

/* ---- NULL ---- */

static struct hazptr_cohort cohort = HAZPTR_COHORT_INIT;

static void null_head(void)
{
	call_hazptr(NULL, thing_run);
}

static void null_function(void)
{
	call_hazptr(&p->hazptr, NULL);
}

static void cohort_null(void)
{
	call_hazptr_cohort(NULL, &p->hazptr, thing_run);
}

static void cohort_null_wait(void)
{
	synchronize_hazptr_cohort(NULL);
}

static void cohort_null_head(void)
{
	call_hazptr_cohort(&cohort, NULL, thing_run);
}

static void cohort_null_function(void)
{
	call_hazptr_cohort(&cohort, &p->hazptr, NULL);
}

static void null_where_an_object_is_needed(void **state)
{
	uint64_t retired = stats_now().hazptr_retired;

	(void)state;
	misuse(null_head, QUIESCE_MISUSE_NULL, "hazptr_head");
	misuse(null_function, QUIESCE_MISUSE_NULL, "function");
	misuse(cohort_null, QUIESCE_MISUSE_NULL, "cohort");
	misuse(cohort_null_wait, QUIESCE_MISUSE_NULL, "synchronize_hazptr_cohort() with a NULL cohort");
	misuse(cohort_null_head, QUIESCE_MISUSE_NULL, "hazptr_head");
	misuse(cohort_null_function, QUIESCE_MISUSE_NULL, "function");
	assert_int_equal(stats_now().hazptr_retired, retired); /* the calls have no effect */
	synchronize_hazptr_cohort(&cohort);
	hazptr_barrier();
	assert_int_equal(runs_of(p), 0);
}

/* ---- waiting in a callback ---- */

static void (*wait_in_callback)(void);

static void run_wait(struct hazptr_head *head)
{
	wait_in_callback();
	thing_run(head);
}

static void run_wait_rcu(struct rcu_head *head)
{
	(void)head;
	wait_in_callback();
}

static void in_callback_of_hazptr(void)
{
	call_hazptr(&p->hazptr, run_wait);
	hazptr_barrier();
}

static void in_callback_of_cohort(void)
{
	call_hazptr_cohort(&cohort, &p->hazptr, run_wait);
	synchronize_hazptr_cohort(&cohort);
}

static void in_callback_of_rcu(void)
{
	static struct rcu_head head;

	call_rcu(&head, run_wait_rcu);
	rcu_barrier();
}

static void wait_for_cohort(void)
{
	synchronize_hazptr_cohort(&cohort);
}

/* The misuse is found below a callback of the cohort, too; and a thread that has waited for another cohort is still in a callback. */
static void wait_for_inner(void (*retired_into_it)(struct hazptr_head *head))
{
	struct hazptr_cohort inner = HAZPTR_COHORT_INIT;
	static struct thing child;

	call_hazptr_cohort(&inner, &child.hazptr, retired_into_it);
	synchronize_hazptr_cohort(&inner);
}

static void wait_for_outer(struct hazptr_head *head)
{
	(void)head;
	wait_for_cohort();
}

static void wait_for_cohort_below(void)
{
	wait_for_inner(wait_for_outer);
}

static void barrier_after_inner(void)
{
	wait_for_inner(thing_run);
	hazptr_barrier();
}

static void shut_down(void)
{
	if (quiesce_shutdown(0) != -EDEADLK)
		abort();
}

static void waiting_in_a_callback(void **state)
{
	static const struct {
		void (*wait)(void);
		const char *name;
	} waits[] = { { hazptr_barrier, "hazptr_barrier()" },
		      { wait_for_cohort, "synchronize_hazptr_cohort()" },
		      { rcu_barrier, "callback" },
		      { shut_down, "callback" } };

	(void)state;
	for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
		wait_in_callback = waits[i].wait;
		if (waits[i].wait != wait_for_cohort)
			misuse(in_callback_of_hazptr, QUIESCE_MISUSE_WAIT_IN_CALLBACK, waits[i].name);
		misuse(in_callback_of_cohort, QUIESCE_MISUSE_WAIT_IN_CALLBACK, waits[i].name);
		if (waits[i].wait != wait_for_cohort)
			misuse(in_callback_of_rcu, QUIESCE_MISUSE_WAIT_IN_CALLBACK, waits[i].name);
	}
	wait_in_callback = wait_for_cohort_below;
	misuse(in_callback_of_cohort, QUIESCE_MISUSE_WAIT_IN_CALLBACK, "synchronize_hazptr_cohort()");
	wait_in_callback = barrier_after_inner;
	misuse(in_callback_of_hazptr, QUIESCE_MISUSE_WAIT_IN_CALLBACK, "hazptr_barrier()");
	misuse(in_callback_of_cohort, QUIESCE_MISUSE_WAIT_IN_CALLBACK, "hazptr_barrier()");
	assert_true(runs_of(p) > 0); /* the callbacks went on */
}

/* ---- a context that is cleaned up while a slot of it is taken ---- */

static hazptr_t *held;

static void clean_up_held(void)
{
	struct hazptr_context ctx;

	if (init_hazptr_context(&ctx))
		abort();
	held = slot_with(&ctx, &p->other);
	cleanup_hazptr_context(&ctx);
	assert_null(hazptr_alloc(&ctx));
}

static void clean_up_empty(void)
{
	struct hazptr_context ctx;

	if (init_hazptr_context(&ctx))
		abort();
	held = hazptr_alloc(&ctx);
	cleanup_hazptr_context(&ctx);
}

/* After the hook has returned, the slot still protects, and no other owner gets its line, before the slot is freed and after. */
static void a_context_with_a_slot_taken(void **state)
{
	struct hazptr_context ctx[20];
	struct waiter w;
	int runs;

	(void)state;
	misuse(clean_up_empty, QUIESCE_MISUSE_CONTEXT_HELD, "cleanup_hazptr_context()");
	hazptr_free(NULL, held);
	misuse(clean_up_held, QUIESCE_MISUSE_CONTEXT_HELD, "not freed");
	runs = runs_of(p);
	call_hazptr(&p->other, other_run);
	waiter_begin(&w, &p->other, NULL);
	assert_waits(&w);
	assert_int_equal(runs_of(p), runs);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(init_hazptr_context(&ctx[i]), 0);
		assert_true((uintptr_t)ctx[i].first / 128 != (uintptr_t)held / 128);
	}
	hazptr_free(NULL, held);
	waiter_end(&w);
	hazptr_barrier();
	assert_int_equal(runs_of(p), runs + 1);
	for (int i = 0; i < 20; i++)
		cleanup_hazptr_context(&ctx[i]);
}

/* ---- a deadlock that the stall report names ---- */

static void protect_and_wait(void)
{
	setenv("QUIESCE_STALL_MS", "20", 1);
	execl("/proc/self/exe", "test_hazptr_misuse", "--stall", (char *)NULL);
	_exit(127);
}

static int stall(void)
{
	hazptr_t *slot = slot_with(NULL, p);
	struct waiter w;

	alarm(watchdog_seconds() / 2);
	thing_retire(p);
	waiter_begin(&w, p, NULL);
	wait_until(stats_now().stalls > 0);
	hazptr_free(NULL, slot);
	waiter_end(&w);
	return 0;
}

static void a_wait_that_takes_long_is_reported(void **state)
{
	struct outcome o;

	(void)state;
	in_child(protect_and_wait, &o);
	assert_true(exited_with(o.status, 0));
	assert_non_null(strstr(o.text, "waiting for "));
	assert_non_null(strstr(o.text, " ms for a guard of 0x"));
	alarm(watchdog_seconds());
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(null_where_an_object_is_needed),
		TEST(waiting_in_a_callback),
		TEST(a_context_with_a_slot_taken),
		TEST(a_wait_that_takes_long_is_reported),
	};

	if (argc == 2 && !strcmp(argv[1], "--stall"))
		return stall();
	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
