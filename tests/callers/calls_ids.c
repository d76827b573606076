/* SPDX-License-Identifier: MIT */
/* calls_ids.c - idr, ida and xarray. */
#include "world.h"

static int sum_ids(int id, void *unused, void *sum)
{
	(void)unused;
	*(int *)sum += id;
	return 0;
}

static bool call_idr_find(struct world *w)
{
	return idr_find(&w->idr, 6) == w->fixed[6] && !idr_find(&w->idr, NR_KEYS) && xa_load(&w->xa, 6) == w->fixed[6];
}

static bool call_idr_walk(struct world *w)
{
	unsigned long at = 2;
	int id, sum = 0, next = 3;
	struct object *o;
	bool ok;

	rcu_read_lock();
	idr_for_each_entry(&w->idr, o, id)
		sum += o == w->fixed[id];
	id = NR_KEYS - 2;
	idr_for_each_entry_continue(&w->idr, o, id)
		sum += o == w->fixed[id];
	idr_for_each_entry_ul(&w->idr, o, at)
		sum += o == w->fixed[at];
	ok = sum == 2 * NR_KEYS + 2 && idr_get_next(&w->idr, &next) == w->fixed[3];
	at = 4;
	ok = ok && idr_get_next_ul(&w->idr, &at) == w->fixed[4] && idr_for_each(&w->idr, sum_ids, &sum) == 0;
	rcu_read_unlock();
	return ok && idr_count(&w->idr) == NR_KEYS && !idr_is_empty(&w->idr);
}

static bool change_idr(struct world *w, struct idr *own)
{
	struct idr_nodes nodes = IDR_NODES_INIT;
	void *old = NULL;
	uint32_t next = 5000;
	int id = idr_alloc(own, w, 1, 0);
	bool ok = id == 1 || done(w, id);

	if (w->memory_fails)
		return ok;
	ok = ok && idr_alloc_u32(own, w, &next, UINT32_MAX) == 0 && next == 5000;
	idr_set_cursor(own, 9);
	ok = ok && idr_alloc_cyclic(own, w, 0, 0) == 9 && idr_get_cursor(own) == 10 && idr_preload(&nodes) == 0;
	ok = ok && idr_alloc_preloaded(own, &nodes, NULL, 100000, 0) == 100000 && idr_replace(own, own, 100000, &old) == 0 && !old;
	idr_preload_end(&nodes);
	return ok && idr_remove(own, 100000) == own && idr_remove(own, 1) == w && idr_count(own) == 2;
}

static bool call_idr_change(struct world *w)
{
	struct idr own;
	bool ok;

	idr_init(&own);
	ok = idr_is_empty(&own) && change_idr(w, &own);
	idr_destroy(&own);
	return ok && idr_is_empty(&own);
}

static bool change_ida(struct world *w, struct ida *own)
{
	int id = ida_alloc(own);

	if (id && w->memory_fails)
		return done(w, id);
	if (id || ida_alloc_min(own, 70) != 70 || ida_alloc_max(own, 9) != 1 || ida_alloc_range(own, 80, 90) != 80)
		return false;
	ida_free(own, 70);
	return !ida_exists(own, 70) && ida_exists(own, 80) && ida_find_first(own) == 0 && ida_find_first_range(own, 2, 200) == 80;
}

static bool call_ida(struct world *w)
{
	struct ida own;
	bool ok;

	ida_init(&own);
	ok = ida_is_empty(&own) && change_ida(w, &own);
	ida_destroy(&own);
	return ok && ida_is_empty(&own);
}

static bool call_xa_find(struct world *w)
{
	unsigned long at = 2, first = 0;
	struct object *o;
	void *two[2];
	int sum = 0;
	bool ok;

	rcu_read_lock();
	ok = xa_find(&w->xa, &at, 9, XA_PRESENT) == w->fixed[2] && xa_find_after(&w->xa, &at, 9, XA_PRESENT) == w->fixed[3];
	ok = ok && xa_find_reverse(&w->xa, &at, 0, XA_PRESENT) == w->fixed[3] && xa_find_before(&w->xa, &at, 0, XA_PRESENT) == w->fixed[2];
	ok = ok && xa_extract(&w->xa, two, first, 9, 2, XA_PRESENT) == 2 && two[1] == w->fixed[1];
	xa_for_each(&w->xa, at, o)
		sum += o == w->fixed[at];
	xa_for_each_range(&w->xa, at, o, 3, 4)
		sum += o == w->fixed[at];
	xa_for_each_start(&w->xa, at, o, NR_KEYS - 1)
		sum += o == w->fixed[at];
	xa_for_each_reverse(&w->xa, at, o)
		sum += o == w->fixed[at];
	xa_for_each_range_reverse(&w->xa, at, o, 3, 4)
		sum += o == w->fixed[at];
	xa_for_each_marked(&w->xa, at, o, XA_MARK_0)
		sum += 100;
	ok = ok && !xa_marked(&w->xa, XA_MARK_0) && !xa_get_mark(&w->xa, 3, XA_MARK_0);
	rcu_read_unlock();
	return ok && sum == 2 * NR_KEYS + 5 && xa_count(&w->xa) == NR_KEYS && !xa_empty(&w->xa);
}

static bool change_xa(struct world *w, struct xarray *own)
{
	uint32_t id = 0, next = 50;
	void *old = w, *number = xa_mk_value(77);
	int err = xa_store(own, 1000, number, &old);
	bool ok;

	if (err)
		return done(w, err);
	if (w->memory_fails)
		return true;
	ok = !old && xa_insert(own, 1000, w) == -EBUSY && xa_cmpxchg(own, 1000, number, w, &old) == 0 && old == number;
	ok = ok && xa_is_value(old) && xa_to_value(old) == 77 && xa_reserve(own, 2000) == 0;
	xa_release(own, 2000);
	ok = ok && xa_alloc(own, &id, w, XA_LIMIT(3, 9)) == 0 && id == 3 && xa_alloc_cyclic(own, &id, w, xa_limit_16b, &next) == 0;
	xa_set_mark(own, 3, XA_MARK_1);
	ok = ok && id == 50 && xa_get_mark(own, 3, XA_MARK_1) && xa_marked(own, XA_MARK_1);
	xa_clear_mark(own, 3, XA_MARK_1);
	return ok && !xa_marked(own, XA_MARK_1) && xa_erase(own, 3) == w && xa_count(own) == 2;
}

static bool call_xa_change(struct world *w)
{
	struct xarray own;
	bool ok;

	xa_init(&own);
	ok = xa_empty(&own) && change_xa(w, &own);
	xa_destroy(&own);
	return ok && xa_empty(&own);
}

enum { ANYWHERE = IN_READER | IN_CALLBACK | AT_THREAD_END };

const struct call calls_ids[] = {
	CALL(idr_find, "idr_find xa_load", NEVER_WAITS | ANYWHERE),
	CALL(idr_walk, "idr_for_each_entry idr_for_each_entry_continue idr_for_each_entry_ul idr_for_each idr_get_next idr_get_next_ul"
	     " idr_count idr_is_empty", ANYWHERE),
	CALL(idr_change, "idr_init idr_alloc idr_alloc_u32 idr_alloc_cyclic idr_set_cursor idr_get_cursor idr_preload idr_preload_end"
	     " idr_alloc_preloaded idr_replace idr_remove idr_destroy", ANYWHERE | MAY_FAIL),
	CALL(ida, "ida_init ida_is_empty ida_alloc ida_alloc_min ida_alloc_max ida_alloc_range ida_free ida_exists ida_find_first"
	     " ida_find_first_range ida_destroy", ANYWHERE | MAY_FAIL),
	CALL(xa_find, "xa_find xa_find_after xa_find_reverse xa_find_before xa_extract xa_for_each xa_for_each_range xa_for_each_start"
	     " xa_for_each_reverse xa_for_each_range_reverse xa_for_each_marked xa_marked xa_get_mark xa_count xa_empty", ANYWHERE),
	CALL(xa_change, "xa_init xa_store xa_insert xa_cmpxchg xa_reserve xa_release xa_alloc xa_alloc_cyclic xa_set_mark xa_clear_mark"
	     " xa_erase xa_destroy xa_mk_value xa_to_value xa_is_value XA_LIMIT", ANYWHERE | MAY_FAIL),
	END_OF_CALLS,
};
