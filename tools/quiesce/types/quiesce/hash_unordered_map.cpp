/* SPDX-License-Identifier: MIT */
/* hash_unordered_map.cpp - the C++ interface of quiesce: rcu_unordered_map, which owns its keys and values. */
#include <quiesce/ds/unordered_map.hpp>

#include <quiesce/control.h>

#include "hash_ours.h"
#include "ours.h"
#include "types/hash_peer.hpp"

namespace {

struct mixed {
	uint64_t operator()(uint64_t key, uint64_t seed) const noexcept { return hash_mix(key ^ seed); }
};

using owning = quiesce::rcu_unordered_map<uint64_t, uint64_t, mixed>;

HASH_LOOKUP owning_lookup(owning *map, uint64_t key)
{
	quiesce::rcu_reader section;
	const uint64_t *value = map->find(key);

	return value ? *value : 0;
}

bool owning_insert(owning *map, uint64_t key, uint64_t value)
{
	return map->try_emplace(key, value);
}

bool owning_remove(owning *map, uint64_t key)
{
	return map->erase(key);
}

HASH_RUN(owning, owning)

OP_FUNCTION(barrier, rcu_barrier())

/* The nodes are in slabs, which are of no other table that counts. */
uint64_t mapped(const void *table)
{
	quiesce_stats stats;

	quiesce_get_stats(&stats, sizeof(stats));
	return hash_ours_mapped(&const_cast<owning *>(static_cast<const owning *>(table))->native_handle()->table) + stats.slab_bytes;
}

const hash_op owning_hash = HASH_OF(owning, owning, .barrier = barrier, .mapped = mapped, .grows = true, .waiting = op_rcu_waiting);

TYPE(rcu_unordered_map, .rank = 315,
	.what = "the C++ face of quiesce: rcu_unordered_map, grown by itself: nodes with the pair, RCU", .fence_modes = true,
	.hash = &owning_hash, .init = op_rcu_init, .thread_enter = rcu_first_section, .stats = op_rcu_stats);

} // namespace
