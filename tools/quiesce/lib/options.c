/* SPDX-License-Identifier: MIT */
/* options.c - the options that subcommands share, and the parser of all; a mistake is reported in one line.
 *
 * A subcommand lists groups of options: some of those here, and its own.  A row of a group says where its value is in
 * struct options, or has a function that takes it; argp gets the rows of all groups as one list.
 */
#include <argp.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "number.h"
#include "peers.h"
#include "registry.h"
#include "tool.h"

#define MAX_OPTIONS 40
#define FIRST_KEY 256 /* no option has a short form */

static const struct subcommand *current; /* for the messages about mistakes */

void usage_error(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "quiesce %s: ", current ? current->name : "");
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(EXIT_USAGE);
}

/* ---- values ---- */

double option_number(const char *option, const char *text, double min, double max)
{
	double value;

	if (!number_read(text, min, max, &value))
		usage_error("--%s=%s: a number from %g to %g is needed", option, text, min, max);
	return value;
}

uint64_t option_whole(const char *option, const char *text, double min, double max)
{
	double value = option_number(option, text, min, max);

	if (value != floor(value))
		usage_error("--%s=%s: a whole number is needed", option, text);
	return (uint64_t)value;
}

/* Calls @each on every item of a comma-separated list; without it the items are numbers. */
static void take_items(const struct option_row *row, const char *list, struct options *o)
{
	char *copy = strdup(list), *rest = copy, *item;

	if (!copy)
		usage_error("out of memory");
	while ((item = strsep(&rest, ",")) != NULL) {
		if (!*item)
			usage_error("--%s=%s: an item of the list is empty", row->name, list);
		if (row->take)
			row->take(item, o);
		else
			option_add_number(row->name, item, row->min, row->max, o);
	}
	free(copy);
}

void option_add_number(const char *option, const char *item, double min, double max, struct options *o)
{
	if (o->nr_readers == MAX_READERS)
		usage_error("--%s: at most %d numbers", option, MAX_READERS);
	o->readers[o->nr_readers++] = (int)option_whole(option, item, min, max);
}

/* ---- types ---- */

const struct op *command_type(const struct subcommand *command, const char *name)
{
	return type_find(command->fits, name);
}

/* Returns the names of the valid types, such as " a b c". */
static const char *valid_types(void)
{
	static char text[MAX_TYPES * 40];
	const struct op *types[MAX_TYPES];
	size_t n = 0;

	for (int i = 0, nr = types_all(current->fits, types, MAX_TYPES); i < nr && n < sizeof(text); i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, " %s", types[i]->name);
	return text;
}

const struct op *option_type(const char *option, const char *name)
{
	const struct op *op = command_type(current, name);

	if (op && op->absent)
		usage_error("--%s=%s: %s", option, name, peer_load(peer_of(name)));
	if (!op)
		usage_error("--%s: unknown type '%s'; valid:%s", option, name, valid_types());
	return op;
}

static void add_type(const char *item, struct options *o)
{
	const struct op *op = option_type("type", item);

	for (int i = 0; i < o->nr_types; i++)
		if (o->types[i] == op)
			return;
	if (o->nr_types == MAX_TYPES)
		usage_error("--type: at most %d types", MAX_TYPES);
	o->types[o->nr_types++] = op;
}

/* ---- groups of options ---- */

static void add_scenario(const char *item, struct options *o)
{
	char text[512] = "";
	size_t n = 0;

	for (int i = 0; i < current->nr_scenarios && current->scenarios[i].what; i++) {
		if (!strcmp(current->scenarios[i].name, item)) {
			o->scenarios |= SCENARIO_BIT(i);
			return;
		}
		if (n < sizeof(text))
			n += (size_t)snprintf(text + n, sizeof(text) - n, " %s", current->scenarios[i].name);
	}
	usage_error("unknown scenario '%s'; valid:%s", item, text);
}

static void add_fence(const char *item, struct options *o)
{
	if (!strcmp(item, "light"))
		o->fences |= 1u << OP_FENCE_LIGHT;
	else if (!strcmp(item, "full"))
		o->fences |= 1u << OP_FENCE_FULL;
	else
		usage_error("unknown fence mode '%s'; valid: light full", item);
}

static void take_format(enum format format, struct options *o)
{
	static const char *const names[] = { [FORMAT_JSON] = "json", [FORMAT_CSV] = "csv", [FORMAT_MARKDOWN] = "markdown" };

	if (o->format != FORMAT_TABLE && o->format != format)
		usage_error("--%s and --%s: results have one format", names[o->format], names[format]);
	o->format = format;
}

const struct option_row options_type[] = { { "type", "A,B", "only these types", OPTION_ITEMS, .take = add_type }, { 0 } };
const struct option_row options_readers[] = {
	{ "readers", "N,M", "numbers of reader threads", OPTION_NUMBERS, 1, MAX_THREADS, .take = NULL }, { 0 }
};
const struct option_row options_scenario[] = { { "scenario", "A,B", "only these scenarios", OPTION_ITEMS, .take = add_scenario }, { 0 } };
const struct option_row options_seconds[] = {
	{ "seconds", "S", "duration of a run (torture) or of one cell", OPTION_NUMBER, 0.001, 1e6, OPTION_AT(seconds) }, { 0 }
};
const struct option_row options_runs[] = {
	{ "runs", "N", "rounds over all types (default 3, torture 1, costs 5)", OPTION_COUNT, 1, 1000, OPTION_AT(runs) }, { 0 }
};
const struct option_row options_rounds[] = {
	{ "fence", "light,full", "only these fence modes of the readers", OPTION_ITEMS, .take = add_fence },
	{ "alive", "N", "keep N more registered threads alive, asleep", OPTION_COUNT, 0, MAX_THREADS, OPTION_AT(alive) },
	{ 0 }
};
const struct option_row options_markdown[] = {
	{ "markdown", NULL, "tables in Markdown, for a page", OPTION_FORMAT, FORMAT_MARKDOWN, .output = true }, { 0 }
};

/* Every subcommand has these. */
static const struct option_row options_output[] = {
	{ "json", NULL, "one JSON object, see docs/json.md", OPTION_FORMAT, FORMAT_JSON, .output = true },
	{ "csv", NULL, "comma-separated values", OPTION_FORMAT, FORMAT_CSV, .output = true },
	{ "output", "FILE", "write the results to FILE, not to the standard output", OPTION_TEXT, OPTION_AT(output), .output = true },
	{ 0 }
};

/* ---- parsing ---- */

struct parser {
	struct argp_option accepted[MAX_OPTIONS + 1]; /* key FIRST_KEY + i stands for row[i] */
	const struct option_row *row[MAX_OPTIONS];
	int nr;
	struct options *options;
};

static void accept(struct parser *p, const struct option_row *group)
{
	for (; group->name && p->nr < MAX_OPTIONS; group++) {
		p->accepted[p->nr] = (struct argp_option){ group->name, FIRST_KEY + p->nr, group->arg, 0, group->what,
							   group->output ? 2 : 1 };
		p->row[p->nr++] = group;
	}
}

static void store(const struct option_row *row, const char *arg, struct options *o)
{
	void *at = (char *)o + row->at;

	switch (row->kind) {
	case OPTION_CALL: row->take(arg, o); break;
	case OPTION_ITEMS:
	case OPTION_NUMBERS: take_items(row, arg, o); break;
	case OPTION_FORMAT: take_format((enum format)row->min, o); break;
	case OPTION_FLAG: *(bool *)at = true; break;
	case OPTION_COUNT: *(int *)at = (int)option_whole(row->name, arg, row->min, row->max); break;
	case OPTION_WHOLE: *(uint64_t *)at = option_whole(row->name, arg, row->min, row->max); break;
	case OPTION_NUMBER: *(double *)at = option_number(row->name, arg, row->min, row->max); break;
	case OPTION_TEXT: *(const char **)at = arg; break;
	}
}

static error_t take(int key, char *arg, struct argp_state *state)
{
	struct parser *p = state->input;

	if (key >= FIRST_KEY && key < FIRST_KEY + p->nr) {
		store(p->row[key - FIRST_KEY], arg, p->options);
		return 0;
	}
	if (key != ARGP_KEY_ARG)
		return ARGP_ERR_UNKNOWN;
	if (!current->arguments || p->options->nr_words == MAX_WORDS)
		usage_error("unexpected argument '%s'; see quiesce %s --help", arg, current->name);
	p->options->words[p->options->nr_words++] = arg;
	return 0;
}

#define HELP_BYTES 16384
#define HELP_INDENT 21 /* column of the descriptions of types and scenarios */
#define HELP_MARGIN 78 /* argp leaves lines alone that are shorter than its own margin, 79 */

struct help {
	char text[HELP_BYTES];
	size_t n;
};

static void __attribute__((format(printf, 2, 3))) help_add(struct help *help, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	if (help->n < sizeof(help->text))
		help->n += (size_t)vsnprintf(help->text + help->n, sizeof(help->text) - help->n, format, args);
	va_end(args);
}

/* argp would continue a long line in column 0: break it here, with the description in a column of its own. */
static void help_row(struct help *help, const char *name, const char *what)
{
	int column = 2 + (int)strlen(name);

	help_add(help, "  %s", name);
	for (const char *word = what + strspn(what, " "); *word; word += strspn(word, " ")) {
		int length = (int)strcspn(word, " "), gap = column < HELP_INDENT ? HELP_INDENT - column : 1;

		if (column + gap + length > HELP_MARGIN) {
			help_add(help, "\n");
			column = 0;
			gap = HELP_INDENT;
		}
		help_add(help, "%*s%.*s", gap, "", length, word);
		column += gap + length;
		word += length;
	}
	help_add(help, "\n");
}

static bool has_group(const struct subcommand *command, const struct option_row *wanted)
{
	const struct option_row *const *group = command->options;

	while (*group && *group != wanted)
		group++;
	return *group;
}

static void add_lists(struct help *help, const struct subcommand *command)
{
	const struct op *types[MAX_TYPES];

	help_add(help, "%s\v%s", command->what, command->doc);
	if (!has_group(command, options_type))
		return;
	help_add(help, "\n\nTypes:\n");
	for (int i = 0, nr = types_all(command->fits, types, MAX_TYPES); i < nr; i++)
		help_row(help, types[i]->name, command->describe ? command->describe(types[i]) : types[i]->what);
	if (!has_group(command, options_scenario))
		return;
	help_add(help, "\nScenarios:\n");
	for (int i = 0; i < command->nr_scenarios && command->scenarios[i].what; i++)
		help_row(help, command->scenarios[i].name, command->scenarios[i].what);
}

/* argp prints several lines about a mistake and does not name it; so find the first argument that may be wrong. */
static void argp_mistake(int argc, char **argv, const struct argp_option *accepted)
{
	for (int i = 1; i < argc; i++) {
		const char *name = argv[i] + strspn(argv[i], "-");
		size_t length = strcspn(name, "=");
		const struct argp_option *o = accepted;

		if (name == argv[i])
			continue;
		while (o->name && strncmp(o->name, name, length))
			o++;
		if (!o->name)
			usage_error("unknown option '%s'; see quiesce %s --help", argv[i], current->name);
		if (o->arg && !name[length] && i + 1 < argc)
			i++; /* argp takes the next argument for the value, whatever it is */
		else if (!o->arg == (name[length] == '='))
			usage_error("option '%s' %s", argv[i], o->arg ? "needs a value" : "takes no value");
	}
	usage_error("wrong options; see quiesce %s --help", current->name);
}

static bool asks_for_help(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if ((strlen(argv[i]) > 2 && !strncmp(argv[i], "--help", strlen(argv[i]))) || !strcmp(argv[i], "--usage") ||
		    !strcmp(argv[i], "-?"))
			return true;
	return false;
}

/* argp prints the help and exits without a check that it was written. */
static void check_help(void)
{
	if (emit_close(stdout, &(struct options){ 0 }))
		_exit(EXIT_FAILED);
}

void options_parse(const struct subcommand *command, int argc, char **argv, struct options *ret)
{
	static struct help help;
	struct parser p = { .options = ret };
	struct argp argp = { p.accepted, take, command->arguments, help.text, NULL, NULL, NULL };
	bool asks = asks_for_help(argc, argv);
	char name[64];

	current = command;
	*ret = (struct options){ 0 };
	for (const struct option_row *const *group = command->options; *group; group++)
		accept(&p, *group);
	accept(&p, options_output);
	if (asks) { /* loads the peers */
		add_lists(&help, command);
		atexit(check_help);
	}
	snprintf(name, sizeof(name), "quiesce %s", command->name);
	argv[0] = name;
	if (argp_parse(&argp, argc, argv, asks ? 0 : ARGP_NO_ERRS, NULL, &p))
		argp_mistake(argc, argv, p.accepted);
	ret->runs_given = ret->runs;
	if (!ret->runs)
		ret->runs = command->runs ? command->runs : DEFAULT_RUNS;
}

int options_types(const struct options *options, const struct subcommand *command, const struct op *ret[MAX_TYPES])
{
	int nr, n = 0;

	for (; n < options->nr_types; n++)
		ret[n] = options->types[n];
	if (n)
		return n;
	nr = types_all(command->fits, ret, MAX_TYPES);
	for (int i = 0; i < nr; i++)
		if (!ret[i]->broken)
			ret[n++] = ret[i];
	return n;
}

bool options_fence(const struct options *options, const struct op *op, enum op_fence fence)
{
	if (!op->fence_modes)
		return fence == OP_FENCE_NONE;
	if (fence == OP_FENCE_NONE)
		return false;
	return !options->fences || (options->fences & (1u << fence));
}
