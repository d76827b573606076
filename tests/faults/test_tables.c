/* SPDX-License-Identifier: MIT */
/* test_tables.c - hash tables where no thread can be started, in forked children, and in signal handlers. */
#include "../unit/tables.h"
#include "no_threads.h"

#include <sched.h>

/* ---- no thread can be started ---- */

enum { WAVES = 40, IN_A_WAVE = 5000 };

/* The updater is the only thread, and comes to a safe point now and then: old arrays must not accumulate. */
static void arrays_come_back_without_a_worker(void **state)
{
	static struct object objects[IN_A_WAVE];
	uint64_t most_objects = 0, resizes;
	struct hashtable table;
	struct hashmap map;

	(void)state;
	flag_set(&no_threads);
	hashmap_init(&map);
	hashtable_init(&table, &object_type);
	for (int wave = 0; wave < WAVES; wave++) {
		for (uint64_t i = 0; i < IN_A_WAVE; i++) {
			objects[i].key = i;
			assert_int_equal(hashmap_set(&map, i, i + 1, NULL), 0);
			assert_int_equal(hashtable_insert(&table, &objects[i]), 0);
		}
		for (uint64_t i = 0; i < IN_A_WAVE; i++) {
			assert_int_equal(hashmap_remove(&map, i), i + 1);
			assert_int_equal(hashtable_remove(&table, &objects[i]), 0);
		}
		rcu_throttle();
		if (stats_now().garbage_objects > most_objects)
			most_objects = stats_now().garbage_objects;
	}
	resizes = map_stats(&map).resizes + table_stats(&table).resizes;
	assert_true(resizes >= WAVES); /* otherwise there was no array to reclaim */
	assert_true(nr_refused > 0);
	assert_int_equal(stats_now().worker_running, 0);
	assert_in_range(most_objects, 0, 16);
	hashmap_destroy(&map);
	hashtable_destroy(&table, NULL, NULL);
	come_to_rest();
	quiesce_store_relaxed(&no_threads, 0); /* Relaxed: a flag of the test. */
}

/* ---- forks ---- */

enum { FULL = 16384, MORE = 1000, STABLE = 300, LATE = 5, UNDER_WAY = 6 };

static struct hashmap map;
static struct hashtable table;
static struct object objects[2 * FULL + MORE];
static uint64_t nr_in_map, nr_in_table, begun;

/* Check that the table is complete, and that each call works.  (The forking thread was not in an update.) */
static void use_map(void)
{
	struct hashmap_iter it;
	uint64_t key, value, nr = 0;

	must(hashmap_reserve(&map, 10) == 0);
	rcu_read_lock();
	for (uint64_t i = 0; i < nr_in_map; i++)
		must(hashmap_lookup(&map, i) == i + 1);
	hashmap_for_each(key, value, &it, &map)
		nr += value == key + 1;
	rcu_read_unlock();
	must(nr == nr_in_map);
	for (uint64_t i = 0; i < MORE; i++)
		must(hashmap_insert(&map, nr_in_map + i, nr_in_map + i + 1, NULL) == 0);
	for (uint64_t i = 0; i < nr_in_map + MORE; i++)
		must(hashmap_remove(&map, i) == i + 1);
	come_to_rest();
	must(hashmap_count(&map) == 0);
	hashmap_destroy(&map);
	come_to_rest();
}

static void use_table(void)
{
	struct hashtable_iter it;
	struct object *o;
	uint64_t nr = 0;

	must(hashtable_reserve(&table, 10) == 0);
	rcu_read_lock();
	for (uint64_t i = 0; i < nr_in_table; i++)
		must(object_lookup(&table, &i) == &objects[i]);
	hashtable_for_each(o, &it, &table)
		nr++;
	rcu_read_unlock();
	must(nr == nr_in_table);
	for (uint64_t i = nr_in_table; i < nr_in_table + MORE; i++) {
		objects[i].key = i;
		must(hashtable_insert_unique(&table, &objects[i], NULL) == 0);
	}
	for (uint64_t i = 0; i < nr_in_table + MORE; i++)
		must(hashtable_remove_key(&table, &i) == &objects[i]);
	come_to_rest();
	must(hashtable_count(&table) == 0);
	hashtable_destroy(&table, NULL, NULL);
	come_to_rest();
}

static bool is_resized(const struct quiesce__table *t)
{
	return quiesce_load_relaxed(&t->array->next) != NULL; /* Relaxed: a test for NULL. */
}

static void child_while_buckets_move(void)
{
	bool under_way = is_resized(&map.table) && is_resized(&table.table);

	if (!in_time(begun))
		_exit(LATE);
	use_map();
	use_table();
	_exit(under_way ? UNDER_WAY : 0);
}

static void make_both(void)
{
	hashmap_init(&map);
	hashtable_init(&table, &object_type);
	assert_int_equal(hashmap_reserve(&map, FULL), 0);
	assert_int_equal(hashtable_reserve(&table, FULL), 0);
	nr_in_map = nr_in_table = 0;
	come_to_rest();
}

/* Fill the table in a section, so that no callback comes between, until it has to grow; then the worker begins to move. */
static void grow_both(void)
{
	rcu_read_lock();
	for (; nr_in_map < 2 * FULL && !is_resized(&map.table); nr_in_map++)
		if (hashmap_insert(&map, nr_in_map, nr_in_map + 1, NULL))
			abort();
	for (; nr_in_table < 2 * FULL && !is_resized(&table.table); nr_in_table++) {
		objects[nr_in_table] = (struct object){ .key = nr_in_table };
		if (hashtable_insert(&table, &objects[nr_in_table]))
			abort();
	}
	rcu_read_unlock();
	must(nr_in_map < 2 * FULL && nr_in_table < 2 * FULL);
}

static void end_both(void)
{
	hashmap_destroy(&map);
	hashtable_destroy(&table, NULL, NULL);
	come_to_rest();
}

static void fork_while_the_worker_moves_buckets(void **state)
{
	int nr_under_way = 0;

	(void)state;
	for (int round = 0; nr_under_way < 4; round++) {
		struct outcome o;

		make_both();
		grow_both();
		for (int i = 0; i < round % 4; i++)
			short_rest();
		begun = now_ns();
		in_child(child_while_buckets_move, &o);
		if (!exited_with(o.status, 0) && !exited_with(o.status, UNDER_WAY) && !exited_with(o.status, LATE))
			fail_msg("child: wait status %#x, stderr: %s", (unsigned int)o.status, o.text);
		nr_under_way += exited_with(o.status, UNDER_WAY);
		use_map(); /* the parent's map works as before */
		use_table();
		alarm(watchdog_seconds());
	}
}

/* No update follows those that begin the resize. */
static void child_that_begins_to_grow(void)
{
	grow_both();
	come_to_rest();
	must(!is_resized(&map.table) && !is_resized(&table.table));
	use_map();
	use_table();
	_exit(0);
}

static void a_resize_that_a_child_begins_ends(void **state)
{
	struct outcome o;

	(void)state;
	make_both();
	in_child(child_that_begins_to_grow, &o);
	if (!exited_with(o.status, 0))
		fail_msg("child: wait status %#x, stderr: %s", (unsigned int)o.status, o.text);
	alarm(watchdog_seconds());
	grow_both();
	end_both();
}

/* An updating thread does not exist in the child, wherever it was in its update; lookups still work. */
static uint32_t stop, nr_waves;

static void *update_all_the_time(void *unused)
{
	static struct object others[2000];

	(void)unused;
	while (!flag_get(&stop)) {
		for (uint64_t i = 0; i < 2000; i++) {
			others[i].key = FULL + 1000 + i;
			if (hashmap_set(&map, FULL + 1000 + i, i + 1, NULL) || hashtable_insert(&table, &others[i]))
				abort();
		}
		for (uint64_t i = 0; i < 2000; i++)
			if (hashmap_remove(&map, FULL + 1000 + i) != i + 1 || hashtable_remove(&table, &others[i]))
				abort();
		count_up(&nr_waves);
	}
	return NULL;
}

static bool all_stable_are_found(void)
{
	bool good = true;

	rcu_read_lock();
	for (uint64_t i = 0; i < STABLE; i++)
		good &= hashmap_lookup(&map, i) == i + 1 && object_lookup(&table, &i) == &objects[i];
	rcu_read_unlock();
	return good;
}

static void only_read(void)
{
	must(all_stable_are_found());
}

static void begin_stable(void)
{
	hashmap_init(&map);
	hashtable_init(&table, &object_type);
	for (uint64_t i = 0; i < STABLE; i++) {
		objects[i] = (struct object){ .key = i };
		assert_int_equal(hashmap_insert(&map, i, i + 1, NULL), 0);
		assert_int_equal(hashtable_insert(&table, &objects[i]), 0);
	}
	quiesce_store_relaxed(&stop, 0);     /* Relaxed: a flag of the test. */
	quiesce_store_relaxed(&nr_waves, 0); /* Relaxed: a count of the test. */
}

static void lookups_in_a_child_of_a_busy_process(void **state)
{
	pthread_t thread;

	(void)state;
	begin_stable();
	thread_must(pthread_create(&thread, NULL, update_all_the_time, NULL));
	for (int i = 0; i < 20 || flag_get(&nr_waves) < 10; i++) {
		struct outcome o;

		in_child(only_read, &o);
		if (!exited_with(o.status, 0))
			fail_msg("child: wait status %#x, stderr: %s", (unsigned int)o.status, o.text);
	}
	flag_set(&stop);
	pthread_join(thread, NULL);
	end_both();
}

/* ---- signal handlers ---- */

static uint32_t nr_handled, nr_bad;

static void on_signal(int sig)
{
	int saved = errno;

	(void)sig;
	if (!all_stable_are_found())
		count_up(&nr_bad);
	count_up(&nr_handled);
	errno = saved;
}

/* Handlers look up in the thread that updates, also while it holds a bucket or moves one. */
static void lookups_in_signal_handlers(void **state)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	pthread_t thread;

	(void)state;
	sigemptyset(&action.sa_mask);
	sigaction(SIGUSR1, &action, NULL);
	begin_stable();
	thread_must(pthread_create(&thread, NULL, update_all_the_time, NULL));
	while (flag_get(&nr_handled) < 300 || flag_get(&nr_waves) < 10) {
		uint32_t before = flag_get(&nr_handled);

		pthread_kill(thread, SIGUSR1);
		while (flag_get(&nr_handled) == before)
			sched_yield();
	}
	flag_set(&stop);
	pthread_join(thread, NULL);
	assert_int_equal(nr_bad, 0);
	end_both();
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(arrays_come_back_without_a_worker), /* the first child has no worker yet */
		TEST(fork_while_the_worker_moves_buckets),
		TEST(a_resize_that_a_child_begins_ends),
		TEST(lookups_in_a_child_of_a_busy_process),
		TEST(lookups_in_signal_handlers),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
