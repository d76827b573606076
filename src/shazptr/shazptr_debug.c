/* SPDX-License-Identifier: MIT */
/* shazptr_debug.c - the holder of each slot, as programs built with QUIESCE_DEBUG record it.
 *
 * Relaxed throughout: the records are for reports and order nothing.  A report that comes between a claim and
 * its record names the former owner.
 *
 * RG1  see readers.c
 */
#include "shazptr.h"

struct owner {
	const void *site;
	uint64_t since;
	uint32_t tid;
};

static struct owner *owners; /* one for each word of the array; NULL: nothing has been recorded */
static size_t nr_owners;

static size_t nr_words(void)
{
	const struct quiesce__lines *lines = &quiesce__slots.lines;

	return (size_t)(quiesce__line(lines, lines->capacity) - quiesce_shazptr_v1.slot_array);
}

static void make_owners(void)
{
	struct owner *none = NULL, *fresh;
	size_t nr = nr_words();

	if (quiesce_load_relaxed(&owners)) /* Relaxed: the exchange decides. */
		return;
	fresh = platform_pages_get(nr * sizeof *fresh);
	if (!fresh)
		return;
	quiesce_store_relaxed(&nr_owners, nr); /* Relaxed: every thread stores the same number. */
	/* RG1: full, pairs with RG1 in owner_of() */
	if (!quiesce_cmpxchg(RG1, &owners, &none, fresh))
		platform_pages_put(fresh, nr * sizeof *fresh);
}

static struct owner *owner_of(const uintptr_t *slot)
{
	/* RG1: acquire, pairs with RG1 in make_owners() */
	struct owner *all = quiesce_load_acquire(RG1, &owners);
	size_t index = (size_t)(slot - quiesce_shazptr_v1.slot_array);

	/* Relaxed: set before @owners. */
	return all && index < quiesce_load_relaxed(&nr_owners) && !quiesce__slot_is_count(slot) ? &all[index] : NULL;
}

static void record_owner(struct shazptr_guard guard, const void *site)
{
	struct owner *owner;

	if (!guard.ptr)
		return;
	make_owners();
	owner = owner_of(guard.slot);
	if (!owner)
		return;
	quiesce_store_relaxed(&owner->site, site);                /* Relaxed: see above. */
	quiesce_store_relaxed(&owner->since, platform_now_ns()); /* Relaxed: see above. */
	quiesce_store_relaxed(&owner->tid, quiesce__tid());      /* Relaxed: see above. */
}

struct shazptr_guard quiesce__shazptr_acquire_debug(const void *ptr)
{
	struct shazptr_guard guard = quiesce__shazptr_acquire(ptr);

	record_owner(guard, quiesce__caller());
	return guard;
}

void quiesce__shazptr_note_debug(struct shazptr_guard guard)
{
	record_owner(guard, quiesce__caller());
}

void quiesce__shazptr_detach_debug(struct shazptr_guard guard)
{
	struct owner *owner = guard.ptr ? owner_of(guard.slot) : NULL;

	if (owner)
		quiesce_store_relaxed(&owner->tid, 0); /* Relaxed: see above. */
}

void quiesce__shazptr_clear_debug(struct shazptr_guard guard)
{
	struct owner *owner = guard.ptr ? owner_of(guard.slot) : NULL;
	struct platform_location here;
	uintptr_t value;

	if (owner) {
		value = quiesce_load_relaxed(guard.slot); /* Relaxed: the caller's own slot, unless it is misused. */
		if ((value ^ (uintptr_t)guard.ptr) << 1) {
			quiesce__misuse(QUIESCE_MISUSE_UNBALANCED_UNLOCK,
					"shazptr_clear() at %s of a guard of %p that was cleared before",
					platform_location(quiesce__caller(), &here), guard.ptr);
			return;
		}
		quiesce_store_relaxed(&owner->tid, 0); /* Relaxed: see above. */
	}
	quiesce__shazptr_clear(guard);
}

static bool group_held_by(const uintptr_t *group, uint32_t words, uint32_t tid, uintptr_t address)
{
	for (uint32_t k = 0, nr = quiesce__slots_used(group, words); k < nr; k++) {
		uintptr_t value = quiesce_load_relaxed(group + k); /* Relaxed: what this thread has set it sees. */
		struct owner *owner = owner_of(group + k);

		if (!(value << 1) || !owner || quiesce_load_relaxed(&owner->tid) != tid) /* Relaxed: see above. */
			continue;
		if ((value ^ address) << 1 == 0 || (value ^ (uintptr_t)SHAZPTR_WILDCARD) << 1 == 0 ||
		    (address ^ (uintptr_t)SHAZPTR_WILDCARD) << 1 == 0)
			return true;
	}
	return false;
}

bool quiesce__shazptr_held_by_me(uintptr_t address)
{
	struct quiesce__slot_range range[QUIESCE_NR_RANGES];
	uintptr_t *group;
	uint32_t tid = quiesce__tid();

	if (!quiesce_load_relaxed(&owners)) /* Relaxed: a thread sees its own records. */
		return false;
	quiesce__slots_ranges(range);
	for (uint32_t i = 0; i < QUIESCE_NR_RANGES; i++)
		quiesce__for_each_group(group, &range[i])
			if (group_held_by(group, range[i].words, tid, address))
				return true;
	return false;
}

struct quiesce__holder quiesce__shazptr_holder(const uintptr_t *slot)
{
	const struct owner *owner = owner_of(slot);
	struct quiesce__holder h = { .nr = 0 };

	if (!owner || !quiesce_load_relaxed(&owner->tid)) /* Relaxed: see above. */
		return quiesce__held_longest(slot, QUIESCE_HELD_SLOT);
	h.nr = 1;
	h.tid = quiesce_load_relaxed(&owner->tid);     /* Relaxed: see above. */
	h.since = quiesce_load_relaxed(&owner->since); /* Relaxed: see above. */
	h.site = quiesce_load_relaxed(&owner->site);   /* Relaxed: see above. */
	return h;
}

/* The child has new slots, for which nothing has been recorded. */
void quiesce__shazptr_debug_fork_child(void)
{
	owners = NULL;
}
