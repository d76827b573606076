/* SPDX-License-Identifier: MIT */
/* retire_hazard_delete.cpp - the C++ interface of quiesce's hazard pointers: retire() of objects that are only memory. */
#include <cerrno>

#include "retire_hazard.hpp"

namespace {

using object = hazard_object<std::default_delete>;

inline retire_object *alloc(uint64_t value)
{
	return hazard_construct<object>(::operator new(sizeof(object)), value);
}

RETIRE_PRODUCE(cpp_delete, alloc, hazard_retire<object>)
void hold(void **where)
{
	hazard_hold<object>(where);
}

RETIRE_READ

/* operator delete gets the size of the class. */
int init(enum op_fence fence)
{
	return retire_params.bytes == sizeof(object) ? op_rcu_init(fence) : -ENOTSUP;
}

const op_reclaim reclaim = { RETIRE_PRODUCERS(cpp_delete), RETIRE_READERS, .barrier = barrier, .freed = op_hazptr_freed };

TYPE(hazard_delete, .rank = 555,
	.what = "the C++ face of quiesce: retire() of an object that std::default_delete deletes; counted by its statistics; no --bytes",
	.fence_modes = true, .reclaim = &reclaim, .init = init, .thread_enter = thread_enter,
	.thread_exit = thread_exit, .stats = op_rcu_stats);

} // namespace
