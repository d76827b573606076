/* SPDX-License-Identifier: MIT */
/* quiesce/ds/wfstack.hpp - wfstack.h with typed objects, in namespace quiesce; C++17 and later.
 *
 *	struct buffer { int number; wfs_node node; };
 *	static constinit quiesce::wfstack<&buffer::node> free_list;
 *
 *	if (!free_list.push(b))                 // any thread; was it empty?
 *		wake();
 *	for (buffer &each : free_list.pop_all())        // newest first
 *		recycle(each);                          // which may push or free it
 *
 * The objects belong to the caller.  Concurrent calls, context, cost and order are those of
 * wfstack.h.  Nothing throws. */
#ifndef QUIESCE_DS_WFSTACK_HPP
#define QUIESCE_DS_WFSTACK_HPP

#include <quiesce/ds/wfstack.h>

#if !defined(__cplusplus) || __cplusplus < 201703L
#error "quiesce/ds/wfstack.hpp needs C++17; wfstack.h is for C and for C++11"
#endif

#include <quiesce/detail/popped.hpp>
#include <quiesce/ds/rculist.hpp>

namespace quiesce {

/* Private. */
template <auto Member, class T> struct wfstack_way {
	using node = ::wfs_node;
	using object = T;
	static node *below(node *at) noexcept { return ::wfs_next_blocking(at); }
	static T *entry(node *at) noexcept { return static_cast<T *>(quiesce__entry_at(at, list_offset<Member, T>())); }
};

/** wfstack - a stack of objects whose nodes are the member @Member.
 * @T: the type of the objects, if not the class that has the member: one that derives from it. */
template <auto Member, class T = typename list_member<decltype(Member)>::object>
class wfstack {
	static_assert(std::is_same_v<typename list_member<decltype(Member)>::node, ::wfs_node>, "the member is a wfs_node");
	using way = wfstack_way<Member, T>;

public:
	using range = popped_view<way>;

	constexpr wfstack() noexcept = default;
	wfstack(const wfstack &) = delete;
	wfstack &operator=(const wfstack &) = delete;

	/** push - push an object; wait-free.  False: the stack was empty. */
	bool push(T &object) noexcept { return ::wfs_push(&stack_, &(object.*Member)); }

	/** pop - pop the newest object; nullptr: there is none.  Waits for a push that was
	 * interrupted. */
	T *pop() noexcept { return entry(::wfs_pop_blocking(&stack_)); }

	/** try_pop - make one attempt to pop; false: it would have to wait, or a push came in
	 * between. */
	bool try_pop(T *&ret_object) noexcept
	{
		::wfs_node *node = ::wfs_pop_nonblocking(&stack_);

		if (node == WFS_WOULDBLOCK)
			return false;
		ret_object = entry(node);
		return true;
	}

	/** pop_all - pop all objects, newest first.
	 * The iteration waits for pushes that were interrupted; its body may free or push the
	 * current object. */
	range pop_all() noexcept { return range(::wfs_first(::wfs_pop_all(&stack_))); }

	bool empty() const noexcept { return ::wfs_empty(&stack_); }
	::wfs_stack *native_handle() noexcept { return &stack_; }

private:
	static T *entry(::wfs_node *node) noexcept { return node ? way::entry(node) : nullptr; }

	::wfs_stack stack_ = WFS_STACK_INIT;
};

} // namespace quiesce

#endif
