/* SPDX-License-Identifier: MIT */
/* release_build.c - see release_build.h. */
#include "release_build.h"

#if defined(QUIESCE_DEBUG)
#error "is the release build"
#endif

void release_lock(void)
{
	rcu_read_lock();
}

void release_unlock(void)
{
	rcu_read_unlock();
}

int release_srcu_lock(struct srcu_struct *domain)
{
	return srcu_read_lock(domain);
}

void release_srcu_unlock(struct srcu_struct *domain, int idx)
{
	srcu_read_unlock(domain, idx);
}

void release_up_read(struct percpu_rw_semaphore *sem)
{
	percpu_up_read(sem);
}

void release_call_rcu(struct rcu_head *head, void (*func)(struct rcu_head *head))
{
	call_rcu(head, func);
}

hazptr_t *release_alloc(void)
{
	return hazptr_alloc(NULL);
}

void release_free(hazptr_t *slot)
{
	hazptr_free(NULL, slot);
}
