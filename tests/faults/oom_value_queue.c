/* SPDX-License-Identifier: MIT */
/* oom_value_queue.c - for oom.py: a push without memory changes nothing, and the next one succeeds. */
#include <quiesce/ds/value_queue.h>
#include <quiesce/rcu.h>

#include <errno.h>
#include <stdint.h>
#include <unistd.h>

#define NR_VALUES 3000u

static struct value_queue queue;
static int ok = 1;

static void must(int condition)
{
	ok &= condition != 0;
}

/* Three are pushed for each that is popped, so that the rings become larger; without memory one is popped for the space. */
static void use(void)
{
	uint64_t next = 1, oldest = 1, value;
	int err;

	while (next <= NR_VALUES) {
		err = value_queue_push(&queue, &next);
		must(err == 0 || err == -ENOMEM);
		next += err == 0;
		must(value_queue_count(&queue) == next - oldest);
		if (err || next % 3 == 0)
			must(value_queue_pop_try(&queue, &value) == 0 && value == oldest++);
	}
	while (oldest < next)
		must(value_queue_pop_try(&queue, &value) == 0 && value == oldest++);
	must(value_queue_pop_try(&queue, &value) == -EAGAIN);
}

int main(void)
{
	int err;

	alarm(25);
	for (int i = 0; i < 2; i++) {
		err = value_queue_init(&queue, sizeof(uint64_t), 0);
		must(err == 0 || err == -ENOMEM);
		if (err)
			continue;
		use();
		value_queue_destroy(&queue, NULL, NULL);
	}
	rcu_barrier();
	return !ok;
}
