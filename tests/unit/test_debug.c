/* SPDX-License-Identifier: MIT */
/* test_debug.c - reports of debug builds about sections, slots and the end of the process. */
#define _GNU_SOURCE
#include "misuses.h"

#include <dlfcn.h>
#include <quiesce/ds/hashmap.h>
#include <quiesce/ds/hashtable.h>
#include <quiesce/hazptr.h>
#include <quiesce/percpu_rwsem.h>
#include <quiesce/srcu.h>

#include "release_build.h"

#if !defined(QUIESCE_DEBUG)
#error "is about debug builds"
#endif

struct object {
	struct hazptr_head hazptr;
	uint64_t key;
};
HASHTABLE_TYPE(object, struct object, key);

static struct hashtable table = HASHTABLE_INIT(&object_type);
static struct hashmap map = HASHMAP_INIT;
DEFINE_STATIC_SRCU(domain);
DEFINE_STATIC_PERCPU_RWSEM(sem);
static struct object one = { .key = 7 };
static struct object *shared = &one;

/* ---- outside of a section ---- */

static __attribute__((noinline)) void fetch(void)
{
	assert_ptr_equal(rcu_dereference(shared), &one);
}

/* Check that addr2line finds the reported place in @fn. */
static void last_is_in(void (*fn)(void))
{
	const char *at = strstr(last_text, "+0x");
	uintptr_t offset = at ? strtoul(at + 1, NULL, 16) : 0, address = (uintptr_t)fn;
	Dl_info module;

	assert_true(dladdr((void *)address, &module));
	/* A program that is not relocated has its addresses as they are. */
	if (offset - (address - (uintptr_t)module.dli_fbase) > 200 && offset - address > 200)
		fail_msg("%#lx is not in the function at %#lx, of %#lx", (long)offset, (long)address, (long)module.dli_fbase);
}

static void fetch_otherwise(void)
{
	bool locked = true;

	assert_ptr_equal(rcu_dereference_raw(shared), &one);
	assert_ptr_equal(rcu_dereference_check(shared, locked), &one);
	assert_ptr_equal(rcu_dereference_protected(shared, locked), &one);
	assert_ptr_equal(rcu_access_pointer(shared), &one);
	assert_ptr_equal(srcu_dereference(shared, &domain), &one);
}

static void fetch_in_section(void)
{
	rcu_read_lock();
	fetch();
	rcu_read_unlock();
	release_lock();
	fetch();
	release_unlock();
}

static void a_pointer_is_fetched_in_a_section(void **state)
{
	(void)state;
	reported(fetch, QUIESCE_MISUSE_NOT_HELD, "rcu_dereference(shared) at ");
	last_says("outside of a read-side section");
	last_has_places(1);
	last_is_in(fetch);
	fatal(fetch, "rcu_dereference(shared)");
	accepted(fetch_otherwise);
	accepted(fetch_in_section);
}

static __attribute__((noinline)) void unlock_section(void)
{
	rcu_read_unlock();
	assert_false(rcu_read_lock_held()); /* this check also prevents a tail call above, which would have another place */
}

static void an_unlock_too_many_has_its_place(void **state)
{
	(void)state;
	reported(unlock_section, QUIESCE_MISUSE_UNBALANCED_UNLOCK, "rcu_read_unlock() at ");
	last_is_in(unlock_section);
	fatal(unlock_section, "without rcu_read_lock()");
}

static void lookup(void)
{
	assert_ptr_equal(hashtable_lookup(&table, &object_type, &one.key), &one);
}

static void lookup_many(void)
{
	const void *key = &one.key;
	void *found;

	assert_int_equal(hashtable_lookup_many(&table, &object_type, &key, 1, &found), 1);
	assert_ptr_equal(found, &one);
}

static void lookup_by_type(void)
{
	assert_ptr_equal(object_lookup(&table, &one.key), &one);
}

static void lookup_in_map(void)
{
	assert_int_equal(hashmap_lookup(&map, 7), 70);
}

static void lookup_many_in_map(void)
{
	uint64_t key = 7, value;

	assert_int_equal(hashmap_lookup_many(&map, &key, 1, &value), 1);
	assert_int_equal(value, 70);
}

static void go_over(void)
{
	struct hashtable_iter it;
	struct object *object;

	hashtable_for_each(object, &it, &table)
		assert_ptr_equal(object, &one);
}

static void go_over_matches(void)
{
	struct hashtable_iter it;
	struct object *object;

	hashtable_for_each_match(object, &it, &table, &one.key)
		assert_ptr_equal(object, &one);
}

static void go_over_map(void)
{
	struct hashmap_iter it;
	uint64_t key, value;

	hashmap_for_each(key, value, &it, &map)
		assert_int_equal(value, 10 * key);
}

static const struct {
	void (*fn)(void);
	const char *call;
} lookups[] = {
	{ lookup, "hashtable_lookup() at " },
	{ lookup_many, "hashtable_lookup_many() at " },
	{ lookup_by_type, "object_lookup() at " },
	{ lookup_in_map, "hashmap_lookup() at " },
	{ lookup_many_in_map, "hashmap_lookup_many() at " },
	{ go_over, "hashtable_for_each() at " },
	{ go_over_matches, "hashtable_for_each_match() at " },
	{ go_over_map, "hashmap_for_each() at " },
};

static void all_in_a_section(void)
{
	rcu_read_lock();
	for (size_t i = 0; i < sizeof lookups / sizeof lookups[0]; i++)
		lookups[i].fn();
	rcu_read_unlock();
}

/* Each of these calls opens a section of its own. */
static void without_a_section(void)
{
	hazptr_t *slot = hazptr_alloc(NULL);
	struct hashtable_walk walk;
	struct object *object;
	void *existing;

	assert_ptr_equal(hashtable_lookup_hazptr(&table, &object_type, &one.key, slot, offsetof(struct object, hazptr)), &one);
	hazptr_free(NULL, slot);
	for (hashtable_walk_enter(&table, &walk); hashtable_walk_start(&walk); hashtable_walk_stop(&walk))
		while ((object = hashtable_walk_next(&walk)))
			assert_ptr_equal(object, &one);
	assert_int_equal(hashtable_insert_unique(&table, &one, &existing), -EEXIST);
	assert_int_equal(hashmap_set(&map, 7, 70, NULL), 0);
}

static void lookups_need_a_section(void **state)
{
	(void)state;
	assert_int_equal(hashtable_insert(&table, &one), 0);
	assert_int_equal(hashmap_set(&map, 7, 70, NULL), 0);
	for (size_t i = 0; i < sizeof lookups / sizeof lookups[0]; i++) {
		reported(lookups[i].fn, QUIESCE_MISUSE_NOT_HELD, lookups[i].call);
		last_has_places(1);
	}
	accepted(all_in_a_section);
	accepted(without_a_section);
	hashtable_destroy(&table, NULL, NULL);
	hashmap_destroy(&map);
}

/* ---- slots ---- */

static hazptr_t *slot;

static void free_slot(void)
{
	hazptr_free(NULL, slot);
}

static void protect(void)
{
	assert_null(hazptr_protect(slot, &shared));
}

static void tryprotect(void)
{
	assert_null(hazptr_tryprotect(slot, &shared));
}

static void protect_field(void)
{
	assert_null(hazptr_protect(slot, &shared, hazptr));
}

static void protect_masked(void)
{
	assert_null(hazptr_protect_masked(slot, &shared, 1));
}

static void set(void)
{
	hazptr_set(slot, &one);
}

static void clear(void)
{
	hazptr_clear(slot);
}

static void protect_batch(void)
{
	void *place = &one, **where = &place, *ptr = &one;

	hazptr_protect_batch(&slot, &where, &ptr, 1);
	assert_null(ptr);
}

static void lookup_hazptr(void)
{
	assert_null(hashtable_lookup_hazptr(&table, &object_type, &one.key, slot, offsetof(struct object, hazptr)));
}

static const struct {
	void (*fn)(void);
	const char *call;
} uses[] = {
	{ protect, "hazptr_protect() at " },
	{ tryprotect, "hazptr_tryprotect() at " },
	{ protect_field, "hazptr_protect() at " },
	{ protect_masked, "hazptr_protect() at " },
	{ protect_batch, "hazptr_protect_batch() at " },
	{ set, "hazptr_set() at " },
	{ clear, "hazptr_clear() at " },
	{ lookup_hazptr, "hashtable_lookup_hazptr() at " },
};

/* The misuse is found in each kind of slot: the thread's own, one from the pool, a context's. */
static void is_free_now(hazptr_t *one_slot)
{
	slot = one_slot;
	reported(free_slot, QUIESCE_MISUSE_UNBALANCED_UNLOCK, "hazptr_free() at ");
	last_says("which is free already");
	last_has_places(1);
	for (size_t i = 0; i < sizeof uses / sizeof uses[0]; i++) {
		reported(uses[i].fn, QUIESCE_MISUSE_NOT_HELD, uses[i].call);
		last_says("which is free: hazptr_alloc() comes first");
		last_has_places(1);
		assert_true(slot->value == QUIESCE_HAZPTR_FREE); /* the call had no effect */
	}
}

static void a_free_slot_is_not_used(void **state)
{
	struct hazptr_context ctx;
	hazptr_t *own, *pooled, *of_ctx;

	(void)state;
	own = hazptr_alloc(NULL);
	hazptr_free(NULL, own);
	is_free_now(own);
	pooled = hazptr_alloc_detached();
	hazptr_free(NULL, pooled);
	is_free_now(pooled);
	assert_int_equal(init_hazptr_context(&ctx), 0);
	of_ctx = hazptr_alloc(&ctx);
	hazptr_free(&ctx, of_ctx);
	is_free_now(of_ctx);
	cleanup_hazptr_context(&ctx);
	slot = own;
	fatal(protect, "hazptr_protect()");
	fatal(free_slot, "hazptr_free()");
}

static void no_slot_is_not_used(void **state)
{
	(void)state;
	slot = NULL;
	accepted(free_slot); /* as documented */
	for (size_t i = 0; i < sizeof uses / sizeof uses[0]; i++) {
		reported(uses[i].fn, QUIESCE_MISUSE_NULL, uses[i].call);
		last_says("with a NULL slot");
	}
}

static void use_and_free(void *unused)
{
	(void)unused;
	assert_ptr_equal(hazptr_protect(slot, &shared), shared);
	hazptr_free(NULL, slot);
}

static void *in_thread(void *unused)
{
	use_and_free(unused);
	return NULL;
}

/* Slots are handed over, allocated or freed by a part of the program that is a release build. */
static void slots_that_are_taken(void)
{
	pthread_t thread;

	slot = hazptr_alloc(NULL);
	thread_must(pthread_create(&thread, NULL, in_thread, NULL));
	pthread_join(thread, NULL);
	slot = release_alloc();
	use_and_free(NULL);
	slot = hazptr_alloc(NULL);
	release_free(slot);
	slot = hazptr_alloc(NULL);
	use_and_free(NULL);
}

static void taken_slots_are_used(void **state)
{
	(void)state;
	accepted(slots_that_are_taken);
}

/* ---- waits for one's own slot ---- */

static void nothing(struct hazptr_head *head)
{
	(void)head;
}

static void wait_for_own(void)
{
	synchronize_hazptr(&one);
}

static void barrier_for_own(void)
{
	hazptr_barrier();
}

static void a_wait_for_ones_own_slot_is_reported(void **state)
{
	(void)state;
	slot = hazptr_alloc(NULL);
	assert_ptr_equal(hazptr_protect(slot, &shared), &one);
	reported(wait_for_own, QUIESCE_MISUSE_WAIT_IN_READER, "by the thread that protects it in slot");
	call_hazptr(&one.hazptr, nothing);
	reported(barrier_for_own, QUIESCE_MISUSE_WAIT_IN_READER, "hazptr_clear() comes first");
	hazptr_clear(slot);
	accepted(wait_for_own);
	accepted(barrier_for_own);
	hazptr_free(NULL, slot);
}

/* ---- SRCU ---- */

static int idx;

static void unlock(void)
{
	srcu_read_unlock(&domain, idx);
}

static void unlock_other(void)
{
	srcu_read_unlock(&domain, !idx);
}

static void up(void)
{
	srcu_up_read(&domain, idx);
}

static void a_section_of_a_domain_ends_once(void **state)
{
	(void)state;
	idx = srcu_read_lock(&domain);
	reported(unlock_other, QUIESCE_MISUSE_UNBALANCED_UNLOCK, "is open, but one with the other");
	last_has_places(1);
	accepted(unlock);
	reported(unlock, QUIESCE_MISUSE_UNBALANCED_UNLOCK, "srcu_read_unlock(domain, ");
	last_says("nor one with the other");
	reported(up, QUIESCE_MISUSE_UNBALANCED_UNLOCK, "srcu_up_read(domain, ");
	idx = srcu_down_read(&domain);
	accepted(up);
	fatal(unlock, "srcu_read_unlock(domain, ");
	synchronize_srcu(&domain); /* the counts are right */
}

static void sections_of_release_builds(void)
{
	idx = release_srcu_lock(&domain);
	unlock();
	idx = srcu_read_lock(&domain);
	release_srcu_unlock(&domain, idx);
	synchronize_srcu(&domain);
	percpu_down_read(&sem);
	release_up_read(&sem);
	percpu_down_write(&sem);
	percpu_up_write(&sem);
}

static void release_builds_end_sections_too(void **state)
{
	(void)state;
	accepted(sections_of_release_builds);
}

/* ---- the end of the process ---- */

static int ends;

/* LeakSanitizer would complain of the threads that a forked child does not have. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
	return ends;
}

/* End by exit(), not by _exit(), so that destructors run. */
static void main_ends(void)
{
	ends = 1;
	exit(0);
}

static void in_section(void)
{
	rcu_read_lock();
	main_ends();
}

static void with_all(void)
{
	hazptr_t *batch[5];

	assert_true(hazptr_alloc_batch(NULL, batch, 5));
	assert_non_null(hazptr_alloc_array(NULL, 2));
	for (int i = 0; i < 4; i++)
		hazptr_alloc(NULL);
	percpu_down_read(&sem);
	srcu_read_lock(&domain);
	main_ends();
}

static void with_nothing(void)
{
	hazptr_t *taken = hazptr_alloc(NULL);

	rcu_read_lock();
	rcu_read_unlock();
	hazptr_free(NULL, taken);
	main_ends();
}

static void in_section_of_release_build(void)
{
	release_free(hazptr_alloc(NULL));
	release_lock();
	main_ends();
}

static void says_and_ends(void (*fn)(void), int lines, const char *word)
{
	struct outcome o;

	in_child(fn, &o);
	assert_true(exited_with(o.status, 0));
	if (count_lines(o.text) != lines || !strstr(o.text, word))
		fail_msg("\"%s\" has not %d lines with \"%s\"", o.text, lines, word);
	alarm(watchdog_seconds());
}

static void a_process_that_ends_in_a_section(void **state)
{
	(void)state;
	says_and_ends(in_section, 1, "inside an RCU read-side section that began near test_debug+0x");
	says_and_ends(with_all, 3, "holds 11 slots of hazptr_alloc(); one is 0x");
	says_and_ends(with_all, 3, "a percpu_rw_semaphore for reading");
	says_and_ends(with_all, 3, "a section of a domain of SRCU");
	says_and_ends(with_nothing, 0, "");
	says_and_ends(in_section_of_release_build, 0, "");
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(a_pointer_is_fetched_in_a_section),
		TEST(an_unlock_too_many_has_its_place),
		TEST(lookups_need_a_section),
		TEST(a_free_slot_is_not_used),
		TEST(no_slot_is_not_used),
		TEST(taken_slots_are_used),
		TEST(a_wait_for_ones_own_slot_is_reported),
		TEST(a_section_of_a_domain_ends_once),
		TEST(release_builds_end_sections_too),
		TEST(a_process_that_ends_in_a_section),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
