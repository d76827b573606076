/* SPDX-License-Identifier: MIT */
/* torture_read.c - readers that keep an element for a while and check it again and again. */
#include <sched.h>
#include <signal.h>
#include <stdlib.h>

#include "torture.h"

static __thread struct tally *my_tally; /* for the signal handler */

/* Stores that miss the cache fill the store buffer, so that the store to the reader word stays in it. */
static void fill_store_buffer(char *region, uint64_t *random)
{
	for (int i = 0; i < 8; i++)
		quiesce_store_relaxed((uint64_t *)(region + (random_next(random) % FILL_BYTES & ~63ul)), *random);
}

void torture_take_element(struct hold *h)
{
	h->completed = quiesce_load_relaxed(&torture.completed);
	h->object = torture.op->pointer->fetch((void **)&torture.current[0]);
	h->serial = quiesce_load_relaxed(&((struct element *)h->object)->serial);
}

void torture_check_element(const struct hold *h, struct tally *t)
{
	const struct element *e = h->object;

	if (!quiesce_load_relaxed(&e->canary))
		torture_count(t->n[TALLY_CANARY_ERRORS]);
	if (quiesce_load_relaxed(&e->magic) != MAGIC)
		torture_count(t->n[TALLY_MAGIC_ERRORS]);
	if (quiesce_load_relaxed(&e->serial) != h->serial)
		torture_count(t->n[TALLY_REUSE_ERRORS]);
}

void torture_end_element(const struct hold *h, struct tally *t)
{
	uint64_t age = quiesce_load_relaxed(&((struct element *)h->object)->age);
	uint64_t batch = quiesce_load_relaxed(&torture.completed) - h->completed;

	torture_check_element(h, t);
	torture_count(t->n[TALLY_PIPE + (age > PIPE_LENGTH ? PIPE_LENGTH : age)]);
	torture_count(t->n[TALLY_BATCH + (batch > PIPE_LENGTH ? PIPE_LENGTH : batch)]);
}

static void read_end(struct hold *h, struct tally *t)
{
	torture_end_element(h, t);
	torture.op->read->unlock();
	torture_count(t->n[TALLY_READS]);
}

bool torture_read_begin(struct hold *h, uint64_t *random, bool at_once)
{
	(void)random, (void)at_once;
	torture.op->read->lock();
	torture_take_element(h);
	h->end = read_end;
	return true;
}

static void on_signal(int sig)
{
	(void)sig;
	if (!my_tally)
		return;
	torture_once(my_tally, &my_tally->random, 20);
	torture_count(my_tally->n[TALLY_SIGNAL_READS]);
}

void torture_catch_signal(void)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };

	sigaction(SIGUSR1, &action, NULL);
}

/* Often short, seldom long: some sections have to last for a whole grace period. */
void torture_delay(uint64_t *random)
{
	uint64_t r = random_next(random);

	if (r % 8 == 0)
		torture_spin(r / 8 % 64);
	else if (r % 512 == 1)
		torture_spin(r / 512 % 4000);
	if (!quiesce_load_relaxed(&torture.regime.delays))
		return;
	if (r % 512 == 2)
		sched_yield();
	else if (r % 4096 == 3)
		sleep_ns(200000);
	else if (r % 131072 == 5)
		sleep_ns(5000000);
}

/* A cookie taken inside a section cannot complete while the section is open. */
static void check_cookie(uint64_t cookie, struct tally *t)
{
	if (torture.op->polled->poll(cookie))
		torture_count(t->n[TALLY_COOKIE_ERRORS]);
}

/* Inside one level: more levels, and changes of protection in which a new level begins before an old one ends. */
static void extend(uint64_t *random, unsigned int r)
{
	const struct op_read *read = torture.op->read;

	for (unsigned int i = 0; i < (r & 3); i++) {
		read->lock();
		torture_delay(random);
		read->unlock();
	}
}

void torture_read_section(struct tally *t, uint64_t *random)
{
	const struct op *op = torture.op;
	unsigned int r = (unsigned int)random_next(random);
	bool cookies = op->polled && (r >> 8) % 64 == 0;
	uint64_t cookie = 0;
	struct hold h;

	torture_read_begin(&h, random, false);
	if (cookies)
		cookie = op->polled->get();
	torture_check_element(&h, t);
	torture_delay(random);
	if (r >> 16 & 1)
		extend(random, r >> 17);
	if (cookies)
		check_cookie(cookie, t);
	read_end(&h, t);
}

/* Binds the thread, or sleeps if this regime does not use reader @index.  Returns whether to read. */
static bool follow_regime(uint32_t *generation, uint32_t index)
{
	uint32_t now = quiesce_load_relaxed(&torture.regime.generation);

	if (now != *generation) {
		*generation = now;
		/* The first CPU is for the writer. */
		bind_cpu(quiesce_load_relaxed(&torture.regime.pinned) ? (int)index + 1 : -1);
	}
	if (index < quiesce_load_relaxed(&torture.regime.readers))
		return true;
	sleep_ns(2000000);
	return false;
}

void torture_reader(struct member *m)
{
	struct tally *t = &torture.tally[m->index];
	uint64_t random = 0x9e3779b97f4a7c15u * (uint64_t)(m->index + 1);
	char *region = malloc(FILL_BYTES);
	uint32_t generation = 0;

	t->random = random ^ 88675123;
	my_tally = t;
	op_thread_enter(torture.op);
	if (torture.op->object && torture.op->object->enter)
		torture.op->object->enter();
	while (!torture_stopped()) {
		torture_stutter();
		if (!follow_regime(&generation, (uint32_t)m->index))
			continue;
		for (int i = 0; i < 64; i++) {
			if (region && random & 32)
				fill_store_buffer(region, &random);
			torture.kind->section(t, &random);
		}
	}
	quiesce_store_relaxed(&t->n[TALLY_CPU_NS], thread_cpu_ns()); /* Relaxed: the reporter may read it now. */
	if (torture.op->object && torture.op->object->exit)
		torture.op->object->exit();
	op_thread_exit(torture.op);
	torture_leave();
	free(region);
}
