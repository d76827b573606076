/* SPDX-License-Identifier: MIT */
/* quiesce/ds/hashmap.hpp - hashmap.h with typed keys and values, in namespace quiesce; C++20 and
 * later.
 *
 *	quiesce::rcu_hash_map<std::uint32_t, double> prices;
 *
 *	if (std::optional<double> price = prices.find(42))      // any thread, at any time
 *		use(*price);
 *
 *	prices.insert_or_assign(42, 9.75);                      // updaters too
 *	prices.erase(42);
 *
 * Keys and values are trivially copyable and stored in the table, at most eight bytes each:
 * numbers, enumerations, pointers, small structures.  Keys are compared byte by byte, so a key has
 * no padding and is no floating-point number; two pointers are equal if their addresses are.  A
 * value is a copy.  The target of a pointer belongs to the caller: a reader that follows it is in
 * a section from before find() until after the last use, and the thread that erases it retires it.
 *
 * Of the values that need all eight bytes one cannot be stored, the one that rcu_hash_map_absent
 * names: the null pointer; the smallest number of a signed type; eight bytes of ones in any other
 * type.
 *
 * Context, cost and order are those of hashmap.h; where that requires a section, these functions
 * enter one, except for those that take it as an argument, and for iterators.
 * Exceptions: std::bad_alloc, and nothing has changed; std::invalid_argument for the value that
 *   cannot be stored.  The try_ functions return an std::errc instead.  An exception of the function
 *   of update() passes, and nothing has changed.
 */
#if !defined(__cplusplus) || __cplusplus < 202002L
#error "quiesce/ds/hashmap.hpp needs C++20, whose concepts constrain its parameters; hashmap.h is for C and for C++11"
#elif !defined(QUIESCE_DS_HASHMAP_HPP)
#define QUIESCE_DS_HASHMAP_HPP

#include <quiesce/ds/hashmap.h>

#include <quiesce/detail/hash_key.hpp>
#include <quiesce/detail/raise.hpp>
#include <quiesce/detail/thrown.hpp>
#include <quiesce/rcu.hpp>

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <optional>
#include <span>
#include <system_error>
#include <type_traits>
#include <utility>

namespace quiesce {

/** rcu_hash_map_absent - the bytes, as a number, of the value of type V that is never stored.
 * May be specialised for a class type whose all-ones value has a meaning. */
template<class V>
inline constexpr std::uint64_t rcu_hash_map_absent = std::is_pointer_v<V>                           ? 0
						     : std::is_integral_v<V> && std::is_signed_v<V> ? std::uint64_t{ 1 } << 63
												    : ~std::uint64_t{ 0 };

template<class K>
concept rcu_hash_map_key = std::is_trivially_copyable_v<K> && std::has_unique_object_representations_v<K> && sizeof(K) <= 8;

template<class V>
concept rcu_hash_map_value = std::is_trivially_copyable_v<V> && sizeof(V) <= 8;

/** rcu_hash_map - a hashmap of K to V. */
template<rcu_hash_map_key K, rcu_hash_map_value V> class rcu_hash_map {
public:
	using key_type = K;
	using mapped_type = V;
	using value_type = std::pair<K, V>;
	using size_type = std::size_t;
	using native_handle_type = struct ::hashmap *;
	class iterator;

	/* Allocates nothing, so a map may be static and constinit; the first insertion draws a seed. */
	constexpr rcu_hash_map() noexcept {}
	/* Has room for @n keys, as after reserve(). */
	explicit rcu_hash_map(size_type n) { reserve(n); }
	explicit rcu_hash_map(rcu_hash_seed seed) noexcept { ::hashmap_init_seeded(&map_, seed.value); }
	rcu_hash_map(const rcu_hash_map &) = delete;
	rcu_hash_map &operator=(const rcu_hash_map &) = delete;
	/* The map has no readers any more: they would access the map itself. */
	~rcu_hash_map() { ::hashmap_destroy(&map_); }

	/* The value, or none.  The second form is for several calls in one section. */
	std::optional<V> find(const K &key) const noexcept
	{
		rcu_reader section;

		return find(key, section);
	}
	std::optional<V> find(const K &key, const rcu_reader &) const noexcept
	{
		return value_of(::hashmap_lookup(&map_, word_of_key(key)));
	}
	/* The values of many keys, in the order of @keys, as hashmap_lookup_many(): as many as both spans
	 * have.  Returns the number of keys that have one. */
	size_type find_many(std::span<const K> keys, std::span<std::optional<V>> ret_values) const noexcept
	{
		rcu_reader section;

		return find_many(keys, ret_values, section);
	}
	size_type find_many(std::span<const K> keys, std::span<std::optional<V>> ret_values, const rcu_reader &) const noexcept
	{
		return detail::hash_find_many<std::uint64_t, std::uint64_t>(
			keys, ret_values, [](const K &key) { return word_of_key(key); },
			[this](const std::uint64_t *words, size_type n, std::uint64_t *values) {
				return ::hashmap_lookup_many(&map_, words, n, values);
			},
			[](std::uint64_t value) { return value_of(value); });
	}
	bool contains(const K &key) const noexcept { return find(key).has_value(); }

	/* Inserts if the key has no value; returns whether it did. */
	bool insert(const K &key, const V &value) { return detail::raise(try_insert(key, value)) == std::errc{}; }
	/* Returns true if the key had no value. */
	bool insert_or_assign(const K &key, const V &value) { return !exchange(key, value).has_value(); }
	/* Stores the value; returns the old one, or none. */
	std::optional<V> exchange(const K &key, const V &value)
	{
		std::uint64_t old = 0;

		detail::raise(errc_of(::hashmap_set(&map_, word_of_key(key), word_of(value), &old)));
		return value_of(old);
	}
	/* Stores @value if the key has the value @expected; returns whether it did. */
	bool compare_exchange(const K &key, const V &expected, const V &value)
		requires std::has_unique_object_representations_v<V>
	{
		return detail::raise(errc_of(::hashmap_replace(&map_, word_of_key(key), word_of(expected), word_of(value)))) == std::errc{};
	}

	/* Stores a value that depends on the present one: std::optional<V> fn(std::optional<V>),
	 * called under a lock; none: no value.  As hashmap_update(): @fn may be called again, and
	 * must not use the map.  Returns the value before.  If @fn throws, nothing changes, and the
	 * exception passes. */
	template<class F>
		requires std::is_invocable_r_v<std::optional<V>, F &, std::optional<V>>
	std::optional<V> update(const K &key, F fn)
	{
		using values = std::optional<V>;
		detail::thrown thrown;
		values old;
		std::errc result = try_update(key, [&](values value) noexcept {
			return thrown.call([&]() noexcept(std::is_nothrow_invocable_v<F &, values>) -> values { return fn(value); }, value);
		}, &old);

		thrown.rethrow();
		detail::raise(result);
		return old;
	}
	template<class F>
		requires std::is_nothrow_invocable_r_v<std::optional<V>, F &, std::optional<V>>
	std::errc try_update(const K &key, F fn, std::optional<V> *ret_old = nullptr) noexcept
	{
		struct step {
			F *fn;
			bool storable;
		} step = { std::addressof(fn), true };
		auto call = [](std::uint64_t value, void *arg) noexcept -> std::uint64_t {
			auto *s = static_cast<struct step *>(arg);
			std::optional<V> result = (*s->fn)(value_of(value));

			s->storable = !result || word_of(*result);
			return !s->storable ? value : result ? word_of(*result) : 0;
		};
		std::uint64_t old = 0;
		std::errc result = errc_of(::hashmap_update(&map_, word_of_key(key), call, &step, &old));

		if (result == std::errc{} && !step.storable)
			result = std::errc::invalid_argument;

		if (ret_old)
			*ret_old = value_of(old);
		return result;
	}

	/* errc{}: inserted; file_exists: *@ret_existing is the value; not_enough_memory;
	 * invalid_argument. */
	std::errc try_insert(const K &key, const V &value, V *ret_existing = nullptr) noexcept
	{
		std::uint64_t existing = 0;
		std::errc result = errc_of(::hashmap_insert(&map_, word_of_key(key), word_of(value), &existing));

		if (ret_existing && result == std::errc::file_exists)
			*ret_existing = *value_of(existing);
		return result;
	}
	std::errc try_insert_or_assign(const K &key, const V &value) noexcept
	{
		return errc_of(::hashmap_set(&map_, word_of_key(key), word_of(value), nullptr));
	}
	std::errc try_reserve(size_type n) noexcept { return errc_of(::hashmap_reserve(&map_, n)); }
	void reserve(size_type n) { detail::raise(try_reserve(n)); }

	bool erase(const K &key) noexcept { return extract(key).has_value(); }
	/* Removes the key; returns its value, or none. */
	std::optional<V> extract(const K &key) noexcept { return value_of(::hashmap_remove(&map_, word_of_key(key))); }

	/* Removes the keys for which @match, bool match(const K &, const V &), is true; returns their
	 * number.  As hashmap_remove_if(): @match is called under a lock, once for each key that is
	 * there throughout, and must not use the map.  If it throws, no further key is removed, and
	 * the exception passes. */
	template<std::predicate<const K &, const V &> F> size_type erase_if(F match)
	{
		struct choice {
			F &match;
			detail::thrown thrown;
		} choice{ match, {} };
		auto call = [](std::uint64_t key, std::uint64_t value, void *arg) noexcept {
			auto *c = static_cast<struct choice *>(arg);

			constexpr bool never_throws = std::is_nothrow_invocable_v<F &, const K &, const V &>;

			return !c->thrown.any() && c->thrown.call([&]() noexcept(never_throws) -> bool {
				return c->match(object<K>(key), *value_of(value));
			}, false);
		};
		size_type nr = ::hashmap_remove_if(&map_, call, &choice);

		choice.thrown.rethrow();
		return nr;
	}
	/* Removes the keys that were there at the call; as hashtable_clear(). */
	void clear() noexcept { ::hashmap_clear(&map_); }

	/* Exact while no thread updates the map. */
	size_type size() const noexcept { return ::hashmap_count(&map_); }
	bool empty() const noexcept { return size() == 0; }

	/* Iterators are used in a section that outlives them.  A key that is there throughout the
	 * iteration is visited once. */
	iterator begin() const noexcept
	{
		QUIESCE_IN_SECTION("rcu_hash_map::begin()");
		return iterator(&map_);
	}
	std::default_sentinel_t end() const noexcept { return {}; }
	/* Calls @fn(key, value) for all keys, in a section of its own. */
	template<std::invocable<const K &, const V &> F> void for_each(F fn) const
	{
		rcu_reader section;

		for (auto [key, value] : *this)
			fn(key, value);
	}

	/* Calls @fn(key, value) for all keys, in several sections, so that no grace period waits
	 * for the whole iteration; not to be called in a section. */
	template<std::invocable<const K &, const V &> F> void for_each_in_steps(F fn) const
	{
		struct ::hashmap_walk walk;
		std::uint64_t key, value;

		for (::hashmap_walk_enter(&map_, &walk); ::hashmap_walk_start(&walk);) {
			detail::leave_section leave;

			while (::hashmap_walk_next(&walk, &key, &value))
				fn(object<K>(key), *value_of(value));
		}
	}

	native_handle_type native_handle() noexcept { return &map_; }

	/* C code that uses the map, too, needs the words that represent a key and a value. */
	static std::uint64_t word_of_key(const K &key) noexcept { return bytes(key); }
	static std::uint64_t word_of(const V &value) noexcept
	{
		if constexpr (sizeof(V) < 8)
			return bytes(value) | present_bit;
		else
			return bytes(value) ^ rcu_hash_map_absent<V>;
	}

private:
	/* Set in a byte that smaller values do not use. */
	static constexpr std::uint64_t present_bit = std::endian::native == std::endian::little ? std::uint64_t{ 1 } << 63 : 1;

	template<class T> static std::uint64_t bytes(const T &object) noexcept
	{
		std::uint64_t w = 0;

		std::memcpy(&w, &object, sizeof(T));
		return w;
	}

	template<class T> static T object(std::uint64_t w) noexcept
	{
		alignas(T) unsigned char raw[sizeof(T)];

		std::memcpy(raw, &w, sizeof(T));
		return std::bit_cast<T>(raw);
	}

	static std::optional<V> value_of(std::uint64_t w) noexcept
	{
		if (!w)
			return std::nullopt;
		return object<V>(sizeof(V) < 8 ? w : w ^ rcu_hash_map_absent<V>);
	}

	static std::errc errc_of(int result) noexcept { return static_cast<std::errc>(-result); }

	struct ::hashmap map_ = HASHMAP_INIT;
};

/* A single forward pass, for one thread. */
template<rcu_hash_map_key K, rcu_hash_map_value V> class rcu_hash_map<K, V>::iterator {
public:
	using iterator_concept = std::input_iterator_tag;
	using value_type = std::pair<K, V>;
	using difference_type = std::ptrdiff_t;

	iterator(iterator &&) noexcept = default;
	iterator &operator=(iterator &&) noexcept = default;

	value_type operator*() const noexcept { return { object<K>(key_), *value_of(value_) }; }
	iterator &operator++() noexcept
	{
		if (!::quiesce_hashmap_next(map_, &iter_, &key_, &value_))
			map_ = nullptr;
		return *this;
	}
	void operator++(int) noexcept { ++*this; }
	friend bool operator==(const iterator &a, std::default_sentinel_t) noexcept { return !a.map_; }

private:
	friend class rcu_hash_map;
	explicit iterator(const struct ::hashmap *map) noexcept : map_(map) { ++*this; }

	const struct ::hashmap *map_; /* null: at the end */
	struct ::hashmap_iter iter_{};
	std::uint64_t key_ = 0, value_ = 0;
};

} // namespace quiesce

#endif
