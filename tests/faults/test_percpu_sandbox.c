/* SPDX-License-Identifier: MIT */
/* test_percpu_sandbox.c - percpu_rwsem and domains of SRCU without memory, threads, membarrier or sequences. */
#include "../unit/rwsems.h"
#include "children.h"
#include "filter.h"
#include "no_threads.h"

#include <quiesce/srcu.h>

/* ---- this program executed again ---- */

static const char *role;

static void become(void)
{
	execl("/proc/self/exe", "test_percpu_sandbox", "--as", role, (char *)NULL);
	_exit(127);
}

/* ---- calls that have to work everywhere ---- */

DEFINE_STATIC_PERCPU_RWSEM(sem);
DEFINE_STATIC_SRCU(domain);

static struct rcu_head heads[50];
static int nr_run;

static void run(struct rcu_head *head)
{
	(void)head;
	count_up(&nr_run);
}

static void lock_is_exact(struct percpu_rw_semaphore *s)
{
	for (int i = 0; i < 5; i++) {
		percpu_down_read(s);
		must(percpu_is_read_locked(s));
		must(percpu_down_read_trylock(s) && !percpu_down_write_trylock(s));
		percpu_up_read(s);
		must(percpu_is_read_locked(s) && !percpu_down_write_timeout(s, MS));
		percpu_up_read(s);
		must(!percpu_is_read_locked(s));
		percpu_down_write(s);
		must(percpu_is_write_locked_by_me(s) && !percpu_down_read_trylock(s) && !percpu_down_read_timeout(s, MS));
		percpu_up_write(s);
		must(percpu_down_write_trylock(s));
		percpu_up_write(s);
	}
	wait_until(rcu_sync_is_idle(&s->rss));
}

static void queue_all(struct srcu_struct *ssp)
{
	quiesce_store_relaxed(&nr_run, 0);
	for (int i = 0; i < 50; i++)
		call_srcu(ssp, &heads[i], run);
}

static void domain_works(struct srcu_struct *ssp)
{
	struct rcu_gp_seq seq;
	int idx = srcu_read_lock(ssp);

	queue_all(ssp);
	seq = start_poll_synchronize_srcu(ssp);
	must(!poll_state_synchronize_srcu(ssp, seq) && !flag_get(&nr_run));
	srcu_read_unlock(ssp, idx);
	wait_until(poll_state_synchronize_srcu(ssp, seq));
	synchronize_srcu(ssp);
	synchronize_srcu_expedited(ssp);
	srcu_barrier(ssp);
	must(flag_get(&nr_run) == 50);
}

static void all_works(void)
{
	lock_is_exact(&sem);
	domain_works(&domain);
	percpu_free_rwsem(&sem);
	cleanup_srcu_struct(&domain);
	must(percpu_init_rwsem(&sem) == 0 && init_srcu_struct(&domain) == 0);
	lock_is_exact(&sem);
	domain_works(&domain);
	must(quiesce_shutdown(0) == 0);
}

static void *use_both(void *unused)
{
	for (int i = 0; i < 200; i++) {
		int idx = srcu_read_lock(&domain);

		percpu_down_read(&sem);
		percpu_up_read(&sem);
		srcu_read_unlock(&domain, idx);
		if (i % 20 == 0) {
			percpu_down_write(&sem);
			percpu_up_write(&sem);
			synchronize_srcu(&domain);
		}
	}
	return unused;
}

static void all_works_with_threads(void)
{
	pthread_t thread[3];

	threads_begin(thread, 3, use_both, NULL);
	threads_end(thread, 3);
	all_works();
}

/* ---- without a helper ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void run_locked(struct rcu_head *head)
{
	must(!pthread_mutex_lock(&lock));
	run(head);
	pthread_mutex_unlock(&lock);
}

/* A caller that queues callbacks may hold a lock that they take. */
static void queue_under_lock(void)
{
	quiesce_store_relaxed(&nr_run, 0);
	pthread_mutex_lock(&lock);
	for (int i = 0; i < 50; i++)
		call_srcu(&domain, &heads[i], run_locked);
	must(!flag_get(&nr_run));
	pthread_mutex_unlock(&lock);
}

/* The last writer makes readers fast at once; a poller, or a caller that may wait, does the helper's work. */
static void callers_help_themselves(void)
{
	int idx;

	flag_set(&no_threads);
	percpu_down_write(&sem);
	must(!rcu_sync_is_idle(&sem.rss));
	percpu_up_write(&sem);
	must(rcu_sync_is_idle(&sem.rss));
	all_works();
	must(flag_get(&nr_refused) > 0);
	/* Callbacks that a reader has delayed run only in a thread that may run them. */
	idx = srcu_read_lock(&domain);
	queue_under_lock();
	srcu_read_unlock(&domain, idx);
	must(poll_state_synchronize_srcu(&domain, get_state_synchronize_srcu(&domain)));
	must(!flag_get(&nr_run));
	synchronize_srcu(&domain);
	must(flag_get(&nr_run) == 50);
	queue_under_lock();
	srcu_barrier(&domain);
	must(flag_get(&nr_run) == 50);
	queue_under_lock();
	must(quiesce_shutdown(0) == 0 && flag_get(&nr_run) == 50);
	must(stats_now().garbage_bytes == 0 && stats_now().garbage_objects == 0);
}

static void without_a_helper(void **state)
{
	(void)state;
	succeeds(callers_help_themselves);
}

/* The helper takes over work that was begun without it, once it can be started. */
static void helper_comes_later(void)
{
	static struct rcu_head late[100];
	int idx = srcu_read_lock(&domain);

	flag_set(&no_threads);
	queue_all(&domain);
	must(flag_get(&nr_refused) < 3); /* only a few calls have tried to start a thread */
	quiesce_store_relaxed(&no_threads, 0);
	for (int i = 0; i < 100; i++) { /* the start is retried after a while */
		call_srcu(&domain, &late[i], run);
		short_rest();
	}
	srcu_read_unlock(&domain, idx);
	wait_until(flag_get(&nr_run) == 150);
	all_works_with_threads();
}

static void the_helper_starts_when_it_can(void **state)
{
	(void)state;
	succeeds(helper_comes_later);
}

/* ---- a helper that takes long to start ---- */

static void *queue_one(void *unused)
{
	call_srcu(&domain, &heads[0], run);
	return unused;
}

static void *hold_start(void *unused)
{
	flag_set(&slow_start);
	return queue_one(unused);
}

static void others_go_on(void)
{
	static struct srcu_struct other;
	pthread_t thread;

	must(init_srcu_struct(&other) == 0);
	thread_must(pthread_create(&thread, NULL, queue_one, NULL));
	pthread_join(thread, NULL); /* only that thread can have started the helper */
	must(quiesce_shutdown(0) == 0 && flag_get(&nr_run) == 1);
	thread_must(pthread_create(&thread, NULL, hold_start, NULL));
	wait_until(flag_get(&starting));
	call_srcu(&domain, &heads[1], run);
	call_srcu(&other, &heads[2], run);
	must(flag_get(&nr_run) == 1);
	(void)start_poll_synchronize_srcu(&other);
	quiesce_store_relaxed(&slow_start, 0);
	pthread_join(thread, NULL);
	wait_until(flag_get(&nr_run) == 4);
}

static void no_thread_waits_for_a_start(void **state)
{
	(void)state;
	succeeds(others_go_on);
}

/* ---- without memory ---- */

static void no_memory_ever(void)
{
	static struct percpu_rw_semaphore own;
	static struct srcu_struct other;

	filter_now("mmap=ENOMEM"); /* threads cannot be created then either */
	must(percpu_init_rwsem(&own) == -ENOMEM && init_srcu_struct(&other) == -ENOMEM);
	for (int i = 0; i < 3; i++) {
		lock_is_exact(&own);
		lock_is_exact(&sem);
		domain_works(&other);
		domain_works(&domain);
	}
	percpu_free_rwsem(&own);
	percpu_free_rwsem(&sem);
	cleanup_srcu_struct(&other);
	cleanup_srcu_struct(&domain);
	must(percpu_init_rwsem(&own) == -ENOMEM);
	lock_is_exact(&own);
	must(quiesce_shutdown(0) == 0);
}

static void all_works_without_memory(void **state)
{
	(void)state;
	succeeds(no_memory_ever);
}

/* A chunk of counters is kept for objects of each size. */
static void loops_map_nothing(void)
{
	lock_is_exact(&sem);
	domain_works(&domain);
	must(quiesce_shutdown(0) == 0);
	percpu_free_rwsem(&sem);
	cleanup_srcu_struct(&domain);
	filter_now("mmap=ENOMEM");
	for (int i = 0; i < 1000; i++) {
		must(percpu_init_rwsem(&sem) == 0);
		percpu_down_read(&sem);
		must(percpu_is_read_locked(&sem));
		percpu_up_read(&sem);
		must(!percpu_is_read_locked(&sem));
		must(init_srcu_struct(&domain) == 0);
		srcu_read_unlock(&domain, srcu_read_lock(&domain));
		percpu_free_rwsem(&sem);
		cleanup_srcu_struct(&domain);
	}
}

static void a_chunk_is_kept(void **state)
{
	(void)state;
	succeeds(loops_map_nothing);
}

static struct rlimit enough;

static void memory(int there)
{
	struct rlimit none = { 1, enough.rlim_max };

	if (setrlimit(RLIMIT_DATA, there ? &enough : &none))
		_exit(5);
}

/* Sections that began without counters end with them. */
static void memory_comes_later(void)
{
	int idx;

	getrlimit(RLIMIT_DATA, &enough);
	memory(0);
	must(percpu_init_rwsem(&sem) == -ENOMEM && init_srcu_struct(&domain) == -ENOMEM);
	percpu_down_read(&sem);
	idx = srcu_read_lock(&domain);
	memory(1);
	must(!sem.percpu.base && !domain.percpu.base);
	for (int i = 0; i < 100 && !sem.percpu.base; i++)
		percpu_down_read(&sem), percpu_up_read(&sem);
	must(sem.percpu.base != NULL);
	percpu_down_read(&sem);
	must(percpu_is_read_locked(&sem));
	percpu_up_read(&sem);
	must(percpu_is_read_locked(&sem) && !percpu_down_write_trylock(&sem));
	percpu_up_read(&sem);
	must(!percpu_is_read_locked(&sem));
	queue_all(&domain);
	must(!flag_get(&nr_run));
	srcu_read_unlock(&domain, idx);
	srcu_barrier(&domain);
	for (int i = 0; i < 100 && !domain.percpu.base; i++) {
		synchronize_srcu(&domain);
		srcu_read_unlock(&domain, srcu_read_lock(&domain));
	}
	must(domain.percpu.base != NULL);
	all_works_with_threads();
}

static void counters_come_when_there_is_memory(void **state)
{
	(void)state;
	succeeds(memory_comes_later);
}

/* ---- without membarrier, or some of its commands ---- */

static void become_without_membarrier(void)
{
	filter_now("membarrier=EPERM");
	become();
}

static void become_without_restart(void)
{
	filter_now("membarrier:128=EINVAL"); /* MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ */
	become();
}

static void become_without_registration(void)
{
	filter_now("membarrier:256=EINVAL"); /* MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ */
	become();
}

static void become_without_rseq(void)
{
	setenv("GLIBC_TUNABLES", "glibc.pthread.rseq=0", 1);
	become();
}

static void no_sequences(void)
{
	all_works_with_threads();
	percpu_down_read(&sem);
	percpu_up_read(&sem);
	must(sem.percpu.base && !counts_in_sequences(&sem));
}

static void all_works_without_sequences(void **state)
{
	static void (*const how[])(void) = { become_without_membarrier, become_without_restart, become_without_registration,
					     become_without_rseq };

	(void)state;
	role = "no sequences";
	for (int i = 0; i < 4; i++)
		succeeds(how[i]);
}

/* Deny both kinds of membarrier: those of domains, and those that restart sequences. */
static void lose_membarrier(void)
{
	lock_is_exact(&sem);
	domain_works(&domain);
	filter_now("membarrier=EPERM");
	lock_is_exact(&sem);
	domain_works(&domain);
}

static void losing_membarrier_is_said(void **state)
{
	(void)state;
	loses_membarrier(lose_membarrier);
}

static int play(const char *name)
{
	alarm(watchdog_seconds() / 2);
	if (strcmp(name, "no sequences"))
		return 2;
	no_sequences();
	return 0;
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(without_a_helper),
		TEST(the_helper_starts_when_it_can),
		TEST(no_thread_waits_for_a_start),
		TEST(all_works_without_memory),
		TEST(a_chunk_is_kept),
		TEST(counters_come_when_there_is_memory),
		TEST(all_works_without_sequences),
		TEST(losing_membarrier_is_said),
	};

	if (argc == 3 && !strcmp(argv[1], "--as"))
		return play(argv[2]);
	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
