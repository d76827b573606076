/* SPDX-License-Identifier: MIT */
/* pthread.c - the C library's locks, one shared lock each. */
#include <pthread.h>

#include "loop.h"
#include "table.h"

static pthread_mutex_t mutex __attribute__((aligned(128))) = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock __attribute__((aligned(128))) = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spinlock __attribute__((aligned(128)));

static int spinlock_init(enum op_fence fence)
{
	(void)fence;
	return -pthread_spin_init(&spinlock, PTHREAD_PROCESS_PRIVATE);
}

OP_READ(pthread_mutex, pthread_mutex_lock(&mutex), OP_LOAD, pthread_mutex_unlock(&mutex));
OP_READ(pthread_rwlock, pthread_rwlock_rdlock(&rwlock), OP_LOAD, pthread_rwlock_unlock(&rwlock));
OP_READ(pthread_spinlock, pthread_spin_lock(&spinlock), OP_LOAD, pthread_spin_unlock(&spinlock));

const struct op op_pthread_mutex = {
	.name = "pthread_mutex",
	.what = "one shared pthread mutex",
	.read = &pthread_mutex_read,
};

const struct op op_pthread_rwlock = {
	.name = "pthread_rwlock",
	.what = "one shared pthread reader-writer lock, read side",
	.read = &pthread_rwlock_read,
};

const struct op op_pthread_spinlock = {
	.name = "pthread_spinlock",
	.what = "one shared pthread spinlock",
	.read = &pthread_spinlock_read,
	.init = spinlock_init,
};
