/* SPDX-License-Identifier: MIT */
/* doctor.c - the facilities of this machine, and the paths of the library that they select. */
#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"
#include "types/peers.h"
#include "team.h"

struct findings {
	json_t *list;
	FILE *out; /* stream of the tables, which are printed at once; NULL: JSON or CSV */
};

static void print(FILE *out, const char *topic, const char *value, const char *note)
{
	fprintf(out, "%-30s %s\n", topic, value);
	if (note)
		fprintf(out, "%-30s   %s\n", "", note);
}

/* Return a copy of @text for every output: names of files and symbols can have bytes that are not UTF-8, which JSON refuses, and
 * sequences that a terminal obeys. */
static char *printable(const char *text)
{
	char *copy = strdup(text);

	for (char *c = copy; c && *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	return copy;
}

static void add(struct findings *f, const char *topic, const char *value, const char *note)
{
	if (f->out)
		print(f->out, topic, value, note);
	json_array_append_new(f->list, json_pack("{ss ss ss?}", "name", topic, "value", value, "note", note));
}

void finding(struct findings *f, const char *topic, const char *note, const char *format, ...)
{
	va_list args;
	char *raw, *name, *value, *consequence;

	if (interrupted()) /* a trial that was cut short proves nothing */
		return;
	va_start(args, format);
	if (vasprintf(&raw, format, args) < 0)
		raw = NULL;
	va_end(args);
	name = printable(topic);
	value = raw ? printable(raw) : NULL;
	consequence = note ? printable(note) : NULL;
	if (name && value)
		add(f, name, value, consequence);
	free(consequence);
	free(value);
	free(name);
	free(raw);
}

bool find_threads(struct findings *f, const char *topic, int nr)
{
	int err = team_try(nr);

	if (err)
		finding(f, topic, "threads are forbidden or exhausted: RLIMIT_NPROC, pids.max of a control group, a sandbox",
			"not tried: %d threads cannot be started (%s)", nr, strerror(err));
	return !err;
}

static void print_field(FILE *out, const char *text, char end)
{
	fputc('"', out);
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', out);
		fputc(*text, out);
	}
	fprintf(out, "\"%c", end);
}

static void print_csv(FILE *out, const json_t *list)
{
	size_t i;
	json_t *row;

	fprintf(out, "name,value,note\n");
	json_array_foreach(list, i, row) {
		const char *note = json_string_value(json_object_get(row, "note"));

		print_field(out, json_string_value(json_object_get(row, "name")), ',');
		print_field(out, json_string_value(json_object_get(row, "value")), ',');
		print_field(out, note ? note : "", '\n');
	}
}

static void print_json(FILE *out, json_t *list)
{
	struct host host;
	json_t *root;

	host_read(&host);
	root = json_pack("{si s{ss si ss ss} s[] sO}", "schema", 1, "host", "cpu", host.cpu, "cores", host.cores,
			 "kernel", host.kernel, "build", host_build_type(), "rows", "doctor", list);
	json_dumpf(root, out, JSON_INDENT(1));
	fputc('\n', out);
	json_decref(root);
}

/* The last part: the libraries that peers load must not change the findings before it. */
static void find_peers(struct findings *f)
{
	for (struct peer *peer = peers; peer->name; peer++) {
		char topic[32];

		snprintf(topic, sizeof(topic), "peer %s", peer->name);
		finding(f, topic, peer_load(peer), "%s", peer_load(peer) ? "not to be measured here" : "here");
	}
}

static void (*const parts[])(struct findings *f) = {
	doctor_machine, doctor_fences, doctor_slots, doctor_hazptr, doctor_percpu, find_peers,
};

static int run(const struct options *options)
{
	FILE *out = emit_open(options);
	struct findings f = { json_array(), options->format == FORMAT_TABLE ? out : NULL };
	int status, found = EXIT_SUCCESS;

	if (f.out && !options->binary)
		emit_head(out);
	for (size_t i = 0; !options->binary && i < sizeof(parts) / sizeof(parts[0]) && !interrupted(); i++)
		parts[i](&f);
	if (options->binary)
		found = doctor_binary(&f, options->binary);
	if (options->format == FORMAT_CSV)
		print_csv(out, f.list);
	else if (options->format == FORMAT_JSON)
		print_json(out, f.list);
	json_decref(f.list);
	if (interrupted())
		fprintf(stderr, "quiesce: interrupted: doctor has not tried everything\n");
	status = emit_close(out, options);
	if (interrupted())
		return EXIT_INTERRUPTED;
	return status ? status : found;
}

static bool fits(const struct op *op)
{
	(void)op;
	return false;
}

const struct subcommand doctor_command = {
	.name = "doctor",
	.what = "Facilities of this kernel, C library and sandbox, and the paths in use.",
	.doc = "Reports which facilities the kernel announces, and tries them: the membarrier test runs two threads against each "
	       "other for 0.3 s with no fence, with full fences, and with a compiler fence against membarrier; the rseq test "
	       "lets two threads on one CPU claim one slot for 0.3 s, or 2 s on a busy machine, unprotected and under rseq. Then "
	       "threads take slots and contexts of hazard pointers and retire some objects; others count as readers of a lock, "
	       "which is then written to. After Ctrl-C it prints the findings so far.\n"
	       "With --binary it checks only that file: whether the restartable sequences in it are as they were compiled, or a tool has "
	       "moved code after the link; then, or if there is no verdict, the exit status is 1. It names the functions that have "
	       "sequences.",
	.accepts = OPT_DOCTOR,
	.fits = fits,
	.run = run,
};
