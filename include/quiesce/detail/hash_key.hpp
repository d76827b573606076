/* SPDX-License-Identifier: MIT */
/* quiesce/detail/hash_key.hpp - private: seeds of hashes and keys of objects, for ds/hashmap.hpp and
 * ds/hashtable.hpp, which are the manuals. */
#ifndef QUIESCE_DETAIL_HASH_KEY_HPP
#define QUIESCE_DETAIL_HASH_KEY_HPP

#if !defined(__cplusplus) || __cplusplus < 202002L
#error "the maps and tables of C++ need C++20, whose concepts constrain their parameters"
#endif

#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

namespace quiesce {

/** rcu_hash_seed - a seed for the constructor of a map or table, which gives the same order each
 * time.  For tests: with a known seed keys can be chosen that share a bucket. */
struct rcu_hash_seed {
	std::uint64_t value;
};

template<class T> concept rcu_hash_string = std::is_convertible_v<const T &, std::string_view>;

namespace detail {

template<auto Member> struct hash_key_of;
template<class T, class K, K T::*Member> struct hash_key_of<Member> {
	using type = K;
};

/* The type of key that lookups take: a view for strings. */
template<class K> using hash_query = std::conditional_t<rcu_hash_string<K>, std::string_view, K>;

template<class K> decltype(auto) hash_view(const K &key) noexcept
{
	if constexpr (!rcu_hash_string<K>)
		return (key);
	else if constexpr (std::is_array_v<K>)
		return std::string_view(key, ::strnlen(key, sizeof(K)));
	else
		return std::string_view(key);
}

} // namespace detail

} // namespace quiesce

#endif
