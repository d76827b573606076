/* SPDX-License-Identifier: MIT */
/* rwscale_bystanders.c - threads that read under RCU and do not use the lock.
 *
 * A grace period waits for all readers of the process: a lock whose writers wait for one each time pays for readers
 * of other data.  Their sections are long enough that threads are preempted inside, if there are more threads than
 * CPUs.
 */
#include <quiesce/rcu.h>

#include "rwscale.h"

#define SECTION_NS 20000

static void body(struct member *m)
{
	struct bystanders *b = m->team->arg;

	while (!quiesce_load_relaxed(&b->stop)) {
		rcu_read_lock();
		for (uint32_t i = 0; i < b->turns; i++)
			quiesce_cpu_relax();
		rcu_read_unlock();
	}
}

void bystanders_start(struct bystanders *b, int nr)
{
	*b = (struct bystanders){ .turns = turns_for(SECTION_NS), .team = { .nr = nr, .body = body, .arg = b } };
	if (nr)
		team_start(&b->team);
}

void bystanders_stop(struct bystanders *b)
{
	quiesce_store_relaxed(&b->stop, 1u);
	if (b->team.nr)
		team_join(&b->team);
}
