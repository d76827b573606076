/* SPDX-License-Identifier: MIT */
/* buffer.c - store buffers of the TSO and PSO models.
 *
 * While a thread runs, real memory shows its own buffered stores, so that its plain loads of variables that
 * only this thread writes are correct; when it stops running those stores are removed from memory again.
 */
#include "machine.h"

#include <string.h>

static void check_plain_store(const struct thread *t, struct location *l)
{
	if (sim__memory_get(l) != sim__expected(l))
		sim_fail("%s has a store to %p on its way, and somebody stored there plainly", t->name, (void *)l->address);
}

void sim__buffer_show(struct thread *t)
{
	for (int k = 0; k < t->nr_buffered; k++)
		sim__memory_put(t->buffer[k].location, t->buffer[k].value);
}

void sim__buffer_hide(struct thread *t)
{
	for (int k = 0; k < t->nr_buffered; k++)
		check_plain_store(t, t->buffer[k].location);
	for (int k = 0; k < t->nr_buffered; k++)
		sim__memory_put(t->buffer[k].location, sim__committed(t->buffer[k].location));
}

static void flush(struct thread *t, int k)
{
	struct buffered b = t->buffer[k];

	t->nr_buffered--;
	memmove(&t->buffer[k], &t->buffer[k + 1], (t->nr_buffered - k) * sizeof b);
	sim__commit_buffered(t, &b);
}

/* The oldest store to the location of entry @k; a release store only when no other store precedes it. */
static int pso_choice(const struct thread *t, int k)
{
	for (int i = 0; i < k; i++)
		if (t->buffer[i].location == t->buffer[k].location)
			k = i;
	return t->buffer[k].release ? 0 : k;
}

void sim__buffer_flush_one(struct thread *t)
{
	if (M->opt.model == SIM_PSO)
		flush(t, pso_choice(t, sim__draw() % t->nr_buffered));
	else
		flush(t, 0);
}

void sim__buffer_drain(struct thread *t)
{
	while (t->nr_buffered)
		flush(t, 0);
}

void sim__buffer_flush_location(struct thread *t, const struct location *l)
{
	for (int k = 0; k < t->nr_buffered;) {
		if (t->buffer[k].location != l) {
			k++;
		} else if (t->buffer[k].release) {
			while (k-- >= 0)
				flush(t, 0);
			k = 0;
		} else {
			flush(t, k);
		}
	}
}

bool sim__buffer_find(const struct thread *t, const struct location *l, uint64_t *ret_value)
{
	for (int k = t->nr_buffered; k--;)
		if (t->buffer[k].location == l) {
			*ret_value = t->buffer[k].value;
			return true;
		}
	return false;
}

void sim__buffer_store(struct thread *t, struct location *l, uint64_t value, enum sim_order order)
{
	struct buffered *b;

	if (t->nr_buffered == SIM_BUFFER)
		sim__buffer_flush_one(t);
	b = &t->buffer[t->nr_buffered++];
	b->location = l;
	b->value = value;
	b->release = order >= SIM_RELEASE;
	b->has_view = b->release || t->rel_any;
	if (b->has_view)
		memcpy(b->clock, b->release ? t->cur.clock : t->rel.clock, sizeof b->clock);
	sim__memory_put(l, value);
}
