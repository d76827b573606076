/* SPDX-License-Identifier: MIT */
/* quiesce/detail/hazptr_slot.hpp - protections by a slot, of objects with a base hazard_pointer_obj_base;
 * private, for hazptr.hpp, which is the manual.
 *
 * Always inlined, and of values: nothing takes the address of a slot's pointer, so that it stays in a
 * register. */
#ifndef QUIESCE_DETAIL_HAZPTR_SLOT_HPP
#define QUIESCE_DETAIL_HAZPTR_SLOT_HPP

#if !defined(__cplusplus) || __cplusplus < 201703L
#error "quiesce/hazptr.hpp needs C++17; hazptr.h is for C and for C++11"
#endif

#include <quiesce/hazptr.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace quiesce {

template<class T, class D> class hazard_pointer_obj_base;

namespace detail {

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
	template<class V> static ::hazptr_t *slot(V view) noexcept { return view.slot; }
};

/* The value of a slot that protects @ptr, which may point to an object that was freed. */
template<class T> std::uintptr_t hazard_address(const T *ptr) noexcept
{
	require_hazard_protectable<T>();
	return hazard_access::address(static_cast<const std::remove_pointer_t<hazard_base_of<T>> *>(ptr));
}

template<class T>
[[gnu::__always_inline__]] inline void hazard_set(::hazptr_t *slot, const T *ptr, __attribute__((__unused__)) const char *call) noexcept
{
	if (QUIESCE__SLOT_USED(slot, call))
		quiesce__hazptr_set(slot, detail::hazard_address(ptr));
}

/* True if @slot protects @ptr and @src still has that value; else @ptr becomes the value of @src.
 * The debug build reports a null @slot; after that @ptr is null. */
/* raw: the parameter's type is the standard's. */
template<bool Quiet, class T>
[[gnu::__always_inline__]] inline bool hazard_attempt(::hazptr_t *slot, T *&ptr, const std::atomic<T *> &src,
						      __attribute__((__unused__)) const char *call) noexcept
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
		quiesce__hazptr_set(slot, detail::hazard_address(ptr));
	ptr = src.load(std::memory_order_acquire); /* SH3, with the publishing store */
	return reinterpret_cast<std::uintptr_t>(ptr) == old;
}

/* raw: the parameter's type is the standard's. */
template<class T>
[[__nodiscard__, gnu::__always_inline__]] inline T *hazard_protect(::hazptr_t *slot, const std::atomic<T *> &src, const char *call) noexcept
{
	T *ptr;

	if (quiesce__hazptr_fast_allowed()) {
		ptr = src.load(std::memory_order_relaxed); /* Relaxed: only the second load is used. */
		if (quiesce_likely(detail::hazard_attempt<true>(slot, ptr, src, call)))
			return ptr;
	}
	do
		ptr = src.load(std::memory_order_relaxed); /* Relaxed: only the second load is used. */
	while (!detail::hazard_attempt<QUIESCE__LIGHT_PROMISED>(slot, ptr, src, call));
	return ptr;
}

/* raw: the parameter's type is the standard's. */
template<class T>
[[__nodiscard__, gnu::__always_inline__]] inline bool hazard_try_protect(::hazptr_t *slot, T *&ptr, const std::atomic<T *> &src,
									 const char *call) noexcept
{
	if (quiesce_likely(detail::hazard_attempt<false>(slot, ptr, src, call)))
		return true;
	quiesce__hazptr_clear(slot);
	return false;
}

} // namespace detail

} // namespace quiesce

#endif
