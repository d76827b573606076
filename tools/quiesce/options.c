/* SPDX-License-Identifier: MIT */
/* options.c - one table of options for all subcommands; a mistake is reported in one line. */
#include <argp.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "number.h"
#include "types/peers.h"
#include "types/registry.h"
#include "types/rwlock.h"
#include "tool.h"

enum { KEY_TYPE = 256, KEY_READERS, KEY_SCENARIO, KEY_FENCE, KEY_ALIVE, KEY_LOOPS, KEY_SECONDS, KEY_RUNS,
       KEY_THREADS, KEY_BATCH, KEY_BYTES, KEY_SCAN, KEY_SECTIONS, KEY_LATENCY, KEY_PAIRS,
       KEY_BYSTANDERS, KEY_QUICK, KEY_COMPARE, KEY_KEYS, KEY_DISTRIBUTION, KEY_UPDATES, KEY_BASE, KEY_FIGURE, KEY_RESIZE, KEY_STALL,
       KEY_TURNOVERS, KEY_BINARY,
       KEY_JSON, KEY_CSV, KEY_MARKDOWN, KEY_OUTPUT, KEY_RECORD, KEY_MUTANT, KEY_PERTURB, KEY_KEEP_GOING };

#define ANY 0u
#define MEASURE OPT_ROUNDS

static const struct option_row {
	struct argp_option option;
	unsigned int needs;
} table[] = {
	{ { "type", KEY_TYPE, "A,B", 0, "only these types", 1 }, OPT_TYPE },
	{ { "readers", KEY_READERS, "N,M", 0, "numbers of reader threads", 1 }, OPT_READERS },
	{ { "scenario", KEY_SCENARIO, "A,B", 0, "only these scenarios", 1 }, OPT_SCENARIO },
	{ { "fence", KEY_FENCE, "light,full", 0, "only these fence modes of the readers", 1 }, MEASURE },
	{ { "alive", KEY_ALIVE, "N", 0, "keep N more registered threads alive, asleep", 1 }, MEASURE },
	{ { "loops", KEY_LOOPS, "N", 0, "operations of each thread in each run (default: about 2 ms)", 1 }, OPT_LOOPS },
	{ { "threads", KEY_THREADS, "N,M", 0, "numbers of threads (default 1,2)", 1 }, OPT_RETIRE | OPT_HASH },
	{ { "threads", KEY_THREADS, "N,P:C", 0, "numbers of threads, or producers:consumers (default 1,2,1:1)", 1 }, OPT_QUEUE },
	{ { "batch", KEY_BATCH, "N", 0, "objects in a batch of types that have none of their own (default 1024)", 1 },
	  OPT_RETIRE | OPT_WALK },
	{ { "bytes", KEY_BYTES, "N", 0, "bytes of each object (default 64)", 1 }, OPT_RETIRE },
	{ { "scan", KEY_SCAN, NULL, 0, "cost of a scan, by slots in use and objects", 1 }, OPT_RETIRE },
	{ { "sections", KEY_SECTIONS, "N", 0, "write sections in a burst (default 2000)", 1 }, OPT_RWLOCK },
	{ { "latency", KEY_LATENCY, NULL, 0, "waits of writers: scenarios rare and often", 1 }, OPT_RWLOCK },
	{ { "bystanders", KEY_BYSTANDERS, "N", 0, "more threads that read under RCU, without the lock", 1 }, OPT_RWLOCK },
	{ { "quick", KEY_QUICK, NULL, 0, "fewer rounds, shorter measurements", 1 }, OPT_STUDY | OPT_REPORT },
	{ { "compare", KEY_COMPARE, NULL, 0, "two reports side by side", 1 }, OPT_REPORT },
	{ { "pairs", KEY_PAIRS, "all", 0, "transfer between all pairs of CPUs, not only a few", 1 }, OPT_COSTS },
	{ { "keys", KEY_KEYS, "A,B", 0, "sets of keys: uniform:N (scattered), dense:N (1 to N), words, psl, or a file of lines", 1 },
	  OPT_HASH },
	{ { "distribution", KEY_DISTRIBUTION, "NAME", 0, "distribution of lookups: uniform (default), zipf or hot", 1 }, OPT_HASH },
	{ { "updates", KEY_UPDATES, "P,Q", 0, "percent of updates among the operations (default 0)", 1 }, OPT_HASH },
	{ { "base", KEY_BASE, "TYPE", 0, "ratios are to this type (default raw_open_addressing)", 1 }, OPT_RESIZE },
	{ { "turnovers", KEY_TURNOVERS, "N", 0, "remove and insert each key again N times before measuring (default 0)", 1 },
	  OPT_RESIZE },
	{ { "resize", KEY_RESIZE, NULL, 0, "lookups while the table is resized", 1 }, OPT_RESIZE },
	{ { "stall", KEY_STALL, NULL, 0, "one more reader, which stays inside a lookup", 1 }, OPT_WALK },
	{ { "figure", KEY_FIGURE, "FILE", 0, "draw a figure, .png or .svg, with gnuplot", 2 }, OPT_HASH | OPT_STUDY },
	{ { "seconds", KEY_SECONDS, "S", 0, "duration of a run (torture) or of one cell", 1 }, OPT_SECONDS | OPT_STUDY },
	{ { "runs", KEY_RUNS, "N", 0, "rounds over all types (default 3, torture 1, costs 5)", 1 },
	  MEASURE | OPT_COSTS | OPT_STUDY | OPT_RUNS },
	{ { "mutant", KEY_MUTANT, "NAME", 0, "plant this bug in the library (quiesce-torture only)", 1 }, OPT_TORTURE },
	{ { "perturb", KEY_PERTURB, "RATE", 0, "delay RATE of 65536 accesses (quiesce-torture only)", 1 }, OPT_TORTURE },
	{ { "keep-going", KEY_KEEP_GOING, NULL, 0, "do not stop at the first error", 1 }, OPT_TORTURE },
	{ { "binary", KEY_BINARY, "FILE", 0, "check the restartable sequences of this program or library, nothing else", 1 }, OPT_DOCTOR },
	{ { "json", KEY_JSON, NULL, 0, "one JSON object, see docs/json.md", 2 }, ANY },
	{ { "csv", KEY_CSV, NULL, 0, "comma-separated values", 2 }, ANY },
	{ { "markdown", KEY_MARKDOWN, NULL, 0, "tables in Markdown, for a page", 2 }, OPT_MARKDOWN },
	{ { "record", KEY_RECORD, "FILE", 0, "write the figures to FILE as well, as one JSON object", 2 }, OPT_RECORD },
	{ { "output", KEY_OUTPUT, "FILE", 0, "write the results to FILE, not to the standard output", 2 }, ANY },
};
#define NR_OPTIONS (sizeof(table) / sizeof(table[0]))

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

static double number(const char *option, const char *text, double min, double max)
{
	double value;

	if (!number_read(text, min, max, &value))
		usage_error("--%s=%s: a number from %g to %g is needed", option, text, min, max);
	return value;
}

static uint64_t whole(const char *option, const char *text, double min, double max)
{
	double value = number(option, text, min, max);

	if (value != floor(value))
		usage_error("--%s=%s: a whole number is needed", option, text);
	return (uint64_t)value;
}

/* Calls @each on every item of a comma-separated list. */
static void for_each_item(const char *option, const char *list, struct options *o,
			  void (*each)(const char *item, struct options *o))
{
	char *copy = strdup(list), *rest = copy, *item;

	if (!copy)
		usage_error("out of memory");
	while ((item = strsep(&rest, ",")) != NULL) {
		if (!*item)
			usage_error("--%s=%s: an item of the list is empty", option, list);
		each(item, o);
	}
	free(copy);
}

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

static const struct op *asked_type(const char *option, const char *name)
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
	const struct op *op = asked_type("type", item);

	for (int i = 0; i < o->nr_types; i++)
		if (o->types[i] == op)
			return;
	if (o->nr_types == MAX_TYPES)
		usage_error("--type: at most %d types", MAX_TYPES);
	o->types[o->nr_types++] = op;
}

static void add_number(const char *option, const char *item, double max, struct options *o)
{
	double min = current->accepts & OPT_RWLOCK ? 0 : 1; /* rwscale also measures a writer alone */

	if (o->nr_readers == MAX_READERS)
		usage_error("--%s: at most %d numbers", option, MAX_READERS);
	o->readers[o->nr_readers++] = (int)whole(option, item, min, max);
}

static void add_readers(const char *item, struct options *o)
{
	add_number("readers", item, MAX_THREADS, o);
}

/* Reads "2", or "3:1": producers, with consumers in the upper half of the number. */
static void add_shape(const char *item, struct options *o)
{
	const char *colon = strchr(item, ':');
	char producers[32];

	snprintf(producers, sizeof(producers), "%.*s", colon ? (int)(colon - item) : 31, item);
	add_number("threads", producers, MAX_RETIRING, o);
	if (colon)
		o->readers[o->nr_readers - 1] |= (int)whole("threads", colon + 1, 1, QUEUE_MAX_CONSUMERS) << 16;
}

static void add_threads(const char *item, struct options *o)
{
	if (current->accepts & OPT_QUEUE) {
		add_shape(item, o);
		return;
	}
	add_number("threads", item, current->accepts & OPT_HASH ? HASH_CELL_THREADS : MAX_RETIRING, o);
}

static void add_keys(const char *item, struct options *o)
{
	hash_plan_add_set(&o->hash, item);
}

static void add_updates(const char *item, struct options *o)
{
	if (o->hash.nr_updates == HASH_MAX_UPDATES)
		usage_error("--updates: at most %d numbers", HASH_MAX_UPDATES);
	o->hash.updates[o->hash.nr_updates++] = number("updates", item, 0, 100);
}

static void add_scenario(const char *item, struct options *o)
{
	char text[512] = "";
	size_t n = 0;

	for (int i = current->first_scenario; i < current->end_scenario; i++) {
		if (!strcmp(scenario_info[i].name, item)) {
			o->scenarios |= 1u << i;
			return;
		}
		if (n < sizeof(text))
			n += (size_t)snprintf(text + n, sizeof(text) - n, " %s", scenario_info[i].name);
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

static void take_list(int key, const char *arg, struct options *o)
{
	switch (key) {
	case KEY_TYPE: for_each_item("type", arg, o, add_type); break;
	case KEY_READERS: for_each_item("readers", arg, o, add_readers); break;
	case KEY_THREADS: for_each_item("threads", arg, o, add_threads); break;
	case KEY_SCENARIO: for_each_item("scenario", arg, o, add_scenario); break;
	case KEY_FENCE: for_each_item("fence", arg, o, add_fence); break;
	case KEY_KEYS: for_each_item("keys", arg, o, add_keys); break;
	case KEY_UPDATES: for_each_item("updates", arg, o, add_updates); break;
	}
}

static void take_format(enum format format, struct options *o)
{
	static const char *const names[] = { [FORMAT_JSON] = "json", [FORMAT_CSV] = "csv", [FORMAT_MARKDOWN] = "markdown" };

	if (o->format != FORMAT_TABLE && o->format != format)
		usage_error("--%s and --%s: results have one format", names[o->format], names[format]);
	o->format = format;
}

static error_t take(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case KEY_TYPE:
	case KEY_READERS:
	case KEY_THREADS:
	case KEY_SCENARIO:
	case KEY_KEYS:
	case KEY_UPDATES:
	case KEY_FENCE: take_list(key, arg, o); break;
	case KEY_DISTRIBUTION: o->hash.distribution = hash_plan_distribution(arg); break;
	case KEY_BASE: o->base = asked_type("base", arg); break;
	case KEY_TURNOVERS: o->hash.turnovers = whole("turnovers", arg, 0, HASH_MAX_TURNOVERS); break;
	case KEY_RESIZE: o->hash.resize = true; break;
	case KEY_STALL: o->hash.stall = true; break;
	case KEY_FIGURE: o->figure = arg; break;
	case KEY_ALIVE: o->alive = (int)whole("alive", arg, 0, MAX_THREADS); break;
	case KEY_LOOPS: o->loops = whole("loops", arg, 1, 1e12); break;
	case KEY_BATCH: o->batch = whole("batch", arg, 1, MAX_BATCH); break;
	case KEY_BYTES: o->bytes = whole("bytes", arg, MIN_BYTES, MAX_BYTES); break;
	case KEY_SCAN: o->scan = true; break;
	case KEY_SECTIONS: o->sections = whole("sections", arg, 1, 1e9); break;
	case KEY_LATENCY: o->latency = true; break;
	case KEY_PAIRS:
		if (strcmp(arg, "all") != 0)
			usage_error("--pairs=%s: valid: all", arg);
		o->all_pairs = true;
		break;
	case KEY_SECONDS: o->seconds = number("seconds", arg, 0.001, 1e6); break;
	case KEY_RUNS: o->runs_given = true, o->runs = (int)whole("runs", arg, 1, 1000); break;
	case KEY_JSON: take_format(FORMAT_JSON, o); break;
	case KEY_CSV: take_format(FORMAT_CSV, o); break;
	case KEY_MARKDOWN: take_format(FORMAT_MARKDOWN, o); break;
	case KEY_OUTPUT: o->output = arg; break;
	case KEY_RECORD: o->record = arg; break;
	case KEY_MUTANT: o->mutant = arg; break;
	case KEY_PERTURB: o->perturb = (double)whole("perturb", arg, 0, 65536); break;
	case KEY_KEEP_GOING: o->keep_going = true; break;
	case KEY_BYSTANDERS: o->bystanders = (int)whole("bystanders", arg, 0, MAX_THREADS); break;
	case KEY_QUICK: o->quick = true; break;
	case KEY_COMPARE: o->compare = true; break;
	case KEY_BINARY: o->binary = arg; break;
	case ARGP_KEY_ARG:
		if (current->arguments && o->nr_words < MAX_WORDS) {
			o->words[o->nr_words++] = arg;
			break;
		}
		usage_error("unexpected argument '%s'; see quiesce %s --help", arg, current->name);
	default: return ARGP_ERR_UNKNOWN;
	}
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

static void type_help(struct help *help, const struct subcommand *command)
{
	const struct op *types[MAX_TYPES];

	help_add(help, "%s\v%s", command->what, command->doc);
	if (!(command->accepts & OPT_TYPE))
		return;
	help_add(help, "\n\nTypes:\n");
	for (int i = 0, nr = types_all(command->fits, types, MAX_TYPES); i < nr; i++)
		help_row(help, types[i]->name, command == &rwscale_command ? types[i]->rwlock->what : types[i]->what);
	if (!(command->accepts & OPT_SCENARIO))
		return;
	help_add(help, "\nScenarios:\n");
	for (int i = command->first_scenario; i < command->end_scenario; i++)
		help_row(help, scenario_info[i].name, scenario_info[i].what);
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
	struct argp_option accepted[NR_OPTIONS + 1] = { 0 };
	static struct help help;
	struct argp argp = { accepted, take, command->arguments, help.text, NULL, NULL, NULL };
	char name[64];
	int n = 0;

	current = command;
	*ret = (struct options){ .perturb = -1, .runs = 3 };
	for (size_t i = 0; i < NR_OPTIONS; i++)
		if (table[i].needs == ANY || (command->accepts & table[i].needs))
			accepted[n++] = table[i].option;
	if (asks_for_help(argc, argv)) /* loads the peers */
		type_help(&help, command);
	snprintf(name, sizeof(name), "quiesce %s", command->name);
	argv[0] = name;
	if (asks_for_help(argc, argv))
		atexit(check_help);
	if (argp_parse(&argp, argc, argv, asks_for_help(argc, argv) ? 0 : ARGP_NO_ERRS, NULL, ret))
		argp_mistake(argc, argv, accepted);
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
