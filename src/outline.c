/* SPDX-License-Identifier: MIT */
/* outline.c - the functions of quiesce/calls.h: one exported symbol per inline call, for bindings, dlopen() and disassembly. Those of the
 * containers are in outline_ds.c. Those that are written out find the thread or its slots, and have the form for programs without
 * QUIESCE_DEBUG by name. */
#include "outline.h"
#include "runtime/core.h"
#include <quiesce/calls.h>

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

/* ---- calls that take the offset of a field ---- */

struct shazptr_guard quiesce_shazptr_protect_detached(void **where)
{
	return quiesce__shazptr_protect_detached(where);
}

void *quiesce_hazptr_protect_masked(hazptr_t *slot, void **where, uintptr_t marks, size_t offset)
{
	return quiesce__hazptr_protect(slot, where, offset, marks);
}

void *quiesce_counted_protect(hazptr_t *slot, void **where, size_t offset)
{
	return quiesce__hazptr_protect(slot, where, offset + offsetof(struct counted, hazptr), 0);
}

void *quiesce_counted_tryprotect(hazptr_t *slot, void **where, size_t offset)
{
	return quiesce__hazptr_tryprotect(slot, where, offset + offsetof(struct counted, hazptr), 0);
}

void quiesce_counted_publish(void **where, void *fresh, size_t offset)
{
	quiesce__counted_publish(where, fresh, offset);
}

/* In the macros the compiler refuses an offset that would be taken for the address of a function. */
static bool is_freeable(const void *object, size_t offset, const char *call)
{
	if (offset < QUIESCE_KFREE_OFFSET_MAX)
		return object != NULL;
	quiesce__misuse(QUIESCE_MISUSE_ARGUMENT, "%s of %p: the offset of its head is %zu, not below %d: it is not freed",
			call, object, offset, QUIESCE_KFREE_OFFSET_MAX);
	return false;
}

void quiesce_kfree_rcu(void *object, size_t offset, size_t bytes)
{
	if (is_freeable(object, offset, "kfree_rcu()"))
		quiesce_call_rcu((struct rcu_head *)((char *)object + offset),
				 QUIESCE_AS_POINTER(void (*)(struct rcu_head *), 1 + offset), bytes);
}

void quiesce_kfree_hazptr(void *object, size_t offset, size_t bytes)
{
	if (is_freeable(object, offset, "kfree_hazptr()"))
		quiesce_call_hazptr((struct hazptr_head *)((char *)object + offset),
				    QUIESCE_AS_POINTER(void (*)(struct hazptr_head *), 1 + offset), bytes);
}

/* ---- the rest ---- */

CALL(struct rcu_gp_seq, get_completed_synchronize_rcu, (void), ())
CALL(int, same_state_synchronize_rcu, (struct rcu_gp_seq a, struct rcu_gp_seq b), (a, b))
CALL(void *, rcu_dereference, (void **where), (*where))
CALL(void *, rcu_dereference_raw, (void **where), (*where))
CALL(void *, rcu_access_pointer, (void **where), (*where))
VOID_CALL(rcu_assign_pointer, (void **where, void *fresh), (*where, fresh))
VOID_CALL(RCU_INIT_POINTER, (void **where, void *fresh), (*where, fresh))
CALL(void *, rcu_xchg_pointer, (void **where, void *fresh), (where, fresh))
CALL(bool, rcu_try_cmpxchg_pointer, (void **where, void **expected, void *fresh), (where, expected, fresh))
CALL(void *, rcu_cmpxchg_pointer, (void **where, void *old, void *fresh), (where, old, fresh))

VOID_CALL(smp_mb__after_srcu_read_unlock, (void), ())
CALL(int, srcu_down_read, (struct srcu_struct *ssp), (ssp))
VOID_CALL(srcu_up_read, (struct srcu_struct *ssp, int idx), (ssp, idx))
CALL(int, srcu_read_lock_held, (const struct srcu_struct *ssp), (ssp))
CALL(int, same_state_synchronize_srcu, (struct rcu_gp_seq a, struct rcu_gp_seq b), (a, b))
CALL(struct rcu_gp_seq, get_completed_synchronize_srcu, (void), ())

VOID_CALL(shazptr_detach, (struct shazptr_guard guard), (guard))
CALL(void *, shazptr_ptr, (struct shazptr_guard guard), (guard))

VOID_CALL(hazptr_set, (hazptr_t *slot, const void *ptr), (slot, ptr))
CALL(hazptr_t *, hazptr_alloc_array, (struct hazptr_context *ctx, size_t nr), (ctx, nr))
VOID_CALL(hazptr_free_array, (struct hazptr_context *ctx, hazptr_t *slots, size_t nr), (ctx, slots, nr))
VOID_CALL(hazptr_clear_batch, (hazptr_t *const *slots, size_t nr), (slots, nr))
VOID_CALL(hazptr_free_batch, (struct hazptr_context *ctx, hazptr_t *const *slots, size_t nr), (ctx, slots, nr))
VOID_CALL(synchronize_hazptr, (const void *ptr), (ptr))

VOID_CALL(counted_init, (struct counted *counted, void (*release)(struct counted *counted)), (counted, release))
CALL(int64_t, counted_read, (const struct counted *counted), (counted))
CALL(void *, counted_exchange, (void **where, void *fresh), (where, fresh))
CALL(bool, counted_cmpxchg, (void **where, void **expected, void *fresh), (where, expected, fresh))

VOID_CALL(percpu_ref_get_many, (struct percpu_ref *ref, unsigned long nr), (ref, nr))
VOID_CALL(percpu_ref_put_many, (struct percpu_ref *ref, unsigned long nr), (ref, nr))
CALL(bool, percpu_ref_tryget_many, (struct percpu_ref *ref, unsigned long nr), (ref, nr))
VOID_CALL(percpu_ref_kill, (struct percpu_ref *ref), (ref))
VOID_CALL(percpu_ref_switch_to_atomic_sync, (struct percpu_ref *ref), (ref))
CALL(bool, percpu_ref_is_dying, (const struct percpu_ref *ref), (ref))
CALL(bool, percpu_ref_is_zero, (const struct percpu_ref *ref), (ref))

CALL(bool, percpu_down_write_trylock, (struct percpu_rw_semaphore *sem), (sem))
CALL(bool, percpu_rwsem_is_held, (const struct percpu_rw_semaphore *sem), (sem))
VOID_CALL(percpu_rwsem_assert_held, (const struct percpu_rw_semaphore *sem), (sem))
VOID_CALL(percpu_rwsem_assert_held_write, (const struct percpu_rw_semaphore *sem), (sem))

CALL(void *, kmem_cache_alloc, (struct kmem_cache *cache), (cache))
CALL(void *, kmem_cache_zalloc, (struct kmem_cache *cache), (cache))
VOID_CALL(kmem_cache_free, (struct kmem_cache *cache, void *object), (cache, object))

CALL(bool, rcu_sync_is_idle, (const struct rcu_sync *rss), (rss))
