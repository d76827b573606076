/* SPDX-License-Identifier: MIT */
/* raw, whole file: a program that knows the standard library and nothing of quiesce. */
#include "check.hpp"

#include <array>
#include <memory>
#include <span>
#include <type_traits>

namespace hp_syn {
CLAUSE("hazard.pointer.syn")

struct node : impl::hazard_pointer_obj_base<node> {};
struct none {
	void operator()(void *) const noexcept {}
};
struct other : impl::hazard_pointer_obj_base<other, none> {};

TEST("the deleter is default_delete unless it is named")
{
	CHECK_STATIC(std::is_base_of_v<impl::hazard_pointer_obj_base<node, std::default_delete<node>>, node>);
	CHECK_STATIC(std::is_base_of_v<impl::hazard_pointer_obj_base<other, none>, other>);
	CHECK_STATIC(!std::is_same_v<impl::hazard_pointer_obj_base<node>, impl::hazard_pointer_obj_base<node, none>>);
}

TEST("types of the functions")
{
	using holder = impl::hazard_pointer;
	using holders = std::span<holder>;

	CHECK_STATIC(std::is_same_v<decltype(impl::make_hazard_pointer()), holder>);
	CHECK_STATIC(std::is_void_v<decltype(impl::make_hazard_pointer_batch(holders()))>);
	CHECK_STATIC(std::is_void_v<decltype(impl::clear_hazard_pointer_batch(holders()))>);
	CHECK_STATIC(noexcept(impl::clear_hazard_pointer_batch(holders())));
	CHECK_STATIC(std::is_void_v<decltype(impl::swap(std::declval<holder &>(), std::declval<holder &>()))>);
	CHECK_STATIC(noexcept(impl::swap(std::declval<holder &>(), std::declval<holder &>())));
}

TEST("batches are spans of whatever has contiguous elements")
{
	impl::hazard_pointer array[2];
	std::array<impl::hazard_pointer, 3> fixed;
	std::vector<impl::hazard_pointer> many(4);
	std::span<impl::hazard_pointer, 2> two(array);

	impl::make_hazard_pointer_batch(two);
	impl::make_hazard_pointer_batch(fixed);
	impl::make_hazard_pointer_batch(many);
	CHECK(!array[1].empty() && !fixed[2].empty() && !many[3].empty());
	impl::clear_hazard_pointer_batch(array);
	impl::clear_hazard_pointer_batch(fixed);
	impl::clear_hazard_pointer_batch(many);
	CHECK(array[1].empty() && fixed[2].empty() && many[3].empty());
}

} // namespace hp_syn
