/* SPDX-License-Identifier: MIT */
/* quiesce/ds/lfqueue.hpp - lfqueue.h as a queue of objects, in namespace quiesce; for C++20 and newer.
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
 *		j->retire();                            // others may still look at its node
 *	}
 *
 * The objects are the caller's; of any class that has an lfq_node.  128 bytes.  Context, cost and order are those of lfqueue.h.
 * Nothing throws, as nothing allocates.
 */
#ifndef QUIESCE_DS_LFQUEUE_HPP
#define QUIESCE_DS_LFQUEUE_HPP

#include <quiesce/detail/entry.hpp>
#include <quiesce/ds/lfqueue.h>

#if !defined(__cplusplus) || __cplusplus < 202002L
#error "quiesce/ds/lfqueue.hpp needs C++20; lfqueue.h is for C and for C++11"
#endif

#include <type_traits>

namespace quiesce {

/** lfqueue - a queue of objects whose nodes are the member @Member.
 * @T: what they are, if not the class that has the member: one that derives from it. */
template <auto Member, class T = typename list_member<decltype(Member)>::object>
	requires std::is_same_v<typename list_member<decltype(Member)>::node, ::lfq_node>
class lfqueue {
public:
	using native_handle_type = struct ::lfq_queue *;

	/* Ready before any constructor runs. */
	constexpr lfqueue() noexcept = default;
	lfqueue(const lfqueue &) = delete;
	lfqueue &operator=(const lfqueue &) = delete;
	/* Nobody is inside any more.  What is in it is forgotten. */
	~lfqueue() = default;

	/* Inside a section. */
	void enqueue(T &object) noexcept { ::lfq_enqueue(&queue_, &(object.*Member)); }
	/* The oldest object, or null: empty.  Inside a section.  Its node is left alone for a grace period. */
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
