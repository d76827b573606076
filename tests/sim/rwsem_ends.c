/* SPDX-License-Identifier: MIT */
/* rwsem_ends.c - scenarios: a lock is freed by its last holder; the child of a fork. */
#include "rwsem_world.h"

static uint32_t nr_inside, turn;
static bool freed;

/* ---- freed by a writer that has seen the last reader leave; no other thread comes any more ---- */

static void last_reader(void *unused)
{
	(void)unused;
	percpu_down_read(world_sem);
	world_add(&nr_inside);
	world_read();
	percpu_up_read(world_sem);
}

/* Another thread ends the reader's section. */
static void leaves_it(void *unused)
{
	(void)unused;
	percpu_down_read(world_sem);
	world_add(&nr_inside);
	world_check();
	world_add(&turn);
}

static void ends_it(void *unused)
{
	(void)unused;
	world_await(&turn, 1);
	world_check();
	percpu_up_read(world_sem);
}

static void free_now(void)
{
	percpu_free_rwsem(world_sem);
	world_page_gone(world_sem);
	freed = true;
}

static void acquire_at_last(void)
{
	uint32_t how = sim_random(3);

	if (how == 0)
		while (!percpu_down_write_trylock(world_sem))
			platform_yield();
	else if (how == 1)
		while (!percpu_down_write_timeout(world_sem, 10000))
			;
	else
		percpu_down_write(world_sem);
}

static void writes(void)
{
	percpu_down_write(world_sem);
	world_write();
	percpu_up_write(world_sem);
}

static void frees(void *unused)
{
	(void)unused;
	world_await(&nr_inside, 2);
	acquire_at_last();
	world_write();
	percpu_up_write(world_sem);
	world_rest();
	free_now();
}

static void setup_free(enum world_mode mode)
{
	world_begin(mode);
	world_rests = sim_random(4) == 0;
	spawn_each(2, last_reader, "reader");
	sim_spawn(frees, NULL, "frees");
}

static void setup_free_light(void) { setup_free(LIGHT); }
static void setup_free_full(void) { setup_free(FULL); }
static void setup_free_any(void) { setup_free(ANY); }

static void setup_free_handed(void)
{
	world_begin(ANY);
	sim_spawn(last_reader, NULL, "reader");
	sim_spawn(leaves_it, NULL, "reader");
	sim_spawn(ends_it, NULL, "ends");
	sim_spawn(frees, NULL, "frees");
}

/* Readers leave by the slow path, because a writer was inside before. */
static void frees_after_burst(void *unused)
{
	writes();
	world_add(&nr_inside);
	world_await(&nr_inside, 3);
	acquire_at_last();
	percpu_up_write(world_sem);
	free_now();
	(void)unused;
}

static void slow_reader(void *unused)
{
	while (!quiesce_load_acquire(RU3, &nr_inside))
		platform_yield();
	last_reader(unused);
}

static void free_burst(enum world_mode mode)
{
	world_begin(mode);
	spawn_each(2, slow_reader, "reader");
	sim_spawn(frees_after_burst, NULL, "frees");
}

static void setup_free_burst(void) { free_burst(LIGHT); }
static void setup_free_burst_any(void) { free_burst(ANY); }

/* All wait in the queue behind a writer: readers, and then the writer that frees the lock. */
static const void *last_in_queue(void)
{
	return *(struct quiesce__rwsem_waiter *volatile *)&world_sem->last; /* raw: no step of the machine */
}

static void first_writer(void *nr)
{
	percpu_down_write(world_sem);
	world_writer_in();
	for (uint32_t i = 1; i <= (uint32_t)(intptr_t)nr; i++) {
		const void *last = last_in_queue();

		world_set(&turn, i);
		while (last_in_queue() == last)
			platform_yield();
	}
	world_replace();
	world_writer_out();
	percpu_up_write(world_sem);
}

static void line_reader(void *nr)
{
	world_await(&turn, (uint32_t)(intptr_t)nr);
	percpu_down_read(world_sem);
	world_read();
	percpu_up_read(world_sem);
}

static void line_frees(void *nr)
{
	world_await(&turn, (uint32_t)(intptr_t)nr);
	writes();
	free_now();
}

static void setup_free_line(void)
{
	world_begin(ANY);
	sim_spawn(first_writer, (void *)3, "writer");
	sim_spawn(line_reader, (void *)1, "reader");
	sim_spawn(line_reader, (void *)2, "reader");
	sim_spawn(line_frees, (void *)3, "frees");
}

/* There are two writers, and the second frees the lock. */
static void setup_free_writers(void)
{
	world_begin(ANY);
	sim_spawn(first_writer, (void *)1, "writer");
	sim_spawn(line_frees, (void *)1, "frees");
}

/* There are two locks at once: the writer that frees one waits for callbacks of the other. */
static struct percpu_rw_semaphore *second;

static void owns(void *sem)
{
	struct percpu_rw_semaphore *mine = sem;

	for (uint32_t i = 1 + sim_random(3); i; i--) {
		percpu_down_write(mine);
		percpu_up_write(mine);
	}
	if (sim_random(2))
		world_rest();
	percpu_down_read(mine);
	percpu_up_read(mine);
	percpu_free_rwsem(mine);
	world_page_gone(mine);
	freed = true;
}

static void setup_free_two(void)
{
	world_begin(ANY);
	world_rests = true;
	second = world_page();
	*second = (struct percpu_rw_semaphore)PERCPU_RWSEM_INIT;
	sim_spawn(owns, world_sem, "owner");
	sim_spawn(owns, second, "owner");
}

/* A reader that was let in from the queue frees the lock, while the writer still lets others in. */
static void reads_and_frees(void *nr)
{
	world_await(&turn, (uint32_t)(intptr_t)nr);
	percpu_down_read(world_sem);
	world_read();
	percpu_up_read(world_sem);
	free_now();
}

static void setup_free_reader(void)
{
	world_begin(ANY);
	sim_spawn(first_writer, (void *)1, "writer");
	sim_spawn(reads_and_frees, (void *)1, "frees");
}

static void finish_free(void)
{
	sim_assert(freed);
}

/* ---- fork(): no other thread uses the lock, but its callback is pending; other threads use theirs ---- */

static uint32_t other_fork;

static void child(void)
{
	uint32_t never = 0;

	for (int i = 0; i < 2; i++) {
		percpu_down_read(world_sem);
		world_read();
		percpu_up_read(world_sem);
		writes();
	}
	for (int i = 0; i < 8 && world_sem->rss.gp_state; i++)
		platform_futex_wait(&never, 0, 30000000);
	if (world_sem->rss.gp_state)
		sim_fail("the child's readers stay slow, state %d", (int)world_sem->rss.gp_state);
	other_fork = 1;
	if (sim_random(2))
		free_now();
}

static void forks(void *held)
{
	for (uint32_t i = 1 + sim_random(2); i; i--)
		writes();
	world_stay(30);
	if (sim_random(3) == 0)
		world_rest();
	if (held) {
		percpu_down_write(world_sem);
		world_writer_in();
	}
	quiesce__fork_prepare();
	sim_fork();
	quiesce__fork_child();
	if (held) {
		world_replace();
		world_writer_out();
		percpu_up_write(world_sem);
	}
	child();
}

static void parent_goes_on(void *unused)
{
	(void)unused;
	for (int i = 0; i < 2; i++) {
		writes();
		world_stay(30);
		quiesce__fork_prepare();
		quiesce__fork_parent();
		percpu_down_read(world_sem);
		world_read();
		percpu_up_read(world_sem);
	}
}

static void parents_lock(void *unused)
{
	(void)unused;
	for (int i = 0; i < 3; i++) {
		percpu_down_write(second);
		percpu_up_write(second);
		if (i == 1) {
			percpu_free_rwsem(second);
			*second = (struct percpu_rw_semaphore)PERCPU_RWSEM_INIT;
		}
	}
}

static void fork_with(void *held)
{
	world_begin(ANY);
	sim_config()->thread_start_failures = 0;
	world_rests = true;
	second = world_page();
	*second = (struct percpu_rw_semaphore)PERCPU_RWSEM_INIT;
	sim_spawn(forks, held, "forker");
	sim_spawn(parents_lock, NULL, "other");
}

/* Other threads are inside, or entering, and do not exist in the child. */
static void parents_readers(void *unused)
{
	(void)unused;
	for (int i = 0; i < 4; i++) {
		percpu_down_read(world_sem);
		world_stay(20);
		percpu_up_read(world_sem);
	}
}

static void parents_writers(void *unused)
{
	(void)unused;
	for (int i = 0; i < 4; i++) {
		percpu_down_write(world_sem);
		world_stay(20);
		percpu_up_write(world_sem);
	}
}

static void forks_and_forgets(void *unused)
{
	(void)unused;
	percpu_down_read(world_sem); /* the library is initialised before a process forks */
	percpu_up_read(world_sem);
	world_stay(100);
	quiesce__fork_prepare();
	sim_fork();
	if (percpu_is_read_locked(world_sem) && percpu_is_write_locked(world_sem))
		sim_saw();
	quiesce__fork_child();
	percpu_rwsem_after_fork_child(world_sem);
	child();
}

static void setup_fork_lost(void)
{
	world_begin(ANY);
	sim_config()->thread_start_failures = 0;
	world_rests = true;
	sim_spawn(forks_and_forgets, NULL, "forker");
	spawn_each(2, parents_readers, "reader");
	sim_spawn(parents_writers, NULL, "writer");
}

static void setup_fork(void) { fork_with(NULL); }
static void setup_fork_held(void) { fork_with(&other_fork); }

static void setup_fork_parent(void)
{
	world_begin(ANY);
	sim_spawn(parent_goes_on, NULL, "forker");
	sim_spawn(world_writer, NULL, "writer");
	sim_spawn(world_reader, NULL, "reader");
}

static void finish_fork(void)
{
	sim_assert(other_fork);
	if (!freed)
		world_finish();
}

#define FREES(label, text) { .name = #label, .what = text, .setup = setup_##label, .finish = finish_free }
#define FORKS(label, text) { .name = #label, .what = text, .setup = setup_##label, .finish = finish_fork }

const struct sim_scenario rwsem_end_scenarios[] = {
	FREES(free_light, "freed by the writer that gets it after the last readers"),
	FREES(free_full, "... without membarrier"),
	FREES(free_any, "... on any computer"),
	FREES(free_handed, "... and another thread has released it"),
	FREES(free_burst, "... after a write"),
	FREES(free_burst_any, "... on any computer"),
	FREES(free_line, "... and all were queued"),
	FREES(free_writers, "... by the next writer"),
	FREES(free_reader, "... by a reader that it lets in"),
	FREES(free_two, "two locks are freed at once"),
	FORKS(fork, "the child of a fork goes on"),
	FORKS(fork_held, "... which holds the lock"),
	{ .name = "fork_lost", .what = "... without the threads that hold the lock", .setup = setup_fork_lost, .finish = finish_fork,
	  .must_see = "a writer that waits for readers" },
	SCENARIO(fork_parent, "the parent goes on"),
	{ .name = NULL },
};
