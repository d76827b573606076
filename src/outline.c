/* SPDX-License-Identifier: MIT */
/* outline.c - one exported symbol per inline fast path, for bindings, dlopen() and disassembly. */
#include <quiesce/rcu.h>
#include <quiesce/shazptr.h>

QUIESCE_API void quiesce_rcu_read_lock(void);
QUIESCE_API void quiesce_rcu_read_unlock(void);
QUIESCE_API int quiesce_rcu_read_lock_held(void);
QUIESCE_API struct shazptr_guard quiesce_shazptr_acquire(const void *ptr);
QUIESCE_API struct shazptr_guard quiesce_shazptr_protect(void **where);
QUIESCE_API struct shazptr_guard quiesce_shazptr_tryprotect(void **where);
QUIESCE_API void quiesce_shazptr_clear(struct shazptr_guard guard);

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

struct shazptr_guard quiesce_shazptr_acquire(const void *ptr)
{
	return quiesce__shazptr_acquire(ptr);
}

struct shazptr_guard quiesce_shazptr_protect(void **where)
{
	return quiesce__shazptr_protect(where);
}

struct shazptr_guard quiesce_shazptr_tryprotect(void **where)
{
	return quiesce__shazptr_tryprotect(where);
}

void quiesce_shazptr_clear(struct shazptr_guard guard)
{
	quiesce__shazptr_clear(guard);
}
