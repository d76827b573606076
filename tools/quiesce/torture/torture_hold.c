/* SPDX-License-Identifier: MIT */
/* torture_hold.c - holds that threads keep for a while, hand over, and leave behind.
 *
 * A hold is a section, guard, lock or reference; its kind begins it, and its own end() checks the object right before it ends.
 * One thread at a time has a mailbox: that which has set MAIL_BUSY.
 */
#include "torture.h"

#define MAILBOXES 16

enum { MAIL_NONE, MAIL_BUSY, MAIL_HERE };

static struct mailbox {
	uint32_t state;
	struct hold hold;
} __attribute__((aligned(64))) mailbox[MAILBOXES];

static bool mailbox_take(struct mailbox *m, uint32_t from)
{
	/* raw: the mailboxes' own hand-over; acquire, with the release in mailbox_release(). */
	return __atomic_compare_exchange_n(&m->state, &from, MAIL_BUSY, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static void mailbox_release(struct mailbox *m, uint32_t state)
{
	/* raw: release, with the acquire in mailbox_take(). */
	__atomic_store_n(&m->state, state, __ATOMIC_RELEASE);
}

bool torture_post(const struct hold *h, struct tally *t, uint64_t random)
{
	struct mailbox *m = &mailbox[random % MAILBOXES];

	if (!mailbox_take(m, MAIL_NONE))
		return false;
	m->hold = *h;
	mailbox_release(m, MAIL_HERE);
	torture_count(t->n[TALLY_HANDED_OVER]);
	return true;
}

bool torture_fetch(struct hold *ret, uint64_t random)
{
	struct mailbox *m = &mailbox[random % MAILBOXES];

	if (quiesce_load_relaxed(&m->state) != MAIL_HERE || !mailbox_take(m, MAIL_HERE))
		return false;
	*ret = m->hold;
	mailbox_release(m, MAIL_NONE);
	return true;
}

/* Never waits for a lock, so the mailboxes are always emptied. */
void torture_collector(uint32_t index)
{
	struct tally *t = torture_extra(1);
	uint64_t random = 77310957 + index;
	struct hold h;
	bool last;

	do {
		last = torture_all_left();
		for (uint64_t i = 0; i < MAILBOXES; i++)
			if (torture_fetch(&h, i))
				h.end(&h, t);
		sleep_ns(random_next(&random) % 300000);
	} while (!last);
}

void torture_hold_section(struct tally *t, uint64_t *random)
{
	uint64_t r = random_next(random) >> 7;
	struct hold h;

	if (torture.kind->begin(&h, random, false)) {
		quiesce_store_relaxed(&t->holding, h.key + 1);
		torture.kind->use(&h, random);
		quiesce_store_relaxed(&t->holding, 0);
		if (r & 31 || !torture_post(&h, t, r >> 6))
			h.end(&h, t);
	}
	if (torture_fetch(&h, r >> 10))
		h.end(&h, t);
}

/* The handler may have interrupted a call for the same object. */
void torture_once(struct tally *t, uint64_t *random, uint64_t spins)
{
	struct hold h;

	if (!torture.kind->begin(&h, random, true))
		return;
	torture_spin(spins);
	h.end(&h, t);
}

void torture_leave_hold(struct tally *t, uint64_t *random)
{
	struct hold h;

	if (torture.kind->leaves && torture.kind->begin(&h, random, false) && !torture_post(&h, t, *random >> 13))
		h.end(&h, t);
}
