/* SPDX-License-Identifier: MIT */
/* broken.c - a preloaded library with grace periods that wait for no reader, by every name that liburcu and the face have for one.
 *
 * A test that passes with this proves nothing about grace periods.  Callbacks run at once, in a thread of their own, because some
 * take locks that the caller of call_rcu() holds.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

struct head; /* stands for the library's struct rcu_head, of which only the address is needed */

struct cookie {
	unsigned long words[1];
};

struct callback {
	struct head *head;
	void (*func)(struct head *);
	struct callback *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static struct callback *first, **end = &first;
static bool started;

static void *call_all(void *unused)
{
	(void)unused;
	for (;;) {
		struct callback *c;

		pthread_mutex_lock(&lock);
		while (!first)
			pthread_cond_wait(&more, &lock);
		c = first;
		first = c->next;
		if (!first)
			end = &first;
		pthread_mutex_unlock(&lock);
		c->func(c->head);
		free(c);
	}
	return NULL;
}

static void call(struct head *head, void (*func)(struct head *))
{
	struct callback *c = malloc(sizeof *c);
	pthread_t thread;

	if (!c)
		abort();
	*c = (struct callback){ head, func, NULL };
	pthread_mutex_lock(&lock);
	if (!started && pthread_create(&thread, NULL, call_all, NULL))
		abort();
	started = true;
	*end = c;
	end = &c->next;
	pthread_cond_signal(&more);
	pthread_mutex_unlock(&lock);
}

#define BROKEN(prefix)                                                              \
	void prefix##_synchronize_rcu(void) { }                                     \
	void prefix##_barrier(void) { }                                             \
	void prefix##_call_rcu(struct head *head, void (*func)(struct head *)) { call(head, func); } \
	void prefix##_defer_rcu(void (*func)(void *), void *p) { func(p); }         \
	void prefix##_defer_barrier(void) { }                                       \
	void prefix##_defer_barrier_thread(void) { }                                \
	struct cookie prefix##_start_poll_synchronize_rcu(void) { return (struct cookie){ { 0 } }; } \
	bool prefix##_poll_state_synchronize_rcu(struct cookie cookie) { (void)cookie; return true; }

#define BROKEN_FLAVOUR(flavour)     \
	BROKEN(urcu_##flavour)      \
	BROKEN(quiesce_urcu_##flavour)

BROKEN_FLAVOUR(memb)
BROKEN_FLAVOUR(mb)
BROKEN_FLAVOUR(bp)
BROKEN_FLAVOUR(qsbr)
BROKEN_FLAVOUR(signal)
