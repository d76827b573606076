/* SPDX-License-Identifier: MIT */
/* quiesce/calls.h - every public call as a function, for other languages.
 *
 * Most calls of readers are inline functions and macros in the other headers, which a binding cannot reach. This header declares the
 * function that the library exports for each of them: quiesce_rcu_read_lock() is rcu_read_lock(). The manual of a call, with its context,
 * cost, order and return value, is in the header that heads its block here. Programs in C and C++ have no use for these functions.
 * docs/languages.md has examples of bindings, and says what a call costs.
 *
 * A macro on a typed pointer variable is a function of the address of that variable, a void **: rcu_dereference(p) is
 * quiesce_rcu_dereference((void **)&p), which returns a void *. Where a macro takes the name of a field, the function takes the offset of
 * the field. Where a call comes in two forms, with and without a size or another last argument, the function is the form with it.
 * The functions are the calls of a build without QUIESCE_DEBUG.
 *
 * Loops, initialisers and address arithmetic have no function. quiesce/ds/calls.h has the containers; it is included here, and so is
 * quiesce/control.h, which declares functions only. */
#ifndef QUIESCE_CALLS_H
#define QUIESCE_CALLS_H

#include <quiesce/control.h>
#include <quiesce/counted_ptr.h>
#include <quiesce/hazptr.h>
#include <quiesce/percpu_ref.h>
#include <quiesce/percpu_rwsem.h>
#include <quiesce/rcu.h>
#include <quiesce/rcu_sync.h>
#include <quiesce/shazptr.h>
#include <quiesce/slab.h>
#include <quiesce/srcu.h>
#include <quiesce/ds/calls.h>

/* A call that is a function anyway is declared by its own header as well. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wredundant-decls"

QUIESCE_BEGIN_DECLS

/* quiesce/rcu.h: @where is the address of the pointer variable, and @offset that of the struct rcu_head in an object of @bytes. */
QUIESCE_API void quiesce_rcu_read_lock(void);
QUIESCE_API void quiesce_rcu_read_unlock(void);
QUIESCE_API int quiesce_rcu_read_lock_held(void);
QUIESCE_API void *quiesce_rcu_dereference(void **where);
QUIESCE_API void *quiesce_rcu_dereference_raw(void **where);
QUIESCE_API void *quiesce_rcu_access_pointer(void **where);
QUIESCE_API void quiesce_rcu_assign_pointer(void **where, void *fresh);
QUIESCE_API void quiesce_RCU_INIT_POINTER(void **where, void *fresh);
QUIESCE_API void *quiesce_rcu_xchg_pointer(void **where, void *fresh);
QUIESCE_API bool quiesce_rcu_try_cmpxchg_pointer(void **where, void **expected, void *fresh);
QUIESCE_API void *quiesce_rcu_cmpxchg_pointer(void **where, void *old, void *fresh);
QUIESCE_API void quiesce_kfree_rcu(void *object, size_t offset, size_t bytes);
QUIESCE_API void quiesce_synchronize_rcu(void);
QUIESCE_API void quiesce_synchronize_rcu_expedited(void);
QUIESCE_API struct rcu_gp_seq quiesce_get_state_synchronize_rcu(void);
QUIESCE_API struct rcu_gp_seq quiesce_start_poll_synchronize_rcu(void);
QUIESCE_API int quiesce_poll_state_synchronize_rcu(struct rcu_gp_seq seq);
QUIESCE_API void quiesce_cond_synchronize_rcu(struct rcu_gp_seq seq);
QUIESCE_API struct rcu_gp_seq quiesce_get_completed_synchronize_rcu(void);
QUIESCE_API int quiesce_same_state_synchronize_rcu(struct rcu_gp_seq a, struct rcu_gp_seq b);
QUIESCE_API void quiesce_call_rcu(struct rcu_head *head, void (*func)(struct rcu_head *head), size_t bytes);
QUIESCE_API void quiesce_rcu_barrier(void);
QUIESCE_API void quiesce_rcu_throttle(void);
QUIESCE_API void quiesce_kfree_rcu_mightsleep(void *object, size_t bytes);

/* quiesce/srcu.h: @layout is QUIESCE_LAYOUT. A load inside a section is quiesce_rcu_dereference_raw(). */
QUIESCE_API void quiesce_cleanup_srcu_struct(struct srcu_struct *ssp);
QUIESCE_API void quiesce_srcu_after_fork_child(struct srcu_struct *ssp);
QUIESCE_API int quiesce_srcu_read_lock(struct srcu_struct *ssp);
QUIESCE_API void quiesce_srcu_read_unlock(struct srcu_struct *ssp, int idx);
QUIESCE_API void quiesce_smp_mb__after_srcu_read_unlock(void);
QUIESCE_API int quiesce_srcu_down_read(struct srcu_struct *ssp);
QUIESCE_API void quiesce_srcu_up_read(struct srcu_struct *ssp, int idx);
QUIESCE_API int quiesce_srcu_read_lock_held(const struct srcu_struct *ssp);
QUIESCE_API void quiesce_synchronize_srcu(struct srcu_struct *ssp);
QUIESCE_API void quiesce_synchronize_srcu_expedited(struct srcu_struct *ssp);
QUIESCE_API struct rcu_gp_seq quiesce_get_state_synchronize_srcu(struct srcu_struct *ssp);
QUIESCE_API int quiesce_same_state_synchronize_srcu(struct rcu_gp_seq a, struct rcu_gp_seq b);
QUIESCE_API struct rcu_gp_seq quiesce_start_poll_synchronize_srcu(struct srcu_struct *ssp);
QUIESCE_API int quiesce_poll_state_synchronize_srcu(struct srcu_struct *ssp, struct rcu_gp_seq seq);
QUIESCE_API struct rcu_gp_seq quiesce_get_completed_synchronize_srcu(void);
QUIESCE_API unsigned long quiesce_srcu_batches_completed(struct srcu_struct *ssp);
QUIESCE_API void quiesce_call_srcu(struct srcu_struct *ssp, struct rcu_head *head, void (*func)(struct rcu_head *head), size_t bytes);
QUIESCE_API void quiesce_srcu_barrier(struct srcu_struct *ssp);
QUIESCE_API int quiesce_init_srcu_struct(uint32_t layout, struct srcu_struct *ssp, const char *name);

/* quiesce/shazptr.h */
QUIESCE_API struct shazptr_guard quiesce_shazptr_acquire(const void *ptr);
QUIESCE_API struct shazptr_guard quiesce_shazptr_acquire_detached(const void *ptr);
QUIESCE_API void quiesce_shazptr_detach(struct shazptr_guard guard);
QUIESCE_API void quiesce_shazptr_clear(struct shazptr_guard guard);
QUIESCE_API void *quiesce_shazptr_ptr(struct shazptr_guard guard);
QUIESCE_API void quiesce_synchronize_shazptr(const void *ptr);
QUIESCE_API enum quiesce_slots quiesce_shazptr_slot(struct shazptr_guard guard);
QUIESCE_API struct shazptr_guard quiesce_shazptr_protect(void **where);
QUIESCE_API struct shazptr_guard quiesce_shazptr_tryprotect(void **where);
QUIESCE_API struct shazptr_guard quiesce_shazptr_protect_detached(void **where);

/* quiesce/hazptr.h: @offset is that of the struct hazptr_head, or 0 if slots protect the address of the object. */
QUIESCE_API int quiesce_init_hazptr_context(struct hazptr_context *ctx);
QUIESCE_API void quiesce_cleanup_hazptr_context(struct hazptr_context *ctx);
QUIESCE_API hazptr_t *quiesce_hazptr_alloc(struct hazptr_context *ctx);
QUIESCE_API hazptr_t *quiesce_hazptr_alloc_detached(void);
QUIESCE_API void quiesce_hazptr_free(struct hazptr_context *ctx, hazptr_t *slot);
QUIESCE_API void quiesce_hazptr_set(hazptr_t *slot, const void *ptr);
QUIESCE_API void quiesce_hazptr_clear(hazptr_t *slot);
QUIESCE_API hazptr_t *quiesce_hazptr_alloc_array(struct hazptr_context *ctx, size_t nr);
QUIESCE_API void quiesce_hazptr_free_array(struct hazptr_context *ctx, hazptr_t *row, size_t nr);
QUIESCE_API bool quiesce_hazptr_alloc_batch(struct hazptr_context *ctx, hazptr_t **ret_slots, size_t nr);
QUIESCE_API void quiesce_hazptr_protect_batch(hazptr_t *const *batch, void **const *where, void **ret_ptrs, size_t nr);
QUIESCE_API void quiesce_hazptr_clear_batch(hazptr_t *const *batch, size_t nr);
QUIESCE_API void quiesce_hazptr_free_batch(struct hazptr_context *ctx, hazptr_t *const *batch, size_t nr);
QUIESCE_API void quiesce_synchronize_hazptr(const void *ptr);
QUIESCE_API void *quiesce_hazptr_protect(hazptr_t *slot, void **where, size_t offset);
QUIESCE_API void *quiesce_hazptr_tryprotect(hazptr_t *slot, void **where, size_t offset);
QUIESCE_API void *quiesce_hazptr_protect_masked(hazptr_t *slot, void **where, uintptr_t marks, size_t offset);

/* quiesce/hazptr_retire.h: @bytes is the size of an object; QUIESCE_OBJECT_BYTES where it is not known. */
QUIESCE_API void quiesce_call_hazptr(struct hazptr_head *head, void (*func)(struct hazptr_head *head), size_t bytes);
QUIESCE_API void quiesce_call_hazptr_inline(struct hazptr_head *head, void (*func)(struct hazptr_head *head), size_t bytes);
QUIESCE_API void quiesce_hazptr_retire(void *object, void (*deleter)(void *object), size_t bytes);
QUIESCE_API void quiesce_hazptr_barrier(void);
QUIESCE_API bool quiesce_hazptr_try_barrier(void);
QUIESCE_API int quiesce_set_hazptr_batch(uint32_t least, uint32_t most);
QUIESCE_API int quiesce_set_thread_hazptr_batch(uint32_t least, uint32_t most);
QUIESCE_API void quiesce_kfree_hazptr(void *object, size_t offset, size_t bytes);

/* quiesce/hazptr_cohort.h */
QUIESCE_API void quiesce_call_hazptr_cohort(struct hazptr_cohort *cohort, struct hazptr_head *head, void (*func)(struct hazptr_head *head));
QUIESCE_API void quiesce_synchronize_hazptr_cohort(struct hazptr_cohort *cohort);

/* quiesce/counted_ptr.h: @offset is that of the struct counted in an object. */
QUIESCE_API void quiesce_counted_init(struct counted *counted, void (*release)(struct counted *counted));
QUIESCE_API int64_t quiesce_counted_read(const struct counted *counted);
QUIESCE_API void quiesce_counted_get(struct counted *counted);
QUIESCE_API bool quiesce_counted_tryget(struct counted *counted);
QUIESCE_API bool quiesce_counted_put(struct counted *counted);
QUIESCE_API void *quiesce_counted_protect(hazptr_t *slot, void **where, size_t offset);
QUIESCE_API void *quiesce_counted_tryprotect(hazptr_t *slot, void **where, size_t offset);
QUIESCE_API void *quiesce_counted_load(void **where, size_t offset);
QUIESCE_API void quiesce_counted_publish(void **where, void *fresh, size_t offset);
QUIESCE_API void *quiesce_counted_exchange(void **where, void *fresh);
QUIESCE_API bool quiesce_counted_cmpxchg(void **where, void **expected, void *fresh);

/* quiesce/percpu_ref.h: @layout is QUIESCE_LAYOUT. */
QUIESCE_API int quiesce_percpu_ref_init(uint32_t layout, struct percpu_ref *ref, percpu_ref_func_t *release, unsigned int flags);
QUIESCE_API void quiesce_percpu_ref_exit(struct percpu_ref *ref);
QUIESCE_API void quiesce_percpu_ref_get(struct percpu_ref *ref);
QUIESCE_API void quiesce_percpu_ref_get_many(struct percpu_ref *ref, unsigned long nr);
QUIESCE_API void quiesce_percpu_ref_put(struct percpu_ref *ref);
QUIESCE_API void quiesce_percpu_ref_put_many(struct percpu_ref *ref, unsigned long nr);
QUIESCE_API bool quiesce_percpu_ref_tryget(struct percpu_ref *ref);
QUIESCE_API bool quiesce_percpu_ref_tryget_many(struct percpu_ref *ref, unsigned long nr);
QUIESCE_API bool quiesce_percpu_ref_tryget_live(struct percpu_ref *ref);
QUIESCE_API void quiesce_percpu_ref_kill_and_confirm(struct percpu_ref *ref, percpu_ref_func_t *confirm);
QUIESCE_API void quiesce_percpu_ref_kill(struct percpu_ref *ref);
QUIESCE_API void quiesce_percpu_ref_kill_many(struct percpu_ref **refs, size_t nr);
QUIESCE_API void quiesce_percpu_ref_switch_to_atomic(struct percpu_ref *ref, percpu_ref_func_t *confirm);
QUIESCE_API void quiesce_percpu_ref_switch_to_atomic_sync(struct percpu_ref *ref);
QUIESCE_API void quiesce_percpu_ref_switch_to_percpu(struct percpu_ref *ref);
QUIESCE_API void quiesce_percpu_ref_reinit(struct percpu_ref *ref);
QUIESCE_API void quiesce_percpu_ref_resurrect(struct percpu_ref *ref);
QUIESCE_API bool quiesce_percpu_ref_is_dying(const struct percpu_ref *ref);
QUIESCE_API bool quiesce_percpu_ref_is_zero(const struct percpu_ref *ref);

/* quiesce/slab.h: @layout is QUIESCE_LAYOUT; @bytes is the size of the structure that the caller knows. */
QUIESCE_API struct kmem_cache *quiesce_kmem_cache_create(uint32_t layout, const char *name, size_t size, size_t align, unsigned int flags,
							 void (*ctor)(void *object));
QUIESCE_API void quiesce_kmem_cache_destroy(struct kmem_cache *cache);
QUIESCE_API int quiesce_kmem_cache_shrink(struct kmem_cache *cache);
QUIESCE_API size_t quiesce_kmem_cache_size(const struct kmem_cache *cache);
QUIESCE_API void *quiesce_kmem_cache_alloc(struct kmem_cache *cache);
QUIESCE_API void *quiesce_kmem_cache_zalloc(struct kmem_cache *cache);
QUIESCE_API void quiesce_kmem_cache_free(struct kmem_cache *cache, void *object);
QUIESCE_API size_t quiesce_kmem_cache_alloc_bulk(struct kmem_cache *cache, size_t nr, void **ret_objects);
QUIESCE_API void quiesce_kmem_cache_free_bulk(struct kmem_cache *cache, size_t nr, void **objects);
QUIESCE_API void quiesce_kfree(const void *object);
QUIESCE_API void quiesce_kmem_cache_get_stats(const struct kmem_cache *cache, struct kmem_cache_stats *ret_stats, size_t bytes);

/* quiesce/percpu_rwsem.h: @layout is QUIESCE_LAYOUT. */
QUIESCE_API int quiesce_percpu_init_rwsem(uint32_t layout, struct percpu_rw_semaphore *sem);
QUIESCE_API void quiesce_percpu_rwsem_after_fork_child(struct percpu_rw_semaphore *sem);
QUIESCE_API void quiesce_percpu_free_rwsem(struct percpu_rw_semaphore *sem);
QUIESCE_API void quiesce_percpu_down_read(struct percpu_rw_semaphore *sem);
QUIESCE_API bool quiesce_percpu_down_read_trylock(struct percpu_rw_semaphore *sem);
QUIESCE_API bool quiesce_percpu_down_read_timeout(struct percpu_rw_semaphore *sem, uint64_t timeout_ns);
QUIESCE_API void quiesce_percpu_up_read(struct percpu_rw_semaphore *sem);
QUIESCE_API void quiesce_percpu_down_write(struct percpu_rw_semaphore *sem);
QUIESCE_API void quiesce_percpu_down_write_many(struct percpu_rw_semaphore *const *sems, size_t nr);
QUIESCE_API bool quiesce_percpu_down_write_timeout(struct percpu_rw_semaphore *sem, uint64_t timeout_ns);
QUIESCE_API bool quiesce_percpu_down_write_trylock(struct percpu_rw_semaphore *sem);
QUIESCE_API void quiesce_percpu_up_write(struct percpu_rw_semaphore *sem);
QUIESCE_API bool quiesce_percpu_is_read_locked(const struct percpu_rw_semaphore *sem);
QUIESCE_API bool quiesce_percpu_is_write_locked(const struct percpu_rw_semaphore *sem);
QUIESCE_API bool quiesce_percpu_is_write_locked_by_me(const struct percpu_rw_semaphore *sem);
QUIESCE_API bool quiesce_percpu_rwsem_is_held(const struct percpu_rw_semaphore *sem);
QUIESCE_API void quiesce_percpu_rwsem_assert_held(const struct percpu_rw_semaphore *sem);
QUIESCE_API void quiesce_percpu_rwsem_assert_held_write(const struct percpu_rw_semaphore *sem);

/* quiesce/rcu_sync.h: @ops and @domain are NULL for grace periods of RCU. */
QUIESCE_API void quiesce_rcu_sync_init(struct rcu_sync *rss, const struct rcu_sync_ops *ops, void *domain);
QUIESCE_API bool quiesce_rcu_sync_is_idle(const struct rcu_sync *rss);
QUIESCE_API void quiesce_rcu_sync_enter(struct rcu_sync *rss);
QUIESCE_API void quiesce_rcu_sync_exit(struct rcu_sync *rss);
QUIESCE_API void quiesce_rcu_sync_dtor(struct rcu_sync *rss);

QUIESCE_END_DECLS

#pragma GCC diagnostic pop

#endif
