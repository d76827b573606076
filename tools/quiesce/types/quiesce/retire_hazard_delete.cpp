/* SPDX-License-Identifier: MIT */
/* retire_hazard_delete.cpp - the C++ interface of quiesce's hazard pointers: retire() of objects that are only memory. */
#include <atomic>
#include <new>

#include <quiesce/hazptr.hpp>

#include "ours.h"
#include "registry.h"
#include "types/retire.h"

namespace {

/* The base class and the value stand where the other types have their head and value. */
struct object : quiesce::hazard_pointer_obj_base<object> {
	explicit object(uint64_t v) : value(v) {}
	uint64_t value;
};
static_assert(sizeof(object) <= RETIRE_MIN_BYTES, "objects have room for the library's base");

/* The memory behind the object is the payload that --bytes asks for. */
inline retire_object *alloc(uint64_t value)
{
	return reinterpret_cast<retire_object *>(new (::operator new(retire_params.bytes)) object(value));
}

inline void retire(retire_object *o)
{
	reinterpret_cast<object *>(o)->retire();
}

RETIRE_PRODUCE(cpp_delete, alloc, retire)

/* raw: the pointer of the tool is C's, the interface wants a std::atomic. */
const std::atomic<object *> &pointer_at(void **where)
{
	static_assert(sizeof(std::atomic<object *>) == sizeof(void *), "a pointer is a word"); /* raw: a type, no access */
	return *reinterpret_cast<const std::atomic<object *> *>(where); /* raw: a type, no access */
}

thread_local quiesce::hazard_pointer *mine;

OP_FUNCTION(thread_enter, mine = new quiesce::hazard_pointer(quiesce::make_hazard_pointer()))

void thread_exit()
{
	delete mine;
	mine = nullptr;
}

void hold(void **where)
{
	const object *o = mine->protect(pointer_at(where));

	if (o)
		retire_sum += o->value;
}

OP_FUNCTION(release, mine->reset_protection())
RETIRE_READ

OP_FUNCTION(barrier, hazptr_barrier())

const op_reclaim reclaim = { RETIRE_PRODUCERS(cpp_delete), RETIRE_READERS, .barrier = barrier, .freed = op_hazptr_freed };

TYPE(hazard_delete, .rank = 555,
	.what = "the C++ face of quiesce: retire() of an object that std::default_delete deletes; counted by its statistics",
	.fence_modes = true, .reclaim = &reclaim, .init = op_rcu_init, .thread_enter = thread_enter,
	.thread_exit = thread_exit, .stats = op_rcu_stats);

} // namespace
