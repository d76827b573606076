/* SPDX-License-Identifier: MIT */
/* certificate.c - a secret that is wiped soon after its renewal, while connections that use it wait for the network.
 *
 * Problem.  Each handshake signs by the current certificate, and waits for its peer meanwhile.  A renewed certificate
 *   takes its place now and then; the old one's key is to be wiped as soon as no handshake uses it.
 * Without it.  A lock held while a peer is slow stops the renewal, and a reference count is one line that all CPUs
 *   write.  A section of RCU that waits for the network delays every updater of the program.
 * Primitive.  Hazard pointers: a handshake protects the one certificate that it uses, in a slot of its thread.  A
 *   slow peer delays the wiping of that certificate, and of nothing else.
 *
 *	cc certificate.c $(pkg-config --cflags --libs quiesce)
 */
#include <quiesce/hazptr.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { NR_THREADS = 3, NR_RENEWALS = 200, WIPED = 0 };

struct certificate {
	struct hazptr_head hazptr; /* the first member: slots hold the address of the object */
	int serial, key;           /* equal until the key is wiped */
};

static struct certificate *current;
static atomic_bool stop;
static atomic_ulong nr_handshakes, nr_wrong, nr_wiped;

static bool handshake(hazptr_t *slot)
{
	const struct certificate *c = hazptr_protect(slot, &current); /* loads the pointer and protects the object */
	bool right;

	usleep(20); /* the peer: a protection may be kept across sleep */
	right = c->key == c->serial;
	hazptr_clear(slot); /* from here on @c must not be used */
	return right;
}

static void *serve(void *arg)
{
	hazptr_t *slot = hazptr_alloc(NULL); /* one for all handshakes of the thread */
	unsigned long handshakes = 0;

	while (slot && (!handshakes || !stop)) {
		nr_wrong += !handshake(slot);
		handshakes++;
	}
	nr_handshakes += handshakes;
	hazptr_free(NULL, slot); /* NULL is ignored */
	return arg;
}

static void wipe(struct hazptr_head *head)
{
	struct certificate *c = (struct certificate *)head; /* its first member */

	*(volatile int *)&c->key = WIPED;
	free(c);
	nr_wiped++;
}

/* Any thread: an exchange returns each old certificate to one caller. */
static bool renew(int serial)
{
	struct certificate *fresh = malloc(sizeof(*fresh)), *old;

	if (!fresh)
		return false; /* the old certificate stays in use */
	fresh->serial = fresh->key = serial;
	old = rcu_xchg_pointer(&current, fresh); /* from here on no reader finds the old one */
	if (old)
		call_hazptr(&old->hazptr, wipe); /* does not wait; the callback runs once no slot protects it */
	return true;
}

int main(void)
{
	pthread_t threads[NR_THREADS];
	int nr = 0, renewals = 0;

	if (!renew(1))
		return 1;
	while (nr < NR_THREADS && pthread_create(&threads[nr], NULL, serve, NULL) == 0)
		nr++;
	for (; renewals < NR_RENEWALS && renew(2 + renewals); renewals++)
		usleep(50);
	stop = true;
	while (nr > 0)
		pthread_join(threads[--nr], NULL);
	wipe(&current->hazptr); /* directly: no reader is left */
	hazptr_barrier();       /* the callbacks of all other certificates have returned */
	printf("certificate: %d renewals, %lu handshakes, %lu wrong, %lu wiped\n", renewals, nr_handshakes, nr_wrong, nr_wiped);
	return renewals != NR_RENEWALS || !nr_handshakes || nr_wrong || nr_wiped != NR_RENEWALS + 1;
}
