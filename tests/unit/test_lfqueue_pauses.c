/* SPDX-License-Identifier: MIT */
/* test_lfqueue_pauses.c - a thread that has lfqueue for itself never pauses in a call: no other thread can have been faster. */
#include <quiesce/atomic.h>

static unsigned int nr_pauses;
#undef quiesce_cpu_relax
#define quiesce_cpu_relax() ((void)nr_pauses++)

/* The queue of the library stays beside this one, so its functions need other names. */
#define quiesce_lfq_enqueue counted_enqueue
#define quiesce_lfq_dequeue counted_dequeue
#define quiesce_lfq_destroy counted_destroy
#include "queue/lfqueue.c"

#include "testing.h"

static struct lfq_queue queue = LFQ_INIT;

/* A burst is put into the empty queue, then all of it is taken. */
static void burst(struct lfq_node *nodes, int nr)
{
	rcu_read_lock();
	for (int i = 0; i < nr; i++)
		lfq_enqueue(&queue, &nodes[i]);
	for (int i = 0; i < nr; i++)
		assert_ptr_equal(lfq_dequeue(&queue), &nodes[i]);
	assert_null(lfq_dequeue(&queue));
	rcu_read_unlock();
	synchronize_rcu(); /* the nodes will be used again */
}

static void bursts_without_a_pause(void **state)
{
	struct lfq_node nodes[5];

	(void)state;
	for (int nr = 1; nr <= 5; nr++)
		for (int round = 0; round < 3; round++)
			burst(nodes, nr);
	assert_int_equal(nr_pauses, 0);
	assert_int_equal(lfq_destroy(&queue), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { TEST(bursts_without_a_pause) };

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
