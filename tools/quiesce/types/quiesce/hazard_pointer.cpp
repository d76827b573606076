/* SPDX-License-Identifier: MIT */
/* hazard_pointer.cpp - the C++ interface of quiesce's hazard pointers: one made for each section, and one reused. */
#include <atomic>

#include <quiesce/hazptr.hpp>

#include "ours.h"

extern "C" {
#include "loop.h"
#include "registry.h"

}

/* The tool's own target is a C structure without the base class.  Not static: a
 * compiler that sees all writers would load it only once. */
struct hazard_item : quiesce::hazard_pointer_obj_base<hazard_item> {
	uint64_t field = 1;
} hazard_item;

struct alignas(128) hazard_target {
	/* raw: the interface of the standard takes a std::atomic. */
	std::atomic<struct hazard_item *> ptr = &hazard_item;
} hazard_target;

namespace {

OP_SECTION(hazard_pointer, (void)t; auto hp = quiesce::make_hazard_pointer(), hp.protect(hazard_target.ptr), (void)0)

/* The variable stands in the frame of the loop, as in a function that reads many times. */
typedef quiesce::hazard_pointer hazard_pointer_reused_kept;

inline __attribute__((always_inline)) quiesce::hazard_pointer hazard_pointer_reused_begin()
{
	return quiesce::make_hazard_pointer();
}

inline void hazard_pointer_reused_end(quiesce::hazard_pointer &)
{
}

inline __attribute__((always_inline)) uint64_t hazard_pointer_reused_section(struct op_target *, quiesce::hazard_pointer &kept)
{
	uint64_t value = kept.protect(hazard_target.ptr)->field;

	kept.reset_protection();
	return value;
}
OP_PADS(OP_LOOP_KEPT, hazard_pointer_reused)

thread_local quiesce::hazard_pointer held;

void section_lock()
{
	held = quiesce::make_hazard_pointer();
	(void)held.protect(hazard_target.ptr);
}

OP_FUNCTION(section_unlock, held = quiesce::hazard_pointer())

OP_READ_OPS(hazard_pointer, section_lock, section_unlock);
OP_READ_OPS(hazard_pointer_reused, section_lock, section_unlock);

/* The first slot gives the thread its line. */
void first_section()
{
	(void)quiesce::make_hazard_pointer();
}

#define HAZARD_POINTER(READERS) \
	.fence_modes = true, .read = &READERS##_read, .init = op_rcu_init, .thread_enter = first_section, .stats = op_rcu_stats

TYPE(hazard_pointer, .rank = 540, .groups = RUN_OBJECT, .peers = PEER_HAZPTR,
	.what = "hazard pointers in C++: make_hazard_pointer(), protect, destroy", HAZARD_POINTER(hazard_pointer));
TYPE(hazard_pointer_reused, .rank = 550,
	.what = "hazard pointers in C++, one in hand: protect, reset_protection()", HAZARD_POINTER(hazard_pointer_reused));

} // namespace
