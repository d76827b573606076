/* SPDX-License-Identifier: MIT */
/* raw, whole file: a program that knows the standard library and nothing of quiesce. */
#include "check.hpp"

#include <memory>
#include <type_traits>

namespace rcu_syn {
CLAUSE("rcu.syn")

struct node : impl::rcu_obj_base<node> {};
struct none {
	void operator()(void *) const noexcept {}
};
struct other : impl::rcu_obj_base<other, none> {};

TEST("the deleter is default_delete unless it is named")
{
	CHECK_STATIC(std::is_base_of_v<impl::rcu_obj_base<node, std::default_delete<node>>, node>);
	CHECK_STATIC(std::is_base_of_v<impl::rcu_obj_base<other, none>, other>);
}

TEST("types of the functions, and which do not throw")
{
	impl::rcu_domain &domain = impl::rcu_default_domain();

	CHECK_STATIC(std::is_same_v<decltype(impl::rcu_default_domain()), impl::rcu_domain &>);
	CHECK_STATIC(noexcept(impl::rcu_default_domain()));
	CHECK_STATIC(std::is_void_v<decltype(impl::rcu_synchronize())> && noexcept(impl::rcu_synchronize()));
	CHECK_STATIC(std::is_void_v<decltype(impl::rcu_synchronize(domain))> && noexcept(impl::rcu_synchronize(domain)));
	CHECK_STATIC(std::is_void_v<decltype(impl::rcu_barrier())> && noexcept(impl::rcu_barrier()));
	CHECK_STATIC(std::is_void_v<decltype(impl::rcu_barrier(domain))> && noexcept(impl::rcu_barrier(domain)));
	CHECK_STATIC(std::is_void_v<decltype(impl::rcu_retire(std::declval<int *>()))>);
	CHECK_STATIC(std::is_void_v<decltype(impl::rcu_retire(std::declval<int *>(), none(), domain))>);
	CHECK_STATIC(std::is_void_v<decltype(impl::rcu_retire<int, none>(std::declval<int *>()))>);
}

} // namespace rcu_syn
