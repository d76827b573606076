/* SPDX-License-Identifier: MIT */
/* torture_srcu.c - properties that SRCU has beyond RCU: readers that sleep,
 * sections that other threads end, several domains. */
#include "types/quiesce/torture_ops.h"

#include "torture.h"

#define MAILBOXES 8

/* A section waits here for the thread that ends it. */
static struct section {
	uint32_t state;
	int index;
	struct element *element;
	uint64_t serial, completed;
} __attribute__((aligned(64))) sent[MAILBOXES];
enum { NONE, HERE };

DEFINE_STATIC_SRCU(other_domain);
static uint64_t held_apart, waits_apart, slept;

static struct tally *extra_tally(int i)
{
	return &torture.tally[torture.nr_readers + i];
}

/* srcu_down_read(), not srcu_read_lock(): in the debug build no thread holds it. */
static void begin(struct section *s)
{
	s->index = srcu_down_read(&torture_domain);
	s->completed = quiesce_load_relaxed(&torture.completed);
	s->element = torture.op->pointer->fetch((void **)&torture.current[0]);
	s->serial = quiesce_load_relaxed(&s->element->serial);
}

static void end(struct section *s, struct tally *t)
{
	torture_check(s->element, t, s->serial);
	torture_count_ages(s->element, t, s->completed);
	srcu_up_read(&torture_domain, s->index);
	torture_count(t->reads);
}

static void giver(void)
{
	uint64_t random = 668265263;

	while (!torture_stopped()) {
		struct section *s = &sent[(random_next(&random) >> 9) % MAILBOXES];

		torture_stutter();
		/* raw: the mailboxes' own hand-over: acquire, with the release in taker(). */
		if (__atomic_load_n(&s->state, __ATOMIC_ACQUIRE) == NONE) {
			begin(s);
			__atomic_store_n(&s->state, HERE, __ATOMIC_RELEASE); /* raw: release, with the acquire in taker(). */
		}
		sleep_ns(random % 200000);
	}
}

static void taker(void)
{
	struct tally *t = extra_tally(1);
	uint64_t random = 2246822519;
	bool last;

	do {
		/* raw: acquire, with the release in torture_leave(). */
		last = __atomic_load_n(&torture.users, __ATOMIC_ACQUIRE) == 1; /* the caller itself is the last one */
		for (int i = 0; i < MAILBOXES; i++) {
			struct section *s = &sent[i];

			/* raw: acquire, with the release in giver(). */
			if (__atomic_load_n(&s->state, __ATOMIC_ACQUIRE) != HERE)
				continue;
			end(s, t);
			torture_count(t->handed_over);
			__atomic_store_n(&s->state, NONE, __ATOMIC_RELEASE); /* raw: release, with the acquire in giver(). */
		}
		sleep_ns(random_next(&random) % 1000000);
	} while (!last);
}

/* The sleeper holds long sections without a CPU. */
static void sleeper(void)
{
	uint64_t random = 3266489917;
	struct section s;

	while (!torture_stopped()) {
		torture_stutter();
		begin(&s);
		sleep_ns(random_next(&random) % 10000000);
		end(&s, extra_tally(2));
		torture_count(slept);
		sleep_ns(random % 1000000);
	}
}

/* Stays in the other domain until updates of the first have completed; if these waited for it, neither would end. */
static void apart(void)
{
	while (!torture_stopped()) {
		uint64_t before = quiesce_load_relaxed(&torture.completed);
		int index;

		torture_stutter();
		index = srcu_read_lock(&other_domain);
		while (quiesce_load_relaxed(&torture.completed) < before + 2 && !torture_stopped())
			sleep_ns(200000);
		srcu_read_unlock(&other_domain, index);
		torture_count(held_apart);
	}
}

static void wait_apart(void)
{
	while (!torture_stopped()) {
		torture_stutter();
		synchronize_srcu(&other_domain);
		torture_count(waits_apart);
		sleep_ns(100000);
	}
}

/* ---- domains that end with their last reader ---- */

static void churn_begin(void *object)
{
	init_srcu_struct((struct srcu_struct *)object);
}

static int churn_enter(void *object)
{
	return srcu_read_lock((struct srcu_struct *)object);
}

static void churn_leave(void *object, int entered)
{
	srcu_read_unlock((struct srcu_struct *)object, entered);
}

static void churn_wait(void *object)
{
	synchronize_srcu(object);
}

static void churn_end(void *object)
{
	cleanup_srcu_struct(object);
}

static const struct torture_churn churn = { churn_begin, churn_enter, churn_leave, churn_wait, churn_end };
_Static_assert(sizeof(struct srcu_struct) <= CHURN_BYTES, "a domain has room");

/* ---- the kind ---- */

static void set_up(void)
{
	torture_churn = &churn;
	/* Called before there are threads: the first use registers with the
	 * kernel, which is slow if many threads run. */
	srcu_read_unlock(&other_domain, srcu_read_lock(&other_domain));
}

static uint64_t errors(void)
{
	return quiesce_load_relaxed(&torture_churn_errors);
}

#define U(x) ((unsigned long long)quiesce_load_relaxed(&(x)))

static void report(void)
{
	job_print("sections ended by another thread %llu, slept %llu, in another domain %llu, waits for that %llu, domains freed %llu",
		  U(extra_tally(1)->handed_over), U(slept), U(held_apart), U(waits_apart), U(torture_churn_turns));
	if (errors())
		job_print("!!! touched after the end %llu", U(torture_churn_errors));
}

static const char *idle(void)
{
	if (!quiesce_load_relaxed(&extra_tally(1)->handed_over) || !quiesce_load_relaxed(&slept))
		return "no section was handed over, or none slept";
	if (!quiesce_load_relaxed(&held_apart) || !quiesce_load_relaxed(&waits_apart))
		return "the other domain was not used";
	return quiesce_load_relaxed(&torture_churn_turns) ? NULL : "no domain was freed";
}

static const struct torture_role roles[] = {
	{ torture_writer, NULL, 0 }, { torture_barriers, NULL, 0 }, { torture_exits, NULL, 0 }, { torture_signals, NULL, 0 },
	{ NULL, torture_fake_writer, 0 }, { NULL, torture_fake_writer, 1 }, { giver, NULL, 0 }, { taker, NULL, 0 },
	{ sleeper, NULL, 0 }, { apart, NULL, 0 }, { wait_apart, NULL, 0 },
	{ torture_churn_owner, NULL, 0 }, { NULL, torture_churn_user, 0 }, { NULL, torture_churn_user, 1 },
};

const struct torture_kind torture_srcu = {
	.set_up = set_up,
	.roles = roles,
	.nr_roles = sizeof(roles) / sizeof(roles[0]),
	.writers = 1u | 1u << NR_POINTERS | 1u << (NR_POINTERS + 1) | 1u << PROGRESS_CHURN,
	.errors = errors,
	.report = report,
	.idle = idle,
};
