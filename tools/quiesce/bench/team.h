/* SPDX-License-Identifier: MIT */
/* team.h - threads that begin together. */
#ifndef QUIESCE_TOOL_TEAM_H
#define QUIESCE_TOOL_TEAM_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A barrier without wake-ups: threads spin a little, then yield. */
struct spin_barrier {
	uint32_t parties;
	uint32_t arrived __attribute__((aligned(64))); /* total of arrivals; a pass is complete at each multiple of @parties */
};
void spin_barrier_init(struct spin_barrier *barrier, uint32_t parties);
void spin_barrier_wait(struct spin_barrier *barrier);

struct team;
struct member {
	struct team *team;
	int index;
};

/* @body runs in each of @nr threads; thread i is bound to CPU first_cpu + i if @pinned. */
struct team {
	int nr;
	bool pinned;
	int first_cpu;
	void (*body)(struct member *member);
	void *arg;
	pthread_t *thread;
	struct member *member;
};

/* Starts the threads.  False, after a note to the parent: so many threads cannot be started. */
bool team_start(struct team *team);
void team_join(struct team *team);
/* Tries to start @nr threads at one time; none is left.  Returns 0 or an errno. */
int team_try(int nr);

/* Reports to the user what made a measurement poorer.  main() sets it. */
extern void (*bench_note)(const char *format, ...) __attribute__((format(printf, 1, 2)));

int cpus_online(void);
/* Binds the calling thread to the @index-th CPU that this process may use; -1: to all of them. */
void bind_cpu(int index);

uint64_t now_ns(void);
/* The time for which the calling thread was runnable without a CPU; @fd: its /proc/thread-self/schedstat.  NAN: unknown. */
double run_delay_ns(int fd);
uint64_t thread_cpu_ns(void);
uint64_t process_cpu_ns(void);
void sleep_ns(uint64_t ns);
/* Returns the number of turns of quiesce_cpu_relax() that take @ns. */
uint32_t turns_for(uint64_t ns);

/* Returns the next number of a small random generator with one state per thread. */
static inline uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

#ifdef __cplusplus
}
#endif

#endif
