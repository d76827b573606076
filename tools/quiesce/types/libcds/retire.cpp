/* SPDX-License-Identifier: MIT */
/* retire.cpp - libcds' hazard pointers: HP, with arrays of a fixed size, and DHP, which grow. */
#include <cds/gc/dhp.h>
#include <cds/gc/hp.h>
#include <cds/init.h>
#include <cds/threading/model.h>

#include <optional>

#include "types/retire_table.h"

namespace {

constexpr size_t max_threads = 320;

void end_object(void *object)
{
	retire_free(object);
}

void thread_enter()
{
	cds::threading::Manager::attachThread();
}

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

template <class Readers>
op_reclaim reclaim_of(uint64_t (*produce)(void **, uint64_t), uint64_t (*timed)(void **, uint64_t, struct histogram *))
{
	op_reclaim r = {};

	r.produce = produce;
	r.timed = timed;
	r.read = Readers::read;
	r.hold = Readers::hold;
	r.release = Readers::release;
	r.drain = Readers::drain;
	return r;
}

const op_reclaim hp_reclaim = reclaim_of<hp>(hp_produce, hp_timed);
const op_reclaim dhp_reclaim = reclaim_of<dhp>(dhp_produce, dhp_timed);

op type_of(const char *name, const char *what, const op_reclaim *reclaim, int (*init)(enum op_fence), void (*enter)(),
	   void (*leave)())
{
	op o = {};

	o.name = name;
	o.what = what;
	o.reclaim = reclaim;
	o.init = init;
	o.thread_enter = enter;
	o.thread_exit = leave;
	return o;
}

} /* namespace */

const op retire_op_libcds_hp = type_of("libcds_hp", "libcds' hazard pointers, a scan for each batch or so", &hp_reclaim, hp_init,
				       hp::enter, hp::leave);
const op retire_op_libcds_dhp = type_of("libcds_dhp", "libcds' dynamic hazard pointers, with a batch of their own", &dhp_reclaim,
					dhp_init, dhp::enter, dhp::leave);
