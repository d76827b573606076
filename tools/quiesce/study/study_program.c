/* SPDX-License-Identifier: MIT */
/* study_program.c - run the program of a case, and read the lines that it prints.
 *
 * A fence mode belongs to a process, and a crash or a hang of a program must not lose the results of others: so each
 * variant of each round is a process.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "place.h"
#include "process.h"
#include "study.h"

#define WATCHDOG_S 60

extern char **environ;

static bool find_program(const struct study *study, char *path, size_t size)
{
	char in_build[256];

	snprintf(in_build, sizeof(in_build), "../cases/%s/%s", study->program, study->program);
	return place_find(path, size, in_build, study->program);
}

bool study_has_program(const struct study *study)
{
	char path[PLACE_MAX];

	return study->run || (study->program && find_program(study, path, sizeof(path)));
}

/* A line may arrive in pieces. */
struct reader {
	const struct study *study;
	const struct study_variant *variant;
	struct study_results *results;
	char line[4096];
	size_t have;
};

static void take_object(struct reader *r, json_t *object)
{
	const char *note = json_string_value(json_object_get(object, "note"));
	const char *scenario = json_string_value(json_object_get(object, "scenario"));
	struct study_place place = { r->variant->name, r->variant->fence, scenario, NULL };
	json_t *value;

	if (note)
		results_note(&r->results->notes, "%s, %s: %s", r->study->name, r->variant->name, note);
	if (!scenario)
		return;
	json_object_foreach(object, place.metric, value)
		if (json_is_number(value))
			study_add(r->results, r->study, &place, json_number_value(value));
}

static void take_line(struct reader *r)
{
	json_error_t error;
	json_t *object = json_loads(r->line, 0, &error);

	if (json_is_object(object))
		take_object(r, object);
	else
		results_note(&r->results->notes, "%s, %s: said '%.200s'", r->study->name, r->variant->name, r->line);
	json_decref(object);
}

static void take_bytes(void *arg, const char *data, size_t size)
{
	struct reader *r = arg;

	for (size_t i = 0; i < size; i++) {
		if (data[i] != '\n') {
			if (r->have < sizeof(r->line) - 1)
				r->line[r->have++] = data[i];
			continue;
		}
		r->line[r->have] = '\0';
		take_line(r);
		r->have = 0;
	}
}

/* Returns a copy of the environment with another fence mode, which shares the strings, or NULL without memory. */
static char **environment_with(const char *fence, char *text, size_t size)
{
	size_t n = 0, kept = 0;
	char **copy;

	while (environ[n])
		n++;
	copy = calloc(n + 2, sizeof(*copy));
	for (size_t i = 0; copy && i < n; i++)
		if (!fence || strncmp(environ[i], "QUIESCE_FENCE=", 14) != 0)
			copy[kept++] = environ[i];
	if (copy && fence) {
		snprintf(text, size, "QUIESCE_FENCE=%s", fence);
		copy[kept] = text;
	}
	return copy;
}

static int run(struct process *p, char *const argv[], const char *fence, struct reader *reader)
{
	char text[64];
	char **environment = environment_with(fence, text, sizeof(text));
	int err = environment ? process_start(p, argv, environment, -1, STDOUT_FILENO) : -ENOMEM;

	free(environment);
	if (!err)
		return process_finish(p, take_bytes, reader, &reader->results->notes);
	results_note(&reader->results->notes, "%s: cannot start a process: %s", p->name, strerror(-err));
	return -1;
}

int study_run_program(const struct study *study, const struct study_variant *variant, int round, const struct options *options,
		      struct study_results *results)
{
	struct reader reader = { .study = study, .variant = variant, .results = results };
	char path[PLACE_MAX], name[128], which[128], rounds[32], seconds[32];
	struct process p = { .path = path, .name = name, .watchdog_s = WATCHDOG_S };
	double length = study_seconds(study, options);
	char *argv[8] = { path, which, rounds };
	int nr = 3;

	if (!find_program(study, path, sizeof(path)))
		return EXIT_UNAVAILABLE;
	snprintf(name, sizeof(name), "%s, %s%s%s", study->name, variant->name, variant->fence ? " " : "",
		 variant->fence ? variant->fence : "");
	snprintf(which, sizeof(which), "--variant=%s", variant->name);
	snprintf(rounds, sizeof(rounds), "--round=%d", round);
	snprintf(seconds, sizeof(seconds), "--seconds=%g", length);
	if (length > 0)
		argv[nr++] = seconds;
	if (study_options(options)->quick)
		argv[nr++] = (char *)"--quick";
	return run(&p, argv, variant->fence, &reader);
}
