/* SPDX-License-Identifier: MIT */
/* study_results.c - values by scenario, variant and metric, and their statistics. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "study.h"

#define MAX_ROUNDS 64

static void *must(void *memory)
{
	if (memory)
		return memory;
	fprintf(stderr, "quiesce: out of memory\n");
	exit(EXIT_FAILED);
}

static bool same(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static struct study_value *find(const struct study_results *results, const struct study *study, const struct study_place *place)
{
	for (size_t i = 0; i < results->nr; i++) {
		struct study_value *v = &results->value[i];

		if (v->study == study && same(v->scenario, place->scenario) && same(v->variant, place->variant) &&
		    same(v->fence, place->fence) && same(v->metric, place->metric))
			return v;
	}
	return NULL;
}

const struct study_value *study_find(const struct study_results *results, const struct study *study, const struct study_place *place)
{
	return find(results, study, place);
}

static struct study_value *add(struct study_results *results, const struct study *study, const struct study_place *place)
{
	struct study_value *v;

	if (results->nr == results->capacity) {
		results->capacity = results->capacity ? 2 * results->capacity : 256;
		results->value = must(reallocarray(results->value, results->capacity, sizeof(*v)));
	}
	v = &results->value[results->nr++];
	*v = (struct study_value){ .study = study, .fence = place->fence };
	v->scenario = must(strdup(place->scenario));
	v->variant = must(strdup(place->variant));
	v->metric = must(strdup(place->metric));
	return v;
}

void study_add(struct study_results *results, const struct study *study, const struct study_place *place, double value)
{
	struct study_value *v = find(results, study, place);

	if (!v)
		v = add(results, study, place);
	v->sample = must(reallocarray(v->sample, v->nr + 1, sizeof(*v->sample)));
	v->sample[v->nr++] = value;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct study_range study_range(const struct study_value *v)
{
	struct study_range r = { NAN, NAN, NAN, NAN };
	double *copy;

	if (!v || !v->nr)
		return r;
	copy = must(malloc(v->nr * sizeof(*copy)));
	memcpy(copy, v->sample, v->nr * sizeof(*copy));
	qsort(copy, v->nr, sizeof(*copy), by_value);
	r.min = copy[0];
	r.max = copy[v->nr - 1];
	r.median = (copy[(v->nr - 1) / 2] + copy[v->nr / 2]) / 2;
	r.spread = v->nr > 1 && r.median != 0 ? (r.max - r.min) / fabs(r.median) : NAN;
	free(copy);
	return r;
}

static double sample_at(const struct study_results *results, const struct study *study, const struct study_place *place, size_t round)
{
	const struct study_value *v = place->metric ? find(results, study, place) : NULL;

	return v && round < v->nr ? v->sample[round] : NAN;
}

/* Returns the value of a shape in one round. */
static double shape_at(const struct study_results *results, const struct study *study, const struct study_shape *shape, size_t round)
{
	double of = sample_at(results, study, &shape->of, round);
	double to = sample_at(results, study, &shape->to, round);
	double base = sample_at(results, study, &shape->base, round);

	switch (shape->formula) {
	case STUDY_VALUE: return of;
	case STUDY_RATIO: return to != 0 ? of / to : NAN;
	case STUDY_GAP: return base != to ? (of - to) / (base - to) : NAN;
	}
	return NAN;
}

struct study_range study_shape_range(const struct study_results *results, const struct study *study, const struct study_shape *shape)
{
	const struct study_value *v = find(results, study, &shape->of);
	struct study_value each = { .study = study };
	struct study_range range;

	each.sample = must(malloc((v ? v->nr + 1 : 1) * sizeof(double)));
	for (size_t round = 0; v && round < v->nr; round++) {
		double value = shape_at(results, study, shape, round);

		if (isfinite(value))
			each.sample[each.nr++] = value;
	}
	range = study_range(&each);
	free(each.sample);
	return range;
}

/* ---- values that subcommands have measured ---- */

void study_add_cell(struct study_results *results, const struct study *study, const struct study_place *place, const struct cell *cell,
		    double scale)
{
	struct study_value each = { .sample = must(malloc((cell ? cell->nr + 1 : 1) * sizeof(double))) };

	for (uint32_t round = 0; cell && round < MAX_ROUNDS; round++) {
		each.nr = 0;

		for (size_t i = 0; i < cell->nr; i++)
			if (cell->group[i] == round)
				each.sample[each.nr++] = cell->sample[i];
		if (each.nr)
			study_add(results, study, place, scale * study_range(&each).median);
	}
	free(each.sample);
}

void study_take_notes(struct study_results *results, const struct study *study, const struct results *from)
{
	for (size_t i = 0; i < from->nr_notes; i++)
		results_note(&results->notes, "%s: %s", study->name, from->note[i]);
	results->failures += from->failures;
}

void study_results_free(struct study_results *results)
{
	for (size_t i = 0; i < results->nr; i++) {
		free(results->value[i].scenario);
		free(results->value[i].variant);
		free(results->value[i].metric);
		free(results->value[i].sample);
	}
	free(results->value);
	results_free(&results->notes);
}
