/* SPDX-License-Identifier: MIT */
/* quiesce/shazptr.hpp - guards of shazptr.h as objects that clear themselves, in namespace quiesce;
 * for C++17 and newer.
 *
 * Updaters call synchronize_shazptr() of that header, or synchronize() of the guards' type.
 *
 *	std::atomic<config *> current;
 *
 *	quiesce::shazptr guard(current);                // reader
 *	if (guard)
 *		use(guard->limit);
 *
 *	config *old = current.exchange(fresh);          // updater
 *	quiesce::shazptr<config>::synchronize(old);
 *	delete old;
 *
 * An object with several bases has several addresses.  Readers protect the address in the
 * std::atomic, so the updater must pass a pointer of the same type.  shazptr<T>::synchronize()
 * converts a pointer to a class that derives from T, as a store to the std::atomic does;
 * synchronize_shazptr() does not convert.
 */
#ifndef QUIESCE_SHAZPTR_HPP
#define QUIESCE_SHAZPTR_HPP

#include <quiesce/shazptr.h>

#if !defined(__cplusplus) || __cplusplus < 201703L
#error "quiesce/shazptr.hpp needs C++17; shazptr.h is for C and for C++11"
#endif

#include <atomic>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace quiesce {

/** shazptr - a guard that its destructor clears; it may be moved, and is not copied.
 *
 * Cost, order and contexts: as shazptr_protect() and shazptr_clear().  A guard that was moved to
 * another thread is cleared there; call detach() before the move, for debug builds. */
template<class T> class [[__nodiscard__]] shazptr {
public:
	/* An empty guard protects nothing. */
	[[gnu::__always_inline__]] shazptr() noexcept {}

	/* Load the pointer and protect its object; the guard is empty only if that is null. */
	/* raw: the type in which C++ programs publish pointers. */
	[[gnu::__always_inline__]] explicit shazptr(const std::atomic<T *> &src) noexcept
	{
		::shazptr_guard fetched;

		while (quiesce_unlikely(!attempt(src, fetched)))
			;
		guard = fetched;
	}

	[[gnu::__always_inline__]] shazptr(shazptr &&other) noexcept : guard(std::exchange(other.guard, {})) {}
	[[gnu::__always_inline__]] ~shazptr() { ::shazptr_clear(guard); }

	[[gnu::__always_inline__]] shazptr &operator=(shazptr &&other) noexcept
	{
		if (this != &other) {
			::shazptr_clear(guard);
			guard = std::exchange(other.guard, {});
		}
		return *this;
	}

	/* Protect an address that is known by other means, as shazptr_acquire() does. */
	static shazptr holding(T *ptr) noexcept
	{
		shazptr made;

		made.guard = ::shazptr_acquire(const_cast<const std::remove_cv_t<T> *>(ptr));
		return made;
	}

	/* Wait for the guards of @ptr, converted to their type: synchronize_shazptr(). */
	static void synchronize(T *ptr) noexcept { ::synchronize_shazptr(const_cast<const std::remove_cv_t<T> *>(ptr)); }

	/* Make one attempt; the guard is empty if the pointer was null or changed meanwhile. */
	/* raw: the type in which C++ programs publish pointers. */
	static shazptr try_protect(const std::atomic<T *> &src) noexcept
	{
		shazptr made;

		attempt(src, made.guard);
		return made;
	}

	T *get() const noexcept { return static_cast<T *>(guard.ptr); }
	T *operator->() const noexcept { return get(); }
	std::add_lvalue_reference_t<T> operator*() const noexcept { return *get(); }
	explicit operator bool() const noexcept { return guard.ptr != nullptr; }

	/* End the protection. */
	void reset() noexcept { ::shazptr_clear(std::exchange(guard, {})); }
	/* Declare that another thread will clear the guard: shazptr_detach(). */
	void detach() noexcept { ::shazptr_detach(guard); }
	/* Return the protection as a guard of shazptr.h, which the caller clears. */
	::shazptr_guard release() noexcept { return std::exchange(guard, {}); }

	void swap(shazptr &other) noexcept { std::swap(guard, other.guard); }
	friend void swap(shazptr &a, shazptr &b) noexcept { a.swap(b); }

private:
	::shazptr_guard guard = { nullptr, nullptr };

	/* True if the pointer did not change meanwhile; else @ret_guard is empty. */
	/* raw: the type in which C++ programs publish pointers. */
	[[gnu::__always_inline__]] static bool attempt(const std::atomic<T *> &src, ::shazptr_guard &ret_guard) noexcept
	{
		/* Relaxed: only the second load is used. */
		T *first = src.load(std::memory_order_relaxed), *again;

		ret_guard = ::shazptr_acquire(const_cast<const std::remove_cv_t<T> *>(first));
		again = src.load(std::memory_order_acquire); /* SH3, with the caller's publication */
		/* Compared as numbers: the first may be a pointer to an object that was freed. */
		if (quiesce_unlikely(reinterpret_cast<std::uintptr_t>(again) != reinterpret_cast<std::uintptr_t>(first))) {
			::shazptr_clear(ret_guard);
			ret_guard = { nullptr, nullptr };
			return false;
		}
		ret_guard.ptr = const_cast<std::remove_cv_t<T> *>(again);
		return true;
	}
};

} // namespace quiesce

#endif
