/* SPDX-License-Identifier: MIT */
/* walk_plain.h - hazard pointers as one writes them by hand: a record for each thread, a batch, a scan of all
 * records.
 * raw, whole file: not a part of the library, but of the comparison.
 *
 * Included by a scheme that defines plain_set(slot, address), the store with its fence, and plain_fence(), the fence
 * of the scan.
 */
#include "walk.h"

#define WALK_FENCES false
#define WALK_CHECKS 1
#define MOST_RECORDS 1100

/* Records are never freed; later threads use them again. */
struct record {
	uintptr_t slot[WALK_SLOTS];
	uint32_t taken;
	struct walk_node **retired;
	size_t nr;
} __attribute__((aligned(128)));
static struct record records[MOST_RECORDS];
static uint32_t nr_records;

struct walk_slots {
	uintptr_t *slot;
};

static __thread struct record *mine;

static inline void walk_begin(struct walk_slots *s)
{
	s->slot = mine->slot;
}

static inline void walk_end(struct walk_slots *s)
{
	for (unsigned int i = 0; i < WALK_SLOTS; i++)
		__atomic_store_n(&s->slot[i], 0, __ATOMIC_RELEASE);
}

static inline __attribute__((always_inline)) uintptr_t walk_protect(struct walk_slots *s, unsigned int i, uintptr_t *where)
{
	uintptr_t first, again = __atomic_load_n(where, __ATOMIC_RELAXED);

	do {
		first = again;
		plain_set(&s->slot[i], first & ~WALK_MARK);
		again = __atomic_load_n(where, __ATOMIC_ACQUIRE);
	} while (quiesce_unlikely(again != first));
	return again;
}

static int by_address(const void *a, const void *b)
{
	uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;

	return (x > y) - (x < y);
}

/* Stores all protected addresses, sorted, and returns their number. */
static size_t read_slots(uintptr_t *found)
{
	uint32_t nr;
	size_t n = 0;

	plain_fence();
	nr = __atomic_load_n(&nr_records, __ATOMIC_ACQUIRE);
	for (uint32_t i = 0; i < nr; i++)
		for (unsigned int k = 0; k < WALK_SLOTS; k++) {
			found[n] = __atomic_load_n(&records[i].slot[k], __ATOMIC_ACQUIRE);
			n += found[n] != 0;
		}
	qsort(found, n, sizeof(*found), by_address);
	return n;
}

static __attribute__((noinline)) void reclaim(struct record *r)
{
	static __thread uintptr_t found[MOST_RECORDS * WALK_SLOTS + 1];
	size_t n = read_slots(found), kept = 0;

	for (size_t i = 0; i < r->nr; i++) {
		uintptr_t node = (uintptr_t)r->retired[i];

		if (bsearch(&node, found, n, sizeof(*found), by_address))
			r->retired[kept++] = r->retired[i];
		else
			walk_free(r->retired[i]);
	}
	r->nr = kept;
}

static inline void walk_retire(struct walk_node *node)
{
	mine->retired[mine->nr++] = node;
	retire_note();
	if (quiesce_unlikely(mine->nr >= retire_params.batch))
		reclaim(mine);
}

static struct record *take_record(void)
{
	for (uint32_t i = 0; i < MOST_RECORDS; i++) {
		uint32_t none = 0, nr = __atomic_load_n(&nr_records, __ATOMIC_RELAXED);

		if (!__atomic_compare_exchange_n(&records[i].taken, &none, 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		while (nr < i + 1 && !__atomic_compare_exchange_n(&nr_records, &nr, i + 1, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
			;
		return &records[i];
	}
	abort(); /* more threads than the tool ever starts */
}

static void walk_thread_enter(void)
{
	/* A scan keeps at most one node for each slot. */
	size_t room = retire_params.batch + (size_t)MOST_RECORDS * WALK_SLOTS;

	mine = take_record();
	if (!mine->retired)
		mine->retired = malloc(room * sizeof(*mine->retired));
	if (!mine->retired)
		abort();
}

static void walk_thread_exit(void)
{
	struct record *r = mine;

	mine = NULL;
	__atomic_store_n(&r->taken, 0, __ATOMIC_RELEASE);
	retire_tally_leave();
}

/* The main thread calls it when no other thread is inside. */
static void walk_barrier(void)
{
	uint32_t nr = __atomic_load_n(&nr_records, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < nr; i++)
		reclaim(&records[i]);
}

#define walk_stats NULL
#define walk_waiting retire_waiting
