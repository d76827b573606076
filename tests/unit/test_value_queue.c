/* SPDX-License-Identifier: MIT */
/* test_value_queue.c - value_queue: order, sizes, limits, sleeps and the end; under load no value is lost, or taken twice, or overtaken. */
#include "value_queues.h"

#define BOUNDED 64u

/* ---- one thread ---- */

static void arguments(void **state)
{
	struct value_queue q;

	(void)state;
	assert_int_equal(value_queue_init(&q, 0, 1), -EINVAL);
	assert_int_equal(value_queue_init(&q, 1, (size_t)1 << 33), -EINVAL);
	assert_int_equal(value_queue_init(&q, (size_t)1 << 31, 1), -EINVAL);
	assert_int_equal(sizeof q, 6 * QUIESCE_CACHELINE);
}

static void limits(void **state)
{
	struct value_queue q;

	(void)state;
	for (size_t capacity = 1; capacity <= 20; capacity++) {
		size_t rounded = 1;

		while (rounded < capacity)
			rounded *= 2;
		begin(&q, sizeof(uint64_t), capacity);
		for (unsigned int turn = 0; turn < 5; turn++) {
			assert_int_equal(take(&q), 0);
			for (size_t i = 1; i <= rounded; i++)
				assert_int_equal(put(&q, i), 0);
			assert_int_equal(put(&q, 99), -EAGAIN);
			assert_int_equal(value_queue_count(&q), rounded);
			for (size_t i = 1; i <= rounded; i++)
				assert_int_equal(take(&q), i);
			assert_int_equal(value_queue_count(&q), 0);
		}
		value_queue_destroy(&q, NULL, NULL);
	}
}

static void many_at_once(void **state)
{
	uint64_t values[200], found[200];
	struct value_queue q;
	uint64_t next = 1, oldest = 1;
	long got;

	(void)state;
	for (size_t capacity = 0; capacity <= BOUNDED; capacity += BOUNDED) {
		begin(&q, sizeof(uint64_t), capacity);
		assert_int_equal(value_queue_push_many(&q, values, 0), 0);
		assert_int_equal(value_queue_pop_many(&q, found, 0), 0);
		assert_int_equal(value_queue_pop_many(&q, found, 9), -EAGAIN);
		for (size_t nr = 1; nr <= 200; nr++) {
			for (size_t i = 0; i < nr; i++)
				values[i] = next + i;
			got = value_queue_push_many(&q, values, nr);
			assert_int_equal(got, capacity && nr > BOUNDED ? BOUNDED : nr);
			next += (uint64_t)got;
			while ((got = value_queue_pop_many(&q, found, 1 + nr % 50)) > 0)
				for (long i = 0; i < got; i++)
					assert_int_equal(found[i], oldest++);
			assert_int_equal(got, -EAGAIN);
			assert_int_equal(oldest, next);
		}
		value_queue_destroy(&q, NULL, NULL);
	}
}

static void is_aligned(void **state)
{
	struct quiesce__vq_claim claim;
	struct value_queue q;

	(void)state;
	for (size_t size = 8; size <= 64; size += 8) {
		begin(&q, size, 4);
		for (int i = 0; i < 4; i++) {
			assert_int_equal(quiesce__vq_push_begin(&q, 0, &claim), 0);
			assert_int_equal((uintptr_t)claim.cell % (size < 16 ? 8 : 16), 0);
			quiesce__vq_push_end(&q, &claim);
		}
		value_queue_destroy(&q, NULL, NULL);
	}
}

/* The state left by a pusher that stopped in its push. */
static void half_pushed(void **state)
{
	struct quiesce__vq_claim claim;
	struct value_queue q;
	uint64_t value;

	(void)state;
	begin(&q, sizeof(uint64_t), 4);
	assert_int_equal(quiesce__vq_push_begin(&q, 0, &claim), 0);
	assert_int_equal(put(&q, 2), 0);
	assert_int_equal(value_queue_pop_try(&q, &value), -EBUSY);
	assert_int_equal(value_queue_pop_many(&q, &value, 1), -EBUSY);
	assert_int_equal(value_queue_pop_timeout(&q, &value, 1000000), -ETIMEDOUT);
	value = 1;
	memcpy(claim.cell, &value, sizeof value);
	quiesce__vq_push_end(&q, &claim);
	assert_int_equal(take(&q), 1);
	assert_int_equal(take(&q), 2);
	for (uint64_t i = 1; i <= 4; i++)
		assert_int_equal(put(&q, i), 0);
	assert_int_equal(quiesce__vq_pop_begin(&q, 0, &claim), 0);
	assert_int_equal(put(&q, 5), -EBUSY);
	assert_int_equal(take(&q), 2);
	assert_int_equal(put(&q, 5), -EBUSY);
	quiesce__vq_pop_end(&q, &claim);
	assert_int_equal(put(&q, 5), 0);
	value_queue_destroy(&q, NULL, NULL);
}

static void drop(void *value, void *arg)
{
	uint64_t word, *sum = arg;

	memcpy(&word, value, sizeof word);
	*sum = *sum * 10 + word;
}

static void values_inside_are_dropped(void **state)
{
	struct value_queue q;
	uint64_t sum = 0;

	(void)state;
	begin(&q, sizeof(uint64_t), 4);
	for (uint64_t i = 1; i <= 4; i++)
		put(&q, i);
	assert_int_equal(take(&q), 1);
	put(&q, 5);
	value_queue_destroy(&q, drop, &sum);
	assert_int_equal(sum, 2345);
	sum = 0;
	begin(&q, sizeof(uint64_t), 0);
	for (uint64_t i = 0; i < 1000; i++)
		put(&q, i == 999 || i < 3);
	value_queue_destroy(&q, drop, &sum);
	assert_true(sum % 10 == 1);
}

static void closed(void **state)
{
	struct value_queue q;
	uint64_t value = 7;

	(void)state;
	for (size_t capacity = 0; capacity <= 2; capacity++) {
		begin(&q, sizeof(uint64_t), capacity);
		assert_false(value_queue_is_closed(&q));
		put(&q, 1);
		value_queue_close(&q);
		value_queue_close(&q);
		assert_true(value_queue_is_closed(&q));
		assert_int_equal(put(&q, 2), -EPIPE);
		assert_int_equal(value_queue_push(&q, &value), -EPIPE);
		assert_int_equal(value_queue_push_many(&q, &value, 1), -EPIPE);
		assert_int_equal(value_queue_push_many_timeout(&q, &value, 1, UINT64_MAX), -EPIPE);
		assert_int_equal(take(&q), 1);
		assert_int_equal(value_queue_pop(&q, &value), -EPIPE);
		assert_int_equal(value_queue_pop_many(&q, &value, 1), -EPIPE);
		assert_int_equal(value_queue_pop_many_timeout(&q, &value, 1, UINT64_MAX), -EPIPE);
		assert_int_equal(value_queue_pop_timeout(&q, &value, 1), -EPIPE);
		value_queue_destroy(&q, NULL, NULL);
	}
	begin(&q, sizeof(uint64_t), 0); /* this one gets several rings */
	for (uint64_t i = 1; i <= 1000; i++)
		put(&q, i);
	value_queue_close(&q);
	assert_int_equal(put(&q, 2), -EPIPE);
	for (uint64_t i = 1; i <= 1000; i++)
		assert_int_equal(take(&q), i);
	assert_int_equal(value_queue_pop(&q, &value), -EPIPE);
	value_queue_destroy(&q, NULL, NULL);
	rcu_barrier();
}

static void timeouts(void **state)
{
	struct value_queue q;
	uint64_t value = 1, begun = now_ns();

	(void)state;
	begin(&q, sizeof(uint64_t), 1);
	assert_int_equal(value_queue_pop_timeout(&q, &value, 0), -EAGAIN);
	assert_int_equal(value_queue_pop_timeout(&q, &value, 20000000), -ETIMEDOUT);
	assert_true(now_ns() - begun >= 20000000);
	assert_int_equal(value_queue_push_timeout(&q, &value, 1), 0);
	assert_int_equal(value_queue_push_timeout(&q, &value, 0), -EAGAIN);
	begun = now_ns();
	assert_int_equal(value_queue_push_timeout(&q, &value, 20000000), -ETIMEDOUT);
	assert_true(now_ns() - begun >= 20000000);
	assert_int_equal(value_queue_pop_timeout(&q, &value, UINT64_MAX - 1), 0);
	value_queue_destroy(&q, NULL, NULL);
}

static void timeouts_of_many(void **state)
{
	uint64_t values[4] = { 1, 2, 3, 4 }, found[4];
	struct value_queue q;

	(void)state;
	begin(&q, sizeof(uint64_t), 2);
	assert_int_equal(value_queue_pop_many_timeout(&q, found, 0, UINT64_MAX), 0);
	assert_int_equal(value_queue_push_many_timeout(&q, values, 0, UINT64_MAX), 0);
	assert_int_equal(value_queue_pop_many_timeout(&q, found, 4, 0), -EAGAIN);
	assert_int_equal(value_queue_pop_many_timeout(&q, found, 4, 1000000), -ETIMEDOUT);
	assert_int_equal(value_queue_push_many_timeout(&q, values, 4, 1000000), 2);
	assert_int_equal(value_queue_push_many_timeout(&q, values, 4, 1000000), -ETIMEDOUT);
	assert_int_equal(value_queue_push_many_timeout(&q, values, 4, 0), -EAGAIN);
	assert_int_equal(value_queue_pop_many_timeout(&q, found, 4, UINT64_MAX), 2);
	assert_int_equal(found[0] * 10 + found[1], 12);
	value_queue_destroy(&q, NULL, NULL);
}

/* ---- several threads ---- */

#define NR_THREADS 4
#define NR_EACH 30000u

static struct value_queue queue;
static int nr_wrong, nr_taken, nr_inside;

static void *pushes_main(void *arg)
{
	uint64_t from = (uint64_t)(uintptr_t)arg << 32, value;

	for (uint64_t i = 1; i <= NR_EACH; i++) {
		value = from | i;
		if (value_queue_push(&queue, &value))
			count_up(&nr_wrong);
	}
	return NULL;
}

static bool in_order(uint64_t *newest, uint64_t value)
{
	uint64_t from = value >> 32, nr = (uint32_t)value;
	bool good = from < NR_THREADS && nr > newest[from];

	newest[from % NR_THREADS] = nr;
	count_up(&nr_taken);
	return good;
}

static void *pops_main(void *arg)
{
	uint64_t newest[NR_THREADS] = { 0 }, values[8];
	long got = 1;

	(void)arg;
	for (unsigned int turn = 0; got > 0 || got == -EAGAIN || got == -EBUSY; turn++) {
		if (turn % 4)
			got = value_queue_pop(&queue, &values[0]) ? -EPIPE : 1;
		else
			got = value_queue_pop_many(&queue, values, 8);
		for (long i = 0; i < got; i++)
			if (!in_order(newest, values[i]))
				count_up(&nr_wrong);
	}
	if (got != -EPIPE)
		count_up(&nr_wrong);
	return NULL;
}

#define NR_AT_ONCE 100u

static void *pushes_many_main(void *arg)
{
	uint64_t from = (uint64_t)(uintptr_t)arg << 32, values[NR_AT_ONCE];

	for (uint64_t i = 0; i < NR_EACH; i += NR_AT_ONCE) {
		for (uint64_t k = 0; k < NR_AT_ONCE; k++)
			values[k] = from | (i + k + 1);
		if (value_queue_push_many_timeout(&queue, values, NR_AT_ONCE, UINT64_MAX) != NR_AT_ONCE)
			count_up(&nr_wrong);
	}
	return NULL;
}

static void *pops_many_main(void *arg)
{
	uint64_t newest[NR_THREADS] = { 0 }, values[NR_AT_ONCE];
	long got;

	(void)arg;
	while ((got = value_queue_pop_many_timeout(&queue, values, NR_AT_ONCE, UINT64_MAX)) > 0)
		for (long i = 0; i < got; i++)
			if (!in_order(newest, values[i]))
				count_up(&nr_wrong);
	if (got != -EPIPE)
		count_up(&nr_wrong);
	return NULL;
}

static void load_of(size_t capacity, void *(*pushes)(void *), void *(*pops)(void *))
{
	pthread_t pusher[NR_THREADS], taker[NR_THREADS];

	nr_wrong = nr_taken = 0;
	begin(&queue, sizeof(uint64_t), capacity);
	threads_begin(taker, NR_THREADS, pops, NULL);
	for (int i = 0; i < NR_THREADS; i++)
		thread_must(pthread_create(&pusher[i], NULL, pushes, (void *)(uintptr_t)i));
	threads_end(pusher, NR_THREADS);
	value_queue_close(&queue);
	threads_end(taker, NR_THREADS);
	assert_int_equal(nr_wrong, 0);
	assert_int_equal(nr_taken, NR_THREADS * NR_EACH);
	value_queue_destroy(&queue, NULL, NULL);
	rcu_barrier();
}

static void load(void **state)
{
	(void)state;
	load_of(1, pushes_main, pops_main);
	load_of(BOUNDED, pushes_main, pops_main);
	load_of(0, pushes_main, pops_main);
	load_of(BOUNDED, pushes_many_main, pops_many_main);
	load_of(0, pushes_many_main, pops_many_main);
}

static void *takes_one_main(void *arg)
{
	uint64_t value;

	(void)arg;
	count_up(&nr_inside);
	if (value_queue_pop(&queue, &value) == 0)
		count_up(&nr_taken);
	return NULL;
}

static void *puts_one_main(void *arg)
{
	uint64_t value = 1;

	(void)arg;
	count_up(&nr_inside);
	if (value_queue_push(&queue, &value) == 0)
		count_up(&nr_taken);
	return NULL;
}

/* All threads sleep; as many values or as much space come at once, and each thread has its part. */
static void sleepers(void **state)
{
	uint64_t values[NR_THREADS] = { 1, 2, 3, 4 };
	pthread_t thread[NR_THREADS];

	(void)state;
	for (int round = 0; round < 40; round++) {
		nr_inside = nr_taken = 0;
		begin(&queue, sizeof(uint64_t), round % 2 ? NR_THREADS : 0);
		threads_begin(thread, NR_THREADS, takes_one_main, NULL);
		wait_until(quiesce_load_relaxed(&queue.takers.nr) == NR_THREADS);
		assert_int_equal(value_queue_push_many(&queue, values, NR_THREADS), NR_THREADS);
		threads_end(thread, NR_THREADS);
		assert_int_equal(nr_taken, NR_THREADS);
		value_queue_destroy(&queue, NULL, NULL);

		nr_inside = nr_taken = 0;
		begin(&queue, sizeof(uint64_t), NR_THREADS);
		assert_int_equal(value_queue_push_many(&queue, values, NR_THREADS), NR_THREADS);
		threads_begin(thread, NR_THREADS, puts_one_main, NULL);
		wait_until(quiesce_load_relaxed(&queue.pushers.nr) == NR_THREADS);
		assert_int_equal(value_queue_pop_many(&queue, values, NR_THREADS), NR_THREADS);
		threads_end(thread, NR_THREADS);
		assert_int_equal(nr_taken, NR_THREADS);
		value_queue_destroy(&queue, NULL, NULL);
	}
}

static void close_wakes(void **state)
{
	pthread_t taker[NR_THREADS], pusher[NR_THREADS];
	uint64_t value = 1;

	(void)state;
	for (size_t capacity = 0; capacity < 2; capacity++) {
		nr_taken = 0;
		begin(&queue, sizeof(uint64_t), capacity);
		threads_begin(taker, NR_THREADS, takes_one_main, NULL);
		wait_until(quiesce_load_relaxed(&queue.takers.nr) == NR_THREADS);
		value_queue_close(&queue);
		threads_end(taker, NR_THREADS);
		assert_int_equal(nr_taken, 0);
		value_queue_destroy(&queue, NULL, NULL);
	}
	begin(&queue, sizeof(uint64_t), 1);
	assert_int_equal(value_queue_push(&queue, &value), 0);
	threads_begin(pusher, NR_THREADS, puts_one_main, NULL);
	wait_until(quiesce_load_relaxed(&queue.pushers.nr) == NR_THREADS);
	value_queue_close(&queue);
	threads_end(pusher, NR_THREADS);
	assert_int_equal(nr_taken, 0);
	assert_int_equal(take(&queue), 1);
	value_queue_destroy(&queue, NULL, NULL);
}

#ifndef __SANITIZE_THREAD__
static void use_in_child(void)
{
	must(take(&queue) == 1 && take(&queue) == 2 && take(&queue) == 0);
	for (uint64_t i = 1; i < 500; i++)
		must(put(&queue, i) == 0);
	for (uint64_t i = 1; i < 500; i++)
		must(take(&queue) == i);
}

static void in_a_child(void **state)
{
	(void)state;
	begin(&queue, sizeof(uint64_t), 0);
	put(&queue, 1);
	put(&queue, 2);
	succeeds(use_in_child);
	assert_int_equal(take(&queue), 1);
	value_queue_destroy(&queue, NULL, NULL);
}
#endif

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(arguments), TEST(limits), TEST(many_at_once), TEST(is_aligned), TEST(half_pushed), TEST(values_inside_are_dropped),
		TEST(closed), TEST(timeouts), TEST(timeouts_of_many),
#ifndef __SANITIZE_THREAD__
		TEST(in_a_child),
#endif
		TEST(load), TEST(sleepers), TEST(close_wakes),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
