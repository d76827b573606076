/* SPDX-License-Identifier: MIT */
/* quiesce/detail/popped.hpp - private: the objects that a pop_all() has returned, as a range.
 *
 * @Way has the types node and object, the function below(), which returns the node below another
 *   one, and entry(), which returns the object around a node. */
#ifndef QUIESCE_DETAIL_POPPED_HPP
#define QUIESCE_DETAIL_POPPED_HPP

#include <quiesce/detail/range.hpp>

#include <cstddef>
#include <iterator>

namespace quiesce {

/** popped_iterator - an iterator that has loaded the object below already, so that the current one
 * may be freed or pushed again. */
template <class Way> class popped_iterator {
	using node = typename Way::node;

public:
	using iterator_concept = std::input_iterator_tag;
	using value_type = typename Way::object;
	using difference_type = std::ptrdiff_t;

	popped_iterator() noexcept = default;
	explicit popped_iterator(node *at) noexcept : at_(at), below_(at ? Way::below(at) : nullptr) {}

	value_type &operator*() const noexcept { return *Way::entry(at_); }
	value_type *operator->() const noexcept { return Way::entry(at_); }
	popped_iterator &operator++() noexcept { return *this = popped_iterator(below_); }
	void operator++(int) noexcept { ++*this; }
	friend bool operator==(const popped_iterator &a, detail::end_of_range) noexcept { return !a.at_; }
	QUIESCE_UNEQUAL(popped_iterator, detail::end_of_range)

private:
	node *at_ = nullptr;
	node *below_ = nullptr;
};

/** popped_view - popped objects, newest first.
 * One word, to be copied; the objects belong to the popper. */
template <class Way> class popped_view : public detail::view_base {
public:
	popped_view() noexcept = default;
	explicit popped_view(typename Way::node *first) noexcept : first_(first) {}

	popped_iterator<Way> begin() const noexcept { return popped_iterator<Way>(first_); }
	detail::end_of_range end() const noexcept { return {}; }
	bool empty() const noexcept { return !first_; }

private:
	typename Way::node *first_ = nullptr;
};

} // namespace quiesce

#if __cplusplus >= 202002L
template <class Way> inline constexpr bool std::ranges::enable_borrowed_range<quiesce::popped_view<Way>> = true;
#endif

#endif
