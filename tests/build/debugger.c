/* SPDX-License-Identifier: MIT */
/* debugger.c - a call of each kind that counts or claims in a restartable sequence, one a line, for debugger.py to step over. */
#include <quiesce/percpu_ref.h>
#include <quiesce/percpu_rwsem.h>
#include <quiesce/shazptr.h>
#include <quiesce/srcu.h>

#include <stdio.h>

DEFINE_STATIC_SRCU(domain);
static struct percpu_rw_semaphore sem;
static struct percpu_ref ref;
static int object, *pointer = &object;

static void step_over(void)
{
	struct shazptr_guard first, second, third;
	int idx;

	idx = srcu_read_lock(&domain);
	srcu_read_unlock(&domain, idx);
	idx = srcu_down_read(&domain);
	srcu_up_read(&domain, idx);
	percpu_down_read(&sem);
	percpu_up_read(&sem);
	if (percpu_down_read_trylock(&sem))
		percpu_up_read(&sem);
	percpu_ref_get(&ref);
	percpu_ref_put(&ref);
	if (percpu_ref_tryget(&ref) && percpu_ref_tryget_live(&ref))
		percpu_ref_put_many(&ref, 2);
	first = shazptr_acquire(&object);
	second = shazptr_protect(&pointer);
	third = shazptr_acquire_detached(&object);
	shazptr_clear(third);
	shazptr_clear(second);
	shazptr_clear(first);
	puts("stepped over all");
}

static void unused(struct percpu_ref *released)
{
	(void)released;
}

int main(void)
{
	if (percpu_init_rwsem(&sem) || percpu_ref_init(&ref, unused, 0))
		return 1;
	step_over(); /* the first use allocates */
	step_over();
	return 0;
}
