/* SPDX-License-Identifier: MIT */
/* hazptr_notes.c - hazptr_retire(): objects without a head, and the notes that stand for them in queues.
 *
 * Notes come in packs, linked by their heads.  A thread has a pack at most, next to the one that it takes from or gives to; the
 * others are in the depot, a list as those of retired objects, from which all are taken at once, into the stock.  Memory comes in
 * chunks of pages, which stay: as many as there ever were threads that retire and objects that waited at one time.
 * I1. A note that is in a queue is not in a pack, and the other way round.
 * I2. Who takes the last note of its own looks for the next pack at once: so the call that finds none is one of those that come
 *     when as many objects as are in a pack wait already, and there was no memory for any of them.
 * I3. A thread that exits leaves its notes, and takes one at a time from then on: destructors of thread-local storage retire, too,
 *     and must not wait for slots, which may be the thread's own.
 * I4. A thread that takes a pack has the stock for a few instructions, however large it is, and others wait for that: if they took it for
 *     empty there would be a new chunk each time.
 */
#include "hazptr_retired.h"

#if defined(QUIESCE_SIM)
#define PACK 2u
#define CHUNK_NOTES 4u
#else
#define PACK 512u
#define CHUNK_NOTES 2048u
#endif

/* Of each pack the first note, which knows the others. */
static struct hazptr_head *depot;
/* The same, under the lock. */
static struct hazptr_head *stock;
static struct quiesce__lock lock;

static void push_pack(struct quiesce__note *first, uint32_t nr)
{
	if (!first)
		return;
	first->others = first->head.next;
	first->nr = nr;
	quiesce__hazptr_push_chain(&depot, &first->head, &first->head);
}

static struct quiesce__note *take_pack(uint32_t *ret_nr)
{
	struct quiesce__note *first;

	quiesce__lock(&lock);
	if (!stock)
		stock = quiesce__hazptr_take(&depot);
	first = (struct quiesce__note *)stock;
	if (first)
		stock = stock->next;
	quiesce__unlock(&lock);
	if (first) {
		first->head.next = first->others;
		*ret_nr = first->nr;
	}
	return first;
}

/* A chunk of new notes: a pack, and others for the depot. */
static struct quiesce__note *new_packs(uint32_t *ret_nr)
{
	struct quiesce__note *note = platform_pages_get(CHUNK_NOTES * sizeof *note);

	if (!note)
		return NULL;
	for (uint32_t i = 0; i < CHUNK_NOTES; i++)
		note[i].head.next = (i + 1) % PACK ? &note[i + 1].head : NULL;
	for (uint32_t i = PACK; i < CHUNK_NOTES; i += PACK)
		push_pack(note + i, PACK);
	*ret_nr = PACK;
	return note;
}

static bool refill(struct quiesce__notes *notes)
{
	uint32_t nr = PACK;

	notes->few = notes->pack;
	notes->pack = NULL;
	if (!notes->few)
		notes->few = take_pack(&nr);
	if (!notes->few)
		notes->few = new_packs(&nr);
	notes->nr_few = notes->few ? nr : 0;
	return notes->few;
}

static struct quiesce__note *pop(struct quiesce__notes *notes)
{
	struct quiesce__note *note = notes->few;

	notes->few = (struct quiesce__note *)note->head.next;
	notes->nr_few--;
	return note;
}

/* Of a thread that has no queue, and so keeps none: it exits, or there is no memory. */
static QUIESCE_COLD struct quiesce__note *get_alone(void)
{
	struct quiesce__notes notes = { .few = NULL };
	struct quiesce__note *note = NULL;

	if (refill(&notes) && !QUIESCE_MUTANT(hazptr_exit_waits)) {
		note = pop(&notes);
		quiesce__notes_leave(&notes);
	}
	return note;
}

struct quiesce__note *quiesce__note_get(struct quiesce_tls_v1 *self)
{
	struct quiesce__retired *r = self->retired ? self->retired : quiesce__retired_new(self);
	struct quiesce__note *note;

	if (quiesce_unlikely(!r))
		return get_alone();
	if (quiesce_unlikely(!r->notes.few) && !refill(&r->notes))
		return NULL;
	note = pop(&r->notes);
	if (quiesce_unlikely(!r->notes.few))
		refill(&r->notes); /* I2 */
	return note;
}

static void put(struct quiesce__notes *notes, struct quiesce__note *note)
{
	if (notes->nr_few == PACK) {
		push_pack(notes->pack, PACK);
		notes->pack = notes->few;
		notes->few = NULL;
		notes->nr_few = 0;
	}
	note->head.next = notes->few ? &notes->few->head : NULL;
	notes->few = note;
	notes->nr_few++;
}

void quiesce__hazptr_run_note(struct hazptr_head *head)
{
	struct quiesce__note *note = (struct quiesce__note *)head;
	void (*deleter)(void *object) = note->deleter;
	struct quiesce_tls_v1 *self = quiesce__self();
	/* The helper, too: single notes in the depot would make each look into it long. */
	struct quiesce__retired *r = self->retired ? self->retired : quiesce__retired_new(self);
	void *object = note->object;

	if (r) {
		put(&r->notes, note);
	} else { /* it exits, or there is no memory */
		note->head.next = NULL;
		push_pack(note, 1);
	}
	quiesce__run_names((uintptr_t)deleter);
	deleter(object);
}

void quiesce__notes_leave(struct quiesce__notes *notes)
{
	push_pack(notes->few, notes->nr_few);
	push_pack(notes->pack, PACK);
	*notes = (struct quiesce__notes){ 0 };
}

/* What a thread was just taking is nobody's. */
void quiesce__notes_fork_child(void)
{
	quiesce__lock_reset(&lock, false);
}
