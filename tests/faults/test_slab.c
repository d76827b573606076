/* SPDX-License-Identifier: MIT */
/* test_slab.c - object caches across forks by any means, threads that are cancelled, limits of address space, and a shutdown. */
#include "children.h"

#include <quiesce/slab.h>

#include <sys/resource.h>

#define NR_THREADS 4
#define NR 700 /* objects, more than a sheaf has */

struct thing {
	struct rcu_head rcu;
	uint64_t stamp;
};

static struct kmem_cache *cache;
static int stop;

static uint64_t in_use(void)
{
	struct kmem_cache_stats s;

	kmem_cache_get_stats(cache, &s);
	return s.objects;
}

/* Objects go from slabs to sheaves and back all the time. */
static void use(uint64_t mine)
{
	struct thing *t[NR];

	for (int i = 0; i < NR; i++) {
		t[i] = kmem_cache_alloc(cache);
		if (!t[i])
			abort();
		t[i]->stamp = mine + (uint64_t)i;
	}
	for (int i = 0; i < NR; i++) {
		if (t[i]->stamp != mine + (uint64_t)i)
			abort();
		kmem_cache_free(cache, t[i]);
	}
}

static void *churn(void *arg)
{
	uint64_t mine = (uint64_t)(uintptr_t)&mine;

	(void)arg;
	while (!flag_get(&stop)) {
		use(mine);
		mine += NR;
	}
	return NULL;
}

static void *churn_for_ever(void *arg)
{
	(void)arg;
	for (;;) {
		use(7);
		pthread_testcancel();
	}
	return NULL;
}

/* The lists that a child has inherited are whole, whatever the parent's threads were doing. */
static void child_uses_it(void)
{
	pthread_t thread;

	use(1);
	must(pthread_create(&thread, NULL, churn, NULL) == 0);
	kmem_cache_shrink(cache);
	use(2);
	flag_set(&stop);
	pthread_join(thread, NULL);
	kmem_cache_shrink(cache);
	use(3);
}

static void grandchild_uses_it(void)
{
	must(exited_with(status_of_child(raw_clone, child_uses_it), 0));
	child_uses_it();
}

static void beside_forks(pid_t (*make)(void), int nr)
{
	pthread_t thread[NR_THREADS];

	stop = 0;
	threads_begin(thread, NR_THREADS, churn, NULL);
	for (int i = 0; i < nr; i++) {
		assert_int_equal(status_of_child(make, i % 8 ? child_uses_it : grandchild_uses_it), 0);
		if (i % 4 == 0)
			kmem_cache_shrink(cache);
	}
	flag_set(&stop);
	threads_end(thread, NR_THREADS);
	assert_int_equal(in_use(), 0);
}

static void children_of_fork_have_whole_caches(void **state)
{
	(void)state;
	beside_forks(fork, 60);
}

static void children_without_handlers_have_whole_caches(void **state)
{
	(void)state;
	beside_forks(raw_clone, 150);
}

static void *shrink(void *arg)
{
	(void)arg;
	while (!flag_get(&stop)) {
		use((uint64_t)(uintptr_t)&stop);
		kmem_cache_shrink(cache);
	}
	return NULL;
}

static void child_shrinks_it(void)
{
	kmem_cache_shrink(cache);
	use(1);
	kmem_cache_shrink(cache);
}

/* A thread of the parent may be in the middle of a shrink. */
static void children_beside_shrinks_have_whole_caches(void **state)
{
	pthread_t thread;

	(void)state;
	stop = 0;
	threads_begin(&thread, 1, shrink, NULL);
	for (int i = 0; i < 600; i++) {
		usleep((unsigned int)i % 50);
		assert_int_equal(status_of_child(raw_clone, child_shrinks_it), 0);
	}
	flag_set(&stop);
	threads_end(&thread, 1);
	assert_int_equal(in_use(), 0);
}

static void a_child_has_the_objects_of_its_parent(void **state)
{
	struct thing *t = kmem_cache_alloc(cache);
	pid_t pid;
	int status;

	(void)state;
	t->stamp = 99;
	pid = fork();
	if (pid == 0) {
		must(in_use() == 1 && t->stamp == 99);
		kfree_rcu(t, rcu);
		rcu_barrier();
		must(in_use() == 0);
		kmem_cache_destroy(cache);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	kmem_cache_free(cache, t);
}

static void cancelled_threads_leave_whole_caches(void **state)
{
	(void)state;
	for (int i = 0; i < 50; i++) {
		pthread_t thread[NR_THREADS];

		threads_begin(thread, NR_THREADS, churn_for_ever, NULL);
		usleep(500);
		for (int k = 0; k < NR_THREADS; k++)
			pthread_cancel(thread[k]);
		threads_end(thread, NR_THREADS);
	}
	assert_int_equal(in_use(), 0);
	use(1);
}

static void caches_outlive_a_shutdown(void **state)
{
	(void)state;
	for (int i = 0; i < 5; i++) {
		struct thing *t = kmem_cache_alloc(cache);

		kfree_rcu(t, rcu);
		assert_int_equal(quiesce_shutdown(0), 0);
		assert_int_equal(in_use(), 0);
		use(1);
	}
}

/* ---- limits of address space ---- */

static void limit_to(size_t more)
{
	size_t bytes = (size_t)address_space() * (size_t)sysconf(_SC_PAGESIZE) + more;
	struct rlimit limit = { bytes, bytes };

	must(setrlimit(RLIMIT_AS, &limit) == 0);
}

static void makes_caches_until_one_fails(void)
{
	struct kmem_cache *made[2000];
	int nr = 0;

	limit_to(8 << 20);
	errno = 0;
	while (nr < 2000 && (made[nr] = kmem_cache_create("one of many", 64, 0, 0, NULL))) {
		void *object = kmem_cache_alloc(made[nr]);

		if (object)
			kmem_cache_free(made[nr], object);
		nr++;
	}
	must(nr == 2000 || errno == ENOMEM);
	must(nr > 0);
	while (nr)
		kmem_cache_destroy(made[--nr]);
}

static void allocates_until_it_fails(void)
{
	void **row = calloc(100000, sizeof *row);
	int nr = 0;

	must(row);
	limit_to(4 << 20);
	while (nr < 100000 && (row[nr] = kmem_cache_alloc(cache)))
		nr++;
	must(nr > 10000 && nr < 100000);
	for (int i = 0; i < nr; i++)
		kmem_cache_free(cache, row[i]);
	must(in_use() == 0);
	use(1);
}

static void limits_of_address_space_are_failures(void **state)
{
	(void)state;
	in_good_child(makes_caches_until_one_fails);
	cache = kmem_cache_create("large", 256, 0, 0, NULL);
	in_good_child(allocates_until_it_fails);
	kmem_cache_destroy(cache);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(children_of_fork_have_whole_caches),
		cmocka_unit_test(children_without_handlers_have_whole_caches),
		cmocka_unit_test(children_beside_shrinks_have_whole_caches),
		cmocka_unit_test(a_child_has_the_objects_of_its_parent),
		cmocka_unit_test(cancelled_threads_leave_whole_caches),
		cmocka_unit_test(caches_outlive_a_shutdown),
		cmocka_unit_test(limits_of_address_space_are_failures),
	};

	cache = KMEM_CACHE(thing, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
