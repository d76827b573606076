/* SPDX-License-Identifier: MIT */
/* hash.h - the types of hashscale: tables of 16-byte pairs, a key and a value, looked up and updated.
 *
 * A thread works through a stream of words made beforehand, each of which is a key and what to do with it.  The
 * loop is a template (HASH_RUN), instantiated in hash_X.c with the lookup inlined; it runs over some hundreds of
 * words, so that a call through a pointer does not count.
 *
 * What each type has to keep: the value of a key is hash_value(key), never anything else; a key is updated by one
 * thread only, so that a remove finds it and an insert does not; half of the keys are never updated (no
 * HASH_CHURNED in them), and a lookup of such a key finds it.  All of it is checked.
 */
#ifndef QUIESCE_TOOL_HASH_H
#define QUIESCE_TOOL_HASH_H

#include <quiesce/atomic.h>

#include "op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A word: 62 bits of a key, and above them what to do; neither bit: look it up. */
#define HASH_INSERT ((uint64_t)1 << 62)
#define HASH_REMOVE ((uint64_t)1 << 63)
#define HASH_KEY (HASH_INSERT - 1)
/* In a key: it comes and goes.  No key is 0 or HASH_KEY. */
#define HASH_CHURNED ((uint64_t)1 << 61)

/* Of one thread, or of the whole cell. */
struct hash_tally {
	uint64_t sum;    /* of the values found, which keeps the loads alive */
	uint64_t absent; /* lookups of a key that comes and goes, and was not there */
	uint64_t lost;   /* lookups of one that is always there, but was not found; each of the following is an error too */
	uint64_t wrong;  /* values of another key, or of none */
	uint64_t failed; /* updates that were refused, or found another state than their thread had left */
};

struct hash_op {
	/* An empty table; @nr_keys elements are to come, which only tables of fixed size may use.  NULL: out of memory.
	 * Called in the main thread, between thread_enter() and thread_exit() of struct op; so is destroy(), alone. */
	void *(*create)(uint64_t nr_keys);
	void (*destroy)(void *table);
	/* Do what the words say: HASH_RUN. */
	void (*run)(void *table, const uint64_t *word, uint64_t nr, struct hash_tally *tally);
	/* In each thread after each run(), outside sections, for what must be told of a quiescent state.  NULL: nothing to do. */
	void (*between)(void);
	/* In the main thread, when no other is inside: end what is deferred.  NULL: nothing is. */
	void (*barrier)(void);
	/* In the main thread, when the table has its @nr_keys elements and nobody else is inside: whatever its users do so
	 * that it has the size for them, if it does not see to that reliably.  NULL: nothing. */
	void (*settle)(void *table, uint64_t nr_keys);
	/* Memory of @table that did not come from malloc(), in bytes.  NULL: there is none. */
	uint64_t (*mapped)(const void *table);
	/* In one thread at a time, beside any that look up and update, outside sections: let @table have the size for @nr_keys
	 * elements, more or less than it has, and return when it has.  False: not yet, and it needs some updates; then call it
	 * again.  NULL: it cannot be resized both ways, or another type is the same table; it is not measured with --resize. */
	bool (*resize)(void *table, uint64_t nr_keys);
	bool read_only; /* no insert or remove beside lookups, only before them */
	bool grows;     /* goes on growing in the background when its elements are there */
	/* Of walkscale.  How many removed elements wait until nobody can have them any more, now, by any thread. */
	uint64_t (*waiting)(void);
	/* Begin an operation of a reader, call @stay, end it. */
	void (*stall)(void *table, void (*stay)(void *arg), void *stay_arg);
	uint64_t most_keys; /* with more it is not measured; 0: there is no limit */
	uint64_t most_scattered; /* the same, of keys that have no neighbours */
};

static inline uint64_t hash_value(uint64_t key)
{
	return ~key;
}

/* The hash of a key, for every type that takes one.  One multiplication is enough for keys that are spread already. */
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

/* What a lookup found that it should not have: rare, out of the way of the loop. */
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

/* Defines name_run(), given
 *	uint64_t name_lookup(TABLE *table, uint64_t key);		the value, 0 if there is none; to be inlined
 *	bool name_insert(TABLE *table, uint64_t key, uint64_t value);	false: it is there already, or no memory
 *	bool name_remove(TABLE *table, uint64_t key);			false: it is not there
 * each with whatever section or lock it needs inside: one operation, one section. */
#define HASH_RUN(name, TABLE)                                                                                                   \
	/* The lookups from @i on, up to an update: where that is.  By itself: beside calls, even those that are never made, the\
	 * loop has less registers, and so less lookups are under way in the CPU. */                                            \
	static __attribute__((noinline)) uint64_t name##_lookups(TABLE *table, const uint64_t *word, uint64_t i,                \
								 uint64_t nr, struct hash_tally *tally)                         \
	{                                                                                                                       \
		uint64_t sum = 0;                                                                                               \
                                                                                                                                \
		for (; i < nr && quiesce_likely(word[i] <= HASH_KEY); i++) {                                                    \
			uint64_t known = word[i], value = name##_lookup(table, known);                                          \
                                                                                                                                \
			sum += value;                                                                                           \
			if (quiesce_unlikely(value != hash_value(known)))                                                       \
				hash_judge(tally, known, value);                                                                \
		}                                                                                                               \
		tally->sum += sum;                                                                                              \
		return i;                                                                                                       \
	}                                                                                                                       \
                                                                                                                                \
	static void name##_run(void *arg, const uint64_t *word, uint64_t nr, struct hash_tally *tally)                          \
	{                                                                                                                       \
		TABLE *table = (TABLE *)arg;                                                                                    \
                                                                                                                                \
		for (uint64_t i = 0; (i = name##_lookups(table, word, i, nr, tally)) < nr; i++) {                               \
			uint64_t key = word[i] & HASH_KEY;                                                                      \
                                                                                                                                \
			if (word[i] & HASH_REMOVE)                                                                              \
				tally->failed += !name##_remove(table, key);                                                    \
			else                                                                                                    \
				tally->failed += !name##_insert(table, key, hash_value(key));                                   \
		}                                                                                                               \
	}

#endif
