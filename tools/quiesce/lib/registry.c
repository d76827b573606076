/* SPDX-License-Identifier: MIT */
/* registry.c - the types in this build, and those of peers whose modules were loaded, in the order of their ranks. */
#include "registry.h"

#include <stdlib.h>
#include <string.h>

#include "peers.h"

#define MOST_TYPES 512

static struct op_item item = { 1 };
struct op_target op_target = { &item };

static const struct op *table[MOST_TYPES];
static int nr_types;

/* Types of the same rank stay in the order in which they are added. */
static void add(const struct op *op)
{
	int at = nr_types++;

	if (nr_types > MOST_TYPES)
		abort();
	for (; at && table[at - 1]->rank > op->rank; at--)
		table[at] = table[at - 1];
	table[at] = op;
}

void types_add(const struct op *const *begin, const struct op *const *end)
{
	while (begin < end)
		add(*begin++);
}

static void add_own(void)
{
	if (!nr_types)
		types_add(__start_quiesce_types, __stop_quiesce_types);
}

int types_all(bool (*fits)(const struct op *op), const struct op **ret, int max)
{
	int n = 0;

	add_own();
	for (struct peer *peer = peers; peer->name; peer++)
		peer_load(peer);
	for (int i = 0; i < nr_types && n < max; i++)
		if (fits(table[i]))
			ret[n++] = table[i];
	return n;
}

static const struct op *find(bool (*fits)(const struct op *op), const char *name)
{
	for (int i = 0; i < nr_types; i++)
		if (!strcmp(table[i]->name, name) && fits(table[i]))
			return table[i];
	return NULL;
}

const struct op *type_find(bool (*fits)(const struct op *op), const char *name)
{
	const struct op *op;
	struct peer *peer;

	add_own();
	op = find(fits, name);
	peer = peer_of(name);
	if (op || !peer)
		return op;
	return peer_load(peer) ? peer_absent(name) : find(fits, name);
}
