/* SPDX-License-Identifier: MIT */
/* pthread.c - the C library's locks, one shared lock each. */
#include <pthread.h>

#include "loop.h"
#include "types/rwlock.h"
#include "registry.h"

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

OP_FUNCTION(rwlock_write_lock, pthread_rwlock_wrlock(&rwlock))
OP_FUNCTION(rwlock_write_unlock, pthread_rwlock_unlock(&rwlock))
OP_FUNCTION(writer_rwlock_write_lock, pthread_rwlock_wrlock(&writer_rwlock))
OP_FUNCTION(writer_rwlock_write_unlock, pthread_rwlock_unlock(&writer_rwlock))

TYPE(pthread_mutex, .rank = 1540, .groups = RUN_READ,
	.what = "one shared pthread mutex",
	.read = &pthread_mutex_read);

static const struct rwlock_op pthread_rwlock_sides = {
	.what = "pthread reader-writer lock, as it is by default: prefers readers",
	.read_lock = pthread_rwlock_section_lock, .read_unlock = pthread_rwlock_section_unlock,
	.write_lock = rwlock_write_lock, .write_unlock = rwlock_write_unlock,
};

TYPE(pthread_rwlock, .rank = 1550, .groups = PEER_LOCK | RUN_READ | RUN_LOCK | RUN_BURST | REPORT_READ | REPORT_BURST | FAMILY_LOCK,
	.what = "one shared pthread reader-writer lock, read side",
	.reason = "its writer has no fast path of readers to switch off and on again; readers write a shared word",
	.read = &pthread_rwlock_read, .rwlock = &pthread_rwlock_sides);

static const struct rwlock_op pthread_rwlock_writer_sides = {
	.what = "pthread reader-writer lock of the kind that prefers writers",
	.read_lock = pthread_rwlock_writer_section_lock, .read_unlock = pthread_rwlock_writer_section_unlock,
	.write_lock = writer_rwlock_write_lock, .write_unlock = writer_rwlock_write_unlock,
};

TYPE(pthread_rwlock_writer, .rank = 1560, .groups = RUN_BURST | REPORT_BURST,
	.what = "one shared pthread reader-writer lock of the kind that prefers writers, read side",
	.read = &pthread_rwlock_writer_read, .rwlock = &pthread_rwlock_writer_sides);

TYPE(pthread_spinlock, .rank = 1530,
	.what = "one shared pthread spinlock",
	.read = &pthread_spinlock_read, .init = spinlock_init);
