/* SPDX-License-Identifier: MIT */
/* buckets_race.c - several updaters of one key: all operations must have an order that explains their results (linearizability).
 *
 * The order must keep that of each thread, and that of updates of which one was over when the other began. */
#include "buckets_world.h"

#include <errno.h>

#define NR_THREADS 3
#define NR_OPS 4

enum what { LOOKUP, INSERT, SET, REMOVE, UPDATE, SWAP, REMOVE_THIS, NR_WHAT };

struct op {
	enum what what;
	struct item *put;    /* item to insert, or NULL */
	struct item *expect; /* item that the operation expects */
	struct item *result; /* item that was there; of SWAP and REMOVE_THIS: @expect if it was there */
	bool puts;           /* an UPDATE inserts if the key has no item */
	uint32_t choice;     /* if it has one, an UPDATE leaves it, removes it, or replaces it */
	uint32_t begin, end;
};

static struct op ops[NR_THREADS][NR_OPS];
static int key;

static bool is_map(void)
{
	return world_kind == MAP;
}

static uint64_t value_of(const struct item *item)
{
	return (uint64_t)(uintptr_t)item;
}

static struct item *item_of(uint64_t value)
{
	return (struct item *)(uintptr_t)value;
}

/* Return the item that an UPDATE leaves when it finds @there. */
static struct item *wanted(const struct op *op, struct item *there)
{
	if (!there)
		return op->puts ? op->put : NULL;
	return op->choice == 0 ? there : op->choice == 1 ? NULL : op->put;
}

static void *choose(void *there, void *arg)
{
	struct op *op = arg;

	op->result = there;
	return wanted(op, there);
}

static uint64_t choose_value(uint64_t there, void *arg)
{
	return value_of(choose(item_of(there), arg));
}

static void update(struct op *op)
{
	uint64_t value = 0;
	void *old = NULL;

	op->puts = sim_random(4);
	op->choice = sim_random(3);
	if (is_map()) {
		sim_assert(hashmap_update(&world_table->map, world_key_of[key], choose_value, op, &value) == 0);
		sim_assert(item_of(value) == op->result);
	} else {
		sim_assert(hashtable_update(&world_table->ht, &world_key_of[key], choose, op, &old) == 0);
		sim_assert(old == (wanted(op, op->result) == op->result ? NULL : op->result));
	}
}

/* Insert the operation's item, whatever is there. */
static void *put_this(void *unused, void *arg)
{
	(void)unused;
	return ((struct op *)arg)->put;
}

static uint64_t put_this_value(uint64_t unused, void *arg)
{
	(void)unused;
	return value_of(((struct op *)arg)->put);
}

static struct item *put(struct op *op)
{
	uint64_t value = 0;
	void *other = NULL;

	if (op->what == SET && sim_random(2)) {
		if (is_map())
			sim_assert(hashmap_update(&world_table->map, world_key_of[key], put_this_value, op, &value) == 0);
		else
			sim_assert(hashtable_update(&world_table->ht, &world_key_of[key], put_this, op, &other) == 0);
		return is_map() ? item_of(value) : other;
	}
	if (is_map() && op->what == SET)
		sim_assert(hashmap_set(&world_table->map, world_key_of[key], value_of(op->put), &value) == 0);
	else if (is_map())
		sim_assert(hashmap_insert(&world_table->map, world_key_of[key], value_of(op->put), &value) == (value ? -EEXIST : 0));
	else if (op->what == SET)
		sim_assert(hashtable_set(&world_table->ht, op->put, &other) == 0);
	else
		sim_assert(hashtable_insert_unique(&world_table->ht, op->put, &other) == (other ? -EEXIST : 0));
	return is_map() ? item_of(value) : other;
}

static struct item *take(struct op *op)
{
	bool done;

	if (op->what == REMOVE)
		return is_map() ? item_of(hashmap_remove(&world_table->map, world_key_of[key])) :
				  hashtable_remove_key(&world_table->ht, &world_key_of[key]);
	if (op->what == SWAP)
		done = is_map() ? !hashmap_replace(&world_table->map, world_key_of[key], value_of(op->expect), value_of(op->put)) :
				  !hashtable_replace(&world_table->ht, op->expect, op->put);
	else
		done = is_map() ? !hashmap_remove_value(&world_table->map, world_key_of[key], value_of(op->expect)) :
				  !hashtable_remove(&world_table->ht, op->expect);
	return done ? op->expect : NULL;
}

static void run(struct op *op)
{
	op->begin = sim_steps();
	if (op->what == LOOKUP)
		op->result = world_lookup(key);
	else if (op->what == INSERT || op->what == SET)
		op->result = put(op);
	else if (op->what == UPDATE)
		update(op);
	else
		op->result = take(op);
	op->end = sim_steps();
}

/* Return the key's item after @op, if its result is consistent with @there. */
static struct item *after(const struct op *op, struct item *there)
{
	switch (op->what) {
	case INSERT: return there ? there : op->put;
	case SET: return op->put;
	case REMOVE: return NULL;
	case UPDATE: return wanted(op, there);
	case SWAP: return op->result ? op->put : there;
	case REMOVE_THIS: return op->result ? NULL : there;
	default: return there;
	}
}

/* The updater that removed an item retires it; so does one whose item was not inserted. */
static void clean_up(const struct op *op)
{
	struct item *next = after(op, op->result);

	if (op->put && next != op->put)
		world_item_retire(op->put);
	if (op->result && next != op->result)
		world_item_retire(op->result);
}

/* Run in a section, because the item that was found before is compared, and its key read. */
static void updater(void *number)
{
	struct op *mine = ops[(intptr_t)number];
	struct item *last = NULL;

	rcu_read_lock();
	for (int i = 0; i < NR_OPS; i++) {
		struct op *op = &mine[i];

		op->what = sim_random(last ? NR_WHAT : SWAP);
		op->expect = op->what >= SWAP ? last : NULL;
		op->put = op->what == INSERT || op->what == SET || op->what == UPDATE || op->what == SWAP ? world_item_new(key) : NULL;
		run(op);
		clean_up(op);
		last = op->result ? op->result : op->put;
	}
	rcu_read_unlock();
}

/* Apply @op to the key's item *@now; false: its result shows that it cannot have come next. */
static bool apply(const struct op *op, struct item **now)
{
	if (op->what < SWAP && op->result != *now)
		return false;
	if (op->what >= SWAP && op->result != (*now == op->expect ? op->expect : NULL))
		return false;
	*now = after(op, *now);
	return true;
}

/* True if an update is left that ended before @op began. */
static bool too_early(const struct op *op, const int *done)
{
	for (int t = 0; t < NR_THREADS && op->what != LOOKUP; t++)
		for (int i = done[t]; i < NR_OPS; i++)
			if (ops[t][i].what != LOOKUP && ops[t][i].end < op->begin)
				return true;
	return false;
}

static bool explain(int *done, struct item *now, const struct item *last)
{
	bool over = true;

	for (int t = 0; t < NR_THREADS; t++) {
		struct item *after = now;

		if (done[t] == NR_OPS)
			continue;
		over = false;
		if (too_early(&ops[t][done[t]], done) || !apply(&ops[t][done[t]], &after))
			continue;
		done[t]++;
		if (explain(done, after, last))
			return true;
		done[t]--;
	}
	return over && now == last;
}

/* After all threads: find the item that is there, and an order; then remove it. */
static int judge(void)
{
	struct op end = { .what = REMOVE };
	int done[NR_THREADS] = { 0 };
	struct item *last;

	rcu_read_lock();
	last = world_lookup(key);
	rcu_read_unlock();
	if (!explain(done, NULL, last))
		sim_fail("no order of what was done to the key explains what was found");
	run(&end);
	sim_assert(end.result == last);
	world_item_retire(last);
	return 0;
}

static void resizer(void *unused)
{
	(void)unused;
	sim_assert(quiesce__table_reserve(&world_table->table, is_map() ? 8 : 16) == 0);
	sim_assert(quiesce__table_reserve(&world_table->table, 0) == 0);
}

static void setup_race(enum world_kind kind)
{
	world_begin(kind, 1);
	key = world_key(0, 0, -1);
	world_untracked(key, judge);
	world_insert(world_key(1, 0, -1));
	for (intptr_t i = 0; i < NR_THREADS; i++)
		world_spawn(updater, (void *)i, "updater");
	world_spawn(resizer, NULL, "resizer");
}

/* A new key needs another line, which is allocated outside of the lock. */
static void setup_update(enum world_kind kind)
{
	world_begin(kind, kind == MAP ? 16 : 32);
	key = world_key(0, 0, -1);
	world_untracked(key, judge);
	for (int i = kind == MAP ? 3 : 7; i; i--)
		world_insert(world_key(1, 0, -1));
	for (intptr_t i = 0; i < NR_THREADS; i++)
		world_spawn(updater, (void *)i, "updater");
}
static void table_update(void) { setup_update(TABLE); }
static void map_update(void) { setup_update(MAP); }

/* Two threads insert a key.  One of them needs a second line for it, and then makes a hole in the first: the other, which may have searched
 * the bucket before that, finds the key. */
static int full, winners;

static void insert_once(void *fills)
{
	struct item *item = world_item_new(key);

	rcu_read_lock(); /* the thread's first section takes another way through an update */
	rcu_read_unlock();
	if (hashmap_insert(&world_table->map, world_key_of[key], value_of(item), NULL) == 0)
		winners++;
	else
		world_item_retire(item);
	if (fills)
		world_remove(full);
}

static int judge_once(void)
{
	struct item *item = item_of(hashmap_remove(&world_table->map, world_key_of[key]));

	if (winners != 1 || !item || hashmap_remove(&world_table->map, world_key_of[key]))
		sim_fail("a key was inserted twice");
	world_item_retire(item);
	return 0;
}

static void map_once(void)
{
	world_begin(MAP, 16);
	sim_assert(quiesce__table_reserve(&world_table->table, 16) == 0); /* it does not become smaller */
	winners = 0;
	key = world_key(0, 0, -1);
	world_untracked(key, judge_once);
	for (int i = 3; i; i--)
		world_insert(full = world_key(1, 0, -1));
	world_spawn(insert_once, NULL, "inserter");
	world_spawn(insert_once, &full, "owner 1");
}

static void table_race(void) { setup_race(TABLE); }
static void map_race(void) { setup_race(MAP); }

const struct sim_scenario buckets_race_scenarios[] = {
	{ "table_race", "several updaters of one key, and a table that grows", table_race, NULL, NULL },
	{ "map_race", "the same with a map", map_race, NULL, NULL },
	{ "table_update", "several updaters of one key, whose bucket is full", table_update, NULL, NULL },
	{ "map_update", "the same with a map", map_update, NULL, NULL },
	{ "map_once", "two insert a key, whose bucket has one line or two", map_once, NULL, NULL },
	{ NULL, NULL, NULL, NULL, NULL },
};
