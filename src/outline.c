/* SPDX-License-Identifier: MIT */
/* outline.c - one exported symbol per inline fast path, for bindings, dlopen() and disassembly; those of the
 * containers are in ds/outline.c. */
#include <quiesce/counted_ptr.h>
#include <quiesce/percpu_ref.h>
#include <quiesce/percpu_rwsem.h>
#include <quiesce/rcu.h>
#include <quiesce/shazptr.h>
#include <quiesce/srcu.h>

QUIESCE_API void quiesce_rcu_read_lock(void);
QUIESCE_API void quiesce_rcu_read_unlock(void);
QUIESCE_API int quiesce_rcu_read_lock_held(void);
QUIESCE_API struct shazptr_guard quiesce_shazptr_acquire(const void *ptr);
QUIESCE_API struct shazptr_guard quiesce_shazptr_protect(void **where);
QUIESCE_API struct shazptr_guard quiesce_shazptr_tryprotect(void **where);
QUIESCE_API void quiesce_shazptr_clear(struct shazptr_guard guard);
QUIESCE_API hazptr_t *quiesce_hazptr_alloc(struct hazptr_context *ctx);
QUIESCE_API void quiesce_hazptr_free(struct hazptr_context *ctx, hazptr_t *slot);
QUIESCE_API void *quiesce_hazptr_protect(hazptr_t *slot, void **where, size_t offset);
QUIESCE_API void *quiesce_hazptr_tryprotect(hazptr_t *slot, void **where, size_t offset);
QUIESCE_API void quiesce_hazptr_clear(hazptr_t *slot);
QUIESCE_API void quiesce_counted_get(struct counted *counted);
QUIESCE_API bool quiesce_counted_tryget(struct counted *counted);
QUIESCE_API bool quiesce_counted_put(struct counted *counted);
QUIESCE_API void *quiesce_counted_load(void **where, size_t offset);
QUIESCE_API void quiesce_percpu_ref_get(struct percpu_ref *ref);
QUIESCE_API bool quiesce_percpu_ref_tryget(struct percpu_ref *ref);
QUIESCE_API bool quiesce_percpu_ref_tryget_live(struct percpu_ref *ref);
QUIESCE_API void quiesce_percpu_ref_put(struct percpu_ref *ref);
QUIESCE_API int quiesce_srcu_read_lock(struct srcu_struct *ssp);
QUIESCE_API void quiesce_srcu_read_unlock(struct srcu_struct *ssp, int idx);
QUIESCE_API void quiesce_percpu_down_read(struct percpu_rw_semaphore *sem);
QUIESCE_API bool quiesce_percpu_down_read_trylock(struct percpu_rw_semaphore *sem);
QUIESCE_API void quiesce_percpu_up_read(struct percpu_rw_semaphore *sem);

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

hazptr_t *quiesce_hazptr_alloc(struct hazptr_context *ctx)
{
	return hazptr_alloc(ctx);
}

void quiesce_hazptr_free(struct hazptr_context *ctx, hazptr_t *slot)
{
	hazptr_free(ctx, slot);
}

void *quiesce_hazptr_protect(hazptr_t *slot, void **where, size_t offset)
{
	return quiesce__hazptr_protect(slot, where, offset, 0);
}

void *quiesce_hazptr_tryprotect(hazptr_t *slot, void **where, size_t offset)
{
	return quiesce__hazptr_tryprotect(slot, where, offset, 0);
}

void quiesce_hazptr_clear(hazptr_t *slot)
{
	hazptr_clear(slot);
}

void quiesce_counted_get(struct counted *counted)
{
	counted_get(counted);
}

bool quiesce_counted_tryget(struct counted *counted)
{
	return counted_tryget(counted);
}

bool quiesce_counted_put(struct counted *counted)
{
	return counted_put(counted);
}

void *quiesce_counted_load(void **where, size_t offset)
{
	return quiesce__counted_load(where, offset);
}

void quiesce_percpu_ref_get(struct percpu_ref *ref)
{
	percpu_ref_get(ref);
}

bool quiesce_percpu_ref_tryget(struct percpu_ref *ref)
{
	return percpu_ref_tryget(ref);
}

bool quiesce_percpu_ref_tryget_live(struct percpu_ref *ref)
{
	return percpu_ref_tryget_live(ref);
}

void quiesce_percpu_ref_put(struct percpu_ref *ref)
{
	percpu_ref_put(ref);
}

int quiesce_srcu_read_lock(struct srcu_struct *ssp)
{
	return quiesce__srcu_read_lock(ssp);
}

void quiesce_srcu_read_unlock(struct srcu_struct *ssp, int idx)
{
	quiesce__srcu_read_unlock(ssp, idx);
}

void quiesce_percpu_down_read(struct percpu_rw_semaphore *sem)
{
	quiesce__percpu_down_read(sem);
}

bool quiesce_percpu_down_read_trylock(struct percpu_rw_semaphore *sem)
{
	return quiesce__percpu_down_read_trylock(sem);
}

void quiesce_percpu_up_read(struct percpu_rw_semaphore *sem)
{
	quiesce__percpu_up_read(sem);
}
