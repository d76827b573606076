/* SPDX-License-Identifier: MIT */
/* test_hazptr_helper.c - which thread runs callbacks, and at whose cost: call_hazptr() leaves them to the helper, which also
 * reclaims the objects that they retire, and visits no empty queue.
 */
#include "hazptrs.h"

#include <quiesce/srcu.h>

#include <sys/mman.h>
#include <unistd.h>

#define NR 20000
static struct thing object[NR];

/* ---- in whose thread ---- */

static __thread int mine;
static int nr_here, nr_elsewhere;

static void note_where(struct hazptr_head *head)
{
	thing_run(head);
	count_up(mine ? &nr_here : &nr_elsewhere);
}

static void callbacks_run_in_another_thread(void **state)
{
	(void)state;
	memset(object, 0, sizeof object);
	mine = 1;
	for (int i = 0; i < NR; i++)
		call_hazptr(&object[i].hazptr, note_where);
	wait_until(flag_get(&nr_elsewhere) + flag_get(&nr_here) == NR);
	assert_int_equal(nr_here, 0);
	assert_int_equal(things_run(object, NR), NR);
	memset(object, 0, sizeof object);
	for (int i = 0; i < NR; i++)
		call_hazptr_inline(&object[i].hazptr, note_where);
	assert_in_range(nr_here, 1, NR);
	hazptr_barrier();
	assert_int_equal(things_run(object, NR), NR);
}

/* Every third callback may run in this thread, and no other callback does. */
static void both_kinds_mixed(void **state)
{
	(void)state;
	memset(object, 0, sizeof object);
	nr_here = 0;
	mine = 1;
	for (int i = 0; i < NR; i++)
		if (i % 3)
			call_hazptr(&object[i].hazptr, note_where);
		else
			call_hazptr_inline(&object[i].hazptr, thing_run);
	assert_in_range(things_run(object, NR), 1, NR);
	wait_until(things_run(object, NR) == NR);
	assert_int_equal(nr_here, 0);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void run_locked(struct hazptr_head *head)
{
	pthread_mutex_lock(&lock);
	thing_run(head);
	pthread_mutex_unlock(&lock);
}

static void a_retirer_may_hold_a_lock_that_callbacks_take(void **state)
{
	(void)state;
	memset(object, 0, sizeof object);
	pthread_mutex_lock(&lock);
	for (int i = 0; i < NR; i++)
		call_hazptr(&object[i].hazptr, run_locked);
	assert_int_equal(things_run(object, NR), 0);
	pthread_mutex_unlock(&lock);
	hazptr_barrier();
	assert_int_equal(things_run(object, NR), NR);
}

/* ---- readers of RCU, and callbacks of other kinds ---- */

static void nothing(struct rcu_head *unused)
{
	(void)unused;
}

/* A reader of RCU delays no hazptr callback, even while the worker of call_rcu() waits for that reader. */
static void a_reader_of_rcu_keeps_nothing(void **state)
{
	static struct rcu_head head;
	struct held h;
	int unused = 0;

	(void)state;
	memset(object, 0, sizeof object);
	held_begin(&h, &unused);
	call_rcu(&head, nothing);
	for (int i = 0; i < 300; i++) {
		thing_retire(&object[i]);
		short_rest();
	}
	wait_until(things_run(object, NR) == 300);
	held_end(&h);
	rcu_barrier();
}

DEFINE_STATIC_SRCU(domain);
static int nr_hops;

struct hopper {
	struct hazptr_head hazptr;
	struct rcu_head rcu;
	int left;
};

static void hop_hazptr(struct hazptr_head *head);

static void hop_rcu(struct rcu_head *head)
{
	struct hopper *h = (struct hopper *)(void *)((char *)head - offsetof(struct hopper, rcu));

	call_hazptr(&h->hazptr, hop_hazptr);
}

static void hop_hazptr(struct hazptr_head *head)
{
	struct hopper *h = (struct hopper *)(void *)head;

	count_up(&nr_hops);
	if (!h->left--)
		return;
	if (h->left % 2)
		call_rcu(&h->rcu, hop_rcu);
	else
		call_srcu(&domain, &h->rcu, hop_rcu);
}

static void callbacks_may_queue_every_kind(void **state)
{
	enum { NR_HOPPERS = 50, HOPS = 6 };
	static struct hopper h[NR_HOPPERS];

	(void)state;
	for (int i = 0; i < NR_HOPPERS; i++) {
		h[i].left = HOPS;
		call_hazptr(&h[i].hazptr, hop_hazptr);
	}
	wait_until(flag_get(&nr_hops) == NR_HOPPERS * (HOPS + 1));
}

/* ---- chains: each retires the next ---- */

static void (*chain_call)(struct hazptr_head *head, void (*func)(struct hazptr_head *head));
static uint32_t chain_tid;

static void run_next(struct hazptr_head *head)
{
	struct thing *t = (struct thing *)(void *)head;

	quiesce_store_relaxed(&chain_tid, (uint32_t)my_tid()); /* Relaxed: awaited. */
	thing_run(head);
	if (t + 1 < object + NR)
		chain_call(&t[1].hazptr, run_next);
}

/* There is a scan for each object, and no pauses: one pause for every eight would be 2500. */
static void chain_is_followed(void (*call)(struct hazptr_head *head, void (*func)(struct hazptr_head *head)))
{
	uint64_t scans;
	long switches;

	memset(object, 0, sizeof object);
	chain_call = call;
	quiesce_store_relaxed(&chain_tid, 0);
	call(&object[0].hazptr, run_next);
	wait_until(flag_get(&chain_tid));
	scans = stats_now().hazptr_scans;
	switches = voluntary_switches((pid_t)flag_get(&chain_tid));
	wait_until(runs_of(&object[NR - 1]) == 1);
	assert_in_range(stats_now().hazptr_scans - scans, 0, NR * 11 / 10);
	assert_in_range(voluntary_switches((pid_t)flag_get(&chain_tid)) - switches, 0, NR / 100);
	assert_int_equal(things_run(object, NR), NR);
}

static void chains_are_followed_without_pauses(void **state)
{
	(void)state;
	chain_is_followed(call_hazptr);
	chain_is_followed(call_hazptr_inline);
}

/* ---- what never ends ---- */

static int no_more;

static void run_again(struct hazptr_head *head)
{
	quiesce_store_relaxed(&chain_tid, (uint32_t)my_tid()); /* Relaxed: awaited. */
	has_run(&object[0]);
	if (!flag_get(&no_more))
		call_hazptr(head, run_again);
}

static void stop_and_wait(void)
{
	flag_set(&no_more);
	assert_int_equal(quiesce_shutdown(0), 0);
	quiesce_store_relaxed(&no_more, 0);
}

/* The helper sleeps about as often as it visits. */
static void objects_that_retire_themselves_burn_no_cpu(void **state)
{
	long switches;
	int runs;

	(void)state;
	memset(object, 0, sizeof object);
	quiesce_store_relaxed(&chain_tid, 0);
	call_hazptr(&object[0].hazptr, run_again);
	wait_until(flag_get(&chain_tid));
	switches = voluntary_switches((pid_t)flag_get(&chain_tid));
	runs = runs_of(&object[0]);
	wait_until(runs_of(&object[0]) >= runs + 300);
	runs = runs_of(&object[0]) - runs;
	assert_true(voluntary_switches((pid_t)flag_get(&chain_tid)) - switches >= runs / 8);
	stop_and_wait();
}

/* Each callback retires a new object. */
static void run_and_make_another(struct hazptr_head *head)
{
	struct hazptr_head *fresh = malloc(sizeof *fresh);

	has_run(&object[0]);
	assert_non_null(fresh);
	if (flag_get(&no_more))
		free(fresh);
	else
		call_hazptr(fresh, run_and_make_another);
	free(head);
}

static void other_jobs_of_the_helper_go_on(void **state)
{
	struct hazptr_head *first[3];
	static struct rcu_head head;

	(void)state;
	for (int i = 0; i < 3; i++) {
		first[i] = malloc(sizeof **first);
		assert_non_null(first[i]);
		call_hazptr(first[i], run_and_make_another);
	}
	for (int i = 0; i < 20; i++) {
		call_srcu(&domain, &head, nothing);
		srcu_barrier(&domain);
		hazptr_barrier();
	}
	stop_and_wait();
}

/* ---- many threads that have retired, and one that does ---- */

#define NR_THREADS 1000
static pthread_barrier_t all_have_retired, all_end;

static void *retire_one_and_stay(void *thing)
{
	thing_retire(thing);
	pthread_barrier_wait(&all_have_retired);
	pthread_barrier_wait(&all_end);
	return NULL;
}

static void queues_that_have_nothing_are_not_visited(void **state)
{
	enum { ROUNDS = 10 };
	static pthread_t thread[NR_THREADS];
	pthread_attr_t small;
	uint64_t visited;

	(void)state;
	memset(object, 0, sizeof object);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 128 << 10);
	pthread_barrier_init(&all_have_retired, NULL, NR_THREADS + 1);
	pthread_barrier_init(&all_end, NULL, NR_THREADS + 1);
	for (int i = 0; i < NR_THREADS; i++)
		thread_must(pthread_create(&thread[i], &small, retire_one_and_stay, &object[i]));
	pthread_barrier_wait(&all_have_retired);
	wait_until(things_run(object, NR_THREADS) == NR_THREADS);
	hazptr_barrier();
	visited = stats_now().hazptr_queues_visited;
	assert_true(visited >= NR_THREADS);
	for (int i = 0; i < ROUNDS; i++) {
		thing_retire(&object[NR_THREADS + i]);
		wait_until(runs_of(&object[NR_THREADS + i]) == 1);
	}
	assert_in_range(stats_now().hazptr_queues_visited - visited, ROUNDS, 4 * ROUNDS);
	pthread_barrier_wait(&all_end);
	threads_end(thread, NR_THREADS);
}

/* ---- memory ---- */

/* Return the number of the queue's pages that are in memory. */
static int pages_of_queue(void)
{
	enum { PAGE = 4096, PAGES = 17 };
	unsigned char in[PAGES];
	char *start = (char *)quiesce__self()->retired;
	int n = 0;

	assert_int_equal((uintptr_t)start % PAGE, 0);
	assert_int_equal(mincore(start, (size_t)PAGES * PAGE, in), 0);
	for (int i = 0; i < PAGES; i++)
		n += in[i] & 1;
	return n;
}

static void *retire_one_at_a_time(void *ret_pages)
{
	for (int i = 0; i < 2000; i++) {
		thing_retire(&object[i]);
		hazptr_barrier();
	}
	*(int *)ret_pages = pages_of_queue();
	return NULL;
}

static void a_thread_that_retires_rarely_has_one_page(void **state)
{
	int pages = 0;

	(void)state;
	if (sysconf(_SC_PAGESIZE) != 4096) {
		print_message("# a page has another size here: not tried\n");
		return;
	}
	memset(object, 0, sizeof object);
	assert_int_equal(quiesce_shutdown(0), 0); /* no queue of another thread that could be adopted */
	in_thread(retire_one_at_a_time, &pages);
	assert_int_equal(pages, 1);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(a_thread_that_retires_rarely_has_one_page),
		TEST(callbacks_run_in_another_thread),
		TEST(both_kinds_mixed),
		TEST(a_retirer_may_hold_a_lock_that_callbacks_take),
		TEST(a_reader_of_rcu_keeps_nothing),
		TEST(callbacks_may_queue_every_kind),
		TEST(chains_are_followed_without_pauses),
		TEST(objects_that_retire_themselves_burn_no_cpu),
		TEST(other_jobs_of_the_helper_go_on),
		TEST(queues_that_have_nothing_are_not_visited),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
