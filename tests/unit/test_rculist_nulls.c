/* SPDX-License-Identifier: MIT */
/* test_rculist_nulls.c - chains of entries that are used again at once: the lookup, step by step and under load. */
#include <quiesce/ds/rculist_nulls.h>

#include "testing.h"

enum { NR_CHAINS = 4, NR_OBJECTS = 16, NR_READERS = 2, RUN_MS = 120 };

struct object {
	uint64_t key;  /* the key of the object's present life; constant while there are references */
	uint64_t refs; /* 0: not in use */
	uint64_t uses; /* written by holders of a reference */
	struct hlist_nulls_node node;
};

static struct object object[NR_OBJECTS];
static struct hlist_nulls_head chain[NR_CHAINS];

/* Functions that run while a walk is at an object, and after it has found one; set by tests that need them. */
static void (*meanwhile)(struct object *o), (*before_the_reference)(struct object *o);
static int nr_restarts, nr_strays;

static unsigned long slot_of(uint64_t key)
{
	return (unsigned long)(key % NR_CHAINS);
}

/* ---- the pattern ---- */

static uint64_t key_of(const struct object *o)
{
	return quiesce_load_relaxed(&o->key); /* Relaxed: compared again under the reference. */
}

static bool tryget(struct object *o)
{
	uint64_t refs = quiesce_load_relaxed(&o->refs); /* Relaxed: the exchange decides. */

	while (refs)
		if (quiesce_cmpxchg(RU3, &o->refs, &refs, refs + 1))
			return true;
	return false;
}

static bool put(struct object *o)
{
	return quiesce_fetch_add(RU3, &o->refs, (uint64_t)-1) == 1;
}

/* Return the object with this key, with a reference; NULL if there is none. */
static struct object *find(uint64_t key)
{
	struct hlist_nulls_node *pos;
	struct object *o;

	rcu_read_lock();
again:
	hlist_nulls_for_each_entry_rcu(o, pos, &chain[slot_of(key)], node) {
		if (meanwhile)
			meanwhile(o);
		if (key_of(o) != key)
			continue;
		if (before_the_reference)
			before_the_reference(o);
		if (!tryget(o))
			goto again;
		if (key_of(o) == key)
			goto found;
		put(o);
		count_up(&nr_restarts);
		goto again;
	}
	if (hlist_nulls_strayed(pos, slot_of(key))) {
		count_up(&nr_strays);
		goto again;
	}
	o = NULL;
found:
	rcu_read_unlock();
	return o;
}

/* Begin a life of the object, to which there are no references yet. */
static void enter(struct object *o, uint64_t key)
{
	quiesce_store_relaxed(&o->key, key); /* Relaxed: the reference follows. */
	quiesce_store_release(RU3, &o->refs, 1);
	hlist_nulls_add_head_rcu(&o->node, &chain[slot_of(key)]);
}

/* End a life of the object; true if there are no references left. */
static bool leave(struct object *o)
{
	hlist_nulls_del_rcu(&o->node);
	return put(o);
}

/* ---- one thread ---- */

static int begin(void **state)
{
	testing_setup(state);
	memset(object, 0, sizeof object);
	for (unsigned long i = 0; i < NR_CHAINS; i++)
		INIT_HLIST_NULLS_HEAD(&chain[i], i);
	meanwhile = before_the_reference = NULL;
	nr_restarts = nr_strays = 0;
	return 0;
}

#define NULLS_TEST(f) cmocka_unit_test_prestate_setup_teardown(f, begin, testing_teardown, (void *)(uintptr_t)#f)

/* Return the objects of a chain as letters; each back pointer must lead to the link that leads to its node. */
static const char *seen(int slot)
{
	struct hlist_nulls_node *pos, **link = &chain[slot].first;
	static char text[NR_OBJECTS + 1];
	struct object *o;
	int n = 0;

	rcu_read_lock();
	hlist_nulls_for_each_entry_rcu(o, pos, &chain[slot], node)
		text[n++] = (char)('a' + (o - object));
	rcu_read_unlock();
	text[n] = '\0';
	assert_true(is_a_nulls(pos));
	assert_int_equal(get_nulls_value(pos), slot);
	hlist_nulls_for_each_entry(o, pos, &chain[slot], node) {
		assert_ptr_equal(o->node.pprev, link);
		link = &o->node.next;
	}
	return text;
}

static void ends_have_numbers(void **state)
{
	static struct hlist_nulls_head large = HLIST_NULLS_HEAD_INIT(QUIESCE_NULLS_NOBODY - 1);

	(void)state;
	assert_true(is_a_nulls(large.first) && hlist_nulls_empty(&large));
	assert_true(get_nulls_value(large.first) == QUIESCE_NULLS_NOBODY - 1);
	assert_int_equal(get_nulls_value(chain[0].first), 0);
	assert_int_equal(get_nulls_value(chain[3].first), 3);
	assert_false(is_a_nulls(&object[0].node));
	assert_string_equal(seen(2), "");
	assert_true(hlist_nulls_strayed(chain[3].first, 2));
	assert_false(hlist_nulls_strayed(chain[3].first, 3));
	assert_false(hlist_nulls_strayed(&object[0].node, 3));
}

static void objects_come_and_go_at_any_place(void **state)
{
	(void)state;
	hlist_nulls_add_tail_rcu(&object[1].node, &chain[1]);
	hlist_nulls_add_head_rcu(&object[0].node, &chain[1]);
	hlist_nulls_add_tail_rcu(&object[2].node, &chain[1]);
	hlist_nulls_add_tail_rcu(&object[3].node, &chain[1]);
	assert_string_equal(seen(1), "abcd");
	assert_false(hlist_nulls_empty(&chain[1]));
	assert_ptr_equal(hlist_nulls_entry(chain[1].first, struct object, node), &object[0]);
	hlist_nulls_del_rcu(&object[1].node);
	assert_int_equal((uintptr_t)object[1].node.pprev, QUIESCE_LIST_POISON);
	assert_ptr_equal(object[1].node.next, &object[2].node);
	hlist_nulls_del_rcu(&object[3].node);
	assert_string_equal(seen(1), "ac");
	assert_false(hlist_nulls_unhashed(&object[0].node) || hlist_nulls_unhashed_lockless(&object[0].node));
	for (int i = 0; i < 2; i++)
		hlist_nulls_del_init_rcu(&object[0].node);
	assert_true(hlist_nulls_unhashed(&object[0].node) && hlist_nulls_unhashed_lockless(&object[0].node));
	hlist_nulls_del_init_rcu(&object[2].node);
	hlist_nulls_del_init_rcu(&object[5].node); /* the node never was in a chain */
	assert_true(hlist_nulls_empty(&chain[1]));
	assert_string_equal(seen(1), "");
}

static void walks_of_updaters(void **state)
{
	struct hlist_nulls_node *pos = &object[1].node;
	struct object *o;
	int n = 0;

	(void)state;
	for (int i = 3; i >= 0; i--)
		hlist_nulls_add_head_rcu(&object[i].node, &chain[1]);
	hlist_nulls_for_each_entry_from(o, pos, node)
		assert_ptr_equal(o, &object[++n]);
	assert_int_equal(n, 3);
	hlist_nulls_for_each_entry_from(o, pos, node)
		fail();
	n = 0;
	hlist_nulls_for_each_entry_safe(o, pos, &chain[1], node) {
		assert_ptr_equal(o, &object[n++]);
		hlist_nulls_del_rcu(&o->node);
		memset(o, 0x6b, sizeof *o);
		if (n % 2)
			hlist_nulls_add_head_rcu(&o->node, &chain[2]);
	}
	assert_int_equal(n, 4);
	assert_int_equal(get_nulls_value(pos), 1);
	assert_true(hlist_nulls_empty(&chain[1]));
	assert_string_equal(seen(2), "ca");
}

static void present_objects_are_found(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 12; i++)
		enter(&object[i], i);
	for (uint64_t i = 0; i < 12; i++) {
		assert_ptr_equal(find(i), &object[i]);
		assert_int_equal(object[i].refs, 2);
	}
	assert_null(find(12));
	assert_int_equal(nr_strays + nr_restarts, 0);
}

/* ---- changes at a chosen place of a walk, by one thread ---- */

/* object[1] goes to chain 1, where one is already. */
static void move_the_first(struct object *o)
{
	if (o != &object[1] || key_of(o) != 4)
		return;
	assert_true(leave(o));
	enter(o, 5);
}

/* Without the check at the end of a walk object[0], which never moves, would not be found. */
static void a_walk_that_strays_begins_anew(void **state)
{
	(void)state;
	enter(&object[0], 0);
	enter(&object[1], 4);
	enter(&object[2], 1);
	assert_string_equal(seen(0), "ba");
	meanwhile = move_the_first;
	assert_ptr_equal(find(0), &object[0]);
	assert_int_equal(nr_strays, 1);
	assert_string_equal(seen(0), "a");
	assert_string_equal(seen(1), "bc");
}

static int nr_visits;

/* object[1] goes to the head of its own chain. */
static void move_to_the_head(struct object *o)
{
	nr_visits++;
	if (o != &object[1] || key_of(o) != 4)
		return;
	assert_true(leave(o));
	enter(o, 8);
}

/* object[1] goes to no chain. */
static void move_to_none(struct object *o)
{
	if (o != &object[1])
		return;
	assert_true(leave(o));
	hlist_nulls_add_fake(&o->node);
	assert_false(hlist_nulls_unhashed(&o->node));
}

static void a_walk_from_no_chain_begins_anew(void **state)
{
	(void)state;
	enter(&object[0], 0);
	enter(&object[1], 4);
	meanwhile = move_to_none;
	assert_ptr_equal(find(0), &object[0]);
	assert_int_equal(nr_strays, 1);
	assert_string_equal(seen(0), "a");
	for (int i = 0; i < 2; i++)
		hlist_nulls_del_init_rcu(&object[1].node);
	assert_true(hlist_nulls_unhashed(&object[1].node));
	enter(&object[1], 8);
	assert_string_equal(seen(0), "ba");
}

/* An object moved to the head sends the walk past all objects once more; one moved to the tail would send it past none. */
static void a_walk_may_be_sent_back(void **state)
{
	(void)state;
	nr_visits = 0;
	enter(&object[0], 0);
	enter(&object[1], 4);
	enter(&object[2], 12);
	meanwhile = move_to_the_head;
	assert_ptr_equal(find(0), &object[0]);
	assert_int_equal(nr_visits, 4);
	assert_int_equal(nr_strays, 0);
	assert_string_equal(seen(0), "bca");
}

static void rename_it(struct object *o)
{
	before_the_reference = NULL;
	assert_true(leave(o));
	enter(o, 8); /* key 8 is in the same chain */
}

static void end_it(struct object *o)
{
	before_the_reference = NULL;
	assert_true(leave(o));
}

static void the_object_found_has_the_key(void **state)
{
	(void)state;
	enter(&object[0], 0);
	enter(&object[1], 4);
	before_the_reference = rename_it;
	assert_null(find(4));
	assert_int_equal(nr_restarts, 1);
	assert_int_equal(object[1].refs, 1);
	before_the_reference = end_it;
	assert_null(find(8));
	assert_int_equal(nr_restarts, 1);
	assert_int_equal(object[1].refs, 0);
	assert_string_equal(seen(0), "a");
}

/* ---- many threads ---- */

static uint64_t nr_found, nr_wrong, nr_missed;
static uint32_t stop;

/* The reader looks up key 0, which object[0] has all the time, and keys 1 to 12, which the other objects have for a while. */
static void *reader_main(void *arg)
{
	unsigned int random = (unsigned int)(uintptr_t)arg;

	while (!flag_get(&stop)) {
		uint64_t key = (uint64_t)rand_r(&random) % 13;
		struct object *o = find(key);

		if (!o) {
			if (key == 0)
				count_up(&nr_missed);
			continue;
		}
		count_up(&o->uses);
		if (key_of(o) != key || quiesce_load_relaxed(&o->refs) > NR_READERS + 1) /* Relaxed: a count. */
			count_up(&nr_wrong);
		put(o);
		count_up(&nr_found);
	}
	return NULL;
}

/* End the life of any object but the first, and begin another one. */
static void recycle(unsigned int *random)
{
	struct object *o = &object[1 + rand_r(random) % (NR_OBJECTS - 1)];

	if (quiesce_load_relaxed(&o->refs)) /* Relaxed: only the updater adds and removes. */
		(void)leave(o);
	wait_until(!quiesce_load_acquire(RU3, &o->refs)); /* a reader holds a reference */
	enter(o, 1 + (uint64_t)rand_r(random) % 12);
}

static void objects_that_stay_are_found_among_objects_that_move(void **state)
{
	uint64_t until = now_ns() + RUN_MS * 1000000ull, turns = 0;
	pthread_t thread[NR_READERS];
	unsigned int random = 1;

	(void)state;
	nr_found = nr_wrong = nr_missed = stop = 0;
	enter(&object[0], 0);
	for (uintptr_t i = 0; i < NR_READERS; i++)
		thread_must(pthread_create(&thread[i], NULL, reader_main, (void *)(i + 7)));
	/* The test runs for a time, and until there was work, instead of a number of rounds. */
	while (now_ns() < until || flag_get(&nr_found) < 100 || turns < 100) {
		recycle(&random);
		turns++;
	}
	flag_set(&stop);
	threads_end(thread, NR_READERS);
	print_message("# %llu turns, %llu found, %d walks astray, %d second lookups\n", (unsigned long long)turns,
		      (unsigned long long)nr_found, nr_strays, nr_restarts);
	assert_int_equal(nr_missed, 0);
	assert_int_equal(nr_wrong, 0);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		NULLS_TEST(ends_have_numbers),
		NULLS_TEST(objects_come_and_go_at_any_place),
		NULLS_TEST(walks_of_updaters),
		NULLS_TEST(present_objects_are_found),
		NULLS_TEST(a_walk_that_strays_begins_anew),
		NULLS_TEST(a_walk_from_no_chain_begins_anew),
		NULLS_TEST(a_walk_may_be_sent_back),
		NULLS_TEST(the_object_found_has_the_key),
		NULLS_TEST(objects_that_stay_are_found_among_objects_that_move),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
