/* SPDX-License-Identifier: MIT */
/* work_retire.c - retire an object of each kind.  Callbacks free it where they run.
 *
 * Callers sleep between bursts, so that objects are reclaimed while others are retired; a barrier at the end of the run waits
 * for the rest.  The work of the library's threads and of the barrier is counted apart from the calls.
 */
#include "workload.h"

#include "platform/platform.h"

#include <quiesce/control.h>
#include <quiesce/hazptr.h>
#include <quiesce/rcu.h>
#include <quiesce/srcu.h>

struct garbage {
	uint64_t value[6];
	union { struct rcu_head rcu; struct hazptr_head hazptr; } head;
};

static struct srcu_struct srcu;
static struct hazptr_cohort cohort = HAZPTR_COHORT_INIT;
static struct { struct hazptr_cohort cohort; } __attribute__((aligned(128))) own_cohort[SCALE_CPUS];

static struct garbage *fresh(void)
{
	struct garbage *g = platform_block_get(sizeof *g);

	g->value[0] = 1;
	return g;
}

static void rcu_drop(struct rcu_head *head)
{
	platform_free((char *)head - offsetof(struct garbage, head));
}

static void hazptr_drop(struct hazptr_head *head)
{
	platform_free((char *)head - offsetof(struct garbage, head));
}

static void object_drop(void *object)
{
	platform_free(object);
}

static void call_rcu_op(struct actor *a)
{
	(void)a;
	call_rcu(&fresh()->head.rcu, rcu_drop);
}

/* With calls of rcu_throttle(), at a ceiling that the run reaches. */
#define CEILING ((uint64_t)8 << 20)

static void low_ceiling(void)
{
	quiesce_set_garbage_ceiling(CEILING);
}

static void throttled_op(struct actor *a)
{
	call_rcu_op(a);
	rcu_throttle();
}

static void kfree_rcu_op(struct actor *a)
{
	struct garbage *g = fresh();

	(void)a;
	kfree_rcu(g, head.rcu);
}

static void call_hazptr_op(struct actor *a)
{
	(void)a;
	call_hazptr(&fresh()->head.hazptr, hazptr_drop);
}

static void hazptr_retire_op(struct actor *a)
{
	(void)a;
	hazptr_retire(fresh(), object_drop);
}

static void kfree_hazptr_op(struct actor *a)
{
	struct garbage *g = fresh();

	(void)a;
	kfree_hazptr(g, head.hazptr);
}

static void rcu_settle(void)
{
	rcu_barrier();
}

static void hazptr_settle(void)
{
	hazptr_barrier();
}

static void cohort_op(struct actor *a)
{
	(void)a;
	call_hazptr_cohort(&cohort, &fresh()->head.hazptr, hazptr_drop);
}

static void own_cohort_op(struct actor *a)
{
	call_hazptr_cohort(&own_cohort[a->number].cohort, &fresh()->head.hazptr, hazptr_drop);
}

static void cohort_settle(void)
{
	synchronize_hazptr_cohort(&cohort);
	for (int i = 0; i < scale_nr_cpus(); i++)
		synchronize_hazptr_cohort(&own_cohort[i].cohort);
}

static void srcu_setup(void)
{
	if (init_srcu_struct(&srcu))
		scale_fail("init_srcu_struct() has failed");
}

static void srcu_settle(void)
{
	srcu_barrier(&srcu);
}

static void call_srcu_op(struct actor *a)
{
	(void)a;
	call_srcu(&srcu, &fresh()->head.rcu, rcu_drop);
}

#define RETIRE(what, wait, nr_warm, nr, ...)                                                                      \
	{ .group = "retire", .name = what, .settle = wait, .warm = nr_warm, .ops = nr, .burst = 50, __VA_ARGS__ }
/* Callers do not pause. */
#define FLOOD(what, nr, ...) { .group = "flood", .name = what, .settle = rcu_settle, .warm = 20, .ops = nr, .floods = true, __VA_ARGS__ }
const struct workload scale_retires[] = {
	RETIRE("call_rcu", rcu_settle, 400, 1000, .op = call_rcu_op),
	RETIRE("kfree_rcu", rcu_settle, 400, 1000, .op = kfree_rcu_op),
	RETIRE("call_hazptr", hazptr_settle, 400, 1000, .op = call_hazptr_op),
	RETIRE("kfree_hazptr", hazptr_settle, 400, 1000, .op = kfree_hazptr_op),
	RETIRE("hazptr_retire", hazptr_settle, 400, 1000, .op = hazptr_retire_op),
	RETIRE("call_srcu", srcu_settle, 400, 1000, .setup = srcu_setup, .op = call_srcu_op),
	RETIRE("call_hazptr_cohort", cohort_settle, 10, 200, .op = cohort_op),
	RETIRE("call_hazptr_cohort_own", cohort_settle, 400, 1000, .op = own_cohort_op, .most_callers = SCALE_CPUS),
	FLOOD("call_rcu", 2000, .op = call_rcu_op),
	FLOOD("call_rcu_throttled", 2000, .setup = low_ceiling, .op = throttled_op),
	FLOOD("kfree_rcu", 2000, .op = kfree_rcu_op),
	FLOOD("kfree_rcu_10000_threads", 100, .op = kfree_rcu_op),
	{ 0 }
};
