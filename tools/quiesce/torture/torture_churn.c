/* SPDX-License-Identifier: MIT */
/* torture_churn.c - an object whose memory is reused as soon as its users have left.
 *
 * In each turn some users enter and leave; the owner waits for them by the primitive's own means, ends the object and
 * fills its memory with a pattern.  A user that accesses the object later, in the rest of a call that had let the
 * owner continue, destroys the pattern.
 */
#include <sched.h>
#include <string.h>

#include "torture.h"

#define PATTERN 0x6b

const struct torture_churn *torture_churn;

static char memory[CHURN_BYTES] __attribute__((aligned(128)));
static uint64_t turn;                     /* odd: each user may enter once */
static struct {
	uint64_t inside; /* the last turn in which the user has entered */
} __attribute__((aligned(128))) user[CHURN_USERS];

/* raw: the test's own hand-over; acquire and release of the object in its present life. */
#define SEE(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
/* raw: the test's own hand-over; acquire and release of the object in its present life. */
#define SAY(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)

static bool is_spoiled(void)
{
	for (size_t i = 0; i < CHURN_BYTES; i++)
		/* Relaxed: only a changed value matters. */
		if (quiesce_load_relaxed(&memory[i]) != PATTERN)
			return true;
	return false;
}

/* The users entered before and may have left: only the object synchronises their calls with the owner. */
static bool all_have_entered(uint64_t now)
{
	for (int i = 0; i < CHURN_USERS; i++)
		if (SEE(&user[i].inside) != now)
			return false;
	return true;
}

static void one_turn(uint64_t *random)
{
	uint64_t now = turn + 1;

	torture_churn->begin(memory);
	SAY(&turn, now);
	while (!all_have_entered(now) && !torture_stopped())
		sched_yield();
	if (!all_have_entered(now))
		return; /* the run ends: a user may still be inside */
	torture_spin(random_next(random) >> 11 & 255);
	torture_churn->wait(memory);
	torture_churn->end(memory);
	memset(memory, PATTERN, sizeof(memory));
	SAY(&turn, now + 1);
	if ((random_next(random) >> 11) % 4 == 0)
		sleep_ns(1000000);
	else
		torture_spin(*random >> 13 & 2047);
	if (is_spoiled())
		torture_count(torture_churn->errors->n);
	torture_count(torture_churn->turns->n);
	torture_count(torture.progress[PROGRESS_CHURN]);
}

void torture_churn_owner(uint32_t index)
{
	uint64_t random = 1540483477 + index;

	while (!torture_stopped()) {
		torture_stutter();
		one_turn(&random);
	}
}

void torture_churn_user(uint32_t index)
{
	uint64_t random = 374761393u * (index + 1), seen = 0;

	for (;;) {
		uint64_t now = SEE(&turn);
		int entered;

		if (torture_stopped())
			return;
		if (now == seen || now % 2 == 0) {
			sched_yield();
			continue;
		}
		seen = now;
		entered = torture_churn->enter(memory);
		SAY(&user[index].inside, now);
		torture_spin(random_next(&random) >> 11 & 1023);
		torture_churn->leave(memory, entered);
	}
}
