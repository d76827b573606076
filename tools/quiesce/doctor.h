/* SPDX-License-Identifier: MIT */
/* doctor.h - one finding after the other. */
#ifndef QUIESCE_TOOL_DOCTOR_H
#define QUIESCE_TOOL_DOCTOR_H

#include "tool.h"

struct findings;
/* @note may be NULL: what the value means for the user. */
void finding(struct findings *f, const char *topic, const char *note, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

void doctor_fences(struct findings *f);
void doctor_machine(struct findings *f);

/* litmus.c: store one word, load the other, in two threads, for @seconds; how often
 * both loads missed the other's store.  @heavy: between the updater's store and load. */
enum litmus_fence { LITMUS_NONE, LITMUS_LIGHT_HEAVY, LITMUS_FULL };
struct litmus_result {
	uint64_t rounds;
	uint64_t both_missed;
};
struct litmus_result litmus_run(enum litmus_fence fence, double seconds);

#endif
