/* SPDX-License-Identifier: MIT */
/* std_shared_mutex.cpp - the C++ library's reader-writer lock, one shared lock. */
#include <shared_mutex>

extern "C" {
#include "types/loop.h"
#include "types/rwlock.h"
#include "types/table.h"
}

namespace {

struct alignas(128) {
	std::shared_mutex mutex;
} lock;

OP_READ(shared_mutex, lock.mutex.lock_shared(), OP_LOAD, lock.mutex.unlock_shared());

constexpr op type()
{
	op result{};

	result.name = "std_shared_mutex";
	result.what = "one shared std::shared_mutex, read side";
	result.read = &shared_mutex_read;
	return result;
}

constexpr rwlock_op both_sides()
{
	rwlock_op result{};

	result.name = "std_shared_mutex";
	result.what = "std::shared_mutex of the C++ library";
	result.read_lock = shared_mutex_section_lock;
	result.read_unlock = shared_mutex_section_unlock;
	result.write_lock = [] { lock.mutex.lock(); };
	result.write_unlock = [] { lock.mutex.unlock(); };
	return result;
}

} // namespace

const op op_std_shared_mutex = type();
const rwlock_op rwlock_op_std_shared_mutex = both_sides();
