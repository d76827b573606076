/* SPDX-License-Identifier: MIT */
/* retire.h - the types of retirescale: allocate, publish or not, retire, with readers beside.
 *
 * An indirect call costs as much as the fastest of these, so the loop is a template (RETIRE_TYPE), instantiated in
 * retire_X.c with the primitive inlined; functions that run once for hundreds of objects are called through pointers.
 */
#ifndef QUIESCE_TOOL_RETIRE_H
#define QUIESCE_TOOL_RETIRE_H

#include <stdlib.h>

#include <quiesce/atomic.h>

#include "histogram.h"
#include "op.h"
#include "stopwatch.h"

#ifdef __cplusplus
extern "C" {
#endif

struct op_reclaim {
	/* Allocates @nr objects and retires each (@where NULL), or the object that it
	 * replaces at @where.  Returns how many were retired. */
	uint64_t (*produce)(void **where, uint64_t nr);
	/* As produce(); adds the duration of each retirement to @ret_ticks, in ticks of the stopwatch. */
	uint64_t (*timed)(void **where, uint64_t nr, struct histogram *ret_ticks);
	/* A protected read of the object at @where, which may be NULL. */
	void (*read)(void **where);
	/* Protects the object at @where until release(). */
	void (*hold)(void **where);
	void (*release)(void);
	/* Each thread calls it when no object is protected any more: reclaims
	 * the thread's own objects.  NULL: not needed. */
	void (*drain)(void);
	/* Called once after all threads have drained.  NULL: not needed. */
	void (*barrier)(void);
	/* Frees the last object, which was never retired.  NULL: free(). */
	void (*dispose)(void *object);
	/* The number of objects that were ever freed.  NULL: retire_free() counts them. */
	uint64_t (*freed)(void);
	/* For --scan; NULL: the type takes no part.  Occupies @nr slots, in contexts; false: there are not so many.
	 * vacate() gives them back. */
	bool (*occupy)(uint32_t nr);
	void (*vacate)(void);
	/* Retires @nr objects from @first on, @stride bytes apart; each ends in retire_count(). */
	void (*give)(char *first, size_t stride, uint64_t nr);
	/* Ends all objects of give() in one scan; NULL: they end as they come. */
	void (*finish)(void);
};

#define RETIRE_HEAD_WORDS 6
#define RETIRE_MIN_BYTES 64

struct retire_object {
	void *head[RETIRE_HEAD_WORDS]; /* used by the primitive */
	uint64_t value;
};

/* Parameters of the job, fixed before the types are used. */
struct retire_params {
	size_t bytes; /* bytes of each object */
	size_t batch; /* objects in a batch, for types that have none of their own */
	bool batch_given; /* true: --batch was given */
};
extern struct retire_params retire_params;

/* Sets the parameters that are not 0. */
static inline void retire_set(size_t bytes, size_t batch)
{
	if (bytes)
		retire_params.bytes = bytes;
	if (batch)
		retire_params.batch = batch;
	retire_params.batch_given = batch;
}

/* Counts of one thread, which writes them; the thread that watches the garbage reads them. */
struct retire_tally {
	uint64_t freed;
	uint64_t retired;
	uint32_t taken;
} __attribute__((aligned(128)));
extern __thread struct retire_tally *retire_mine __attribute__((tls_model("initial-exec")));

/* The calling thread's tally, from its first use until the thread leaves; the counts are kept. */
struct retire_tally *retire_tally_take(void);
void retire_tally_leave(void);
/* Both functions return sums over all tallies ever used. */
uint64_t retire_all_retired(void);
uint64_t retire_all_freed(void);

static inline struct retire_tally *retire_tally(void)
{
	return quiesce_likely(retire_mine != NULL) ? retire_mine : retire_tally_take();
}

static inline struct retire_object *retire_alloc(uint64_t value)
{
	struct retire_object *o = (struct retire_object *)malloc(retire_params.bytes);

	if (quiesce_unlikely(!o))
		abort();
	o->value = value;
	return o;
}

static inline void retire_count(void)
{
	struct retire_tally *tally = retire_tally();

	quiesce_store_relaxed(&tally->freed, tally->freed + 1);
}

/* The two functions are for types whose library does not count: hash_op.waiting. */
static inline void retire_note(void)
{
	struct retire_tally *tally = retire_tally();

	quiesce_store_relaxed(&tally->retired, tally->retired + 1);
}

static inline uint64_t retire_waiting(void)
{
	uint64_t freed = retire_all_freed(), retired = retire_all_retired();

	return retired > freed ? retired - freed : 0;
}

static inline void retire_free(void *object)
{
	free(object);
	retire_count();
}

/* Readers add the values that they find to it, which keeps the loads alive. */
extern __thread uint64_t retire_sum __attribute__((tls_model("initial-exec")));

static inline void retire_use(const struct retire_object *o)
{
	if (o)
		retire_sum += quiesce_load_relaxed(&o->value);
}

#ifdef __cplusplus
}
#endif

/* raw: the tool's own publication of an object, the same for every type. */
#define RETIRE_XCHG(where, object) ((struct retire_object *)__atomic_exchange_n((where), (void *)(object), __ATOMIC_ACQ_REL))

/* Defines name_produce(), with RETIRE(object) for each object; and name_timed(),
 * whose times contain neither ALLOC nor the exchange. */
#define RETIRE_PRODUCE(name, ALLOC, RETIRE)                                  \
	static uint64_t name##_produce(void **where, uint64_t nr)            \
	{                                                                    \
		uint64_t n = 0;                                              \
		for (uint64_t i = 0; i < nr; i++) {                          \
			struct retire_object *o = ALLOC(i);                  \
			if (where && !(o = RETIRE_XCHG(where, o)))           \
				continue;                                    \
			RETIRE(o);                                           \
			n++;                                                 \
		}                                                            \
		return n;                                                    \
	}                                                                    \
	static uint64_t name##_timed(void **where, uint64_t nr, struct histogram *ret_ticks) \
	{                                                                    \
		uint64_t n = 0;                                              \
		for (uint64_t i = 0; i < nr; i++) {                          \
			struct retire_object *o = ALLOC(i);                  \
			uint64_t begin;                                      \
			if (where && !(o = RETIRE_XCHG(where, o)))           \
				continue;                                    \
			begin = stopwatch_begin();                           \
			RETIRE(o);                                           \
			histogram_add(ret_ticks, stopwatch_since(begin));    \
			n++;                                                 \
		}                                                            \
		return n;                                                    \
	}
/* Defines read_protected() by hold() and release(), for a facet that has the three. */
#define RETIRE_READ                                                          \
	static void read_protected(void **where)                             \
	{                                                                    \
		hold(where);                                                 \
		release();                                                   \
	}
#define RETIRE_READERS .read = read_protected, .hold = hold, .release = release

#define RETIRE_PRODUCERS(name) .produce = name##_produce, .timed = name##_timed

#define RETIRE_GIVE(name, RETIRE)                                            \
	static void name##_give(char *first, size_t stride, uint64_t nr)     \
	{                                                                    \
		for (uint64_t i = 0; i < nr; i++)                            \
			RETIRE(first + i * stride);                          \
	}

#endif
