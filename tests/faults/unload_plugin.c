/* SPDX-License-Identifier: MIT */
/* unload_plugin.c - a plug-in for unload.c: it uses RCU, and with -DSEQUENCES inline calls that use restartable sequences. */
#include <quiesce/rcu.h>

#include <stdlib.h>

void plugin_use(void);

#ifdef SEQUENCES
#include <quiesce/percpu_rwsem.h>

DEFINE_STATIC_PERCPU_RWSEM(sem);

static void count(void)
{
	for (int i = 0; i < 1000; i++) {
		percpu_down_read(&sem);
		percpu_up_read(&sem);
	}
}
#else
static void count(void) {}
#endif

/* All objects that the plug-in has retired are reclaimed before this returns. */
void plugin_use(void)
{
	struct object { struct rcu_head rcu; } *object = malloc(sizeof *object);

	rcu_read_lock();
	rcu_read_unlock();
	if (object)
		kfree_rcu(object, rcu);
	rcu_barrier();
	count();
}
