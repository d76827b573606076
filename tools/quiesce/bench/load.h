/* SPDX-License-Identifier: MIT */
/* load.h - reader threads beside a measurement. */
#ifndef QUIESCE_TOOL_LOAD_H
#define QUIESCE_TOOL_LOAD_H

#include "op.h"

enum load_kind {
	LOAD_SAME,   /* back to back, on the object of op_target */
	LOAD_OTHERS, /* on 1024 other objects */
	LOAD_OWN,    /* each on another object of its own */
	LOAD_LONG,   /* 1 ms asleep in each section, on the object of op_target */
	LOAD_ASLEEP  /* asleep outside sections */
};

/* @hogs: number of processes beside them that use a CPU each. */
struct load *load_start(const struct op *op, enum load_kind kind, int readers, bool pinned, int hogs);
void load_stop(struct load *load);
/* Sections on the object of op_target, back to back; returns the sum of the values read. */
#define LOAD_SECTIONS 256 /* sections between two checks of the stop flag */
uint64_t load_sections(const struct op *op);
/* load_lock() begins one section, load_unlock() ends it. */
void load_lock(const struct op *op);
void load_unlock(const struct op *op);

#endif
