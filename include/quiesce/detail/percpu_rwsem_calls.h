/* SPDX-License-Identifier: MIT */
/* quiesce/detail/percpu_rwsem_calls.h - the exported functions behind the calls of
 * percpu_rwsem.h, under names that no program has. */
#ifndef QUIESCE_DETAIL_PERCPU_RWSEM_CALLS_H
#define QUIESCE_DETAIL_PERCPU_RWSEM_CALLS_H

#include <quiesce/base.h>

#include <stdbool.h>

QUIESCE_BEGIN_DECLS

struct percpu_rw_semaphore;

QUIESCE_API int quiesce_percpu_init_rwsem(uint32_t layout, struct percpu_rw_semaphore *sem);
QUIESCE_API void quiesce_percpu_free_rwsem(struct percpu_rw_semaphore *sem);
QUIESCE_API void quiesce_percpu_rwsem_after_fork_child(struct percpu_rw_semaphore *sem);
QUIESCE_API void quiesce__percpu_down_read_slow(uint32_t layout, struct percpu_rw_semaphore *sem);
QUIESCE_API bool quiesce__percpu_down_read_until(uint32_t layout, struct percpu_rw_semaphore *sem, uint64_t deadline);
QUIESCE_API void quiesce__percpu_up_read_slow(struct percpu_rw_semaphore *sem);
QUIESCE_API void quiesce__percpu_down_read_debug(struct percpu_rw_semaphore *sem);
QUIESCE_API bool quiesce__percpu_down_read_until_debug(struct percpu_rw_semaphore *sem, uint64_t timeout_ns);
QUIESCE_API void quiesce__percpu_up_read_debug(struct percpu_rw_semaphore *sem);
QUIESCE_API void quiesce__percpu_down_write_debug(struct percpu_rw_semaphore *sem);
QUIESCE_API bool quiesce__percpu_down_write_until_debug(struct percpu_rw_semaphore *sem, uint64_t timeout_ns);
QUIESCE_API void quiesce__percpu_up_write_debug(struct percpu_rw_semaphore *sem);
QUIESCE_API bool quiesce__percpu_rwsem_held_debug(const struct percpu_rw_semaphore *sem, bool write);
QUIESCE_API bool quiesce_percpu_down_read_timeout(struct percpu_rw_semaphore *sem, uint64_t timeout_ns);
QUIESCE_API void quiesce_percpu_down_write(struct percpu_rw_semaphore *sem);
QUIESCE_API void quiesce_percpu_down_write_many(struct percpu_rw_semaphore *const *sems, size_t nr);
QUIESCE_API void quiesce__percpu_down_write_many_debug(struct percpu_rw_semaphore *const *sems, size_t nr);
QUIESCE_API bool quiesce_percpu_down_write_timeout(struct percpu_rw_semaphore *sem, uint64_t timeout_ns);
QUIESCE_API void quiesce_percpu_up_write(struct percpu_rw_semaphore *sem);
QUIESCE_API bool quiesce_percpu_is_read_locked(const struct percpu_rw_semaphore *sem);
QUIESCE_API bool quiesce_percpu_is_write_locked(const struct percpu_rw_semaphore *sem);
QUIESCE_API bool quiesce_percpu_is_write_locked_by_me(const struct percpu_rw_semaphore *sem);
QUIESCE_API void quiesce__percpu_rwsem_not_held(const struct percpu_rw_semaphore *sem, const char *where);

QUIESCE_END_DECLS

#endif
