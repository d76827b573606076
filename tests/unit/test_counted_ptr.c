/* SPDX-License-Identifier: MIT */
/* test_counted_ptr.c - references that begin as hazard pointers: which references keep an object, and when it is released. */
#include <quiesce/counted_ptr.h>

#include "../sanitized.h"
#include "testing.h"

struct object {
	uint64_t before; /* the count is not the first member */
	struct counted counted;
	int released;
	uint64_t value;
};

static void object_release(struct counted *counted)
{
	struct object *o = (struct object *)(void *)((char *)counted - offsetof(struct object, counted));

	count_up(&o->released);
}

static void object_init(struct object *o)
{
	*o = (struct object){ .value = 42 };
	counted_init(&o->counted, object_release);
}

static int releases(struct object *o)
{
	hazptr_barrier();
	return flag_get(&o->released);
}

/* ---- the count ---- */

static void the_last_put_releases_once(void **state)
{
	struct object o;

	(void)state;
	object_init(&o);
	assert_int_equal(counted_read(&o.counted), 1);
	counted_get(&o.counted);
	assert_true(counted_tryget(&o.counted));
	assert_int_equal(counted_read(&o.counted), 3);
	assert_false(counted_put(&o.counted));
	assert_false(counted_put(&o.counted));
	assert_int_equal(releases(&o), 0);
	assert_true(counted_put(&o.counted));
	assert_int_equal(counted_read(&o.counted), 0);
	assert_int_equal(releases(&o), 1);
	assert_int_equal(releases(&o), 1);
}

static void an_object_without_references_is_not_revived(void **state)
{
	hazptr_t *slot = hazptr_alloc(NULL);
	struct object o, *p = &o;

	(void)state;
	object_init(&o);
	assert_ptr_equal(counted_protect(slot, &p, counted), &o);
	p = NULL;
	assert_true(counted_put(&o.counted));
	assert_false(counted_tryget(&o.counted));
	assert_int_equal(counted_read(&o.counted), 0);
	assert_int_equal(quiesce_shutdown(1000000), -ETIMEDOUT); /* the slot still protects it */
	assert_int_equal(flag_get(&o.released), 0);
	assert_int_equal(o.value, 42);
	hazptr_clear(slot);
	assert_int_equal(releases(&o), 1);
	hazptr_free(NULL, slot);
}

static void a_reference_keeps_what_a_slot_no_longer_protects(void **state)
{
	hazptr_t *slot = hazptr_alloc(NULL);
	struct object o, *p = &o, *kept;

	(void)state;
	object_init(&o);
	kept = counted_tryprotect(slot, &p, counted);
	assert_ptr_equal(kept, &o);
	assert_true(counted_tryget(&kept->counted));
	hazptr_free(NULL, slot);
	counted_publish(&p, NULL, counted);
	assert_int_equal(releases(&o), 0);
	assert_true(counted_put(&kept->counted));
	assert_int_equal(releases(&o), 1);
}

/* ---- pointers ---- */

static void a_load_takes_a_reference(void **state)
{
	struct object o, *p = &o, *q;

	(void)state;
	object_init(&o);
	q = counted_load(&p, counted);
	assert_ptr_equal(q, &o);
	assert_int_equal(counted_read(&o.counted), 2);
	counted_publish(&p, NULL, counted);
	assert_int_equal(releases(&o), 0);
	assert_null(counted_load(&p, counted));
	assert_true(counted_put(&q->counted));
	assert_int_equal(releases(&o), 1);
}

static void a_load_leaves_no_slot_behind(void **state)
{
	struct object o, *p = &o;
	hazptr_t *slot = hazptr_alloc(NULL), *again;

	(void)state;
	object_init(&o);
	hazptr_free(NULL, slot);
	counted_put(&counted_load(&p, counted)->counted);
	again = hazptr_alloc(NULL);
	assert_ptr_equal(again, slot);
	hazptr_free(NULL, again);
	counted_publish(&p, NULL, counted);
	assert_int_equal(releases(&o), 1); /* would wait for a slot that is still set */
}

static void publish_and_exchange_pass_references_on(void **state)
{
	struct object a, b, c, *p = NULL, *old;

	(void)state;
	object_init(&a);
	object_init(&b);
	object_init(&c);
	counted_publish(&p, &a, counted);
	assert_int_equal(counted_read(&a.counted), 1);
	old = counted_exchange(&p, &b);
	assert_ptr_equal(old, &a);
	assert_int_equal(counted_read(&a.counted), 1);
	counted_publish(&p, &c, counted);
	assert_int_equal(releases(&b), 1);
	assert_int_equal(releases(&a), 0);
	counted_put(&a.counted);
	counted_publish(&p, NULL, counted);
	counted_publish(&p, NULL, counted);
	assert_int_equal(releases(&a), 1);
	assert_int_equal(releases(&c), 1);
}

static void a_compare_and_exchange_that_fails_moves_nothing(void **state)
{
	struct object a, b, *p = &a, *expected = &b;

	(void)state;
	object_init(&a);
	object_init(&b);
	assert_false(counted_cmpxchg(&p, &expected, &b));
	assert_ptr_equal(expected, &a);
	assert_true(counted_cmpxchg(&p, &expected, &b));
	assert_ptr_equal(p, &b);
	assert_int_equal(counted_read(&a.counted) + counted_read(&b.counted), 2);
	assert_true(counted_put(&a.counted));
	counted_publish(&p, NULL, counted);
	assert_int_equal(releases(&a) + releases(&b), 2);
}

/* The count may be the first member. */
static void the_place_of_the_count_does_not_matter(void **state)
{
	struct first {
		struct counted counted;
		uint64_t value;
	};
	static struct first f;
	struct object o;
	struct first *p = &f;
	hazptr_t *slot = hazptr_alloc(NULL);

	(void)state;
	object_init(&o);
	counted_init(&f.counted, object_release); /* the release function is not called: the reference stays */
	assert_ptr_equal(counted_protect(slot, &p, counted), &f);
	assert_ptr_equal(counted_load(&p, counted), &f);
	assert_int_equal(counted_read(&f.counted), 2);
	p = NULL;
	assert_null(counted_protect(slot, &p, counted));
	synchronize_hazptr(&f);
	hazptr_free(NULL, slot);
	counted_put(&o.counted);
	assert_int_equal(releases(&o), 1);
}

/* ---- where it is called ---- */

static struct object *for_handler;

static void handler(int sig)
{
	struct object *o = counted_load(&for_handler, counted);

	(void)sig;
	counted_put(&o->counted);
}

static void signal_handlers_may_load(void **state)
{
	hazptr_t *slot = hazptr_alloc(NULL);
	struct object o, *p = &o;

	(void)state;
	object_init(&o);
	for_handler = &o;
	signal(SIGUSR1, handler);
	counted_protect(slot, &p, counted);
	raise(SIGUSR1);
	assert_int_equal(slot->value, &o.counted.hazptr);
	hazptr_free(NULL, slot);
	signal(SIGUSR1, SIG_DFL);
	assert_int_equal(counted_read(&o.counted), 1);
	counted_put(&o.counted);
	assert_int_equal(releases(&o), 1);
}

/* Each node of a list owns the next one: a release puts one further reference. */
struct node {
	struct counted counted;
	struct node *next;
};

static int nodes_released;

static void node_release(struct counted *counted)
{
	struct node *node = (struct node *)(void *)counted;

	counted_publish(&node->next, NULL, counted);
	free(node);
	count_up(&nodes_released);
}

static void long_chains_are_released_without_recursion(void **state)
{
	enum { N = 200000 };
	struct node *head = NULL;

	(void)state;
	for (int i = 0; i < N; i++) {
		struct node *node = malloc(sizeof *node);

		assert_non_null(node);
		counted_init(&node->counted, node_release);
		node->next = head;
		head = node;
	}
	counted_put(&head->counted);
	assert_int_equal(quiesce_shutdown(0), 0);
	assert_int_equal(flag_get(&nodes_released), N);
}

/* Without memory for slots the load uses a guard of the other kind. */
static void without_slots_a_load_works_all_the_same(void **state)
{
	enum { MANY = 20000 };
	static hazptr_t *taken[MANY];
	struct rlimit old, none;
	struct object o, *p = &o, *null = NULL, *loaded, *nothing;
	int nr = 0;

	(void)state;
	if (SANITIZED) {
		print_message("# a sanitizer needs memory itself: the case without slots is not tried\n");
		return;
	}
	object_init(&o);
	getrlimit(RLIMIT_DATA, &old);
	none = (struct rlimit){ .rlim_cur = 1, .rlim_max = old.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_DATA, &none), 0);
	while (nr < MANY && (taken[nr] = hazptr_alloc(NULL)))
		nr++;
	loaded = counted_load(&p, counted);
	nothing = counted_load(&null, counted);
	setrlimit(RLIMIT_DATA, &old);
	assert_in_range(nr, 7, MANY - 1);
	assert_ptr_equal(loaded, &o);
	assert_null(nothing);
	while (nr)
		hazptr_free(NULL, taken[--nr]);
	assert_int_equal(counted_read(&o.counted), 2);
	counted_put(&o.counted);
	counted_put(&o.counted);
	assert_int_equal(releases(&o), 1);
}

/* ---- misuse ---- */

static int misuses;
static enum quiesce_misuse misuse_kind;

static void hook(enum quiesce_misuse kind, const char *text)
{
	misuse_kind = kind;
	misuses += strstr(text, "counted_") != NULL;
}

static void misuse_begin(void)
{
	misuses = 0;
	quiesce_set_misuse_hook(hook);
}

/* Check that @times misuses of @o were reported, and that it is never released after that. */
static void misuse_end(struct object *o, int times, int released)
{
	quiesce_set_misuse_hook(NULL);
	assert_int_equal(misuses, times);
	assert_int_equal(misuse_kind, QUIESCE_MISUSE_COUNT);
	assert_false(counted_tryget(&o->counted));
	assert_int_equal(releases(o), released);
	assert_true(counted_read(&o->counted) < 0);
}

static void one_put_too_many_is_reported(void **state)
{
	struct object o;

	(void)state;
	object_init(&o);
	assert_true(counted_put(&o.counted));
	misuse_begin();
	assert_false(counted_put(&o.counted));
	assert_false(counted_put(&o.counted));
	misuse_end(&o, 2, 1);
}

static void a_get_without_reference_is_reported(void **state)
{
	struct object o;

	(void)state;
	object_init(&o);
	assert_true(counted_put(&o.counted));
	misuse_begin();
	counted_get(&o.counted);
	assert_false(counted_put(&o.counted)); /* puts a reference that did not exist */
	misuse_end(&o, 2, 1);
}

static void a_count_does_not_wrap(void **state)
{
	struct object o;

	(void)state;
	object_init(&o);
	o.counted.refs = INT64_MAX;
	counted_get(&o.counted);
	assert_false(counted_tryget(&o.counted));
	misuse_begin();
	counted_get(&o.counted);
	assert_false(counted_put(&o.counted));
	misuse_end(&o, 2, 0);
}

/* Without the report a loader would retry for ever. */
static void a_pointer_without_reference_is_reported(void **state)
{
	struct object o, *p = &o;

	(void)state;
	object_init(&o);
	assert_true(counted_put(&o.counted));
	misuse_begin();
	assert_null(counted_load(&p, counted));
	misuse_end(&o, 1, 1);
}

/* ---- all at once ---- */

enum { NR_OBJECTS = 30000, NR_POINTERS = 3, NR_READERS = 3, NR_UPDATERS = 2, ENOUGH = 2000, KEEP = 8 };
static struct object pool[NR_OBJECTS];
static struct object *pointer[NR_POINTERS];
static uint32_t nr_used;
static uint64_t nr_wrong, nr_reads, nr_promoted;

static void check_object(struct object *o)
{
	if (flag_get(&o->released) || o->value != 42)
		count_up(&nr_wrong);
}

static void put_kept(struct object **kept)
{
	if (!*kept)
		return;
	check_object(*kept);
	counted_put(&(*kept)->counted);
	*kept = NULL;
}

/* Read an object under the slot; keep some objects for some rounds. */
static bool read_once(hazptr_t *slot, struct object **where, struct object **keep)
{
	struct object *o = counted_protect(slot, where, counted);
	bool promoted = false;

	if (!o)
		return false;
	check_object(o);
	if (keep) {
		put_kept(keep);
		promoted = counted_tryget(&o->counted);
		if (promoted) {
			*keep = o;
			count_up(&nr_promoted);
		}
	}
	check_object(o);
	hazptr_clear(slot);
	return promoted;
}

static void *reader_main(void *unused)
{
	hazptr_t *slot = hazptr_alloc(NULL);
	struct object *kept[KEEP] = { NULL };
	uint64_t promoted = 0;

	(void)unused;
	for (uint32_t i = 0; promoted < ENOUGH || quiesce_load_relaxed(&nr_used) < NR_OBJECTS; i++) {
		struct object **where = &pointer[i % NR_POINTERS];

		count_up(&nr_reads);
		promoted += read_once(slot, where, i % 4 ? NULL : &kept[i / 4 % KEEP]);
		if (i % 16 == 0) {
			put_kept(&kept[0]);
			kept[0] = counted_load(where, counted);
		}
	}
	for (int i = 0; i < KEEP; i++)
		put_kept(&kept[i]);
	hazptr_free(NULL, slot);
	return NULL;
}

/* Replace the pointer if it is still the one that was loaded; otherwise nothing changes, and the fresh object is released. */
static void replace_loaded(struct object **where, struct object *fresh)
{
	struct object *loaded = counted_load(where, counted), *found = loaded;

	if (!counted_cmpxchg(where, &found, fresh))
		counted_put(&fresh->counted);
	else if (loaded)
		counted_put(&loaded->counted); /* the reference of the pointer */
	if (loaded)
		counted_put(&loaded->counted); /* the reference of this thread */
}

static void replace(struct object **where, struct object *fresh, uint32_t how)
{
	struct object *old;

	object_init(fresh);
	if (how % 3 == 0) {
		counted_publish(where, fresh, counted);
	} else if (how % 3 == 1) {
		replace_loaded(where, fresh);
	} else {
		old = counted_exchange(where, fresh);
		if (old)
			counted_put(&old->counted);
	}
}

static void *updater_main(void *unused)
{
	uint32_t i;

	while ((i = quiesce_fetch_add_relaxed(&nr_used, 1u)) < NR_OBJECTS)
		replace(&pointer[i % NR_POINTERS], &pool[i], i / NR_POINTERS);
	return unused;
}

static void many_threads_keep_what_others_replace(void **state)
{
	pthread_t thread[NR_READERS + NR_UPDATERS];

	(void)state;
	for (int i = 0; i < NR_READERS + NR_UPDATERS; i++)
		thread_must(pthread_create(&thread[i], NULL, i < NR_READERS ? reader_main : updater_main, NULL));
	threads_end(thread, NR_READERS + NR_UPDATERS);
	for (int i = 0; i < NR_POINTERS; i++)
		counted_publish(&pointer[i], NULL, counted);
	assert_int_equal(quiesce_shutdown(0), 0);
	assert_int_equal(nr_wrong, 0);
	assert_true(nr_promoted >= NR_READERS * ENOUGH && nr_reads > nr_promoted);
	for (int i = 0; i < NR_OBJECTS; i++)
		assert_int_equal(pool[i].released, 1);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(the_last_put_releases_once),
		TEST(an_object_without_references_is_not_revived),
		TEST(a_reference_keeps_what_a_slot_no_longer_protects),
		TEST(a_load_takes_a_reference),
		TEST(a_load_leaves_no_slot_behind),
		TEST(publish_and_exchange_pass_references_on),
		TEST(a_compare_and_exchange_that_fails_moves_nothing),
		TEST(the_place_of_the_count_does_not_matter),
		TEST(signal_handlers_may_load),
		TEST(long_chains_are_released_without_recursion),
		TEST(without_slots_a_load_works_all_the_same),
		TEST(one_put_too_many_is_reported),
		TEST(a_get_without_reference_is_reported),
		TEST(a_count_does_not_wrap),
		TEST(a_pointer_without_reference_is_reported),
		TEST(many_threads_keep_what_others_replace),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
