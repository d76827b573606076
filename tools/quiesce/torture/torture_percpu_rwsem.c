/* SPDX-License-Identifier: MIT */
/* torture_percpu_rwsem.c - locks: no thread is inside beside a writer.
 *
 * A writer announces that it is inside and changes some words one by one; readers check both.  Readers announce, each
 * in a word of its own, that they are inside, and writers check those.  Locks held for reading and for writing are
 * handed to other threads, and outlive their threads.  By turns writers write back to back and so rarely that readers
 * become fast again in between.
 */
#include "types/quiesce/torture_ops.h"

#include "torture.h"

#define LOCKS 2
#define WORDS 6
#define WRITERS 3
#define PHASE_NS 100000000u
#define QUIET_NS 25000000u /* longer than it takes until readers are fast again */

static struct shared {
	struct percpu_rw_semaphore lock;
	uint64_t writer;      /* 1: a writer is inside */
	uint64_t word[WORDS]; /* equal while no writer is inside */
} __attribute__((aligned(128))) shared[LOCKS];

static const struct torture_rwsem_ops *ops;

enum { REFUSED, REFUSED_WRITERS, COLD, GIVEN, FREED, TORN, TOGETHER, NOT_MINE, TOUCHED };
static struct torture_figure figure[] = {
	[REFUSED] = { .what = "refused", .idle = "no caller was refused" },
	[REFUSED_WRITERS] = { .what = "writers refused" },
	/* The first writers find readers fast anyway. */
	[COLD] = { .what = "writes that found readers fast", .idle = "readers did not become fast again between writes", .few = LOCKS },
	[GIVEN] = { .what = "write locks handed over", .idle = "no write lock was handed over" },
	[FREED] = { .what = "locks freed", .idle = "no lock was freed" },
	[TORN] = { .what = "torn", .error = true },
	[TOGETHER] = { .what = "readers beside a writer", .error = true },
	[NOT_MINE] = { .what = "not the owner", .error = true },
	[TOUCHED] = { .what = "touched after the end", .error = true },
	{ .what = NULL },
};

/* ---- readers ---- */

/* Checks for all traces of a writer. */
static void check_words(struct shared *s, uint64_t value)
{
	bool equal = true;

	for (int i = 0; i < WORDS; i++)
		equal = equal && quiesce_load_relaxed(&s->word[i]) == value;
	if (!equal)
		torture_count_together(figure[TORN].n);
	if (quiesce_load_relaxed(&s->writer))
		torture_count_together(figure[TOGETHER].n);
}

static void let_go(struct hold *h, struct tally *t)
{
	struct shared *s = h->object;

	check_words(s, h->serial);
	ops->read_end(&s->lock);
	torture_count(t->n[TALLY_READS]);
}

static uint64_t random_timeout(uint64_t r, uint64_t most)
{
	return r % 8 < 5 ? UINT64_MAX : r % 8 == 5 ? 0 : 1 + r / 8 % most;
}

static bool hold(struct hold *h, uint64_t *random, bool at_once)
{
	uint64_t r = random_next(random) >> 7;
	struct shared *s = &shared[r % LOCKS];

	if (!ops->read(&s->lock, at_once ? 0 : random_timeout(r / LOCKS, 200000))) {
		torture_count_together(figure[REFUSED].n);
		return false;
	}
	/* Reads from the last word on, which is the last to change. */
	*h = (struct hold){ .object = s, .key = r % LOCKS, .serial = quiesce_load_relaxed(&s->word[WORDS - 1]), .end = let_go };
	check_words(s, h->serial);
	return true;
}

static void use(struct hold *h, uint64_t *random)
{
	torture_delay(random);
	check_words(h->object, h->serial);
}

/* ---- writers ---- */

static void end_write(struct hold *h, struct tally *t)
{
	struct shared *s = h->object;

	(void)t;
	quiesce_store_relaxed(&s->writer, 0);
	ops->write_end(&s->lock);
}

static void count_readers_inside(const struct shared *s)
{
	for (int i = 0; i < torture.nr_readers; i++)
		if (quiesce_load_relaxed(&torture.tally[i].holding) == (uint64_t)(s - shared) + 1)
			torture_count_together(figure[TOGETHER].n);
}

static void change(struct shared *s, uint64_t *random)
{
	uint64_t value = quiesce_load_relaxed(&s->word[WORDS - 1]);

	check_words(s, value);
	quiesce_store_relaxed(&s->writer, 1);
	for (int i = 0; i < WORDS; i++) {
		quiesce_store_relaxed(&s->word[i], value + 1);
		if (random_next(random) % 16 == 0)
			torture_delay(random);
	}
	count_readers_inside(s);
	if (!percpu_is_write_locked_by_me(&s->lock) || !percpu_is_write_locked(&s->lock))
		torture_count_together(figure[NOT_MINE].n);
}

static void write_once(uint32_t index, uint64_t *random)
{
	uint64_t r = random_next(random) >> 7;
	struct shared *s = &shared[r % LOCKS];
	struct hold h = { .object = s, .end = end_write };

	if (rcu_sync_is_idle(&s->lock.rss))
		torture_count_together(figure[COLD].n);
	torture_count(torture.progress[index]); /* an attempt has ended */
	if (!ops->write(&s->lock, random_timeout(r / LOCKS, 2000000))) {
		torture_count_together(figure[REFUSED_WRITERS].n);
		return;
	}
	change(s, random);
	torture_count_together(torture.version);
	if (r >> 30 & 15 || !torture_post(&h, torture_extra(2 + (int)index), r >> 34))
		end_write(&h, NULL);
	else
		torture_count_together(figure[GIVEN].n);
}

static void update(uint32_t index, uint64_t *random)
{
	bool quiet = now_ns() / PHASE_NS % 2;

	if (quiet && index) { /* leaves the readers alone with one writer */
		torture_count(torture.progress[index]);
		sleep_ns(2000000);
		return;
	}
	if (quiet)
		sleep_ns(QUIET_NS + *random % 10000000);
	write_once(index, random);
	if (random_next(random) % 4 == 0)
		sleep_ns(*random % 100000);
}

static void writer(uint32_t index)
{
	uint64_t random = 2463534242u + index;

	torture_update_loop(index, &random, update);
}

/* ---- locks that end with their last user ---- */

static void churn_begin(void *object) { percpu_init_rwsem(object); }

static int churn_enter(void *object)
{
	torture_rwsem_ops.read(object, UINT64_MAX);
	return 0;
}

static void churn_leave(void *object, int entered)
{
	(void)entered;
	torture_rwsem_ops.read_end(object);
}

static void churn_wait(void *object)
{
	torture_rwsem_ops.write(object, UINT64_MAX);
	torture_rwsem_ops.write_end(object);
}

static void churn_end(void *object) { percpu_free_rwsem(object); }

static const struct torture_churn churn = { churn_begin, churn_enter, churn_leave, churn_wait, churn_end, &figure[FREED],
					    &figure[TOUCHED] };
_Static_assert(sizeof(struct percpu_rw_semaphore) <= CHURN_BYTES, "a lock has room");

/* ---- the kind ---- */

static void set_up(void)
{
	ops = torture.kind->calls;
	torture_churn = &churn;
	shared[0].lock = (struct percpu_rw_semaphore)PERCPU_RWSEM_INIT; /* the counters are allocated at the first use */
	/* Called before there are threads: the first use registers with the
	 * kernel, which is slow if many threads run. */
	for (int i = 1; i < LOCKS; i++)
		percpu_init_rwsem(&shared[i].lock);
}

static const struct torture_role roles[] = {
	{ writer, WRITERS }, { torture_collector, 1 }, { torture_exits, 1 }, { torture_signals, 1 },
	{ torture_churn_owner, 1 }, { torture_churn_user, CHURN_USERS }, { NULL, 0 },
};

#define KIND(functions)													\
	{														\
		.set_up = set_up, .calls = &(functions), .section = torture_hold_section, .begin = hold, .use = use,	\
		.leaves = true, .roles = roles, .figures = figure,							\
		.writers = (1u << WRITERS) - 1 + (1u << PROGRESS_CHURN),						\
	}
const struct torture_kind torture_rwsem = KIND(torture_rwsem_ops), torture_busted_rwsem = KIND(torture_busted_rwsem_ops);
