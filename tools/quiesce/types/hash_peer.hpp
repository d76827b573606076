/* SPDX-License-Identifier: MIT */
/* hash_peer.hpp - what the types in C++ share: the hash as a function
 * object, and macros for their tables of operations. */
#ifndef QUIESCE_TOOL_HASH_PEER_HPP
#define QUIESCE_TOOL_HASH_PEER_HPP

#include <cstddef>
#include <new>

extern "C" {
#include "hash_table.h"
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

using run_fn = void (*)(void *, const uint64_t *, uint64_t, hash_tally *);

constexpr hash_op table(void *(*create)(uint64_t), void (*destroy)(void *), run_fn run)
{
	hash_op h{};

	h.create = create;
	h.destroy = destroy;
	h.run = run;
	return h;
}

constexpr op type(const char *name, const char *what, const hash_op *hash)
{
	op o{};

	o.name = name;
	o.what = what;
	o.hash = hash;
	return o;
}

} // namespace peer

#endif
