/* SPDX-License-Identifier: MIT */
/* hash.h - the types of hashscale: tables of 16-byte pairs, a key and a value, with lookups and updates.
 *
 * A thread works through a stream of words made beforehand; each is a key and the operation on it.  The loop is a
 * template (HASH_RUN), instantiated in hash_X.c with the lookup inlined; it runs over some hundreds of words, so that
 * the call through a pointer does not count.
 *
 * Each type has to keep these rules, all of which are checked: the value of a key is hash_value(key), never anything
 * else; only one thread updates a key, so that its removes find the key and its inserts do not; half of the keys are
 * never updated (they lack HASH_CHURNED), and each lookup of such a key finds it.
 */
#ifndef QUIESCE_TOOL_HASH_H
#define QUIESCE_TOOL_HASH_H

#include <quiesce/atomic.h>

#include "op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A word of a stream holds 62 bits of a key and above them the operation; neither bit is set for a lookup. */
#define HASH_INSERT ((uint64_t)1 << 62)
#define HASH_REMOVE ((uint64_t)1 << 63)
#define HASH_KEY (HASH_INSERT - 1)
/* Bit of keys that are removed and inserted again.  No key is 0 or HASH_KEY. */
#define HASH_CHURNED ((uint64_t)1 << 61)

/* A tally holds results of one thread, or of the whole cell. */
struct hash_tally {
	uint64_t sum;    /* sum of the values found, which keeps the loads alive */
	uint64_t absent; /* lookups that did not find a key with HASH_CHURNED */
	uint64_t lost;   /* errors: lookups that did not find a key that is always in the table */
	uint64_t wrong;  /* errors: values of another key, or of none */
	uint64_t failed; /* errors: updates that were refused, or found another state than their thread had left */
};

struct hash_op {
	/* Returns an empty table; only tables of fixed size may use @nr_keys, the number of elements to come.  NULL:
	 * out of memory.
	 * The main thread calls it, and destroy(), between thread_enter() and thread_exit() of struct op. */
	void *(*create)(uint64_t nr_keys);
	void (*destroy)(void *table);
	/* Executes the operations of the words: HASH_RUN. */
	void (*run)(void *table, const uint64_t *word, uint64_t nr, struct hash_tally *tally);
	/* Each thread calls it after each run(), outside sections, to announce a quiescent state.  NULL: not needed. */
	void (*between)(void);
	/* The main thread calls it while no other thread is inside: completes deferred work.  NULL: there is none. */
	void (*barrier)(void);
	/* The main thread calls it when the table has its @nr_keys elements and no other thread is inside: sets the
	 * size by hand, for tables that do not reliably reach it by themselves.  NULL: not needed. */
	void (*settle)(void *table, uint64_t nr_keys);
	/* Bytes of @table that did not come from malloc().  NULL: none. */
	uint64_t (*mapped)(const void *table);
	/* Resizes @table for @nr_keys elements, more or less than now, and returns when it has that size.  One thread
	 * at a time calls it, outside sections, beside lookups and updates.  False: not yet, the table needs some
	 * updates first; then the caller repeats the call.  NULL: the table cannot be resized both ways, or another
	 * type is the same table; --resize does not measure it. */
	bool (*resize)(void *table, uint64_t nr_keys);
	bool read_only; /* true: no insert or remove beside lookups, only before them */
	bool grows;     /* true: the table goes on growing in the background when it has its elements */
	/* The current number of removed elements of all threads that are not freed yet.  NULL: it is not known. */
	uint64_t (*waiting)(void);
	/* For walkscale: begins an operation of a reader, calls @stay, and ends the operation. */
	void (*stall)(void *table, void (*stay)(void *arg), void *stay_arg);
	uint64_t most_keys; /* most keys that are measured; 0: no limit */
	uint64_t most_scattered; /* most keys without neighbours that are measured; 0: no limit */
};

static inline uint64_t hash_value(uint64_t key)
{
	return ~key;
}

/* The hash of a key, for every type that takes one.  One multiplication
 * is enough, because keys are scattered already. */
static inline uint64_t hash_mix(uint64_t key)
{
#ifdef __SIZEOF_INT128__
	unsigned __int128 product = (unsigned __int128)(key ^ 0x9e3779b97f4a7c15u) * 0xd6e8feb86659fd93u;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
#else
	key = (key ^ key >> 32) * 0xd6e8feb86659fd93u;
	key = (key ^ key >> 32) * 0xd6e8feb86659fd93u;
	return key ^ key >> 32;
#endif
}

/* Counts a lookup that failed or found a wrong value: rare, and kept out of the loop. */
static inline void hash_judge(struct hash_tally *tally, uint64_t key, uint64_t value)
{
	if (value)
		tally->wrong++;
	else if (key & HASH_CHURNED)
		tally->absent++;
	else
		tally->lost++;
}

#ifdef __cplusplus
}
#endif

/* A lookup is inlined into the loop, as into the loop of a program: a compiler that optimises for size as well would call one that
 * two loops have. */
#define HASH_LOOKUP static inline __attribute__((always_inline)) uint64_t

/* Defines name_run(), given
 *	HASH_LOOKUP name_lookup(TABLE *table, uint64_t key);		the value, 0 if there is none
 *	bool name_insert(TABLE *table, uint64_t key, uint64_t value);	false: it is there already, or no memory
 *	bool name_remove(TABLE *table, uint64_t key);			false: it is not there
 * each with whatever section or lock it needs inside: one operation, one section. */
#define HASH_RUN(name, TABLE) HASH_RUN_BY(name, name, TABLE)
/* The same with other functions, by_lookup(), by_insert() and by_remove(). */
#define HASH_RUN_BY(name, by, TABLE)                                                                                            \
	HASH_LOOKUPS(name, by, TABLE)                                                                                           \
	HASH_OPERATIONS(name, by, TABLE)

/* The same with
 *	void by_lookup_many(TABLE *table, const uint64_t *key, size_t nr, uint64_t *ret_value);
 * in place of by_lookup(): the lookups up to the next update, at most HASH_BATCH at once. */
#define HASH_RUN_MANY(name, by, TABLE)                                                                                          \
	HASH_LOOKUPS_MANY(name, by, TABLE)                                                                                      \
	HASH_OPERATIONS(name, by, TABLE)

#define HASH_BATCH 32

#define HASH_LOOKUPS(name, by, TABLE)                                                                                           \
	/* Look up from @i on, up to an update, and return its place.  This is a function by itself: beside calls, even those   \
	 * that are never made, the loop has less registers, and so less lookups are under way in the CPU. */                   \
	static __attribute__((noinline)) uint64_t name##_lookups(TABLE *table, const uint64_t *word, uint64_t i,                \
								 uint64_t nr, struct hash_tally *tally)                         \
	{                                                                                                                       \
		uint64_t sum = 0;                                                                                               \
                                                                                                                                \
		for (; i < nr && quiesce_likely(word[i] <= HASH_KEY); i++) {                                                    \
			uint64_t known = word[i], value = by##_lookup(table, known);                                            \
                                                                                                                                \
			sum += value;                                                                                           \
			if (quiesce_unlikely(value != hash_value(known)))                                                       \
				hash_judge(tally, known, value);                                                                \
		}                                                                                                               \
		tally->sum += sum;                                                                                              \
		return i;                                                                                                       \
	}

#define HASH_LOOKUPS_MANY(name, by, TABLE)                                                                                      \
	static __attribute__((noinline)) uint64_t name##_lookups(TABLE *table, const uint64_t *word, uint64_t i,                \
								 uint64_t nr, struct hash_tally *tally)                         \
	{                                                                                                                       \
		uint64_t value[HASH_BATCH];                                                                                     \
                                                                                                                                \
		while (i < nr && word[i] <= HASH_KEY) {                                                                         \
			uint64_t n = 1;                                                                                         \
                                                                                                                                \
			while (n < HASH_BATCH && i + n < nr && word[i + n] <= HASH_KEY)                                         \
				n++;                                                                                            \
			by##_lookup_many(table, word + i, n, value);                                                            \
			for (uint64_t j = 0; j < n; j++) {                                                                      \
				tally->sum += value[j];                                                                         \
				if (quiesce_unlikely(value[j] != hash_value(word[i + j])))                                      \
					hash_judge(tally, word[i + j], value[j]);                                               \
			}                                                                                                       \
			i += n;                                                                                                 \
		}                                                                                                               \
		return i;                                                                                                       \
	}

#define HASH_OPERATIONS(name, by, TABLE)                                                                                        \
	static void name##_run(void *arg, const uint64_t *word, uint64_t nr, struct hash_tally *tally)                          \
	{                                                                                                                       \
		TABLE *table = (TABLE *)arg;                                                                                    \
                                                                                                                                \
		for (uint64_t i = 0; (i = name##_lookups(table, word, i, nr, tally)) < nr; i++) {                               \
			uint64_t key = word[i] & HASH_KEY;                                                                      \
                                                                                                                                \
			if (word[i] & HASH_REMOVE)                                                                              \
				tally->failed += !by##_remove(table, key);                                                      \
			else                                                                                                    \
				tally->failed += !by##_insert(table, key, hash_value(key));                                     \
		}                                                                                                               \
	}

#endif
