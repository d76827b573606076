/* SPDX-License-Identifier: MIT */
/* keys.h - a registry of keys: buckets of addresses; lookups, and the waits that go with them. */
#ifndef LOCKDEP_KEYS_H
#define LOCKDEP_KEYS_H

#include <quiesce/hazptr.h>

#include "case.h"

struct key {
	struct hazptr_head hazptr; /* the first member, so its address is the key's */
	struct key *next;          /* the low bit marks that this key has been unlinked */
	struct canary canary;
};

struct bucket {
	struct key *first;
};

/* Each thread that looks keys up has this state. */
struct walker {
	uint64_t stay_ns;     /* time to stay at a key that is found, before the lookup returns */
	const uint32_t *stop; /* do not stay any longer */
	hazptr_t *slot[2];    /* NULL: the variant has none */
	bool check;           /* check whether keys are alive, and slow lookups down */
	uint64_t random, visits;
};

/* A method has the functions of a variant. */
struct method {
	bool (*find)(struct walker *w, struct bucket *bucket, uintptr_t address);
	void (*wait)(struct bucket *bucket, struct key *key); /* returns when no lookup stands on the key */
	bool batched;                                         /* one wait for all keys */
	void (*retire)(struct key *key);                      /* NULL: the waiter frees */
	bool slots;
};

/* The list ends with a NULL name; methods[] is in the same order. */
extern const struct case_choice variants[];
extern const struct method methods[];

/* Register a new key. */
struct key *new_key(struct bucket *bucket);
/* From then on a lookup that begins does not find @key. */
void unlink_key(struct bucket *bucket, struct key *key);
void free_key(struct key *key);
extern uint64_t keys_freed;

#endif
