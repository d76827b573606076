/* SPDX-License-Identifier: MIT */
/* samples.h - a bounded number of samples, evenly over however many there are. */
#ifndef QUIESCE_TOOL_SAMPLES_H
#define QUIESCE_TOOL_SAMPLES_H

#include <stdint.h>

/* Each @stride-th sample is kept; when there is no more room, every second one is dropped. */
struct samples {
	double *value;
	uint64_t room;
	uint64_t nr;
	uint64_t stride; /* 0: not begun */
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
