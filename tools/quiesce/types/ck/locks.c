/* SPDX-License-Identifier: MIT */
/* locks.c - Concurrency Kit's reader-writer locks, one shared lock each.  They spin.
 *
 * brlock: each reader has a line of its own, and a writer scans all of them.
 * bytelock: each of 56 readers has a byte of its own in the line of the lock; the others share a counter.
 * All other locks have one counter for all readers.
 */
#include <ck_brlock.h>
#include <ck_bytelock.h>
#include <ck_pflock.h>
#include <ck_rwlock.h>
#include <ck_swlock.h>

#include "loop.h"
#include "registry.h"
#include "types/rwlock.h"

#define ALIGNED __attribute__((aligned(128)))
#define INITIAL_EXEC __attribute__((tls_model("initial-exec")))

static ck_brlock_t brlock ALIGNED = CK_BRLOCK_INITIALIZER;
static ck_bytelock_t bytelock ALIGNED = CK_BYTELOCK_INITIALIZER;
static ck_pflock_t pflock ALIGNED = CK_PFLOCK_INITIALIZER;
static ck_rwlock_t rwlock ALIGNED = CK_RWLOCK_INITIALIZER;
static ck_swlock_t swlock ALIGNED = CK_SWLOCK_INITIALIZER;

OP_READ(ck_pflock, ck_pflock_read_lock(&pflock), OP_LOAD, ck_pflock_read_unlock(&pflock));
OP_READ(ck_rwlock, ck_rwlock_read_lock(&rwlock), OP_LOAD, ck_rwlock_read_unlock(&rwlock));
OP_READ(ck_swlock, ck_swlock_read_lock(&swlock), OP_LOAD, ck_swlock_read_unlock(&swlock));

/* ---- brlock ---- */

/* In a line of its own: a writer reads it while its thread writes it. */
static __thread struct {
	ck_brlock_reader_t reader;
} mine ALIGNED INITIAL_EXEC;

OP_FUNCTION(brlock_enter, ck_brlock_read_register(&brlock, &mine.reader))
OP_FUNCTION(brlock_exit, ck_brlock_read_unregister(&brlock, &mine.reader))

OP_KEPT(ck_brlock, ck_brlock_reader_t *, &mine.reader)

OP_SECTION_KEPT(ck_brlock, (ck_brlock_read_lock(&brlock, kept), OP_LOAD), ck_brlock_read_unlock(kept))

OP_FUNCTION(brlock_read_lock, ck_brlock_read_lock(&brlock, &mine.reader))
OP_FUNCTION(brlock_read_unlock, ck_brlock_read_unlock(&mine.reader))

OP_READ_OPS(ck_brlock, brlock_read_lock, brlock_read_unlock);

/* ---- bytelock ---- */

#define BYTES sizeof(((ck_bytelock_t *)NULL)->readers)

static uint64_t bytes_taken; /* one bit for each byte; written by all threads */
static unsigned int nr_without; /* number of threads that found no free byte */
static __thread unsigned int number INITIAL_EXEC;

/* Numbers from 1 on; up to BYTES a thread has a byte.  No two threads have the same
 * number: the lock identifies its writer by it, too. */
static void bytelock_enter(void)
{
	uint64_t taken = quiesce_load_relaxed(&bytes_taken);

	do {
		number = (unsigned int)__builtin_ctzll(~taken) + 1;
		if (number > BYTES) {
			number = (unsigned int)BYTES + 1 + quiesce_fetch_add_relaxed(&nr_without, 1u);
			return;
		}
		/* raw: a byte belongs to one thread, and its last user had unlocked before, so no order is needed. */
	} while (!__atomic_compare_exchange_n(&bytes_taken, &taken, taken | (1ull << (number - 1)), false, __ATOMIC_ACQUIRE,
					      __ATOMIC_RELAXED));
}

static void bytelock_exit(void)
{
	if (number <= BYTES)
		__atomic_fetch_and(&bytes_taken, ~(1ull << (number - 1)), __ATOMIC_RELEASE); /* raw: a byte has one user at a time. */
}

OP_KEPT(ck_bytelock, unsigned int, number)

OP_SECTION_KEPT(ck_bytelock, (ck_bytelock_read_lock(&bytelock, kept), OP_LOAD), ck_bytelock_read_unlock(&bytelock, kept))

OP_FUNCTION(bytelock_read_lock, ck_bytelock_read_lock(&bytelock, number))
OP_FUNCTION(bytelock_read_unlock, ck_bytelock_read_unlock(&bytelock, number))

OP_READ_OPS(ck_bytelock, bytelock_read_lock, bytelock_read_unlock);

/* ---- the types ---- */

#define LOCK(lock, type_rank, type_groups, enter, exit, text, ...)                                                 \
	TYPE(ck_##lock, .rank = type_rank, .groups = type_groups, .what = text ", read side", .read = &ck_##lock##_read, \
	     .thread_enter = enter, .thread_exit = exit, __VA_ARGS__)

/* BOTH() defines a type with its write side, for rwscale. */
#define BOTH(lock, type_rank, type_groups, enter, exit, rd_lock, rd_unlock, wr_lock, text, ...)                    \
	static void lock##_writer_lock(void)                                                                    \
	{                                                                                                       \
		wr_lock;                                                                                        \
	}                                                                                                       \
	static void lock##_writer_unlock(void)                                                                  \
	{                                                                                                       \
		ck_##lock##_write_unlock(&lock);                                                                \
	}                                                                                                       \
	static const struct rwlock_op lock##_sides = {                                                          \
		.what = text, .thread_enter = enter, .thread_exit = exit,                                       \
		.read_lock = rd_lock, .read_unlock = rd_unlock,                                                 \
		.write_lock = lock##_writer_lock, .write_unlock = lock##_writer_unlock,                         \
	};                                                                                                      \
	LOCK(lock, type_rank, type_groups, enter, exit, text, .rwlock = &lock##_sides, ##__VA_ARGS__)

BOTH(brlock, 1700, PEER_LOCK | RUN_LOCK | REPORT_READ | FAMILY_LOCK, brlock_enter, brlock_exit, brlock_read_lock, brlock_read_unlock,
     ck_brlock_write_lock(&brlock), "Concurrency Kit's big-reader lock: a line for each reader",
     .reason = "its section has one full fence, and writes a line of the reader alone; ours with full fences has two fences, and counts");
BOTH(rwlock, 1710, 0, NULL, NULL, ck_rwlock_section_lock, ck_rwlock_section_unlock, ck_rwlock_write_lock(&rwlock),
     "Concurrency Kit's reader-writer lock");
BOTH(pflock, 1720, 0, NULL, NULL, ck_pflock_section_lock, ck_pflock_section_unlock, ck_pflock_write_lock(&pflock),
     "Concurrency Kit's phase-fair lock");
/* Measured on the read side only, because its writers must use another lock among themselves. */
LOCK(swlock, 1730, 0, NULL, NULL, "Concurrency Kit's reader-writer lock for a single writer", .rwlock = NULL);
BOTH(bytelock, 1740, 0, bytelock_enter, bytelock_exit, bytelock_read_lock, bytelock_read_unlock,
     ck_bytelock_write_lock(&bytelock, number), "Concurrency Kit's byte lock: a byte for each reader, in one line");
