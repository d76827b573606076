/* SPDX-License-Identifier: MIT */
/* doctor.h - the findings of the doctor, one after the other. */
#ifndef QUIESCE_TOOL_DOCTOR_H
#define QUIESCE_TOOL_DOCTOR_H

#include "team.h"
#include "tool.h"

struct findings;
/* Add a finding.  @note: the consequence for the user, or NULL. */
void finding(struct findings *f, const char *topic, const char *note, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* Adds the finding of the first of @choices that holds; the last one does. */
struct choice {
	bool holds;
	const char *value, *note;
};
void finding_of(struct findings *f, const char *topic, const struct choice *choices);
/* True if @nr threads can be started for the trial of @topic; if not, that is the finding. */
bool find_threads(struct findings *f, const char *topic, int nr);
/* Runs @team, if its threads can be started. */
bool try_team(struct findings *f, const char *topic, struct team *team);
/* The size of the area that the C library has registered for restartable sequences; 0: none. */
unsigned int rseq_registered(void);
long membarrier(int command);

void doctor_fences(struct findings *f);
void doctor_hazptr(struct findings *f);
void doctor_machine(struct findings *f);
void doctor_percpu(struct findings *f);
void doctor_slots(struct findings *f);
/* The restartable sequences of the program or library at @path.  Returns the exit status. */
int doctor_binary(struct findings *f, const char *path);

/* doctor_rseq.c: two threads on one CPU claim one slot under rseq or, if @bare, by the same sequence unprotected.
 * Returns false if that cannot be tried here. */
struct rseq_result {
	uint64_t claims;
	uint64_t lost;    /* number of these claims that the other thread has overwritten */
	uint64_t aborted; /* number of sequences that the kernel has restarted */
};
bool rseq_race(bool bare, struct rseq_result *ret);

/* litmus.c: two threads each store to one word and load the other one, for @seconds; counts how often both loads
 * missed the store of the other thread.  @fence: the fences between store and load. */
enum litmus_fence { LITMUS_NONE, LITMUS_LIGHT_HEAVY, LITMUS_FULL };
struct litmus_result {
	uint64_t rounds;
	uint64_t both_missed;
};
struct litmus_result litmus_run(enum litmus_fence fence, double seconds);

#endif
