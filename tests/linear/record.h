/* SPDX-License-Identifier: MIT */
/* record.h - histories of operations on shared tables, for tests/linear/check to judge.
 *
 * Workers operate on a few keys and note when each operation was called, when it had
 * returned, and what it replied.  Beside them one thread makes the table grow and shrink
 * with keys of its own, and one iterates; the results of these two need no history, because no other
 * thread uses their keys.
 */
#ifndef RECORD_H
#define RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAX_KEYS 1024
#define MAX_WORKERS 8
#define NR_FIXED 32  /* keys that stay */
#define MAX_BURST 2048
#define NR_QUEUES (MAX_KEYS + NR_FIXED + MAX_BURST)
#define UNKNOWN (~0ull) /* a value that is never stored: it stands for a value that could not be loaded */
#define GROUP 8      /* ids that are judged together: an allocation takes the lowest that is free */

/* The numbers are repeated in tests/linear/check/history.go. */
enum kind {
	OP_LOOKUP,   /* found */
	OP_INSERT,   /* value, if there is none; else found is what is there */
	OP_SET,      /* value, whatever is there; found is what was there */
	OP_REMOVE,   /* found is what was there */
	OP_REPLACE,  /* by value, if expected is there */
	OP_DISCARD,  /* remove, if expected is there */
	OP_ALLOC,    /* value at the lowest free key of the group; found is this key */
	OP_EXCHANGE, /* value, if something is there; found is what was there */
	OP_UPDATE,   /* stores the result of updated() for value and the value before, which is found */
	OP_CLEAR,    /* clears each key, at some time of its own; found is UNKNOWN if no dropped values are reported, or 0: then */
	OP_DROP,     /* found was taken out; follows its clear or erasure and has its ticks */
	OP_ERASE,    /* clears each key whose value is_chosen(), at some time of its own; values dropped are reported */
	NR_KINDS
};

/* How an operation is written to the file.  A value of 0 is none; with ids, it is NULL. */
struct event {
	uint64_t call, ret; /* ticks of one clock */
	uint64_t value, expected, found;
	uint32_t key;
	uint8_t kind, done; /* done: the operation did not fail */
	uint16_t client;
};

#define NO_KEY UINT32_MAX /* event.key of an operation that is not recorded */

struct op {
	struct event event;
	struct event *drops; /* @nr_drops events of values that a clear dropped */
	uint32_t nr_drops;
	uint64_t key;          /* the table's name for event.key */
	void *fresh, *target;  /* objects, for types that have them */
	void *held, *slot;     /* an object that is protected, by what */
};

/* A pass over a table keeps this state. */
struct pass {
	uint32_t seen[NR_FIXED];
	uint64_t all, last;
	bool wrong, down; /* down: from the last key to the first */
};

/* A history is judged key by key, or in groups of ids; or each key is a queue: a removal has found the oldest value, and done of a
 * lookup is true if there was one; or each key is a stack, and a removal has found the newest value. */
enum model { MODEL_MAP = 1, MODEL_IDS = 2, MODEL_QUEUE = 3, MODEL_STACK = 4 };

struct type {
	const char *name;
	enum model model;
	bool clears; /* workers clear the table now and then, so keys with one owner may be gone */
	bool erases; /* workers remove chosen keys of workers now and then, by a function */
	void (*perform)(struct op *op);
	void (*teardown)(void);
	bool in_order; /* a tree: keys lie where its nodes begin and end, and are met in order */
	/* The others may be NULL. */
	void (*setup)(uint64_t seed);
	void (*prepare)(struct op *op); /* before its call */
	void (*finish)(struct op *op);  /* after its return */
	void (*iterate)(struct pass *pass); /* calls visit() */
	void (*reserve)(size_t nr);
	uint64_t (*resizes)(void);
	uint64_t (*hash)(uint64_t key);
};

extern const struct type reference_type, broken_type, reference_cleared;
#ifdef HAVE_HASHMAP
extern const struct type hashmap_type, hashmap_cleared;
#endif
#ifdef HAVE_HASHTABLE
extern const struct type hashtable_type_objects, hashtable_type_hazptr, hashtable_cleared, hashtable_cleared_hazptr;
#endif
extern const struct type walk_type_map, walk_type_skip, walk_type_tree;
#ifdef HAVE_IDR
extern const struct type idr_type;
#endif
#ifdef HAVE_XARRAY
extern const struct type xarray_type;
#endif
#ifdef HAVE_LFQUEUE
extern const struct type lfqueue_type;
extern const struct type value_queue_type;
#endif
#ifdef HAVE_LFSTACK
extern const struct type lfstack_type;
#endif

/* record.c */
__attribute__((format(printf, 1, 2))) void wrong(const char *format, ...); /* a reply that no history is needed to judge */
__attribute__((format(printf, 1, 2), noreturn)) void give_up(const char *format, ...);
uint8_t succeeded(int rc, int failure); /* true if @rc is 0, false if it is @failure; others end the program */
void step(void (*of_type)(struct op *op), struct op *op); /* prepare or finish, if the type does */
/* Return the value that the function of an update gives a key that has @there, 0: none; tests/linear/check/model.go has it, too. */
uint64_t updated(uint64_t value, uint64_t there);
void dropped(struct op *op, uint32_t key, uint64_t value); /* record a value that a clear or an erasure dropped */
bool is_chosen(uint64_t value); /* true if an erasure takes it out; tests/linear/check/model.go has it, too */
void *allocate(size_t bytes);
uint64_t draw(uint64_t *random);
uint64_t tick(void);
bool time_is_up(void);

/* keys.c has the table's keys of workers, of the iterating thread, and of the thread that makes the table grow. */
void keys_choose(const struct type *type, uint32_t nr, bool alike, uint64_t *random);
uint64_t key_of_worker(uint32_t i);
uint32_t worker_of_key(uint64_t key); /* NO_KEY: it is no worker's in this round */
uint64_t key_fixed(const struct type *type, uint32_t i);
uint64_t key_of_burst(const struct type *type, uint64_t burst, uint32_t i);
uint64_t value_of(uint32_t client, uint64_t serial);

/* alone.c has the operations on keys of one thread alone. */
void fixed_insert(const struct type *type);
void visit(struct pass *pass, const struct type *type, uint64_t key, uint64_t value);
void *grow_and_shrink(void *type);
void *iterate_again(void *type);
extern uint64_t nr_bursts, nr_passes, nr_wrong_passes;

#endif
