/* SPDX-License-Identifier: MIT */
/* routes.c - a routing table that is reloaded as a whole while packets are forwarded.
 *
 * Problem.  A lookup goes from the table to a route and from there to its next hop.  A reload replaces all of them,
 *   and a packet must be forwarded by the old table or by the new one, never by parts of both.
 * Without it.  Changing the table in place shows readers half of each.  Freeing the old one at once pulls routes and
 *   next hops away from lookups that are under way.
 * Primitive.  RCU, because one section protects all that a lookup goes through.  call_rcu() hands the old table to a
 *   callback that frees its parts after a grace period; rcu_throttle() bounds the memory of a burst of reloads.
 *
 *	cc routes.c $(pkg-config --cflags --libs quiesce)
 */
#include <quiesce/rcu.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { NR_READERS = 3, NR_RELOADS = 300, MAX_ROUTES = 8 };
struct next_hop { unsigned int gateway, generation; };
static struct table {
	struct rcu_head rcu;
	int nr;
	struct route {
		uint32_t prefix, mask;
		struct next_hop *via;
	} routes[MAX_ROUTES]; /* longest prefix first, as in the file */
} *table;
static atomic_bool stop;
static atomic_ulong nr_packets, nr_wrong;

static void table_free(struct rcu_head *head)
{
	struct table *t = (struct table *)head; /* its first member */

	while (t->nr > 0)
		free(t->routes[--t->nr].via);
	free(t);
}

/* Lines of "address/length gateway".  NULL: no memory, or a line that is no route. */
static struct table *table_parse(const char *text, unsigned int generation)
{
	struct table *t = calloc(1, sizeof(*t));
	unsigned int a, b, c, d, length, gateway;
	int used;

	for (; t && *text; text += used) {
		struct next_hop *via = malloc(sizeof(*via));

		if (!via || t->nr == MAX_ROUTES ||
		    sscanf(text, "%u.%u.%u.%u/%u %u\n%n", &a, &b, &c, &d, &length, &gateway, &used) != 6 || length > 32) {
			free(via);
			table_free(&t->rcu);
			return NULL;
		}
		*via = (struct next_hop){ gateway, generation };
		t->routes[t->nr++] = (struct route){ a << 24 | b << 16 | c << 8 | d, length ? ~0u << (32 - length) : 0, via };
	}
	return t;
}

/* One thread at a time. */
static bool reload(const char *text, unsigned int generation)
{
	struct table *fresh = table_parse(text, generation);
	struct table *old = fresh ? rcu_xchg_pointer(&table, fresh) : NULL;

	if (old)
		call_rcu_sized(&old->rcu, table_free, sizeof(*old) + old->nr * sizeof(struct next_hop));
	rcu_throttle(); /* this thread holds no lock, so it may wait while too much memory waits to be freed */
	return fresh != NULL;
}

/* The caller is in a section, which lasts for as long as it uses the result. */
static const struct next_hop *lookup(const struct table *t, uint32_t address)
{
	for (int i = 0; i < t->nr; i++)
		if ((address & t->routes[i].mask) == t->routes[i].prefix)
			return t->routes[i].via;
	return NULL;
}

static void *forward(void *arg)
{
	unsigned long packets = 0, wrong = 0; /* of this thread: readers share no line */

	do {
		rcu_read_lock();
		const struct table *t = rcu_dereference(table);
		const struct next_hop *there = lookup(t, 0x0a010203), *back = lookup(t, 0xc0000201); /* 10.1.2.3, 192.0.2.1 */
		wrong += !there || !back || there->gateway != 2 || back->gateway != 3 || there->generation != back->generation;
		rcu_read_unlock();
		packets++;
	} while (!stop);
	nr_packets += packets;
	nr_wrong += wrong;
	return arg;
}

int main(void)
{
	static const char file[] = "10.1.0.0/16 2\n10.0.0.0/8 1\n0.0.0.0/0 3\n";
	pthread_t readers[NR_READERS];
	int nr = 0, reloads = 0;

	if (reload("10.1.0.0/16 two\n", 0) || !reload(file, 0)) /* the first has an error and is refused */
		return 1;
	while (nr < NR_READERS && pthread_create(&readers[nr], NULL, forward, NULL) == 0)
		nr++;
	for (; reloads < NR_RELOADS && reload(file, 1 + reloads); reloads++)
		usleep(50);
	stop = true;
	while (nr > 0)
		pthread_join(readers[--nr], NULL);
	table_free(&table->rcu); /* directly: no reader is left */
	rcu_barrier();           /* the callbacks of all other tables have returned */
	printf("routes: %d reloads, %lu packets, %lu wrong\n", reloads, nr_packets, nr_wrong);
	return reloads != NR_RELOADS || !nr_packets || nr_wrong;
}
