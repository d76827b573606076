/* SPDX-License-Identifier: MIT */
/* hazptr_proxies.c - hazptr_retire(): objects without a head, and the proxies that represent them in queues.
 *
 * Proxies come in magazines, linked by their heads: a thread has one that it takes proxies from and returns them to,
 * and at most one full spare.  The other magazines are in the depot, a lock-free list like those of retired objects,
 * from which all are taken at once into the stock, under the lock.  Memory comes in chunks of pages, which are never
 * returned: enough for the peak number of retiring threads and waiting objects.  The proxies of a chunk are written first
 * by the threads that take its magazines.
 *
 * I1. A proxy is in a queue or in a magazine, never in both.
 * I2. A thread that takes its last proxy fetches the next magazine at once: so a call that finds no proxy comes
 *     when as many objects as a magazine has proxies wait already, and every attempt to get memory for them has
 *     failed.
 * I3. A thread that exits returns its proxies, and takes one proxy at a time from then on: destructors of
 *     thread-local storage retire objects, too, and must not wait for slots, which may be the thread's own.
 * I4. A thread that takes a magazine holds the stock for a few instructions, however large the stock is, and
 *     other threads wait for that: if they took the stock for empty, each would allocate a new chunk.
 *
 * Paper: J. Bonwick, J. Adams: Magazines and Vmem.  USENIX 2001.
 */
#include "hazptr_retired.h"

#if defined(QUIESCE_SIM)
#define MAGAZINE_SIZE 2u
#define CHUNK_PROXIES 4u
#else
#define MAGAZINE_SIZE 512u
#define CHUNK_PROXIES 2048u
#endif
#define NEW 0u /* in place of the number of proxies: they are in one piece, and the thread that takes the magazine writes them */

/* The first proxy of each magazine, which has a pointer to the others. */
static struct hazptr_head *depot;
/* First proxies of magazines that were taken from the depot; under the lock. */
static struct hazptr_head *stock;
static struct quiesce__lock lock;

/* @nr: NEW for a magazine of new proxies, of which the caller has written none. */
static void push_magazine(struct quiesce__proxy *first, uint32_t nr)
{
	if (!first)
		return;
	first->others = first->head.next;
	first->nr = nr;
	quiesce__hazptr_push_chain(&depot, &first->head, &first->head);
}

/* Link the proxies of a new magazine, which is in one piece. */
static void link_new(struct quiesce__proxy *first, uint32_t *ret_nr)
{
	for (uint32_t i = 0; i < MAGAZINE_SIZE; i++)
		first[i].head.next = i + 1 < MAGAZINE_SIZE ? &first[i + 1].head : NULL;
	*ret_nr = MAGAZINE_SIZE;
}

static struct quiesce__proxy *take_magazine(uint32_t *ret_nr)
{
	struct quiesce__proxy *first;

	quiesce__lock(&lock);
	if (!stock)
		stock = quiesce__hazptr_take(&depot);
	first = (struct quiesce__proxy *)stock;
	if (first)
		stock = stock->next;
	quiesce__unlock(&lock);
	if (!first)
		return NULL;
	first->head.next = first->others;
	*ret_nr = first->nr;
	if (first->nr == NEW)
		link_new(first, ret_nr);
	return first;
}

/* Allocate a chunk of new proxies: returns one magazine, and pushes the others to the depot.  Of these only the first proxy is written
 * here: a thread that retires would miss each line that this thread had written. */
static struct quiesce__proxy *new_magazines(uint32_t *ret_nr)
{
	struct quiesce__proxy *proxy = platform_pages_get(CHUNK_PROXIES * sizeof *proxy);

	if (!proxy)
		return NULL;
	for (uint32_t i = MAGAZINE_SIZE; i < CHUNK_PROXIES; i += MAGAZINE_SIZE)
		push_magazine(proxy + i, NEW);
	link_new(proxy, ret_nr);
	return proxy;
}

static bool refill(struct quiesce__proxies *proxies)
{
	uint32_t nr = MAGAZINE_SIZE;

	proxies->loaded = proxies->spare;
	proxies->spare = NULL;
	if (!proxies->loaded)
		proxies->loaded = take_magazine(&nr);
	if (!proxies->loaded)
		proxies->loaded = new_magazines(&nr);
	proxies->nr_loaded = proxies->loaded ? nr : 0;
	return proxies->loaded;
}

static struct quiesce__proxy *pop(struct quiesce__proxies *proxies)
{
	struct quiesce__proxy *proxy = proxies->loaded;

	proxies->loaded = (struct quiesce__proxy *)proxy->head.next;
	proxies->nr_loaded--;
	return proxy;
}

/* Take one proxy for a thread that has no queue, because it exits or memory is exhausted, and so keeps no
 * proxies. */
static QUIESCE_COLD struct quiesce__proxy *get_single(void)
{
	struct quiesce__proxies proxies = { .loaded = NULL };
	struct quiesce__proxy *proxy = NULL;

	if (refill(&proxies) && !QUIESCE_MUTANT(hazptr_exit_waits)) {
		proxy = pop(&proxies);
		quiesce__proxies_leave(&proxies);
	}
	return proxy;
}

struct quiesce__proxy *quiesce__proxy_get(struct quiesce_tls_v1 *self)
{
	struct quiesce__retired_queue *r = self->retired ? self->retired : quiesce__retired_new(self);
	struct quiesce__proxy *proxy;

	if (quiesce_unlikely(!r))
		return get_single();
	if (quiesce_unlikely(!r->proxies.loaded) && !refill(&r->proxies))
		return NULL;
	proxy = pop(&r->proxies);
	if (quiesce_unlikely(!r->proxies.loaded))
		refill(&r->proxies); /* I2 */
	return proxy;
}

static void put(struct quiesce__proxies *proxies, struct quiesce__proxy *proxy)
{
	if (proxies->nr_loaded == MAGAZINE_SIZE) {
		push_magazine(proxies->spare, MAGAZINE_SIZE);
		proxies->spare = proxies->loaded;
		proxies->loaded = NULL;
		proxies->nr_loaded = 0;
	}
	proxy->head.next = proxies->loaded ? &proxies->loaded->head : NULL;
	proxies->loaded = proxy;
	proxies->nr_loaded++;
}

void quiesce__hazptr_run_proxy(struct hazptr_head *head)
{
	struct quiesce__proxy *proxy = (struct quiesce__proxy *)head;
	void (*deleter)(void *object) = proxy->deleter;
	struct quiesce_tls_v1 *self = quiesce__self();
	/* The helper gets a queue for its proxies, too: single proxies in the depot would make it long. */
	struct quiesce__retired_queue *r = self->retired ? self->retired : quiesce__retired_new(self);
	void *object = proxy->object;

	if (r) {
		put(&r->proxies, proxy);
	} else { /* this thread exits, or memory is exhausted */
		proxy->head.next = NULL;
		push_magazine(proxy, 1);
	}
	quiesce__run_record_func((uintptr_t)deleter);
	deleter(object);
}

void quiesce__proxies_leave(struct quiesce__proxies *proxies)
{
	push_magazine(proxies->loaded, proxies->nr_loaded);
	push_magazine(proxies->spare, MAGAZINE_SIZE);
	*proxies = (struct quiesce__proxies){ 0 };
}

/* A magazine that another thread was taking at the fork is lost. */
void quiesce__proxies_fork_child(void)
{
	quiesce__lock_reset(&lock, false);
}
