/* SPDX-License-Identifier: MIT */
/* quiesce/ds/wfcqueue.hpp - wfcqueue.h as a queue of objects, in namespace quiesce; C++17 and
 * later.
 *
 *	struct message { int number; wfcq_node node; };
 *	quiesce::wfcqueue<&message::node> mailbox;
 *	std::counting_semaphore<> something(0);
 *
 *	if (!mailbox.enqueue(*m))                       // any thread, signal handlers too
 *		something.release();                    // it was empty
 *
 *	something.acquire();                            // one thread
 *	while (message *m = mailbox.dequeue())
 *		use(*m);
 *
 * The objects belong to the caller, and are of any class that has a wfcq_node.  Head and tail are
 * in cache lines of their own: 128 bytes.
 * Exclusion, cost and order are those of wfcqueue.h.  Nothing throws.
 */
#ifndef QUIESCE_DS_WFCQUEUE_HPP
#define QUIESCE_DS_WFCQUEUE_HPP

#include <quiesce/detail/entry.hpp>
#include <quiesce/detail/range.hpp>
#include <quiesce/ds/wfcqueue.h>

#if !defined(__cplusplus) || __cplusplus < 201703L
#error "quiesce/ds/wfcqueue.hpp needs C++17; wfcqueue.h is for C and for C++11"
#endif

#include <cstddef>
#include <iterator>
#include <optional>
#include <type_traits>

namespace quiesce {

/** wfcqueue - a queue of objects whose nodes are the member @Member.
 * @T: the type of the objects, if not the class that has the member: one that derives from it. */
template <auto Member, class T = typename list_member<decltype(Member)>::object>
class wfcqueue {
	static_assert(std::is_same_v<typename list_member<decltype(Member)>::node, ::wfcq_node>, "the member is a wfcq_node");

public:
	/* For range-for, while no thread dequeues: the objects stay in the queue.  Waits for links. */
	class iterator {
	public:
		using iterator_category = std::input_iterator_tag;
		using value_type = T;
		using difference_type = std::ptrdiff_t;
		using pointer = T *;
		using reference = T &;

		iterator() noexcept = default;
		T &operator*() const noexcept { return *object_of(at_); }
		T *operator->() const noexcept { return object_of(at_); }
		iterator &operator++() noexcept
		{
			at_ = ::wfcq_next_blocking(&queue_->head_, &queue_->tail_, at_);
			return *this;
		}
		iterator operator++(int) noexcept
		{
			iterator before = *this;

			++*this;
			return before;
		}
		friend bool operator==(const iterator &a, const iterator &b) noexcept { return a.at_ == b.at_; }
		friend bool operator==(const iterator &a, detail::end_of_range) noexcept { return !a.at_; }
		QUIESCE_UNEQUAL(iterator, const iterator &)
		QUIESCE_UNEQUAL(iterator, detail::end_of_range)

	private:
		friend class wfcqueue;
		explicit iterator(const wfcqueue *of) noexcept : queue_(of), at_(::wfcq_first_blocking(&of->head_, &of->tail_)) {}

		const wfcqueue *queue_ = nullptr;
		::wfcq_node *at_ = nullptr;
	};

	/* Result of a dequeue: the object or null, and whether the queue was empty afterwards. */
	struct dequeued {
		T *object;
		bool last;
	};

	/* Usable before any constructor has run. */
	constexpr wfcqueue() noexcept : head_ WFCQ_HEAD_INIT, tail_ WFCQ_TAIL_INIT(head_) {}
	wfcqueue(const wfcqueue &) = delete;
	wfcqueue &operator=(const wfcqueue &) = delete;
	/* Objects that are still in the queue are not touched. */
	~wfcqueue() = default;

	/* Returns true if the queue had an object before. */
	bool enqueue(T &object) noexcept { return ::wfcq_enqueue(&head_, &tail_, &(object.*Member)); }

	/* The first object; null if the queue is empty.  May sleep. */
	T *dequeue() noexcept { return object_of(::wfcq_dequeue_blocking(&head_, &tail_)); }
	/* As dequeue(), but never waits; none: it would have to wait. */
	std::optional<T *> try_dequeue() noexcept
	{
		::wfcq_node *node = ::wfcq_dequeue_nonblocking(&head_, &tail_);

		return node == WFCQ_WOULDBLOCK ? std::nullopt : std::optional<T *>(object_of(node));
	}
	/* dequeue() and try_dequeue(), which also return whether the queue is empty afterwards. */
	dequeued dequeue_with_state() noexcept
	{
		int state;
		::wfcq_node *node = ::wfcq_dequeue_with_state_blocking(&head_, &tail_, &state);

		return { object_of(node), state == ::WFCQ_STATE_LAST };
	}
	std::optional<dequeued> try_dequeue_with_state() noexcept
	{
		int state;
		::wfcq_node *node = ::wfcq_dequeue_with_state_nonblocking(&head_, &tail_, &state);

		if (node == WFCQ_WOULDBLOCK)
			return std::nullopt;
		return dequeued{ object_of(node), state == ::WFCQ_STATE_LAST };
	}

	/* Moves all objects of @from, another queue, to the end of this one.  May sleep; never
	 * returns WFCQ_RET_WOULDBLOCK. */
	::wfcq_ret splice(wfcqueue &from) noexcept { return ::wfcq_splice_blocking(&head_, &tail_, &from.head_, &from.tail_); }
	::wfcq_ret try_splice(wfcqueue &from) noexcept { return ::wfcq_splice_nonblocking(&head_, &tail_, &from.head_, &from.tail_); }

	bool empty() const noexcept { return ::wfcq_empty(&head_, &tail_); }
	iterator begin() const noexcept { return iterator(this); }
	detail::end_of_range end() const noexcept { return {}; }

	::wfcq_head *native_head() noexcept { return &head_; }
	::wfcq_tail *native_tail() noexcept { return &tail_; }

private:
	static T *object_of(const ::wfcq_node *node) noexcept
	{
		return node ? static_cast<T *>(quiesce__entry_at(node, list_offset<Member, T>())) : nullptr;
	}

	alignas(QUIESCE_CACHELINE) ::wfcq_head head_;
	alignas(QUIESCE_CACHELINE) ::wfcq_tail tail_;
};

} // namespace quiesce

#endif
