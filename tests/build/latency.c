/* SPDX-License-Identifier: MIT */
/* latency.c - the instruments of retirescale: the histogram's figures are within 2 %, the stopwatch's seconds are seconds. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "histogram.h"
#include "stopwatch.h"

#define ERROR 0.02
#define VALUES 100000
#define SLEEP_NS 20000000
#define TRIES 10

static struct histogram histogram, second;
static int nr_tests, nr_failed;

static void result(bool good, const char *what)
{
	printf("%sok %d - %s\n", good ? "" : "not ", ++nr_tests, what);
	nr_failed += !good;
}

static bool is_near(uint64_t found, uint64_t right)
{
	return fabs((double)found - (double)right) <= ERROR * (double)right;
}

/* Check values from each power of two to the next. */
static bool each_value_is_near(void)
{
	for (unsigned int bit = 0; bit < 64; bit++)
		for (uint64_t i = 0; i < 150; i++) {
			uint64_t value = ((uint64_t)1 << bit) + i * (((uint64_t)1 << bit) / 150);
			unsigned int bucket = histogram_bucket(value);

			if (bucket >= HISTOGRAM_BUCKETS || !is_near(histogram_value(bucket), value))
				return false;
		}
	return histogram_bucket(0) == 0 && histogram_bucket(UINT64_MAX) == HISTOGRAM_BUCKETS - 1;
}

static bool buckets_are_in_order(void)
{
	for (unsigned int i = 0; i < HISTOGRAM_BUCKETS; i++)
		if (histogram_bucket(histogram_value(i)) != i || (i && histogram_value(i) <= histogram_value(i - 1)))
			return false;
	return true;
}

/* Record 1..VALUES in a scattered order, half of them in each of two histograms. */
static void fill(void)
{
	for (uint64_t i = 0; i < VALUES; i++)
		histogram_add(i % 2 ? &histogram : &second, i * 7919 % VALUES + 1);
	histogram_merge(&histogram, &second);
}

static bool quantiles_are_near(void)
{
	static const double p[] = { 0.00001, 0.01, 0.5, 0.99, 0.999, 1 };

	for (size_t i = 0; i < sizeof(p) / sizeof(p[0]); i++)
		if (!is_near(histogram_quantile(&histogram, p[i]), (uint64_t)ceil(p[i] * VALUES)))
			return false;
	return true;
}

/* One value of a thousand is above p99.9 only if it is less than a thousandth. */
static bool outliers_are_where_they_belong(uint64_t others, uint64_t outliers, double p, bool seen)
{
	histogram = (struct histogram){ 0 };
	for (uint64_t i = 0; i < others; i++)
		histogram_add(&histogram, 20);
	for (uint64_t i = 0; i < outliers; i++)
		histogram_add(&histogram, 1000003);
	return (histogram_quantile(&histogram, p) > 900000) == seen && histogram_quantile(&histogram, p) <= histogram.max &&
	       histogram.max == 1000003 && histogram.sum == 20 * others + 1000003 * outliers;
}

/* The stopwatch's time lies between the times of two pairs of clock reads around it. */
static bool seconds_are_seconds(void)
{
	struct stopwatch began;

	stopwatch_start(&began);
	for (int i = 0; i < TRIES; i++) {
		uint64_t outer = stopwatch_clock(), begin = stopwatch_begin(), inner = stopwatch_clock(), inner_ns, outer_ns;
		double ns;

		nanosleep(&(struct timespec){ .tv_nsec = SLEEP_NS }, NULL);
		inner_ns = stopwatch_clock() - inner;
		ns = (double)stopwatch_since(begin);
		outer_ns = stopwatch_clock() - outer;
		ns *= stopwatch_tick_ns(&began);
		if (ns > 0.99 * (double)inner_ns && ns < 1.01 * (double)outer_ns)
			return true;
	}
	return false;
}

int main(void)
{
	struct stopwatch began;

	result(each_value_is_near(), "a value's bucket is within 2 % of it");
	result(buckets_are_in_order(), "buckets are in the order of their values");
	fill();
	result(histogram.nr == VALUES && histogram.max == VALUES && histogram.sum == (uint64_t)VALUES * (VALUES + 1) / 2,
	       "two histograms in one: count, sum and maximum");
	result(quantiles_are_near(), "quantiles are within 2 %");
	result(outliers_are_where_they_belong(998, 2, 0.999, true) && outliers_are_where_they_belong(9991, 9, 0.999, false) &&
	       outliers_are_where_they_belong(9991, 9, 0.9999, true), "outliers are where they belong");
	histogram = (struct histogram){ 0 };
	result(histogram_quantile(&histogram, 0.5) == 0, "a histogram of nothing");
	result(seconds_are_seconds(), "the stopwatch's seconds are the clock's");
	stopwatch_start(&began);
	result(stopwatch_cost() * stopwatch_tick_ns(&began) < 1e6, "an empty measurement is short");
	printf("1..%d\n", nr_tests);
	return nr_failed != 0;
}
