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
#define MAILBOXES 8
#define PHASE_NS 100000000u
#define QUIET_NS 25000000u /* longer than it takes until readers are fast again */

static struct shared {
	struct percpu_rw_semaphore lock;
	uint64_t writer;      /* 1: a writer is inside */
	uint64_t word[WORDS]; /* equal while no writer is inside */
} __attribute__((aligned(128))) shared[LOCKS];

static const struct torture_rwsem_ops *ops;
static uint64_t torn, together, not_mine, refused, refused_writers, cold, given;

/* ---- mailboxes: locks held for reading, and one held for writing ---- */

enum { MAIL_NONE, MAIL_BUSY, MAIL_HERE };

static struct mailbox {
	uint32_t state;
	struct shared *s;
	uint64_t value;
} __attribute__((aligned(64))) mailbox[MAILBOXES], written;

static bool mail_turn(struct mailbox *m, uint32_t from)
{
	/* raw: the mailboxes' own hand-over; acquire, with the release in mail_end(). */
	return __atomic_compare_exchange_n(&m->state, &from, MAIL_BUSY, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static void mail_end(struct mailbox *m, uint32_t state)
{
	/* raw: release, with the acquire in mail_begin(). */
	__atomic_store_n(&m->state, state, __ATOMIC_RELEASE);
}

static bool post(struct mailbox *m, struct shared *s, uint64_t value)
{
	if (!mail_turn(m, MAIL_NONE))
		return false;
	m->s = s;
	m->value = value;
	mail_end(m, MAIL_HERE);
	return true;
}

static struct shared *fetch(struct mailbox *m, uint64_t *ret_value)
{
	struct shared *s;

	if (quiesce_load_relaxed(&m->state) != MAIL_HERE || !mail_turn(m, MAIL_HERE))
		return NULL;
	s = m->s;
	*ret_value = m->value;
	mail_end(m, MAIL_NONE);
	return s;
}

/* ---- readers ---- */

/* Checks for all traces of a writer. */
static void check_words(struct shared *s, uint64_t value)
{
	bool equal = true;

	for (int i = 0; i < WORDS; i++)
		equal = equal && quiesce_load_relaxed(&s->word[i]) == value;
	if (!equal)
		torture_count_together(torn);
	if (quiesce_load_relaxed(&s->writer))
		torture_count_together(together);
}

static void let_go(struct shared *s, uint64_t value, struct tally *t)
{
	check_words(s, value);
	ops->read_end(&s->lock);
	torture_count(t->reads);
}

/* Reads from the last word on, which is the last to change. */
static uint64_t first_check(struct shared *s)
{
	uint64_t value = quiesce_load_relaxed(&s->word[WORDS - 1]);

	check_words(s, value);
	return value;
}

static uint64_t random_timeout(uint64_t r, uint64_t most)
{
	return r % 8 < 5 ? UINT64_MAX : r % 8 == 5 ? 0 : 1 + r / 8 % most;
}

static void section(struct tally *t, uint64_t *random)
{
	uint64_t r = random_next(random) >> 7, value;
	struct shared *s = &shared[r % LOCKS];

	if (!ops->read(&s->lock, random_timeout(r / LOCKS, 200000))) {
		torture_count_together(refused);
		return;
	}
	quiesce_store_relaxed(&t->holding, (uint64_t)(s - shared) + 1);
	value = first_check(s);
	torture_delay(random);
	check_words(s, value);
	quiesce_store_relaxed(&t->holding, 0);
	if (r >> 30 & 63 || !post(&mailbox[r >> 36 & (MAILBOXES - 1)], s, value))
		let_go(s, value, t);
	else
		torture_count(t->handed_over);
	s = fetch(&mailbox[r >> 40 & (MAILBOXES - 1)], &value);
	if (s)
		let_go(s, value, t);
}

/* The handler may have interrupted a call on the same lock. */
static void once(struct tally *t, uint64_t *random, uint64_t spins)
{
	uint64_t value;
	struct shared *s = &shared[(random_next(random) >> 9) % LOCKS];

	if (!ops->read(&s->lock, 0)) {
		torture_count_together(refused);
		return;
	}
	value = first_check(s);
	torture_spin(spins);
	let_go(s, value, t);
}

static void leave(struct tally *t, uint64_t *random)
{
	struct shared *s = &shared[(random_next(random) >> 9) % LOCKS];
	uint64_t value;

	if (!ops->read(&s->lock, UINT64_MAX))
		return;
	value = first_check(s);
	if (post(&mailbox[*random >> 12 & (MAILBOXES - 1)], s, value))
		torture_count(t->handed_over);
	else
		let_go(s, value, t);
}

/* ---- writers ---- */

static void end_write(struct shared *s)
{
	quiesce_store_relaxed(&s->writer, 0);
	ops->write_end(&s->lock);
}

static void count_readers_inside(const struct shared *s)
{
	for (int i = 0; i < torture.nr_readers; i++)
		if (quiesce_load_relaxed(&torture.tally[i].holding) == (uint64_t)(s - shared) + 1)
			torture_count_together(together);
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
		torture_count_together(not_mine);
}

static void write_once(uint32_t index, uint64_t *random)
{
	uint64_t r = random_next(random) >> 7;
	struct shared *s = &shared[r % LOCKS];

	if (rcu_sync_is_idle(&s->lock.rss))
		torture_count_together(cold);
	torture_count(torture.progress[index]); /* an attempt has ended */
	if (!ops->write(&s->lock, random_timeout(r / LOCKS, 2000000))) {
		torture_count_together(refused_writers);
		return;
	}
	change(s, random);
	torture_count_together(torture.version);
	if (r >> 30 & 15 || !post(&written, s, 0))
		end_write(s);
	else
		torture_count_together(given);
}

static void writer(uint32_t index)
{
	uint64_t random = 2463534242u + index;
	uint32_t generation = 0;

	while (!torture_stopped()) {
		uint32_t now = quiesce_load_relaxed(&torture.regime.generation);
		bool pinned = quiesce_load_relaxed(&torture.regime.pinned), quiet = now_ns() / PHASE_NS % 2;

		torture_stutter();
		if (now != generation)
			bind_cpu(pinned ? 0 : -1);
		generation = now;
		if ((pinned || quiet) && index) { /* leaves the readers alone with one writer */
			torture_count(torture.progress[index]);
			sleep_ns(2000000);
			continue;
		}
		if (quiet)
			sleep_ns(QUIET_NS + random % 10000000);
		write_once(index, &random);
		if (random_next(&random) % 4 == 0)
			sleep_ns(random % 100000);
	}
}

/* Never waits for a lock, so the mailboxes are always emptied. */
static void postman(void)
{
	struct tally *t = &torture.tally[torture.nr_readers + 1];
	uint64_t random = 77310957, value;
	bool last;

	do {
		/* raw: acquire, with the release in torture_leave(). */
		last = __atomic_load_n(&torture.users, __ATOMIC_ACQUIRE) == 1; /* the caller itself is the last one */
		for (int i = 0; i < MAILBOXES; i++) {
			struct shared *s = fetch(&mailbox[i], &value);

			if (s)
				let_go(s, value, t);
		}
		struct shared *s = fetch(&written, &value);

		if (s)
			end_write(s);
		sleep_ns(random_next(&random) % 300000);
	} while (!last);
}

/* ---- locks that end with their last user ---- */

static void churn_begin(void *object)
{
	percpu_init_rwsem(object);
}

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

static void churn_end(void *object)
{
	percpu_free_rwsem(object);
}

static const struct torture_churn churn = { churn_begin, churn_enter, churn_leave, churn_wait, churn_end };
_Static_assert(sizeof(struct percpu_rw_semaphore) <= CHURN_BYTES, "a lock has room");

/* ---- the kind ---- */

static void set_up_with(const struct torture_rwsem_ops *which)
{
	ops = which;
	torture_churn = &churn;
	shared[0].lock = (struct percpu_rw_semaphore)PERCPU_RWSEM_INIT; /* the counters are allocated at the first use */
	/* Called before there are threads: the first use registers with the
	 * kernel, which is slow if many threads run. */
	for (int i = 1; i < LOCKS; i++)
		percpu_init_rwsem(&shared[i].lock);
}

static void set_up(void)
{
	set_up_with(&torture_rwsem_ops);
}

static void set_up_busted(void)
{
	set_up_with(&torture_busted_rwsem_ops);
}

static uint64_t errors(void)
{
	return quiesce_load_relaxed(&torn) + quiesce_load_relaxed(&together) + quiesce_load_relaxed(&not_mine) +
	       quiesce_load_relaxed(&torture_churn_errors);
}

#define U(x) ((unsigned long long)quiesce_load_relaxed(&(x)))

static void report(void)
{
	job_print("refused %llu, writers refused %llu, writes that found readers fast %llu, write locks handed over %llu, locks freed %llu",
		  U(refused), U(refused_writers), U(cold), U(given), U(torture_churn_turns));
	if (errors())
		job_print("!!! torn %llu, readers beside a writer %llu, not the owner %llu, touched after the end %llu", U(torn),
			  U(together), U(not_mine), U(torture_churn_errors));
}

static const char *idle(void)
{
	if (quiesce_load_relaxed(&cold) <= LOCKS) /* the first writers find readers fast anyway */
		return "readers did not become fast again between writes";
	if (!quiesce_load_relaxed(&given) || !quiesce_load_relaxed(&refused))
		return "no write lock was handed over, or no caller was refused";
	return quiesce_load_relaxed(&torture_churn_turns) ? NULL : "no lock was freed";
}

static const struct torture_role roles[] = {
	{ NULL, writer, 0 }, { NULL, writer, 1 }, { NULL, writer, 2 }, { postman, NULL, 0 },
	{ torture_exits, NULL, 0 }, { torture_signals, NULL, 0 },
	{ torture_churn_owner, NULL, 0 }, { NULL, torture_churn_user, 0 }, { NULL, torture_churn_user, 1 },
};

#define KIND(first)                                                                                       \
	{                                                                                                 \
		.set_up = (first), .section = section, .once = once, .leave = leave, .roles = roles,      \
		.nr_roles = sizeof(roles) / sizeof(roles[0]), .writers = (1u << WRITERS) - 1 + (1u << PROGRESS_CHURN), \
		.errors = errors, .report = report, .idle = idle,                                         \
	}
const struct torture_kind torture_rwsem = KIND(set_up), torture_busted_rwsem = KIND(set_up_busted);
