/* SPDX-License-Identifier: MIT */
#include "rwsem_world.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096u
#define NR_PAGES 4u

/* The pages are not among the variables that are restored for each run, because a page may be inaccessible then. */
static char *pages SIM_KEEP;
static uint32_t nr_pages;

struct percpu_rw_semaphore *world_sem;
bool world_rests;
int world_nr_readers, world_nr_writers, world_laps = 2;
static uint64_t current; /* the object */
static int nr_objects;

/* ---- pages ---- */

static void pages_begin(void)
{
	size_t bytes = (size_t)NR_PAGES * PAGE;

	if (!pages)
		pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED || mprotect(pages, bytes, PROT_READ | PROT_WRITE))
		abort();
	memset(pages, 0, bytes);
}

void *world_page(void)
{
	if (nr_pages == NR_PAGES) {
		sim_fail("scenario: more than %u pages", NR_PAGES);
		return NULL;
	}
	return pages + (size_t)PAGE * nr_pages++;
}

/* Drain the caller's store buffer, which may hold stores to the page, and make the page inaccessible. */
void world_page_gone(void *page)
{
	uint32_t no_waiter = 0;

	platform_futex_wake(&no_waiter, 1);
	if (mprotect(page, PAGE, PROT_NONE))
		abort();
}

/* ---- the computer ---- */

void world_begin(enum world_mode mode)
{
	world_configure(mode);
	pages_begin();
	world_sem = world_page();
	*world_sem = (struct percpu_rw_semaphore)PERCPU_RWSEM_INIT;
	if (sim_random(4))
		sim_assert(percpu_init_rwsem(world_sem) == 0);
	if (sim_random(4) == 0)
		sim_config()->thread_start_failures = -1; /* without a helper readers are fast again at once */
	nr_objects = 1;
	sim_obj_init(0);
	sim_data_write(0, 100);
}

void world_no_idling(void)
{
	sim_config()->idle_limit_ns = 1;
}

/* ---- threads ---- */

void world_rest(void)
{
	uint32_t never = 0;

	if (world_rests && sim_random(3))
		platform_futex_wait(&never, 0, 9000000 + sim_random(14) * 1000000);
}

/* ---- the object ---- */

void world_check(void)
{
	uint64_t id = quiesce_load_relaxed(&current);

	sim_obj_read((int)id);
	sim_assert(sim_data_read((int)id) == 100 + id);
}

void world_replace(void)
{
	uint64_t old = quiesce_load_relaxed(&current);
	int id = nr_objects++;

	sim_obj_init(id);
	sim_data_write(id, 100 + (uint64_t)id);
	quiesce_store_relaxed(&current, (uint64_t)id);
	sim_assert(sim_data_read((int)old) == 100 + old);
	sim_obj_free((int)old);
}

void world_reader_in(void)
{
	world_nr_readers++;
	if (world_nr_writers)
		sim_fail("a reader gets in beside a writer");
}

void world_reader_out(void)
{
	world_nr_readers--;
}

void world_writer_in(void)
{
	if (world_nr_readers || world_nr_writers++)
		sim_fail("a writer gets in beside %d readers, %d writers", world_nr_readers, world_nr_writers);
}

void world_writer_out(void)
{
	world_nr_writers--;
}

void world_read(void)
{
	world_reader_in();
	world_check();
	world_stay(4);
	world_check();
	world_reader_out();
}

void world_write(void)
{
	world_writer_in();
	world_replace();
	world_stay(3);
	world_writer_out();
}

void world_reader(void *unused)
{
	(void)unused;
	for (int i = 0; i < world_laps; i++) {
		percpu_down_read(world_sem);
		world_read();
		percpu_up_read(world_sem);
		world_rest();
	}
}

void world_writer(void *unused)
{
	(void)unused;
	for (int i = 0; i < world_laps; i++) {
		percpu_down_write(world_sem);
		world_write();
		percpu_up_write(world_sem);
		world_rest();
	}
}

void world_finish(void)
{
	struct percpu_rw_semaphore *sem = world_sem;

	sim_assert(!world_nr_readers && !world_nr_writers);
	if (quiesce__percpu_inside(&sem->percpu, sem->shared, 0, 1))
		sim_fail("%lld inside, but no reader is", (long long)quiesce__percpu_inside(&sem->percpu, sem->shared, 0, 1));
	sim_assert(!sem->first && !sem->block && !sem->rss.gp_count);
	sim_assert(!sem->lock.word && !sem->rss.lock.word);
	/* With or without a helper thread, readers are fast again in the end. */
	if (sem->rss.gp_state)
		sim_fail("rcu_sync is left in state %d", (int)sem->rss.gp_state);
}
