/* SPDX-License-Identifier: MIT */
/* doctor.c - the facilities of this machine, and the paths of the library that they select. */
#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"
#include "peers.h"
#include "emit.h"

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

void finding_of(struct findings *f, const char *topic, const struct choice *choices)
{
	while (!choices->holds)
		choices++;
	finding(f, topic, choices->note, "%s", choices->value);
}

bool find_threads(struct findings *f, const char *topic, int nr)
{
	int err = team_try(nr);

	if (err)
		finding(f, topic, "threads are forbidden or exhausted: RLIMIT_NPROC, pids.max of a control group, a sandbox",
			"not tried: %d threads cannot be started (%s)", nr, strerror(err));
	return !err;
}

bool try_team(struct findings *f, const char *topic, struct team *team)
{
	if (!find_threads(f, topic, team->nr))
		return false;
	team_start(team);
	team_join(team);
	return true;
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
	json_t *document = emit_document(json_array(), &(struct results){ 0 });

	json_object_del(document, "notes");
	json_object_set(document, "doctor", list);
	emit_document_print(out, document);
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

struct doctor_options {
	const char *binary; /* NULL: this machine */
};

static int run(const struct options *options)
{
	const char *binary = OWN(const struct doctor_options, options)->binary;
	FILE *out = emit_open(options);
	struct findings f = { json_array(), options->format == FORMAT_TABLE ? out : NULL };
	int status, found = EXIT_SUCCESS;

	if (f.out && !binary)
		emit_head(out);
	for (size_t i = 0; !binary && i < sizeof(parts) / sizeof(parts[0]) && !interrupted(); i++)
		parts[i](&f);
	if (binary)
		found = doctor_binary(&f, binary);
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

static const struct option_row own[] = {
	{ "binary", "FILE", "check the restartable sequences of this program or library, nothing else", OPTION_TEXT,
	  OPTION_OWN(struct doctor_options, binary) },
	{ 0 }
};

const struct subcommand doctor_command = {
	.name = "doctor",
	.what = "Facilities of this kernel, C library and sandbox, and the paths in use.",
	.doc = "Reports which facilities the kernel announces, and tries them, in some seconds; with --binary it checks only that file. "
	       "See quiesce-doctor(1).",
	OPTIONS(own),
	.run = run,
};
