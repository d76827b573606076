/* SPDX-License-Identifier: MIT */
/* walk_hp.cpp - libcds' hazard pointers with arrays of a fixed size. */
#include <cds/gc/hp.h>

#define WALK_GC cds::gc::HP
#define WALK_SCHEME libcds_hp
#define WALK_WHAT "libcds, HP, arrays of the batch's size, or twice as many as there may be slots"
#define WALK_RANK 1200
#include "walk.hpp"

namespace {

int walk_init(enum op_fence)
{
	cds::Initialize();
	cds::gc::hp::smr::construct(WALK_SLOTS, max_threads, retire_params.batch);
	return 0;
}

} // namespace

#include "types/walk_types.h"
