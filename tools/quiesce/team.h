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

/* A barrier that nobody has to be woken from: threads spin a little, then yield. */
struct gate {
	uint32_t parties;
	uint32_t arrived __attribute__((aligned(64))); /* total; a pass is complete at each multiple of parties */
};
void gate_init(struct gate *gate, uint32_t parties);
void gate_pass(struct gate *gate);

struct team;
struct member {
	struct team *team;
	int index;
};

/* @body runs in each of @nr threads; bound to CPU first_cpu + index if @pinned. */
struct team {
	int nr;
	bool pinned;
	int first_cpu;
	void (*body)(struct member *member);
	void *arg;
	pthread_t *thread;
	struct member *member;
};

/* Start the threads; false, with a note to the parent, if that many cannot be had. */
bool team_start(struct team *team);
void team_join(struct team *team);
/* Can @nr threads be had at one time?  0, or an errno; none is left. */
int team_try(int nr);

int cpus_online(void);
/* Bind the calling thread to the @index-th CPU that this process may use, or to all with -1. */
void bind_cpu(int index);

uint64_t now_ns(void);
uint64_t thread_cpu_ns(void);
uint64_t process_cpu_ns(void);
void sleep_ns(uint64_t ns);
/* How many turns of quiesce_cpu_relax() make @ns. */
uint32_t turns_for(uint64_t ns);

/* A small generator of random numbers, one state per thread. */
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
