/* SPDX-License-Identifier: MIT */
/* smoke.c - the shortest use of each primitive, without a test framework: for
 * cross-built and emulated runs, where none is at hand.  Exit 0 or the number of failures.
 *
 *     smoke [NR_UPDATES]     a multiple of five; memcheck is slow, and gets fewer */
#include <quiesce/control.h>
#include <quiesce/rcu.h>
#include <quiesce/shazptr.h>

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#define NR_READERS 3
#define MAGIC 0x600dcafe

struct node {
	struct rcu_head rcu;
	unsigned int magic;
};

static struct node *shared;
static struct node *single; /* by hazard pointers */
static int stop, failures, nr_freed, nr_started;
static uint64_t nr_reads;

static void check(int ok, const char *what)
{
	printf("%s - %s\n", ok ? "ok" : "not ok", what);
	failures += !ok;
}

static struct node *node_new(void)
{
	struct node *n = malloc(sizeof *n);

	if (!n)
		abort();
	n->magic = MAGIC;
	return n;
}

static void node_kill(struct node *n)
{
	n->magic = 0xdead;
	free(n);
}

static void node_callback(struct rcu_head *head)
{
	node_kill((struct node *)((char *)head - offsetof(struct node, rcu)));
	nr_freed++;
}

static void read_single(void)
{
	shazptr_scoped struct shazptr_guard guard = shazptr_protect(&single), nested = shazptr_acquire(&single);

	if (((struct node *)shazptr_ptr(guard))->magic != MAGIC || shazptr_ptr(nested) != (void *)&single)
		abort();
}

static void *reader(void *arg)
{
	uint64_t reads = 0;

	(void)arg;
	while (!quiesce_load_relaxed(&stop)) { /* Relaxed: ends some time. */
		rcu_read_lock();
		rcu_read_lock();
		if (rcu_dereference(shared)->magic != MAGIC)
			abort();
		rcu_read_unlock();
		rcu_read_unlock();
		read_single();
		if (reads++ == 0)
			quiesce_fetch_add_relaxed(&nr_started, 1); /* Relaxed: main() waits for the number only. */
	}
	quiesce_fetch_add_relaxed(&nr_reads, reads); /* Relaxed: joined before it is read. */
	return NULL;
}

static void update(int how)
{
	struct node *old = rcu_xchg_pointer(&shared, node_new());
	struct rcu_gp_seq seq;

	switch (how) {
	case 0:
		synchronize_rcu();
		node_kill(old);
		break;
	case 1:
		synchronize_rcu_expedited();
		node_kill(old);
		break;
	case 2:
		call_rcu(&old->rcu, node_callback);
		break;
	case 3:
		kfree_rcu(old, rcu);
		break;
	default:
		seq = start_poll_synchronize_rcu();
		while (!poll_state_synchronize_rcu(seq))
			sched_yield();
		node_kill(old);
	}
}

static void update_single(void)
{
	struct node *old = rcu_xchg_pointer(&single, node_new());

	synchronize_shazptr(old);
	node_kill(old);
}

/* Use macros whose code differs from CPU to CPU. */
static void publish(void)
{
	static int one, two, three;
	int *p, *expected = &one;

	RCU_INIT_POINTER(p, NULL);
	rcu_assign_pointer(p, &one);
	check(rcu_xchg_pointer(&p, &two) == &one && rcu_access_pointer(p) == &two, "rcu_xchg_pointer()");
	check(!rcu_try_cmpxchg_pointer(&p, &expected, &three) && expected == &two, "rcu_try_cmpxchg_pointer() of another pointer");
	check(rcu_try_cmpxchg_pointer(&p, &expected, &three) && rcu_access_pointer(p) == &three, "rcu_try_cmpxchg_pointer()");
	check(rcu_cmpxchg_pointer(&p, &one, &two) == &three && rcu_access_pointer(p) == &three, "rcu_cmpxchg_pointer() of another pointer");
	check(rcu_cmpxchg_pointer(&p, &three, &two) == &three && rcu_access_pointer(p) == &two, "rcu_cmpxchg_pointer()");
	check(rcu_replace_pointer(p, &one, 1) == &two && rcu_dereference_protected(p, 1) == &one, "rcu_replace_pointer()");
}

int main(int argc, char **argv)
{
	const int nr_updates = argc > 1 ? atoi(argv[1]) : 300;
	pthread_t thread[NR_READERS];
	struct quiesce_stats stats;

	publish();
	shared = node_new();
	single = node_new();
	for (int i = 0; i < NR_READERS; i++)
		if (pthread_create(&thread[i], NULL, reader, NULL))
			abort();
	while (quiesce_load_relaxed(&nr_started) < NR_READERS) /* Relaxed: the number publishes nothing. */
		sched_yield();
	for (int i = 0; i < nr_updates; i++) {
		update(i % 5);
		update_single();
	}
	rcu_barrier();
	check(nr_freed == nr_updates / 5, "every callback has run when rcu_barrier() returns");
	quiesce_store_relaxed(&stop, 1); /* Relaxed: the number publishes nothing. */
	for (int i = 0; i < NR_READERS; i++)
		pthread_join(thread[i], NULL);
	check(nr_reads > 0, "readers did work");
	check(quiesce_shutdown(0) == 0, "shutdown");
	quiesce_get_stats(&stats, sizeof stats);
	check(stats.garbage_objects == 0, "no garbage left");
	check(stats.grace_periods >= (uint64_t)nr_updates / 5 * 3, "grace periods were counted");
	check(stats.shazptr_waits == (uint64_t)nr_updates, "waits for single objects were counted");
	check(stats.readers == 0, "threads that exited are not registered");
	node_kill(shared);
	node_kill(single);
	printf("hazard pointers: slots of kind %d, %llu of %llu waits blocked, %llu overflows\n", (int)quiesce_slots(),
	       (unsigned long long)stats.shazptr_blocked, (unsigned long long)stats.shazptr_waits,
	       (unsigned long long)stats.overflows);
	printf("%s fences, %llu reads, %llu grace periods, %llu membarriers, %llu sleeps, %llu wakeups, %llu yields\n",
	       quiesce_fence() == QUIESCE_FENCE_LIGHT ? "light" : "full", (unsigned long long)nr_reads,
	       (unsigned long long)stats.grace_periods, (unsigned long long)stats.membarriers,
	       (unsigned long long)stats.sleeps, (unsigned long long)stats.wakeups, (unsigned long long)stats.yields);
	return failures;
}
