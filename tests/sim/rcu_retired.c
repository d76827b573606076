/* SPDX-License-Identifier: MIT */
#include "rcu_retired.h"

#include "rcu/garbage.h"

#define LAST_WORDS 500
#define LAST_WORDS_OF(item) (NR_ITEMS + (item)->id) /* a word beside the item that no reader loads */

int nr_queued;
bool in_call[SIM_MAX_THREADS];

void check_and_free(struct rcu_head *head)
{
	struct item *item = (struct item *)head;

	sim_assert(!in_call[sim_self()]);
	sim_assert(!sim_cancelable());
	sim_assert(sim_data_read(LAST_WORDS_OF(item)) == LAST_WORDS);
	world_free(item);
}

void free_item(void *object)
{
	world_free(object);
}

void retire_sized(struct item *old, void (*callback)(struct rcu_head *head), size_t bytes)
{
	nr_queued++;
	sim_data_write(LAST_WORDS_OF(old), LAST_WORDS);
	in_call[sim_self()] = true;
	call_rcu_sized(&old->head, callback, bytes);
	in_call[sim_self()] = false;
}

void retire(struct item *old, void (*callback)(struct rcu_head *head))
{
	retire_sized(old, callback, QUIESCE_OBJECT_BYTES);
}

void queue_one(void)
{
	retire(world_replace(), check_and_free);
}

void queuer(void *nr)
{
	for (intptr_t i = 0; i < (intptr_t)nr; i++)
		queue_one();
}

void world_check_sums(void)
{
	int64_t sum = quiesce_load_relaxed(&quiesce__garbage), srcu = quiesce_load_relaxed(&quiesce__garbage_srcu);

	if (sum || srcu)
		sim_fail("nothing waits, and the sums of garbage are %lld and %lld", (long long)sum, (long long)srcu);
}

void finish_all_run(void)
{
	struct quiesce_stats stats;

	if (world_nr_freed != nr_queued)
		sim_fail("%d callbacks queued, %d have run, and all threads are idle", nr_queued, world_nr_freed);
	quiesce_get_stats(&stats, sizeof stats);
	sim_assert(stats.garbage_objects == 0);
	sim_assert(stats.garbage_bytes == 0);
	world_check_sums();
}

void throttle_at(void *nr)
{
	uint32_t never = 0;

	/* The thread sleeps, so that time goes on for threads that wait for a time. */
	while (nr_queued < (intptr_t)nr)
		platform_futex_wait(&never, 0, 10000000);
	rcu_throttle();
	while (world_nr_freed < nr_queued) { /* the last retirer may not have queued its item yet */
		platform_futex_wait(&never, 0, 10000000);
		rcu_throttle();
	}
}

void setup_callbacks(void)
{
	world_begin();
	world_readers(driver_readers);
	sim_spawn(queuer, (void *)3, "queuer");
	sim_spawn(queuer, (void *)2, "queuer");
}
