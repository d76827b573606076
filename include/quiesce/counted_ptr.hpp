/* SPDX-License-Identifier: MIT */
/* quiesce/counted_ptr.hpp - shared ownership whose readers do not write to the count.
 *
 * Use where std::shared_ptr and std::atomic<std::shared_ptr> are too slow to read: a guard costs a
 * hazard pointer, a store to a cache line of the reader's own, and can be promoted to a
 * counted_ptr.
 *
 *	quiesce::atomic_counted_ptr<config> current{quiesce::make_counted<config>()};
 *
 *	auto guard = current.protect();                         // for a moment; may be null, like a pointer
 *	use(guard->limit);
 *	quiesce::counted_ptr<config> mine = guard.promote();    // for longer
 *
 *	current.store(quiesce::make_counted<config>(*mine));    // updater; does not wait
 *
 * Unlike std::shared_ptr:
 *  - The object is destroyed *later* than its last counted_ptr, in another thread, once no guard
 *    protects it: by a callback of call_hazptr(), which holds no lock, and in which destructors may drop
 *    further pointers (long lists do not recurse).  hazptr_barrier() waits for it.  The destructor may
 *    neither throw nor wait for callbacks.
 *  - A counted_ptr is one pointer.  So there is no aliasing, and a pointer to a derived class converts
 *    to one to its base only if both derive from counted_obj_base.
 *  - No weak pointers, no arrays, no custom deleters, no adoption of objects made by new.
 *
 * Objects are made by make_counted(), of any type.  A type that derives from counted_obj_base holds
 * its count; for other types the count precedes the object.
 *
 * Ordering: counted_ptr.h; a load is an acquire, and every operation that stores is a full fence.
 * Exceptions: only make_counted() throws: std::bad_alloc, and exceptions of the constructor.
 */
#ifndef QUIESCE_COUNTED_PTR_HPP
#define QUIESCE_COUNTED_PTR_HPP

#include <quiesce/counted_ptr.h>

#if !defined(__cplusplus) || __cplusplus < 201703L
#error "quiesce/counted_ptr.hpp needs C++17; counted_ptr.h is for C and for C++11"
#endif

#include <cstddef>
#include <cstdint>
#include <functional>
#include <new>
#include <type_traits>
#include <utility>
#if __cplusplus >= 202002L
#include <compare>
#endif

namespace quiesce {

template <class T> class counted_ptr;
template <class T> class counted_guard;
template <class T> class atomic_counted_ptr;
template <class T, class... Args> counted_ptr<T> make_counted(Args &&...args);

/** counted_obj_base - a public base, not virtual, of objects that hold their own count.  A copy has
 * a count of its own. */
class counted_obj_base {
public:
	counted_obj_base() noexcept = default;
	counted_obj_base(const counted_obj_base &) noexcept : counted_obj_base() {}
	counted_obj_base &operator=(const counted_obj_base &) noexcept { return *this; }

protected:
	~counted_obj_base() = default;

private:
	template <class> friend struct counted_traits;
	struct counted count_ {}; /* first: it has the address of the base */
};

/* Private: an object is reached from its base, which is not virtual. */
template <class T, class = void> inline constexpr bool counted_base_is_direct = false;
template <class T>
inline constexpr bool counted_base_is_direct<T, std::void_t<decltype(static_cast<T *>(std::declval<counted_obj_base *>()))>> = true;

/* Private.  This class finds the count of a T. */
template <class T> struct counted_traits {
	static_assert(std::is_object_v<T> && !std::is_array_v<T> && !std::is_volatile_v<T>, "counted pointers are to single objects");

	using object = std::remove_cv_t<T>;
	static constexpr bool intrusive = std::is_base_of_v<counted_obj_base, object>;

	/* A type without a count of its own has its count before the object. */
	static constexpr std::size_t before = (sizeof(struct counted) + alignof(object) - 1) / alignof(object) * alignof(object);
	struct alignas(struct counted) alignas(object) block {
		unsigned char bytes[before + sizeof(object)];
	};

	/* Returns the distance from the object to its count, in bytes; the compiler folds it to a
	 * constant. */
	static std::size_t offset() noexcept
	{
		if constexpr (intrusive) {
			static_assert(std::is_convertible_v<object *, counted_obj_base *>, "one counted_obj_base, public");
			static_assert(counted_base_is_direct<object>, "counted_obj_base may not be virtual");
			constexpr std::uintptr_t any = 4096;
			return reinterpret_cast<std::uintptr_t>(static_cast<counted_obj_base *>(reinterpret_cast<object *>(any))) - any;
		} else {
			return std::size_t{0} - before;
		}
	}

	static struct counted *count(T *ptr) noexcept
	{
		void *object_ = const_cast<object *>(ptr);

		return quiesce__counted_at(object_, offset());
	}

	static void release(struct counted *count) noexcept
	{
		void *ptr = reinterpret_cast<void *>(reinterpret_cast<std::uintptr_t>(count) - offset());

		if constexpr (intrusive) {
			delete static_cast<object *>(ptr);
		} else {
			static_cast<object *>(ptr)->~object();
			delete reinterpret_cast<block *>(count);
		}
	}

	template <class... Args> static T *make(Args &&...args)
	{
		T *ptr;

		if constexpr (intrusive) {
			ptr = new object(std::forward<Args>(args)...);
		} else {
			struct holder { /* frees the block if the constructor throws */
				block *mine = new block;
				~holder() { delete mine; }
			} h;
			::new (static_cast<void *>(h.mine->bytes)) struct counted;
			ptr = ::new (static_cast<void *>(h.mine->bytes + before)) object(std::forward<Args>(args)...);
			h.mine = nullptr;
		}
		::counted_init(count(ptr), release);
		return ptr;
	}
};

/* True if a pointer to U converts to one to T, with the count in the same place. */
template <class U, class T>
inline constexpr bool counted_convertible = std::conjunction_v<
	std::is_convertible<U *, T *>,
	std::disjunction<std::is_same<std::remove_cv_t<U>, std::remove_cv_t<T>>, /* U may be incomplete */
			 std::conjunction<std::is_base_of<counted_obj_base, U>, std::is_base_of<counted_obj_base, T>>>>;

/** counted_ptr - a reference to an object, or none.  Like std::shared_ptr, with the differences
 * listed at the top of this header. */
template <class T> class counted_ptr {
public:
	using element_type = T;

	constexpr counted_ptr() noexcept = default;
	constexpr counted_ptr(std::nullptr_t) noexcept {}
	counted_ptr(const counted_ptr &other) noexcept : ptr_(other.ptr_) { get_reference(); }
	counted_ptr(counted_ptr &&other) noexcept : ptr_(other.release()) {}
	template <class U, class = std::enable_if_t<counted_convertible<U, T>>>
	counted_ptr(const counted_ptr<U> &other) noexcept : ptr_(other.get()) { get_reference(); }
	template <class U, class = std::enable_if_t<counted_convertible<U, T>>>
	counted_ptr(counted_ptr<U> &&other) noexcept : ptr_(other.release()) {}
	~counted_ptr() { put_reference(); }

	counted_ptr &operator=(counted_ptr other) noexcept
	{
		swap(other);
		return *this;
	}

	/** adopt - a counted_ptr of @ptr, which release() or counted_load() returned: takes over its
	 * reference. */
	static counted_ptr adopt(T *ptr) noexcept
	{
		counted_ptr result;

		result.ptr_ = ptr;
		return result;
	}

	/** release - return the pointer; its reference is now the caller's. */
	[[__nodiscard__]] T *release() noexcept { return std::exchange(ptr_, nullptr); }

	void reset() noexcept { counted_ptr().swap(*this); }
	void swap(counted_ptr &other) noexcept { std::swap(ptr_, other.ptr_); }
	T *get() const noexcept { return ptr_; }
	T &operator*() const noexcept { return *ptr_; }
	T *operator->() const noexcept { return ptr_; }
	explicit operator bool() const noexcept { return ptr_ != nullptr; }

	/** use_count - the number of references at some recent moment; guards do not count. */
	long use_count() const noexcept { return ptr_ ? static_cast<long>(::counted_read(counted_traits<T>::count(ptr_))) : 0; }

private:
	void get_reference() const noexcept
	{
		if (ptr_)
			::counted_get(counted_traits<T>::count(ptr_));
	}

	void put_reference() const noexcept
	{
		if (ptr_)
			::counted_put(counted_traits<T>::count(ptr_));
	}

	T *ptr_ = nullptr;
};

template <class T, class U> bool operator==(const counted_ptr<T> &a, const counted_ptr<U> &b) noexcept { return a.get() == b.get(); }
template <class T> bool operator==(const counted_ptr<T> &a, std::nullptr_t) noexcept { return !a; }
#if __cplusplus >= 202002L
template <class T, class U> std::strong_ordering operator<=>(const counted_ptr<T> &a, const counted_ptr<U> &b) noexcept
{
	return std::compare_three_way()(a.get(), b.get());
}
#else /* C++17 makes none of these of the two above, and has no <=> */
template <class T> bool operator==(std::nullptr_t, const counted_ptr<T> &a) noexcept { return !a; }
template <class T> bool operator!=(std::nullptr_t, const counted_ptr<T> &a) noexcept { return static_cast<bool>(a); }
template <class T> bool operator!=(const counted_ptr<T> &a, std::nullptr_t) noexcept { return static_cast<bool>(a); }
template <class T, class U> bool operator!=(const counted_ptr<T> &a, const counted_ptr<U> &b) noexcept { return !(a == b); }
template <class T, class U> bool operator<(const counted_ptr<T> &a, const counted_ptr<U> &b) noexcept
{
	return std::less<std::common_type_t<T *, U *>>()(a.get(), b.get());
}
template <class T, class U> bool operator>(const counted_ptr<T> &a, const counted_ptr<U> &b) noexcept { return b < a; }
template <class T, class U> bool operator<=(const counted_ptr<T> &a, const counted_ptr<U> &b) noexcept { return !(b < a); }
template <class T, class U> bool operator>=(const counted_ptr<T> &a, const counted_ptr<U> &b) noexcept { return !(a < b); }
#endif
template <class T> void swap(counted_ptr<T> &a, counted_ptr<T> &b) noexcept { a.swap(b); }

/** make_counted - make a new T, and return the first reference to it.
 * Throws: std::bad_alloc, and exceptions of the constructor; then nothing has changed. */
template <class T, class... Args> counted_ptr<T> make_counted(Args &&...args)
{
	return counted_ptr<T>::adopt(counted_traits<T>::make(std::forward<Args>(args)...));
}

/** counted_guard - protects an object by a hazard pointer while it is in scope; may be empty.
 *
 * For one thread at a time; may be moved to another.  Where no slot is left, after nearly a million
 * guards, it holds a reference instead.
 * Cost: as hazptr_protect(), and a few instructions to take a slot. */
template <class T> class counted_guard {
public:
	using element_type = T;

	constexpr counted_guard() noexcept = default;
	counted_guard(counted_guard &&other) noexcept
		: ptr_(std::exchange(other.ptr_, nullptr)), slot_(std::exchange(other.slot_, nullptr)) {}
	counted_guard &operator=(counted_guard &&other) noexcept
	{
		counted_guard(std::move(other)).swap(*this);
		return *this;
	}
	~counted_guard() { finish(); }

	/** protect - protect the object that @from points to now, in place of the former one; the
	 * slot is kept. */
	__attribute__((__always_inline__)) inline void protect(const atomic_counted_ptr<T> &from) noexcept
	{
		if (quiesce_unlikely(!slot_)) {
			finish();
			slot_ = ::hazptr_alloc(nullptr);
		}
		ptr_ = from.fetch(slot_);
	}

	/** promote - return a reference to the object, which the guard still protects.
	 * Return: empty, if there is no object or its last reference is gone. */
	counted_ptr<T> promote() const noexcept
	{
		return counted_ptr<T>::adopt(ptr_ && ::counted_tryget(counted_traits<T>::count(ptr_)) ? ptr_ : nullptr);
	}

	void reset() noexcept { counted_guard().swap(*this); }
	void swap(counted_guard &other) noexcept
	{
		std::swap(ptr_, other.ptr_);
		std::swap(slot_, other.slot_);
	}
	T *get() const noexcept { return ptr_; }
	T &operator*() const noexcept { return *ptr_; }
	T *operator->() const noexcept { return ptr_; }
	explicit operator bool() const noexcept { return ptr_ != nullptr; }

private:
	__attribute__((__always_inline__)) inline void finish() noexcept
	{
		if (quiesce_likely(slot_ != nullptr))
			::hazptr_free(nullptr, slot_);
		else if (ptr_)
			::counted_put(counted_traits<T>::count(ptr_));
	}

	T *ptr_ = nullptr;
	::hazptr_t *slot_ = nullptr; /* NULL with an object: the guard holds a reference */
};
template <class T> void swap(counted_guard<T> &a, counted_guard<T> &b) noexcept { a.swap(b); }

/** atomic_counted_ptr - a counted_ptr that any number of threads read and replace.
 *
 * Like std::atomic<std::shared_ptr>, without a choice of memory order, wait and notify.  Lock-free. */
template <class T> class atomic_counted_ptr {
public:
	using value_type = counted_ptr<T>;
	static constexpr bool is_always_lock_free = true;

	/* raw: these are constructors. */
	constexpr atomic_counted_ptr() noexcept = default;
	constexpr atomic_counted_ptr(std::nullptr_t) noexcept {}
	atomic_counted_ptr(counted_ptr<T> value) noexcept : ptr_(to_void(value.release())) {}
	atomic_counted_ptr(const atomic_counted_ptr &) = delete; /* raw: a constructor */
	atomic_counted_ptr &operator=(const atomic_counted_ptr &) = delete;
	~atomic_counted_ptr() { store(nullptr); } /* raw: a destructor */

	bool is_lock_free() const noexcept { return true; }

	/** protect - return a guard that protects the object while it is in scope.  The fast way to
	 * read. */
	[[__nodiscard__]] __attribute__((__always_inline__)) inline counted_guard<T> protect() const noexcept
	{
		counted_guard<T> guard;

		guard.protect(*this);
		return guard;
	}

	/** load - return a reference to the object. */
	counted_ptr<T> load() const noexcept
	{
		return counted_ptr<T>::adopt(to_object(quiesce__counted_load(&ptr_, counted_traits<T>::offset())));
	}
	operator counted_ptr<T>() const noexcept { return load(); }

	void store(counted_ptr<T> value) noexcept { (void)exchange(std::move(value)); }
	void operator=(counted_ptr<T> value) noexcept { store(std::move(value)); }
	void operator=(std::nullptr_t) noexcept { store(nullptr); }

	counted_ptr<T> exchange(counted_ptr<T> value) noexcept
	{
		return counted_ptr<T>::adopt(to_object(counted_exchange(&ptr_, to_void(value.release()))));
	}

	/** compare_exchange_strong - store @desired if the pointer is @expected; else @expected
	 * becomes the pointer found.
	 * Return: true if @desired was stored. */
	bool compare_exchange_strong(counted_ptr<T> &expected, counted_ptr<T> desired) noexcept
	{
		void *const wanted = to_void(expected.get());

		do {
			void *found = wanted;

			if (counted_cmpxchg(&ptr_, &found, to_void(desired.get()))) {
				(void)desired.release();
				counted_ptr<T>::adopt(to_object(wanted)); /* the pointer's reference */
				return true;
			}
			expected = load();
		} while (to_void(expected.get()) == wanted); /* the pointer has changed back meanwhile */
		return false;
	}
	bool compare_exchange_weak(counted_ptr<T> &expected, counted_ptr<T> desired) noexcept
	{
		return compare_exchange_strong(expected, std::move(desired));
	}

private:
	friend class counted_guard<T>;

	static void *to_void(T *ptr) noexcept { return const_cast<std::remove_cv_t<T> *>(ptr); }
	static T *to_object(void *ptr) noexcept { return static_cast<T *>(ptr); }

	/* Load the object: protected by @slot, or referenced if that is NULL. */
	__attribute__((__always_inline__)) inline T *fetch(::hazptr_t *slot) const noexcept
	{
		if (quiesce_unlikely(!slot))
			return to_object(quiesce__counted_load_slow(&ptr_, counted_traits<T>::offset()));
		return to_object(quiesce__hazptr_protect(slot, &ptr_, counted_traits<T>::offset(), 0));
	}

	mutable void *ptr_ = nullptr; /* points to a T; void *, so that the C interface has one type */
};

} // namespace quiesce

template <class T> struct std::hash<quiesce::counted_ptr<T>> {
	std::size_t operator()(const quiesce::counted_ptr<T> &p) const noexcept { return std::hash<T *>()(p.get()); }
};

#endif
