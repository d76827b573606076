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
#include "types/loop.h"
#include "types/rwlock.h"
#include "types/table.h"
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

void queuing_read_lock()
{
	own_place().acquire(queuing.mutex, READER);
}

void queuing_write_lock()
{
	own_place().acquire(queuing.mutex, WRITER);
}

void queuing_unlock()
{
	own_place().release();
}

OP_READ_OPS(queuing, queuing_read_lock, queuing_unlock);

constexpr op type(const char *name, const char *what, const op_read *read, bool queue = false)
{
	op result{};

	result.name = name;
	result.what = what;
	result.read = read;
	result.queue = queue;
	return result;
}

/* @lock and @unlock are the write side. */
constexpr rwlock_op both_sides(const char *name, const char *what, const op_read &read, void (*lock)(), void (*unlock)(),
			       bool queue = false)
{
	rwlock_op result{};

	result.name = name;
	result.what = what;
	result.read_lock = read.lock;
	result.read_unlock = read.unlock;
	result.write_lock = lock;
	result.write_unlock = unlock;
	result.queue = queue;
	return result;
}

} // namespace

const op op_tbb_spin_rw_mutex = type("tbb_spin_rw_mutex", "oneTBB's spinning reader-writer lock, read side", &spin_read);
const op op_tbb_rw_mutex = type("tbb_rw_mutex", "oneTBB's reader-writer lock that spins, then sleeps, read side", &plain_read);
const op op_tbb_queuing_rw_mutex = type("tbb_queuing_rw_mutex", "oneTBB's reader-writer lock with a queue, read side", &queuing_read,
					true);

const rwlock_op rwlock_op_tbb_spin_rw_mutex =
	both_sides("tbb_spin_rw_mutex", "oneTBB's spinning reader-writer lock", spin_read, [] { spin.mutex.lock(); },
		   [] { spin.mutex.unlock(); });
const rwlock_op rwlock_op_tbb_rw_mutex =
	both_sides("tbb_rw_mutex", "oneTBB's reader-writer lock that spins, then sleeps", plain_read, [] { plain.mutex.lock(); },
		   [] { plain.mutex.unlock(); });
const rwlock_op rwlock_op_tbb_queuing_rw_mutex =
	both_sides("tbb_queuing_rw_mutex", "oneTBB's reader-writer lock with a queue", queuing_read, queuing_write_lock,
		   queuing_unlock, true);
