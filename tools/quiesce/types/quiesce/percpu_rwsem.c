/* SPDX-License-Identifier: MIT */
/* percpu_rwsem.c - quiesce's reader-writer lock whose readers are counted per CPU; for rwscale with its writers. */
#include <quiesce/percpu_rwsem.h>

#include "types/loop.h"
#include "types/rwlock.h"
#include "types/table.h"

int op_rcu_init(enum op_fence fence);
void op_rcu_stats(struct op_stats *ret);

DEFINE_STATIC_PERCPU_RWSEM(rwsem);

OP_READ(percpu_rwsem, percpu_down_read(&rwsem), OP_LOAD, percpu_up_read(&rwsem));

static int init_rwsem(void)
{
	return percpu_init_rwsem(&rwsem);
}

static void free_rwsem(void)
{
	percpu_free_rwsem(&rwsem);
}

static int init(enum op_fence fence)
{
	int err = op_rcu_init(fence);

	return err ? err : init_rwsem();
}

static void write_lock(void)
{
	percpu_down_write(&rwsem);
}

static void write_unlock(void)
{
	percpu_up_write(&rwsem);
}

/* The test that readers of the lock make. */
static bool readers_are_fast(void)
{
	return rcu_sync_is_idle(&rwsem.rss);
}

const struct op op_percpu_rwsem = {
	.name = "percpu_rwsem",
	.what = "quiesce's reader-writer lock with readers counted per CPU, read side",
	.fence_modes = true,
	.read = &percpu_rwsem_read,
	.init = init,
	.stats = op_rcu_stats,
};

const struct rwlock_op rwlock_op_rcu_sync = {
	.name = "rcu_sync",
	.what = "percpu_rwsem as it is, with rcu_sync",
	.init = init_rwsem,
	.fini = free_rwsem,
	.read_lock = percpu_rwsem_section_lock,
	.read_unlock = percpu_rwsem_section_unlock,
	.write_lock = write_lock,
	.write_unlock = write_unlock,
	.fast = readers_are_fast,
};
