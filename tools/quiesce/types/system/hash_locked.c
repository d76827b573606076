/* SPDX-License-Identifier: MIT */
/* hash_locked.c - the article's tables, whose readers lock: one lock in each bucket, or one big reader's lock.
 *
 * McKenney, "Using RCU in the Linux 2.5 kernel", Linux Journal, 2003, measured these with chains of one element.
 */
#include <quiesce/atomic.h>

#include "types/floor/hash_chain.h"

/* Looks up under the lock. */
#define LOOKUP(name, READ_LOCK, READ_UNLOCK)                                                     \
	HASH_LOOKUP name##_lookup(struct chain_table *t, uint64_t key)                \
	{                                                                                        \
		struct chain_bucket *b = chain_bucket(t, key);                                   \
		struct chain_node *n;                                                            \
		uint64_t value;                                                                  \
                                                                                                 \
		READ_LOCK(b);                                                                    \
		n = chain_find(b, key);                                                          \
		value = n ? n->value : 0;                                                        \
		READ_UNLOCK(b);                                                                  \
		return value;                                                                    \
	}

/* ---- spinlock ---- */

LOOKUP(spinlock, CHAIN_LOCK, CHAIN_UNLOCK)
CHAIN_UPDATES(spinlock, CHAIN_NODE, CHAIN_LOCK, CHAIN_UNLOCK, free, false)
HASH_RUN(spinlock, struct chain_table)

TYPE(spinlock, .rank = 510, .groups = PEER_TABLE | RUN_TABLE | REPORT,
	.what = "chains, a spinlock in each bucket",
	.reason = "its lock is in the line of the bucket, which is loaded anyway; its nodes have no head for a deferred free",
	.hash = &(const struct hash_op){ CHAIN_TABLE, .run = spinlock_run });

/* ---- rwlock ---- */

#define READ_LOCK(b) hash_read_lock(&(b)->rw)
#define READ_UNLOCK(b) hash_read_unlock(&(b)->rw)
#define WRITE_LOCK(b) hash_write_lock(&(b)->rw)
#define WRITE_UNLOCK(b) hash_write_unlock(&(b)->rw)
LOOKUP(rwlock, READ_LOCK, READ_UNLOCK)
CHAIN_UPDATES(rwlock, CHAIN_NODE, WRITE_LOCK, WRITE_UNLOCK, free, false)
HASH_RUN(rwlock, struct chain_table)

TYPE(rwlock, .rank = 530, .groups = RUN_TABLE | REPORT,
	.what = "chains, a fair reader-writer lock of our own, by tickets, in each bucket",
	.hash = &(const struct hash_op){ CHAIN_TABLE, .run = rwlock_run });

/* ---- refcnt: the lock only protects the counting of a reference to the
 * element, which is then read without the lock ---- */

struct counted_node {
	struct chain_node chain;
	uint64_t references; /* the table holds one of them */
};

static struct chain_node *new_counted(uint64_t key, uint64_t value)
{
	struct chain_node *n = chain_node_new(sizeof(struct counted_node), key, value);

	if (n)
		((struct counted_node *)n)->references = 1;
	return n;
}

static inline void put(struct chain_node *n)
{
	/* raw: full, like all decrements of the count: the last one frees the node. */
	if (__atomic_sub_fetch(&((struct counted_node *)n)->references, 1, __ATOMIC_ACQ_REL) == 0)
		free(n);
}

HASH_LOOKUP refcnt_lookup(struct chain_table *t, uint64_t key)
{
	struct chain_bucket *b = chain_bucket(t, key);
	struct chain_node *n;
	uint64_t value;

	CHAIN_LOCK(b);
	n = chain_find(b, key);
	if (n)
		(void)quiesce_fetch_add_relaxed(&((struct counted_node *)n)->references, (uint64_t)1);
	CHAIN_UNLOCK(b);
	if (!n)
		return 0;
	value = n->value;
	put(n);
	return value;
}

CHAIN_UPDATES(refcnt, new_counted, CHAIN_LOCK, CHAIN_UNLOCK, put, false)
HASH_RUN(refcnt, struct chain_table)

TYPE(refcnt, .rank = 520, .groups = RUN_TABLE | REPORT,
	.what = "chains, a spinlock in each bucket, under which a reference to the element is counted",
	.hash = &(const struct hash_op){ CHAIN_TABLE, .run = refcnt_run });

/* ---- brlock: one lock for the table; readers use a line of their own thread's, a writer all of them ---- */

struct br_line {
	uint64_t inside; /* brlock: sections of the thread, 0 or 1 */
	struct hash_rwlock lock; /* brlock_atomic: the thread's own lock */
} __attribute__((aligned(128)));

static struct br_line line[HASH_MAX_THREADS];
static uint32_t writer __attribute__((aligned(128)));
static int nr_lines __attribute__((aligned(128))); /* number of lines that have ever been in use */

static void br_enter(void)
{
	hash_thread_enter();
	while (true) {
		int nr = quiesce_load_relaxed(&nr_lines);

		/* raw: full: a writer that does not see the new number entered before this
		 * thread's first section, which sees the writer. */
		if (nr > hash_thread_number ||
		    __atomic_compare_exchange_n(&nr_lines, &nr, hash_thread_number + 1, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			return;
	}
}

static inline void br_read_lock(void)
{
	struct br_line *mine = &line[hash_thread_number];

	while (true) {
		quiesce_store_relaxed(&mine->inside, (uint64_t)1);
		quiesce_fence_full(RAW); /* either the writer sees this reader, or this reader sees the writer */
		/* raw: acquire, with the release of the last writer's unlock. */
		if (quiesce_likely(!__atomic_load_n(&writer, __ATOMIC_ACQUIRE)))
			return;
		quiesce_store_relaxed(&mine->inside, (uint64_t)0);
		for (uint32_t spins = 0; quiesce_load_relaxed(&writer);)
			hash_lock_pause(&spins);
	}
}

static inline void br_read_unlock(void)
{
	/* raw: release, with the acquire in br_write_lock(). */
	__atomic_store_n(&line[hash_thread_number].inside, (uint64_t)0, __ATOMIC_RELEASE);
}

static void br_write_lock(void)
{
	hash_spin_lock(&writer);
	quiesce_fence_full(RAW);
	for (int i = 0; i < quiesce_load_relaxed(&nr_lines); i++)
		/* raw: acquire, with the release in br_read_unlock(). */
		for (uint32_t spins = 0; __atomic_load_n(&line[i].inside, __ATOMIC_ACQUIRE);)
			hash_lock_pause(&spins);
}

OP_FUNCTION(br_write_unlock, hash_spin_unlock(&writer))

#define BR_READ_LOCK(b) br_read_lock()
#define BR_READ_UNLOCK(b) br_read_unlock()
#define BR_WRITE_LOCK(b) br_write_lock()
#define BR_WRITE_UNLOCK(b) br_write_unlock()
LOOKUP(brlock, BR_READ_LOCK, BR_READ_UNLOCK)
CHAIN_UPDATES(brlock, CHAIN_NODE, BR_WRITE_LOCK, BR_WRITE_UNLOCK, free, false)
HASH_RUN(brlock, struct chain_table)

TYPE(brlock, .rank = 540, .groups = REPORT,
	.what = "chains, one big reader's lock: a line for each reader, a fence, a check for a writer",
	.hash = &(const struct hash_op){ CHAIN_TABLE, .run = brlock_run }, .thread_enter = br_enter, .thread_exit = hash_thread_exit);

/* ---- brlock_atomic: the older kind: a reader-writer lock for each reader; a writer takes all of them ---- */

static void br_write_lock_all(void)
{
	hash_spin_lock(&writer); /* the lock keeps new threads from entering, too: each_enter() */
	for (int i = 0; i < nr_lines; i++)
		hash_write_lock(&line[i].lock);
}

static void br_write_unlock_all(void)
{
	for (int i = 0; i < nr_lines; i++)
		hash_write_unlock(&line[i].lock);
	hash_spin_unlock(&writer);
}

static void each_enter(void)
{
	hash_spin_lock(&writer);
	br_enter();
	hash_spin_unlock(&writer);
}

#define EACH_READ_LOCK(b) hash_read_lock(&line[hash_thread_number].lock)
#define EACH_READ_UNLOCK(b) hash_read_unlock(&line[hash_thread_number].lock)
#define EACH_WRITE_LOCK(b) br_write_lock_all()
#define EACH_WRITE_UNLOCK(b) br_write_unlock_all()
LOOKUP(brlock_atomic, EACH_READ_LOCK, EACH_READ_UNLOCK)
CHAIN_UPDATES(brlock_atomic, CHAIN_NODE, EACH_WRITE_LOCK, EACH_WRITE_UNLOCK, free, false)
HASH_RUN(brlock_atomic, struct chain_table)

static const struct hash_op brlock_atomic_hash = { CHAIN_TABLE, .run = brlock_atomic_run };
TYPE(brlock_atomic, .rank = 550,
	.what = "chains, the older big reader's lock: a reader-writer lock of each reader's own",
	.hash = &brlock_atomic_hash, .thread_enter = each_enter, .thread_exit = hash_thread_exit);
