/* SPDX-License-Identifier: MIT */
/* stacks.h - shared by test_wfstack.c and test_lfstack.c: objects that know whether they are in the stack, and threads
 * that push and pop them.  Nothing is lost and nothing is found twice: each object checks its own state, and counts and sums
 * of pushed and popped objects are equal. */
#ifndef STACKS_H
#define STACKS_H

#include <quiesce/ds/lfstack.h>
#include <quiesce/ds/wfstack.h>

#include "testing.h"

#define NR_PUSHERS 3
#define NR_POPPERS 2
#define NR_EACH 20000u

struct item {
	union {
		struct wfs_node wfs;
		struct lfs_node lfs;
	} node;
	uint64_t pushes; /* odd: in the stack */
	uint32_t pusher, number;
	uint64_t twice; /* number * 2: written before each push */
	struct rcu_head rcu;
};

/* Totals to which each thread adds its own. */
struct totals {
	uint64_t pushed, popped, sum_pushed, sum_popped;
	int wrong, pushers_left;
};

static struct totals totals;

static inline struct item *item_new(uint32_t pusher, uint32_t number)
{
	struct item *i = calloc(1, sizeof *i);

	if (!i)
		abort();
	i->pusher = pusher;
	i->number = number;
	return i;
}

/* To be called just before a push. */
static inline void item_goes_in(struct item *i)
{
	i->twice = 2ull * i->number;
	if (quiesce_fetch_add_relaxed(&i->pushes, 1u) % 2)
		count_up(&totals.wrong);
	quiesce_fetch_add_relaxed(&totals.sum_pushed, (uint64_t)i->number);
	quiesce_fetch_add_relaxed(&totals.pushed, 1u);
}

/* To be called for each object that was popped. */
static inline void item_came_out(struct item *i)
{
	if (quiesce_fetch_add_relaxed(&i->pushes, 1u) % 2 == 0 || i->twice != 2ull * i->number)
		count_up(&totals.wrong);
	quiesce_fetch_add_relaxed(&totals.sum_popped, (uint64_t)i->number);
	quiesce_fetch_add_relaxed(&totals.popped, 1u);
}

/* The result of one pop_all() has the newest item first, so the numbers of each pusher go down. */
struct batch_order { uint32_t last[NR_PUSHERS + 1]; };

static inline void batch_begin(struct batch_order *b)
{
	for (int i = 0; i <= NR_PUSHERS; i++)
		b->last[i] = UINT32_MAX;
}

static inline void batch_next(struct batch_order *b, const struct item *i)
{
	if (i->number >= b->last[i->pusher])
		count_up(&totals.wrong);
	b->last[i->pusher] = i->number;
}

static inline int pushers_left(void)
{
	return quiesce_load_relaxed(&totals.pushers_left); /* objects that these pushers push last are found by the pop after their join */
}

/* Let @pushers threads run @push and @poppers threads @pop until the pushers have ended; then @pop once more, here. */
static inline void load_run(int pushers, void *(*push)(void *), int poppers, void *(*pop)(void *))
{
	pthread_t thread[NR_PUSHERS + NR_POPPERS];

	memset(&totals, 0, sizeof totals);
	totals.pushers_left = pushers;
	for (intptr_t i = 0; i < pushers + poppers; i++)
		thread_must(pthread_create(&thread[i], NULL, i < pushers ? push : pop, (void *)i));
	threads_end(thread, pushers);
	quiesce_store_relaxed(&totals.pushers_left, 0);
	for (int i = pushers; i < pushers + poppers; i++)
		pthread_join(thread[i], NULL);
	pop(NULL);
	assert_int_equal(totals.wrong, 0);
	assert_true(totals.pushed >= (uint64_t)pushers * NR_EACH);
	assert_int_equal(totals.pushed, totals.popped);
	assert_int_equal(totals.sum_pushed, totals.sum_popped);
}

/* ---- a plain model: an array ---- */

#define MODEL_NODES 24

struct model {
	int node[MODEL_NODES], n; /* nodes in the stack, the newest last */
	bool in[MODEL_NODES];
	uint64_t seed;
};

static inline uint32_t model_draw(struct model *m, uint32_t below)
{
	m->seed = m->seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(m->seed >> 33) % below;
}

/* Return a node that is not in the stack; -1 if there is none. */
static inline int model_out(struct model *m)
{
	int first = (int)model_draw(m, MODEL_NODES);

	for (int i = 0; i < MODEL_NODES; i++)
		if (!m->in[(first + i) % MODEL_NODES])
			return (first + i) % MODEL_NODES;
	return -1;
}

static inline void model_push(struct model *m, int node)
{
	m->node[m->n++] = node;
	m->in[node] = true;
}

/* Pop a node; return -1 if the stack is empty. */
static inline int model_pop(struct model *m)
{
	int node = m->n ? m->node[--m->n] : -1;

	if (node >= 0)
		m->in[node] = false;
	return node;
}

#endif
