/* SPDX-License-Identifier: MIT */
/* objects.h - shared by the tests of deferred callbacks: objects that count how often their callback has run. */
#ifndef OBJECTS_H
#define OBJECTS_H

#include "testing.h"

struct object {
	struct rcu_head rcu;
	int runs;
	int *total;
};

static inline void object_run(struct rcu_head *head)
{
	struct object *o = (struct object *)(void *)((char *)head - offsetof(struct object, rcu));

	quiesce_fetch_add(RU5, &o->runs, 1); /* full: a thread that sees the count may use the object again */
	if (o->total)
		count_up(o->total);
}

/* Return how many of @n have run exactly once. */
static inline int nr_once(const struct object *o, int n)
{
	int once = 0;

	for (int i = 0; i < n; i++)
		once += flag_get(&o[i].runs) == 1;
	return once;
}

static inline int sum_runs(const struct object *o, int n)
{
	int sum = 0;

	for (int i = 0; i < n; i++)
		sum += flag_get(&o[i].runs);
	return sum;
}

static inline void *zeroed(size_t n, size_t size)
{
	void *p = calloc(n, size);

	assert_non_null(p);
	return p;
}

static inline void nothing_is_left(void)
{
	struct quiesce_stats s = stats_now();

	assert_int_equal(s.garbage_objects, 0);
	assert_int_equal(s.callbacks_queued, s.callbacks_run);
	wait_until(stats_now().garbage_bytes == 0); /* the count falls a moment after the last callback has returned */
}

#endif
