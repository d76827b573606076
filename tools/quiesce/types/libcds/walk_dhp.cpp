/* SPDX-License-Identifier: MIT */
/* walk_dhp.cpp - libcds' hazard pointers with arrays that grow. */
#include <cds/gc/dhp.h>

#define WALK_GC cds::gc::DHP
#define WALK_SCHEME libcds_dhp
#define WALK_WHAT "libcds, DHP, a scan when its array is full"
#define WALK_RANK 1210
#include "walk.hpp"

namespace {

int walk_init(enum op_fence)
{
	cds::Initialize();
	cds::gc::dhp::smr::construct();
	return 0;
}

} // namespace

#include "types/walk_types.h"
