/* SPDX-License-Identifier: MIT */
/* outline.c - one exported symbol per inline fast path, for bindings, dlopen() and disassembly. */
#include <quiesce/rcu.h>

QUIESCE_API void quiesce_rcu_read_lock(void);
QUIESCE_API void quiesce_rcu_read_unlock(void);
QUIESCE_API int quiesce_rcu_read_lock_held(void);

void quiesce_rcu_read_lock(void)
{
	quiesce__rcu_read_lock();
}

void quiesce_rcu_read_unlock(void)
{
	quiesce__rcu_read_unlock();
}

int quiesce_rcu_read_lock_held(void)
{
	return rcu_read_lock_held();
}
