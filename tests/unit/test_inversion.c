/* SPDX-License-Identifier: MIT */
/* test_inversion.c - who waits beside a leader that does not run.
 *
 * It is kept from running by a signal handler that does not return, which is what a thread of higher priority would do to it.
 */
#include "testing.h"

/* A primitive: a section, and who waits for it. */
struct primitive {
	void (*lock)(void), (*unlock)(void), (*wait)(void);
};

static struct {
	const struct primitive *of;
	sem_t inside, leave, stopped, go_on, done;
	pid_t leader, follower; /* thread ids */
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

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(rcu),
		TEST(rcu_expedited),
	};
	sem_t *all[] = { &run.inside, &run.leave, &run.stopped, &run.go_on, &run.done };

	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		sem_init(all[i], 0, 0);
	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
