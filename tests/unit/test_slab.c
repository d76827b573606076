/* SPDX-License-Identifier: MIT */
/* test_slab.c - object caches: shapes, reuse, constructors, retired objects, memory that goes back, forks, misuse. */
#include <quiesce/hazptr.h>
#include <quiesce/slab.h>

#include <errno.h>

#include "misuses.h"

#define MANY 20000

static void *objects[MANY];

struct thing {
	struct rcu_head rcu;
	struct hazptr_head hazptr;
	uint64_t stamp;
};

static struct kmem_cache_stats stats_of(const struct kmem_cache *cache)
{
	struct kmem_cache_stats s;

	kmem_cache_get_stats(cache, &s);
	return s;
}

static void alloc_many(struct kmem_cache *cache, int nr)
{
	for (int i = 0; i < nr; i++)
		assert_non_null(objects[i] = kmem_cache_alloc(cache));
}

static void free_many(struct kmem_cache *cache, int nr)
{
	for (int i = 0; i < nr; i++)
		kmem_cache_free(cache, objects[i]);
}

/* ---- shapes ---- */

static void check_shape(size_t size, size_t align, unsigned int flags)
{
	struct kmem_cache *cache = kmem_cache_create("shape", size, align, flags, NULL);
	int nr = size < 4096 ? 1500 : 70;
	size_t wanted = align ? align : 8;

	if (flags & SLAB_HWCACHE_ALIGN && size > 32)
		wanted = wanted > 64 ? wanted : 64;
	assert_non_null(cache);
	assert_int_equal(kmem_cache_size(cache), size);
	alloc_many(cache, nr);
	for (int i = 0; i < nr; i++) {
		assert_int_equal((uintptr_t)objects[i] % wanted, 0);
		memset(objects[i], i & 0xff, size);
	}
	for (int i = 0; i < nr; i++)
		for (size_t k = 0; k < size; k += size > 64 ? 61 : 1)
			assert_int_equal(((unsigned char *)objects[i])[k], i & 0xff);
	assert_int_equal(stats_of(cache).objects, nr);
	free_many(cache, nr);
	assert_int_equal(stats_of(cache).objects, 0);
	kmem_cache_destroy(cache);
}

static void objects_of_any_size_are_aligned_and_apart(void **state)
{
	static const size_t size[] = { 1, 8, 9, 24, 64, 65, 100, 192, 1000, 1024, 4096, 5000, 16384 };

	(void)state;
	for (size_t i = 0; i < sizeof size / sizeof *size; i++) {
		check_shape(size[i], 0, 0);
		check_shape(size[i], 16, SLAB_TYPESAFE_BY_RCU);
		check_shape(size[i], 0, SLAB_HWCACHE_ALIGN);
		check_shape(size[i], 4096, 0);
	}
}

static void no_small_object_is_in_two_lines(void **state)
{
	(void)state;
	for (size_t size = 1; size <= 64; size++) {
		struct kmem_cache *cache = kmem_cache_create("lines", size, 0, SLAB_HWCACHE_ALIGN, NULL);

		alloc_many(cache, 500);
		for (int i = 0; i < 500; i++)
			assert_int_equal((uintptr_t)objects[i] / 64, ((uintptr_t)objects[i] + size - 1) / 64);
		free_many(cache, 500);
		kmem_cache_destroy(cache);
	}
}

static void wrong_shapes_are_refused(void **state)
{
	static const struct {
		size_t size, align;
		unsigned int flags;
	} wrong[] = { { 0, 0, 0 }, { QUIESCE_SLAB_SIZE_MAX + 1, 0, 0 }, { 8, 24, 0 }, { 8, 8192, 0 }, { 8, 0, 4 } };

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		errno = 0;
		assert_null(kmem_cache_create("wrong", wrong[i].size, wrong[i].align, wrong[i].flags, NULL));
		assert_int_equal(errno, EINVAL);
	}
}

/* ---- reuse ---- */

static void the_last_freed_is_the_next_allocated(void **state)
{
	struct kmem_cache *cache = KMEM_CACHE(thing, 0);
	struct thing *t = kmem_cache_alloc(cache);
	int same = 0;

	(void)state;
	for (int i = 0; i < 100; i++) { /* the thread may move to another CPU between */
		struct thing *was = t;

		kmem_cache_free(cache, t);
		t = kmem_cache_alloc(cache);
		same += t == was;
	}
	assert_in_range(same, 50, 100);
	kmem_cache_free(cache, t);
	kmem_cache_free(cache, NULL);
	kmem_cache_destroy(cache);
	kmem_cache_destroy(NULL);
}

static int nr_constructed;

static void construct(void *object)
{
	((struct thing *)object)->stamp = 0x600d;
	nr_constructed++;
}

static void constructors_run_once_for_each_object(void **state)
{
	struct kmem_cache *cache = kmem_cache_create("constructed", sizeof(struct thing), 0, 0, construct);
	int before;

	(void)state;
	nr_constructed = 0;
	alloc_many(cache, 3000);
	before = nr_constructed;
	assert_in_range(before, 3000, 3000 + 65536 / sizeof(struct thing));
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 3000; i++)
			assert_int_equal(((struct thing *)objects[i])->stamp, 0x600d);
		free_many(cache, 3000);
		alloc_many(cache, 3000);
	}
	/* Not one for each allocation; empty slabs may go back to the system, and the thread may move to another CPU. */
	assert_in_range(nr_constructed, before, before + 3 * 3000 - 1);
	free_many(cache, 3000);
	kmem_cache_destroy(cache);
}

static void zalloc_returns_zeroes(void **state)
{
	static const char zeroes[200];
	struct kmem_cache *cache = kmem_cache_create("zeroes", sizeof zeroes, 0, 0, NULL);

	(void)state;
	for (int i = 0; i < 1000; i++) {
		char *object = kmem_cache_zalloc(cache);

		assert_memory_equal(object, zeroes, sizeof zeroes);
		memset(object, 0xee, sizeof zeroes);
		kmem_cache_free(cache, object);
	}
	kmem_cache_destroy(cache);
}

static void rows_are_allocated_and_freed_together(void **state)
{
	struct kmem_cache *cache = KMEM_CACHE(thing, 0), *other = kmem_cache_create("other", 40, 0, 0, NULL);
	static const size_t sizes[] = { 0, 1, 63, 64, 65, 700, 5000 };

	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		size_t nr = sizes[i];

		assert_int_equal(kmem_cache_alloc_bulk(cache, nr, objects), nr);
		assert_int_equal(stats_of(cache).objects, nr);
		for (size_t k = 0; k < nr; k++)
			((struct thing *)objects[k])->stamp = k;
		for (size_t k = 0; k < nr; k++)
			assert_int_equal(((struct thing *)objects[k])->stamp, k);
		kmem_cache_free_bulk(cache, nr, objects);
		assert_int_equal(stats_of(cache).objects, 0);
	}
	for (int i = 0; i < 900; i++)
		assert_non_null(objects[i] = i % 3 == 0 ? malloc(40) : kmem_cache_alloc(i % 3 == 1 ? cache : other));
	kmem_cache_free_bulk(NULL, 900, objects);
	assert_int_equal(stats_of(cache).objects + stats_of(other).objects, 0);
	kmem_cache_destroy(cache);
	kmem_cache_destroy(other);
}

/* Heads of the sheaves of caches that are used in turn are in different sets of the first-level cache. */
static void sheaves_of_many_caches_are_in_different_lines(void **state)
{
	struct kmem_cache *cache[64];
	uint64_t lines = 0;

	(void)state;
	for (int i = 0; i < 64; i++) {
		uint64_t at;

		assert_non_null(cache[i] = kmem_cache_create("one of many", 64, 0, 0, NULL));
		at = 0 - cache[i]->open;
		assert_int_equal(at % 64, 0);
		lines |= 1ull << at / 64 % 64;
	}
	assert_true(lines == ~0ull || !cache[0]->open); /* 0: no sequences are inlined */
	for (int i = 0; i < 64; i++) {
		alloc_many(cache[i], 600); /* more than a sheaf has */
		free_many(cache[i], 600);
		kmem_cache_destroy(cache[i]);
	}
}

/* ---- retired objects ---- */

static void retired_objects_return_to_their_cache(void **state)
{
	struct kmem_cache *cache = KMEM_CACHE(thing, 0);

	(void)state;
	for (int i = 0; i < MANY; i++) {
		struct thing *t = kmem_cache_alloc(cache);

		assert_non_null(t);
		switch (i % 5) {
		case 0: kfree_rcu(t, rcu); break;
		case 1: kfree_hazptr(t, hazptr); break;
		case 2: kfree(t); break;
		case 3: kfree_rcu_mightsleep(t); break;
		default: kmem_cache_free(cache, t); break;
		}
	}
	kfree(malloc(10));
	kfree(NULL);
	rcu_barrier();
	hazptr_barrier();
	assert_int_equal(stats_of(cache).objects, 0);
	kmem_cache_destroy(cache);
}

static void the_end_waits_for_retired_objects(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++) {
		struct kmem_cache *cache = KMEM_CACHE(thing, i & 1 ? SLAB_TYPESAFE_BY_RCU : 0);

		for (int k = 0; k < 500; k++) {
			struct thing *t = kmem_cache_alloc(cache);

			if (k & 1)
				kfree_rcu(t, rcu);
			else
				kfree_hazptr(t, hazptr);
		}
		kmem_cache_destroy(cache);
	}
}

/* ---- memory ---- */

static void memory_goes_back_to_the_system(void **state)
{
	struct kmem_cache *cache = kmem_cache_create("burst", 1024, 0, 0, NULL);
	uint64_t before, most;

	(void)state;
	rcu_barrier(); /* type-safe memory of other tests */
	before = stats_now().slab_bytes;
	for (int round = 0; round < 3; round++) {
		alloc_many(cache, MANY);
		most = stats_now().slab_bytes;
		assert_true(most >= before + (uint64_t)MANY * 1024);
		free_many(cache, MANY);
		assert_in_range(stats_of(cache).slabs, 1, 9 + 64); /* eight and an eighth, and one for each object of the sheaf */
	}
	kmem_cache_shrink(cache);
	assert_int_equal(stats_of(cache).slabs, 0);
	assert_int_equal(stats_of(cache).sheaved, 0);
	assert_int_equal(stats_now().slab_bytes, before);
	alloc_many(cache, 10);
	free_many(cache, 10);
	kmem_cache_destroy(cache);
	assert_int_equal(stats_now().slab_bytes, before);
}

static void await_bytes(uint64_t bytes)
{
	for (int i = 0; i < 5000 && stats_now().slab_bytes > bytes; i++)
		usleep(1000);
	assert_true(stats_now().slab_bytes <= bytes);
}

static void type_safe_memory_stays_while_a_reader_may_load_it(void **state)
{
	uint64_t before;
	struct kmem_cache *cache = kmem_cache_create("type-safe", sizeof(struct thing), 0, SLAB_TYPESAFE_BY_RCU, construct);
	struct held reader;

	(void)state;
	rcu_barrier();
	before = stats_now().slab_bytes;
	alloc_many(cache, MANY);
	held_begin(&reader, NULL);
	free_many(cache, MANY);
	kmem_cache_shrink(cache);
	assert_int_equal(stats_of(cache).slabs, 0);
	kmem_cache_destroy(cache);
	usleep(20000);
	assert_true(stats_now().slab_bytes >= before + MANY * sizeof(struct thing));
	for (int i = 0; i < MANY; i++)
		assert_int_equal(((struct thing *)objects[i])->stamp, 0x600d);
	held_end(&reader);
	rcu_barrier();
	await_bytes(before);
}

/* ---- threads ---- */

#define NR_THREADS 4

static struct kmem_cache *shared;
static void *exchange[64];
static int stop;

/* Each object has the stamp of its holder, which no other thread changes. */
static void *trade(void *arg)
{
	unsigned int seed = (unsigned int)(uintptr_t)&seed;
	uint64_t nr = 0;

	(void)arg;
	while (!flag_get(&stop)) {
		struct thing *t = kmem_cache_alloc(shared);
		uint64_t mine = (uintptr_t)&seed + nr++;

		if (!t)
			abort();
		t->stamp = mine;
		if (nr % 8 == 0)
			sched_yield();
		if (t->stamp != mine)
			abort();
		t = quiesce_xchg(TEST, &exchange[rand_r(&seed) % 64], (void *)t);
		if (t && nr % 16 == 0)
			kfree_rcu(t, rcu);
		else
			kmem_cache_free(shared, t);
	}
	return (void *)(uintptr_t)nr;
}

static void trade_for(unsigned int us, int shrinks)
{
	pthread_t thread[NR_THREADS];

	stop = 0;
	threads_begin(thread, NR_THREADS, trade, NULL);
	for (int i = 0; i < shrinks; i++) {
		usleep(us / (unsigned int)shrinks);
		kmem_cache_shrink(shared);
	}
	if (!shrinks)
		usleep(us);
	flag_set(&stop);
	threads_end(thread, NR_THREADS);
	for (int i = 0; i < 64; i++) {
		kfree(exchange[i]);
		exchange[i] = NULL;
	}
	rcu_barrier();
	assert_int_equal(stats_of(shared).objects, 0);
}

static void no_object_has_two_holders(void **state)
{
	(void)state;
	shared = KMEM_CACHE(thing, 0);
	trade_for(500000, 0);
	trade_for(500000, 100);
	kmem_cache_destroy(shared);
	shared = KMEM_CACHE(thing, SLAB_TYPESAFE_BY_RCU);
	trade_for(500000, 50);
	kmem_cache_destroy(shared);
}

/* ---- forks ---- */

static void use_in_child(void)
{
	for (int i = 0; i < 3000; i++) {
		struct thing *t = kmem_cache_alloc(shared);

		must(t);
		t->stamp = 1;
		objects[i] = t;
	}
	for (int i = 0; i < 3000; i++)
		kmem_cache_free(shared, objects[i]);
	kmem_cache_shrink(shared);
}

static void children_use_the_caches_of_their_parents(void **state)
{
	pthread_t thread[NR_THREADS];

	(void)state;
	shared = KMEM_CACHE(thing, 0);
	stop = 0;
	threads_begin(thread, NR_THREADS, trade, NULL);
	for (int i = 0; i < 20; i++)
		succeeds(use_in_child);
	flag_set(&stop);
	threads_end(thread, NR_THREADS);
	for (int i = 0; i < 64; i++) {
		kfree(exchange[i]);
		exchange[i] = NULL;
	}
	kmem_cache_destroy(shared);
}

/* ---- misuse ---- */

static void destroy_in_use(void)
{
	kmem_cache_destroy(shared);
}

static void free_to_another(void)
{
	kmem_cache_free(shared, objects[0]);
	kmem_cache_shrink(shared);
}

static void free_twice(void)
{
	kmem_cache_free(shared, objects[1]);
	kmem_cache_free(shared, objects[1]);
	kmem_cache_shrink(shared);
}

static void free_inside(void)
{
	kmem_cache_free(shared, (char *)objects[2] + 8);
	kmem_cache_shrink(shared);
}

static struct kmem_cache *no_cache;

static void alloc_of_none(void)
{
	assert_int_equal(kmem_cache_alloc_bulk(no_cache, 1, objects), 0);
}

static void shrink_none(void)
{
	kmem_cache_shrink(no_cache);
}

static void size_of_none(void)
{
	assert_int_equal(kmem_cache_size(no_cache), 0);
}

static void stats_of_none(void)
{
	assert_int_equal(stats_of(no_cache).limit, 0);
}

static void alloc_one_of_none(void)
{
	assert_null(kmem_cache_alloc(no_cache));
}

static void free_one_of_none(void)
{
	kmem_cache_free(no_cache, &no_cache);
}

static void calls_without_a_cache_are_reported(void **state)
{
	(void)state;
	misuse(alloc_of_none, QUIESCE_MISUSE_NULL, "kmem_cache_alloc_bulk() without a cache");
	misuse(shrink_none, QUIESCE_MISUSE_NULL, "kmem_cache_shrink() without a cache");
	misuse(size_of_none, QUIESCE_MISUSE_NULL, "kmem_cache_size() without a cache");
	misuse(stats_of_none, QUIESCE_MISUSE_NULL, "kmem_cache_get_stats() without a cache");
#ifdef QUIESCE_DEBUG
	misuse(alloc_one_of_none, QUIESCE_MISUSE_NULL, "kmem_cache_alloc() without a cache");
	misuse(free_one_of_none, QUIESCE_MISUSE_NULL, "kmem_cache_free() without a cache");
#else
	(void)alloc_one_of_none;
	(void)free_one_of_none;
#endif
}

static void misuse_is_reported(void **state)
{
	struct kmem_cache *other = KMEM_CACHE(thing, 0);

	(void)state;
	shared = kmem_cache_create("shared", 64, 0, 0, NULL);
	objects[0] = kmem_cache_alloc(other);
	objects[1] = kmem_cache_alloc(shared);
	objects[2] = kmem_cache_alloc(shared);
	misuse(destroy_in_use, QUIESCE_MISUSE_IN_USE, "cache shared, 2 of whose");
	misuse(free_to_another, QUIESCE_MISUSE_ARGUMENT, "to the cache shared");
#ifdef QUIESCE_DEBUG
	reported(free_twice, QUIESCE_MISUSE_TWICE, "to the cache shared");
#else
	reported(free_twice, QUIESCE_MISUSE_ARGUMENT, "to the cache shared");
#endif
	reported(free_inside, QUIESCE_MISUSE_ARGUMENT, "to the cache shared");
	kmem_cache_free(shared, objects[2]);
	kmem_cache_free(other, objects[0]);
	kmem_cache_destroy(shared);
	kmem_cache_destroy(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(objects_of_any_size_are_aligned_and_apart),
		cmocka_unit_test(no_small_object_is_in_two_lines),
		cmocka_unit_test(wrong_shapes_are_refused),
		cmocka_unit_test(the_last_freed_is_the_next_allocated),
		cmocka_unit_test(constructors_run_once_for_each_object),
		cmocka_unit_test(zalloc_returns_zeroes),
		cmocka_unit_test(rows_are_allocated_and_freed_together),
		cmocka_unit_test(sheaves_of_many_caches_are_in_different_lines),
		cmocka_unit_test(retired_objects_return_to_their_cache),
		cmocka_unit_test(the_end_waits_for_retired_objects),
		cmocka_unit_test(memory_goes_back_to_the_system),
		cmocka_unit_test(type_safe_memory_stays_while_a_reader_may_load_it),
		cmocka_unit_test(no_object_has_two_holders),
		cmocka_unit_test(children_use_the_caches_of_their_parents),
		cmocka_unit_test(calls_without_a_cache_are_reported),
		cmocka_unit_test(misuse_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
