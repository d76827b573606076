/* SPDX-License-Identifier: MIT */
/* samples.h - a bounded number of samples, evenly spaced over any number of values. */
#ifndef QUIESCE_TOOL_SAMPLES_H
#define QUIESCE_TOOL_SAMPLES_H

#include <stdint.h>

/* Keeps each @stride-th sample; when there is no more room, drops every second one. */
struct samples {
	double *value;
	uint64_t room;
	uint64_t nr;
	uint64_t stride; /* 0: no sample yet */
	uint64_t seen;
};

static inline void samples_add(struct samples *s, double value)
{
	if (!s->stride)
		s->stride = 1;
	if (s->seen++ % s->stride)
		return;
	if (s->nr == s->room) {
		s->nr /= 2;
		for (uint64_t i = 0; i < s->nr; i++)
			s->value[i] = s->value[2 * i];
		s->stride *= 2;
		if ((s->seen - 1) % s->stride)
			return;
	}
	s->value[s->nr++] = value;
}

#endif
