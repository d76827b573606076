/* SPDX-License-Identifier: MIT */
/* quiesce/detail/entry.hpp - private: offset of a member in an object, for C++ faces that take the
 * member as a template argument. */
#ifndef QUIESCE_DETAIL_ENTRY_HPP
#define QUIESCE_DETAIL_ENTRY_HPP

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace quiesce {

/* Private: list_member has the two types in a pointer to a member. */
template <class> struct list_member;
template <class Object, class Node> struct list_member<Node Object::*> {
	using object = Object;
	using node = Node;
};

/* Private: a static_cast from @From to @To is possible. */
template <class From, class To, class = void> inline constexpr bool list_castable = false;
template <class From, class To>
inline constexpr bool list_castable<From, To, std::void_t<decltype(static_cast<To>(std::declval<From>()))>> = true;

/* Private: list_offset() returns the offset of the node in a T, which the compiler computes. */
template <auto Member, class T> inline std::size_t list_offset() noexcept
{
	using holder = typename list_member<decltype(Member)>::object;
	static_assert(list_castable<std::conditional_t<std::is_const_v<T>, const holder, holder> *, T *>,
		      "the class that has the node may not be a virtual base");
	constexpr std::uintptr_t any = 4096;

	return reinterpret_cast<std::uintptr_t>(&(reinterpret_cast<T *>(any)->*Member)) - any;
}

} // namespace quiesce

#endif
