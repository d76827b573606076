/* SPDX-License-Identifier: MIT */
/* percpu_rwsem_debug.c - checked calls, for programs that are built with QUIESCE_DEBUG. */
#include <quiesce/percpu_rwsem.h>

#include "percpu_rwsem.h"
#include "runtime/core.h"
#include "runtime/held.h"

/* A lock that debug code took may have been released by a part of the program that is a release build: then it is
 * not held, and the records are removed. */
static bool still_held(const struct percpu_rw_semaphore *sem, enum quiesce__held_kind kind)
{
	if (kind == QUIESCE_HELD_WRITE ? percpu_is_write_locked(sem) : percpu_is_read_locked(sem))
		return quiesce__held_by_me(sem, kind);
	while (quiesce__held_by_me(sem, kind))
		quiesce__held_remove(sem, kind);
	return false;
}

/* Report a wait that would never end, before it begins: afterwards the thread cannot report it. */
static void check_not_held(const struct percpu_rw_semaphore *sem, const char *call)
{
	bool write = still_held(sem, QUIESCE_HELD_WRITE);
	struct platform_location taken;

	if (write || still_held(sem, QUIESCE_HELD_READ))
		quiesce__misuse(QUIESCE_MISUSE_WAIT_IN_READER, "%s of %p by a thread that holds it for %s, taken at %s", call,
				(const void *)sem, write ? "writing" : "reading",
				platform_location(quiesce__held_since(sem, write ? QUIESCE_HELD_WRITE : QUIESCE_HELD_READ), &taken));
}

void quiesce__percpu_down_read_debug(struct percpu_rw_semaphore *sem)
{
	check_not_held(sem, "percpu_down_read()");
	quiesce__percpu_down_read(sem);
	quiesce__held_add(sem, QUIESCE_HELD_READ, quiesce__caller());
}

bool quiesce__percpu_down_read_until_debug(struct percpu_rw_semaphore *sem, uint64_t timeout_ns)
{
	bool done = quiesce_percpu_down_read_timeout(sem, timeout_ns);

	if (done)
		quiesce__held_add(sem, QUIESCE_HELD_READ, quiesce__caller());
	return done;
}

void quiesce__percpu_up_read_debug(struct percpu_rw_semaphore *sem)
{
	struct platform_location here;

	if (!percpu_is_read_locked(sem)) {
		quiesce__misuse(QUIESCE_MISUSE_UNBALANCED_UNLOCK, "percpu_up_read() at %s of %p, which nobody holds for reading",
				platform_location(quiesce__caller(), &here), (void *)sem);
		return;
	}
	quiesce__held_remove(sem, QUIESCE_HELD_READ);
	quiesce__percpu_up_read(sem);
}

void quiesce__percpu_down_write_debug(struct percpu_rw_semaphore *sem)
{
	check_not_held(sem, "percpu_down_write()");
	quiesce_percpu_down_write(sem);
	quiesce__held_add(sem, QUIESCE_HELD_WRITE, quiesce__caller());
}

void quiesce__percpu_down_write_many_debug(struct percpu_rw_semaphore *const *sems, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (sems[i])
			check_not_held(sems[i], "percpu_down_write_many()");
	quiesce_percpu_down_write_many(sems, nr);
	/* A lock that the array names twice is recorded once. */
	for (size_t i = 0; i < nr; i++)
		if (sems[i] && !quiesce__held_by_me(sems[i], QUIESCE_HELD_WRITE))
			quiesce__held_add(sems[i], QUIESCE_HELD_WRITE, quiesce__caller());
}

bool quiesce__percpu_down_write_until_debug(struct percpu_rw_semaphore *sem, uint64_t timeout_ns)
{
	bool done = quiesce_percpu_down_write_timeout(sem, timeout_ns);

	if (done)
		quiesce__held_add(sem, QUIESCE_HELD_WRITE, quiesce__caller());
	return done;
}

void quiesce__percpu_up_write_debug(struct percpu_rw_semaphore *sem)
{
	quiesce__held_remove(sem, QUIESCE_HELD_WRITE);
	quiesce__rwsem_up_write(sem, quiesce__caller());
}

bool quiesce__percpu_rwsem_held_debug(const struct percpu_rw_semaphore *sem, bool write)
{
	return quiesce__held_by_me(sem, write ? QUIESCE_HELD_WRITE : QUIESCE_HELD_READ);
}
