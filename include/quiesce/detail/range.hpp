/* SPDX-License-Identifier: MIT */
/* quiesce/detail/range.hpp - private: ends of iterations and bases of views, in C++17 too.
 *
 * From C++20 on they are the standard's.  In C++17, which has neither std::default_sentinel nor
 * std::ranges, they are types of ours, and iterators need a != beside their ==. */
#ifndef QUIESCE_DETAIL_RANGE_HPP
#define QUIESCE_DETAIL_RANGE_HPP

#include <iterator>
#if __cplusplus >= 202002L
#include <ranges>
#endif

namespace quiesce::detail {

#if __cplusplus >= 202002L
using end_of_range = std::default_sentinel_t;
using view_base = std::ranges::view_base;
#define QUIESCE_UNEQUAL(iterator, other)
#else
struct end_of_range {};
struct view_base {};
#define QUIESCE_UNEQUAL(iterator, other) \
	friend bool operator!=(const iterator &a, other b) noexcept { return !(a == b); }
#endif

} // namespace quiesce::detail

#endif
