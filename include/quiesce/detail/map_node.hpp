/* SPDX-License-Identifier: MIT */
/* quiesce/detail/map_node.hpp - private: nodes with a key and a value in a hashtable, and its type's
 * functions, for ds/unordered_map.hpp, which is the manual. */
#ifndef QUIESCE_DETAIL_MAP_NODE_HPP
#define QUIESCE_DETAIL_MAP_NODE_HPP

#include <quiesce/detail/hash_key.hpp>
#include <quiesce/ds/hashtable.h>
#include <quiesce/slab.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace quiesce::detail {

template<class Hash, class Equal>
concept map_transparent = requires {
	typename Hash::is_transparent;
	typename Equal::is_transparent;
};

/* The types that lookups of K take. */
template<class K, class Hash, class Equal> struct map_keys {
	using hash_type = Hash;
	using equal_type = Equal;

	static constexpr bool by_view = rcu_hash_string<K> && hash_hashes<Hash, std::string_view> && hash_compares<Equal, std::string_view>;
	using query = std::conditional_t<by_view, std::string_view, K>;

	/* True if a Q is hashed and compared as it is. */
	template<class Q>
	static constexpr bool direct = std::is_same_v<Q, query> || (map_transparent<Hash, Equal> && hash_hashes<Hash, Q> &&
								    std::is_invocable_r_v<bool, const Equal &, const query &, const Q &>);
	template<class Q> static constexpr bool accepts = direct<Q> || std::is_convertible_v<const Q &, query>;
	/* A view is made without an allocation, though not all libraries declare so. */
	template<class Q> static constexpr bool converts_nothrow = direct<Q> || by_view || std::is_nothrow_convertible_v<const Q &, query>;

	template<class Q> static decltype(auto) view(const Q &key) noexcept(converts_nothrow<Q>)
	{
		if constexpr (direct<Q>)
			return (key);
		else
			return static_cast<query>(key);
	}
	static decltype(auto) view_of(const K &key) noexcept
	{
		if constexpr (by_view)
			return std::string_view(key);
		else
			return (key);
	}
};

/* A key that is in no node, as the argument of an update.  The functions of the type take the address
 * of a node, which is even, or that of a probe plus 1. */
struct map_probe {
	const ::hashtable_type *type; /* its functions take @key */
	const void *key;

	const void *address() const noexcept { return reinterpret_cast<const char *>(this) + 1; }
};

template<class K, class V> struct map_node {
	using pair_type = std::pair<const K, V>;
	struct deleter {
		void operator()(map_node *unpublished) const noexcept { destroy(unpublished); }
	};
	using owner = std::unique_ptr<map_node, deleter>;

	::rcu_head head = { nullptr, nullptr };
	pair_type pair;

	template<class Q, class... Args>
	explicit map_node(Q &&key, Args &&...args)
		: pair(std::piecewise_construct, std::forward_as_tuple(std::forward<Q>(key)),
		       std::forward_as_tuple(std::forward<Args>(args)...))
	{
	}

	template<class Q, class... Args> static owner make(Q &&key, Args &&...args)
	{
		struct memory {
			map_node *at = slab_allocator<map_node>().allocate(1);
			~memory()
			{
				if (at)
					slab_allocator<map_node>().deallocate(at, 1);
			}
		} memory;
		owner made(::new (static_cast<void *>(memory.at)) map_node(std::forward<Q>(key), std::forward<Args>(args)...));

		memory.at = nullptr;
		return made;
	}

	static void destroy(map_node *node) noexcept
	{
		node->~map_node();
		slab_allocator<map_node>().deallocate(node, 1);
	}
	static void retire(map_node *node) noexcept
	{
		if constexpr (slab_of<sizeof(map_node), alignof(map_node)>::exists && std::is_trivially_destructible_v<pair_type>)
			::kfree_rcu_head(&node->head, 0, sizeof(map_node));
		else
			::call_rcu_sized(&node->head, reclaim, sizeof(map_node));
	}
	static void reclaim(::rcu_head *head) noexcept { destroy(reinterpret_cast<map_node *>(head)); }
	static void retire_object(void *object, void *) noexcept { retire(static_cast<map_node *>(object)); }
	/* Retires what an update has returned; true if there was a node. */
	static bool retire_found(void *object) noexcept
	{
		if (object)
			retire(static_cast<map_node *>(object));
		return object != nullptr;
	}

	/* The pair that iterators refer to. */
	static const pair_type *in(void *object) noexcept { return std::addressof(static_cast<map_node *>(object)->pair); }

	/* ---- the functions of the table's type ---- */

	static const void *key_of(const void *object) noexcept { return object; }
	static const K &key_in(const void *object) noexcept { return static_cast<const map_node *>(object)->pair.first; }

	template<class Keys, class Q> static std::uint64_t hash_query(const void *key, std::uint64_t seed) noexcept
	{
		return hash_of<typename Keys::hash_type, Q>(*static_cast<const Q *>(key), seed);
	}
	template<class Keys, class Q> static bool equal_query(const void *object, const void *key) noexcept
	{
		return typename Keys::equal_type{}(Keys::view_of(key_in(object)), *static_cast<const Q *>(key));
	}
	template<class Keys, class Q> static constexpr ::hashtable_type lookups = { hash_query<Keys, Q>, key_of, equal_query<Keys, Q> };

	static const map_probe *probe_at(const void *key) noexcept
	{
		const auto address = reinterpret_cast<std::uintptr_t>(key);

		return address & 1 ? reinterpret_cast<const map_probe *>(address - 1) : nullptr;
	}
	template<class Keys> static std::uint64_t hash_any(const void *key, std::uint64_t seed) noexcept
	{
		if (const map_probe *probe = probe_at(key))
			return probe->type->hash(probe->key, seed);
		return hash_of<typename Keys::hash_type, typename Keys::query>(Keys::view_of(key_in(key)), seed);
	}
	template<class Keys> static bool equal_any(const void *object, const void *key) noexcept
	{
		if (const map_probe *probe = probe_at(key))
			return probe->type->equal(object, probe->key);
		return typename Keys::equal_type{}(Keys::view_of(key_in(object)), Keys::view_of(key_in(key)));
	}
	template<class Keys> static constexpr ::hashtable_type type = { hash_any<Keys>, key_of, equal_any<Keys> };

	/* @key outlives the probe. */
	template<class Keys, class Q> static map_probe probe(const Q &key) noexcept { return { &lookups<Keys, Q>, std::addressof(key) }; }
};

} // namespace quiesce::detail

#endif
