/* SPDX-License-Identifier: MIT */
/* test_polls.c - a polled cookie is completed although the thread that would complete it is busy, or has no CPU. */
#define _GNU_SOURCE
#include <quiesce/srcu.h>

#include "testing.h"

#include <sched.h>

#define SOON_NS 500000000u /* a millisecond or two, on a machine that is busy */

DEFINE_STATIC_SRCU(domain);

/* Each kind of grace period has a start, callbacks, and sections. */
static struct rcu_gp_seq rcu_start(void)
{
	return start_poll_synchronize_rcu();
}

static int rcu_poll(struct rcu_gp_seq seq)
{
	return poll_state_synchronize_rcu(seq);
}

static struct rcu_gp_seq srcu_start(void)
{
	return start_poll_synchronize_srcu(&domain);
}

static int srcu_poll(struct rcu_gp_seq seq)
{
	return poll_state_synchronize_srcu(&domain, seq);
}

static void srcu_queue(struct rcu_head *head, void (*func)(struct rcu_head *head))
{
	call_srcu(&domain, head, func);
}

static void srcu_wait(void)
{
	srcu_barrier(&domain);
}

struct kind {
	struct rcu_gp_seq (*start)(void);
	int (*poll)(struct rcu_gp_seq seq);
	void (*queue)(struct rcu_head *head, void (*func)(struct rcu_head *head));
	void (*barrier)(void);
};

static const struct kind rcu = { rcu_start, rcu_poll, call_rcu, rcu_barrier };
static const struct kind srcu = { srcu_start, srcu_poll, srcu_queue, srcu_wait };
static const struct kind *kind;

/* Return the time until a new cookie is completed. */
static uint64_t polled_ns(void)
{
	uint64_t begin = now_ns();
	struct rcu_gp_seq seq = kind->start();

	wait_until(kind->poll(seq));
	return now_ns() - begin;
}

static int inside, has_polled;

static void waits_for_poller(struct rcu_head *head)
{
	(void)head;
	flag_set(&inside);
	wait_until(flag_get(&has_polled));
}

static void beside_a_callback(const struct kind *of, uint64_t (*poll_ns)(void))
{
	static struct rcu_head head;

	kind = of;
	inside = has_polled = 0;
	kind->queue(&head, waits_for_poller);
	wait_until(flag_get(&inside));
	for (int i = 0; i < 5; i++)
		assert_in_range(poll_ns(), 0, SOON_NS);
	flag_set(&has_polled);
	kind->barrier();
}

static void a_callback_of_rcu_delays_no_cookie(void **state)
{
	(void)state;
	beside_a_callback(&rcu, polled_ns);
}

static void a_callback_of_a_domain_delays_no_cookie(void **state)
{
	(void)state;
	beside_a_callback(&srcu, polled_ns);
}

/* Poll in sections only, which are newer than the cookie. */
static uint64_t polled_in_sections_ns(void)
{
	uint64_t begin = now_ns();
	struct rcu_gp_seq seq = kind->start();

	for (int done = 0; !done;) {
		rcu_read_lock();
		done = kind->poll(seq);
		rcu_read_unlock();
		short_rest();
	}
	return now_ns() - begin;
}

static void a_cookie_is_completed_by_polls_in_sections(void **state)
{
	(void)state;
	beside_a_callback(&rcu, polled_in_sections_ns);
}

static uint64_t took_ns;

static void polls(struct rcu_head *head)
{
	(void)head;
	took_ns = polled_ns();
}

static void a_callback_polls(const struct kind *of)
{
	static struct rcu_head head;

	kind = of;
	took_ns = 0;
	kind->queue(&head, polls);
	kind->barrier();
	assert_in_range(took_ns, 1, SOON_NS);
}

static void a_callback_of_rcu_polls_its_own_cookie(void **state)
{
	(void)state;
	a_callback_polls(&rcu);
}

static void a_callback_of_a_domain_polls_its_own_cookie(void **state)
{
	(void)state;
	a_callback_polls(&srcu);
}

/* ---- the worker has the poller's CPU, and a lower priority ---- */

static void pin_to(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	assert_int_equal(sched_setaffinity(0, sizeof set, &set), 0);
}

static void *spins(void *cpu)
{
	struct sched_param high = { .sched_priority = 1 };
	struct rcu_gp_seq seq;
	uint64_t begin;

	pin_to(*(int *)cpu);
	if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &high))
		return NULL;
	begin = now_ns();
	seq = start_poll_synchronize_rcu();
	while (!poll_state_synchronize_rcu(seq) && now_ns() - begin < SOON_NS)
		;
	quiesce_store_relaxed(&took_ns, now_ns() - begin);
	return NULL;
}

static void a_poller_may_keep_the_worker_from_its_cpu(void **state)
{
	int cpu = sched_getcpu();
	pthread_t thread;

	(void)state;
	if (quiesce_set_worker_cpu(cpu)) {
		print_message("# the worker cannot have this CPU: not tried\n");
		return;
	}
	quiesce_store_relaxed(&took_ns, 0);
	kind = &rcu;
	polled_ns(); /* there is a worker */
	thread_must(pthread_create(&thread, NULL, spins, &cpu));
	pthread_join(thread, NULL);
	quiesce_set_worker_cpu(-1);
	if (took_ns)
		assert_in_range(took_ns, 1, SOON_NS - 1);
	else
		print_message("# no real-time priorities here: not tried\n");
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(a_callback_of_rcu_delays_no_cookie),
		TEST(a_callback_of_a_domain_delays_no_cookie),
		TEST(a_cookie_is_completed_by_polls_in_sections),
		TEST(a_callback_of_rcu_polls_its_own_cookie),
		TEST(a_callback_of_a_domain_polls_its_own_cookie),
		TEST(a_poller_may_keep_the_worker_from_its_cpu),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
