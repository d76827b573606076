/* SPDX-License-Identifier: MIT */
/* hazptr_exits.c - scenarios: callbacks of retired objects that end their thread, wherever they run. */
#include "hazptr_world.h"

#include "runtime/core.h"

#include <quiesce/control.h>

#define MOST_EXITS 3
static int nr_exits;
static unsigned int retiring; /* a bit for each thread that will still retire into the cohort */

static void may_exit(void)
{
	sim_assert(!sim_cancelable());
	if (nr_exits == MOST_EXITS || sim_random(2))
		return;
	nr_exits++;
	retiring &= ~(1u << sim_self());
	sim_saw();
	sim_exit();
}

static void free_and_exit(struct hazptr_head *head)
{
	world_free_head(head);
	may_exit();
}

static void delete_late(void *item)
{
	world_free(item);
}

static void delete_and_exit(void *item)
{
	world_free(item);
	may_exit();
}

/* ---- threads that retire, and the helper ---- */

/* An updater whose thread ends in a callback does not count the objects that it did not retire. */
static void exiting_updater(void *index)
{
	for (int i = 0; i < 4; i++)
		world_retire(world_replace((intptr_t)index), free_and_exit);
}

static void deleting_updater(void *index)
{
	for (int i = 0; i < 4; i++) {
		struct item *old = world_replace((intptr_t)index);

		world_last_words(old);
		world_nr_retired++;
		hazptr_retire(old, delete_and_exit);
	}
}

static void setup_exits(void)
{
	world_begin();
	world_readers(1);
	sim_spawn(exiting_updater, (void *)0, "updater");
	sim_spawn(exiting_updater, (void *)1, "updater");
	sim_spawn(deleting_updater, (void *)2, "updater");
}

static void setup_full_exits(void)
{
	setup_exits();
	sim_config()->membarrier = SIM_MEMBARRIER_ABSENT;
}

static void setup_exits_inline(void)
{
	world_inline = true;
	setup_exits();
}

static void setup_exits_handed(void)
{
	world_hands_over = true;
	setup_exits();
}

/* Objects whose function only frees memory, beside others: their function may be cancelable, and no other is. */
static void free_plainly(struct hazptr_head *head)
{
	world_free_head(head);
	sim_point("in a function that only frees");
}

static void plain_updater(void *index)
{
	for (int i = 0; i < 8; i++) {
		struct item *old = world_replace((intptr_t)index);

		if (sim_random(2)) {
			world_retire(old, free_and_exit);
			continue;
		}
		world_last_words(old);
		world_nr_retired++;
		quiesce__call_hazptr_freeing(&old->head, free_plainly, sizeof *old);
	}
}

static void setup_exits_plain(void)
{
	world_begin();
	world_inline = true;
	world_readers(1);
	sim_spawn(plain_updater, (void *)0, "updater");
	sim_spawn(plain_updater, (void *)1, "updater");
}

/* Batches have one object, and only objects that callbacks have retired are left. */
static void retires_and_exits(struct hazptr_head *head)
{
	world_free_head(head);
	for (int i = 0; i < 2 && world_nr_retired < 12; i++)
		world_retire(world_replace(1), retires_and_exits);
	may_exit();
}

static void chain_updater(void *unused)
{
	(void)unused;
	quiesce_set_thread_hazptr_batch(1, 1);
	for (int i = 0; i < 2; i++)
		world_retire(world_replace(0), retires_and_exits);
}

static void setup_exits_chain(void)
{
	world_begin();
	world_inline = true;
	spawn_each(2, chain_updater, "updater");
}

/* Many slots are in use, so the scan takes several rounds, and marks protected objects. */
static uint32_t done;

static void holds_many(void *unused)
{
	hazptr_t *slot[NR_POINTERS];

	(void)unused;
	for (int i = 0; i < NR_POINTERS; i++) {
		slot[i] = hazptr_alloc(NULL);
		sim_assert(slot[i]);
		world_protect(slot[i], i);
	}
	world_stay(60);
	for (int i = 0; i < NR_POINTERS; i++)
		hazptr_free(NULL, slot[i]);
}

static void setup_exits_rounds(void)
{
	world_begin();
	world_inline = true;
	sim_config()->max_steps = 40000;
	sim_spawn(holds_many, NULL, "holder");
	sim_spawn(exiting_updater, (void *)0, "updater");
	sim_spawn(exiting_updater, (void *)1, "updater");
}

/* ---- hazptr_barrier() ---- */

static void exits_and_waits(void *index)
{
	exiting_updater(index);
	hazptr_barrier();
	quiesce_fetch_add(RU3, &done, 1u);
}

static void waits_till_the_end(void *nr)
{
	uint32_t never = 0;

	do {
		platform_futex_wait(&never, 0, 10000000);
		hazptr_barrier();
	} while (world_nr_freed < world_nr_retired || world_nr_retired < (intptr_t)nr);
}

static void waiters(intptr_t nr)
{
	for (int i = 0; i <= MOST_EXITS; i++)
		sim_spawn(waits_till_the_end, (void *)nr, "waiter");
}

static void holds_for_long(void *index)
{
	hazptr_t *slot = hazptr_alloc(NULL);
	uint32_t never = 0;

	world_protect(slot, (intptr_t)index);
	platform_futex_wait(&never, 0, 6000000);
	hazptr_free(NULL, slot);
}

static void setup_exits_barrier(void)
{
	world_begin();
	sim_spawn(holds_for_long, (void *)0, "holder");
	sim_spawn(holds_for_long, (void *)1, "holder");
	sim_spawn(exits_and_waits, (void *)0, "updater");
	sim_spawn(exits_and_waits, (void *)1, "updater");
}

/* The updaters do not run callbacks here, so each retires all of its objects. */
static void setup_exits_no_helper(void)
{
	world_begin();
	world_hands_over = true;
	sim_config()->thread_start_failures = -1;
	sim_spawn(holds_for_long, (void *)0, "holder");
	sim_spawn(exiting_updater, (void *)0, "updater");
	sim_spawn(exiting_updater, (void *)1, "updater");
	waiters(8);
}

/* The next helper cannot be started at once; a later retirer tries again. */
static void free_and_exit_for_long(struct hazptr_head *head)
{
	world_free_head(head);
	sim_config()->thread_start_failures = 2;
	may_exit();
}

static void retires_for_long(void *index)
{
	uint32_t never = 0;

	for (int i = 0; i < 12 || world_nr_freed < world_nr_retired - 1; i++) {
		world_retire(world_replace((intptr_t)index), free_and_exit_for_long);
		platform_futex_wait(&never, 0, 200000000);
	}
	hazptr_barrier();
}

static void setup_exits_no_successor(void)
{
	world_begin();
	world_hands_over = true;
	sim_config()->max_steps = 40000;
	sim_spawn(retires_for_long, (void *)0, "updater");
}

/* ---- cohorts ---- */

static struct hazptr_cohort cohort;

static void retire_into(int index)
{
	struct item *old = world_replace(index);

	world_nr_retired++;
	world_last_words(old);
	call_hazptr_cohort(&cohort, &old->head, free_and_exit);
}

static void cohort_updater(void *index)
{
	for (int i = 0; i < 3; i++)
		retire_into((intptr_t)index);
	retiring &= ~(1u << sim_self());
}

static void cohort_waiter(void *nr)
{
	uint32_t never = 0;

	do {
		platform_futex_wait(&never, 0, 10000000);
		synchronize_hazptr_cohort(&cohort);
	} while (world_nr_freed < world_nr_retired || retiring);
	(void)nr;
}

static void setup_exits_cohort(void)
{
	world_begin();
	sim_spawn(holds_for_long, (void *)0, "holder"); /* thread 0 */
	sim_spawn(cohort_updater, (void *)0, "updater");
	sim_spawn(cohort_updater, (void *)0, "updater");
	retiring = 1u << 1 | 1u << 2;
	for (int i = 0; i <= MOST_EXITS; i++)
		sim_spawn(cohort_waiter, NULL, "waiter");
}

/* ---- destructors of thread-local storage ---- */

/* The destructor runs after the library's own: it retires an object that it protects itself, and one that another thread protects. */
static void retires_late(void *unused)
{
	hazptr_t *slot = hazptr_alloc(NULL);
	struct item *mine;

	(void)unused;
	sim_assert(slot);
	mine = world_protect(slot, 0);
	for (int i = 0; i < 4; i++) {
		struct item *old = world_replace(!i);

		world_last_words(old);
		world_nr_retired++;
		hazptr_retire(old, delete_late);
		if (!i)
			quiesce__thread_exit();
	}
	world_check(mine);
	hazptr_free(NULL, slot);
	sim_saw();
}

static void setup_exits_late(void)
{
	world_begin();
	spawn_each(2, retires_late, "updater");
	world_readers(1);
}

/* ---- forks ---- */

/* No ended thread counts as being inside the callback quiesce, so a fork does not wait. */
static void forks_at_once(void *unused)
{
	uint32_t never = 0;
	uint64_t begun;

	(void)unused;
	platform_futex_wait(&never, 0, 400000000); /* by then all callbacks have run */
	begun = sim_now_ns();
	quiesce__fork_prepare();
	sim_assert(sim_now_ns() - begun < 50000000);
	quiesce__fork_parent();
}

static void setup_exits_fork(void)
{
	setup_exits();
	sim_spawn(forks_at_once, NULL, "forker");
}

#define EXITS(label, text) \
	{ .name = #label, .what = text, .setup = setup_##label, .finish = world_finish, .must_see = "a thread that ended in a callback" }

const struct sim_scenario hazptr_exit_scenarios[] = {
	EXITS(exits, "callbacks end the thread that retires, or the helper"),
	EXITS(full_exits, "... without membarrier"),
	EXITS(exits_inline, "... all of them where they were retired"),
	EXITS(exits_plain, "... and functions that only free memory run between them"),
	EXITS(exits_handed, "... all of them in the helper"),
	EXITS(exits_chain, "... and what they have retired is left"),
	EXITS(exits_rounds, "... of scans of many slots"),
	EXITS(exits_barrier, "callbacks end threads in hazptr_barrier(), before the wait for a slot and after"),
	EXITS(exits_no_helper, "... where no helper can be had"),
	EXITS(exits_no_successor, "another helper cannot be had at once"),
	EXITS(exits_cohort, "callbacks of a cohort end threads that retire and threads that wait"),
	EXITS(exits_fork, "a fork afterwards waits for no thread"),
	{ .name = "exits_late", .what = "threads retire after the library's destructor has run", .setup = setup_exits_late,
	  .finish = world_finish, .must_see = "one that has retired late" },
	{ .name = NULL },
};
