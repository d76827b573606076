/* SPDX-License-Identifier: MIT */
/* rwsem_queue.c - scenarios: a waiter for a percpu_rwsem gets it in turn, is woken, or gives up in time. */
#include "rwsem_world.h"
#include "runtime/waitq.h"

/* ---- first come, first served: readers together, a writer, readers, a writer, a reader ---- */

static const struct {
	const char *kind;
	int group, members;
} line[] = { { "r", 0, 2 }, { "r", 0, 2 }, { "w", 1, 1 }, { "r", 2, 1 }, { "w", 3, 1 }, { "r", 4, 1 } };

#define NR_LINE 6
static uint32_t turn, together;
static int last_group;

static void my_group(int group)
{
	if (group < last_group)
		sim_fail("group %d gets in after group %d", group, last_group);
	last_group = group;
}

static void in_line(void *nr)
{
	intptr_t i = (intptr_t)nr;

	world_await(&turn, (uint32_t)i + 1);
	if (line[i].kind[0] == 'w') {
		percpu_down_write(world_sem);
		my_group(line[i].group);
		world_write();
		percpu_up_write(world_sem);
		return;
	}
	percpu_down_read(world_sem);
	my_group(line[i].group);
	world_reader_in();
	world_check();
	if (line[i].members == 2) {
		world_add(&together);
		world_await(&together, 2);
	}
	world_check();
	world_reader_out();
	percpu_up_read(world_sem);
}

static const void *last_in_queue(void)
{
	return *(struct quiesce__rwsem_waiter *volatile *)&world_sem->last; /* raw: no step of the machine */
}

/* The next thread in the order queues, because the test holds the lock. */
static void let_queue(uint32_t nr)
{
	const void *last = last_in_queue();

	world_set(&turn, nr);
	while (last_in_queue() == last)
		platform_yield();
}

static void conductor(void *unused)
{
	(void)unused;
	percpu_down_write(world_sem);
	world_writer_in();
	for (uint32_t i = 0; i < NR_LINE; i++)
		let_queue(i + 1);
	world_replace();
	world_writer_out();
	percpu_up_write(world_sem);
}

static void fifo(enum world_mode mode)
{
	world_begin(mode);
	sim_spawn(conductor, NULL, "conductor");
	for (intptr_t i = 0; i < NR_LINE; i++)
		sim_spawn(in_line, (void *)i, line[i].kind[0] == 'w' ? "writer" : "reader");
}

static void setup_fifo(void) { fifo(LIGHT); }
static void setup_fifo_any(void) { fifo(ANY); }

/* ---- no waiter starves ---- */

static uint32_t been_in;

static void hot_reader(void *unused)
{
	(void)unused;
	while (!quiesce_load_relaxed(&been_in)) {
		percpu_down_read(world_sem);
		world_read();
		percpu_up_read(world_sem);
	}
}

static void hot_writer(void *unused)
{
	(void)unused;
	while (!quiesce_load_relaxed(&been_in)) {
		percpu_down_write(world_sem);
		world_writer_in();
		world_writer_out();
		percpu_up_write(world_sem);
	}
}

static void one_writer(void *unused)
{
	(void)unused;
	percpu_down_write(world_sem);
	world_write();
	percpu_up_write(world_sem);
	quiesce_fetch_add(RU3, &been_in, 1u);
}

static void one_reader(void *unused)
{
	(void)unused;
	percpu_down_read(world_sem);
	world_read();
	percpu_up_read(world_sem);
	quiesce_fetch_add(RU3, &been_in, 1u);
}

static void hot(void (*fn)(void *), void (*one)(void *))
{
	world_begin(ANY);
	sim_config()->max_steps = 60000;
	spawn_each(2, fn, "hot");
	sim_spawn(one, NULL, "one");
}

static void setup_hot_readers(void) { hot(hot_reader, one_writer); }
static void setup_hot_writers(void) { hot(hot_writer, one_reader); }

/* ---- readers that find a writer do not count ---- */

static uint32_t writer_is_in;

static void timed_reader(void *unused)
{
	(void)unused;
	world_await(&writer_is_in, 1);
	for (uint64_t i = 0; i < 4; i++)
		if (percpu_down_read_timeout(world_sem, i)) {
			world_read();
			percpu_up_read(world_sem);
		}
}

static void checking_writer(void *unused)
{
	(void)unused;
	percpu_down_write(world_sem);
	world_set(&writer_is_in, 1);
	for (int i = 0; i < 12; i++) {
		sim_assert(!percpu_is_read_locked(world_sem));
		platform_yield();
	}
	world_write();
	percpu_up_write(world_sem);
}

static void setup_timed_readers(void)
{
	world_begin(ANY);
	sim_spawn(checking_writer, NULL, "writer");
	spawn_each(2, timed_reader, "reader");
}

/* ---- a waiter that gives up does not delay others ---- */

static uint32_t holding, gave_up, behind_in;

/* Leave when the writer has given up, and a reader that arrived after that writer has been inside. */
static void holds_on(void *unused)
{
	(void)unused;
	percpu_down_read(world_sem);
	world_reader_in();
	world_set(&holding, 1);
	world_await(&gave_up, 1);
	world_await(&behind_in, 1);
	world_check();
	world_reader_out();
	percpu_up_read(world_sem);
}

static void impatient_writer(void *nothing)
{
	world_await(&holding, 1);
	if (nothing)
		sim_assert(!percpu_down_write_trylock(world_sem));
	else
		sim_assert(!percpu_down_write_timeout(world_sem, 20000 + sim_random(100000)));
	world_set(&gave_up, 1);
}

static void behind(void *unused)
{
	(void)unused;
	world_await(&holding, 1);
	world_stay(20);
	percpu_down_read(world_sem);
	world_read();
	percpu_up_read(world_sem);
	world_set(&behind_in, 1);
}

static void gives_up(enum world_mode mode, void *nothing)
{
	world_begin(mode);
	sim_spawn(holds_on, NULL, "holder");
	sim_spawn(impatient_writer, nothing, "impatient");
	sim_spawn(behind, NULL, "behind");
}

static void setup_gives_up(void) { gives_up(LIGHT, NULL); }
static void setup_gives_up_any(void) { gives_up(ANY, NULL); }
static void setup_tries_write(void) { gives_up(ANY, &gave_up); }

/* A writer has given up, and another one waits behind it. */
static void setup_gives_up_two(void)
{
	gives_up(ANY, NULL);
	sim_spawn(one_writer, NULL, "writer");
	quiesce_store_relaxed(&behind_in, 1);
}

/* A writer stays inside until all others have given up. */
static uint32_t nr_gave_up, nr_impatient;

static void writes_long(void *unused)
{
	(void)unused;
	percpu_down_write(world_sem);
	world_writer_in();
	world_set(&holding, 1);
	while (quiesce_load_acquire(RU3, &nr_gave_up) != nr_impatient)
		platform_futex_wait(&nr_gave_up, quiesce_load_relaxed(&nr_gave_up), 50000);
	world_replace();
	world_writer_out();
	percpu_up_write(world_sem);
}

static void impatient_reader(void *unused)
{
	(void)unused;
	world_await(&holding, 1);
	sim_assert(!percpu_down_read_timeout(world_sem, sim_random(3) ? 20000 + sim_random(60000) : 0));
	world_add(&nr_gave_up);
}

static void impatient_second(void *unused)
{
	(void)unused;
	world_await(&holding, 1);
	sim_assert(!percpu_down_write_timeout(world_sem, sim_random(3) ? 20000 + sim_random(60000) : 0));
	world_add(&nr_gave_up);
}

static void setup_all_give_up(void)
{
	world_begin(ANY);
	nr_impatient = 4;
	sim_spawn(writes_long, NULL, "writer");
	for (int i = 0; i < 2; i++) {
		sim_spawn(impatient_reader, NULL, "impatient");
		sim_spawn(impatient_second, NULL, "impatient");
	}
}

/* ---- given the lock while giving up ---- */

static void short_reader(void *unused)
{
	(void)unused;
	while (!percpu_down_read_timeout(world_sem, 1 + sim_random(15000)))
		sim_saw();
	world_read();
	percpu_up_read(world_sem);
}

static void short_writer(void *unused)
{
	(void)unused;
	while (!percpu_down_write_timeout(world_sem, 1 + sim_random(15000)))
		sim_saw();
	world_write();
	percpu_up_write(world_sem);
}

static void close_call(enum world_mode mode)
{
	world_begin(mode);
	world_laps = 3;
	sim_spawn(world_writer, NULL, "writer");
	spawn_each(2, short_reader, "short");
	sim_spawn(short_writer, NULL, "short");
}

static void setup_close_call(void) { close_call(LIGHT); }
static void setup_close_call_any(void) { close_call(ANY); }

/* ---- attempts at a free lock ---- */

static void tries_one_thread(void *unused)
{
	(void)unused;
	for (int i = 0; i < 4; i++) {
		sim_assert(percpu_down_write_trylock(world_sem));
		world_write();
		sim_assert(!percpu_down_read_trylock(world_sem));
		sim_assert(!percpu_down_write_trylock(world_sem));
		percpu_up_write(world_sem);
		world_rest();
		sim_assert(percpu_down_read_trylock(world_sem));
		world_read();
		sim_assert(percpu_down_read_timeout(world_sem, 0));
		sim_assert(!percpu_down_write_trylock(world_sem));
		sim_assert(!percpu_down_write_timeout(world_sem, 1000));
		percpu_up_read(world_sem);
		sim_assert(percpu_is_read_locked(world_sem));
		percpu_up_read(world_sem);
		sim_assert(!percpu_is_read_locked(world_sem) && !percpu_is_write_locked(world_sem));
		world_rest();
	}
}

static void setup_tries_one_thread(void)
{
	world_begin(ANY);
	world_rests = true;
	sim_spawn(tries_one_thread, NULL, "tries");
}

/* ---- the writer that sleeps until readers have left is woken ---- */

static void leaves_late(void *unused)
{
	(void)unused;
	percpu_down_read(world_sem);
	world_reader_in();
	world_add(&holding);
	world_stay(2 + sim_random(2) * sim_random(200));
	world_check();
	world_reader_out();
	if (*(volatile uint32_t *)quiesce__waitq_of(world_sem) & 1) /* raw: no step of the machine */
		sim_saw();
	percpu_up_read(world_sem);
}

static void drains(void *unused)
{
	(void)unused;
	world_await(&holding, 2);
	one_writer(unused);
}

/* These readers enter and leave while the others wait. */
static void bothers(void *unused)
{
	(void)unused;
	world_await(&holding, 2);
	for (int i = 0; i < 3; i++)
		if (percpu_down_read_trylock(world_sem)) {
			world_read();
			percpu_up_read(world_sem);
		}
}

static void wakes(enum world_mode mode, void (*third)(void *))
{
	world_begin(mode);
	world_no_idling();
	spawn_each(2, leaves_late, "reader");
	sim_spawn(drains, NULL, "writer");
	if (third)
		sim_spawn(third, NULL, "third");
}

static void setup_wakes(void) { wakes(LIGHT, NULL); }
static void setup_wakes_full(void) { wakes(FULL, NULL); }
static void setup_wakes_no_restart(void) { wakes(NO_RESTART, NULL); }
static void setup_wakes_any(void) { wakes(ANY, NULL); }
static void setup_wakes_bothered(void) { wakes(LIGHT, bothers); }
static void setup_wakes_bothered_any(void) { wakes(ANY, bothers); }
static void setup_wakes_two(void) { wakes(ANY, drains); }

/* Readers and a writer alternate and never pause, so no wait may depend on a timeout. */
static void setup_wakes_often(void)
{
	world_begin(ANY);
	world_no_idling();
	world_laps = 4;
	spawn_each(2, world_reader, "reader");
	sim_spawn(world_writer, NULL, "writer");
}

/* ---- a burst of writes pays for one heavy fence ---- */

#define BURST_NS 4000000 /* nearly a round of the helper */

static uint64_t state_now(void)
{
	return *(volatile uint64_t *)&world_sem->rss.gp_state; /* raw: no step of the machine */
}

static uint64_t membarriers(void)
{
	struct quiesce_stats stats;

	quiesce_get_stats(&stats, sizeof stats);
	return stats.membarriers;
}

/* One membarrier makes readers slow, and they stay slow until there has been no writer for some time. */
static uint64_t last_write;

static void burst_of(int nr)
{
	for (int i = 0; i < nr; i++) {
		bool fast = !state_now();
		uint64_t before = membarriers();
		int paid;

		percpu_down_write(world_sem);
		world_write();
		paid = (int)(membarriers() - before);
		if (paid > 1 || (fast && !paid) || (!fast && paid && sim_now_ns() - last_write < BURST_NS))
			sim_fail("a write paid %d membarriers, and the last one was %d us ago", paid,
				 (int)((sim_now_ns() - last_write) / 1000));
		last_write = sim_now_ns();
		percpu_up_write(world_sem);
	}
}

static void burst(void *unused)
{
	uint32_t never = 0;

	(void)unused;
	burst_of(4);
	burst_of(1);
	for (int i = 0; i < 8 && state_now(); i++)
		platform_futex_wait(&never, 0, 30000000);
	sim_assert(!state_now());
	burst_of(3);
}

static void setup_burst(void)
{
	world_begin(LIGHT);
	sim_config()->thread_start_failures = 0;
	sim_config()->spurious_wakeups = false;
	sim_spawn(burst, NULL, "writer");
	sim_spawn(world_reader, NULL, "reader");
}

#define MUST_SEE(label, text, what_is_seen) \
	{ .name = #label, .what = text, .setup = setup_##label, .finish = world_finish, .must_see = what_is_seen }
#define WAKES(label, text) MUST_SEE(label, text, "a writer that drains")
#define CLOSE(label, text) MUST_SEE(label, text, "an attempt that failed")

const struct sim_scenario rwsem_queue_scenarios[] = {
	SCENARIO(fifo, "six wait in line"),
	SCENARIO(fifo_any, "... on any computer"),
	SCENARIO(hot_readers, "a writer among readers that come for ever"),
	SCENARIO(timed_readers, "readers that find a writer do not count"),
	SCENARIO(hot_writers, "a reader among writers that come for ever"),
	SCENARIO(gives_up, "a writer gives up, and a reader behind it gets in"),
	SCENARIO(gives_up_any, "... on any computer"),
	SCENARIO(gives_up_two, "... and a writer behind it"),
	SCENARIO(tries_write, "a writer tries, and a reader gets in"),
	SCENARIO(all_give_up, "readers and writers give up beside a writer"),
	CLOSE(close_call, "given the lock while giving up"),
	CLOSE(close_call_any, "... on any computer"),
	SCENARIO(tries_one_thread, "attempts of one thread"),
	WAKES(wakes, "readers wake a writer"),
	WAKES(wakes_full, "... without membarrier"),
	WAKES(wakes_no_restart, "... without one that restarts sequences"),
	WAKES(wakes_any, "... on any computer"),
	WAKES(wakes_bothered, "... and others try meanwhile"),
	WAKES(wakes_bothered_any, "... on any computer"),
	WAKES(wakes_two, "... and a second writer"),
	SCENARIO(wakes_often, "in turns, and no caller waits for a clock"),
	SCENARIO(burst, "one membarrier for a burst of writes"),
	{ .name = NULL },
};
