/* SPDX-License-Identifier: MIT */
/* hash_libcuckoo.cpp - libcuckoo: two buckets for each key, both locked during a lookup; it frees at once. */
#include <libcuckoo/cuckoohash_map.hh>

#include "types/hash_peer.hpp"

namespace {

using map = libcuckoo::cuckoohash_map<uint64_t, uint64_t, peer::hash>;

HASH_LOOKUP cuckoo_lookup(map *t, uint64_t key)
{
	uint64_t value = 0;

	t->find(key, value);
	return value;
}

bool cuckoo_insert(map *t, uint64_t key, uint64_t value)
{
	return t->insert(key, value);
}

bool cuckoo_remove(map *t, uint64_t key)
{
	return t->erase(key);
}

HASH_RUN(cuckoo, map)

bool cuckoo_resize(void *table, uint64_t nr_keys)
{
	static_cast<map *>(table)->reserve(nr_keys); /* the result reports only whether the size changed */
	return true;
}

const hash_op cuckoo_hash = HASH_OF(map, cuckoo, .resize = cuckoo_resize);

TYPE(libcuckoo, .rank = 1500, .groups = PEER_TABLE | RUN_TABLE | REPORT,
	.what = "libcuckoo's cuckoohash_map: locked stripes of buckets, four slots in each",
	.reason = "pairs are in the buckets, at most two lines away; a lookup locks them", .hash = &cuckoo_hash);

} // namespace
