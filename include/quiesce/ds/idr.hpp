/* SPDX-License-Identifier: MIT */
/* quiesce/ds/idr.hpp - idr.h with typed objects, in namespace quiesce; C++17 and later.
 *
 *	quiesce::idr<session> sessions;
 *
 *	std::optional<int> id = sessions.alloc(s, 1);   // none: all ids are taken
 *
 *	{                                               // reader
 *		std::scoped_lock section(quiesce::rcu_default_domain());
 *		if (session *s = sessions.find(*id))
 *			use(*s);
 *		for (auto [id, s] : sessions)           // in the order of ids
 *			use(*s);
 *	}
 *	quiesce::rcu_retire(sessions.remove(*id));
 *
 * The objects belong to the caller.  Context, cost and order are those of idr.h.
 * Exceptions: std::bad_alloc from functions that allocate, and nothing has changed;
 *   std::invalid_argument for a negative start.
 */
#ifndef QUIESCE_DS_IDR_HPP
#define QUIESCE_DS_IDR_HPP

#include <quiesce/detail/range.hpp>
#include <quiesce/ds/idr.h>

#if !defined(__cplusplus) || __cplusplus < 201703L
#error "quiesce/ds/idr.hpp needs C++17; idr.h is for C and for C++11"
#endif

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <new>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace quiesce {

#if defined(__cpp_exceptions)
#define QUIESCE_IDR_THROW(what) throw what
#else
#define QUIESCE_IDR_THROW(what) __builtin_trap()
#endif

/** idr_nodes - memory for one allocation, reserved in advance: idr_preload() of idr.h. */
class idr_nodes {
public:
	idr_nodes() noexcept = default;
	idr_nodes(const idr_nodes &) = delete;
	idr_nodes &operator=(const idr_nodes &) = delete;
	~idr_nodes() { ::idr_preload_end(&nodes_); }

	/* Reserves the memory; throws std::bad_alloc. */
	void preload()
	{
		if (::idr_preload(&nodes_))
			QUIESCE_IDR_THROW(std::bad_alloc());
	}
	struct ::idr_nodes *native_handle() noexcept { return &nodes_; }

private:
	struct ::idr_nodes nodes_ = IDR_NODES_INIT;
};

/** idr - ids of T objects. */
template<class T> class idr {
	static_assert(std::is_object_v<T>, "ids are of objects");

public:
	using native_handle_type = struct ::idr *;

	/* Visits pairs of id and pointer, inside a section; for range-for. */
	class iterator {
	public:
		using iterator_category = std::input_iterator_tag;
		using value_type = std::pair<int, T *>;
		using difference_type = std::ptrdiff_t;
		using pointer = const value_type *;
		using reference = const value_type &;

		iterator() noexcept = default;
		reference operator*() const noexcept { return at_; }
		pointer operator->() const noexcept { return &at_; }
		iterator &operator++() noexcept
		{
			at_.first = ::quiesce__idr_after(at_.first);
			find();
			return *this;
		}
		iterator operator++(int) noexcept
		{
			iterator old = *this;

			++*this;
			return old;
		}
		friend bool operator==(const iterator &a, const iterator &b) noexcept { return a.at_ == b.at_; }
		friend bool operator==(const iterator &a, detail::end_of_range) noexcept { return !a.at_.second; }
		QUIESCE_UNEQUAL(iterator, const iterator &)
		QUIESCE_UNEQUAL(iterator, detail::end_of_range)

	private:
		friend class idr;
		iterator(const struct ::idr *from, int id) noexcept : idr_(from), at_(id, nullptr) { find(); }
		void find() noexcept { at_.second = pointer_of(::idr_get_next(idr_, &at_.first)); }

		const struct ::idr *idr_ = nullptr;
		value_type at_{ 0, nullptr };
	};

	/* Usable before any constructor has run; allocates nothing while it is empty. */
	constexpr idr() noexcept = default;
	idr(const idr &) = delete;
	idr &operator=(const idr &) = delete;
	/* The idr has no readers any more: they would access the idr itself. */
	~idr() { ::idr_destroy(&idr_); }

	/* Returns the object, or null.  To be called in a section. */
	T *find(unsigned long id) const noexcept { return pointer_of(::idr_find(&idr_, id)); }

	/* The lowest free id in [start, end); end 0: up to INT_MAX.  None if all are taken.  A null
	 * object reserves the id. */
	std::optional<int> alloc(T *object, int start = 0, int end = 0)
	{
		return checked(::idr_alloc(&idr_, address_of(object), start, end));
	}
	std::optional<int> alloc(idr_nodes &nodes, T *object, int start = 0, int end = 0)
	{
		return checked(::idr_alloc_preloaded(&idr_, nodes.native_handle(), address_of(object), start, end));
	}
	/* alloc() that searches from the id after its last result on. */
	std::optional<int> alloc_cyclic(T *object, int start = 0, int end = 0)
	{
		return checked(::idr_alloc_cyclic(&idr_, address_of(object), start, end));
	}

	/* The lowest free id in [start, last], of all 32 bits: as idr_alloc_u32().
	 * @ret_id: if not null, written before a reader can find the object, of which it may be a
	 *   member.  It is @start if none is free.  Iterators stop at INT_MAX. */
	std::optional<std::uint32_t> alloc_u32(T *object, std::uint32_t start = 0, std::uint32_t last = UINT32_MAX,
					       std::uint32_t *ret_id = nullptr)
	{
		std::uint32_t own = start, *id = ret_id ? ret_id : &own;
		int result;

		*id = start;
		result = ::idr_alloc_u32(&idr_, address_of(object), id, last);
		if (!checked(result))
			return std::nullopt;
		return *id;
	}

	/* Returns the old object, null if the id was reserved only; none if the id is not taken. */
	std::optional<T *> replace(T *object, unsigned long id) noexcept
	{
		void *old = nullptr;

		if (::idr_replace(&idr_, address_of(object), id, &old))
			return std::nullopt;
		return pointer_of(old);
	}

	/* Returns the object, or null. */
	T *remove(unsigned long id) noexcept { return pointer_of(::idr_remove(&idr_, id)); }

	/* Iterators are used in a section, and are invalid after it. */
	iterator begin() const noexcept { return iterator(&idr_, 0); }
	detail::end_of_range end() const noexcept { return {}; }
	/* Begins the iteration at @id. */
	iterator lower_bound(int id) const noexcept { return iterator(&idr_, id); }

	bool empty() const noexcept { return ::idr_is_empty(&idr_); }
	std::size_t size() const noexcept { return ::idr_count(&idr_); }
	/* Frees all ids; readers may be inside, but no other updater. */
	void clear() noexcept { ::idr_destroy(&idr_); }

	native_handle_type native_handle() noexcept { return &idr_; }

private:
	static T *pointer_of(void *p) noexcept { return static_cast<T *>(p); }
	static void *address_of(T *object) noexcept
	{
		/* const_cast: only the pointer's type changes */
		return const_cast<void *>(static_cast<const volatile void *>(object));
	}
	static std::optional<int> checked(int result)
	{
		if (result == -ENOMEM)
			QUIESCE_IDR_THROW(std::bad_alloc());
		if (result == -EINVAL)
			QUIESCE_IDR_THROW(std::invalid_argument("idr: a negative id"));
		return result < 0 ? std::nullopt : std::optional<int>(result);
	}

	struct ::idr idr_ = IDR_INIT(idr_);
};

#undef QUIESCE_IDR_THROW

} // namespace quiesce

#endif
