/* SPDX-License-Identifier: MIT */
/* percpu_rwsem.c - quiesce's reader-writer lock whose readers are counted per CPU; for rwscale with its writers. */
#include <quiesce/percpu_rwsem.h>

#include "ours.h"
#include "loop.h"
#include "types/rwlock.h"
#include "registry.h"

DEFINE_STATIC_PERCPU_RWSEM(rwsem);

OP_READ(percpu_rwsem, percpu_down_read(&rwsem), OP_LOAD, percpu_up_read(&rwsem));

static int init_rwsem(void)
{
	return percpu_init_rwsem(&rwsem);
}

OP_FUNCTION(free_rwsem, percpu_free_rwsem(&rwsem))

static int init(enum op_fence fence)
{
	int err = op_rcu_init(fence);

	return err ? err : init_rwsem();
}

OP_FUNCTION(write_lock, percpu_down_write(&rwsem))
OP_FUNCTION(write_unlock, percpu_up_write(&rwsem))

/* The test that readers of the lock make. */
static bool readers_are_fast(void)
{
	return rcu_sync_is_idle(&rwsem.rss);
}

TYPE(percpu_rwsem, .rank = 610, .groups = RUN_SIX | RUN_LOCK | REPORT_READ | FAMILY_LOCK, .peers = PEER_LOCK,
	.what = "quiesce's reader-writer lock with readers counted per CPU, read side",
	.fence_modes = true, .read = &percpu_rwsem_read, .init = init, .stats = op_rcu_stats);

static const struct rwlock_op rcu_sync_lock = {
	.what = "percpu_rwsem as it is, with rcu_sync",
	.init = init_rwsem, .fini = free_rwsem, .read_lock = percpu_rwsem_section_lock,
	.read_unlock = percpu_rwsem_section_unlock, .write_lock = write_lock, .write_unlock = write_unlock,
	.fast = readers_are_fast,
};

TYPE(rcu_sync, .rank = 720, .groups = RUN_BURST | REPORT_BURST, .peers = PEER_LOCK,
	OURS, .rwlock = &rcu_sync_lock);
