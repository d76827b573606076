/* SPDX-License-Identifier: MIT */
/* op.h - a type: its name, its place in the tables, and its facets.
 *
 * A subcommand takes the types that have the facets it needs.  Nothing here is on a measured fast path: the loops of
 * the read facet are instantiated in the file of the type, with the primitive inlined (loop.h).
 */
#ifndef QUIESCE_TOOL_OP_H
#define QUIESCE_TOOL_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The object that readers read: a section loads one pointer to it and one field. */
struct op_item {
	uint64_t field;
};
struct op_target {
	struct op_item *ptr;
} __attribute__((aligned(64)));
extern struct op_target op_target;

#define OP_LAYOUTS 4

/* Executes exactly @loops read-side operations; the sum keeps the loads alive. */
typedef uint64_t (*op_loop_fn)(struct op_target *target, uint64_t loops);

struct op_read {
	op_loop_fn loop[OP_LAYOUTS]; /* one loop at four positions in the cache lines */
	void (*lock)(void);
	void (*unlock)(void);
};

struct op_wait {
	void (*wait)(void);      /* with per_object: waits for the readers of op_target.ptr */
	void (*expedited)(void); /* NULL: the type has none */
	bool per_object;         /* true: waits for the readers of one object only; then there is a facet object */
};

/* A protection that its holder keeps, moves and hands over as it likes. */
struct op_guard {
	void *space[2];
};

/* Types that protect single objects have this facet. */
struct op_object {
	/* One guard per thread: any section is between its own lock() and unlock(). */
	void (*lock)(void *object);
	void (*unlock)(void);
	/* Executes @loops sections in turn over @objects[0..mask]; @mask + 1 is a
	 * power of two.  The sum keeps the loads alive. */
	uint64_t (*loop)(void *const *objects, uint64_t mask, uint64_t loops);
	void (*wait)(void *object);
	/* Each thread calls them around its use of the functions below, where torture can; NULL: not needed. */
	void (*enter)(void);
	void (*exit)(void);
	/* For any number of guards.  protect: loads the pointer at @where and protects its object; NULL only if the
	 * pointer was NULL.  attempt: tries that once; NULL also if the pointer changed.  acquire: protects an
	 * address known by other means. */
	void *(*protect)(void **where, struct op_guard *ret_guard);
	void *(*attempt)(void **where, struct op_guard *ret_guard);
	void (*acquire)(void *object, struct op_guard *ret_guard);
	void (*clear)(struct op_guard *guard);
	void *everything; /* an address: acquire() of it blocks every wait, wait() for it waits for every guard; NULL: there is none */
};

/* A retired object begins with this member. */
struct op_head {
	void *space[2]; /* used by the primitive */
	void (*fn)(struct op_head *head);
};

struct op_retire {
	void (*call)(struct op_head *head); /* runs head->fn after a grace period */
	void (*barrier)(void);
	void (*together)(struct op_head **heads, int nr); /* retires all of them as a group and waits for it; NULL: no groups */
};

struct op_polled {
	uint64_t (*get)(void);
	uint64_t (*start)(void);
	int (*poll)(uint64_t cookie);
	void (*cond)(uint64_t cookie);
};

struct op_pointer {
	void *(*fetch)(void **where); /* called inside a section */
	void (*publish)(void **where, void *object);
};

struct op_reclaim; /* retire.h */
struct rwlock_op;  /* rwlock.h */
struct hash_op;    /* hash.h */
struct queue_op;   /* queue.h */
struct torture_kind; /* torture.h */

struct op_stats {
	uint64_t grace_periods;
	uint64_t membarriers;
	uint64_t wakeups;
	uint64_t yields;
	uint64_t scans;   /* scans of all slots for waiting callers */
	uint64_t blocked; /* waits that found a guard */
};

enum op_fence { OP_FENCE_NONE, OP_FENCE_LIGHT, OP_FENCE_FULL, OP_NR_FENCES };

struct op {
	const char *name;
	int rank;        /* its place in tables, from the least on; families are some hundreds apart */
	uint32_t groups; /* bits of enum type_group (registry.h): the tables and pictures of several subcommands that have it */
	uint32_t peers;  /* for a call of this library that users take: the groups of its peers; 0: `run` compares it with none */
	const char *what;
	const char *reason; /* why a peer can be ahead of this library, a clause; NULL: not known */
	bool fence_modes; /* true: measured once with light and once with full fences */
	bool broken;      /* true: a test of the detector; torture has to fail */
	bool wait_only;   /* true: another type has the same readers, so refscale leaves it out */
	bool queue;       /* true: readers queue; refscale leaves out more threads than CPUs: most would wait for one that does not run */
	bool absent;      /* true: the module of the peer cannot be loaded; only the name is known (peers.h) */
	bool static_tls;  /* true: its library has more thread-local memory than the C library keeps for those that are loaded late */
	bool walk;        /* true: a type of walkscale, not of hashscale */
	const struct op_read *read;
	const struct op_wait *wait;
	const struct op_retire *retire;
	const struct op_polled *polled;
	const struct op_pointer *pointer;
	const struct op_object *object;
	const struct op_reclaim *reclaim;
	const struct rwlock_op *rwlock; /* both sides of a lock, with a description of its own */
	const struct hash_op *hash;
	const struct queue_op *queues;
	const struct torture_kind *torture; /* a torture of its own; only torture takes the type: another one of that name is measured */
	/* Each may be NULL.  init: returns 0 or -errno; thread_*: called around a thread's use; sleep_*: around a
	 * pause outside sections. */
	int (*init)(enum op_fence fence);
	void (*thread_enter)(void);
	void (*thread_exit)(void);
	void (*sleep_begin)(void);
	void (*sleep_end)(void);
	void (*stats)(struct op_stats *ret);
	/* Enters a section and returns the kind of slot that it got: "thread", "cpu_id", "mm_cid" or "shared". */
	const char *(*slot_kind)(void);
};

/* Defines the function @name of a facet, whose body is one statement or two. */
#define OP_FUNCTION(name, ...)        \
	static void name(void)        \
	{                             \
		__VA_ARGS__;          \
	}

/* Defines op_X(op), which calls op->X where the type has it. */
#define OP_OPTIONAL(call)                                        \
	static inline void op_##call(const struct op *op)        \
	{                                                        \
		if (op->call)                                    \
			op->call();                              \
	}
OP_OPTIONAL(thread_enter)
OP_OPTIONAL(thread_exit)
OP_OPTIONAL(sleep_begin)
OP_OPTIONAL(sleep_end)

#endif
