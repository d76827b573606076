/* SPDX-License-Identifier: MIT */
/* test_inversion.c - waiters beside a leader that does not run.
 *
 * A signal handler that does not return keeps the leader from running, as a thread of higher priority would.
 */
#define _GNU_SOURCE
#include <quiesce/ds/idr.h>
#include <quiesce/shazptr.h>
#include <quiesce/srcu.h>

#include "../sanitized.h"
#include "testing.h"

#include <sched.h>
#include <sys/mman.h>

/* A primitive is given by the functions of its section, and the call that waits for it. */
struct primitive {
	void (*lock)(void), (*unlock)(void), (*wait)(void);
};

static struct {
	const struct primitive *of;
	sem_t inside, leave, stopped, go_on, done;
	pid_t leader, follower; /* ids of both threads */
} run;

static void *reads(void *arg)
{
	run.of->lock();
	sem_post(&run.inside);
	wait_for(&run.leave);
	run.of->unlock();
	return arg;
}

static void *leads(void *arg)
{
	quiesce_store_relaxed(&run.leader, my_tid());
	run.of->wait();
	return arg;
}

static void *follows(void *arg)
{
	quiesce_store_relaxed(&run.follower, my_tid());
	run.of->wait();
	sem_post(&run.done);
	return arg;
}

static void does_not_return(int sig)
{
	int saved = errno;

	(void)sig;
	sem_post(&run.stopped);
	wait_for(&run.go_on);
	errno = saved;
}

static pthread_t begin_and_sleep(void *(*main)(void *), pid_t *tid)
{
	pthread_t thread;

	quiesce_store_relaxed(tid, 0);
	thread_must(pthread_create(&thread, NULL, main, NULL));
	wait_until(flag_get(tid) && thread_state(flag_get(tid)) == 'S');
	return thread;
}

static void follower_ends(const struct primitive *of)
{
	pthread_t reader, leader, follower;

	run.of = of;
	signal(SIGUSR1, does_not_return);
	thread_must(pthread_create(&reader, NULL, reads, NULL));
	wait_for(&run.inside);
	leader = begin_and_sleep(leads, &run.leader);
	pthread_kill(leader, SIGUSR1);
	wait_for(&run.stopped);
	follower = begin_and_sleep(follows, &run.follower);
	sem_post(&run.leave);
	wait_for(&run.done);
	sem_post(&run.go_on);
	pthread_join(follower, NULL);
	pthread_join(leader, NULL);
	pthread_join(reader, NULL);
}

static void rcu_lock(void)
{
	rcu_read_lock();
}

static void rcu_unlock(void)
{
	rcu_read_unlock();
}

static void rcu(void **state)
{
	static const struct primitive of = { rcu_lock, rcu_unlock, synchronize_rcu };

	(void)state;
	follower_ends(&of);
}

static void rcu_expedited(void **state)
{
	static const struct primitive of = { rcu_lock, rcu_unlock, synchronize_rcu_expedited };

	(void)state;
	follower_ends(&of);
}

DEFINE_STATIC_SRCU(domain);
static int idx; /* index of the section of the reader */

static void enter_domain(void)
{
	idx = srcu_read_lock(&domain);
}

static void leave_domain(void)
{
	srcu_read_unlock(&domain, idx);
}

static void wait_for_domain(void)
{
	synchronize_srcu(&domain);
}

static void wait_for_domain_expedited(void)
{
	synchronize_srcu_expedited(&domain);
}

static void srcu(void **state)
{
	static const struct primitive of = { enter_domain, leave_domain, wait_for_domain };

	(void)state;
	follower_ends(&of);
}

static void srcu_expedited(void **state)
{
	static const struct primitive of = { enter_domain, leave_domain, wait_for_domain_expedited };

	(void)state;
	follower_ends(&of);
}

/* ---- a scanner in the middle of its walk ----
 * The scanner requests a wake-up in a reader's block, which is read-only: so it stops there, in the handler of its fault. */

#define NR_BETWEEN 64 /* number of entries of the registry between two that one step must not read */

static struct {
	sem_t inside, begin, end, end_others;
	void *page; /* the page of the reader's block */
	size_t bytes;
} walk;

static void stands_still(int sig)
{
	mprotect(walk.page, walk.bytes, PROT_READ | PROT_WRITE);
	does_not_return(sig);
}

static void *registers(void *end)
{
	rcu_read_lock();
	rcu_read_unlock();
	sem_post(&walk.inside);
	wait_for(end);
	return NULL;
}

static void *reads_and_sleeps(void *arg)
{
	walk.bytes = (size_t)sysconf(_SC_PAGESIZE);
	walk.page = (void *)((uintptr_t)&quiesce_tls_v1.rcu_word & ~(uintptr_t)(walk.bytes - 1));
	rcu_read_lock();
	quiesce_store_relaxed(&run.leader, my_tid());
	wait_for(&run.leave);
	rcu_read_unlock();
	return arg;
}

/* The thread is created before the blocks are protected: to create one may write to the blocks of others. */
static void *scans(void *arg)
{
	wait_for(&walk.begin);
	return leads(arg);
}

static pthread_t begin_registered(sem_t *end)
{
	pthread_t thread;

	thread_must(pthread_create(&thread, NULL, registers, end));
	wait_for(&walk.inside);
	return thread;
}

static void a_scanner_in_its_walk(void **state)
{
	static const struct primitive of = { rcu_lock, rcu_unlock, synchronize_rcu };
	const struct sigaction stand = { .sa_handler = stands_still };
	pthread_t ends, between[NR_BETWEEN], reader, scanner, follower;
	struct sigaction before;

	(void)state;
	if (SANITIZED) /* sanitizers have their own handler of SIGSEGV */
		return;
	run.of = &of;
	ends = begin_registered(&walk.end);
	for (int i = 0; i < NR_BETWEEN; i++)
		between[i] = begin_registered(&walk.end_others);
	thread_must(pthread_create(&scanner, NULL, scans, NULL));
	reader = begin_and_sleep(reads_and_sleeps, &run.leader);
	sigaction(SIGSEGV, &stand, &before);
	assert_int_equal(mprotect(walk.page, walk.bytes, PROT_READ), 0);
	sem_post(&walk.begin);
	wait_for(&run.stopped);
	sigaction(SIGSEGV, &before, NULL);
	sem_post(&walk.end);
	pthread_join(ends, NULL);
	follower = begin_and_sleep(follows, &run.follower);
	sem_post(&run.leave);
	wait_for(&run.done);
	sem_post(&run.go_on);
	pthread_join(follower, NULL);
	pthread_join(scanner, NULL);
	pthread_join(reader, NULL);
	for (int i = 0; i < NR_BETWEEN; i++)
		sem_post(&walk.end_others);
	threads_end(between, NR_BETWEEN);
}

/* ---- real-time priorities ---- */

#define HOG_NS 60000000u

static cpu_set_t cpu;

static int set_policy(int policy, int priority)
{
	const struct sched_param param = { .sched_priority = priority };

	return pthread_setschedparam(pthread_self(), policy, &param);
}

static void become(int policy, int priority)
{
	/* The order matters: otherwise the scanner never reaches the block. */
	thread_must(set_policy(policy, priority));
	thread_must(pthread_setaffinity_np(pthread_self(), sizeof cpu, &cpu));
}

static bool real_time_is_possible(const char *what)
{
	if (SANITIZED) /* the sanitizer has locks that inherit no priority, and its threads take long to start */
		return false;
	if (set_policy(SCHED_FIFO, 2)) {
		print_message("# no real-time priorities here: not tried: %s\n", what);
		return false;
	}
	thread_must(set_policy(SCHED_OTHER, 0));
	CPU_ZERO(&cpu);
	CPU_SET(sched_getcpu(), &cpu);
	return true;
}

/* ---- a thread that uses the CPU and nothing else ---- */

static struct {
	int runs, ends_soon, done, done_before_its_end;
} hog;

/* Use the CPU until HOG_NS after the request to end: a call that waits for the CPU, and not for this thread, has returned by then. */
static void *hogs(void *arg)
{
	uint64_t end;

	become(SCHED_FIFO, 1);
	flag_set(&hog.runs);
	while (!flag_get(&hog.ends_soon))
		;
	end = now_ns() + HOG_NS;
	while (now_ns() < end)
		;
	if (flag_get(&hog.done))
		count_up(&hog.done_before_its_end);
	return arg;
}

/* ---- the thread that scans for guards ----
 * The scan thread has to share its CPU with a thread of higher priority that only spins. */

static char guarded;

static void *waits_for_guards(void *arg)
{
	thread_must(set_policy(SCHED_FIFO, 2));
	quiesce_store_relaxed(&run.follower, my_tid());
	synchronize_shazptr(&guarded);
	flag_set(&hog.done);
	return arg;
}

static void shazptr(void **state)
{
	struct quiesce_thread_attr attr = QUIESCE_THREAD_ATTR_INIT;
	struct shazptr_guard guard;
	pthread_t waiter, hogger;

	(void)state;
	if (!real_time_is_possible("a scan thread that is kept from its CPU"))
		return;
	memset(&hog, 0, sizeof hog);
	attr.policy = SCHED_IDLE;
	attr.cpus = &cpu;
	attr.cpus_size = sizeof cpu;
	assert_int_equal(quiesce_set_thread_attr(QUIESCE_THREAD_SCAN, &attr), 0);
	guard = shazptr_acquire(&guarded);
	waiter = begin_and_sleep(waits_for_guards, &run.follower);
	thread_must(set_policy(SCHED_FIFO, 2)); /* a machine with one CPU */
	thread_must(pthread_create(&hogger, NULL, hogs, NULL));
	wait_until(flag_get(&hog.runs));
	shazptr_clear(guard);
	flag_set(&hog.ends_soon);
	pthread_join(waiter, NULL);
	pthread_join(hogger, NULL);
	thread_must(set_policy(SCHED_OTHER, 0));
	assert_int_equal(quiesce_set_thread_attr(QUIESCE_THREAD_SCAN, NULL), 0);
	assert_int_equal(hog.done_before_its_end, 1);
}

/* ---- short locks ----
 * On one CPU a thread of the lowest priority is preempted, usually while it holds the lock, by one that only uses the CPU; a third
 * thread, of the highest priority, wants the lock. */

#define ROUNDS 12
#define NR_KEPT 3 /* ids that stay, so that no memory is allocated or freed meanwhile */

static DEFINE_IDR(idr);

static struct {
	int stop, turns;
} short_lock;

static void take_and_give(void)
{
	static char object;
	int id = idr_alloc(&idr, &object, 0, 0);

	assert_in_range(id, 0, 2 + NR_KEPT);
	idr_remove(&idr, (unsigned long)id);
}

static void *lowest(void *arg)
{
	become(SCHED_IDLE, 0);
	while (!flag_get(&short_lock.stop)) {
		take_and_give();
		count_up(&short_lock.turns);
	}
	return arg;
}

static void *highest(void *arg)
{
	wait_until(flag_get(&hog.runs));
	become(SCHED_FIFO, 2);
	flag_set(&hog.ends_soon);
	take_and_give();
	flag_set(&hog.done);
	return arg;
}

static void a_short_lock_inherits_priority(void **state)
{
	pthread_t thread[3];

	(void)state;
	if (!real_time_is_possible("short locks"))
		return;
	hog.done_before_its_end = 0;
	for (int i = 0; i < NR_KEPT; i++)
		assert_int_equal(idr_alloc(&idr, &short_lock, 0, 0), i);
	thread_must(pthread_create(&thread[0], NULL, lowest, NULL));
	for (int i = 0; i < ROUNDS; i++) {
		int turns = flag_get(&short_lock.turns);

		hog.runs = hog.ends_soon = hog.done = 0;
		wait_until(flag_get(&short_lock.turns) > turns + 10);
		thread_must(pthread_create(&thread[1], NULL, highest, NULL));
		thread_must(pthread_create(&thread[2], NULL, hogs, NULL));
		pthread_join(thread[1], NULL);
		pthread_join(thread[2], NULL);
	}
	flag_set(&short_lock.stop);
	pthread_join(thread[0], NULL);
	assert_int_equal(hog.done_before_its_end, ROUNDS);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(rcu),
		TEST(rcu_expedited),
		TEST(a_scanner_in_its_walk),
		TEST(srcu),
		TEST(srcu_expedited),
		TEST(shazptr),
		TEST(a_short_lock_inherits_priority),
	};
	sem_t *all[] = { &run.inside, &run.leave, &run.stopped, &run.go_on, &run.done,
			 &walk.inside, &walk.begin, &walk.end, &walk.end_others };

	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		sem_init(all[i], 0, 0);
	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
