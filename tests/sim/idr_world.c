/* SPDX-License-Identifier: MIT */
#include "idr_world.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096u
#define NR_PAGES 64u
#define NR_ITEMS 64
#define MAX_OPS 40
#define ALL_IDS ULONG_MAX

struct op {
	unsigned long id;
	struct item *value; /* object of the id after the operation */
};

/* Each owner is one thread; begun is plain, because it changes between scheduling points. */
struct owner {
	struct op op[MAX_OPS];
	int begun;
	uint64_t done; /* published by a release */
};

/* The pages are not among the variables that are restored for each run, because a page may be inaccessible then. */
static char *pages SIM_KEEP;
static uint32_t pages_dirty SIM_KEEP;
static uint32_t nr_pages;

struct idr world_idr;
int world_nr_nodes, world_nr_nodes_freed, world_failures;
bool world_may_fail;
static struct owner owners[NR_OWNERS];
static unsigned long watched[NR_WATCHED];
static int owner_of[NR_WATCHED], nr_watched;
static struct item items[NR_ITEMS];
static int nr_items;

/* ---- nodes ---- */

static void pages_begin(void)
{
	if (!pages)
		pages = mmap(NULL, (size_t)NR_PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED || mprotect(pages, (size_t)NR_PAGES * PAGE, PROT_READ | PROT_WRITE))
		abort();
	memset(pages, 0xa5, (size_t)pages_dirty * PAGE);
	pages_dirty = 0;
}

/* Replaces the C library's function, for the library's allocations. */
void *aligned_alloc(size_t alignment, size_t size)
{
	if (alignment > PAGE || size > PAGE || nr_pages == NR_PAGES) {
		sim_fail("scenario: more than %u nodes", NR_PAGES);
		return NULL;
	}
	if (world_failures) {
		world_failures--;
		sim_saw();
		return NULL;
	}
	pages_dirty = nr_pages + 1;
	world_nr_nodes++;
	return pages + (size_t)PAGE * nr_pages++;
}

static void node_gone(void *node)
{
	if ((char *)node < pages || (char *)node >= pages + (size_t)NR_PAGES * PAGE || (uintptr_t)node % PAGE)
		sim_fail("what is freed was never allocated");
	world_nr_nodes_freed++;
	if (mprotect(node, PAGE, PROT_NONE))
		abort();
}

void world_begin(void)
{
	sim_config()->nr_cpus = sim_random(2) ? 2 : 0;
	sim_config()->free_hook = node_gone;
	pages_begin();
	idr_init(&world_idr);
}

void world_watch(int owner, unsigned long id)
{
	owner_of[nr_watched] = owner;
	watched[nr_watched++] = id;
}

/* ---- owners ---- */

static struct item *item_new(unsigned long id)
{
	struct item *item = &items[nr_items];

	if (nr_items == NR_ITEMS) {
		sim_fail("scenario: more than %d items", NR_ITEMS);
		return NULL;
	}
	item->object = nr_items++;
	item->id = id;
	sim_obj_init(item->object);
	sim_data_write(item->object, 100 + id);
	return item;
}

static void item_free(struct rcu_head *head)
{
	sim_obj_free(((struct item *)head)->object);
}

static void item_retire(struct item *item)
{
	if (item)
		call_rcu(&item->rcu, item_free);
}

static void begin(int owner, unsigned long id, struct item *value)
{
	struct owner *o = &owners[owner];

	if (o->begun == MAX_OPS) {
		sim_fail("scenario: more than %d operations", MAX_OPS);
		return;
	}
	o->op[o->begun] = (struct op){ id, value };
	o->begun++;
}

static void publish(int owner)
{
	quiesce_store_release(RU3, &owners[owner].done, (uint64_t)owners[owner].begun);
}

/* Return the object that @id has after @n operations of its owner. */
static struct item *value_after(const struct owner *o, unsigned long id, int n)
{
	while (n--)
		if (o->op[n].id == id || o->op[n].id == ALL_IDS)
			return o->op[n].value;
	return NULL;
}

static struct item *value_now(int owner, unsigned long id)
{
	return value_after(&owners[owner], id, owners[owner].begun);
}

int world_alloc(int owner, unsigned long id)
{
	struct item *item = item_new(id);
	int result;

	begin(owner, id, item);
	result = idr_alloc(&world_idr, item, id, id + 1);
	if (result == -ENOMEM && world_may_fail) {
		owners[owner].begun--; /* the failed operation does not count */
		sim_obj_free(item->object);
	} else {
		sim_assert(result == (int)id);
	}
	publish(owner);
	return result;
}

void world_reserve(int owner, unsigned long id)
{
	begin(owner, id, NULL);
	sim_assert(idr_alloc(&world_idr, NULL, id, id + 1) == (int)id);
	publish(owner);
}

void world_replace(int owner, unsigned long id)
{
	struct item *before = value_now(owner, id), *item = item_new(id);
	void *old = &world_idr;

	begin(owner, id, item);
	sim_assert(idr_replace(&world_idr, item, id, &old) == 0);
	sim_assert(old == before);
	publish(owner);
	item_retire(before);
}

void world_remove(int owner, unsigned long id)
{
	struct item *before = value_now(owner, id);

	begin(owner, id, NULL);
	sim_assert(idr_remove(&world_idr, id) == before);
	publish(owner);
	item_retire(before);
}

void world_destroy(int owner)
{
	struct item *before[NR_WATCHED];

	for (int i = 0; i < nr_watched; i++)
		before[i] = value_now(owner, watched[i]);
	begin(owner, ALL_IDS, NULL);
	idr_destroy(&world_idr);
	publish(owner);
	for (int i = 0; i < nr_watched; i++)
		item_retire(before[i]);
}

/* ---- readers ---- */

/* Return the least number of operations that the owner has reported. */
static int hear(struct view_of_owners *view, int owner)
{
	int published = quiesce_load_acquire(RU3, &owners[owner].done);

	return published > view->seen[owner] ? published : view->seen[owner];
}

static void check_item(const struct item *item, unsigned long id)
{
	sim_obj_read(item->object);
	if (item->id != id || sim_data_read(item->object) != 100 + id)
		sim_fail("the object of %lu found as %lu", item->id, id);
}

/* Return the least number of operations, from @low up to those begun, after which @id had @found; -1 if there is none. */
static int when(int owner, unsigned long id, const struct item *found, int low)
{
	for (int n = low; n <= owners[owner].begun; n++)
		if (value_after(&owners[owner], id, n) == found)
			return n;
	return -1;
}

static void compare(struct view_of_owners *view, int owner, unsigned long id, const struct item *found, int low)
{
	int n = when(owner, id, found, low);

	if (n < 0)
		sim_fail("id %lu %s, and had something else after each of %d to %d operations", id,
			 found ? "found with an object" : "not found", low, owners[owner].begun);
	view->seen[owner] = n;
	if (n < owners[owner].begun || n > low)
		sim_saw(); /* the owner was changing the id */
}

static int owner_for(unsigned long id)
{
	for (int i = 0; i < nr_watched; i++)
		if (watched[i] == id)
			return owner_of[i];
	sim_fail("id %lu has no owner", id);
	return 0;
}

void world_find(struct view_of_owners *view, unsigned long id)
{
	int owner = owner_for(id), low = hear(view, owner);
	struct item *found = idr_find(&world_idr, id);

	if (found)
		check_item(found, id);
	compare(view, owner, id, found, low);
}

void world_find_all(struct view_of_owners *view)
{
	for (int i = sim_random(nr_watched), n = nr_watched; n; n--, i = (i + 1) % nr_watched)
		world_find(view, watched[i]);
}

/* True if @id has an object after each of the operations @low to the last. */
static bool there_all_the_time(int owner, unsigned long id, int low)
{
	for (int n = low; n <= owners[owner].begun; n++)
		if (!value_after(&owners[owner], id, n))
			return false;
	return true;
}

void world_iterate(struct view_of_owners *view)
{
	int low[NR_OWNERS];
	bool visited[NR_WATCHED] = { false };
	unsigned long id, last = 0;
	struct item *found;

	for (int i = 0; i < NR_OWNERS; i++)
		low[i] = hear(view, i);
	idr_for_each_entry_ul(&world_idr, found, id) {
		sim_assert(id > last || (id == 0 && last == 0));
		last = id;
		check_item(found, id);
		if (when(owner_for(id), id, found, low[owner_for(id)]) < 0)
			sim_fail("id %lu visited with an object that it had not", id);
		for (int i = 0; i < nr_watched; i++)
			visited[i] |= watched[i] == id;
	}
	for (int i = 0; i < nr_watched; i++) {
		if (!visited[i] && there_all_the_time(owner_of[i], watched[i], low[owner_of[i]]))
			sim_fail("id %lu was there all the time and is not visited", watched[i]);
		if (!visited[i])
			sim_saw();
	}
}

void world_reader(void *unused)
{
	struct view_of_owners view = { { 0 } };

	(void)unused;
	for (int i = 0; i < 2; i++) {
		rcu_read_lock();
		world_find_all(&view);
		rcu_read_unlock();
	}
}

void world_iterator(void *unused)
{
	struct view_of_owners view = { { 0 } };

	(void)unused;
	for (int i = 0; i < 2; i++) {
		rcu_read_lock();
		world_iterate(&view);
		rcu_read_unlock();
	}
}

void world_readers(void)
{
	spawn_each(driver_readers, world_reader, "reader");
}

void world_finish(void)
{
	size_t count = 0;

	for (int i = 0; i < nr_watched; i++) {
		struct item *now = value_now(owner_of[i], watched[i]);

		sim_assert(idr_find(&world_idr, watched[i]) == now);
		count += now != NULL;
	}
	sim_assert(idr_count(&world_idr) == count);
	sim_assert(idr_is_empty(&world_idr) == !count);
	sim_assert((world_idr.tree.nr_nodes == 0) == !count);
}
