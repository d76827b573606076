/* SPDX-License-Identifier: MIT */
/* quiesce/ds/lfqueue.hpp - lfqueue.h as a queue of objects, in namespace quiesce; C++17 and later.
 *
 *	struct job : quiesce::rcu_obj_base<job> { int number; lfq_node node; };
 *	quiesce::lfqueue<&job::node> jobs;
 *
 *	{                                               // any thread
 *		std::scoped_lock section(quiesce::rcu_default_domain());
 *		jobs.enqueue(*j);
 *	}
 *	{                                               // any thread
 *		std::scoped_lock section(quiesce::rcu_default_domain());
 *		j = jobs.dequeue();
 *	}
 *	if (j) {
 *		work_on(*j);
 *		j->retire();                            // other threads may still read its node
 *	}
 *
 * The objects belong to the caller, and are of any class that has an lfq_node.  128 bytes.
 * Context, cost and order are those of lfqueue.h.
 * Nothing throws, as nothing allocates.
 */
#ifndef QUIESCE_DS_LFQUEUE_HPP
#define QUIESCE_DS_LFQUEUE_HPP

#include <quiesce/detail/entry.hpp>
#include <quiesce/ds/lfqueue.h>

#if !defined(__cplusplus) || __cplusplus < 201703L
#error "quiesce/ds/lfqueue.hpp needs C++17; lfqueue.h is for C and for C++11"
#endif

#include <type_traits>

namespace quiesce {

/** lfqueue - a queue of objects whose nodes are the member @Member.
 * @T: the type of the objects, if not the class that has the member: one that derives from it. */
template <auto Member, class T = typename list_member<decltype(Member)>::object>
class lfqueue {
	static_assert(std::is_same_v<typename list_member<decltype(Member)>::node, ::lfq_node>, "the member is a lfq_node");

public:
	using native_handle_type = struct ::lfq_queue *;

	/* Usable before any constructor has run. */
	constexpr lfqueue() noexcept = default;
	lfqueue(const lfqueue &) = delete;
	lfqueue &operator=(const lfqueue &) = delete;
	/* No thread uses the queue any more.  Objects that are still in it are not touched. */
	~lfqueue() = default;

	/* To be called in a section. */
	void enqueue(T &object) noexcept { ::lfq_enqueue(&queue_, &(object.*Member)); }
	/* Returns the oldest object; null if the queue is empty.  To be called in a section.  The
	 * node of the object must not change for a grace period. */
	T *dequeue() noexcept
	{
		::lfq_node *node = ::lfq_dequeue(&queue_);

		return node ? static_cast<T *>(quiesce__entry_at(node, list_offset<Member, T>())) : nullptr;
	}

	bool empty() const noexcept { return ::lfq_empty(&queue_); }
	native_handle_type native_handle() noexcept { return &queue_; }

private:
	struct ::lfq_queue queue_ = LFQ_INIT;
};

} // namespace quiesce

#endif
