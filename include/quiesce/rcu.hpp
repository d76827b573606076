/* SPDX-License-Identifier: MIT */
/* quiesce/rcu.hpp - RCU as C++26 has it in <rcu>, in namespace quiesce; for C++17 and newer.
 *
 * Use for objects that C++ code owns; it may be mixed with rcu.h, and a program that is written to
 * this header moves to std:: by changing a namespace.
 *
 *	#include <atomic>
 *	#include <mutex>
 *
 *	struct config : quiesce::rcu_obj_base<config> { int limit; };
 *	std::atomic<config *> current;
 *
 *	{                                                               // reader
 *		std::scoped_lock section(quiesce::rcu_default_domain());
 *		if (config *p = current.load())
 *			use(p->limit);
 *	}
 *
 *	if (config *old = current.exchange(fresh))                      // updater; does not wait for readers
 *		old->retire();
 *
 * Meaning, requirements and exceptions are those of the working draft, [saferecl.rcu]; order is
 * that of rcu.h.  Extension: rcu_reader.  docs/cpp.md lists the choices that the draft leaves to
 * the implementation.
 *
 * quiesce::rcu_barrier() is ::rcu_barrier() of rcu.h, so that a call after "using namespace quiesce"
 * needs no qualification.
 */
#ifndef QUIESCE_RCU_HPP
#define QUIESCE_RCU_HPP

#include <quiesce/rcu.h>

#if !defined(__cplusplus) || __cplusplus < 201703L
#error "quiesce/rcu.hpp needs C++17; rcu.h is for C and for C++11"
#endif

#include <memory>
#include <new>
#include <type_traits>
#include <utility>

/* The draft gives __cpp_lib_rcu this value. */
#define QUIESCE_CPP_LIB_RCU 202306L

namespace quiesce {

template<class T, class D = std::default_delete<T>> class rcu_obj_base;
class rcu_domain;
rcu_domain &rcu_default_domain() noexcept;
template<class T, class D> class hazard_pointer_obj_base;

/** rcu_domain - the sections of rcu.h as a lockable object; lock() is rcu_read_lock().
 * There is one object, rcu_default_domain(). */
class rcu_domain {
public:
	rcu_domain(const rcu_domain &) = delete;
	rcu_domain &operator=(const rcu_domain &) = delete;

	void lock() noexcept { ::rcu_read_lock(); }
	bool try_lock() noexcept
	{
		::rcu_read_lock();
		return true;
	}
	void unlock() noexcept { ::rcu_read_unlock(); }

private:
	constexpr rcu_domain() noexcept = default;
	friend rcu_domain &rcu_default_domain() noexcept;
};

/* Visible, so that all parts of a program use one object. */
[[gnu::__visibility__("default")]] inline rcu_domain &rcu_default_domain() noexcept
{
	static rcu_domain domain;

	return domain;
}

/** rcu_synchronize - synchronize_rcu().  Not in a region of RCU protection (reported, aborts). */
inline void rcu_synchronize(rcu_domain & = rcu_default_domain()) noexcept { ::synchronize_rcu(); }

/** rcu_barrier - ::rcu_barrier(): neither in a region nor in a deleter (reported, aborts).
 * Without an argument it is that function itself: two of the same parameters would be ambiguous. */
using ::rcu_barrier;
inline void rcu_barrier(rcu_domain &) noexcept { ::quiesce_rcu_barrier(); }

namespace detail {

/* Ends a section that a C function has begun, also if an exception passes. */
struct leave_section {
	leave_section() = default;
	leave_section(const leave_section &) = delete;
	~leave_section() { ::rcu_read_unlock(); }
};

/* The base that a class derives from: deduced only if there is one such base, usable only if it is
 * public. */
template<class T, class D> rcu_obj_base<T, D> *rcu_base(rcu_obj_base<T, D> *);
template<class T> using rcu_base_of = decltype(detail::rcu_base(static_cast<T *>(nullptr)));

template<class Base, class T> inline constexpr bool rcu_base_is_for = false;
template<class D, class T> inline constexpr bool rcu_base_is_for<rcu_obj_base<T, D> *, T> = true;

template<class T, class = void> inline constexpr bool rcu_protectable = false;
template<class T> /* A virtual base has no cast to T. */
inline constexpr bool rcu_protectable<T, std::void_t<decltype(static_cast<T *>(detail::rcu_base(std::declval<T *>())))>> =
	std::is_class_v<T> && rcu_base_is_for<rcu_base_of<T>, T>;

/* The requirements on T of a container that is read in regions of RCU and retires its objects: the
 * retire() of a T is that of a rcu_obj_base, and deletes the whole T; and no reader protects a T by
 * a hazard pointer, for which that retire() would not wait. */
template<class T, class B, class D>
std::bool_constant<std::is_same_v<B, T> || std::has_virtual_destructor_v<B> || !std::is_same_v<D, std::default_delete<B>>>
rcu_retires_whole(rcu_obj_base<B, D> *);
template<class T, class D> void hazard_base_of_retired(const hazard_pointer_obj_base<T, D> *);
template<class T, class = void> inline constexpr bool rcu_is_retired_whole = false;
template<class T>
inline constexpr bool rcu_is_retired_whole<T, std::void_t<decltype(detail::rcu_retires_whole<T>(std::declval<T *>()))>> =
	decltype(detail::rcu_retires_whole<T>(std::declval<T *>()))::value;
template<class T, class = void> inline constexpr bool rcu_has_hazard_base = false;
template<class T>
inline constexpr bool rcu_has_hazard_base<T, std::void_t<decltype(detail::hazard_base_of_retired(std::declval<T *>()))>> = true;
template<class T> inline constexpr bool rcu_retirable = rcu_is_retired_whole<T> && !rcu_has_hazard_base<T>;

/* The memory that rcu_retire() allocates. */
template<class T, class D> struct rcu_node {
	::rcu_head head = { nullptr, nullptr };
	T *object;
	[[no_unique_address]] D deleter;

	rcu_node(T *p, D &&d) : object(p), deleter(std::move(d)) {}

	static void reclaim(::rcu_head *head) noexcept
	{
		auto *node = reinterpret_cast<rcu_node *>(head);

		node->deleter(node->object);
		delete node;
	}

	static constexpr std::size_t bytes() noexcept
	{
		if constexpr (std::is_same_v<D, std::default_delete<T>>)
			return sizeof(rcu_node) + sizeof(T);
		else
			return sizeof(rcu_node) + QUIESCE_OBJECT_BYTES; /* T need not be complete */
	}
};

} // namespace detail

/** rcu_obj_base - base of classes whose objects can be retired without an allocation.
 *
 * retire() is call_rcu_sized(), and deleters run in a worker thread.  A deleter with state is part
 * of the object that it deletes, as in the draft.  The base is trivially copyable if D is, so a
 * copy of a whole object reads words that the library writes while another thread retires it. */
template<class T, class D> class rcu_obj_base {
public:
	void retire(D d = D(), rcu_domain & = rcu_default_domain()) noexcept
	{
		static_assert(sizeof(T) != 0, "T must be complete");
		static_assert(detail::rcu_protectable<T>,
			      "T must be rcu-protectable: one base rcu_obj_base<T, D>, public and not virtual, and no other");
		quiesce__deleter = std::move(d);
		::call_rcu_sized(&quiesce__head, quiesce__reclaim, sizeof(T));
	}

protected:
	rcu_obj_base() = default;
	rcu_obj_base(const rcu_obj_base &) = default;
	rcu_obj_base(rcu_obj_base &&) = default;
	rcu_obj_base &operator=(const rcu_obj_base &) = default;
	rcu_obj_base &operator=(rcu_obj_base &&) = default;
	~rcu_obj_base() = default;

private:
	/* Reserved names, which no derived class uses by accident.  The head is first: it has the
	 * address of the base. */
	::rcu_head quiesce__head = { nullptr, nullptr };
	[[no_unique_address]] D quiesce__deleter{};

	static void quiesce__reclaim(::rcu_head *head) noexcept
	{
		auto *base = reinterpret_cast<rcu_obj_base *>(head);

		base->quiesce__deleter(static_cast<T *>(base));
	}
};

/** rcu_retire - retire an object of any type, which takes an allocation.
 * Throws: std::bad_alloc, or what the move of @d throws; then nothing is scheduled. */
template<class T, class D = std::default_delete<T>> void rcu_retire(T *p, D d = D(), rcu_domain & = rcu_default_domain())
{
	using node_type = detail::rcu_node<T, D>;

	static_assert(std::is_move_constructible_v<D>, "D must be move-constructible");
	static_assert(std::is_invocable_v<D &, T *&>, "d(p) must be well-formed");
	auto *node = new node_type(p, std::move(d));

	::call_rcu_sized(&node->head, node_type::reclaim, node_type::bytes());
}

/** rcu_reader - extension: a read-side section as long as its scope.
 *	quiesce::rcu_reader section; */
class [[__nodiscard__]] rcu_reader {
public:
	rcu_reader() noexcept { ::rcu_read_lock(); }
	rcu_reader(const rcu_reader &) = delete;
	rcu_reader &operator=(const rcu_reader &) = delete;
	~rcu_reader() { ::rcu_read_unlock(); }
};

} // namespace quiesce

#endif
