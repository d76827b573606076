/* SPDX-License-Identifier: MIT */
/* hash.cpp - oneTBB's tables, with memory from malloc() so that it can be
 * counted; both free a removed element at once. */
/* The list allocates its head as a node without a value, which some compilers take for an error. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Warray-bounds"
#endif
#include <oneapi/tbb/concurrent_hash_map.h>
#include <oneapi/tbb/concurrent_unordered_map.h>

#include <functional>
#include <memory>

#include "types/hash_peer.hpp"

namespace {

using pair = std::pair<const uint64_t, uint64_t>;

struct compare {
	std::size_t hash(uint64_t key) const { return hash_mix(key); }
	bool equal(uint64_t a, uint64_t b) const { return a == b; }
};

/* ---- concurrent_hash_map: a reader-writer lock in each bucket and in each element ---- */

using locked = tbb::concurrent_hash_map<uint64_t, uint64_t, compare, std::allocator<pair>>;

HASH_LOOKUP locked_lookup(locked *t, uint64_t key)
{
	locked::const_accessor found;

	return t->find(found, key) ? found->second : 0;
}

bool locked_insert(locked *t, uint64_t key, uint64_t value)
{
	return t->insert(pair(key, value));
}

bool locked_remove(locked *t, uint64_t key)
{
	return t->erase(key);
}

HASH_RUN(locked, locked)

/* ---- concurrent_unordered_map: elements cannot be removed beside other operations ---- */

using unordered = tbb::concurrent_unordered_map<uint64_t, uint64_t, peer::hash, std::equal_to<uint64_t>, std::allocator<pair>>;

HASH_LOOKUP unordered_lookup(unordered *t, uint64_t key)
{
	auto found = t->find(key);

	return found == t->end() ? 0 : found->second;
}

bool unordered_insert(unordered *t, uint64_t key, uint64_t value)
{
	return t->emplace(key, value).second;
}

bool unordered_remove(unordered *t, uint64_t key)
{
	return t->unsafe_erase(key) != 0;
}

HASH_RUN(unordered, unordered)

const hash_op locked_hash = HASH_OF(locked, locked);
const hash_op unordered_hash = HASH_OF(unordered, unordered, .read_only = true);

TYPE(tbb_hash_map, .rank = 1300, .groups = PEER_TABLE | RUN_TABLE | REPORT,
	.what = "oneTBB's concurrent_hash_map, a const_accessor for each lookup", .hash = &locked_hash);
TYPE(tbb_unordered_map, .rank = 1310, .what = "oneTBB's concurrent_unordered_map: lookups only", .hash = &unordered_hash);

} // namespace
