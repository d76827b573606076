/* SPDX-License-Identifier: MIT */
/* hash_std.cpp - the standard library's table under one lock: what most programs begin with. */
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "hash_peer.hpp"

namespace {

template <class Mutex, class Read> struct locked {
	std::unordered_map<uint64_t, uint64_t, peer::hash> map;
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

using exclusive = locked<std::mutex, std::lock_guard<std::mutex>>;
using shared = locked<std::shared_mutex, std::shared_lock<std::shared_mutex>>;

template <class Table> uint64_t any_lookup(Table *t, uint64_t key)
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
#define mutex_lookup any_lookup
#define mutex_insert any_insert
#define mutex_remove any_remove
#define shared_mutex_lookup any_lookup
#define shared_mutex_insert any_insert
#define shared_mutex_remove any_remove
HASH_RUN(mutex, exclusive)
HASH_RUN(shared_mutex, shared)

const hash_op mutex_hash = peer::table(peer::create<exclusive>, peer::destroy<exclusive>, mutex_run);
const hash_op shared_mutex_hash = peer::table(peer::create<shared>, peer::destroy<shared>, shared_mutex_run);

} // namespace

const op hash_op_std_mutex = peer::type("std_mutex", "std::unordered_map under one std::mutex", &mutex_hash);
const op hash_op_std_shared_mutex = peer::type("std_shared_mutex", "std::unordered_map under one std::shared_mutex", &shared_mutex_hash);
