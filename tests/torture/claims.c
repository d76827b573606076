/* SPDX-License-Identifier: MIT */
/* claims.c - a slot must hold its owner's address from the claim to the clear.
 *
 * Threads claim, are preempted, migrated and interrupted by signals whose handlers claim
 * themselves and leave a detached guard behind, hand guards over, and check each slot
 * repeatedly.  Every guard has an address of its own, so a slot that holds another address
 * was claimed twice.  The library stays inside its restartable sequences for a random
 * while.  Exit status: 0, 1 if a claim was lost, 2 usage, 77 if this machine claims
 * without such sequences and a mutant is asked for.
 */
#include <quiesce/shazptr.h>

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "perturbed.h"
#include "slots/slots.h"

#define WORKERS 20 /* the first ones get a line of their own, the others claim near their CPU */
#define MAX_HELD 10
#define MAILBOXES 16

/* Counters have one writer each and are read when it has been joined; flags order nothing. */
static struct worker {
	pthread_t thread;
	uint64_t next;                /* number of the newest address */
	struct shazptr_guard left;    /* a guard that the signal handler left */
	volatile sig_atomic_t is_left; /* true while there is such a guard */
	uint64_t random, claims, in_handlers, handed_over, kinds[QUIESCE_SLOTS_SHARED + 1];
} __attribute__((aligned(128))) worker[WORKERS];

static __thread struct worker *self;
static uint32_t stop, ready;
static uint64_t lost, wanted; /* wanted: some address that a worker had lately */

static struct mailbox {
	uint32_t state; /* 0 empty, 1 a thread accesses it, 2 full */
	struct shazptr_guard guard;
} __attribute__((aligned(64))) mailbox[MAILBOXES];

/* raw: the test's own flags and hand-over; only the library's accesses are to be perturbed. */
#define LOAD(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
/* raw: the test's own hand-over. */
#define STORE(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
/* raw: the test's own hand-over. */
#define ADD(p, v) ((void)__atomic_fetch_add((p), (v), __ATOMIC_ACQ_REL))

/* raw: between a thread and its own signal handler only the compiler could change the order. */
#define HANDLER_FENCE() __atomic_signal_fence(__ATOMIC_SEQ_CST)

static bool turn(struct mailbox *m, uint32_t from)
{
	/* raw: the test's own hand-over. */
	return __atomic_compare_exchange_n(&m->state, &from, 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static uint64_t draw(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state >> 11;
}

static void sleep_ns(long ns)
{
	nanosleep(&(struct timespec){ .tv_nsec = ns }, NULL);
}

/* ---- one guard ---- */

/* Return an address that no other thread ever protects. */
static void *fresh_address(struct worker *w)
{
	return (void *)(uintptr_t)(((uint64_t)(w - worker) + 1) << 48 | ++w->next << 5);
}

static bool holds(struct shazptr_guard guard)
{
	if ((LOAD(guard.slot) & ~QUIESCE_SLOT_TAG) == (uintptr_t)shazptr_ptr(guard))
		return true;
	ADD(&lost, 1);
	STORE(&stop, 1);
	return false;
}

/* Check a slot and clear its guard, unless the slot has another owner by now. */
static void check_and_clear(struct shazptr_guard guard)
{
	if (holds(guard))
		shazptr_clear(guard);
}

static void on_signal(int sig)
{
	struct worker *w = self;
	/* The interrupted claim may be using this worker's next number: handlers have odd ones of their own. */
	void *address = (void *)((uintptr_t)fresh_address(w) | 16);

	(void)sig;
	w->in_handlers++;
	check_and_clear(shazptr_acquire(address));
	if (w->is_left)
		return;
	w->left = shazptr_acquire_detached(address);
	HANDLER_FENCE();
	w->is_left = 1;
}

/* Clear the guard that the handler has left, some time after it did. */
static void take_left(struct worker *w)
{
	struct shazptr_guard guard;

	if (!w->is_left)
		return;
	HANDLER_FENCE();
	guard = w->left;
	HANDLER_FENCE();
	w->is_left = 0;
	check_and_clear(guard);
}

static bool post(struct worker *w, struct shazptr_guard guard)
{
	struct mailbox *m = &mailbox[draw(&w->random) % MAILBOXES];

	if (!turn(m, 0))
		return false;
	shazptr_detach(guard);
	m->guard = guard;
	STORE(&m->state, 2u);
	w->handed_over++;
	return true;
}

static void fetch(struct mailbox *m)
{
	struct shazptr_guard guard;

	if (!turn(m, 2))
		return;
	guard = m->guard;
	STORE(&m->state, 0u);
	check_and_clear(guard);
}

/* ---- threads ---- */

static void move(struct worker *w)
{
	cpu_set_t set;
	uint64_t r = draw(&w->random);
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	CPU_ZERO(&set);
	for (long cpu = 0; cpu < cpus && cpu < CPU_SETSIZE; cpu++)
		if (r & 1 || cpu == (long)(r >> 1) % cpus)
			CPU_SET((size_t)cpu, &set);
	sched_setaffinity(0, sizeof set, &set); /* where it is not allowed, the thread stays */
}

static void disturb(struct worker *w)
{
	uint64_t r = draw(&w->random);

	if (r % 256 == 0)
		move(w);
	else if (r % 256 == 1)
		sched_yield();
	else if (r % 2048 == 2)
		sleep_ns((long)(r >> 16 & 65535));
}

/* Claim one to ten guards, check all of them after each step, clear them in any order. */
static void claim_some(struct worker *w)
{
	struct shazptr_guard held[MAX_HELD];
	uint64_t r = draw(&w->random);
	int want = r % 64 == 0 ? MAX_HELD : r % 4 ? 1 : 3, nr = 0;

	while (nr < want) {
		held[nr++] = shazptr_acquire(fresh_address(w));
		w->claims++;
		disturb(w);
		for (int i = 0; i < nr; i++)
			if (!holds(held[i]))
				return;
	}
	w->kinds[quiesce_shazptr_slot(held[0])]++;
	STORE(&wanted, (uint64_t)(uintptr_t)shazptr_ptr(held[0]));
	while (nr) {
		int i = (int)(draw(&w->random) % (uint64_t)nr);

		if (draw(&w->random) % 16 || !post(w, held[i]))
			check_and_clear(held[i]);
		held[i] = held[--nr];
	}
}

static void *work(void *arg)
{
	struct worker *w = self = arg;

	ADD(&ready, 1u);
	while (LOAD(&ready) < WORKERS) /* all workers are alive then, and not all have a line */
		sched_yield();
	while (!LOAD(&stop)) {
		for (int i = 0; i < 64; i++)
			claim_some(w);
		take_left(w);
		fetch(&mailbox[draw(&w->random) % MAILBOXES]);
	}
	return NULL;
}

/* Tags come and go in slots all the time. */
static void *wait_for_some(void *unused)
{
	(void)unused;
	while (!LOAD(&stop)) {
		synchronize_shazptr((void *)(uintptr_t)LOAD(&wanted));
		sleep_ns(300000);
		synchronize_shazptr(SHAZPTR_WILDCARD);
		sleep_ns(1000000);
	}
	return NULL;
}

static void start(pthread_t *thread, void *(*body)(void *), void *arg)
{
	if (!pthread_create(thread, NULL, body, arg))
		return;
	perror("pthread_create");
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void send_signals(double end)
{
	uint64_t random = 88675123;

	while (!LOAD(&stop) && now() < end) {
		pthread_kill(worker[draw(&random) % WORKERS].thread, SIGUSR1);
		sleep_ns((long)(draw(&random) % 40000));
	}
	STORE(&stop, 1u);
}

/* ---- */

static int report(double seconds)
{
	static const char *const name[] = { "own line", "CPU number", "concurrency id", "shared" };
	uint64_t claims = 0, handlers = 0, handed = 0, kinds[QUIESCE_SLOTS_SHARED + 1] = { 0 };

	for (struct worker *w = worker; w < worker + WORKERS; w++) {
		claims += w->claims;
		handlers += w->in_handlers;
		handed += w->handed_over;
		for (int i = 0; i <= QUIESCE_SLOTS_SHARED; i++)
			kinds[i] += w->kinds[i];
	}
	printf("%llu claims, %llu more in signal handlers, %llu handed over; first slots:", (unsigned long long)claims,
	       (unsigned long long)handlers, (unsigned long long)handed);
	for (int i = 0; i <= QUIESCE_SLOTS_SHARED; i++)
		printf(" %s %llu", name[i], (unsigned long long)kinds[i]);
	printf("; %llu lost after %.2f s\n", (unsigned long long)lost, seconds);
	if (lost)
		return 1;
	if (claims && handlers && handed)
		return 0;
	printf("proves nothing: some of that did not happen\n");
	return 1;
}

static int run(double seconds)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	double begin = now();
	pthread_t waiter;

	sigaction(SIGUSR1, &action, NULL);
	for (struct worker *w = worker; w < worker + WORKERS; w++) {
		w->random = 0x9e3779b97f4a7c15u * (uint64_t)(w - worker + 1);
		start(&w->thread, work, w);
	}
	while (LOAD(&ready) < WORKERS)
		sleep_ns(100000);
	start(&waiter, wait_for_some, NULL);
	send_signals(begin + seconds);
	for (struct worker *w = worker; w < worker + WORKERS; w++)
		pthread_join(w->thread, NULL);
	seconds = now() - begin;
	if (lost)
		return report(seconds); /* a lost claim may delay the waiter for ever */
	for (struct worker *w = worker; w < worker + WORKERS; w++)
		take_left(w);
	for (int i = 0; i < MAILBOXES; i++)
		fetch(&mailbox[i]);
	pthread_join(waiter, NULL);
	return report(seconds);
}

int main(int argc, char **argv)
{
	struct perturbed_options options;

	if (!perturbed_options(&options, argc, argv))
		return 2;
	if (quiesce_slots() == QUIESCE_SLOTS_THREAD || quiesce_fence() != QUIESCE_FENCE_LIGHT) {
		fprintf(stderr, "no restartable sequences in use here\n");
		if (options.mutant)
			return 77;
	}
	alarm((unsigned int)options.seconds + 30); /* a hang ends in a crash */
	return run(options.seconds);
}
