/* SPDX-License-Identifier: MIT */
/* meter.h - what a stretch of time cost beside itself. */
#ifndef QUIESCE_TOOL_METER_H
#define QUIESCE_TOOL_METER_H

#include "tool.h"

/* Readings at one moment; subtract two of them. */
struct meter {
	uint64_t at_ns;
	uint64_t cpu_ns;
	double ipis;
	double membarriers;
	double wakeups;
};
/* Function-call interrupts of the whole machine, all CPUs together; NAN: unknown. */
double meter_interrupts(void);
void meter_read(struct meter *ret, const struct op *op);
struct costs meter_since(const struct meter *begin, const struct op *op, double waits);

#endif
