/* SPDX-License-Identifier: MIT */
/* std_shared_ptr.cpp - the standard's atomic shared pointer: load, read, drop.  Only where the library has it. */
#include <atomic>
#include <memory>

extern "C" {
#include "loop.h"
#include "registry.h"
}

namespace {

struct alignas(128) shared_target {
	/* raw: the subject of the measurement. */
	std::atomic<std::shared_ptr<op_item>> ptr{ std::make_shared<op_item>(op_item{ 1 }) };
};

/* Never destroyed: threads may still read when the process ends. */
shared_target *const target = new shared_target;

thread_local std::shared_ptr<op_item> held;

OP_SECTION(std_shared_ptr, (void)t; auto kept = target->ptr.load(std::memory_order_acquire), kept, (void)0)

OP_FUNCTION(section_lock, held = target->ptr.load(std::memory_order_acquire))
OP_FUNCTION(section_unlock, held.reset())

OP_READ_OPS(std_shared_ptr, section_lock, section_unlock);

TYPE(std_atomic_shared_ptr, .rank = 1510, .groups = RUN_SLOW | RUN_OBJECT | REPORT_READ | FAMILY_OBJECT,
	.what = "std::atomic<std::shared_ptr> of the C++ library: load, drop",
	.read = &std_shared_ptr_read);

} // namespace
