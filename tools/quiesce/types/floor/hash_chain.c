/* SPDX-License-Identifier: MIT */
/* hash_chain.c - functions that the tables of chains share, and the numbers of threads. */
#include "hash_chain.h"

void *chain_create(uint64_t nr_keys)
{
	struct chain_table *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->mask = hash_power(nr_keys) - 1;
	t->bucket = hash_array_alloc((t->mask + 1) * sizeof(*t->bucket));
	if (t->bucket)
		return t;
	free(t);
	return NULL;
}

void chain_destroy(void *table)
{
	struct chain_table *t = table;

	for (uint64_t i = 0; i <= t->mask; i++)
		for (struct chain_node *n = t->bucket[i].head, *next; n; n = next) {
			next = n->next;
			free(n);
		}
	hash_array_free(t->bucket, (t->mask + 1) * sizeof(*t->bucket));
	free(t);
}

uint64_t chain_mapped(const void *table)
{
	const struct chain_table *t = table;

	return hash_array_mapped((t->mask + 1) * sizeof(*t->bucket));
}

__thread int hash_thread_number = -1;
static uint32_t taken[HASH_MAX_THREADS];

void hash_thread_enter(void)
{
	for (int i = 0; i < HASH_MAX_THREADS; i++) {
		uint32_t none = 0;

		/* raw: full; it also orders what the last thread with this number has written. */
		if (!__atomic_compare_exchange_n(&taken[i], &none, 1, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
			continue;
		hash_thread_number = i;
		return;
	}
	abort(); /* more threads than the tool ever starts */
}

void hash_thread_exit(void)
{
	/* raw: release, with the exchange in hash_thread_enter(). */
	__atomic_store_n(&taken[hash_thread_number], 0, __ATOMIC_RELEASE);
	hash_thread_number = -1;
}
