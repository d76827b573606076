/* SPDX-License-Identifier: MIT */
/* config.hpp - the implementation that is tested: a namespace "impl" with the names that <hazard_pointer> and <rcu> have in std.
 *
 *	-DCONFORMANCE_IMPL='"file.hpp"'    a header that declares namespace impl
 *	-DCONFORMANCE_STD                  the standard library's own
 * without both                       quiesce
 *
 * The rest of the directory uses names of the draft only.
 */
#ifndef CONFORMANCE_CONFIG_HPP
#define CONFORMANCE_CONFIG_HPP

#if defined(CONFORMANCE_IMPL)
#include CONFORMANCE_IMPL
#elif defined(CONFORMANCE_STD)
#include <hazard_pointer>
#include <rcu>
namespace impl = std;
#else
#include <quiesce/hazptr.hpp>
#include <quiesce/rcu.hpp>
namespace impl = quiesce;
#endif

#endif
