/* SPDX-License-Identifier: MIT */
/* keys.c - names of keys.
 *
 * Workers' keys change with every round: in some rounds the hash bits that hash tables use first are
 * equal, so that the keys share a bucket while the table is small.
 */
#include "record.h"

enum space { WORKERS = 1, FIXED, BURST };

static uint64_t worker_key[MAX_KEYS];
static uint32_t nr_worker_keys;

/* Groups of ids, or of indices, begin and end where nodes of 64 do, near both ends and between them. */
static const uint32_t group[] = { 0, 60, 4092, 120, 0x3fffc, 1000, 0xfffffc, 0x7ffffff8 };

#define NR_GROUPS (sizeof group / sizeof *group)

/* Return a distinct name for each number; names form no sequence. */
static uint64_t name(enum space space, uint64_t i)
{
	return ((uint64_t)space << 48 | i) * 0x9e3779b97f4a7c15ull;
}

static bool are_alike(uint64_t a, uint64_t b)
{
	return (a & 0xfc0) == (b & 0xfc0) && a >> 58 == b >> 58; /* our tables choose a bucket by the bits from 6 on */
}

void keys_choose(const struct type *type, uint32_t nr, bool alike, uint64_t *random)
{
	uint64_t serial = draw(random) & 0xffffffff;

	nr_worker_keys = nr;
	if (type->in_order) {
		for (uint32_t i = 0; i < nr; i++)
			worker_key[i] = group[i / GROUP % NR_GROUPS] + i % GROUP;
		return;
	}
	if (type->model >= MODEL_QUEUE) {
		for (uint32_t i = 0; i < nr; i++)
			worker_key[i] = i;
		return;
	}
	worker_key[0] = serial % 2 ? 0 : name(WORKERS, serial); /* 0 is a key like any other */
	serial++;
	for (uint32_t i = 1; i < nr; serial++) {
		uint64_t key = name(WORKERS, serial);

		if (!alike || !type->hash || are_alike(type->hash(key), type->hash(worker_key[0])))
			worker_key[i++] = key;
	}
}

uint64_t key_of_worker(uint32_t i)
{
	return worker_key[i];
}

uint32_t worker_of_key(uint64_t key)
{
	for (uint32_t i = 0; i < nr_worker_keys; i++)
		if (worker_key[i] == key)
			return i;
	return NO_KEY;
}

uint64_t key_fixed(const struct type *type, uint32_t i)
{
	if (type->model >= MODEL_QUEUE)
		return MAX_KEYS + i;
	return type->in_order ? 8 + i : name(FIXED, i);
}

/* Keys of a burst lie in places of their own, far or near, so that a tree grows and shrinks in height.  Ids are at most INT_MAX. */
uint64_t key_of_burst(const struct type *type, uint64_t burst, uint32_t i)
{
	static const uint64_t place[] = { 2000, 8192, 300000, 1 << 25, 1 << 30, 1ull << 45, UINT64_MAX - 4096 };
	uint64_t nr_places = sizeof place / sizeof *place - (type->model == MODEL_IDS ? 2 : 0);

	if (type->model >= MODEL_QUEUE)
		return MAX_KEYS + NR_FIXED + i;
	return type->in_order ? place[burst % nr_places] + i : name(BURST, i);
}

/* Return a value that is stored only once.  Both halves change; the low bits are free, as in a pointer. */
uint64_t value_of(uint32_t client, uint64_t serial)
{
	return serial << 40 | (serial & 0xffffff) << 16 | (uint64_t)(client + 1) << 6;
}
