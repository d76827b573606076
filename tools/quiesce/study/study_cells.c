/* SPDX-License-Identifier: MIT */
/* study_cells.c - measurements of subcommands as values of a case. */
#include <stdlib.h>

#include "study.h"

#define MAX_ROUNDS 64

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

void study_add_cell(struct study_results *results, const struct study *study, const struct study_place *place, const struct cell *cell,
		    double scale)
{
	double *v = cell ? malloc((cell->nr + 1) * sizeof(*v)) : NULL;

	for (uint32_t round = 0; v && round < MAX_ROUNDS; round++) {
		size_t n = 0;

		for (size_t i = 0; i < cell->nr; i++)
			if (cell->group[i] == round)
				v[n++] = cell->sample[i];
		if (!n)
			continue;
		qsort(v, n, sizeof(*v), by_value);
		study_add(results, study, place, scale * (v[(n - 1) / 2] + v[n / 2]) / 2);
	}
	free(v);
}

void study_take_notes(struct study_results *results, const struct study *study, const struct results *from)
{
	for (size_t i = 0; i < from->nr_notes; i++)
		results_note(&results->notes, "%s: %s", study->name, from->note[i]);
	results->failures += from->failures;
}
