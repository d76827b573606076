/* SPDX-License-Identifier: MIT */
#include "buckets_world.h"

#include <errno.h>

#include "table/buckets.h"

#define NR_ITEMS 120
#define MAX_OPS 96
#define TAG_SHIFT 56

struct op {
	int key;
	struct item *value; /* item of the key after the operation */
};

/* Each owner is one thread; begun is plain, because it changes between scheduling points. */
struct owner {
	struct op op[MAX_OPS];
	int begun;
	uint64_t done; /* published by a release */
	int thread;    /* 1 + the thread of the operations; 0: none has begun yet */
};

enum world_kind world_kind;
union table *world_table;
bool world_may_fail;
uint64_t world_key_of[NR_KEYS];
static struct owner owners[NR_OWNERS];
static int owner_of[NR_KEYS], nr_keys;
static bool unwatched[NR_KEYS];
static int (*judges[NR_KEYS])(void);
static struct item items[NR_ITEMS];
static int nr_items;
static uint64_t nr_running;
static uint64_t destroyed; /* 1 from before the destruction until after it */

/* ---- the table ---- */

/* The machine checks each read of an object by the table. */
static const void *key_of(const void *object)
{
	const struct item *item = object;

	if (!item)
		sim_fail("the table takes an empty word for an object");
	sim_obj_read(item->object);
	return &item->key;
}

static bool equal(const void *object, const void *key)
{
	return *(const uint64_t *)key_of(object) == *(const uint64_t *)key;
}

static uint64_t hash(const void *key, uint64_t seed)
{
	(void)seed;
	return *(const uint64_t *)key;
}

const struct hashtable_type world_type = { hash, key_of, equal };

void world_begin(enum world_kind kind, size_t nr)
{
	sim_config()->nr_cpus = sim_random(2) ? 2 : 0;
	if (kind == HAZARD)
		sim_config()->rseq_kind = PLATFORM_RSEQ_MM_CID;
	world_memory_begin();
	world_kind = kind;
	world_table = platform_lines_get(sizeof(*world_table));
	if (kind == MAP)
		hashmap_init_seeded(&world_table->map, WORLD_SEED);
	else
		hashtable_init_seeded(&world_table->ht, &world_type, WORLD_SEED);
	if (nr)
		sim_assert(quiesce__table_reserve(&world_table->table, nr) == 0);
	world_table->table.min_lines = 1;
}

/* ---- keys ---- */

static int add_key(int owner, uint64_t value)
{
	if (nr_keys == NR_KEYS) {
		sim_fail("scenario: more than %d keys", NR_KEYS);
		return 0;
	}
	owner_of[nr_keys] = owner;
	world_key_of[nr_keys] = value;
	return nr_keys++;
}

int world_key(int owner, unsigned int bucket, int like)
{
	static uint64_t last;

	if (world_kind != MAP) {
		/* Tags do not have the upper bit of a hash: the first key's, 0, is not the one of words that are empty. */
		uint64_t tag = like < 0 ? (nr_keys & 1 ? 0x80u : 0) + nr_keys : world_key_of[like] >> TAG_SHIFT;

		return add_key(owner, tag << TAG_SHIFT | (uint64_t)(nr_keys + 1) << 16 | bucket << 6);
	}
	do
		last++;
	while ((quiesce_hash_u64(last, WORLD_SEED) >> 6 & 15) != bucket); /* bits 0 to 5 choose no bucket */
	return add_key(owner, last);
}

int world_key_zero(int owner)
{
	return add_key(owner, 0);
}

void world_unwatch(int key)
{
	unwatched[key] = true;
}

void world_untracked(int key, int (*judge)(void))
{
	unwatched[key] = true;
	judges[key] = judge;
}

/* ---- items ---- */

struct item *world_item_new(int key)
{
	struct item *item = &items[nr_items];

	if (nr_items == NR_ITEMS) {
		sim_fail("scenario: more than %d items", NR_ITEMS);
		return NULL;
	}
	item->object = nr_items++;
	item->key = world_key_of[key];
	sim_obj_init(item->object);
	sim_data_write(item->object, 100 + key);
	return item;
}

static void item_free(struct rcu_head *head)
{
	sim_obj_free(((struct item *)head)->object);
}

static void item_free_hazptr(struct hazptr_head *head)
{
	sim_obj_free(((struct item *)((char *)head - offsetof(struct item, hazptr)))->object);
}

void world_item_retire(struct item *item)
{
	if (item && world_kind == HAZARD)
		call_hazptr(&item->hazptr, item_free_hazptr);
	else if (item)
		call_rcu(&item->rcu, item_free);
}

/* Reclaim all objects that no slot protects. */
static void reclaim(void)
{
	if (world_kind == HAZARD && !rcu_read_lock_held() && sim_self() >= 0)
		hazptr_barrier();
}

void world_check(const struct item *item, int key)
{
	sim_obj_read(item->object);
	if (item->key != world_key_of[key] || sim_data_read(item->object) != 100 + (uint64_t)key)
		sim_fail("a lookup of key %d found another one's value", key);
}

/* ---- owners ---- */

static void begin(int key, struct item *value)
{
	struct owner *o = &owners[owner_of[key]];
	int thread = sim_self() + 1; /* 0 before the threads start */

	if (o->begun == MAX_OPS) {
		sim_fail("scenario: more than %d operations", MAX_OPS);
		return;
	}
	if (thread && o->thread && o->thread != thread) {
		sim_fail("scenario: two threads change keys of owner %d, whose history has no order then", owner_of[key]);
		return;
	}
	o->thread = thread;
	o->op[o->begun] = (struct op){ key, value };
	o->begun++;
}

static void publish(int key)
{
	struct owner *o = &owners[owner_of[key]];

	quiesce_store_release(RU3, &o->done, (uint64_t)o->begun);
}

/* Return the item that @key has after @n operations of its owner. */
static struct item *value_after(int key, int n)
{
	const struct owner *o = &owners[owner_of[key]];

	while (n--)
		if (o->op[n].key == key)
			return o->op[n].value;
	return NULL;
}

static struct item *value_now(int key)
{
	return value_after(key, owners[owner_of[key]].begun);
}

static uint64_t value_of(const struct item *item)
{
	return (uint64_t)(uintptr_t)item;
}

static int put(int key, struct item *item, bool set, struct item **ret_other)
{
	uint64_t value = 0;
	void *other = NULL;
	int err;

	if (world_kind == MAP) {
		err = set ? hashmap_set(&world_table->map, world_key_of[key], value_of(item), &value) :
			    hashmap_insert(&world_table->map, world_key_of[key], value_of(item), &value);
		*ret_other = (struct item *)(uintptr_t)value;
	} else {
		err = set ? hashtable_set(&world_table->ht, item, &other) : hashtable_insert_unique(&world_table->ht, item, &other);
		*ret_other = other;
	}
	return err;
}

static int change(int key, bool set)
{
	struct item *before = value_now(key), *item = world_item_new(key), *other = NULL;
	int err;

	begin(key, item);
	err = put(key, item, set, &other);
	if (err == -ENOMEM && world_may_fail) {
		owners[owner_of[key]].begun--; /* the failed operation does not count */
		sim_obj_free(item->object);
		return err;
	}
	sim_assert(err == 0);
	sim_assert(other == before);
	publish(key);
	world_item_retire(before);
	reclaim();
	return 0;
}

int world_insert(int key)
{
	sim_assert(!value_now(key));
	return change(key, false);
}

int world_set(int key)
{
	return change(key, true);
}

void world_remove(int key)
{
	struct item *before = value_now(key);

	begin(key, NULL);
	if (world_kind == MAP)
		sim_assert(hashmap_remove(&world_table->map, world_key_of[key]) == value_of(before));
	else if (sim_random(2) || !before)
		sim_assert(hashtable_remove_key(&world_table->ht, &world_key_of[key]) == before);
	else
		sim_assert(hashtable_remove(&world_table->ht, before) == 0);
	publish(key);
	world_item_retire(before);
	reclaim();
}

void world_replace(int key)
{
	struct item *before = value_now(key), *item = world_item_new(key);

	begin(key, item);
	if (world_kind == MAP)
		sim_assert(hashmap_replace(&world_table->map, world_key_of[key], value_of(before), value_of(item)) == 0);
	else
		sim_assert(hashtable_replace(&world_table->ht, before, item) == 0);
	publish(key);
	world_item_retire(before);
	reclaim();
}

/* ---- readers ---- */

struct item *world_lookup(int key)
{
	struct item *item;

	if (world_kind == MAP)
		item = (struct item *)(uintptr_t)hashmap_lookup(&world_table->map, world_key_of[key]);
	else
		item = hashtable_lookup(&world_table->ht, &world_type, &world_key_of[key]);
	if (item)
		world_check(item, key);
	return item;
}

static struct item *lookup_hazptr(int key)
{
	hazptr_t *slot = hazptr_alloc(NULL);
	struct item *item;

	sim_assert(slot);
	item = hashtable_lookup_hazptr(&world_table->ht, &world_type, &world_key_of[key], slot, offsetof(struct item, hazptr));
	if (item)
		world_check(item, key);
	if (item && sim_random(2))
		world_check(item, key);
	hazptr_free(NULL, slot);
	return item;
}

/* Return the least number of operations that the owner has reported. */
static int hear(struct view_of_owners *view, int owner)
{
	int published = quiesce_load_acquire(RU3, &owners[owner].done);

	return published > view->seen[owner] ? published : view->seen[owner];
}

/* Return the least number of operations, from @low up to those begun, after which @key had @found; -1 if there is none. */
static int when(int key, const struct item *found, int low)
{
	for (int n = low; n <= owners[owner_of[key]].begun; n++)
		if (value_after(key, n) == found)
			return n;
	return -1;
}

static void compare(struct view_of_owners *view, int key, const struct item *found, int low)
{
	int owner = owner_of[key], begun = owners[owner].begun, n = when(key, found, low);

	if (n < 0 && !found && destroyed)
		return;
	if (n < 0)
		sim_fail("key %d %s, and had something else after each of %d to %d operations", key,
			 found ? "found with an item" : "not found", low, begun);
	view->seen[owner] = n;
	if (n < begun || n > low)
		sim_saw(); /* the owner was changing the key */
}

void world_find(struct view_of_owners *view, int key)
{
	int low = hear(view, owner_of[key]);
	struct item *found;

	if (world_kind == HAZARD) {
		found = lookup_hazptr(key);
	} else {
		rcu_read_lock();
		found = world_lookup(key);
		rcu_read_unlock();
	}
	compare(view, key, found, low);
}

void world_find_all(struct view_of_owners *view)
{
	bool section = sim_random(2);

	if (section)
		rcu_read_lock();
	for (int i = sim_random(nr_keys), n = nr_keys; n; n--, i = (i + 1) % nr_keys)
		if (!unwatched[i])
			world_find(view, i);
	if (section)
		rcu_read_unlock();
}

int world_key_index(uint64_t value)
{
	for (int i = 0; i < nr_keys; i++)
		if (world_key_of[i] == value)
			return i;
	sim_fail("a key without an owner");
	return 0;
}

/* Return how often the key had no item, after operations @low to the last. */
static int absences(int key, int low)
{
	int absent = 0;

	for (int n = low; n <= owners[owner_of[key]].begun; n++)
		absent += !value_after(key, n);
	return absent;
}

static void visit(const struct item *found, const int *low, int *visits)
{
	int key = world_key_index(found->key);

	world_check(found, key);
	if (judges[key])
		return;
	if (when(key, found, low[owner_of[key]]) < 0)
		sim_fail("key %d visited with an item that it had not", key);
	visits[key]++;
}

void world_iterate(struct view_of_owners *view)
{
	int low[NR_OWNERS], visits[NR_KEYS] = { 0 };
	bool in_steps = sim_random(2);

	if (!in_steps)
		rcu_read_lock();
	for (int i = 0; i < NR_OWNERS; i++)
		low[i] = hear(view, i);
	world_walk(in_steps, visit, low, visits);
	for (int i = 0; i < nr_keys; i++) {
		int absent = absences(i, low[owner_of[i]]);

		if (!absent && visits[i] != 1 && !destroyed)
			sim_fail("key %d was there all the time and visited %d times", i, visits[i]);
		if (visits[i] > 1 + absent)
			sim_fail("key %d visited %d times, and it went %d times", i, visits[i], absent);
		if (absent)
			sim_saw();
	}
	if (!in_steps)
		rcu_read_unlock();
}

/* ---- the end ---- */

static void drop(void *object, void *arg)
{
	(void)arg;
	world_item_retire(object);
}

void world_removals(const bool *chosen, void (*remove)(void))
{
	struct item *now[NR_KEYS];

	for (int i = 0; i < nr_keys; i++) {
		now[i] = chosen[i] ? value_now(i) : NULL;
		if (now[i])
			begin(i, NULL);
	}
	remove();
	for (int i = 0; world_kind == MAP && i < nr_keys; i++)
		world_item_retire(now[i]);
	publish(0);
	reclaim();
}

/* Destroy the table, when no update is under way; its memory is freed when the readers have left. */
void world_destroy(void)
{
	destroyed = 1;
	if (world_kind == MAP) {
		struct item *now[NR_KEYS];

		for (int i = 0; i < nr_keys; i++)
			now[i] = value_now(i);
		hashmap_destroy(&world_table->map);
		for (int i = 0; i < nr_keys; i++)
			world_item_retire(now[i]);
	} else {
		hashtable_destroy(&world_table->ht, drop, NULL);
	}
	reclaim();
}

/* The callback that moves the rest may queue another; then two grace periods follow, each with its callback. */
bool world_settle(void)
{
	for (int i = 0; i < 8; i++) {
		struct quiesce__buckets *array = world_table->table.array;
		int lines = 0;

		rcu_barrier();
		if (array != world_table->table.array || array->next)
			continue;
		for (const struct quiesce__extra *more = array->more; more; more = more->next)
			lines++;
		if (world_blocks <= 3 + lines) /* the table, its array and its counts */
			return true;
	}
	return false;
}

static void check_contents(void)
{
	struct view_of_owners view = { { 0 } };
	struct quiesce_table_stats stats;
	size_t count = 0;

	for (int i = 0; i < nr_keys; i++) {
		view.seen[owner_of[i]] = owners[owner_of[i]].begun;
		count += judges[i] ? (size_t)judges[i]() : value_now(i) != NULL;
	}
	sim_assert(quiesce__table_count(&world_table->table) == count); /* while the callback may be moving buckets */
	if (!world_settle()) /* after the judges' operations */
		sim_fail("%d blocks of memory are left, and no update comes", world_blocks);
	for (int i = 0; i < nr_keys; i++)
		if (!judges[i])
			world_find(&view, i);
	if (world_kind != HAZARD)
		world_iterate(&view);
	sim_assert(quiesce__table_count(&world_table->table) == count);
	quiesce__table_stats(&world_table->table, &stats);
	sim_assert(stats.elements == count);
}

static void check_end(void)
{
	if (!destroyed) {
		check_contents();
		world_destroy();
	}
	platform_lines_put(world_table, sizeof(*world_table)); /* no reader is left; a callback may be under way */
	for (int i = 0; i < 5 && (!i || world_blocks); i++)
		rcu_barrier();
	if (world_blocks)
		sim_fail("%d blocks of memory are left of a table that was destroyed", world_blocks);
	if (world_kind == HAZARD)
		hazptr_barrier();
	for (int i = 0; i < nr_items; i++)
		if (!sim_obj_is_free(items[i].object))
			sim_fail("item %d is left", i);
}

/* ---- threads ---- */

struct body {
	void (*fn)(void *);
	void *arg;
};

static void run_body(void *arg)
{
	struct body *body = arg;

	body->fn(body->arg);
	if (quiesce_fetch_add(RU3, &nr_running, (uint64_t)-1) == 1)
		check_end();
}

void world_spawn(void (*fn)(void *), void *arg, const char *name)
{
	static struct body bodies[SIM_MAX_THREADS];
	static int nr_bodies;

	bodies[nr_bodies] = (struct body){ fn, arg };
	nr_running++;
	sim_spawn(run_body, &bodies[nr_bodies++], name);
}

void world_reader(void *unused)
{
	struct view_of_owners view = { { 0 } };

	(void)unused;
	for (int i = 0; i < 2; i++)
		world_find_all(&view);
}

void world_iterator(void *unused)
{
	struct view_of_owners view = { { 0 } };

	(void)unused;
	for (int i = 0; i < 2; i++)
		world_iterate(&view);
}

void world_readers(void)
{
	for (int i = 0; i < driver_readers; i++)
		world_spawn(world_reader, NULL, "reader");
}
