/* SPDX-License-Identifier: MIT */
/* retire_hazard.hpp - what the types of the C++ hazard pointers share: an object with a deleter, which readers protect. */
#ifndef QUIESCE_TOOL_RETIRE_HAZARD_HPP
#define QUIESCE_TOOL_RETIRE_HAZARD_HPP

#include <atomic>
#include <cstddef>
#include <memory>
#include <new>

#include <quiesce/hazptr.hpp>

#include "ours.h"
#include "registry.h"
#include "types/retire.h"

namespace {

/* The base class and the value stand where the other types have their head and value.  Deleter<object> may be std::default_delete, which
 * gives operator delete the size of the class: so that is the size of an object unless --bytes asks for more. */
template <template <class> class Deleter>
struct hazard_object : quiesce::hazard_pointer_obj_base<hazard_object<Deleter>, Deleter<hazard_object<Deleter>>> {
	using base = quiesce::hazard_pointer_obj_base<hazard_object, Deleter<hazard_object>>;

	explicit hazard_object(uint64_t v) : value(v) {}
	uint64_t value;
	char payload[RETIRE_MIN_BYTES - sizeof(base) - sizeof(uint64_t)];
};

template <class Object> inline retire_object *hazard_construct(void *memory, uint64_t value)
{
	static_assert(sizeof(Object) == RETIRE_MIN_BYTES, "objects have room for the library's base");
	return reinterpret_cast<retire_object *>(new (memory) Object(value));
}

template <class Object> inline void hazard_retire(retire_object *o)
{
	reinterpret_cast<Object *>(o)->retire();
}

/* raw: the pointer of the tool is C's, the interface wants a std::atomic. */
template <class Object> const std::atomic<Object *> &pointer_at(void **where)
{
	static_assert(sizeof(std::atomic<Object *>) == sizeof(void *), "a pointer is a word"); /* raw: a type, no access */
	return *reinterpret_cast<const std::atomic<Object *> *>(where); /* raw: a type, no access */
}

thread_local quiesce::hazard_pointer *mine;

OP_FUNCTION(thread_enter, mine = new quiesce::hazard_pointer(quiesce::make_hazard_pointer()))

void thread_exit()
{
	delete mine;
	mine = nullptr;
}

template <class Object> void hazard_hold(void **where)
{
	const Object *o = mine->protect(pointer_at<Object>(where));

	if (o)
		retire_sum += o->value;
}

OP_FUNCTION(release, mine->reset_protection())
OP_FUNCTION(barrier, hazptr_barrier())

} // namespace

#endif
