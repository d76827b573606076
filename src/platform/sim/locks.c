/* SPDX-License-Identifier: MIT */
/* locks.c - the holders of short locks of runtime/lock.h, and the threads inside the gate of runtime/gate.h.
 *
 * A missing or repeated unlock, or one by another thread, leaves a normal lock word, and shows only if a
 * thread happens to need the lock later; a gate that is never left shows only if a process forks.  So the
 * machine records both by owner, and reports at once:
 * 	a thread that takes a lock that it holds, releases one that it does not hold, or ends as a holder; and a thread
 * 	that enters a place for one thread while another is inside.
 * A thread that is taking or releasing a lock counts as its holder in sched.c, which stops no holder for
 * good: a release may have woken just that thread.  A signal handler that runs in between may take the same
 * lock, and does not fail here.
 */
#include "machine.h"

#include "platform/owned.h"

static uint32_t place_of(const struct thread *t, const void *it)
{
	uint32_t i = 0;

	while (i < t->nr_owned && t->owned[i] != it)
		i++;
	return i;
}

static bool owns(const struct thread *t, const void *it)
{
	return place_of(t, it) < t->nr_owned;
}

static void take(struct thread *t, const void *it)
{
	if (t->nr_owned == SIM_MAX_OWNED)
		sim_fail("machine: more than %d locks", SIM_MAX_OWNED);
	t->owned[t->nr_owned++] = it;
}

static void give_back(struct thread *t, const char *what, const void *it)
{
	uint32_t place = place_of(t, it);

	if (place == t->nr_owned)
		sim_fail("%s gives back the %s at %p, which it does not hold", t->name, what, it);
	t->owned[place] = t->owned[--t->nr_owned];
}

void sim__lock_step(const struct quiesce__lock *lock, enum sim__lock_step step)
{
	struct thread *t = sim__current();

	if (!t)
		return;
	switch (step) {
	case SIM_LOCK_WANTED:
		if (owns(t, lock))
			sim_fail("%s takes the lock at %p, which it holds", t->name, (const void *)lock);
		t->nr_locks++;
		break;
	case SIM_LOCK_TAKEN:
		take(t, lock);
		break;
	case SIM_LOCK_RETURNED:
		give_back(t, "lock", lock);
		break;
	case SIM_LOCK_LEFT:
		t->nr_locks--;
		break;
	}
}

void sim__lock_reset(const struct quiesce__lock *lock, bool mine)
{
	struct thread *t = sim__current();

	/* A signal handler may fork while its thread takes or releases a lock; the thread then continues with
	 * that in the child. */
	if (!t || mine || !owns(t, lock))
		return;
	sim__lock_step(lock, SIM_LOCK_RETURNED);
	sim__lock_step(lock, SIM_LOCK_LEFT);
}

void sim__gate(const uint32_t *running, bool inside)
{
	struct thread *t = sim__current();

	if (!t)
		return;
	if (!inside) {
		give_back(t, "gate", running);
		return;
	}
	if (owns(t, running))
		sim_fail("%s enters the gate at %p, and is inside", t->name, (const void *)running);
	take(t, running);
}

void sim__alone(const void *it, bool inside)
{
	struct thread *t = sim__current();

	if (!t)
		return;
	for (const struct thread *other = M->threads; inside && other < M->threads + M->nr_threads; other++)
		if (other->state != THREAD_DONE && owns(other, it))
			sim_fail("%s comes to %p, where %s is, and may not be both", t->name, it, other->name);
	if (inside)
		take(t, it);
	else
		give_back(t, "place", it);
}

void sim__locks_at_end(const struct thread *t)
{
	if (t->nr_owned)
		sim_fail("%s ends with the lock or gate at %p", t->name, t->owned[0]);
}
