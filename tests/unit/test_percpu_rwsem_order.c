/* SPDX-License-Identifier: MIT */
/* test_percpu_rwsem_order.c - which waiter gets a contended percpu_rwsem: turns, bounds, bursts, and the memory that many locks leave. */
#include <sched.h>
#include <sys/resource.h>

#include "../sanitized.h"
#include "rwsems.h"

static struct percpu_rw_semaphore sem;

static void fresh(void)
{
	assert_int_equal(percpu_init_rwsem(&sem), 0);
}

static void all_rest(const struct user *u, int nr)
{
	for (int k = 0; k < 3; k++) {
		short_rest();
		for (int i = 0; i < nr; i++)
			assert_false(flag_get(&u[i].inside));
	}
}

/* ---- turns ---- */

/* A writer is inside; readers (R) and writers (W) queue in the order R R W R W. */
static void first_come_first_served(void **state)
{
	static const bool writes[5] = { false, false, true, false, true };
	struct user u[5];

	(void)state;
	fresh();
	percpu_down_write(&sem);
	for (int i = 0; i < 5; i++)
		user_queued(&u[i], &sem, writes[i], 0);
	all_rest(u, 5);
	percpu_up_write(&sem);
	wait_until(flag_get(&u[0].inside) && flag_get(&u[1].inside)); /* both readers enter together */
	all_rest(u + 2, 3);
	user_leave(&u[1]);
	all_rest(u + 2, 3);
	user_leave(&u[0]);
	wait_until(flag_get(&u[2].inside));
	all_rest(u + 3, 2);
	user_leave(&u[2]);
	wait_until(flag_get(&u[3].inside));
	all_rest(u + 4, 1);
	user_leave(&u[3]);
	user_leave(&u[4]);
	lock_works(&sem);
	percpu_free_rwsem(&sem);
}

/* Each of five waiters in turn gives up; the others get the lock. */
static void a_caller_that_gives_up_delays_no_other(void **state)
{
	struct user u[5];

	(void)state;
	fresh();
	for (int which = 0; which < 5; which++)
		for (int kinds = 0; kinds < 32; kinds += 5) {
			percpu_down_write(&sem);
			for (int i = 0; i < 5; i++)
				user_queued(&u[i], &sem, kinds >> i & 1, i == which ? 2 * MS : 0);
			user_is_refused(&u[which]);
			all_rest(u, 5);
			percpu_up_write(&sem);
			for (int i = 0; i < 5; i++)
				flag_set(&u[i].leave);
			for (int i = 0; i < 5; i++)
				if (i != which)
					user_leave(&u[i]);
		}
	lock_works(&sem);
	percpu_free_rwsem(&sem);
}

/* A reader is inside, a writer waits for it, and two readers and a writer queue behind that writer. */
static void a_writer_that_gives_up_lets_readers_in(void **state)
{
	struct user w[2], r[2];

	(void)state;
	fresh();
	percpu_down_read(&sem);
	/* The timeout allows the others to queue; it is repeated until it was long enough once. */
	for (uint64_t timeout = 10 * MS;; timeout *= 2) {
		int queued;

		user_drains(&w[0], &sem, timeout);
		user_begin(&r[0], &sem, false, 0);
		user_begin(&r[1], &sem, false, 0);
		wait_until(read_waiter(&sem.first) || flag_get(&w[0].refused));
		queued = read_waiter(&sem.first) && percpu_is_write_locked(&sem);
		user_is_refused(&w[0]);
		wait_until(flag_get(&r[0].inside) && flag_get(&r[1].inside));
		assert_false(percpu_is_write_locked(&sem));
		user_drains(&w[1], &sem, 0);
		user_leave(&r[0]);
		user_leave(&r[1]);
		assert_false(flag_get(&w[1].inside));
		percpu_up_read(&sem);
		user_leave(&w[1]);
		if (queued)
			break;
		percpu_down_read(&sem);
	}
	lock_works(&sem);
	percpu_free_rwsem(&sem);
}

/* ---- bounds ---- */

enum { NR_READERS = 3 };

static int stop, writer_waits, writer_inside, nr_overtakes, nr_tries, nr_wrong;
static uint64_t sections[NR_READERS];

static void *try_to_overtake(void *arg)
{
	int way = (int)(intptr_t)arg;

	while (!flag_get(&stop)) {
		int late = flag_get(&writer_waits), got = 1;

		if (way == 0)
			percpu_down_read(&sem);
		else if (way == 1)
			got = percpu_down_read_trylock(&sem);
		else
			got = percpu_down_read_timeout(&sem, 10000);
		if (late) {
			count_up(&nr_tries);
			if (got && !flag_get(&writer_inside))
				count_up(&nr_overtakes);
		}
		if (got)
			percpu_up_read(&sem);
		quiesce_store_relaxed(&sections[way], sections[way] + 1);
	}
	return NULL;
}

static void *write_once(void *unused)
{
	percpu_down_write(&sem);
	flag_set(&writer_inside);
	percpu_up_write(&sem);
	return unused;
}

/* Once other threads can know of the writer, no section begins before its own, by whichever call readers ask. */
static void no_reader_overtakes_a_writer(void **state)
{
	pthread_t reader[NR_READERS], writer;

	(void)state;
	for (int round = 0; round < 20; round++) {
		fresh();
		stop = writer_waits = writer_inside = nr_overtakes = nr_tries = 0;
		percpu_down_read(&sem);
		for (int i = 0; i < NR_READERS; i++) {
			sections[i] = 0;
			thread_must(pthread_create(&reader[i], NULL, try_to_overtake, (void *)(intptr_t)i));
			wait_until(flag_get(&sections[i]));
		}
		thread_must(pthread_create(&writer, NULL, write_once, NULL));
		wait_until(percpu_is_write_locked(&sem));
		flag_set(&writer_waits);
		wait_until(flag_get(&nr_tries) > 20); /* attempts of callers that do not wait, or not for long */
		assert_false(flag_get(&writer_inside));
		percpu_up_read(&sem);
		pthread_join(writer, NULL);
		flag_set(&stop);
		threads_end(reader, NR_READERS);
		assert_int_equal(nr_overtakes, 0);
		percpu_free_rwsem(&sem);
	}
}

static uint64_t a, b; /* readers find them equal */

static void *read_them(void *arg)
{
	uint64_t *nr = arg;

	while (!flag_get(&stop)) {
		percpu_down_read(&sem);
		/* Relaxed: the lock is what is tested. */
		if (quiesce_load_relaxed(&a) != quiesce_load_relaxed(&b))
			count_up(&nr_wrong);
		percpu_up_read(&sem);
		count_up(nr);
	}
	return NULL;
}

static void *write_them(void *arg)
{
	uint64_t *nr = arg;

	while (!flag_get(&stop)) {
		percpu_down_write(&sem);
		/* Relaxed: the lock is what is tested. */
		quiesce_store_relaxed(&a, a + 1);
		quiesce_store_relaxed(&b, b + 1); /* Relaxed: the lock is what is tested. */
		percpu_up_write(&sem);
		count_up(nr);
	}
	return NULL;
}

/* Writers without a pause starve no reader, readers without a pause no writer. */
static void neither_side_starves(void **state)
{
	enum { NR = 5, NR_WRITERS = 2, ENOUGH = 300 };
	uint64_t done[NR] = { 0 }, least = 0;
	pthread_t thread[NR];

	(void)state;
	fresh();
	stop = nr_wrong = 0;
	a = b = 0;
	for (int i = 0; i < NR; i++)
		thread_must(pthread_create(&thread[i], NULL, i < NR_WRITERS ? write_them : read_them, &done[i]));
	while (least < ENOUGH) {
		short_rest();
		least = flag_get(&done[0]);
		for (int i = 1; i < NR; i++)
			least = flag_get(&done[i]) < least ? flag_get(&done[i]) : least;
	}
	flag_set(&stop);
	threads_end(thread, NR);
	assert_int_equal(nr_wrong, 0);
	assert_int_equal(a, done[0] + done[1]);
	assert_int_equal(a, b);
	lock_works(&sem);
	percpu_free_rwsem(&sem);
}

/* All calls are used at once, with timeouts that expire just when the lock is granted. */
static void *ask_in_every_way(void *arg)
{
	unsigned int seed = (unsigned int)(uintptr_t)arg;

	for (int i = 0; i < 1500; i++) {
		int way = rand_r(&seed) % 8;
		uint64_t timeout = (uint64_t)(rand_r(&seed) % 100000);
		bool write = way < 3, got = true;

		if (way == 0)
			percpu_down_write(&sem);
		else if (way == 1)
			got = percpu_down_write_timeout(&sem, timeout);
		else if (way == 2)
			got = percpu_down_write_trylock(&sem);
		else if (way == 3)
			got = percpu_down_read_timeout(&sem, timeout);
		else if (way == 4)
			got = percpu_down_read_trylock(&sem);
		else
			percpu_down_read(&sem);
		if (!got)
			continue;
		/* Relaxed: the lock is what is tested. */
		if (quiesce_load_relaxed(&a) != quiesce_load_relaxed(&b))
			count_up(&nr_wrong);
		if (write) {
			quiesce_store_relaxed(&a, a + 1); /* Relaxed: the lock is what is tested. */
			quiesce_store_relaxed(&b, b + 1); /* Relaxed: the lock is what is tested. */
			percpu_up_write(&sem);
		} else {
			percpu_up_read(&sem);
		}
	}
	return NULL;
}

static void timeouts_that_come_with_the_lock(void **state)
{
	pthread_t thread[4];

	(void)state;
	fresh();
	nr_wrong = 0;
	a = b = 0;
	for (int i = 0; i < 4; i++)
		thread_must(pthread_create(&thread[i], NULL, ask_in_every_way, (void *)(uintptr_t)(i + 1)));
	threads_end(thread, 4);
	assert_int_equal(nr_wrong, 0);
	assert_int_equal(a, b);
	assert_true(a > 100);
	assert_false(percpu_is_read_locked(&sem));
	lock_works(&sem);
	percpu_free_rwsem(&sem);
}

/* ---- bursts ---- */

enum { BURST = 2000 };

/* Writers pay for membarriers when readers are fast, so a burst without a pause pays once.  A pause of 10 ms,
 * which a busy machine may force on us, ends a burst, and the next one pays once more. */
static void a_burst_pays_once(void **state)
{
	struct quiesce_stats before, after;

	(void)state;
	fresh();
	do {
		wait_until(rcu_sync_is_idle(&sem.rss));
		before = stats_now();
		for (int i = 0; i < BURST; i++) {
			percpu_down_write(&sem);
			percpu_up_write(&sem);
		}
		after = stats_now();
		assert_int_equal(after.grace_periods, before.grace_periods);
		if (quiesce_fence() == QUIESCE_FENCE_FULL)
			assert_int_equal(after.membarriers, before.membarriers);
		else
			assert_true(after.membarriers > before.membarriers);
	} while (after.membarriers > before.membarriers + 3);
	wait_until(rcu_sync_is_idle(&sem.rss));
	percpu_free_rwsem(&sem);
}

/* While there is no writer, each reader counts in its own words: no locked word is written. */
static void readers_are_fast_again_after_a_burst(void **state)
{
	(void)state;
	fresh();
	for (int round = 0; round < 3; round++) {
		uint64_t shared;

		for (int i = 0; i < 50; i++)
			lock_works(&sem);
		wait_until(rcu_sync_is_idle(&sem.rss));
		shared = sem.shared[0] + sem.shared[1];
		for (int i = 0; i < 100; i++) {
			percpu_down_read(&sem);
			assert_true(rcu_sync_is_idle(&sem.rss));
			percpu_up_read(&sem);
		}
		assert_int_equal(sem.shared[0] + sem.shared[1], shared);
		assert_true(rcu_sync_is_idle(&sem.rss));
	}
	percpu_free_rwsem(&sem);
}

/* ---- many locks ---- */

enum { MANY = QUIESCE_TSAN ? 1000 : 10000 }; /* memory is not compared there */

static struct percpu_rw_semaphore many[MANY];

static int nr_maps(void)
{
	FILE *file = fopen("/proc/self/maps", "r");
	int lines = 0, c;

	assert_non_null(file);
	while ((c = getc(file)) != EOF)
		lines += c == '\n';
	fclose(file);
	return lines;
}

static void use_and_free_all(void)
{
	for (int i = 0; i < MANY; i++)
		percpu_down_read(&many[i]);
	for (int i = 0; i < MANY; i++)
		assert_true(percpu_is_read_locked(&many[i]));
	for (int i = 0; i < MANY; i += 7)
		assert_true(percpu_down_read_trylock(&many[i]));
	for (int i = 0; i < MANY; i++)
		percpu_up_read(&many[i]);
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(percpu_is_read_locked(&many[i]), i % 7 == 0);
		if (i % 7 == 0)
			percpu_up_read(&many[i]);
	}
	for (int i = 0; i < MANY; i++)
		percpu_free_rwsem(&many[i]);
}

static void many_locks_leave_nothing(void **state)
{
	long pages[2], peak[2];
	int maps[2];

	(void)state;
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < MANY; i++)
			assert_int_equal(percpu_init_rwsem(&many[i]), 0);
		peak[round > 0] = address_space();
		use_and_free_all();
		pages[round > 0] = address_space();
		maps[round > 0] = nr_maps();
		if (round > 0 && !QUIESCE_TSAN) { /* ThreadSanitizer has mappings of its own */
			assert_true(peak[1] <= peak[0] + 100);
			assert_true(pages[1] <= pages[0] + 100);
			assert_true(maps[1] <= maps[0] + 10);
		}
	}
	assert_true(QUIESCE_TSAN || peak[0] > pages[0]); /* otherwise the second comparison shows nothing */
}

enum { BATCH = 1000 };

static void many_are_closed_for_one_membarrier(void **state)
{
	static struct percpu_rw_semaphore *list[BATCH];
	struct quiesce_stats before;

	(void)state;
	for (int i = 0; i < BATCH; i++) {
		assert_int_equal(percpu_init_rwsem(&many[i]), 0);
		list[i] = &many[i];
	}
	percpu_down_write(list[BATCH / 2]); /* readers of this lock take the slow path already */
	percpu_up_write(list[BATCH / 2]);
	before = stats_now();
	percpu_down_write_many(list, BATCH);
	assert_in_range(stats_now().membarriers - before.membarriers, 0, 1);
	for (int i = 0; i < BATCH; i++) {
		assert_true(percpu_is_write_locked_by_me(list[i]));
		assert_false(percpu_down_read_trylock(list[i]));
		percpu_up_write(list[i]);
		assert_true(percpu_down_read_trylock(list[i]));
		percpu_up_read(list[i]);
		percpu_free_rwsem(list[i]);
	}
	percpu_down_write_many(NULL, 0);
}

/* Counters that were used are reused clean. */
static void counters_are_reused(void **state)
{
	const char *base;

	(void)state;
	fresh();
	base = sem.percpu.base;
	for (int i = 0; i < 200; i++) {
		percpu_down_read(&sem);
		if (i % 2)
			percpu_up_read(&sem), percpu_down_read(&sem);
		percpu_up_read(&sem);
		if (i % 50 == 0)
			lock_works(&sem);
		percpu_free_rwsem(&sem);
		fresh();
		assert_ptr_equal(sem.percpu.base, base);
		assert_false(percpu_is_read_locked(&sem));
	}
	percpu_free_rwsem(&sem);
}

/* ---- a lock in memory that its last holder frees ---- */

struct object {
	struct percpu_rw_semaphore sem;
	sem_t begun;
};

static void *last_reader(void *arg)
{
	struct object *o = arg;

	percpu_down_read(&o->sem);
	sem_post(&o->begun);
	percpu_up_read(&o->sem);
	return NULL;
}

static void the_last_holder_frees_the_lock(void **state)
{
	(void)state;
	for (int i = 0; i < 300; i++) {
		struct object *o = aligned_alloc(QUIESCE_CACHELINE, sizeof *o);
		pthread_t thread;

		assert_non_null(o);
		assert_int_equal(percpu_init_rwsem(&o->sem), 0);
		sem_init(&o->begun, 0, 0);
		if (i % 2)
			lock_works(&o->sem);
		thread_must(pthread_create(&thread, NULL, last_reader, o));
		wait_for(&o->begun);
		percpu_down_write(&o->sem);
		percpu_up_write(&o->sem);
		percpu_free_rwsem(&o->sem);
		memset(o, 0x5a, sizeof *o);
		free(o);
		pthread_join(thread, NULL);
	}
}

/* ---- how often a thread sleeps ---- */

static struct {
	struct percpu_rw_semaphore sem;
	int ends, nr_reads;
} beside = { .sem = PERCPU_RWSEM_INIT };

static void pin_to(size_t cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
}

/* The first two CPUs that this thread may use; returns how many of them there are. */
static int two_cpus(const cpu_set_t *allowed, size_t cpus[2])
{
	int nr = 0;

	for (size_t cpu = 0; cpu < CPU_SETSIZE && nr < 2; cpu++)
		if (CPU_ISSET(cpu, allowed))
			cpus[nr++] = cpu;
	return nr;
}

static void *reader_without_a_pause(void *cpu)
{
	pin_to(*(size_t *)cpu);
	while (!flag_get(&beside.ends)) {
		percpu_down_read(&beside.sem);
		percpu_up_read(&beside.sem);
		count_up(&beside.nr_reads);
	}
	return NULL;
}

static long sleeps(void)
{
	struct rusage r;

	assert_int_equal(getrusage(RUSAGE_SELF, &r), 0);
	return r.ru_nvcsw;
}

/* A reader and a writer on two CPUs take turns, and neither sleeps for most turns of the other. */
static void short_sections_take_turns_awake(void **state)
{
	enum { SECTIONS = 3000 };
	cpu_set_t allowed;
	size_t cpus[2];
	pthread_t thread;
	long before;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof allowed, &allowed), 0);
	if (SANITIZED || two_cpus(&allowed, cpus) < 2)
		return; /* with one CPU a thread that waits has to sleep */
	pin_to(cpus[0]);
	thread_must(pthread_create(&thread, NULL, reader_without_a_pause, &cpus[1]));
	wait_until(flag_get(&beside.nr_reads));
	before = sleeps();
	for (int i = 0; i < SECTIONS; i++) {
		percpu_down_write(&beside.sem);
		percpu_up_write(&beside.sem);
	}
	before = sleeps() - before;
	flag_set(&beside.ends);
	pthread_join(thread, NULL);
	assert_int_equal(sched_setaffinity(0, sizeof allowed, &allowed), 0);
	print_message("# %ld sleeps in %d sections, %d reads\n", before, SECTIONS, beside.nr_reads);
	assert_true(before < SECTIONS / 2);
	percpu_free_rwsem(&beside.sem);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(first_come_first_served),
		TEST(a_caller_that_gives_up_delays_no_other),
		TEST(a_writer_that_gives_up_lets_readers_in),
		TEST(no_reader_overtakes_a_writer),
		TEST(neither_side_starves),
		TEST(short_sections_take_turns_awake),
		TEST(many_are_closed_for_one_membarrier),
		TEST(timeouts_that_come_with_the_lock),
		TEST(a_burst_pays_once),
		TEST(readers_are_fast_again_after_a_burst),
		TEST(many_locks_leave_nothing),
		TEST(counters_are_reused),
		TEST(the_last_holder_frees_the_lock),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
