/* SPDX-License-Identifier: MIT */
/* quiesce/ds/unordered_map.hpp - a hash map that owns keys and values of any type, in namespace quiesce;
 * for C++20.
 *
 *	quiesce::rcu_unordered_map<std::string, config> configs;
 *
 *	if (std::optional<config> c = configs.get("mail"))      // any thread: a copy
 *		use(*c);
 *	configs.visit("mail", [](const config &c) { use(c); }); // no copy, in a section
 *	{
 *		quiesce::rcu_reader section;                    // a pointer, as long as the section
 *		if (const config *c = configs.find("mail"))     // no std::string is made
 *			use(*c);
 *	}
 *
 *	configs.insert_or_assign("mail", config{});             // updaters
 *	configs.update("mail", [](config &c) { c.port = 25; }); // of a copy, which replaces it
 *	configs.erase("mail");
 *
 * Use rcu_hash_map if keys and values are of eight bytes at most: it stores them in the table, so a
 * lookup visits one cache line, not two, and an insertion allocates nothing.  Use rcu_hash_table for
 * objects with a key inside, several objects with one key, or an object in several tables.
 *
 * Keys are unique.  Key and value are in a node of their own, which is allocated at the insertion of
 * the key and at each change of the value, from an object cache (slab.h) up to 16384 bytes.  A value
 * that is in the map does not change, so readers need no lock: an update publishes another node, and
 * retires the old one.  A member that readers are to change, such as an atomic counter, is mutable.
 * Destructors of keys and values run after a grace period, in a worker thread.
 *
 * Lookups of a string take any type of string.  Other lookups convert to the type of the key, unless
 * Hash and Equal both have a type is_transparent: then they take what these take.  A Hash is called
 * with the key and the seed, or with the key (std::hash); see rcu_hash.
 *
 * Context: get(), visit(), contains(), for_each(): any thread; they enter a section.  find() and
 *   iterators: in a section, which the debug build checks.  Updates: any thread, also in sections.
 *   The rest as for hashtable.h.
 * Cost: as for hashtable.h, and for insertions an allocation of sizeof(K) + sizeof(V) + 16 bytes.
 * Order: as for hashtable.h: operations on one key are linearizable.
 * Exceptions: std::bad_alloc, and what constructors of keys and values and the caller's functions
 *   throw; then nothing has changed.  Hashes and comparisons do not throw.
 */
#if !defined(__cplusplus) || __cplusplus < 202002L
#error "quiesce/ds/unordered_map.hpp needs C++20, whose concepts constrain its parameters; hashtable.h is for C and for C++11"
#elif !defined(QUIESCE_DS_UNORDERED_MAP_HPP)
#define QUIESCE_DS_UNORDERED_MAP_HPP

#include <quiesce/ds/hashtable.h>

#include <quiesce/detail/hash_key.hpp>
#include <quiesce/detail/hash_range.hpp>
#include <quiesce/detail/map_node.hpp>
#include <quiesce/detail/raise.hpp>
#include <quiesce/detail/thrown.hpp>
#include <quiesce/rcu.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

namespace quiesce {

/** rcu_unordered_map - a hash map from K to V, of any types, which it owns. */
template<class K, class V, class Hash = rcu_hash, class Equal = rcu_hash_equal> class rcu_unordered_map {
	using keys = detail::map_keys<K, Hash, Equal>;
	using node = detail::map_node<K, V>;
	using query = typename keys::query;

	static_assert(std::is_object_v<K> && std::is_object_v<V> && !std::is_const_v<K> && !std::is_const_v<V>,
		      "keys and values are objects, and K and V without const: std::string, not const std::string &");
	static_assert(!(std::is_pointer_v<K> && keys::by_view),
		      "the map would own the pointer and not the text that it hashes: std::string, or a Hash of pointers");
	static_assert(detail::hash_hashes<Hash, query>,
		      "the key needs a Hash: it is no string, and objects of its type may be equal although their bytes differ");
	static_assert(detail::hash_compares<Equal, query>, "the key needs an Equal: its type has no operator==");
	static_assert(std::is_nothrow_destructible_v<K> && std::is_nothrow_destructible_v<V>,
		      "destructors run in a worker thread, where no caller could catch what they throw");

public:
	using key_type = K;
	using mapped_type = V;
	using value_type = std::pair<const K, V>;
	using size_type = std::size_t;
	using hasher = Hash;
	using key_equal = Equal;
	using native_handle_type = struct ::hashtable *;

	/* Allocates nothing, so a map may be static and constinit; the first insertion draws a seed. */
	constexpr rcu_unordered_map() noexcept {}
	/* Has room for @n keys, as after reserve(). */
	explicit rcu_unordered_map(size_type n) { reserve(n); }
	explicit rcu_unordered_map(rcu_hash_seed seed) noexcept
	{
		::hashtable_init_seeded(&table_, &node::template type<keys>, seed.value);
	}
	rcu_unordered_map(const rcu_unordered_map &) = delete;
	rcu_unordered_map &operator=(const rcu_unordered_map &) = delete;
	/* The map has no readers any more: they would access the map itself. */
	~rcu_unordered_map() { ::hashtable_destroy(&table_, node::retire_object, nullptr); }

	/* ---- lookups ---- */

	/* The value, as long as the caller's section lasts; null: none. */
	template<class Q = query>
		requires(keys::template accepts<Q>)
	const V *find(const Q &key) const noexcept(keys::template converts_nothrow<Q>)
	{
		QUIESCE_IN_SECTION("rcu_unordered_map::find()");
		const node *found = lookup(keys::view(key));

		return found ? std::addressof(found->pair.second) : nullptr;
	}
	/* Calls @fn(value) in a section if the key is there, and returns whether it is. */
	template<class Q = query, std::invocable<const V &> F>
		requires(keys::template accepts<Q>)
	bool visit(const Q &key, F &&fn) const
	{
		rcu_reader section;
		const node *found = lookup(keys::view(key));

		if (found)
			static_cast<void>(std::forward<F>(fn)(found->pair.second));
		return found != nullptr;
	}
	/* A copy of the value, or none. */
	template<class Q = query>
		requires(keys::template accepts<Q> && std::copy_constructible<V>)
	std::optional<V> get(const Q &key) const
	{
		rcu_reader section;
		const node *found = lookup(keys::view(key));

		return found ? std::optional<V>(found->pair.second) : std::nullopt;
	}
	/* The value of each key, or null, as hashtable_lookup_many(): as many as both spans have.  Returns
	 * the number of keys that have one.  In a section.  Of strings, keys are std::string_view. */
	size_type find_many(std::span<const query> keys_of, std::span<const V *> ret_values) const noexcept
	{
		QUIESCE_IN_SECTION("rcu_unordered_map::find_many()");
		return detail::hash_find_many<const void *, void *>(
			keys_of, ret_values, [](const query &key) { return std::addressof(key); },
			[this](const void *const *addresses, size_type n, void **nodes) {
				return ::quiesce__many(&table_, &node::template lookups<keys, query>, addresses, n, nodes);
			},
			[](void *found) { return found ? std::addressof(node::in(found)->second) : nullptr; });
	}
	template<class Q = query>
		requires(keys::template accepts<Q>)
	bool contains(const Q &key) const noexcept(keys::template converts_nothrow<Q>)
	{
		rcu_reader section;

		return lookup(keys::view(key)) != nullptr;
	}

	/* ---- updates ---- */

	/* Constructs a value from @args if the key has none; returns whether it did.  If the key is
	 * there, nothing is constructed or moved from, unless it was inserted meanwhile. */
	template<class Q = K, class... Args>
		requires(std::constructible_from<K, Q &&> && std::constructible_from<V, Args && ...>)
	bool try_emplace(Q &&key, Args &&...args)
	{
		if constexpr (keys::template accepts<std::remove_cvref_t<Q>>)
			if (contains(key))
				return false;
		auto fresh = node::make(std::forward<Q>(key), std::forward<Args>(args)...);

		return settle(::hashtable_insert_unique(&table_, fresh.get(), nullptr), fresh);
	}
	/* Inserts if the key has no value; returns whether it did. */
	template<class Q = K, class U = V>
		requires(std::constructible_from<K, Q &&> && std::constructible_from<V, U &&>)
	bool insert(Q &&key, U &&value)
	{
		return try_emplace(std::forward<Q>(key), std::forward<U>(value));
	}
	/* Inserts, or replaces the value; returns true if the key had none.  A lookup finds the old
	 * value or the new one, never none.  The key in the map is replaced as well, by one that is equal. */
	template<class Q = K, class U = V>
		requires(std::constructible_from<K, Q &&> && std::constructible_from<V, U &&>)
	bool insert_or_assign(Q &&key, U &&value)
	{
		auto fresh = node::make(std::forward<Q>(key), std::forward<U>(value));
		void *old = nullptr;

		settle(::hashtable_set(&table_, fresh.get(), &old), fresh);
		return !node::retire_found(old);
	}
	/* Copies the value, calls @fn(copy), and replaces the value by the copy, in one step: if another
	 * update of the key comes between, @fn is called again with another copy.  Returns whether
	 * the key is there.  @fn is called in a section, and without a lock: it may throw, and use
	 * the map, but not wait for readers. */
	template<class Q = query, std::invocable<V &> F>
		requires(keys::template accepts<Q> && std::copy_constructible<K> && std::copy_constructible<V>)
	bool update(const Q &key, F fn)
	{
		for (;;) {
			rcu_reader section; /* while it lasts, no other node has the address of @old */
			node *old = lookup(keys::view(key));

			if (!old)
				return false;
			auto fresh = node::make(old->pair.first, old->pair.second);
			static_cast<void>(fn(fresh->pair.second));
			if (settle(::hashtable_replace(&table_, old, fresh.get()), fresh))
				return node::retire_found(old);
		}
	}
	/* As update() if the key is there; else constructs a value from @args.  Returns whether it
	 * did that. */
	template<class Q = K, std::invocable<V &> F, class... Args>
		requires(keys::template accepts<std::remove_cvref_t<Q>> && std::constructible_from<K, Q &&> &&
			 std::constructible_from<V, Args && ...> && std::copy_constructible<K> && std::copy_constructible<V>)
	bool upsert(Q &&key, F fn, Args &&...args)
	{
		typename node::owner fresh;

		for (;;) { /* again if the key was inserted and removed meanwhile */
			if (fresh ? update(keys::view_of(fresh->pair.first), std::ref(fn)) : update(key, std::ref(fn)))
				return false;
			if (!fresh)
				fresh = node::make(std::forward<Q>(key), std::forward<Args>(args)...);
			if (settle(::hashtable_insert_unique(&table_, fresh.get(), nullptr), fresh))
				return true;
		}
	}
	/* Removes the key; returns a copy of its value, or none. */
	template<class Q = query>
		requires(keys::template accepts<Q> && std::copy_constructible<V>)
	std::optional<V> extract(const Q &key)
	{
		for (;;) { /* again if the value was replaced meanwhile */
			rcu_reader section; /* while it lasts, no other node has the address of @old */
			node *old = lookup(keys::view(key));

			if (!old)
				return std::nullopt;
			std::optional<V> value(old->pair.second);
			if (::hashtable_remove(&table_, old) == 0) {
				node::retire(old);
				return value;
			}
		}
	}
	/* Removes the key; returns whether it was there. */
	template<class Q = query>
		requires(keys::template accepts<Q>)
	bool erase(const Q &key) noexcept(keys::template converts_nothrow<Q>)
	{
		decltype(auto) view = keys::view(key);
		detail::map_probe probe = node::template probe<keys>(view);

		return node::retire_found(::hashtable_remove_key(&table_, probe.address()));
	}
	/* Removes the keys for which @match, bool match(const K &, const V &), is true; returns their
	 * number.  As hashtable_remove_if(): @match is called under a lock, and must not use the map;
	 * keys inserted meanwhile may be judged or not.  If it throws, no further key is removed,
	 * and the exception passes. */
	template<std::predicate<const K &, const V &> F> size_type erase_if(F match)
	{
		struct choice {
			F &match;
			detail::thrown thrown;
		} choice{ match, {} };
		auto call = [](void *object, void *arg) noexcept {
			constexpr bool never_throws = std::is_nothrow_invocable_v<F &, const K &, const V &>;
			auto *c = static_cast<struct choice *>(arg);
			const value_type &each = static_cast<node *>(object)->pair;

			return !c->thrown.any() && c->thrown.call([&]() noexcept(never_throws) -> bool {
				return c->match(each.first, each.second);
			}, false);
		};
		size_type nr = ::hashtable_remove_if(&table_, call, node::retire_object, &choice);

		choice.thrown.rethrow();
		return nr;
	}
	/* Removes the keys that were there at the call; as hashtable_clear(). */
	void clear() noexcept { ::hashtable_clear(&table_, node::retire_object, nullptr); }

	/* Exact while no thread updates the map. */
	size_type size() const noexcept { return ::hashtable_count(&table_); }
	bool empty() const noexcept { return size() == 0; }
	std::errc try_reserve(size_type n) noexcept { return static_cast<std::errc>(-::hashtable_reserve(&table_, n)); }
	void reserve(size_type n) { detail::raise(try_reserve(n)); }

	/* ---- iterations ---- */

	/* Pairs, for (auto &[key, value] : map), in a section that outlives them; the loop may update.
	 * A key that is there throughout is visited once, with one of the values that it had. */
	using iterator = detail::hash_iterator<const value_type, node>;
	using const_iterator = iterator;
	iterator begin() const noexcept
	{
		QUIESCE_IN_SECTION("rcu_unordered_map::begin()");
		return iterator(&table_, nullptr);
	}
	std::default_sentinel_t end() const noexcept { return {}; }
	/* Calls @fn(key, value) for all keys, in a section of its own. */
	template<std::invocable<const K &, const V &> F> void for_each(F fn) const
	{
		rcu_reader section;

		for (const auto &[key, value] : *this)
			fn(key, value);
	}
	/* Calls @fn(key, value) for all keys, in several sections, so that no grace period waits
	 * for the whole iteration; not to be called in a section. */
	template<std::invocable<const K &, const V &> F> void for_each_in_steps(F fn) const
	{
		struct ::hashtable_walk walk;

		for (::hashtable_walk_enter(&table_, &walk); ::hashtable_walk_start(&walk);) {
			detail::leave_section leave;

			while (void *object = ::hashtable_walk_next(&walk))
				fn(node::in(object)->first, node::in(object)->second);
		}
	}

	native_handle_type native_handle() noexcept { return &table_; }

private:
	template<class Q> node *lookup(const Q &key) const noexcept
	{
		constexpr const ::hashtable_type *type = &node::template lookups<keys, Q>;
		::quiesce__hashtable_lookup_state state;

		if (quiesce_likely(::quiesce__hashtable_try(&table_, type, &key, &state)))
			return static_cast<node *>(state.object);
		return static_cast<node *>(::quiesce__hashtable_search(state.array, state.hash, type, &key));
	}
	/* True: the node is in the table, which owns it. */
	static bool settle(int result, typename node::owner &fresh)
	{
		if (detail::raise(static_cast<std::errc>(-result)) != std::errc{})
			return false;
		static_cast<void>(fresh.release());
		return true;
	}

	struct ::hashtable table_ = HASHTABLE_INIT(&node::template type<keys>);
};

} // namespace quiesce

#endif
