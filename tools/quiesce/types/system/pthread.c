/* SPDX-License-Identifier: MIT */
/* pthread.c - the C library's locks, one shared lock each. */
#include <pthread.h>

#include "types/loop.h"
#include "types/rwlock.h"
#include "types/table.h"

static pthread_mutex_t mutex __attribute__((aligned(128))) = PTHREAD_MUTEX_INITIALIZER;
/* The default kind: a writer waits until there is no reader, even if new readers keep coming. */
static pthread_rwlock_t rwlock __attribute__((aligned(128))) = PTHREAD_RWLOCK_INITIALIZER;
/* The kind in which readers wait behind a waiting writer. */
static pthread_rwlock_t writer_rwlock __attribute__((aligned(128))) = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static pthread_spinlock_t spinlock __attribute__((aligned(128)));

static int spinlock_init(enum op_fence fence)
{
	(void)fence;
	return -pthread_spin_init(&spinlock, PTHREAD_PROCESS_PRIVATE);
}

OP_READ(pthread_mutex, pthread_mutex_lock(&mutex), OP_LOAD, pthread_mutex_unlock(&mutex));
OP_READ(pthread_rwlock, pthread_rwlock_rdlock(&rwlock), OP_LOAD, pthread_rwlock_unlock(&rwlock));
OP_READ(pthread_rwlock_writer, pthread_rwlock_rdlock(&writer_rwlock), OP_LOAD, pthread_rwlock_unlock(&writer_rwlock));
OP_READ(pthread_spinlock, pthread_spin_lock(&spinlock), OP_LOAD, pthread_spin_unlock(&spinlock));

static void rwlock_write_lock(void)
{
	pthread_rwlock_wrlock(&rwlock);
}

static void rwlock_write_unlock(void)
{
	pthread_rwlock_unlock(&rwlock);
}

static void writer_rwlock_write_lock(void)
{
	pthread_rwlock_wrlock(&writer_rwlock);
}

static void writer_rwlock_write_unlock(void)
{
	pthread_rwlock_unlock(&writer_rwlock);
}

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

const struct op op_pthread_rwlock_writer = {
	.name = "pthread_rwlock_writer",
	.what = "one shared pthread reader-writer lock of the kind that prefers writers, read side",
	.read = &pthread_rwlock_writer_read,
};

const struct op op_pthread_spinlock = {
	.name = "pthread_spinlock",
	.what = "one shared pthread spinlock",
	.read = &pthread_spinlock_read,
	.init = spinlock_init,
};

const struct rwlock_op rwlock_op_pthread_rwlock = {
	.name = "pthread_rwlock",
	.what = "pthread reader-writer lock, as it is by default: prefers readers",
	.read_lock = pthread_rwlock_section_lock,
	.read_unlock = pthread_rwlock_section_unlock,
	.write_lock = rwlock_write_lock,
	.write_unlock = rwlock_write_unlock,
};

const struct rwlock_op rwlock_op_pthread_rwlock_writer = {
	.name = "pthread_rwlock_writer",
	.what = "pthread reader-writer lock of the kind that prefers writers",
	.read_lock = pthread_rwlock_writer_section_lock,
	.read_unlock = pthread_rwlock_writer_section_unlock,
	.write_lock = writer_rwlock_write_lock,
	.write_unlock = writer_rwlock_write_unlock,
};
