/* SPDX-License-Identifier: MIT */
/* op.h - one ops table per primitive, shared by refscale, rcuscale and torture; others for
 * retirescale (retire.h) and hashscale (hash.h).
 *
 * A type offers facets; a subcommand takes the types that have the facets it
 * needs.  Nothing here is on a measured fast path: the loops of the read facet
 * are instantiated in ops/X.c with the primitive inlined (loop.h).
 */
#ifndef QUIESCE_TOOL_OP_H
#define QUIESCE_TOOL_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a reader looks at: one pointer to load, one field behind it. */
struct op_item {
	uint64_t field;
};
struct op_target {
	struct op_item *ptr;
} __attribute__((aligned(64)));
extern struct op_target op_target;

#define OP_LAYOUTS 4

/* Exactly @loops read-side operations; the sum keeps the loads alive. */
typedef uint64_t (*op_loop_fn)(struct op_target *target, uint64_t loops);

struct op_read {
	op_loop_fn loop[OP_LAYOUTS]; /* the same loop at four places in the cache lines */
	void (*lock)(void);
	void (*unlock)(void);
};

struct op_wait {
	void (*wait)(void);      /* per_object: for the readers of op_target.ptr */
	void (*expedited)(void); /* NULL: none */
	bool per_object;         /* waits for the readers of one object only; then there is a facet object */
};

/* A protection that its holder keeps, moves and hands over as it likes. */
struct op_guard {
	void *space[2];
};

/* Types that protect single objects. */
struct op_object {
	/* One guard per thread: any section has its own lock() and unlock() around it. */
	void (*lock)(void *object);
	void (*unlock)(void);
	/* @loops sections in turn over @objects[0..mask]; @mask + 1 is a power of two.  The sum keeps them alive. */
	uint64_t (*loop)(void *const *objects, uint64_t mask, uint64_t loops);
	void (*wait)(void *object);
	/* In a thread before the first and after the last of what follows, where torture can; NULL: nothing to do. */
	void (*enter)(void);
	void (*exit)(void);
	/* Any number of guards.  protect: fetch the pointer at @where and protect what it points to, NULL only if that
	 * was NULL; attempt: the same once, NULL also if it changed; acquire: an address known by other means. */
	void *(*protect)(void **where, struct op_guard *ret_guard);
	void *(*attempt)(void **where, struct op_guard *ret_guard);
	void (*acquire)(void *object, struct op_guard *ret_guard);
	void (*clear)(struct op_guard *guard);
	void *everything; /* acquire() of it blocks every wait, wait() for it waits for every guard; NULL: there is none */
};

/* First member of a retired object. */
struct op_head {
	void *space[2]; /* the primitive's */
	void (*fn)(struct op_head *head);
};

struct op_retire {
	void (*call)(struct op_head *head); /* head->fn runs after a grace period */
	void (*barrier)(void);
	void (*together)(struct op_head **heads, int nr); /* as a group of their own, and wait for it; NULL: no groups */
};

struct op_polled {
	uint64_t (*get)(void);
	uint64_t (*start)(void);
	int (*poll)(uint64_t cookie);
	void (*cond)(uint64_t cookie);
};

struct op_pointer {
	void *(*fetch)(void **where); /* inside a section */
	void (*publish)(void **where, void *object);
};

struct op_reclaim; /* retire.h */
struct rwlock_op;  /* rwlock.h */
struct hash_op;    /* hash.h */
struct queue_op;   /* queue.h */

struct op_stats {
	uint64_t grace_periods;
	uint64_t membarriers;
	uint64_t wakeups;
	uint64_t yields;
	uint64_t scans;   /* looks at all slots for those who wait */
	uint64_t blocked; /* waits that found somebody in the way */
};

enum op_fence { OP_FENCE_NONE, OP_FENCE_LIGHT, OP_FENCE_FULL, OP_NR_FENCES };

struct op {
	const char *name;
	const char *what;
	bool fence_modes; /* measured once with light and once with full fences */
	bool broken;      /* a detector's test: torture has to fail */
	bool wait_only;   /* its readers are another type's: refscale leaves it out */
	bool queue;       /* its readers queue: refscale leaves out more threads than CPUs, where most wait for one that does not run */
	bool absent;      /* of a peer whose module is not loaded: only the name is known (peers.h) */
	const struct op_read *read;
	const struct op_wait *wait;
	const struct op_retire *retire;
	const struct op_polled *polled;
	const struct op_pointer *pointer;
	const struct op_object *object;
	const struct op_reclaim *reclaim;
	const struct rwlock_op *rwlock; /* both sides of a lock; it also says what the type is, where @what is NULL */
	const struct hash_op *hash;
	const struct queue_op *queues;
	/* Each may be NULL.  init: 0 or -errno; thread_*: around a thread's use;
	 * sleep_*: around a pause outside sections. */
	int (*init)(enum op_fence fence);
	void (*thread_enter)(void);
	void (*thread_exit)(void);
	void (*sleep_begin)(void);
	void (*sleep_end)(void);
	void (*stats)(struct op_stats *ret);
	/* Open a section and tell which kind of slot it got: "thread", "cpu_id", "mm_cid" or "shared". */
	const char *(*slot_kind)(void);
};

/* Every type, NULL at the end.  Those of peers are absent until somebody asks for them: OP_ABSENT(). */
extern const struct op *op_table[];
/* The same of retirescale, of rwscale, of hashscale, of walkscale and of queuescale, with names of their own. */
extern const struct op *retire_table[], *rwlock_types[], *hash_types[], *walk_types[], *queue_types[];
const struct op *op_find(const char *name);

/* Rows of tables: of a type that is compiled in, and of one that is in a peer's module. */
#define OP_HERE(name_) &op_##name_,
#define OP_ABSENT(name_) &(const struct op){ .name = #name_, .absent = true },

static inline void op_thread_enter(const struct op *op)
{
	if (op->thread_enter)
		op->thread_enter();
}

static inline void op_thread_exit(const struct op *op)
{
	if (op->thread_exit)
		op->thread_exit();
}

static inline void op_sleep_begin(const struct op *op)
{
	if (op->sleep_begin)
		op->sleep_begin();
}

static inline void op_sleep_end(const struct op *op)
{
	if (op->sleep_end)
		op->sleep_end();
}

#endif
