/* SPDX-License-Identifier: MIT */
/* torture_srcu.c - properties that SRCU has beyond RCU: readers that sleep,
 * sections that other threads end, several domains. */
#include "types/quiesce/torture_ops.h"

#include "torture.h"

DEFINE_STATIC_SRCU(other_domain);

enum { GIVEN, SLEPT, APART, APART_WAITS, FREED, TOUCHED };
static struct torture_figure figure[] = {
	[GIVEN] = { .what = "sections ended by another thread", .idle = "no section was handed over" },
	[SLEPT] = { .what = "slept", .idle = "no section slept" },
	[APART] = { .what = "in another domain", .idle = "the other domain was not used" },
	[APART_WAITS] = { .what = "waits for that", .idle = "the other domain was not used" },
	[FREED] = { .what = "domains freed", .idle = "no domain was freed" },
	[TOUCHED] = { .what = "touched after the end", .error = true },
	{ .what = NULL },
};

static void end(struct hold *h, struct tally *t)
{
	torture_end_element(h, t);
	srcu_up_read(&torture_domain, h->index);
	torture_count(t->n[TALLY_READS]);
}

/* srcu_down_read(), not srcu_read_lock(): in the debug build no thread holds it. */
static void begin(struct hold *h)
{
	h->index = srcu_down_read(&torture_domain);
	torture_take_element(h);
	h->end = end;
}

static void giver(uint32_t index)
{
	uint64_t random = 668265263 + index;

	while (!torture_stopped()) {
		struct hold h;

		torture_stutter();
		begin(&h);
		if (torture_post(&h, torture_extra(2), random_next(&random) >> 9))
			torture_count(figure[GIVEN].n);
		else
			end(&h, torture_extra(2));
		sleep_ns(random % 200000);
	}
}

/* The sleeper holds long sections without a CPU. */
static void sleeper(uint32_t index)
{
	uint64_t random = 3266489917 + index;
	struct hold h;

	while (!torture_stopped()) {
		torture_stutter();
		begin(&h);
		sleep_ns(random_next(&random) % 10000000);
		end(&h, torture_extra(3));
		torture_count(figure[SLEPT].n);
		sleep_ns(random % 1000000);
	}
}

/* Stays in the other domain until updates of the first have completed; if these waited for it, neither would end. */
static void apart(uint32_t index)
{
	(void)index;
	while (!torture_stopped()) {
		uint64_t before = quiesce_load_relaxed(&torture.completed);
		int entered;

		torture_stutter();
		entered = srcu_read_lock(&other_domain);
		while (quiesce_load_relaxed(&torture.completed) < before + 2 && !torture_stopped())
			sleep_ns(200000);
		srcu_read_unlock(&other_domain, entered);
		torture_count(figure[APART].n);
	}
}

static void wait_apart(uint32_t index)
{
	(void)index;
	while (!torture_stopped()) {
		torture_stutter();
		synchronize_srcu(&other_domain);
		torture_count(figure[APART_WAITS].n);
		sleep_ns(100000);
	}
}

/* ---- domains that end with their last reader ---- */

static void churn_begin(void *object) { init_srcu_struct((struct srcu_struct *)object); }
static int churn_enter(void *object) { return srcu_read_lock((struct srcu_struct *)object); }
static void churn_leave(void *object, int entered) { srcu_read_unlock((struct srcu_struct *)object, entered); }
static void churn_wait(void *object) { synchronize_srcu(object); }
static void churn_end(void *object) { cleanup_srcu_struct(object); }

static const struct torture_churn churn = { churn_begin, churn_enter, churn_leave, churn_wait, churn_end, &figure[FREED],
					    &figure[TOUCHED] };
_Static_assert(sizeof(struct srcu_struct) <= CHURN_BYTES, "a domain has room");

/* ---- the kind ---- */

static void set_up(void)
{
	torture_churn = &churn;
	/* Called before there are threads: the first use registers with the
	 * kernel, which is slow if many threads run. */
	srcu_read_unlock(&other_domain, srcu_read_lock(&other_domain));
}

static const struct torture_role roles[] = {
	TORTURE_RCU_ROLES, { giver, 1 }, { torture_collector, 1 }, { sleeper, 1 }, { apart, 1 }, { wait_apart, 1 },
	{ torture_churn_owner, 1 }, { torture_churn_user, CHURN_USERS }, { NULL, 0 },
};

const struct torture_kind torture_srcu = {
	.set_up = set_up,
	.section = torture_read_section,
	.begin = torture_read_begin,
	.elements = true,
	.roles = roles,
	.writers = TORTURE_RCU_WRITERS | 1u << PROGRESS_CHURN,
	.figures = figure,
};
