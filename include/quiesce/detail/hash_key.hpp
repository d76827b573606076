/* SPDX-License-Identifier: MIT */
/* quiesce/detail/hash_key.hpp - private: hashes, keys and disposal of objects, for ds/hashmap.hpp and
 * ds/hashtable.hpp, which are the manuals. */
#ifndef QUIESCE_DETAIL_HASH_KEY_HPP
#define QUIESCE_DETAIL_HASH_KEY_HPP

#if !defined(__cplusplus) || __cplusplus < 202002L
#error "the maps and tables of C++ need C++20, whose concepts constrain their parameters"
#endif

#include <quiesce/ds/hash.h>
#include <quiesce/rcu.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string_view>
#include <type_traits>

namespace quiesce {

/** rcu_hash_seed - a seed for the constructor of a map or table, which gives the same order each
 * time.  For tests: with a known seed keys can be chosen that share a bucket. */
struct rcu_hash_seed {
	std::uint64_t value;
};

/** rcu_hash_key - Key is a member of T, a member function of it, or a function of it: &T::id,
 * &T::name, [](const T &object) { return object.address.port; }. */
template<auto Key, class T>
concept rcu_hash_key = std::is_invocable_v<const decltype(Key) &, const T &> &&
		       !std::is_void_v<std::invoke_result_t<const decltype(Key) &, const T &>>;

template<class T> concept rcu_hash_string = std::is_convertible_v<const T &, std::string_view>;

/** rcu_hash - a seeded hash of strings, and of types without padding that are equal if their bytes
 * are: numbers, enumerations, pointers, structures.  For another type, pass a class that is called
 * with the key, or with the key and the seed. */
struct rcu_hash {
	std::uint64_t operator()(std::string_view key, std::uint64_t seed) const noexcept
	{
		return ::quiesce_hash_bytes(key.data(), key.size(), seed);
	}
	template<class K>
		requires(!rcu_hash_string<K> && std::has_unique_object_representations_v<K>)
	std::uint64_t operator()(const K &key, std::uint64_t seed) const noexcept
	{
		return ::quiesce_hash(&key, sizeof(K), seed);
	}
};

/** rcu_hash_equal - compares with ==; strings are passed as views. */
struct rcu_hash_equal {
	template<class A, class B>
		requires requires(const A &a, const B &b) { a == b; }
	bool operator()(const A &a, const B &b) const noexcept
	{
		return a == b;
	}
};

/* Disposal of an object that leaves a table.  Readers find it in a section of RCU, so another class
 * must wait for these. */
struct rcu_hash_keep {
	template<class T> void operator()(T *) const noexcept {}
};
struct rcu_hash_retire {
	template<class T> void operator()(T *object) const noexcept { object->retire(); }
};

namespace detail {

/* Looks up as many keys as both spans have, 64 at once: @word makes a Word of a key, @search finds a Found
 * for each of n words and returns how many there are, @value makes the result for the key of that.
 * Returns the number of keys that were found. */
template<class Word, class Found, class K, class V, class ToWord, class Search, class ToValue>
std::size_t hash_find_many(std::span<const K> keys, std::span<V> ret_values, ToWord word, Search search, ToValue value) noexcept
{
	constexpr std::size_t at_once = 64;
	Word words[at_once];
	Found found[at_once];
	std::size_t nr = keys.size() < ret_values.size() ? keys.size() : ret_values.size(), nr_found = 0;

	for (std::size_t begin = 0, n; begin < nr; begin += n) {
		n = nr - begin < at_once ? nr - begin : at_once;
		for (std::size_t i = 0; i < n; i++)
			words[i] = word(keys[begin + i]);
		nr_found += search(words, n, found);
		for (std::size_t i = 0; i < n; i++)
			ret_values[begin + i] = value(found[i]);
	}
	return nr_found;
}

/* True if Drop can dispose of a T. */
template<class Drop, class T> inline constexpr bool hash_droppable = true;
template<class T> inline constexpr bool hash_droppable<rcu_hash_retire, T> = rcu_retirable<T>;

/* True if keys of type Q are hashed by Hash and compared by Equal. */
template<class Hash, class Q>
inline constexpr bool hash_hashes = std::is_invocable_v<const Hash &, const Q &, std::uint64_t> ||
				    std::is_invocable_v<const Hash &, const Q &>;
template<class Equal, class Q> inline constexpr bool hash_compares = std::is_invocable_r_v<bool, const Equal &, const Q &, const Q &>;

template<class Hash, class Q> std::uint64_t hash_of(const Q &key, std::uint64_t seed) noexcept
{
	if constexpr (std::is_invocable_v<const Hash &, const Q &, std::uint64_t>)
		return Hash{}(key, seed);
	else
		return ::quiesce_hash_u64(Hash{}(key), seed);
}


/* What Key returns for a T: a member, or the result of a function. */
template<auto Key, class T> using hash_key_result = std::invoke_result_t<const decltype(Key) &, const T &>;
template<auto Key, class T> using hash_key_of = std::remove_cvref_t<hash_key_result<Key, T>>;
/* True unless a view of the key would outlive it: of a std::string that a function returns. */
template<auto Key, class T>
inline constexpr bool hash_key_lasts = std::is_reference_v<hash_key_result<Key, T>> || !rcu_hash_string<hash_key_of<Key, T>> ||
				       std::is_trivially_copyable_v<hash_key_of<Key, T>>;

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
