/* SPDX-License-Identifier: MIT */
/* quiesce/hazptr.hpp - hazard pointers as C++26 has them in <hazard_pointer>, in namespace quiesce; for
 * C++17 and newer; its batches, which are std::spans, from C++20 on.
 *
 * retire() may run deleters in the calling thread, of any object that this thread has retired: hold
 * no lock that they take.  retire_to_worker() leaves them to a thread of the library.
 *
 * Use for objects that C++ code owns; it may be mixed with hazptr.h, and a program that is written
 * to this header moves to std:: by changing a namespace.
 *
 *	struct config : quiesce::hazard_pointer_obj_base<config> { int limit; };
 *	std::atomic<config *> current;
 *
 *	quiesce::hazard_pointer h = quiesce::make_hazard_pointer();     // reader; keep it for many reads
 *	if (config *p = h.protect(current))
 *		use(p->limit);
 *
 *	if (config *old = current.exchange(fresh))                      // updater; does not wait
 *		old->retire();
 *
 * Meaning, requirements and exceptions are those of the working draft, [saferecl.hp]; order and
 * bound are those of hazptr.h.  Extensions, each marked as one: retire_to_worker(),
 * hazard_pointer_cohort, retire() into a cohort, hazard_pointer_clean_up(),
 * hazard_pointer_try_clean_up(), hazard_pointer_array. docs/cpp.md lists the choices that the draft
 * leaves to the implementation.
 *
 * A slot holds the address of the object's hazptr_head, which is the first member of its base.  This
 * header contains no logic: everything is an inline or a call of hazptr.h.
 */
#ifndef QUIESCE_HAZPTR_HPP
#define QUIESCE_HAZPTR_HPP

#include <quiesce/hazptr.h>

#if !defined(__cplusplus) || __cplusplus < 201703L
#error "quiesce/hazptr.hpp needs C++17; hazptr.h is for C and for C++11"
#endif

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#if __cplusplus >= 202002L
#include <span>
#endif

/* The draft with batches gives __cpp_lib_hazard_pointer this value. */
#define QUIESCE_CPP_LIB_HAZARD_POINTER 202606L

namespace quiesce {

template<class T, class D = std::default_delete<T>> class hazard_pointer_obj_base;
class hazard_pointer;
class hazard_pointer_cohort;

[[__nodiscard__]] hazard_pointer make_hazard_pointer();
void swap(hazard_pointer &, hazard_pointer &) noexcept;
#if __cplusplus >= 202002L
void make_hazard_pointer_batch(std::span<hazard_pointer>);
void clear_hazard_pointer_batch(std::span<hazard_pointer>) noexcept;
#endif

namespace detail {

[[__noreturn__, gnu::__cold__, gnu::__noinline__]] inline void throw_bad_alloc()
{
#if defined(__cpp_exceptions)
	throw std::bad_alloc();
#else
	std::abort();
#endif
}

/* The library's part of an object.  It belongs to that object, and is neither copied nor assigned:
 * so a reader may copy an object that it protects while another thread retires it. */
struct hazard_head {
	::hazptr_head head = { nullptr, nullptr };

	constexpr hazard_head() noexcept = default;
	constexpr hazard_head(const hazard_head &) noexcept {}
	constexpr hazard_head &operator=(const hazard_head &) noexcept { return *this; }
};

/* The base that a class derives from: deduced only if there is one such base, usable only if it is
 * public. */
template<class T, class D> hazard_pointer_obj_base<T, D> *hazard_base(hazard_pointer_obj_base<T, D> *);
template<class T> using hazard_base_of = decltype(detail::hazard_base(static_cast<T *>(nullptr)));

template<class Base, class T> inline constexpr bool hazard_base_is_for = false;
template<class D, class T> inline constexpr bool hazard_base_is_for<hazard_pointer_obj_base<T, D> *, T> = true;

template<class T, class = void> inline constexpr bool hazard_protectable = false;
template<class T> /* A virtual base has no cast to T. */
inline constexpr bool hazard_protectable<T, std::void_t<decltype(static_cast<T *>(detail::hazard_base(std::declval<T *>())))>> =
	std::is_class_v<T> && hazard_base_is_for<hazard_base_of<T>, T>;

/* The requirements on T, checked where T must be complete. */
template<class T> constexpr void require_hazard_protectable() noexcept
{
	static_assert(sizeof(T) != 0, "T must be complete");
	static_assert(hazard_protectable<T>,
		      "T must be hazard-protectable: one base hazard_pointer_obj_base<T, D>, public and not virtual, and no other");
}

struct hazard_access {
	template<class T, class D> static std::uintptr_t address(const hazard_pointer_obj_base<T, D> *base) noexcept
	{
		return base ? reinterpret_cast<std::uintptr_t>(&base->quiesce__head.head) : 0; /* the address of the head and of the base */
	}
};

/* The value of a slot that protects @ptr, which may point to an object that was freed. */
template<class T> std::uintptr_t hazard_address(const T *ptr) noexcept
{
	require_hazard_protectable<T>();
	return hazard_access::address(static_cast<const std::remove_pointer_t<hazard_base_of<T>> *>(ptr));
}

} // namespace detail

/** hazard_pointer_obj_base - base of classes whose objects can be protected and retired.
 *
 * retire() may run deleters before it returns, of this object and of others that the calling thread
 * has retired, as the draft allows: it is call_hazptr_inline().  So the caller must hold
 * no lock that a deleter or destructor takes.  retire_to_worker() never runs any: it is
 * call_hazptr(), and leaves all deleters to a thread of the library.  Both may be used together,
 * also for one class.
 * A deleter with state is part of the object that it deletes, as in the draft. */
template<class T, class D> class hazard_pointer_obj_base {
public:
	void retire(D d = D()) noexcept
	{
		detail::require_hazard_protectable<T>();
		quiesce__deleter = std::move(d);
		::call_hazptr_inline_sized(&quiesce__head.head, quiesce__reclaim, sizeof(T));
	}

	/* Extension: the deleter runs in a thread of the library, not in this call. */
	void retire_to_worker(D d = D()) noexcept
	{
		detail::require_hazard_protectable<T>();
		quiesce__deleter = std::move(d);
		::call_hazptr_sized(&quiesce__head.head, quiesce__reclaim, sizeof(T));
	}

	/* Extension: retire into @cohort, whose objects are deleted in any retire() into it.  A
	 * cohort has a bound of the objects that wait, not of their bytes: call_hazptr_cohort(). */
	void retire(hazard_pointer_cohort &cohort, D d = D()) noexcept;

protected:
	hazard_pointer_obj_base() = default;
	hazard_pointer_obj_base(const hazard_pointer_obj_base &) = default;
	hazard_pointer_obj_base(hazard_pointer_obj_base &&) = default;
	hazard_pointer_obj_base &operator=(const hazard_pointer_obj_base &) = default;
	hazard_pointer_obj_base &operator=(hazard_pointer_obj_base &&) = default;
	~hazard_pointer_obj_base() = default;

private:
	/* Reserved names, which no derived class uses by accident.  The head is first: it has the
	 * address of the base. */
	detail::hazard_head quiesce__head;
	[[no_unique_address]] D quiesce__deleter{};

	static void quiesce__reclaim(::hazptr_head *head) noexcept
	{
		auto *base = reinterpret_cast<hazard_pointer_obj_base *>(head);

		base->quiesce__deleter(static_cast<T *>(base));
	}

	friend struct detail::hazard_access;
};

/** hazard_pointer - owns a slot, or is empty.
 *
 * An empty one may only be assigned to, swapped, moved from, tested by empty() and destroyed.  The
 * debug build reports a protection by it, and its end, as QUIESCE_MISUSE_NULL.
 * To keep a protection, keep or move the hazard_pointer: an address that is only copied into
 * another one may be missed by a scan.  Any thread may destroy it, also one that exits. */
class hazard_pointer {
public:
	/* Always inlined, so that the slot stays in a register: nothing takes the address of *this. */
	[[gnu::__always_inline__]] hazard_pointer() noexcept : slot(nullptr) {}
	[[gnu::__always_inline__]] hazard_pointer(hazard_pointer &&other) noexcept : slot(std::exchange(other.slot, nullptr)) {}
	[[gnu::__always_inline__]] ~hazard_pointer() { ::hazptr_free(nullptr, slot); }

	[[gnu::__always_inline__]] hazard_pointer &operator=(hazard_pointer &&other) noexcept
	{
		if (this != &other) {
			::hazptr_free(nullptr, slot);
			slot = std::exchange(other.slot, nullptr);
		}
		return *this;
	}

	[[__nodiscard__]] bool empty() const noexcept { return !slot; }

	/* raw: the parameter's type is the standard's. */
	template<class T> [[__nodiscard__, gnu::__always_inline__]] T *protect(const std::atomic<T *> &src) noexcept
	{
		if (quiesce__hazptr_fast_allowed()) {
			T *ptr = src.load(std::memory_order_relaxed); /* Relaxed: only the second load is used. */

			if (quiesce_likely(attempt<true>(ptr, src)))
				return ptr;
		}
		return QUIESCE__SLOT_USED(slot, "hazard_pointer::protect()") ? protect_slowly(slot, src) : nullptr;
	}

	/* raw: the parameter's type is the standard's. */
	template<class T> [[__nodiscard__, gnu::__always_inline__]] bool try_protect(T *&ptr, const std::atomic<T *> &src) noexcept
	{
		if (quiesce_likely(attempt<false>(ptr, src, "hazard_pointer::try_protect()")))
			return true;
		reset_protection();
		return false;
	}

	template<class T> [[gnu::__always_inline__]] void reset_protection(const T *ptr) noexcept
	{
		if (QUIESCE__SLOT_USED(slot, "hazard_pointer::reset_protection()"))
			quiesce__hazptr_set(slot, detail::hazard_address(ptr));
	}

	[[gnu::__always_inline__]] void reset_protection(std::nullptr_t = nullptr) noexcept { ::hazptr_clear(slot); }

	void swap(hazard_pointer &other) noexcept { std::swap(slot, other.slot); }

private:
	::hazptr_t *slot;

	/* Two arguments, so that no initialiser of a caller selects this constructor. */
	[[gnu::__always_inline__]] hazard_pointer(::hazptr_t *owned, detail::hazard_access) noexcept : slot(owned) {}

	/* True if the slot protects @ptr and @src still has that value; else @ptr becomes the value
	 * of @src.  The debug build reports an empty hazard_pointer; after that @ptr is null. */
	/* raw: the parameter's type is the standard's. */
	template<bool Quiet, class T>
	[[gnu::__always_inline__]] bool attempt(T *&ptr, const std::atomic<T *> &src,
						__attribute__((__unused__)) const char *call = "hazard_pointer::protect()") noexcept
	{
		/* A number: it may be a pointer to an object that was freed. */
		auto old = reinterpret_cast<std::uintptr_t>(ptr);

		if (!QUIESCE__SLOT_USED(slot, call)) {
			ptr = nullptr;
			return true;
		}
		if constexpr (Quiet)
			quiesce__hazptr_set_fast(slot, detail::hazard_address(ptr));
		else
			reset_protection(ptr);
		ptr = src.load(std::memory_order_acquire); /* SH3, with the publishing store */
		return reinterpret_cast<std::uintptr_t>(ptr) == old;
	}

	/* raw: the parameter's type is the standard's. */
	template<class T>
	[[gnu::__cold__, gnu::__noinline__]] static T *protect_slowly(::hazptr_t *slot, const std::atomic<T *> &src) noexcept
	{
		hazard_pointer borrowed(slot, detail::hazard_access());
		T *ptr;

		do
			ptr = src.load(std::memory_order_relaxed); /* Relaxed: only the second load is used. */
		while (!borrowed.attempt<false>(ptr, src));
		borrowed.slot = nullptr;
		return ptr;
	}

	friend hazard_pointer make_hazard_pointer();
#if __cplusplus >= 202002L
	friend void make_hazard_pointer_batch(std::span<hazard_pointer>);
#endif
	template<std::size_t> friend class hazard_pointer_array;
};

/** make_hazard_pointer - return a hazard_pointer that owns a slot.
 * Cost: as hazptr_alloc(NULL).  Throws: std::bad_alloc; a build without exceptions aborts. */
[[__nodiscard__, gnu::__always_inline__]] inline hazard_pointer make_hazard_pointer()
{
	::hazptr_t *slot = ::hazptr_alloc(nullptr);

	if (quiesce_unlikely(!slot))
		detail::throw_bad_alloc();
	return { slot, detail::hazard_access() };
}

inline void swap(hazard_pointer &a, hazard_pointer &b) noexcept { a.swap(b); }

#if __cplusplus >= 202002L
inline void clear_hazard_pointer_batch(std::span<hazard_pointer> batch) noexcept
{
	for (hazard_pointer &h : batch)
		h = hazard_pointer();
}

/* New slots carry a mark until all are made, so that on failure only the new ones are freed again. */
inline void make_hazard_pointer_batch(std::span<hazard_pointer> batch)
{
	constexpr std::uintptr_t mark = 1;
	auto number = [](const hazard_pointer &h) { return reinterpret_cast<std::uintptr_t>(h.slot); };
	bool all = true;

	for (hazard_pointer &h : batch) {
		::hazptr_t *slot = h.slot ? nullptr : ::hazptr_alloc(nullptr);

		all = h.slot || slot;
		if (!all)
			break;
		if (slot)
			h.slot = reinterpret_cast<::hazptr_t *>(reinterpret_cast<std::uintptr_t>(slot) | mark);
	}
	for (hazard_pointer &h : batch)
		if (number(h) & mark) {
			h.slot = reinterpret_cast<::hazptr_t *>(number(h) & ~mark);
			if (!all)
				h = hazard_pointer();
		}
	if (!all)
		detail::throw_bad_alloc();
}
#endif

/* ---- extensions ---- */

/** hazard_pointer_array - N hazard_pointers that are made and freed together, such as those of a
 * walk.
 *
 * Cost: one call.  Throws: as make_hazard_pointer(). */
template<std::size_t N> class hazard_pointer_array {
public:
	hazard_pointer_array()
	{
		::hazptr_t *taken[N];

		if (quiesce_unlikely(!::hazptr_alloc_batch(nullptr, taken, N)))
			detail::throw_bad_alloc();
		for (std::size_t i = 0; i < N; i++)
			array[i] = hazard_pointer(taken[i], detail::hazard_access());
	}
	hazard_pointer_array(const hazard_pointer_array &) = delete;
	hazard_pointer_array &operator=(const hazard_pointer_array &) = delete;

	[[__nodiscard__]] hazard_pointer &operator[](std::size_t i) noexcept { return array[i]; }
	[[__nodiscard__]] static constexpr std::size_t size() noexcept { return N; }
	hazard_pointer *begin() noexcept { return array; }
	hazard_pointer *end() noexcept { return array + N; }

private:
	static_assert(N != 0);
	hazard_pointer array[N];
};

/** hazard_pointer_cohort - objects that are retired together, and waited for together.
 *
 * Its destructor waits, like synchronize(), until everything that was retired into it has been
 * reclaimed; so it may not run while the thread protects one of the objects, nor in a deleter of
 * one of them.  It may run in other deleters: a class whose objects are retired may have a cohort
 * as a member. */
class hazard_pointer_cohort {
public:
	hazard_pointer_cohort() noexcept = default;
	hazard_pointer_cohort(const hazard_pointer_cohort &) = delete;
	hazard_pointer_cohort &operator=(const hazard_pointer_cohort &) = delete;
	~hazard_pointer_cohort() { synchronize(); }

	void synchronize() noexcept { ::synchronize_hazptr_cohort(&cohort); }

private:
	::hazptr_cohort cohort = HAZPTR_COHORT_INIT;

	template<class, class> friend class hazard_pointer_obj_base;
};

template<class T, class D> void hazard_pointer_obj_base<T, D>::retire(hazard_pointer_cohort &into, D d) noexcept
{
	detail::require_hazard_protectable<T>();
	quiesce__deleter = std::move(d);
	::call_hazptr_cohort(&into.cohort, &quiesce__head.head, quiesce__reclaim);
}

/** hazard_pointer_clean_up - wait until everything that was retired before the call has been
 * reclaimed: hazptr_barrier(). */
inline void hazard_pointer_clean_up() noexcept { ::hazptr_barrier(); }

/** hazard_pointer_try_clean_up - reclaim what was retired before the call, except objects that are
 * protected, by the caller too: hazptr_try_barrier().
 * Return: true: no such object is left. */
inline bool hazard_pointer_try_clean_up() noexcept { return ::hazptr_try_barrier(); }

} // namespace quiesce

#endif
