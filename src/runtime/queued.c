/* SPDX-License-Identifier: MIT */
/* queued.c - account of the objects that wait for their callbacks, by address.
 *
 * A table of fixed size under one lock: only programs of debug builds pay for it.  Nothing is kept in an object, so one that
 * has never been initialised, or was copied while the original waited, is not taken for another.
 *
 * I1. What is noted is queued with a function of the library, which takes the note before it calls the program's: so from
 *     that call on the object may be queued again, or its memory be something else.
 * I2. Where there is no room an object is queued as in a release build: a report that is missing is better than one that is
 *     wrong.
 * I3. In a forked child callbacks may be lost that were running at the fork.  So a note of before the fork gives way to a
 *     new one without a report.
 */
#include "queued.h"

#define NR_ENTRIES 65536u
#define NR_CHAINS 65536u

struct entry {
	const void *object;
	uintptr_t func;
	const char *call; /* by which it was queued, and */
	const void *site; /* where */
	uint32_t generation; /* of forks */
	uint32_t next;       /* of the chain, or of those that are free: 1 + its index; 0: none */
};

static struct table {
	uint32_t chain[NR_CHAINS];
	struct entry entry[NR_ENTRIES];
	uint32_t used; /* entries, ever */
	uint32_t free;
} *table; /* NULL: no object was ever noted */
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

/* Where the number of the entry of @object is, or would be. */
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

/* Under the lock.  False: there is no room. */
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

/* Under the lock.  Is @object queued, in this process?  *@ret_found tells how. */
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
	struct platform_place here, there;

	quiesce__misuse(QUIESCE_MISUSE_TWICE, "%s at %s of %p, which is queued already: %s at %s, and has not come back since", call,
			platform_place(site, &here), first->object, first->call, platform_place(first->site, &there));
}

enum quiesce__queued quiesce__queued_note(const void *object, uintptr_t func, const char *call, const void *site)
{
	struct entry found, fresh = { .object = object, .func = func, .call = call, .site = site };
	struct platform_sigmask mask;
	bool twice, noted;

	quiesce__init();
	fresh.generation = quiesce__generation();
	begin(&mask);
	twice = is_queued(object, &found);
	noted = !twice && add(&fresh);
	end(&mask);
	if (twice)
		report(&found, call, site);
	return twice ? QUIESCE_QUEUED_TWICE : noted ? QUIESCE_QUEUED_NOTED : QUIESCE_QUEUED_UNNOTED;
}

uintptr_t quiesce__queued_take(const void *object)
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
		*e = (struct entry){ .next = table->free }; /* who searches for leaks finds nothing in it */
		table->free = number;
	}
	end(&mask);
	if (!func)
		quiesce__misuse(QUIESCE_MISUSE_TWICE,
				"%p was queued once and comes back twice: it was queued before a fork, or by a release build, too", object);
	return func;
}

/* So that a child finds no chain that is half changed. */
void quiesce__queued_fork_prepare(void)
{
	quiesce__lock(&lock);
}

void quiesce__queued_fork_parent(void)
{
	quiesce__unlock(&lock);
}

void quiesce__queued_fork_child(void)
{
	quiesce__lock_reset(&lock, false);
}
