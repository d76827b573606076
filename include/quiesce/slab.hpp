/* SPDX-License-Identifier: MIT */
/* quiesce/slab.hpp - objects of C++ in the caches of slab.h, in namespace quiesce; C++17 and later.
 *
 * Use for classes whose objects are allocated and freed all the time, and for nodes of containers:
 * new and delete, or each node, are then a restartable sequence on a line of the CPU's own.
 *
 *	struct route : quiesce::slab_allocated<route>, quiesce::rcu_obj_base<route> { int hops; };
 *	static std::atomic<route *> best;
 *	static std::list<int, quiesce::slab_allocator<int>> lengths;
 *
 *	route *fresh = new route;                       // from a cache
 *	if (route *old = best.exchange(fresh))
 *		old->retire();                          // back to it after a grace period
 *	lengths.push_back(1);                           // so is a node of the list
 *
 * Any retire(), rcu_retire() and std::unique_ptr deletes such an object as any other: they call the
 * class' operator delete.
 *
 * Types of the same size share a cache, in all shared objects of the process, so an object may be deleted
 * where it was not allocated.  A cache is made at the first allocation of its size, and lasts until the
 * process ends, so objects may be static.  Order and checks are those of slab.h.  Type-safe
 * memory (SLAB_TYPESAFE_BY_RCU) is for the calls of C: new begins another object.
 */
#ifndef QUIESCE_SLAB_HPP
#define QUIESCE_SLAB_HPP

#include <quiesce/detail/raise.hpp>
#include <quiesce/rcu.h>
#include <quiesce/slab.h>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>

namespace quiesce {

namespace detail {

/* Not members of the template: their macros are for types that are known. */
inline ::kmem_cache *known_cache(::kmem_cache *const &at) noexcept { return rcu_dereference_raw(at); }

/* Several threads may store the same address. */
[[gnu::__cold__, gnu::__noinline__]] inline ::kmem_cache *find_cache(::kmem_cache *&at, std::size_t size, std::size_t align) noexcept
{
	::kmem_cache *found = quiesce__kmem_cache_of_size(QUIESCE_LAYOUT, size, align);

	if (found)
		rcu_assign_pointer(at, found);
	return found;
}

/* The cache for objects of @Size bytes, a multiple of @Align. */
template<std::size_t Size, std::size_t Align> class slab_of {
public:
	/* Larger objects are left to ::operator new. */
	static constexpr bool exists = Size <= QUIESCE_SLAB_SIZE_MAX && Align <= QUIESCE_SLAB_ALIGN_MAX;

	/* NULL: no memory. */
	static void *allocate() noexcept
	{
		::kmem_cache *known = known_cache(cache);

		if (quiesce_unlikely(!known))
			known = find_cache(cache, Size, Align);
		return quiesce_likely(known != nullptr) ? ::kmem_cache_alloc(known) : nullptr;
	}

	static void free(void *object) noexcept
	{
		::kmem_cache *known = known_cache(cache);

		/* Another shared object may have allocated it. */
		if (quiesce_unlikely(!known))
			::kfree(object);
		else
			::kmem_cache_free(known, object);
	}

private:
	static inline ::kmem_cache *cache = nullptr;
};

} // namespace detail

/** slab_allocator - an allocator whose single objects are from a cache.
 *
 * For containers of nodes: std::list, std::map, std::unordered_map; and std::allocate_shared().
 * Arrays of more than one object, and types of more than 16384 bytes or aligned to more than 4096,
 * are std::allocator's.  All objects of this class are equal.
 * Cost: allocate(1) and deallocate(p, 1) are kmem_cache_alloc() and kmem_cache_free(), and a load.
 * Throws: std::bad_alloc; a build without exceptions aborts. */
template<class T> class slab_allocator {
public:
	using value_type = T;
	using size_type = std::size_t;
	using difference_type = std::ptrdiff_t;
	using propagate_on_container_move_assignment = std::true_type;
	using is_always_equal = std::true_type;

	constexpr slab_allocator() noexcept = default;
	template<class U> constexpr slab_allocator(const slab_allocator<U> &) noexcept {}

	[[__nodiscard__]] T *allocate(std::size_t n)
	{
		using slab = detail::slab_of<sizeof(T), alignof(T)>;

		if constexpr (slab::exists)
			if (quiesce_likely(n == 1)) {
				void *object = slab::allocate();

				if (quiesce_unlikely(!object))
					detail::throw_error(std::errc::not_enough_memory);
				return static_cast<T *>(object);
			}
		return std::allocator<T>().allocate(n);
	}

	void deallocate(T *p, std::size_t n) noexcept
	{
		using slab = detail::slab_of<sizeof(T), alignof(T)>;

		if constexpr (slab::exists)
			if (quiesce_likely(n == 1))
				return slab::free(p);
		std::allocator<T>().deallocate(p, n);
	}

	template<class U> friend constexpr bool operator==(const slab_allocator &, const slab_allocator<U> &) noexcept { return true; }
	template<class U> friend constexpr bool operator!=(const slab_allocator &, const slab_allocator<U> &) noexcept { return false; }
};

/** slab_allocated - a base of T, by which new T and delete use a cache.
 *
 * An object of a class that derives from T is from a cache too if it is of the size of T, and else
 * from malloc().  Arrays of T are ::operator new[]'s.  As for any class an object is deleted by its
 * own type, unless T has a virtual destructor; and a class with two bases that have an operator new
 * names one by a using-declaration.
 * Cost, throws: as slab_allocator, and new (std::nothrow) returns nullptr.  No new-handler is called. */
template<class T> class slab_allocated {
public:
	static void *operator new(std::size_t size) { return checked(get(size, 0)); }
	static void *operator new(std::size_t size, std::align_val_t align) { return checked(get(size, static_cast<std::size_t>(align))); }
	static void *operator new(std::size_t size, const std::nothrow_t &) noexcept { return get(size, 0); }
	static void *operator new(std::size_t size, std::align_val_t align, const std::nothrow_t &) noexcept
	{
		return get(size, static_cast<std::size_t>(align));
	}
	static void *operator new(std::size_t, void *at) noexcept { return at; }

	static void operator delete(void *object, std::size_t size) noexcept { put(object, size); }
	/* Without the size, as compilers find no other one if the constructor of an aligned object throws. */
	static void operator delete(void *object, std::align_val_t) noexcept { ::kfree(object); }
	/* Of an object whose constructor threw. */
	static void operator delete(void *object, const std::nothrow_t &) noexcept { ::kfree(object); }
	static void operator delete(void *object, std::align_val_t, const std::nothrow_t &) noexcept { ::kfree(object); }
	static void operator delete(void *, void *) noexcept {}

protected:
	slab_allocated() = default;
	slab_allocated(const slab_allocated &) = default;
	slab_allocated &operator=(const slab_allocated &) = default;
	~slab_allocated() = default;

private:
	/* @align: 0: that of malloc(). */
	static void *get(std::size_t size, std::size_t align) noexcept
	{
		using slab = detail::slab_of<sizeof(T), alignof(T)>;

		static_assert(slab::exists, "T has more than 16384 bytes, or is aligned to more than 4096");
		if (quiesce_likely(size == sizeof(T)))
			return slab::allocate();
		return align ? std::aligned_alloc(align, size) : std::malloc(size);
	}

	static void *checked(void *object)
	{
		if (quiesce_unlikely(!object))
			detail::throw_error(std::errc::not_enough_memory);
		return object;
	}

	static void put(void *object, std::size_t size) noexcept
	{
		if (quiesce_likely(size == sizeof(T)))
			detail::slab_of<sizeof(T), alignof(T)>::free(object);
		else
			::kfree(object);
	}
};

} // namespace quiesce

#endif
