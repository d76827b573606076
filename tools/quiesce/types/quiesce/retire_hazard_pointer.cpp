/* SPDX-License-Identifier: MIT */
/* retire_hazard_pointer.cpp - the C++ interface of quiesce's hazard pointers: retire(), protect(). */
#include <cstdlib>

#include "retire_hazard.hpp"

namespace {

template <class Object> struct end_object {
	void operator()(Object *o) const { retire_free(o); }
};

using object = hazard_object<end_object>;

inline retire_object *alloc(uint64_t value)
{
	void *memory = std::malloc(retire_params.bytes);

	if (!memory)
		std::abort();
	return hazard_construct<object>(memory, value);
}

RETIRE_PRODUCE(cpp, alloc, hazard_retire<object>)
void hold(void **where)
{
	hazard_hold<object>(where);
}

RETIRE_READ

const op_reclaim reclaim = { RETIRE_PRODUCERS(cpp), RETIRE_READERS, .barrier = barrier };

TYPE(hazard_pointer, .rank = 550, .groups = RUN_TABLE | REPORT, .peers = PEER_HAZPTR,
	.what = "the C++ face of quiesce: retire() of an object with a deleter of its own",
	.fence_modes = true, .reclaim = &reclaim, .init = op_rcu_init, .thread_enter = thread_enter,
	.thread_exit = thread_exit, .stats = op_rcu_stats);

} // namespace
