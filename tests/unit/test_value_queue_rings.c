/* SPDX-License-Identifier: MIT */
/* test_value_queue_rings.c - value_queue: values of all sizes are copied whole; which rings a queue gets, and when. */
#include "value_queues.h"

/* ---- values ---- */

static void sizes(void **state)
{
	static const size_t size[] = { 1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33, 40, 48, 63, 64, 65, 200 };
	unsigned char value[200], found[201];
	struct value_queue q;

	(void)state;
	for (size_t s = 0; s < sizeof size / sizeof *size; s++)
		for (size_t capacity = 0; capacity <= 8; capacity += 8) {
			begin(&q, size[s], capacity);
			for (unsigned int i = 0; i < 300; i++) {
				for (size_t at = 0; at < sizeof value; at++)
					value[at] = (unsigned char)(i + 7 * at);
				memset(found, 0xee, sizeof found);
				assert_int_equal(value_queue_push(&q, value), 0);
				assert_int_equal(value_queue_pop(&q, found), 0);
				assert_memory_equal(value, found, size[s]);
				assert_int_equal(found[size[s]], 0xee);
			}
			value_queue_destroy(&q, NULL, NULL);
		}
}

/* Arrays of values of each size, at all places of a ring. */
static void many_of_each_size(void **state)
{
	static unsigned char value[5 * 80], found[sizeof value + 1];
	struct value_queue q;

	(void)state;
	for (size_t size = 1; size <= 80; size++) {
		begin(&q, size, 8);
		for (unsigned int turn = 0; turn < 16; turn++) {
			for (size_t i = 0; i < 5 * size; i++)
				value[i] = (unsigned char)(turn + 7 * i);
			memset(found, 0xee, sizeof found);
			assert_int_equal(value_queue_push_many(&q, value, 5), 5);
			assert_int_equal(value_queue_pop_many(&q, found, 2), 2);
			assert_int_equal(value_queue_pop_many(&q, found + 2 * size, 4), 3);
			assert_memory_equal(value, found, 5 * size);
			assert_int_equal(found[5 * size], 0xee);
		}
		value_queue_destroy(&q, NULL, NULL);
	}
}

/* ---- rings ---- */

/* An unbounded queue of large values begins with a few cells. */
static void large_values(void **state)
{
	static char value[100000], found[sizeof value];
	struct value_queue q;

	(void)state;
	begin(&q, sizeof value, 0);
	for (int i = 0; i < 5; i++) {
		memset(value, i, sizeof value);
		assert_int_equal(value_queue_push(&q, value), 0);
	}
	for (int i = 0; i < 5; i++) {
		assert_int_equal(value_queue_pop(&q, found), 0);
		memset(value, i, sizeof value);
		assert_memory_equal(value, found, sizeof value);
	}
	value_queue_destroy(&q, NULL, NULL);
}

/* The rings of an unbounded queue become larger, and those that were emptied are freed. */
static void growth(void **state)
{
	struct value_queue q;
	uint64_t next = 1, oldest = 1;

	(void)state;
	begin(&q, sizeof(uint64_t), 0);
	for (int turn = 0; turn < 12; turn++) {
		for (int i = 0; i < 30000; i++)
			assert_int_equal(put(&q, next++), 0);
		assert_int_equal(value_queue_count(&q), next - oldest);
		for (int i = 0; i < 25000; i++)
			assert_int_equal(take(&q), oldest++);
	}
	while (oldest < next)
		assert_int_equal(take(&q), oldest++);
	assert_int_equal(take(&q), 0);
	value_queue_destroy(&q, NULL, NULL);
	rcu_barrier();
}

static void a_short_queue_keeps_its_ring(void **state)
{
	struct value_queue q;
	const void *ring;

	(void)state;
	begin(&q, sizeof(uint64_t), 0);
	ring = q.push_ring;
	for (uint64_t i = 1; i < 10000; i++) {
		assert_int_equal(put(&q, i), 0);
		assert_int_equal(take(&q), i);
	}
	assert_ptr_equal(q.push_ring, ring);
	assert_ptr_equal(q.pop_ring, ring);
	value_queue_destroy(&q, NULL, NULL);
}

/* Put one in and take one @nr times; returns how often the queue has got another ring. */
static int ring_changes(struct value_queue *q, char *value, int nr)
{
	int changes = 0;

	for (int i = 0; i < nr; i++) {
		const void *ring = q->push_ring;

		assert_int_equal(value_queue_push(q, value), 0);
		changes += q->push_ring != ring;
		assert_int_equal(value_queue_pop(q, value), 0);
	}
	return changes;
}

/* A queue of a steady length allocates nothing once it has a ring of that length. */
static void a_steady_queue_allocates_nothing(void **state)
{
	static const struct {
		size_t size;
		int length;
	} of[] = { { 8, 3000 }, { 256, 3000 }, { 4096, 200 }, { 60000, 50 }, { 500000, 3 } };
	static char value[500000];
	struct value_queue q;

	(void)state;
	for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
		begin(&q, of[i].size, 0);
		for (int nr = 0; nr < of[i].length; nr++)
			assert_int_equal(value_queue_push(&q, value), 0);
		assert_true(ring_changes(&q, value, 3 * of[i].length) > 0);
		assert_int_equal(ring_changes(&q, value, 3 * of[i].length), 0);
		value_queue_destroy(&q, NULL, NULL);
	}
	rcu_barrier();
}

/* Return the number of cells of the last ring of an empty queue, which becomes full. */
static unsigned int fill_ring(struct value_queue *q)
{
	const void *ring = q->push_ring;
	unsigned int cells = 0;

	assert_int_equal(put(q, 1), 0);
	for (; q->push_ring == ring; cells++)
		assert_int_equal(put(q, 1), 0);
	return cells;
}

static struct value_queue held;
static int nr_held, nr_released;

#define NR_ROUNDS 20

/* Stops in each pop until the other thread has come round to its cell. */
static void *holds_main(void *arg)
{
	struct quiesce__vq_claim claim;

	(void)arg;
	for (int round = 1; round <= NR_ROUNDS; round++) {
		if (quiesce__vq_pop_begin(&held, UINT64_MAX, &claim))
			return NULL;
		count_up(&nr_held);
		wait_until(quiesce_load_relaxed(&nr_released) == round);
		quiesce__vq_pop_end(&held, &claim);
	}
	return NULL;
}

/* A queue of two threads that never has more than two elements does not grow, though one of them stops in its pops. */
static void a_slow_taker_does_not_let_it_grow(void **state)
{
	const void *ring;
	unsigned int cells, nr_changes = 0;
	pthread_t taker;

	(void)state;
	begin(&held, sizeof(uint64_t), 0);
	cells = fill_ring(&held);
	value_queue_destroy(&held, NULL, NULL);
	begin(&held, sizeof(uint64_t), 0);
	threads_begin(&taker, 1, holds_main, NULL);
	for (int round = 1; round <= NR_ROUNDS; round++) {
		ring = held.push_ring;
		assert_int_equal(put(&held, 1), 0);
		wait_until(quiesce_load_relaxed(&nr_held) == round);
		for (unsigned int i = 0; i < 4 * cells; i++) {
			assert_int_equal(put(&held, 2), 0);
			assert_int_equal(take(&held), 2);
		}
		nr_changes += held.push_ring != ring;
		count_up(&nr_released);
	}
	threads_end(&taker, 1);
	assert_int_equal(nr_changes, NR_ROUNDS);
	assert_int_equal(fill_ring(&held), cells);
	value_queue_destroy(&held, NULL, NULL);
	rcu_barrier();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(sizes), TEST(many_of_each_size), TEST(large_values), TEST(growth), TEST(a_short_queue_keeps_its_ring),
		TEST(a_steady_queue_allocates_nothing), TEST(a_slow_taker_does_not_let_it_grow),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
