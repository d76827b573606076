/* SPDX-License-Identifier: MIT */
/* guards.cpp - hazard pointers of libcds, its fixed and its dynamic kind: a guard for each section, and one reused. */
#include <atomic>
#include <cstdlib>

#include <cds/gc/dhp.h>
#include <cds/gc/hp.h>
#include <cds/init.h>

extern "C" {
#include "loop.h"
#include "registry.h"
}

namespace {

/* raw: the interface of libcds takes a std::atomic. */
using pointer = std::atomic<op_item *>;
static_assert(sizeof(pointer) == sizeof(op_item *));

/* The target is a C structure of the tool. */
inline __attribute__((always_inline)) const pointer &at(op_item **where)
{
	return *reinterpret_cast<const pointer *>(where);
}

enum { SLOTS = 8, MAX_THREADS_OF_HP = 4200, RETIRED = 0 };

/* The collectors are kept until the process ends. */
int libcds_init(op_fence)
{
	cds::Initialize();
	cds::gc::hp::smr::construct(SLOTS, MAX_THREADS_OF_HP, RETIRED);
	cds::gc::dhp::smr::construct();
	return 0;
}

__thread int entered;

void thread_enter()
{
	if (!entered++)
		cds::threading::Manager::attachThread();
}

void thread_exit()
{
	if (!--entered)
		cds::threading::Manager::detachThread();
}

template <typename GC> struct guards {
	static void lock() { mine() = new typename GC::Guard; mine()->protect(at(&op_target.ptr)); }
	static void unlock() { delete mine(); mine() = nullptr; }
	static typename GC::Guard *&mine()
	{
		static thread_local typename GC::Guard *guard;
		return guard;
	}
};

OP_SECTION(libcds_hp, cds::gc::HP::Guard guard, guard.protect(at(&t->ptr)), (void)0)
OP_SECTION(libcds_dhp, cds::gc::DHP::Guard guard, guard.protect(at(&t->ptr)), (void)0)

/* The variable stands in the frame of the loop, as in a function that reads many times. */
typedef cds::gc::HP::Guard libcds_hp_reused_kept;
typedef cds::gc::DHP::Guard libcds_dhp_reused_kept;

inline __attribute__((always_inline)) cds::gc::HP::Guard libcds_hp_reused_begin() { return {}; }
inline __attribute__((always_inline)) cds::gc::DHP::Guard libcds_dhp_reused_begin() { return {}; }
inline void libcds_hp_reused_end(cds::gc::HP::Guard &) {}
inline void libcds_dhp_reused_end(cds::gc::DHP::Guard &) {}

template <typename Guard> inline __attribute__((always_inline)) uint64_t section(struct op_target *t, Guard &kept)
{
	uint64_t value = kept.protect(at(&t->ptr))->field;

	kept.clear();
	return value;
}
#define libcds_hp_reused_section section
#define libcds_dhp_reused_section section
OP_PADS(OP_LOOP_KEPT, libcds_hp_reused)
OP_PADS(OP_LOOP_KEPT, libcds_dhp_reused)

OP_READ_OPS(libcds_hp, guards<cds::gc::HP>::lock, guards<cds::gc::HP>::unlock);
OP_READ_OPS(libcds_hp_reused, guards<cds::gc::HP>::lock, guards<cds::gc::HP>::unlock);
OP_READ_OPS(libcds_dhp, guards<cds::gc::DHP>::lock, guards<cds::gc::DHP>::unlock);
OP_READ_OPS(libcds_dhp_reused, guards<cds::gc::DHP>::lock, guards<cds::gc::DHP>::unlock);

#define GUARDS(name) .read = &name##_read, .init = libcds_init, .thread_enter = thread_enter, .thread_exit = thread_exit

TYPE(libcds_hp, .rank = 1200, .groups = PEER_HAZPTR | RUN_OBJECT | REPORT_READ | FAMILY_OBJECT,
	.what = "libcds, HP: a guard made and destroyed around each section", GUARDS(libcds_hp));
TYPE(libcds_hp_reused, .rank = 1210,
	.what = "libcds, HP: a guard in hand", GUARDS(libcds_hp_reused));
TYPE(libcds_dhp, .rank = 1220, .groups = PEER_HAZPTR | RUN_OBJECT | REPORT_READ,
	.what = "libcds, DHP: a guard made and destroyed around each section", GUARDS(libcds_dhp));
TYPE(libcds_dhp_reused, .rank = 1230,
	.what = "libcds, DHP: a guard in hand", GUARDS(libcds_dhp_reused));

} // namespace
