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
 * hazard_pointer_try_clean_up(), hazard_pointer_array, hazard_pointer_view.  docs/cpp.md lists the
 * choices that the draft leaves to the implementation.
 *
 * A slot holds the address of the object's hazptr_head, which is the first member of its base.  This
 * header contains no logic: everything is an inline or a call of hazptr.h.
 */
#ifndef QUIESCE_HAZPTR_HPP
#define QUIESCE_HAZPTR_HPP

#include <quiesce/detail/hazptr_slot.hpp>

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

/* A class derived from @T.  Its operator delete is ambiguous if @T has one of any form; and a
 * std::default_delete of @T is made of that of this class, unless the program has specialised it. */
struct hazard_delete {
	static void operator delete(void *);
};
template<class T> struct hazard_derived : T, hazard_delete {};
template<class T, class = void> inline constexpr bool has_own_delete = true;
template<class T> inline constexpr bool has_own_delete<T, std::void_t<decltype(&hazard_derived<T>::operator delete)>> = false;

/* True if @D ends an object by nothing but the global operator delete, which frees its memory.  False
 * for a final class, of which that is not known. */
template<class T, class D> constexpr bool only_frees()
{
	if constexpr (std::is_same_v<D, std::default_delete<T>> && std::is_trivially_destructible_v<T> && !std::is_final_v<T>)
		return !has_own_delete<T> && std::is_constructible_v<D, const std::default_delete<hazard_derived<T>> &>;
	else
		return false;
}

} // namespace detail

/** hazard_pointer_obj_base - base of classes whose objects can be protected and retired.
 *
 * retire() may run deleters before it returns, of this object and of others that the calling thread
 * has retired, as the draft allows: it is call_hazptr_inline().  So the caller must hold
 * no lock that a deleter or destructor takes.  retire_to_worker() never runs any: it is
 * call_hazptr(), and leaves all deleters to a thread of the library.  Both may be used together,
 * also for one class.
 * A deleter with state is part of the object that it deletes, as in the draft.
 * An object of a class that is not final, with a trivial destructor and no operator delete of its
 * own, whose deleter is std::default_delete, is only memory: retire() costs as much as
 * kfree_hazptr() then.  It calls the global operator delete, also one that the program has replaced,
 * in the thread's state of cancellation; that must not end the thread.  (A std::default_delete that
 * the program has specialised runs as any other deleter, if it does not convert as the original.) */
template<class T, class D> class hazard_pointer_obj_base {
public:
	void retire(D d = D()) noexcept
	{
		detail::require_hazard_protectable<T>();
		quiesce__deleter = std::move(d);
		if constexpr (detail::only_frees<T, D>())
			QUIESCE__CALL_HAZPTR_FREEING(&quiesce__head.head, quiesce__reclaim, sizeof(T));
		else
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

/** hazard_pointer_view - Extension: the slot of a hazard_pointer, which still owns it.
 *
 * For walks along lists and trees, which take turns with several slots: views are values, which
 * compilers keep in registers, as hazptr_t * in C.  A hazard_pointer that is a member of an object,
 * an element of an array or a reference is in memory, and its slot's address is loaded again after
 * each protection, which is a barrier for the compiler; the store has to wait for that load.
 *
 *	quiesce::hazard_pointer_view here = h[0].view(), ahead = h[1].view();   // before the loop
 *	next = ahead.protect(node->next);       // in it; then: is the node still linked?
 *	std::swap(here, ahead);
 *
 * A view is used no longer than the hazard_pointer has the slot: not after it was destroyed, moved
 * from, assigned to or swapped.  The members have the meaning of those of hazard_pointer. */
class hazard_pointer_view {
public:
	/* raw: the parameter's type is the standard's. */
	template<class T> [[__nodiscard__, gnu::__always_inline__]] T *protect(const std::atomic<T *> &src) const noexcept
	{
		return detail::hazard_protect(slot, src, "hazard_pointer_view::protect()");
	}

	/* raw: the parameter's type is the standard's. */
	template<class T> [[__nodiscard__, gnu::__always_inline__]] bool try_protect(T *&ptr, const std::atomic<T *> &src) const noexcept
	{
		return detail::hazard_try_protect(slot, ptr, src, "hazard_pointer_view::try_protect()");
	}

	template<class T> [[gnu::__always_inline__]] void reset_protection(const T *ptr) const noexcept
	{
		detail::hazard_set(slot, ptr, "hazard_pointer_view::reset_protection()");
	}

	[[gnu::__always_inline__]] void reset_protection(std::nullptr_t = nullptr) const noexcept { ::hazptr_clear(slot); }

private:
	::hazptr_t *slot;

	[[gnu::__always_inline__]] explicit hazard_pointer_view(::hazptr_t *viewed) noexcept : slot(viewed) {}

	friend class hazard_pointer;
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
		return detail::hazard_protect(slot, src, "hazard_pointer::protect()");
	}

	/* raw: the parameter's type is the standard's. */
	template<class T> [[__nodiscard__, gnu::__always_inline__]] bool try_protect(T *&ptr, const std::atomic<T *> &src) noexcept
	{
		return detail::hazard_try_protect(slot, ptr, src, "hazard_pointer::try_protect()");
	}

	template<class T> [[gnu::__always_inline__]] void reset_protection(const T *ptr) noexcept
	{
		detail::hazard_set(slot, ptr, "hazard_pointer::reset_protection()");
	}

	[[gnu::__always_inline__]] void reset_protection(std::nullptr_t = nullptr) noexcept { ::hazptr_clear(slot); }

	void swap(hazard_pointer &other) noexcept { std::swap(slot, other.slot); }

	/* Extension: the slot of this hazard_pointer, for a walk. */
	[[__nodiscard__, gnu::__always_inline__]] hazard_pointer_view view() const noexcept { return hazard_pointer_view(slot); }

private:
	::hazptr_t *slot;

	/* Two arguments, so that no initialiser of a caller selects this constructor. */
	[[gnu::__always_inline__]] hazard_pointer(::hazptr_t *owned, detail::hazard_access) noexcept : slot(owned) {}

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
