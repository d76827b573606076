/* SPDX-License-Identifier: MIT */
/* hash_std.cpp - the standard library's tables under one lock: the usual first solution. */
#include <map>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "types/hash_peer.hpp"

namespace {

using unordered = std::unordered_map<uint64_t, uint64_t, peer::hash>;
using ordered = std::map<uint64_t, uint64_t>;

template <class Map, class Mutex, class Read> struct locked {
	Map map;
	mutable Mutex mutex;

	uint64_t lookup(uint64_t key) const
	{
		Read lock(mutex);
		auto found = map.find(key);

		return found == map.end() ? 0 : found->second;
	}
	bool insert(uint64_t key, uint64_t value)
	{
		std::lock_guard<Mutex> lock(mutex);

		return map.emplace(key, value).second;
	}
	bool remove(uint64_t key)
	{
		std::lock_guard<Mutex> lock(mutex);

		return map.erase(key) != 0;
	}
};

using exclusive = locked<unordered, std::mutex, std::lock_guard<std::mutex>>;
using shared = locked<unordered, std::shared_mutex, std::shared_lock<std::shared_mutex>>;
using shared_ordered = locked<ordered, std::shared_mutex, std::shared_lock<std::shared_mutex>>;

template <class Table> HASH_LOOKUP any_lookup(Table *t, uint64_t key)
{
	return t->lookup(key);
}
template <class Table> bool any_insert(Table *t, uint64_t key, uint64_t value)
{
	return t->insert(key, value);
}
template <class Table> bool any_remove(Table *t, uint64_t key)
{
	return t->remove(key);
}
HASH_RUN_BY(mutex, any, exclusive)
HASH_RUN_BY(shared_mutex, any, shared)
HASH_RUN_BY(map, any, shared_ordered)

const hash_op mutex_hash = HASH_OF(exclusive, mutex);
const hash_op shared_mutex_hash = HASH_OF(shared, shared_mutex);
const hash_op map_hash = HASH_OF(shared_ordered, map);

TYPE(std_mutex, .rank = 1510, .what = "std::unordered_map under one std::mutex", .hash = &mutex_hash);
TYPE(std_shared_mutex, .rank = 1520, .what = "std::unordered_map under one std::shared_mutex", .hash = &shared_mutex_hash);
TYPE(std_map_shared_mutex, .rank = 1530, .what = "std::map under one std::shared_mutex", .hash = &map_hash);

} // namespace
