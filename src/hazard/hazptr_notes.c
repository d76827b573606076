/* SPDX-License-Identifier: MIT */
/* hazptr_notes.c - hazptr_retire(): objects without a head, and the notes that represent them in queues.
 *
 * Notes come in packs, linked by their heads.  A thread has at most one whole pack besides the one that it
 * takes notes from and returns notes to.  The other packs are in the depot, a lock-free list like those of
 * retired objects, from which all are taken at once into the stock, under the lock.  Memory comes in chunks
 * of pages, which are never returned: enough for the peak number of retiring threads and waiting objects.
 *
 * I1. A note is in a queue or in a pack, never in both.
 * I2. A thread that takes its last note fetches the next pack at once: so a call that finds no note comes
 *     when as many objects as a pack has notes wait already, and every attempt to get memory for them has
 *     failed.
 * I3. A thread that exits returns its notes, and takes one note at a time from then on: destructors of
 *     thread-local storage retire objects, too, and must not wait for slots, which may be the thread's own.
 * I4. A thread that takes a pack holds the stock for a few instructions, however large the stock is, and
 *     other threads wait for that: if they took the stock for empty, each would allocate a new chunk.
 */
#include "hazptr_retired.h"

#if defined(QUIESCE_SIM)
#define PACK 2u
#define CHUNK_NOTES 4u
#else
#define PACK 512u
#define CHUNK_NOTES 2048u
#endif

/* The first note of each pack, which has a pointer to the others. */
static struct hazptr_head *depot;
/* First notes of packs that were taken from the depot; under the lock. */
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

/* Allocate a chunk of new notes: returns one pack, and pushes the others to the depot. */
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

/* Take one note for a thread that has no queue, because it exits or memory is exhausted, and so keeps no
 * notes. */
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
	/* The helper gets a queue for its notes, too: single notes in the depot would make it long. */
	struct quiesce__retired *r = self->retired ? self->retired : quiesce__retired_new(self);
	void *object = note->object;

	if (r) {
		put(&r->notes, note);
	} else { /* this thread exits, or memory is exhausted */
		note->head.next = NULL;
		push_pack(note, 1);
	}
	quiesce__run_record_func((uintptr_t)deleter);
	deleter(object);
}

void quiesce__notes_leave(struct quiesce__notes *notes)
{
	push_pack(notes->few, notes->nr_few);
	push_pack(notes->pack, PACK);
	*notes = (struct quiesce__notes){ 0 };
}

/* A pack that another thread was taking at the fork is lost. */
void quiesce__notes_fork_child(void)
{
	quiesce__lock_reset(&lock, false);
}
