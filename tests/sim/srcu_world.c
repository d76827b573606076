/* SPDX-License-Identifier: MIT */
#include "srcu_world.h"

#include "rcu/garbage.h"
#include "srcu/srcu_all.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096u
#define APART 32u /* pages: such domains share a hashed wait queue */
#define BYTES ((NR_DOMAINS - 1) * (size_t)APART * PAGE + PAGE)
#define LAST_WORDS 500
#define LAST_WORDS_OF(id) (SIM_MAX_OBJECTS / 2 + (int)(id)) /* a word beside the item that no reader loads */

/* The pages are not among the variables that are restored for each run, because a page may be inaccessible then. */
static char *pages SIM_KEEP;
static bool out_of_bounds SIM_KEEP;

struct srcu_struct *world_domain[NR_DOMAINS];
int world_nr_queued, world_nr_run;
static struct item items[NR_ITEMS];
static struct item *current[NR_DOMAINS];
static bool gone[NR_DOMAINS];
static int nr_items;

/* ---- pages ---- */

static void open_bounds(void)
{
	out_of_bounds = false;
	if (mprotect(pages, BYTES, PROT_READ | PROT_WRITE))
		abort();
}

/* The run ends here, by a jump to main(). */
static void touched(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)context;
	if ((char *)info->si_addr < pages || (char *)info->si_addr >= pages + BYTES || !out_of_bounds)
		abort();
	open_bounds();
	sim_fail("a domain was touched at offset %u after it had been freed", (unsigned int)((uintptr_t)info->si_addr % PAGE));
}

static void pages_begin(void)
{
	struct sigaction action = { .sa_sigaction = touched, .sa_flags = SA_SIGINFO | SA_NODEFER };

	if (!pages) {
		pages = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (pages == MAP_FAILED || sigaction(SIGSEGV, &action, NULL))
			abort();
	}
	if (out_of_bounds)
		open_bounds();
	for (int i = 0; i < NR_DOMAINS; i++) {
		world_domain[i] = (struct srcu_struct *)(void *)(pages + (size_t)APART * PAGE * i);
		memset(world_domain[i], 0, sizeof *world_domain[i]);
	}
}

/* Drain the caller's store buffer. */
static void system_call(void)
{
	uint32_t no_waiter = 0;

	platform_futex_wake(&no_waiter, 1);
}

void world_domain_gone(intptr_t domain)
{
	system_call();
	out_of_bounds = gone[domain] = true;
	if (mprotect(world_domain[domain], PAGE, PROT_NONE))
		abort();
}

/* ---- the computer ---- */

static void domains_begin(void)
{
	for (int i = 0; i < NR_DOMAINS; i++) {
		world_domain[i]->name = "a";
		if (sim_random(4))
			sim_assert(quiesce_init_srcu_struct(QUIESCE_LAYOUT, world_domain[i], i ? "b" : "a") == 0);
		if (sim_random(2))
			quiesce__srcu_usage(world_domain[i])->meets = 1000; /* the next take allocates shards */
		current[i] = world_new(i);
	}
}

void world_begin(enum world_mode mode)
{
	world_configure(mode);
	pages_begin();
	domains_begin();
}

void world_no_idling(void)
{
	sim_config()->idle_limit_ns = 150000; /* a caller that shares a fence may sleep so long by chance: heavy.c, LATE_MIN_NS */
}

/* ---- threads ---- */

void world_spawn(void (*fn)(void *), void *arg, const char *name)
{
	system_call();
	sim_spawn(fn, arg, name);
}

/* ---- items ---- */

struct item *world_new(intptr_t domain)
{
	struct item *item = &items[nr_items];

	if (nr_items == NR_ITEMS) {
		sim_fail("scenario: more than %d items", NR_ITEMS);
		return NULL;
	}
	item->id = (uint64_t)nr_items++;
	item->domain = domain;
	sim_obj_init((int)item->id);
	sim_data_write((int)item->id, 100 + item->id);
	return item;
}

struct item *world_replace(intptr_t domain)
{
	struct item *item = world_new(domain);

	return rcu_xchg_pointer(&current[domain], item);
}

void world_free(struct item *item)
{
	sim_obj_free((int)item->id);
	memset(&item->head, 0xa5, sizeof item->head);
}

void world_free_head(struct rcu_head *head)
{
	struct item *item = (struct item *)head;

	sim_assert(sim_data_read(LAST_WORDS_OF(item->id)) == LAST_WORDS);
	world_nr_run++;
	world_free(item);
}

void world_check(intptr_t domain)
{
	struct item *item = srcu_dereference(current[domain], world_domain[domain]);

	sim_obj_read((int)item->id);
	sim_assert(sim_data_read((int)item->id) == 100 + item->id);
	sim_obj_read((int)item->id);
}

void world_retire(struct item *item, void (*callback)(struct rcu_head *head))
{
	world_nr_queued++;
	sim_data_write(LAST_WORDS_OF(item->id), LAST_WORDS);
	call_srcu_sized(world_domain[item->domain], &item->head, callback, 40 + 60 * (item->id % 3));
}

void world_queue(intptr_t domain)
{
	world_retire(world_replace(domain), world_free_head);
}

/* ---- thread bodies ---- */

void world_section(intptr_t domain)
{
	int idx = srcu_read_lock(world_domain[domain]);

	world_check(domain);
	world_stay(3);
	world_check(domain);
	srcu_read_unlock(world_domain[domain], idx);
}

void world_reader(void *domain)
{
	world_section((intptr_t)domain);
	world_section((intptr_t)domain);
}

void world_updater(void *domain)
{
	for (int i = 0; i < 2; i++) {
		struct item *old = world_replace((intptr_t)domain);

		synchronize_srcu(world_domain[(intptr_t)domain]);
		world_free(old);
	}
}

void world_queuer(void *domain)
{
	world_queue((intptr_t)domain);
	world_queue((intptr_t)domain);
}

void world_readers(int nr)
{
	spawn_each(nr, world_reader, "reader");
}

static void check_domain(struct srcu_struct *ssp)
{
	struct quiesce__srcu_usage *u = quiesce__srcu_usage(ssp);
	bool over = u->begun == u->completed;

	for (uint32_t i = 0; i < 2; i++) {
		uint64_t nr = quiesce__percpu_inside(&ssp->percpu, u->shared, i, 2 + i);

		if (nr)
			sim_fail("%lld inside by index %u, but no reader is", (long long)nr, i);
		if (over && ssp->requests[i])
			sim_fail("requests[%u] is %llu, but no caller waits", i, (unsigned long long)ssp->requests[i]);
	}
	sim_assert(!u->led && !u->waiters && !u->lock.word && !u->step_lock.word && !u->waiting);
	for (uint32_t i = 0; i < quiesce__srcu_nr_lists(u); i++)
		sim_assert(!quiesce__srcu_list_at(u, i)->first);
	sim_assert(!u->taken && quiesce__srcu_queued(u) == u->nr_run && u->takes == u->done);
	sim_assert(quiesce__srcu_bytes_in(u) == u->bytes_reported && u->bytes_reported == u->bytes_out);
}

void world_nothing_is_garbage(void)
{
	struct quiesce_stats stats = { .garbage_objects = 0 };

	quiesce__srcu_stats(&stats);
	if (quiesce__garbage_srcu || stats.garbage_objects)
		sim_fail("%lld bytes of %lld callbacks are garbage, and nothing is pending", (long long)quiesce__garbage_srcu,
			 (long long)stats.garbage_objects);
}

void world_finish(void)
{
	if (world_nr_run != world_nr_queued)
		sim_fail("%d callbacks queued, %d have run, and all threads are idle", world_nr_queued, world_nr_run);
	for (int i = 0; i < NR_DOMAINS; i++)
		if (!gone[i])
			check_domain(world_domain[i]);
	world_nothing_is_garbage();
}
