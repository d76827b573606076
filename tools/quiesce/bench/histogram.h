/* SPDX-License-Identifier: MIT */
/* histogram.h - counts of values: 32 buckets for each power of two, so a value is known to 1.6 %.
 *
 * Its size is fixed, and adding a value takes a few instructions: a thread may do that between two calls that it
 * times.
 */
#ifndef QUIESCE_TOOL_HISTOGRAM_H
#define QUIESCE_TOOL_HISTOGRAM_H

#include <math.h>
#include <stdint.h>

#define HISTOGRAM_BITS 5
#define HISTOGRAM_STEPS (1u << HISTOGRAM_BITS) /* buckets for each power of two */
#define HISTOGRAM_BUCKETS ((64 - HISTOGRAM_BITS + 1) * HISTOGRAM_STEPS)

struct histogram {
	uint64_t nr;
	uint64_t sum;
	uint64_t max;
	uint64_t count[HISTOGRAM_BUCKETS];
} __attribute__((aligned(128)));

/* The bucket of a value; values below twice HISTOGRAM_STEPS have a bucket each. */
static inline unsigned int histogram_bucket(uint64_t value)
{
	unsigned int shift = value < HISTOGRAM_STEPS ? 0 : 63 - HISTOGRAM_BITS - (unsigned int)__builtin_clzll(value);

	return shift * HISTOGRAM_STEPS + (unsigned int)(value >> shift);
}

/* Returns the value in the middle of a bucket. */
static inline uint64_t histogram_value(unsigned int bucket)
{
	unsigned int shift = bucket < 2 * HISTOGRAM_STEPS ? 0 : bucket / HISTOGRAM_STEPS - 1;
	uint64_t first = (uint64_t)(bucket - shift * HISTOGRAM_STEPS) << shift;

	return first + (((uint64_t)1 << shift) - 1) / 2;
}

static inline void histogram_add(struct histogram *h, uint64_t value)
{
	h->nr++;
	h->sum += value;
	if (value > h->max)
		h->max = value;
	h->count[histogram_bucket(value)]++;
}

static inline void histogram_merge(struct histogram *h, const struct histogram *other)
{
	h->nr += other->nr;
	h->sum += other->sum;
	if (other->max > h->max)
		h->max = other->max;
	for (unsigned int i = 0; i < HISTOGRAM_BUCKETS; i++)
		h->count[i] += other->count[i];
}

/* The least value that a share of @p, 0..1, of all values do not exceed; 0: there are no values. */
static inline uint64_t histogram_quantile(const struct histogram *h, double p)
{
	uint64_t rank = (uint64_t)ceil(p * (double)h->nr), seen = 0;

	for (unsigned int i = 0; i < HISTOGRAM_BUCKETS; i++) {
		seen += h->count[i];
		if (seen && seen >= rank)
			return histogram_value(i) < h->max ? histogram_value(i) : h->max;
	}
	return 0;
}

#endif
