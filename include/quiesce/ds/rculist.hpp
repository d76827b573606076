/* SPDX-License-Identifier: MIT */
/* quiesce/ds/rculist.hpp - the lists of rculist.h and rcuhlist.h as ranges of their entries; C++17
 * and later.
 *
 *	struct route { int to; list_head node; };
 *	list_head routes = LIST_HEAD_INIT(routes);
 *
 *	std::scoped_lock section(quiesce::rcu_default_domain());      // reader
 *	for (route &r : quiesce::rcu_list_range<&route::node>(routes))
 *		use(r.to);
 *
 * Updates are the functions of the C headers.  The body may remove the current entry, but not free
 * it.
 *
 * A range is two words, may be copied, and need not outlive its iterators.  Iterators are forward
 * iterators, their end is std::default_sentinel (in C++17, which has no std::ranges, a type of
 * ours): each walk sees the list as it is then, so two
 * walks of one range may differ.  They are valid until the end of the section in which they were
 * obtained.  Any class may contain nodes, also one with virtual functions or with private members
 * to which the caller has access.
 * Ordering, cost: as list_for_each_entry_rcu() and hlist_for_each_entry_rcu().  Nothing throws.
 */
#ifndef QUIESCE_DS_RCULIST_HPP
#define QUIESCE_DS_RCULIST_HPP

#include <quiesce/detail/entry.hpp>
#include <quiesce/detail/range.hpp>
#include <quiesce/ds/rculist.h>

#if !defined(__cplusplus) || __cplusplus < 201703L
#error "quiesce/ds/rculist.hpp needs C++17; rculist.h is for C and for C++11"
#endif

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <type_traits>

namespace quiesce {

/** rcu_list_iterator - an iterator at an entry, or at the end. */
template <auto Member, class T> class rcu_list_iterator {
	using node = typename list_member<decltype(Member)>::node;

public:
	using iterator_concept = std::forward_iterator_tag;
	using iterator_category = std::forward_iterator_tag;
	using value_type = std::remove_cv_t<T>;
	using difference_type = std::ptrdiff_t;
	using pointer = T *;
	using reference = T &;

	constexpr rcu_list_iterator() noexcept = default;
	rcu_list_iterator(node *at, const node *end) noexcept : at_(at), end_(end) {}

	T &operator*() const noexcept { return *operator->(); }
	T *operator->() const noexcept { return static_cast<T *>(quiesce__entry_at(at_, list_offset<Member, T>())); }
	rcu_list_iterator &operator++() noexcept
	{
		at_ = quiesce__link_load(&at_->next);
		return *this;
	}
	rcu_list_iterator operator++(int) noexcept
	{
		rcu_list_iterator before = *this;

		++*this;
		return before;
	}
	friend bool operator==(const rcu_list_iterator &a, const rcu_list_iterator &b) noexcept { return a.at_ == b.at_; }
	friend bool operator==(const rcu_list_iterator &a, detail::end_of_range) noexcept { return a.at_ == a.end_; }
	QUIESCE_UNEQUAL(rcu_list_iterator, const rcu_list_iterator &)
	QUIESCE_UNEQUAL(rcu_list_iterator, detail::end_of_range)

private:
	node *at_ = nullptr;
	const node *end_ = nullptr;
};

/** rcu_list_view - the entries of a list; from rcu_list_range() or rcu_hlist_range(). */
template <auto Member, class T> class rcu_list_view : public detail::view_base {
	using node = typename list_member<decltype(Member)>::node;

public:
	constexpr rcu_list_view() noexcept = default;
	rcu_list_view(node *const *first, const node *end) noexcept : first_(first), end_(end) {}

	rcu_list_iterator<Member, T> begin() const noexcept
	{
		return first_ ? rcu_list_iterator<Member, T>(quiesce__link_load(first_), end_) : rcu_list_iterator<Member, T>();
	}
	detail::end_of_range end() const noexcept { return {}; }
	bool empty() const noexcept { return begin() == end(); }

private:
	node *const *first_ = nullptr;
	const node *end_ = nullptr;
};

/** rcu_list_range - return the entries of a list whose nodes are the member @Member.
 * @T: the type of the entries, if not the class that has the member: one that derives from it, or
 *   a const one. */
template <auto Member, class T = typename list_member<decltype(Member)>::object,
	  class = std::enable_if_t<std::is_same_v<typename list_member<decltype(Member)>::node, ::list_head>>>
rcu_list_view<Member, T> rcu_list_range(const ::list_head &head) noexcept
{
	return { &head.next, &head };
}

/** rcu_hlist_range - return the entries of an hlist; otherwise as rcu_list_range(). */
template <auto Member, class T = typename list_member<decltype(Member)>::object,
	  class = std::enable_if_t<std::is_same_v<typename list_member<decltype(Member)>::node, ::hlist_node>>>
rcu_list_view<Member, T> rcu_hlist_range(const ::hlist_head &head) noexcept
{
	return { &head.first, nullptr };
}

} // namespace quiesce

#if __cplusplus >= 202002L
template <auto Member, class T>
inline constexpr bool std::ranges::enable_borrowed_range<quiesce::rcu_list_view<Member, T>> = true;
#endif

#endif
