/* SPDX-License-Identifier: MIT */
/* test_kfree.c - objects that are freed without a callback: the right address, once, after the readers.
 *
 * This program has its own free(), which the library calls too, and watches one address.
 */
#include "testing.h"

#include <stdbool.h>
#include <sys/wait.h>

extern void __libc_free(void *p);

static void *watched;
static int nr_freed;
static __thread int frees_slowly; /* this thread waits in free() until go_on */
static int is_freeing, go_on;     /* set by that thread in free(); set by the test to let it return */

/* Objects of this array count how often they are freed. */
enum { NR_COUNTED = 2048, NR_MANY = 40000 };
static struct counted {
	struct rcu_head rcu;
	int nr_freed;
} counted[NR_COUNTED];
static __thread int freed_here; /* number of these that this thread has freed */

static bool count_freed(void *p)
{
	uintptr_t at = (uintptr_t)p - (uintptr_t)counted;

	if (at >= sizeof counted)
		return false;
	count_up(&counted[at / sizeof *counted].nr_freed);
	freed_here++;
	return true;
}

void free(void *p)
{
	if (count_freed(p))
		return;
	if (p && frees_slowly && p == quiesce_load_relaxed(&watched)) { /* Relaxed: set before. */
		flag_set(&is_freeing);
		wait_until(flag_get(&go_on));
	}
	if (p && p == quiesce_load_relaxed(&watched)) { /* Relaxed: set before any thread frees the address. */
		quiesce_store_relaxed(&watched, NULL);
		count_up(&nr_freed);
	}
	__libc_free(p);
}

static void free_object(struct rcu_head *head)
{
	free(head);
}

static void watch(void *p)
{
	assert_non_null(p);
	quiesce_store_relaxed(&nr_freed, 0);
	quiesce_store_relaxed(&watched, p);
}

struct first {
	struct rcu_head rcu;
	char payload[100];
};

struct inner {
	char payload[1000];
	struct rcu_head rcu;
};

struct far {
	char payload[4080];
	struct rcu_head rcu;
};

/* The worker sleeps for the reader, so the grace period has begun and not ended. */
#define freed_after_readers(object, free_it)                        \
	do {                                                        \
		uint64_t sleeps = stats_now().sleeps;               \
		struct held h;                                      \
                                                                    \
		watch(object);                                      \
		held_begin(&h, NULL);                               \
		free_it;                                            \
		wait_until(stats_now().sleeps > sleeps);            \
		assert_int_equal(flag_get(&nr_freed), 0);           \
		held_end(&h);                                       \
		rcu_barrier();                                      \
		assert_int_equal(flag_get(&nr_freed), 1);           \
	} while (0)

static void the_head_may_be_first(void **state)
{
	struct first *o = malloc(sizeof *o);

	(void)state;
	freed_after_readers(o, kfree_rcu(o, rcu));
}

static void the_head_may_be_inside(void **state)
{
	struct inner *o = malloc(sizeof *o);

	(void)state;
	freed_after_readers(o, kfree_rcu(o, rcu));
}

static void the_head_may_be_far_inside(void **state)
{
	struct far *o = malloc(sizeof *o);

	(void)state;
	freed_after_readers(o, kfree_rcu(o, rcu));
}

struct outer {
	long payload[7];
	struct {
		int kind;
		struct inner node;
	} base;
};

static void the_head_may_be_in_a_member(void **state)
{
	struct outer *o = malloc(sizeof *o);

	(void)state;
	freed_after_readers(o, kfree_rcu(o, base.node.rcu));
}

/* As a generic container does, which knows the head and where it is. */
static void free_generic(struct rcu_head *head, size_t offset)
{
	kfree_rcu_head(head, offset, 500);
}

static void the_type_need_not_be_known(void **state)
{
	struct outer *o = malloc(sizeof *o);
	struct first *first = malloc(sizeof *first);

	(void)state;
	freed_after_readers(o, free_generic(&o->base.node.rcu, offsetof(struct outer, base.node.rcu)));
	freed_after_readers(first, free_generic(&first->rcu, 0));
	free_generic(NULL, 8);
}

static void sizes_are_those_of_the_caller(void **state)
{
	struct outer *o = malloc(sizeof *o);
	struct held h;

	(void)state;
	rcu_barrier();
	held_begin(&h, NULL);
	free_generic(&o->base.node.rcu, offsetof(struct outer, base.node.rcu));
	assert_int_equal(stats_now().garbage_bytes, 500);
	held_end(&h);
	rcu_barrier();
	wait_until(stats_now().garbage_bytes == 0);
}

static void no_head_is_needed_to_sleep(void **state)
{
	long *o = malloc(sizeof *o);

	(void)state;
	freed_after_readers(o, kfree_rcu_mightsleep(o));
}

static void sizes_are_those_of_the_objects(void **state)
{
	struct inner *a = malloc(sizeof *a);
	struct first *b = malloc(sizeof *b);
	struct held h;

	(void)state;
	rcu_barrier();
	held_begin(&h, NULL);
	kfree_rcu(a, rcu);
	kfree_rcu_mightsleep(b);
	assert_int_equal(stats_now().garbage_bytes, sizeof *a + sizeof *b);
	held_end(&h);
	rcu_barrier();
	wait_until(stats_now().garbage_bytes == 0); /* the sum falls a moment after the last free() */
}

/* Free more objects than a queue holds. */
static void many_are_freed_from_a_section(void **state)
{
	enum { N = 30000 };

	(void)state;
	rcu_read_lock();
	for (int i = 0; i < N; i++) {
		struct inner *o = malloc(sizeof *o);

		if (i == N - 1)
			watch(o);
		kfree_rcu(o, rcu);
	}
	assert_int_equal(flag_get(&nr_freed), 0);
	rcu_read_unlock();
	rcu_barrier();
	assert_int_equal(flag_get(&nr_freed), 1);
}

/* ---- a barrier waits for a free() that an owner has begun ---- */

/* The thread queues callbacks, which makes it check its queue, until it finds that its object is ready or the worker has freed it. */
static void *retires_and_frees(void *unused)
{
	struct first *o;

	(void)unused;
	do {
		o = malloc(sizeof *o);
		watch(o);
		kfree_rcu(o, rcu);
		frees_slowly = 1;
		while (!flag_get(&nr_freed))
			call_rcu(malloc(sizeof(struct rcu_head)), free_object);
		frees_slowly = 0;
	} while (!flag_get(&is_freeing));
	return NULL;
}

static int waited;

static void *waits_for_all(void *wait)
{
	void (*call)(void);

	memcpy(&call, wait, sizeof call);
	call();
	flag_set(&waited);
	return NULL;
}

static void is_waited_for_by(void (*call)(void))
{
	pthread_t owner, waiter;

	is_freeing = go_on = waited = 0;
	thread_must(pthread_create(&owner, NULL, retires_and_frees, NULL));
	wait_until(flag_get(&is_freeing));
	rest_ms(20); /* the worker has visited the owner's queue meanwhile */
	thread_must(pthread_create(&waiter, NULL, waits_for_all, &call));
	rest_ms(20);
	assert_int_equal(flag_get(&waited), 0);
	flag_set(&go_on);
	pthread_join(waiter, NULL);
	pthread_join(owner, NULL);
	rcu_barrier();
}

static void call_barrier(void)
{
	rcu_barrier();
}

static void call_shutdown(void)
{
	assert_int_equal(quiesce_shutdown(0), 0);
}

static void a_barrier_waits_for_what_its_owner_is_freeing(void **state)
{
	(void)state;
	is_waited_for_by(call_barrier);
}

static void a_shutdown_waits_for_what_its_owner_is_freeing(void **state)
{
	(void)state;
	is_waited_for_by(call_shutdown);
}

/* ---- the pace ---- */

static int nr_counted_freed(void)
{
	int nr = 0;

	for (int i = 0; i < NR_COUNTED; i++) {
		int n = flag_get(&counted[i].nr_freed);

		assert_true(n <= 1);
		nr += n;
	}
	return nr;
}

static void counted_begin(void)
{
	rcu_barrier();
	for (int i = 0; i < NR_COUNTED; i++)
		counted[i].nr_freed = 0;
	freed_here = 0;
}

/* Retire counted objects from @first to before @end; return in how many calls exactly one object was freed. */
static int retire_counted(int first, int end)
{
	int nr = 0;

	for (int i = first; i < end; i++) {
		int before = freed_here;

		kfree_rcu(&counted[i], rcu);
		assert_true(freed_here - before <= 4);
		nr += freed_here - before == 1;
	}
	return nr;
}

/* Retire half of the objects; from then on the worker has 10 ms until it frees what is ready itself. */
static void make_half_ready(void)
{
	uint64_t before;

	counted_begin();
	before = stats_now().grace_periods;
	retire_counted(0, NR_COUNTED / 2);
	wait_until(stats_now().grace_periods > before);
	rest_ms(1);
}

static void one_is_freed_for_each_one_retired(void **state)
{
	enum { N = 500 };
	int first, nr;

	(void)state;
	do {
		make_half_ready();
		/* The owner checks in one of several calls whether objects are ready. */
		for (first = NR_COUNTED / 2; first < NR_COUNTED - N && !retire_counted(first, first + 1); first++)
			;
		nr = retire_counted(first + 1, first + N);
	} while (nr < N - 1); /* else the worker was late, or this thread was */
	rcu_barrier();
	assert_int_equal(nr_counted_freed(), first + N);
}

static void what_an_owner_leaves_is_freed(void **state)
{
	(void)state;
	make_half_ready();
	freed_here = 0;
	retire_counted(NR_COUNTED / 2, NR_COUNTED / 2 + 10);
	wait_until(nr_counted_freed() == NR_COUNTED / 2 + 10);
	assert_true(freed_here <= 40);
}

static void a_child_frees_each_once(void **state)
{
	int status;
	pid_t child;

	(void)state;
	make_half_ready();
	retire_counted(NR_COUNTED / 2, NR_COUNTED - 10);
	child = fork();
	if (!child) {
		retire_counted(NR_COUNTED - 10, NR_COUNTED);
		rcu_barrier();
		_exit(nr_counted_freed() != NR_COUNTED);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	rcu_barrier();
	assert_int_equal(nr_counted_freed(), NR_COUNTED - 10);
}

/* ---- without the worker ---- */

static int is_in_callback, may_return;

static void holds_the_worker(struct rcu_head *head)
{
	(void)head;
	flag_set(&is_in_callback);
	wait_until(flag_get(&may_return));
}

/* The worker makes no pass, so what is freed was ready by the owner's own polls. */
static void an_owner_polls_beside_a_late_worker(void **state)
{
	struct rcu_head head;
	uint64_t before, run;

	(void)state;
	rcu_barrier();
	is_in_callback = may_return = 0;
	call_rcu(&head, holds_the_worker);
	wait_until(flag_get(&is_in_callback));
	before = stats_now().callbacks_run;
	for (int i = 0; i < NR_MANY; i++) {
		struct first *o = malloc(sizeof *o);

		kfree_rcu(o, rcu);
	}
	run = stats_now().callbacks_run - before;
	flag_set(&may_return);
	assert_true(run > NR_MANY / 4);
	rcu_barrier();
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(the_head_may_be_first),
		TEST(the_head_may_be_inside),
		TEST(the_head_may_be_far_inside),
		TEST(the_head_may_be_in_a_member),
		TEST(the_type_need_not_be_known),
		TEST(sizes_are_those_of_the_caller),
		TEST(no_head_is_needed_to_sleep),
		TEST(sizes_are_those_of_the_objects),
		TEST(many_are_freed_from_a_section),
		TEST(a_barrier_waits_for_what_its_owner_is_freeing),
		TEST(a_shutdown_waits_for_what_its_owner_is_freeing),
		TEST(one_is_freed_for_each_one_retired),
		TEST(what_an_owner_leaves_is_freed),
		TEST(a_child_frees_each_once),
		TEST(an_owner_polls_beside_a_late_worker),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
