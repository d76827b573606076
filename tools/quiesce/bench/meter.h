/* SPDX-License-Identifier: MIT */
/* meter.h - the costs of a stretch of time: processor time, interrupts, membarriers, wake-ups. */
#ifndef QUIESCE_TOOL_METER_H
#define QUIESCE_TOOL_METER_H

#include "tool.h"

/* Readings at one moment; the difference of two is the cost. */
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
