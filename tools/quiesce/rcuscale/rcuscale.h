/* SPDX-License-Identifier: MIT */
/* rcuscale.h - the cells of rcuscale. */
#ifndef QUIESCE_TOOL_RCUSCALE_H
#define QUIESCE_TOOL_RCUSCALE_H

#include "tool.h"

#define CALLERS 8
#define ALIVE 1024
#define HOGS 2

/* wait_cell.c: times waits of @job->op while @readers threads do what @scenario says. */
void wait_cell(const struct job *job, enum scenario scenario, int readers);
/* held_cell.c measures the time from the end of one long section to the return of the wait for it. */
void held_cell(const struct job *job);
/* callers_cell.c runs CALLERS callers at once, with their rate and fairness; @scenario selects the readers beside them. */
void callers_cell(const struct job *job, enum scenario scenario);
/* reader_cell.c measures the loss of @readers beside an updater. */
void reader_cell(const struct job *job, enum scenario scenario, int readers);
/* retire_cell.c measures the throughput of deferred reclamation with @producers threads. */
void retire_cell(const struct job *job, int producers);

/* load.c: reader threads beside a measurement. */
struct load;
struct load *load_start(const struct op *op, enum scenario scenario, int readers, bool pinned);
void load_stop(struct load *load);
/* Sections on the object that is waited for, back to back; returns the sum of the values read. */
#define LOAD_SECTIONS 256 /* sections between two checks of the stop flag */
uint64_t load_sections(const struct op *op);
/* load_lock() begins one section, load_unlock() ends it. */
void load_lock(const struct op *op);
void load_unlock(const struct op *op);

#endif
