/* SPDX-License-Identifier: MIT */
/* locks.cpp - reader-writer locks of oneTBB, one shared lock each.
 *
 * spin_rw_mutex spins, then yields; rw_mutex spins, then sleeps; both prefer writers.  queuing_rw_mutex is a queue:
 * each thread waits for the one before it, which with more threads than CPUs often does not run.
 */
#include <oneapi/tbb/queuing_rw_mutex.h>
#include <oneapi/tbb/rw_mutex.h>
#include <oneapi/tbb/spin_rw_mutex.h>

extern "C" {
#include "loop.h"
#include "registry.h"
#include "types/rwlock.h"
}

namespace {

template <typename Mutex> struct alignas(128) shared {
	Mutex mutex;
};
shared<tbb::spin_rw_mutex> spin;
shared<tbb::rw_mutex> plain;
shared<tbb::queuing_rw_mutex> queuing;

OP_READ(spin, spin.mutex.lock_shared(), OP_LOAD, spin.mutex.unlock_shared());
OP_READ(plain, plain.mutex.lock_shared(), OP_LOAD, plain.mutex.unlock_shared());

/* An entry of the queue; the lock has no shorter way in. */
using place = tbb::queuing_rw_mutex::scoped_lock;
enum : bool { READER = false, WRITER = true };

OP_SECTION(queuing, place mine(queuing.mutex, READER), OP_LOAD, (void)0)

/* For locks whose lock and unlock are different functions; a thread has one entry, for either side. */
place &own_place()
{
	static thread_local place mine;
	return mine;
}

OP_FUNCTION(queuing_read_lock, own_place().acquire(queuing.mutex, READER))
OP_FUNCTION(queuing_write_lock, own_place().acquire(queuing.mutex, WRITER))
OP_FUNCTION(queuing_unlock, own_place().release())

OP_READ_OPS(queuing, queuing_read_lock, queuing_unlock);

#define SIDES(text, reads, lock_, unlock_, ...)                                                                   \
	{ .what = text, .read_lock = reads##_read.lock, .read_unlock = reads##_read.unlock, .write_lock = lock_,  \
	  .write_unlock = unlock_, __VA_ARGS__ }

const rwlock_op spin_sides =
	SIDES("oneTBB's spinning reader-writer lock", spin, [] { spin.mutex.lock(); }, [] { spin.mutex.unlock(); });
const rwlock_op plain_sides =
	SIDES("oneTBB's reader-writer lock that spins, then sleeps", plain, [] { plain.mutex.lock(); }, [] { plain.mutex.unlock(); });
const rwlock_op queuing_sides =
	SIDES("oneTBB's reader-writer lock with a queue", queuing, queuing_write_lock, queuing_unlock, .queue = true);

TYPE(tbb_spin_rw_mutex, .rank = 1800,
	.what = "oneTBB's spinning reader-writer lock, read side",
	.read = &spin_read, .rwlock = &spin_sides);
TYPE(tbb_rw_mutex, .rank = 1810, .groups = PEER_LOCK | RUN_LOCK | RUN_BURST | REPORT_READ | REPORT_BURST | FAMILY_LOCK,
	.what = "oneTBB's reader-writer lock that spins, then sleeps, read side",
	.reason = "its writer announces itself in the word of the lock, and spins; readers write that word",
	.read = &plain_read, .rwlock = &plain_sides);
TYPE(tbb_queuing_rw_mutex, .rank = 1820,
	.what = "oneTBB's reader-writer lock with a queue, read side",
	.queue = true, .read = &queuing_read, .rwlock = &queuing_sides);

} // namespace
