/* SPDX-License-Identifier: MIT */
/* doctor.h - one finding after the other. */
#ifndef QUIESCE_TOOL_DOCTOR_H
#define QUIESCE_TOOL_DOCTOR_H

#include "tool.h"

struct findings;
/* @note may be NULL: what the value means for the user. */
void finding(struct findings *f, const char *topic, const char *note, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* Can @nr threads be had for what @topic is about?  If not, that is the finding. */
bool find_threads(struct findings *f, const char *topic, int nr);

void doctor_fences(struct findings *f);
void doctor_hazptr(struct findings *f);
void doctor_machine(struct findings *f);
void doctor_percpu(struct findings *f);
void doctor_slots(struct findings *f);

/* doctor_rseq.c: two threads on one CPU claim one slot under rseq, or, if @bare, in the same
 * sequence unprotected.  False: cannot be tried here. */
struct rseq_result {
	uint64_t claims;
	uint64_t lost;    /* of them, overwritten by the other thread */
	uint64_t aborted; /* sequences that the kernel restarted */
};
bool rseq_race(bool bare, struct rseq_result *ret);

/* litmus.c: store one word, load the other, in two threads, for @seconds; how often
 * both loads missed the other's store.  @heavy: between the updater's store and load. */
enum litmus_fence { LITMUS_NONE, LITMUS_LIGHT_HEAVY, LITMUS_FULL };
struct litmus_result {
	uint64_t rounds;
	uint64_t both_missed;
};
struct litmus_result litmus_run(enum litmus_fence fence, double seconds);

#endif
