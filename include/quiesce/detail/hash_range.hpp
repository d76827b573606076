/* SPDX-License-Identifier: MIT */
/* quiesce/detail/hash_range.hpp - private: iterations over a hashtable, for ds/hashtable.hpp and
 * ds/unordered_map.hpp, which are the manuals. */
#ifndef QUIESCE_DETAIL_HASH_RANGE_HPP
#define QUIESCE_DETAIL_HASH_RANGE_HPP

#include <quiesce/detail/hash_key.hpp>
#include <quiesce/ds/hashtable.h>

#include <cstddef>
#include <iterator>
#include <ranges>
#include <type_traits>

namespace quiesce::detail {

/* The T that an iterator refers to: an object of the table itself. */
template<class T> struct hash_object {
	static T *in(void *object) noexcept { return static_cast<T *>(object); }
};

/* A single forward pass over the objects of a table, or over those with one key; for one thread. */
template<class T, class Way = hash_object<T>> class hash_iterator {
public:
	using iterator_concept = std::input_iterator_tag;
	using value_type = std::remove_cv_t<T>;
	using difference_type = std::ptrdiff_t;

	/* @key: what the functions of the table's type take, and outlives the iterator; null: all. */
	hash_iterator(const struct ::hashtable *table, const void *key) noexcept : table_(table), key_(key) { ++*this; }
	hash_iterator(hash_iterator &&) noexcept = default;
	hash_iterator &operator=(hash_iterator &&) noexcept = default;

	T &operator*() const noexcept { return *Way::in(object_); }
	T *operator->() const noexcept { return Way::in(object_); }
	hash_iterator &operator++() noexcept
	{
		object_ = key_ ? ::quiesce_hashtable_next_match(table_, &iter_, key_) : ::quiesce_hashtable_next(table_, &iter_);
		return *this;
	}
	void operator++(int) noexcept { ++*this; }
	friend bool operator==(const hash_iterator &a, std::default_sentinel_t) noexcept { return !a.object_; }

private:
	const struct ::hashtable *table_;
	const void *key_;
	struct ::hashtable_iter iter_{};
	void *object_; /* null: at the end */
};

/* All objects of a table; a word, to be copied. */
template<class T> class hash_all : public std::ranges::view_base {
public:
	hash_all() noexcept = default;
	explicit hash_all(const struct ::hashtable *table) noexcept : table_(table) {}

	hash_iterator<T> begin() const noexcept
	{
		QUIESCE_IN_SECTION("rcu_hash_table::range()");
		return hash_iterator<T>(table_, nullptr);
	}
	std::default_sentinel_t end() const noexcept { return {}; }

private:
	const struct ::hashtable *table_ = nullptr;
};

/* The objects with one key, a copy of which (of a view: the view) is in the range: iterators are used
 * while that exists. */
template<class T, class Query> class hash_matches : public std::ranges::view_base {
public:
	hash_matches(const struct ::hashtable *table, const Query &key) noexcept : table_(table), key_(key) {}

	hash_iterator<T> begin() const noexcept
	{
		QUIESCE_IN_SECTION("rcu_hash_table::equal_range()");
		return hash_iterator<T>(table_, &key_);
	}
	std::default_sentinel_t end() const noexcept { return {}; }

private:
	const struct ::hashtable *table_;
	Query key_;
};

} // namespace quiesce::detail

template<class T> inline constexpr bool std::ranges::enable_borrowed_range<quiesce::detail::hash_all<T>> = true;

#endif
