/* SPDX-License-Identifier: MIT */
/* connections.c - a table of connections that are looked up for each packet, and opened and closed by many threads.
 *
 * Problem.  Every packet is matched to its connection by a key.  All threads open and close connections, and each
 *   connection owns memory that is given back when it goes.
 * Without it.  With a lock around the table lookups wait for each other.  Without one a lookup walks a bucket that is
 *   being changed or resized, and a connection is freed between lookup and use.
 * Primitive.  The hash table: lookups take no lock and write nothing shared, updates lock one bucket, and it resizes
 *   itself.  Lookups are sections of RCU, so the thread whose removal succeeds retires the connection by call_rcu().
 *
 *	cc connections.c $(pkg-config --cflags --libs quiesce)
 */
#include <quiesce/ds/hashtable.h>
#include <quiesce/rcu.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { NR_THREADS = 3, NR_ROUNDS = 20000, NR_IDS = 512 };

struct connection {
	uint64_t id;
	uint64_t *state; /* an allocation of its own, which names the connection */
	struct rcu_head rcu;
};

HASHTABLE_TYPE(connection, struct connection, id); /* connection_type, connection_lookup(), connection_remove_key(), ... */

static struct hashtable connections = HASHTABLE_INIT(&connection_type);
static atomic_ulong nr_opened, nr_freed, nr_packets, nr_wrong;

static void connection_free(struct connection *c)
{
	free(c->state);
	free(c);
}

static void connection_free_rcu(struct rcu_head *head)
{
	connection_free((struct connection *)((char *)head - offsetof(struct connection, rcu)));
	nr_freed++;
}

static bool connection_open(uint64_t id)
{
	struct connection *c = malloc(sizeof(*c));

	if (!c)
		return false;
	c->id = id;
	c->state = malloc(sizeof(*c->state));
	if (c->state)
		*c->state = id;
	if (!c->state || connection_insert_unique(&connections, c, NULL) != 0) { /* no memory, or open already */
		connection_free(c); /* directly: no reader has seen it */
		return false;
	}
	nr_opened++;
	return true;
}

/* Exactly one thread gets the object from the removal, and retires it. */
static bool connection_close(uint64_t id)
{
	struct connection *c = connection_remove_key(&connections, &id);
	if (c)
		call_rcu(&c->rcu, connection_free_rcu);
	return c != NULL;
}

static bool packet(uint64_t id)
{
	const struct connection *c;

	rcu_read_lock();
	c = connection_lookup(&connections, &id);
	if (c && (c->id != id || *c->state != id))
		nr_wrong++;
	rcu_read_unlock();
	return c != NULL; /* whether it was there: nothing is loaded through it any more */
}

static void *work(void *arg)
{
	uint64_t random = (uintptr_t)arg;
	unsigned long packets = 0; /* of this thread: lookups share no line */

	for (int i = 0; i < NR_ROUNDS; i++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		if (!connection_open(random >> 32 & (NR_IDS - 1)))
			(void)connection_close(random >> 32 & (NR_IDS - 1));
		for (int j = 1; j <= 8; j++)
			packets += packet(random >> (40 - j) & (NR_IDS - 1));
	}
	nr_packets += packets;
	return NULL;
}

static void drop(void *object, void *arg)
{
	(void)arg;
	call_rcu(&((struct connection *)object)->rcu, connection_free_rcu);
}

int main(void)
{
	pthread_t threads[NR_THREADS];
	int nr = 0;

	while (nr < NR_THREADS && pthread_create(&threads[nr], NULL, work, (void *)(uintptr_t)(nr + 1)) == 0)
		nr++;
	while (nr > 0)
		pthread_join(threads[--nr], NULL);
	hashtable_destroy(&connections, drop, NULL); /* those that are still open */
	rcu_barrier();                               /* every callback has returned */
	printf("connections: %lu opened, %lu freed, %lu packets, %lu wrong\n", nr_opened, nr_freed, nr_packets, nr_wrong);
	return !nr_packets || !nr_opened || nr_opened != nr_freed || nr_wrong;
}
