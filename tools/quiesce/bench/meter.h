/* SPDX-License-Identifier: MIT */
/* meter.h - the costs of a stretch of time: processor time, interrupts, membarriers, wake-ups. */
#ifndef QUIESCE_TOOL_METER_H
#define QUIESCE_TOOL_METER_H

#include "op.h"

/* A measurement has these costs beside its time, as totals over the cell. */
struct costs {
	double seconds;
	double cpu_s;
	double ipis;        /* interrupts of the whole machine; NAN: unknown */
	double membarriers; /* NAN: unknown */
	double wakeups;     /* NAN: unknown */
	double waits;       /* number of waits that these figures belong to */
};

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
