/* SPDX-License-Identifier: MIT */
/* hash.cpp - tables of libcds, which get the number of elements at the beginning. */
#include <cds/init.h>

#include <cds/container/michael_kvlist_hp.h>
#include <cds/container/michael_list_rcu.h>
#include <cds/container/michael_map.h>
#include <cds/container/split_list_map_rcu.h>
#include <cds/gc/hp.h>
#include <cds/urcu/general_buffered.h>

#include <functional>

#include "types/hash_peer.hpp"

namespace {

enum { MAX_THREADS = 320 };

OP_FUNCTION(attach, cds::threading::Manager::attachThread())
OP_FUNCTION(detach, cds::threading::Manager::detachThread())

template <class Map> struct sized : Map {
	explicit sized(uint64_t nr_keys) : Map(nr_keys, 1) {}
};

/* Reads the value while the library protects the element. */
template <class Map> HASH_LOOKUP any_lookup(Map *t, uint64_t key)
{
	uint64_t value = 0;

	t->find(key, [&value](auto &found, auto &...) { value = found.second; });
	return value;
}
template <class Map> bool any_insert(Map *t, uint64_t key, uint64_t value)
{
	return t->insert(key, value);
}
template <class Map> bool any_remove(Map *t, uint64_t key)
{
	return t->erase(key);
}

/* ---- Michael's table: an ordered list in each of a fixed number of buckets, hazard pointers ---- */

struct list_traits : cds::container::michael_list::traits {
	using less = std::less<uint64_t>;
};
struct michael_traits : cds::container::michael_map::traits {
	using hash = peer::hash;
};
using michael = sized<cds::container::MichaelHashMap<
	cds::gc::HP, cds::container::MichaelKVList<cds::gc::HP, uint64_t, uint64_t, list_traits>, michael_traits>>;

HASH_RUN_BY(michael, any, michael)

/* The collectors are never destroyed: when the process ends, no thread uses them any more. */
int init_hp(op_fence)
{
	cds::Initialize();
	cds::gc::hp::smr::construct(michael::c_nHazardPtrCount, MAX_THREADS, 0);
	return 0;
}

OP_FUNCTION(barrier_hp, cds::gc::HP::force_dispose())

/* ---- a list in order of the reversed hash, with entries into it; libcds' RCU ---- */

using rcu = cds::urcu::gc<cds::urcu::general_buffered<>>;

struct split_traits : cds::container::split_list::traits {
	using ordered_list = cds::container::michael_list_tag;
	using hash = peer::hash;
	struct ordered_list_traits : cds::container::michael_list::traits {
		using less = std::less<uint64_t>;
	};
};
using split = sized<cds::container::SplitListMap<rcu, uint64_t, uint64_t, split_traits>>;

HASH_RUN_BY(split, any, split)

int init_rcu(op_fence)
{
	cds::Initialize();
	new rcu;
	return 0;
}

OP_FUNCTION(barrier_rcu, rcu::synchronize())

/* ---- the types ---- */

const hash_op michael_hash = { .create = peer::create_sized<michael>, .destroy = peer::destroy<michael>, .run = michael_run,
			       .barrier = barrier_hp };
const hash_op split_hash = { .create = peer::create_sized<split>, .destroy = peer::destroy<split>, .run = split_run,
			     .barrier = barrier_rcu };

TYPE(libcds_michael_hp, .rank = 1200,
	.what = "libcds' MichaelHashMap, hazard pointers, a bucket for each element",
	.hash = &michael_hash, .init = init_hp, .thread_enter = attach, .thread_exit = detach);
TYPE(libcds_split_rcu, .rank = 1210,
	.what = "libcds' SplitListMap, its buffered RCU, up to a bucket for each element",
	.hash = &split_hash, .init = init_rcu, .thread_enter = attach, .thread_exit = detach);

} // namespace
