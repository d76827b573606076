/* SPDX-License-Identifier: MIT */
/* std_shared_mutex.cpp - the C++ library's reader-writer lock, one shared lock. */
#include <shared_mutex>

extern "C" {
#include "loop.h"
#include "registry.h"
#include "types/rwlock.h"
}

namespace {

struct alignas(128) {
	std::shared_mutex mutex;
} lock;

OP_READ(shared_mutex, lock.mutex.lock_shared(), OP_LOAD, lock.mutex.unlock_shared());

const rwlock_op sides = {
	.what = "std::shared_mutex of the C++ library",
	.read_lock = shared_mutex_section_lock, .read_unlock = shared_mutex_section_unlock,
	.write_lock = [] { lock.mutex.lock(); }, .write_unlock = [] { lock.mutex.unlock(); },
};

TYPE(std_shared_mutex, .rank = 1570, .groups = PEER_LOCK | RUN_LOCK | REPORT_READ | REPORT_BURST | FAMILY_LOCK,
	.what = "one shared std::shared_mutex, read side",
	.reason = "as pthread_rwlock, which it is made of",
	.read = &shared_mutex_read, .rwlock = &sides);

} // namespace
