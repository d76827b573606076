/* SPDX-License-Identifier: MIT */
/* team.c - threads that begin together, clocks, and CPUs. */
#include "team.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <quiesce/atomic.h>


#define STACK_BYTES (128 * 1024)
#define SPINS 2000

void spin_barrier_init(struct spin_barrier *barrier, uint32_t parties)
{
	barrier->parties = parties;
	quiesce_store_relaxed(&barrier->arrived, 0);
}

/* Relaxed throughout: the barrier starts stopwatches, it publishes nothing. */
void spin_barrier_wait(struct spin_barrier *barrier)
{
	uint32_t me = quiesce_fetch_add_relaxed(&barrier->arrived, (uint32_t)1);
	uint32_t complete = (me / barrier->parties + 1) * barrier->parties;

	for (uint32_t spins = 0; quiesce_load_relaxed(&barrier->arrived) < complete; spins++) {
		if (spins < SPINS && barrier->parties <= (uint32_t)cpus_online())
			quiesce_cpu_relax();
		else
			sched_yield();
	}
}

void (*bench_note)(const char *format, ...);

static void allowed_cpus(cpu_set_t *set)
{
	static cpu_set_t first;
	static bool known;

	if (!known) { /* the first caller is the only thread */
		if (sched_getaffinity(0, sizeof(first), &first))
			CPU_ZERO(&first);
		known = true;
	}
	*set = first;
}

int cpus_online(void)
{
	cpu_set_t set;

	allowed_cpus(&set);
	return CPU_COUNT(&set) > 0 ? CPU_COUNT(&set) : 1;
}

void bind_cpu(int index)
{
	cpu_set_t allowed, one;
	int at = 0;

	allowed_cpus(&allowed);
	CPU_ZERO(&one);
	if (index < 0) {
		one = allowed;
	} else {
		index %= cpus_online();
		for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
			if (CPU_ISSET(cpu, &allowed) && at++ == index)
				CPU_SET(cpu, &one);
	}
	if (CPU_COUNT(&one) > 0)
		sched_setaffinity(0, sizeof(one), &one);
}

static void *start_member(void *arg)
{
	struct member *m = arg;

	bind_cpu(m->team->pinned ? m->team->first_cpu + m->index : -1);
	m->team->body(m);
	return NULL;
}

static int create(pthread_t *ret, void *(*main)(void *arg), void *arg)
{
	pthread_attr_t attr;
	int err;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	err = pthread_create(ret, &attr, main, arg);
	pthread_attr_destroy(&attr);
	return err;
}

bool team_start(struct team *team)
{
	int err = 0;

	cpus_online(); /* counts all CPUs before a thread is bound */
	team->thread = calloc((size_t)team->nr + 1, sizeof(*team->thread));
	team->member = calloc((size_t)team->nr + 1, sizeof(*team->member));
	if (!team->thread || !team->member)
		err = ENOMEM;
	for (int i = 0; i < team->nr && !err; i++) {
		team->member[i] = (struct member){ team, i };
		err = create(&team->thread[i], start_member, &team->member[i]);
	}
	if (!err)
		return true;
	bench_note("cannot start %d threads: %s", team->nr, strerror(err));
	exit(EXIT_FAILURE); /* the threads that were started wait for the missing ones */
}

void team_join(struct team *team)
{
	for (int i = 0; i < team->nr; i++)
		pthread_join(team->thread[i], NULL);
	free(team->thread);
	free(team->member);
}

static void *stay(void *held)
{
	pthread_mutex_lock(held);
	pthread_mutex_unlock(held);
	return NULL;
}

int team_try(int nr)
{
	pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
	pthread_t *thread = calloc((size_t)nr, sizeof(*thread));
	int n = 0, err = thread ? 0 : ENOMEM;

	pthread_mutex_lock(&held);
	while (n < nr && !err) {
		err = create(&thread[n], stay, &held);
		n += !err;
	}
	pthread_mutex_unlock(&held);
	while (n)
		pthread_join(thread[--n], NULL);
	free(thread);
	return err;
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t thread_cpu_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t process_cpu_ns(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

double run_delay_ns(int fd)
{
	char text[96];
	ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);
	unsigned long long delay;

	if (n <= 0)
		return NAN;
	text[n] = '\0';
	return sscanf(text, "%*u %llu", &delay) == 1 ? (double)delay : NAN;
}

void sleep_ns(uint64_t ns)
{
	struct timespec t = { (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

/* The best of some tries: a disturbance makes a try longer. */
uint32_t turns_for(uint64_t ns)
{
	const uint32_t turns = 5000;
	uint64_t best = UINT64_MAX;

	for (int try = 0; try < 5; try++) {
		uint64_t took = now_ns();

		for (uint32_t i = 0; i < turns; i++)
			quiesce_cpu_relax();
		took = now_ns() - took;
		best = took < best ? took : best;
	}
	return (uint32_t)((ns * turns + best - 1) / (best ? best : 1));
}
