/* SPDX-License-Identifier: MIT */
/* walk.hpp - hazard pointers of libcds: an array of guards for each operation; included with WALK_GC. */
#include <cds/init.h>
#include <cds/threading/model.h>

extern "C" {
#define WALK_FOREIGN_RCU
#include "types/walk.h"
}

#define WALK_FENCES false
#define WALK_CHECKS 1

constexpr size_t max_threads = 320; /* the library keeps at least as many objects as there may be slots */

namespace {

struct walk_slots {
	typename WALK_GC::template GuardArray<WALK_SLOTS> guards;
};

inline void walk_begin(walk_slots *)
{
}

/* The guards clear themselves when they are destroyed, but that may be a while later. */
inline void walk_end(walk_slots *s)
{
	for (size_t i = 0; i < WALK_SLOTS; i++)
		s->guards.clear(i);
}

/* assign() is the store and a full fence. */
inline __attribute__((always_inline)) uintptr_t walk_protect(walk_slots *s, unsigned int i, uintptr_t *where)
{
	uintptr_t first, again = quiesce_load_relaxed(where);

	do {
		first = again;
		s->guards.assign(i, reinterpret_cast<walk_node *>(first & ~WALK_MARK));
		again = walk_load(where);
	} while (quiesce_unlikely(again != first));
	return again;
}

void end_node(void *node)
{
	walk_free(node);
}

inline void walk_retire(walk_node *node)
{
	retire_note();
	WALK_GC::retire(node, end_node);
}

OP_FUNCTION(walk_thread_enter, cds::threading::Manager::attachThread())
OP_FUNCTION(walk_thread_exit, cds::threading::Manager::detachThread(); retire_tally_leave())
OP_FUNCTION(walk_barrier, WALK_GC::scan())

} // namespace

#define walk_stats nullptr
#define walk_waiting retire_waiting
