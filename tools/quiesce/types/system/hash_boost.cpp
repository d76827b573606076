/* SPDX-License-Identifier: MIT */
/* hash_boost.cpp - Boost's concurrent_flat_map: pairs in an open-addressed array of groups, each with a reader-writer spinlock;
 * a lookup is a visit under that lock. */
#include <boost/unordered/concurrent_flat_map.hpp>

#include "types/hash_peer.hpp"

namespace {

using map = boost::concurrent_flat_map<uint64_t, uint64_t, peer::hash>;

HASH_LOOKUP flat_lookup(map *t, uint64_t key)
{
	const map &shared = *t;
	uint64_t value = 0;

	shared.cvisit(key, [&](const auto &pair) { value = pair.second; });
	return value;
}

bool flat_insert(map *t, uint64_t key, uint64_t value)
{
	return t->emplace(key, value);
}

bool flat_remove(map *t, uint64_t key)
{
	return t->erase(key) != 0;
}

HASH_RUN(flat, map)

const hash_op flat_hash = HASH_OF(map, flat);

TYPE(boost_flat_map, .rank = 1505, .groups = PEER_TABLE | RUN_TABLE | REPORT,
	.what = "Boost's concurrent_flat_map, a visit for each lookup",
	.reason = "pairs are in the array itself; a lookup locks their group", .hash = &flat_hash);

} // namespace
