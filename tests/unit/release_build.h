/* SPDX-License-Identifier: MIT */
/* release_build.h - a part of the program that is built without QUIESCE_DEBUG: its calls are those of a release build. */
#ifndef RELEASE_BUILD_H
#define RELEASE_BUILD_H

#include <quiesce/hazptr.h>
#include <quiesce/percpu_rwsem.h>
#include <quiesce/rcu.h>
#include <quiesce/srcu.h>

void release_lock(void);
void release_unlock(void);
int release_srcu_lock(struct srcu_struct *domain);
void release_srcu_unlock(struct srcu_struct *domain, int idx);
void release_up_read(struct percpu_rw_semaphore *sem);
void release_call_rcu(struct rcu_head *head, void (*func)(struct rcu_head *head));
hazptr_t *release_alloc(void);
void release_free(hazptr_t *slot);

#endif
