/* SPDX-License-Identifier: MIT */
/* quiesce/ds/xarray.hpp - xarray.h with typed entries, in namespace quiesce; C++17 and later.
 *
 *	quiesce::xarray<page> pages;
 *
 *	page *old = pages.store(17, fresh);             // std::bad_alloc
 *	pages.set_mark(17, quiesce::xa_mark::mark_0);   // dirty, for example
 *
 *	{                                               // reader
 *		std::scoped_lock section(quiesce::rcu_default_domain());
 *		if (page *p = pages.load(17))
 *			use(*p);
 *		for (auto [index, p] : pages.range(16, 31))
 *			use(*p);
 *		for (auto [index, p] : pages.marked(quiesce::xa_mark::mark_0))
 *			write_back(index, *p);
 *		if (auto next = pages.find_after(17))
 *			use(*next->second);
 *	}
 *	quiesce::rcu_retire(pages.erase(17));
 *
 * The objects belong to the caller.  Context, cost and order are those of xarray.h.
 * Exceptions: std::bad_alloc from functions that allocate, and nothing has changed.  Without
 *   exceptions: aborts.
 */
#ifndef QUIESCE_DS_XARRAY_HPP
#define QUIESCE_DS_XARRAY_HPP

#include <quiesce/ds/xarray.h>

#if !defined(__cplusplus) || __cplusplus < 201703L
#error "quiesce/ds/xarray.hpp needs C++17; xarray.h is for C and for C++11"
#endif

#include <quiesce/detail/raise.hpp>
#include <quiesce/detail/range.hpp>

#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <type_traits>
#include <utility>

namespace quiesce {

/** xa_mark - the marks of an entry; for searches, also any entry. */
enum class xa_mark : ::xa_mark_t { mark_0 = XA_MARK_0, mark_1 = XA_MARK_1, mark_2 = XA_MARK_2, present = XA_PRESENT };

/** xarray - T objects by index. */
template<class T> class xarray {
	static_assert(std::is_object_v<T>, "entries are objects");

public:
	using native_handle_type = struct ::xarray *;
	using index_type = unsigned long;
	using value_type = std::pair<index_type, T *>;

	/* Visits pairs of index and entry, up or down, inside a section; for range-for. */
	template<bool down> class basic_iterator {
	public:
		using iterator_category = std::input_iterator_tag;
		using value_type = xarray::value_type;
		using difference_type = std::ptrdiff_t;
		using pointer = const value_type *;
		using reference = const value_type &;

		basic_iterator() noexcept = default;
		reference operator*() const noexcept { return at_; }
		pointer operator->() const noexcept { return &at_; }
		basic_iterator &operator++() noexcept
		{
			if constexpr (down)
				at_.second = pointer_of(::xa_find_before(xa_, &at_.first, end_, filter_));
			else
				at_.second = pointer_of(::xa_find_after(xa_, &at_.first, end_, filter_));
			return *this;
		}
		basic_iterator operator++(int) noexcept
		{
			basic_iterator old = *this;

			++*this;
			return old;
		}
		friend bool operator==(const basic_iterator &a, const basic_iterator &b) noexcept { return a.at_ == b.at_; }
		friend bool operator==(const basic_iterator &a, detail::end_of_range) noexcept { return !a.at_.second; }
		QUIESCE_UNEQUAL(basic_iterator, const basic_iterator &)
		QUIESCE_UNEQUAL(basic_iterator, detail::end_of_range)

	private:
		friend class xarray;
		basic_iterator(const struct ::xarray *xa, index_type from, index_type end, ::xa_mark_t filter) noexcept
			: xa_(xa), end_(end), filter_(filter), at_(from, nullptr)
		{
			if constexpr (down)
				at_.second = pointer_of(::xa_find_reverse(xa_, &at_.first, end_, filter_));
			else
				at_.second = pointer_of(::xa_find(xa_, &at_.first, end_, filter_));
		}

		const struct ::xarray *xa_ = nullptr;
		index_type end_ = 0;
		::xa_mark_t filter_ = XA_PRESENT;
		xarray::value_type at_{ 0, nullptr };
	};
	using iterator = basic_iterator<false>;
	using reverse_iterator = basic_iterator<true>;

	/* A range of indices.  Iterators are obtained inside a section, and are invalid after it. */
	template<bool down> class basic_range {
	public:
		basic_iterator<down> begin() const noexcept { return basic_iterator<down>(xa_, from_, end_, filter_); }
		detail::end_of_range end() const noexcept { return {}; }

	private:
		friend class xarray;
		basic_range(const struct ::xarray *xa, index_type from, index_type end, ::xa_mark_t filter) noexcept
			: xa_(xa), from_(from), end_(end), filter_(filter)
		{
		}

		const struct ::xarray *xa_;
		index_type from_, end_;
		::xa_mark_t filter_;
	};

	/* Usable before any constructor has run; allocates nothing while it is empty. */
	constexpr xarray() noexcept = default;
	xarray(const xarray &) = delete;
	xarray &operator=(const xarray &) = delete;
	/* The xarray has no readers any more: they would access the xarray itself. */
	~xarray() { ::xa_destroy(&xa_); }

	/* Returns the entry, or null.  To be called in a section. */
	T *load(index_type index) const noexcept { return pointer_of(::xa_load(&xa_, index)); }

	/* ---- updates ---- */

	/* Returns the old entry, or null.  A null @entry erases. */
	T *store(index_type index, T *entry)
	{
		void *old = nullptr;

		checked(::xa_store(&xa_, index, address_of(entry), &old));
		return pointer_of(old);
	}

	/* Returns false if the index is taken.  A null @entry reserves it. */
	bool insert(index_type index, T *entry) { return checked(::xa_insert(&xa_, index, address_of(entry))); }

	/* Returns false, and sets @expected, if the entry is another one.  Null means no entry. */
	bool compare_exchange(index_type index, T *&expected, T *entry)
	{
		void *there = nullptr;
		bool done = checked(::xa_cmpxchg(&xa_, index, address_of(expected), address_of(entry), &there));

		expected = pointer_of(there);
		return done;
	}

	/* Returns the entry, or null. */
	T *erase(index_type index) noexcept { return pointer_of(::xa_erase(&xa_, index)); }

	/* Makes sure that a later store() at @index needs no memory. */
	void reserve(index_type index) { checked(::xa_reserve(&xa_, index)); }
	void release(index_type index) noexcept { ::xa_release(&xa_, index); }

	/* Allocates the lowest free index from @min to @max; none if all are taken. */
	std::optional<std::uint32_t> alloc(T *entry, std::uint32_t min = 0, std::uint32_t max = UINT32_MAX)
	{
		std::uint32_t id = 0;

		return checked(::xa_alloc(&xa_, &id, address_of(entry), XA_LIMIT(min, max))) ? std::optional(id) : std::nullopt;
	}
	/* alloc() that searches from @next on first, and sets @next to where the next call begins. */
	std::optional<std::uint32_t> alloc_cyclic(T *entry, std::uint32_t &next, std::uint32_t min = 0, std::uint32_t max = UINT32_MAX)
	{
		std::uint32_t id = 0;
		int result = ::xa_alloc_cyclic(&xa_, &id, address_of(entry), XA_LIMIT(min, max), &next);

		return checked(result) ? std::optional(id) : std::nullopt;
	}

	void set_mark(index_type index, xa_mark mark) noexcept { ::xa_set_mark(&xa_, index, bare(mark)); }
	void clear_mark(index_type index, xa_mark mark) noexcept { ::xa_clear_mark(&xa_, index, bare(mark)); }

	/* ---- inside a section ---- */

	bool get_mark(index_type index, xa_mark mark) const noexcept { return ::xa_get_mark(&xa_, index, bare(mark)); }
	bool any_marked(xa_mark mark) const noexcept { return ::xa_marked(&xa_, bare(mark)); }

	/* find() returns the first entry from @index to @last, find_after() the first after
	 * @index. */
	std::optional<value_type> find(index_type index, index_type last = ULONG_MAX, xa_mark filter = xa_mark::present) const noexcept
	{
		void *found = ::xa_find(&xa_, &index, last, bare(filter));

		return pair_of(index, found);
	}
	std::optional<value_type> find_after(index_type index, index_type last = ULONG_MAX,
					     xa_mark filter = xa_mark::present) const noexcept
	{
		void *found = ::xa_find_after(&xa_, &index, last, bare(filter));

		return pair_of(index, found);
	}

	/* find_reverse() returns the last entry from @index down to @first, find_before() the last
	 * before @index. */
	std::optional<value_type> find_reverse(index_type index, index_type first = 0, xa_mark filter = xa_mark::present) const noexcept
	{
		void *found = ::xa_find_reverse(&xa_, &index, first, bare(filter));

		return pair_of(index, found);
	}
	std::optional<value_type> find_before(index_type index, index_type first = 0, xa_mark filter = xa_mark::present) const noexcept
	{
		void *found = ::xa_find_before(&xa_, &index, first, bare(filter));

		return pair_of(index, found);
	}

	/* A range has all entries; or those from @first to @last, both included, upwards or
	 * downwards; or those with a mark. */
	iterator begin() const noexcept { return range().begin(); }
	detail::end_of_range end() const noexcept { return {}; }
	basic_range<false> range(index_type first = 0, index_type last = ULONG_MAX) const noexcept
	{
		return { &xa_, first, last, XA_PRESENT };
	}
	basic_range<true> reverse(index_type first = 0, index_type last = ULONG_MAX) const noexcept
	{
		return { &xa_, last, first, XA_PRESENT };
	}
	basic_range<false> marked(xa_mark mark, index_type first = 0, index_type last = ULONG_MAX) const noexcept
	{
		return { &xa_, first, last, bare(mark) };
	}

	/* ---- the whole ---- */

	bool empty() const noexcept { return ::xa_empty(&xa_); }
	std::size_t size() const noexcept { return ::xa_count(&xa_); }
	/* Frees all indices; readers may be inside. */
	void clear() noexcept { ::xa_destroy(&xa_); }

	native_handle_type native_handle() noexcept { return &xa_; }

private:
	static constexpr ::xa_mark_t bare(xa_mark mark) noexcept { return static_cast<::xa_mark_t>(mark); }
	static T *pointer_of(void *p) noexcept { return static_cast<T *>(p); }
	static void *address_of(T *entry) noexcept
	{
		/* const_cast: only the pointer's type changes */
		return const_cast<void *>(static_cast<const volatile void *>(entry));
	}
	static std::optional<value_type> pair_of(index_type index, void *found) noexcept
	{
		return found ? std::optional<value_type>(std::in_place, index, pointer_of(found)) : std::nullopt;
	}
	/* True if the operation was done; throws if memory is short. */
	static bool checked(int result)
	{
		if (quiesce_unlikely(result == -ENOMEM))
			detail::throw_error(std::errc::not_enough_memory);
		return !result;
	}

	struct ::xarray xa_ = XARRAY_INIT(xa_);
};

} // namespace quiesce

#endif
