/* SPDX-License-Identifier: MIT */
/* meter.c - processor time, function-call interrupts, membarriers, wake-ups. */
#include "meter.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "syscount.h"
#include "team.h"

/* Returns the sum over CPUs of the "function call interrupts" line, which exists on x86 only. */
double meter_interrupts(void)
{
	FILE *f = fopen("/proc/interrupts", "re");
	double sum = NAN;
	char line[8192], *p;

	while (f && fgets(line, sizeof(line), f)) {
		p = strstr(line, "CAL:");
		if (!p)
			continue;
		sum = 0;
		for (p += 4; *(p += strspn(p, " ")) >= '0' && *p <= '9';)
			sum += strtod(p, &p);
		break;
	}
	if (f)
		fclose(f);
	return sum;
}

void meter_read(struct meter *ret, const struct op *op)
{
	struct op_stats stats;
	struct syscount count;

	syscount_read(&count);
	ret->membarriers = (double)count.membarriers;
	ret->wakeups = (double)count.futex_wakes;
	if (op->stats) {
		op->stats(&stats);
		ret->membarriers = (double)stats.membarriers;
		ret->wakeups = (double)stats.wakeups;
	}
	ret->ipis = meter_interrupts();
	ret->cpu_ns = process_cpu_ns();
	ret->at_ns = now_ns();
}

struct costs meter_since(const struct meter *begin, const struct op *op, double waits)
{
	struct meter now;

	meter_read(&now, op);
	return (struct costs){
		.seconds = (double)(now.at_ns - begin->at_ns) / 1e9,
		.cpu_s = (double)(now.cpu_ns - begin->cpu_ns) / 1e9,
		.ipis = now.ipis - begin->ipis,
		.membarriers = now.membarriers - begin->membarriers,
		.wakeups = now.wakeups - begin->wakeups,
		.waits = waits,
	};
}
