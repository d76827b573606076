/* SPDX-License-Identifier: MIT */
/* hash_peer.hpp - what the types in C++ share: the hash as a function object, and the calls that make a table. */
#ifndef QUIESCE_TOOL_HASH_PEER_HPP
#define QUIESCE_TOOL_HASH_PEER_HPP

#include <cstddef>
#include <new>

extern "C" {
#include "hash.h"
#include "registry.h"
}

namespace peer {

struct hash {
	std::size_t operator()(uint64_t key) const noexcept { return hash_mix(key); }
};

/* For tables that are made without a size. */
template <class Table> void *create(uint64_t)
{
	return new (std::nothrow) Table;
}

template <class Table> void *create_sized(uint64_t nr_keys)
{
	return new (std::nothrow) Table(nr_keys);
}

template <class Table> void destroy(void *table)
{
	delete static_cast<Table *>(table);
}

} // namespace peer

#define HASH_OF(Table, name, ...) \
	{ .create = peer::create<Table>, .destroy = peer::destroy<Table>, .run = name##_run, __VA_ARGS__ }

#endif
