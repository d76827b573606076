/* SPDX-License-Identifier: MIT */
/* retire.cpp - libcds' hazard pointers: HP, with arrays of a fixed size, and DHP, which grow. */
#include <cds/gc/dhp.h>
#include <cds/gc/hp.h>
#include <cds/init.h>
#include <cds/threading/model.h>

#include <optional>

#include "registry.h"
#include "types/retire.h"

namespace {

constexpr size_t max_threads = 320;

void end_object(void *object)
{
	retire_free(object);
}

OP_FUNCTION(thread_enter, cds::threading::Manager::attachThread())

/* The tool has the pointer as a plain word; the library wants its own kind of atomic. */
atomics::atomic<retire_object *> &pointer_at(void **where)
{
	static_assert(sizeof(atomics::atomic<retire_object *>) == sizeof(void *), "a pointer is a word");
	return *reinterpret_cast<atomics::atomic<retire_object *> *>(where);
}

template <class GC> struct readers {
	static thread_local std::optional<typename GC::Guard> guard;

	static void enter()
	{
		thread_enter();
		guard.emplace();
	}
	static void leave()
	{
		guard.reset();
		cds::threading::Manager::detachThread();
	}
	static void hold(void **where)
	{
		retire_use(guard->protect(pointer_at(where)));
	}
	static void release()
	{
		guard->clear();
	}
	static void read(void **where)
	{
		hold(where);
		release();
	}
	static void drain()
	{
		GC::scan();
	}
};
template <class GC> thread_local std::optional<typename GC::Guard> readers<GC>::guard;

using hp = readers<cds::gc::HP>;
using dhp = readers<cds::gc::DHP>;

#define RETIRE_HP(object) cds::gc::HP::retire((object), end_object)
#define RETIRE_DHP(object) cds::gc::DHP::retire((object), end_object)
RETIRE_PRODUCE(hp, retire_alloc, RETIRE_HP)
RETIRE_PRODUCE(dhp, retire_alloc, RETIRE_DHP)

/* The collectors are never destroyed: when the process ends, no thread uses them any more. */
int hp_init(enum op_fence)
{
	cds::Initialize();
	cds::gc::hp::smr::construct(1, max_threads, retire_params.batch);
	return 0;
}

int dhp_init(enum op_fence)
{
	cds::Initialize();
	cds::gc::dhp::smr::construct();
	return 0;
}

#define READERS(gc) .read = gc::read, .hold = gc::hold, .release = gc::release, .drain = gc::drain
const op_reclaim hp_reclaim = { RETIRE_PRODUCERS(hp), READERS(hp) };
const op_reclaim dhp_reclaim = { RETIRE_PRODUCERS(dhp), READERS(dhp) };

TYPE(libcds_hp, .rank = 1200, .groups = PEER_HAZPTR | RUN_TABLE | REPORT,
	.what = "libcds' hazard pointers, a scan for each batch or so",
	.reason = "its scan needs no membarrier, because each protection of its readers has a full fence",
	.reclaim = &hp_reclaim, .init = hp_init, .thread_enter = hp::enter, .thread_exit = hp::leave);
TYPE(libcds_dhp, .rank = 1210, .groups = PEER_HAZPTR | RUN_TABLE | REPORT,
	.what = "libcds' dynamic hazard pointers, with a batch of their own",
	.reason = "it scans for each block of 256 objects, so that fewer wait; each protection has a full fence",
	.reclaim = &dhp_reclaim, .init = dhp_init, .thread_enter = dhp::enter, .thread_exit = dhp::leave);

} // namespace
