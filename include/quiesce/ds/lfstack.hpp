/* SPDX-License-Identifier: MIT */
/* quiesce/ds/lfstack.hpp - lfstack.h with typed objects, in namespace quiesce; C++17 and later.
 *
 *	struct job : quiesce::rcu_obj_base<job> { lfs_node node; };
 *	static constinit quiesce::lfstack<&job::node> jobs;
 *
 *	jobs.push(*new job);                                    // any thread
 *	job *mine = nullptr;
 *	{
 *		std::scoped_lock section(quiesce::rcu_default_domain());
 *		mine = jobs.pop();                              // newest first
 *	}
 *	if (mine)
 *		mine->retire();                                 // not delete: another pop may be reading its link
 *
 * The objects belong to the caller.  Concurrent calls, context, cost and order are those of
 * lfstack.h.  Nothing throws.
 */
#ifndef QUIESCE_DS_LFSTACK_HPP
#define QUIESCE_DS_LFSTACK_HPP

#include <quiesce/ds/lfstack.h>

#if !defined(__cplusplus) || __cplusplus < 201703L
#error "quiesce/ds/lfstack.hpp needs C++17; lfstack.h is for C and for C++11"
#endif

#include <quiesce/detail/popped.hpp>
#include <quiesce/ds/rculist.hpp>

namespace quiesce {

/* Private. */
template <auto Member, class T> struct lfstack_way {
	using node = ::lfs_node;
	using object = T;
	static node *below(node *at) noexcept { return quiesce__lfs_below(at); }
	static T *entry(node *at) noexcept { return static_cast<T *>(quiesce__entry_at(at, list_offset<Member, T>())); }
};

/** lfstack - a stack of objects whose nodes are the member @Member.
 * @T: the type of the objects, if not the class that has the member: one that derives from it. */
template <auto Member, class T = typename list_member<decltype(Member)>::object>
class lfstack {
	static_assert(std::is_same_v<typename list_member<decltype(Member)>::node, ::lfs_node>, "the member is a lfs_node");
	using way = lfstack_way<Member, T>;

public:
	using range = popped_view<way>;

	constexpr lfstack() noexcept = default;
	lfstack(const lfstack &) = delete;
	lfstack &operator=(const lfstack &) = delete;

	/** push - push an object; lock-free.  False: the stack was empty. */
	bool push(T &object) noexcept { return ::lfs_push(&stack_, &(object.*Member)); }

	/** pop - pop the newest object; nullptr: there is none.  In a section, or serialised. */
	T *pop() noexcept
	{
		::lfs_node *node = ::lfs_pop(&stack_);

		return node ? way::entry(node) : nullptr;
	}

	/** pop_all - pop all objects, newest first.  The body may hand the current object over. */
	range pop_all() noexcept { return range(quiesce__lfs_first(::lfs_pop_all(&stack_))); }

	bool empty() const noexcept { return ::lfs_empty(&stack_); }
	::lfs_stack *native_handle() noexcept { return &stack_; }

private:
	::lfs_stack stack_ = LFS_STACK_INIT;
};

} // namespace quiesce

#endif
