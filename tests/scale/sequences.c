/* SPDX-License-Identifier: MIT */
/* sequences.c - the restartable sequences of src/platform/linux/count.c and sheaf.c in C, for the modelled machine. */
#include "machine.h"
#include "platform/count.h"
#include "platform/sheaf.h"

struct quiesce__sequences quiesce__sequences;

bool quiesce__count_call(const struct quiesce_percpu *percpu, size_t offset, const uint64_t *closed)
{
	static const uint64_t open;
	/* PC1: acquire, pairs with PC1 in quiesce__percpu_open() */
	char *base = quiesce_load_acquire(PC1, &percpu->base);
	uint64_t at, *word;
	bool done = false;

	if (!base)
		return false;
	quiesce__scale_enter();
	if (!quiesce_load_relaxed(closed ? closed : &open)) { /* Relaxed: one thread runs. */
		at = quiesce__scale_id() << QUIESCE_PERCPU_SHIFT;
		done = at < quiesce__sequences.limit;
		word = (uint64_t *)(void *)(base + offset + at);
		if (done)
			quiesce_store_relaxed(word, quiesce_load_relaxed(word) + 1); /* Relaxed: one thread runs. */
	}
	scale_sequence_end();
	return done;
}

/* Return the sheaf of the caller's id, or NULL if it may not be used. */
static uint64_t *sheaf_of(const struct quiesce__sheaf_row *row)
{
	uint64_t at = quiesce__scale_id() << QUIESCE_PERCPU_SHIFT;

	if (*row->closed || at >= quiesce__sequences.limit)
		return NULL;
	return (uint64_t *)(void *)(row->base + at);
}

uint64_t quiesce__sheaf_take(const struct quiesce__sheaf_row *row)
{
	uint64_t *sheaf, done = 0, nr;

	quiesce__scale_enter();
	sheaf = sheaf_of(row);
	if (sheaf) {
		nr = sheaf[0];
		for (; done < nr && done < row->nr; done++)
			row->object[done] = (void *)(uintptr_t)sheaf[1 + nr - done];
		if (done)
			sheaf[0] = nr - done;
	}
	scale_sequence_end();
	return done;
}

uint64_t quiesce__sheaf_add(const struct quiesce__sheaf_row *row)
{
	uint64_t *sheaf, done = 0, nr;

	quiesce__scale_enter();
	sheaf = sheaf_of(row);
	if (sheaf) {
		nr = sheaf[0];
		for (; nr + done < row->limit && done < row->nr; done++)
			sheaf[2 + nr + done] = (uint64_t)(uintptr_t)row->object[done];
		if (done)
			sheaf[0] = nr + done;
	}
	scale_sequence_end();
	return done;
}
