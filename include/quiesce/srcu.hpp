/* SPDX-License-Identifier: MIT */
/* quiesce/srcu.hpp - domains of srcu.h and their sections as objects, in namespace quiesce; C++17
 * and later.
 *
 * Use where readers sleep, stay in a section for long, or end it in another thread; else use
 * rcu.hpp.
 *
 *	struct config { int limit; };
 *	std::atomic<config *> current;
 *	static quiesce::srcu_domain configs("configs");
 *
 *	{                                                       // reader
 *		quiesce::srcu_reader section(configs);
 *		use(current.load()->limit);
 *	}
 *
 *	configs.retire(current.exchange(fresh));                // updater; does not wait for readers
 *
 * Ordering is that of srcu.h.
 */
#ifndef QUIESCE_SRCU_HPP
#define QUIESCE_SRCU_HPP

#include <quiesce/rcu.hpp>
#include <quiesce/srcu.h>

#include <memory>
#include <type_traits>
#include <utility>

namespace quiesce {

/** srcu_domain - a domain of SRCU.
 *
 * Its counters are allocated at first use, so it may be static; the constructor does not fail. */
class srcu_domain {
public:
	/* @name: for reports, not copied. */
	constexpr explicit srcu_domain(const char *name = "srcu_domain") noexcept
		: domain{ 0, { 0, 0 }, { 0, 0 }, { 0, 0 }, { nullptr }, name, { 0 }, { { 0 } } }
	{
	}
	srcu_domain(const srcu_domain &) = delete;
	srcu_domain &operator=(const srcu_domain &) = delete;
	/* Waits until all retired objects have been reclaimed.  Misuse: with readers inside:
	 * reported, aborts. */
	~srcu_domain()
	{
		::srcu_barrier(&domain);
		::cleanup_srcu_struct(&domain);
	}

	/* None of these in a section of this domain (reported by the debug build); barrier() not in
	 * a deleter either (reported, aborts). */
	void synchronize() noexcept { ::synchronize_srcu(&domain); }
	void synchronize_expedited() noexcept { ::synchronize_srcu_expedited(&domain); }
	void(barrier)() noexcept { ::srcu_barrier(&domain); }

	/** retire - call @d(@p) after a grace period of this domain, in another thread.
	 * As rcu_retire(); allocates memory.
	 * Throws: std::bad_alloc, or what the move of @d throws; then @d will not be called. */
	template<class T, class D = std::default_delete<T>> void retire(T *p, D d = D())
	{
		using node_type = detail::rcu_node<T, D>;

		static_assert(std::is_move_constructible_v<D>, "D must be move-constructible");
		static_assert(std::is_invocable_v<D &, T *&>, "d(p) must be well-formed");
		auto *node = new node_type(p, std::move(d));

		::call_srcu_sized(&domain, &node->head, node_type::reclaim, node_type::bytes());
	}

	/* Returns the domain for the other calls of srcu.h. */
	::srcu_struct *native_handle() noexcept { return &domain; }

private:
	::srcu_struct domain;
};

/** srcu_reader - a section that lasts as long as its scope, in one thread: srcu_read_lock(). */
class [[__nodiscard__]] srcu_reader {
public:
	explicit srcu_reader(srcu_domain &in) noexcept : domain(in.native_handle()), index(::srcu_read_lock(domain)) {}
	srcu_reader(const srcu_reader &) = delete;
	srcu_reader &operator=(const srcu_reader &) = delete;
	~srcu_reader() { ::srcu_read_unlock(domain, index); }

private:
	::srcu_struct *domain;
	int index;
};

/** srcu_section - a section that may be moved, kept, and ended by any thread: srcu_down_read().
 * For coroutines that another thread may resume, for example. */
class [[__nodiscard__]] srcu_section {
public:
	/* The new object has no section. */
	constexpr srcu_section() noexcept = default;
	explicit srcu_section(srcu_domain &in) noexcept : domain(in.native_handle()), index(::srcu_down_read(domain)) {}
	srcu_section(srcu_section &&from) noexcept : domain(std::exchange(from.domain, nullptr)), index(from.index) {}
	srcu_section &operator=(srcu_section &&from) noexcept
	{
		srcu_section old(std::move(from));

		old.swap(*this);
		return *this;
	}
	~srcu_section() { end(); }

	/* Ends the section before its scope does; a second call has no effect. */
	void end() noexcept
	{
		if (auto *open = std::exchange(domain, nullptr))
			::srcu_up_read(open, index);
	}
	void swap(srcu_section &other) noexcept
	{
		std::swap(domain, other.domain);
		std::swap(index, other.index);
	}
	friend void swap(srcu_section &a, srcu_section &b) noexcept { a.swap(b); }
	explicit operator bool() const noexcept { return domain != nullptr; }

private:
	::srcu_struct *domain = nullptr;
	int index = 0;
};

} // namespace quiesce

#endif
