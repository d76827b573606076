/* SPDX-License-Identifier: MIT */
/* retire.h - the types of retirescale: allocate, publish or not, retire, and who reads meanwhile.
 *
 * An indirect call costs as much as the fastest of these, so the loop is a template (RETIRE_TYPE), instantiated
 * in retire_X.c with the primitive inlined; what runs once for hundreds of objects is called through pointers.
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
	/* Allocate @nr objects and retire each (@where NULL) or what it replaces there.  Returns how many were retired. */
	uint64_t (*produce)(void **where, uint64_t nr);
	/* The same; how long each retirement took, in ticks of the stopwatch, is added to @ret_ticks. */
	uint64_t (*timed)(void **where, uint64_t nr, struct histogram *ret_ticks);
	/* A protected read of what is at @where; NULL there is possible. */
	void (*read)(void **where);
	/* Protect what is there until release(). */
	void (*hold)(void **where);
	void (*release)(void);
	/* Of a thread, when nobody protects anything any more: reclaim what is its own.  NULL: nothing is. */
	void (*drain)(void);
	/* Of the process, after all threads have drained.  NULL: nothing to do. */
	void (*barrier)(void);
	/* How many objects were freed ever.  NULL: those that retire_free() counted. */
	uint64_t (*freed)(void);
	/* For --scan; NULL: no part in it.  Have @nr slots in use, in contexts; false: there are not so many.  Give them back. */
	bool (*occupy)(uint32_t nr);
	void (*vacate)(void);
	/* Retire @nr objects from @first on, @stride bytes apart, with retire_count() as their end. */
	void (*give)(char *first, size_t stride, uint64_t nr);
	/* The same so that they end in one look, at finish(); NULL: as they come. */
	void (*finish)(void);
};

#define RETIRE_HEAD_WORDS 6
#define RETIRE_MIN_BYTES 64

struct retire_object {
	void *head[RETIRE_HEAD_WORDS]; /* the primitive's */
	uint64_t value;
};

/* What a job says, fixed before the types are used. */
struct retire_params {
	size_t bytes; /* of each object */
	size_t batch; /* of types that have no batch of their own */
	bool batch_given; /* somebody asked for that */
};
extern struct retire_params retire_params;

/* 0: as it is. */
static inline void retire_set(size_t bytes, size_t batch)
{
	if (bytes)
		retire_params.bytes = bytes;
	if (batch)
		retire_params.batch = batch;
	retire_params.batch_given = batch;
}

/* Of one thread; written by it, read by who looks at the garbage. */
struct retire_tally {
	uint64_t freed;
	uint64_t retired;
	uint32_t taken;
} __attribute__((aligned(128)));
extern __thread struct retire_tally *retire_mine __attribute__((tls_model("initial-exec")));

/* The calling thread's tally, from the first use until it leaves; counts stay. */
struct retire_tally *retire_tally_take(void);
void retire_tally_leave(void);
/* All that was ever counted. */
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

static inline void retire_free(void *object)
{
	free(object);
	retire_count();
}

/* What readers do with what they have found; the sum keeps the load alive. */
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

/* name_produce(), with RETIRE(object) for each; and name_timed(), where neither ALLOC nor the exchange is in the time. */
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
#define RETIRE_PRODUCERS(name) .produce = name##_produce, .timed = name##_timed

#define RETIRE_GIVE(name, RETIRE)                                            \
	static void name##_give(char *first, size_t stride, uint64_t nr)     \
	{                                                                    \
		for (uint64_t i = 0; i < nr; i++)                            \
			RETIRE(first + i * stride);                          \
	}

#endif
