/* SPDX-License-Identifier: MIT */
/* refuse.hpp - allocations that fail on request: malloc() and its like, and mmap(), as the library calls them. */
#ifndef QUIESCE_TESTS_REFUSE_HPP
#define QUIESCE_TESTS_REFUSE_HPP

#include <cstddef>
#include <cstdint>

namespace refuse {

/* The allocation number @n of this thread from now, 0 the next, is refused, and if @all every one from there. */
void arm(std::uint32_t n, bool all);
/* Return how many allocations were refused since arm(). */
std::uint32_t count();
/* Refuse no allocation from here on, and reset count(). */
void disarm();

/* Allocate zeroed bytes for free(); this is never refused. */
void *allocate(std::size_t bytes);

} // namespace refuse

#endif
