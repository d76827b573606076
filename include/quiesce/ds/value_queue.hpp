/* SPDX-License-Identifier: MIT */
/* quiesce/ds/value_queue.hpp - value_queue.h as queues of objects, in namespace quiesce; C++17 and
 * later.
 *
 *	quiesce::bounded_queue<job> jobs(1000);
 *
 *	jobs.push(job(7));                              // any thread; waits while it is full
 *
 *	while (std::optional<job> j = jobs.pop())       // any thread; waits while it is empty
 *		work_on(*j);
 *
 *	jobs.close();                                   // pops return what is left, then nothing
 *
 * unbounded_queue has the same members, and no limit: a push does not wait.  Names are those of
 * P0260, concurrent queues of C++; results are values of conqueue_errc, in place of exceptions.
 *
 * Objects may be of any type that can be moved and destroyed without an exception, with an alignment
 * of at most 16.  They are moved into the queue and out of it in place: in an unbounded queue inside
 * a read-side section, so their moves and destructors neither wait nor use the queue.
 * If a push fails its argument is not moved from.  An argument that is to be copied is copied before
 * the attempt, also by try_push() to a full queue.  A push to a closed queue returns closed and appends
 * nothing: check the result where another thread may close it.
 * Context, cost and order are those of value_queue.h.
 *
 * Constructors throw std::bad_alloc, and std::invalid_argument for more than 2^32 objects.  A push
 * throws what the copy or the construction of its object throws, and appends nothing.  Calls of many
 * objects throw also what an operation of the iterator or an assignment through it throws; they do
 * not say how many objects were done then.  push_many() has appended the objects before the one that
 * threw, and that one too if the increment after it threw.  pop_many() has stored the objects before
 * the one that threw; that one has left the queue and is lost; the others are still in the queue.
 * With std::back_inserter(), reserve() first.
 */
#ifndef QUIESCE_DS_VALUE_QUEUE_HPP
#define QUIESCE_DS_VALUE_QUEUE_HPP

#include <quiesce/detail/raise.hpp>
#include <quiesce/ds/value_queue.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <ratio>
#include <type_traits>
#include <utility>

namespace quiesce {

/** conqueue_errc - the result of a push or a pop.
 * busy: the queue is not empty or full, but its oldest cell is being filled or emptied. */
enum class conqueue_errc : int { success = 0, empty, full, closed, busy, timeout, no_memory };

namespace detail {

/* A time to wait, in nanoseconds; at least 1 if there is one, because 0 is not to wait. */
template <class Rep, class Period> uint64_t queue_timeout(std::chrono::duration<Rep, Period> time) noexcept
{
	using years = std::chrono::duration<double, std::ratio<31556952>>;

	if (time <= time.zero())
		return 0;
	if (std::chrono::duration_cast<years>(time).count() > 290)
		return UINT64_MAX;
	return 1 + static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
}

/* A time to wait, of which a part may be over. */
class queue_deadline {
public:
	explicit queue_deadline(uint64_t timeout_ns) noexcept : timeout_ns_(timeout_ns)
	{
		if (timeout_ns && timeout_ns != UINT64_MAX)
			begun_ = std::chrono::steady_clock::now();
	}
	uint64_t left() const noexcept
	{
		if (!timeout_ns_ || timeout_ns_ == UINT64_MAX)
			return timeout_ns_;
		std::chrono::nanoseconds gone = std::chrono::steady_clock::now() - begun_;
		return static_cast<uint64_t>(gone.count()) < timeout_ns_ ? timeout_ns_ - static_cast<uint64_t>(gone.count()) : 0;
	}

private:
	uint64_t timeout_ns_;
	std::chrono::steady_clock::time_point begun_;
};

inline conqueue_errc queue_result(int err, conqueue_errc again) noexcept
{
	switch (-err) {
	case 0: return conqueue_errc::success;
	case EAGAIN: return again;
	case EBUSY: return conqueue_errc::busy;
	case EPIPE: return conqueue_errc::closed;
	case ETIMEDOUT: return conqueue_errc::timeout;
	default: return conqueue_errc::no_memory;
	}
}

template <class T> class queue_of_values {
	static_assert(std::is_object_v<T> && std::is_nothrow_move_constructible_v<T> && std::is_nothrow_destructible_v<T>,
		      "objects are moved and destroyed in place, where an exception would leave half a cell");
	static_assert(alignof(T) <= (sizeof(T) < 16 ? 8 : 16), "cells are aligned to 8 bytes, and to 16 from 16 on");

	/* Iterators from which objects can be constructed, and to which they can be moved; the same for arrays, whose bytes are copied. */
	template <class In> using source = std::enable_if_t<std::is_constructible_v<T, decltype(*std::declval<In &>())>, int>;
	template <class Out> using sink = std::enable_if_t<std::is_assignable_v<decltype(*std::declval<Out &>()++), T>, int>;

public:
	using value_type = T;
	using native_handle_type = struct ::value_queue *;

	queue_of_values(const queue_of_values &) = delete;
	queue_of_values &operator=(const queue_of_values &) = delete;

	/* Append an object; wait while a bounded queue is full. */
	conqueue_errc push(T &&value) noexcept { return put(value, UINT64_MAX); }
	conqueue_errc push(const T &value) { return put(T(value), UINT64_MAX); }
	/* Append an object without waiting. */
	[[__nodiscard__]] conqueue_errc try_push(T &&value) noexcept { return put(value, 0); }
	[[__nodiscard__]] conqueue_errc try_push(const T &value) { return put(T(value), 0); }
	/* Append an object, waiting for at most @time. */
	template <class Rep, class Period>
	[[__nodiscard__]] conqueue_errc push_for(T &&value, std::chrono::duration<Rep, Period> time) noexcept
	{
		return put(value, queue_timeout(time));
	}
	template <class Rep, class Period>
	[[__nodiscard__]] conqueue_errc push_for(const T &value, std::chrono::duration<Rep, Period> time)
	{
		return put(T(value), queue_timeout(time));
	}
	/* Construct an object and append it; the object is constructed before the attempt, also if the queue is closed. */
	template <class... Args, std::enable_if_t<std::is_constructible_v<T, Args...>, int> = 0> conqueue_errc emplace(Args &&...args)
	{
		std::optional<T> value(std::in_place, std::forward<Args>(args)...); /* not T(...), which is a cast */

		return put(*value, UINT64_MAX);
	}

	/* Take the oldest object; wait while there is none.  Nothing: the queue is closed and empty. */
	std::optional<T> pop() noexcept { return take(UINT64_MAX, nullptr); }
	/* Take the oldest object without waiting. */
	std::optional<T> try_pop() noexcept { return take(0, nullptr); }
	std::optional<T> try_pop(conqueue_errc &ret) noexcept { return take(0, &ret); }
	/* Take the oldest object, waiting for at most @time. */
	template <class Rep, class Period> std::optional<T> pop_for(std::chrono::duration<Rep, Period> time) noexcept
	{
		return take(queue_timeout(time), nullptr);
	}
	template <class Rep, class Period>
	std::optional<T> pop_for(std::chrono::duration<Rep, Period> time, conqueue_errc &ret) noexcept
	{
		return take(queue_timeout(time), &ret);
	}

	/* Append @nr objects, copies of *@from and its successors, which are moved if @from is a std::move_iterator; wait for space.
	 * Returns how many were appended: all unless the queue is closed, or there is no memory. */
	template <class In, source<In> = 0> size_t push_many(In from, size_t nr) { return put_many(from, nr, UINT64_MAX); }
	/* The same without waiting, or waiting for at most @time. */
	template <class In, source<In> = 0> [[__nodiscard__]] size_t try_push_many(In from, size_t nr) { return put_many(from, nr, 0); }
	template <class In, class Rep, class Period, source<In> = 0>
	[[__nodiscard__]] size_t push_many_for(In from, size_t nr, std::chrono::duration<Rep, Period> time)
	{
		return put_many(from, nr, queue_timeout(time));
	}

	/* Take the oldest objects, at most @max, and move them to *@to and its successors; wait until there is one.
	 * Returns their number.  0: the queue is closed and empty. */
	template <class Out, sink<Out> = 0> [[__nodiscard__]] size_t pop_many(Out to, size_t max) { return take_many(to, max, UINT64_MAX); }
	/* The same without waiting, or waiting for at most @time: 0 if there was none. */
	template <class Out, sink<Out> = 0> [[__nodiscard__]] size_t try_pop_many(Out to, size_t max) { return take_many(to, max, 0); }
	template <class Out, class Rep, class Period, sink<Out> = 0>
	[[__nodiscard__]] size_t pop_many_for(Out to, size_t max, std::chrono::duration<Rep, Period> time)
	{
		return take_many(to, max, queue_timeout(time));
	}

	void close() noexcept { ::value_queue_close(&queue_); }
	bool is_closed() const noexcept { return ::value_queue_is_closed(&queue_); }
	/* An estimate. */
	size_t size() const noexcept { return ::value_queue_count(&queue_); }
	native_handle_type native_handle() noexcept { return &queue_; }

protected:
	explicit queue_of_values(size_t capacity) { raise(static_cast<std::errc>(-::value_queue_init(&queue_, sizeof(T), capacity))); }
	/* No thread uses the queue any more.  Objects that are still in it are destroyed. */
	~queue_of_values()
	{
		::value_queue_destroy(&queue_, std::is_trivially_destructible_v<T> ? nullptr : drop, nullptr);
	}

private:
	static void drop(void *value, void *) { std::launder(static_cast<T *>(value))->~T(); }

	/* Bytes are copied in one call; other objects are moved between the two halves of a push. */
	conqueue_errc put(T &value, uint64_t timeout_ns) noexcept
	{
		if constexpr (std::is_trivially_copyable_v<T>) {
			return queue_result(::value_queue_push_timeout(&queue_, std::addressof(value), timeout_ns), conqueue_errc::full);
		} else {
			struct ::quiesce__vq_claim claim;
			int err = ::quiesce__vq_push_begin(&queue_, timeout_ns, &claim);

			if (err)
				return queue_result(err, conqueue_errc::full);
			::new (claim.cell) T(std::move(value));
			::quiesce__vq_push_end(&queue_, &claim);
			return conqueue_errc::success;
		}
	}
	conqueue_errc put(T &&value, uint64_t timeout_ns) noexcept { return put(value, timeout_ns); }

	std::optional<T> take(uint64_t timeout_ns, conqueue_errc *ret) noexcept
	{
		struct ::quiesce__vq_claim claim;
		int err = ::quiesce__vq_pop_begin(&queue_, timeout_ns, &claim);
		std::optional<T> value;

		if (ret)
			*ret = queue_result(err, conqueue_errc::empty);
		if (err)
			return value;
		value.emplace(std::move(*std::launder(static_cast<T *>(claim.cell))));
		drop(claim.cell, nullptr);
		::quiesce__vq_pop_end(&queue_, &claim);
		return value;
	}

	/* Arrays of objects that are bytes are copied in one call. */
	template <class Iterator>
	static constexpr bool is_array = std::is_pointer_v<Iterator> && std::is_trivially_copyable_v<T> &&
					 std::is_same_v<std::remove_cv_t<std::remove_pointer_t<Iterator>>, T>;

	static size_t number_of(long got) noexcept { return got > 0 ? static_cast<size_t>(got) : 0; }

	template <class In> size_t put_many(In from, size_t nr, uint64_t timeout_ns)
	{
		if constexpr (is_array<In>) {
			return number_of(::value_queue_push_many_timeout(&queue_, from, nr, timeout_ns));
		} else {
			queue_deadline deadline(timeout_ns);
			size_t done = 0;

			for (; done < nr && put_one(*from, deadline.left()) == conqueue_errc::success; ++done)
				++from;
			return done;
		}
	}
	conqueue_errc put_one(T &&value, uint64_t timeout_ns) noexcept { return put(value, timeout_ns); }
	template <class From> conqueue_errc put_one(From &&from, uint64_t timeout_ns)
	{
		return put(T(std::forward<From>(from)), timeout_ns);
	}

	template <class Out> size_t take_many(Out to, size_t max, uint64_t timeout_ns)
	{
		if constexpr (is_array<Out>) {
			return number_of(::value_queue_pop_many_timeout(&queue_, to, max, timeout_ns));
		} else {
			size_t done = 0;

			for (; done < max; ++done) {
				std::optional<T> value = take(done ? 0 : timeout_ns, nullptr);

				if (!value)
					break;
				*to++ = std::move(*value);
			}
			return done;
		}
	}

	struct ::value_queue queue_;
};

} // namespace detail

/** bounded_queue - a queue of at most @max_elems objects, rounded up to a power of two. */
template <class T> class bounded_queue : public detail::queue_of_values<T> {
public:
	explicit bounded_queue(size_t max_elems) : detail::queue_of_values<T>(max_elems ? max_elems : 1) {}
};

/** unbounded_queue - a queue without a limit. */
template <class T> class unbounded_queue : public detail::queue_of_values<T> {
public:
	unbounded_queue() : detail::queue_of_values<T>(0) {}
};

} // namespace quiesce

#endif
