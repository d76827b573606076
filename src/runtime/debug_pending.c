/* SPDX-License-Identifier: MIT */
/* debug_pending.c - objects that wait for their callbacks, by address.
 *
 * A table of fixed size under one lock, used by programs that are debug builds only.  Nothing is stored in an
 * object, so one that was never initialised, or was copied while the original waited, is not mistaken for
 * another.
 *
 * I1. A recorded object is queued with a function of the library, which removes the record before it calls
 *     the program's function: from that call on the object may be queued again, or its memory reused.
 * I2. Where the table is full an object is queued as in a release build: a missing report is better than a
 *     wrong one.
 * I3. A forked child may lose callbacks that were running at the fork.  So a record from before the fork is
 *     replaced by a new one without a report.
 */
#include "debug_pending.h"

#define NR_ENTRIES 65536u
#define NR_CHAINS 65536u

struct entry {
	const void *object;
	uintptr_t func;
	const char *call; /* name of the call that queued it */
	const void *site; /* code that made that call */
	uint32_t generation; /* generation of forks in which it was queued */
	uint32_t next;       /* 1 + index of the next entry of the chain, or of the free list; 0: none */
};

static struct table {
	uint32_t chain[NR_CHAINS];
	struct entry entry[NR_ENTRIES];
	uint32_t used; /* number of entries that were ever used */
	uint32_t free;
} *table; /* NULL: no object was ever recorded */
static struct quiesce__lock lock; /* signals are blocked while it is held */

static void begin(struct platform_sigmask *mask)
{
	platform_signals_block(mask);
	quiesce__lock(&lock);
}

static void end(const struct platform_sigmask *mask)
{
	quiesce__unlock(&lock);
	platform_signals_restore(mask);
}

/* The link that holds the number of the entry of @object, or would hold it. */
static uint32_t *link_of(const void *object)
{
	uint32_t *link = &table->chain[((uintptr_t)object * 0x9e3779b97f4a7c15u) >> 48];

	while (*link && table->entry[*link - 1].object != object)
		link = &table->entry[*link - 1].next;
	return link;
}

static uint32_t take_free(void)
{
	uint32_t number = table->free;

	if (number)
		table->free = table->entry[number - 1].next;
	else if (table->used < NR_ENTRIES)
		number = ++table->used;
	return number;
}

/* Add or replace the record of an object; false if the table is full.  Under the lock. */
static bool add(struct entry *fresh)
{
	uint32_t *link, number;

	if (!table)
		table = platform_pages_get(sizeof *table);
	if (!table)
		return false;
	link = link_of(fresh->object);
	number = *link ? *link : take_free();
	if (!number)
		return false;
	fresh->next = *link ? table->entry[number - 1].next : 0;
	table->entry[number - 1] = *fresh;
	*link = number;
	return true;
}

/* True if @object is queued in this process; *@ret_found is its record.  Under the lock. */
static bool is_queued(const void *object, struct entry *ret_found)
{
	uint32_t number = table ? *link_of(object) : 0;

	if (!number)
		return false;
	*ret_found = table->entry[number - 1];
	return ret_found->generation == quiesce__generation(); /* I3 */
}

static QUIESCE_COLD void report(const struct entry *first, const char *call, const void *site)
{
	struct platform_location here, there;

	quiesce__misuse(QUIESCE_MISUSE_TWICE, "%s at %s of %p, which is queued already: %s at %s, and has not come back since", call,
			platform_location(site, &here), first->object, first->call, platform_location(first->site, &there));
}

enum quiesce__pending quiesce__pending_add(const void *object, uintptr_t func, const char *call, const void *site)
{
	struct entry found, fresh = { .object = object, .func = func, .call = call, .site = site };
	struct platform_sigmask mask;
	bool twice, recorded;

	quiesce__init();
	fresh.generation = quiesce__generation();
	begin(&mask);
	twice = is_queued(object, &found);
	recorded = !twice && add(&fresh);
	end(&mask);
	if (twice)
		report(&found, call, site);
	return twice ? QUIESCE_PENDING_TWICE : recorded ? QUIESCE_PENDING_RECORDED : QUIESCE_PENDING_UNRECORDED;
}

uintptr_t quiesce__pending_take(const void *object)
{
	struct platform_sigmask mask;
	uint32_t *link, number;
	uintptr_t func = 0;

	begin(&mask);
	link = link_of(object);
	number = *link;
	if (number) {
		struct entry *e = &table->entry[number - 1];

		func = e->func;
		*link = e->next;
		*e = (struct entry){ .next = table->free }; /* a leak checker finds no pointer in a free entry */
		table->free = number;
	}
	end(&mask);
	if (!func)
		quiesce__misuse(QUIESCE_MISUSE_TWICE,
				"%p was queued once and comes back twice: it was queued before a fork, or by a release build, too", object);
	return func;
}

/* Keeps a child from inheriting a half-changed chain. */
void quiesce__pending_fork_prepare(void)
{
	quiesce__lock(&lock);
}

void quiesce__pending_fork_parent(void)
{
	quiesce__unlock(&lock);
}

void quiesce__pending_fork_child(void)
{
	quiesce__lock_reset(&lock, false);
}
