/* SPDX-License-Identifier: MIT */
/* nulls_lookup.h - lookups in chains of entries that are used again at once, by the pattern of rculist_nulls.h. */
#ifndef QUIESCE_TESTS_SIM_NULLS_LOOKUP_H
#define QUIESCE_TESTS_SIM_NULLS_LOOKUP_H

#include "driver.h"
#include "platform/platform.h"

#include <quiesce/ds/rculist_nulls.h>
#include <quiesce/rcu.h>

#define NULLS_NR_CHAINS 2

/* The part of an entry by which lookups find it. */
struct nulls_entry {
	uint64_t refs; /* 0 while it is free */
	uint64_t key;
	struct hlist_nulls_node node;
};

/* The scenario has these: @visit returns false if the entry is none, and the run has failed. */
struct nulls_world {
	bool (*visit)(struct nulls_entry *e);
	void (*put)(struct nulls_entry *e);
	void (*strayed)(void); /* an end in another chain */
	void (*changed)(void); /* an entry that became another one */
};

static struct hlist_nulls_head nulls_chain[NULLS_NR_CHAINS];

static inline void nulls_begin(void)
{
	for (unsigned long i = 0; i < NULLS_NR_CHAINS; i++)
		INIT_HLIST_NULLS_HEAD(&nulls_chain[i], i);
}

static inline struct hlist_nulls_head *nulls_chain_of(uint64_t key)
{
	return &nulls_chain[key % NULLS_NR_CHAINS];
}

static inline uint64_t nulls_key_of(const struct nulls_entry *e)
{
	return quiesce_load_relaxed(&e->key); /* Relaxed: compared again under the reference. */
}

/* Set the key and the first reference of an entry, which is then ready for a chain. */
static inline void nulls_begin_life(struct nulls_entry *e, uint64_t key)
{
	quiesce_store_relaxed(&e->key, key); /* Relaxed: the reference follows. */
	quiesce_store_release(RU3, &e->refs, 1);
}

static inline bool nulls_tryget(struct nulls_entry *e)
{
	uint64_t refs = quiesce_load_relaxed(&e->refs); /* Relaxed: the exchange decides. */

	while (refs)
		if (quiesce_cmpxchg(RU3, &e->refs, &refs, refs + 1))
			return true;
	return false;
}

/* True if that was the last reference. */
static inline bool nulls_drop(struct nulls_entry *e)
{
	return quiesce_fetch_add(RU3, &e->refs, (uint64_t)-1) == 1;
}

static inline struct nulls_entry *nulls_find_once(const struct nulls_world *world, uint64_t key, bool *again)
{
	struct hlist_nulls_node *pos;
	struct nulls_entry *e;

	*again = true;
	hlist_nulls_for_each_entry_rcu(e, pos, nulls_chain_of(key), node) {
		if (!world->visit(e)) {
			*again = false;
			return NULL;
		}
		if (nulls_key_of(e) != key)
			continue;
		if (!nulls_tryget(e))
			return NULL;
		if (nulls_key_of(e) == key)
			return e;
		world->changed();
		world->put(e);
		return NULL;
	}
	*again = hlist_nulls_strayed(pos, key % NULLS_NR_CHAINS);
	if (*again)
		world->strayed();
	return NULL;
}

/* Return an entry with @key, and a reference; NULL: there is none. */
static inline struct nulls_entry *nulls_find(const struct nulls_world *world, uint64_t key)
{
	struct nulls_entry *e;
	bool again;

	rcu_read_lock();
	while (!(e = nulls_find_once(world, key, &again)) && again)
		platform_yield();
	rcu_read_unlock();
	return e;
}

#endif
