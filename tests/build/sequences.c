/* SPDX-License-Identifier: MIT */
/* sequences.c - a program with restartable sequences, for sequences.py to damage. */
#include <quiesce/percpu_rwsem.h>
#include <quiesce/shazptr.h>

static struct percpu_rw_semaphore sem;
static int object;

void count_twice(void);

__attribute__((noinline)) void count_twice(void)
{
	percpu_down_read(&sem);
	percpu_up_read(&sem);
}

__attribute__((noinline)) static void claim(void)
{
	shazptr_clear(shazptr_acquire(&object));
}

int main(void)
{
	if (percpu_init_rwsem(&sem))
		return 1;
	count_twice();
	claim();
	return 0;
}
