/* SPDX-License-Identifier: MIT */
/* quiesce/percpu_rwsem.hpp - percpu_rwsem.h as a shared mutex, in namespace quiesce; C++17 and
 * later.
 *
 * Use in place of std::shared_timed_mutex for data that are rarely written: readers share no cache
 * line.
 *
 *	struct config { int limit; };
 *	static config current;
 *	static quiesce::percpu_shared_mutex config_lock;
 *
 *	{                                               // reader
 *		std::shared_lock reading(config_lock);
 *		use(current.limit);
 *	}
 *	{                                               // writer
 *		std::unique_lock writing(config_lock);
 *		current = *fresh;
 *	}
 *
 * It meets the shared timed mutex requirements of the standard,
 * [thread.sharedtimedmutex.requirements], and std::shared_lock, std::unique_lock, std::lock_guard,
 * std::scoped_lock and std::condition_variable_any accept it.
 * Cost, order and fairness are those of percpu_rwsem.h.  In addition to the standard, any thread
 * may unlock what another one locked, so a std::shared_lock may be moved to another thread.
 */
#ifndef QUIESCE_PERCPU_RWSEM_HPP
#define QUIESCE_PERCPU_RWSEM_HPP

#include <quiesce/percpu_rwsem.h>

#if !defined(__cplusplus) || __cplusplus < 201703L
#error "quiesce/percpu_rwsem.hpp needs C++17; percpu_rwsem.h is for C and for C++11"
#endif

#include <chrono>
#include <cstdint>

namespace quiesce {

namespace detail {

/* @time in nanoseconds, rounded up; UINT64_MAX (for ever) if that does not fit.  The comparison is
 * false for NaN. */
template<class Rep, class Period> constexpr std::uint64_t at_least_ns(const std::chrono::duration<Rep, Period> &time)
{
	const long double ns = std::chrono::duration<long double, std::nano>(time).count();

	if (!(ns > 0))
		return 0;
	if (ns >= 18446744073709551615.0L)
		return UINT64_MAX;
	const auto whole = static_cast<std::uint64_t>(ns);

	return static_cast<long double>(whole) < ns ? whole + 1 : whole;
}

} // namespace detail

/** percpu_shared_mutex - a percpu_rw_semaphore that can be locked as the standard's shared timed
 * mutex.
 *
 * No call throws, except what a clock or a duration of the caller's throws; std::system_error
 * comes from the standard's guards alone.  A thread that locks a mutex that it holds waits for
 * ever: the debug build reports it.
 * try_lock() and try_lock_shared() fail only while a reader or writer that excludes them has the lock,
 * or waits for it. */
class percpu_shared_mutex {
public:
	using native_handle_type = ::percpu_rw_semaphore *;

	/* Counters are allocated at first use, so that the object can be static; does not fail. */
	constexpr percpu_shared_mutex() noexcept = default;
	percpu_shared_mutex(const percpu_shared_mutex &) = delete;
	percpu_shared_mutex &operator=(const percpu_shared_mutex &) = delete;
	/* Sleeps for at most 20 ms soon after a write.  Misuse: of a mutex that is held or waited
	 * for: reported, aborts. */
	~percpu_shared_mutex() { ::percpu_free_rwsem(&sem); }

	void lock() noexcept { ::percpu_down_write(&sem); }
	bool try_lock() noexcept { return ::percpu_down_write_trylock(&sem); }
	void unlock() noexcept { ::percpu_up_write(&sem); }

	void lock_shared() noexcept { ::percpu_down_read(&sem); }
	bool try_lock_shared() noexcept { return ::percpu_down_read_trylock(&sem); }
	void unlock_shared() noexcept { ::percpu_up_read(&sem); }

	/* The time is measured by CLOCK_MONOTONIC. */
	template<class Rep, class Period> bool try_lock_for(const std::chrono::duration<Rep, Period> &time)
	{
		return ::percpu_down_write_timeout(&sem, detail::at_least_ns(time));
	}
	template<class Rep, class Period> bool try_lock_shared_for(const std::chrono::duration<Rep, Period> &time)
	{
		return ::percpu_down_read_timeout(&sem, detail::at_least_ns(time));
	}

	/* Waits by the clock of @time: never shorter than that says, even if another clock runs
	 * faster. */
	template<class Clock, class Duration> bool try_lock_until(const std::chrono::time_point<Clock, Duration> &time)
	{
		for (auto now = Clock::now(); now < time; now = Clock::now())
			if (try_lock_for(time - now))
				return true;
		return try_lock();
	}
	template<class Clock, class Duration> bool try_lock_shared_until(const std::chrono::time_point<Clock, Duration> &time)
	{
		for (auto now = Clock::now(); now < time; now = Clock::now())
			if (try_lock_shared_for(time - now))
				return true;
		return try_lock_shared();
	}

	/* Returns the lock for the calls of percpu_rwsem.h, such as its assertions. */
	native_handle_type native_handle() noexcept { return &sem; }

private:
	::percpu_rw_semaphore sem = PERCPU_RWSEM_INIT;
};

} // namespace quiesce

#endif
