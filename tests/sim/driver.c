/* SPDX-License-Identifier: MIT */
#include "driver.h"
#include "platform/platform.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MUST_SEE_RUNS 5000 /* fewer seeds prove nothing: rare outcomes are seen once in some two thousand */

int driver_readers SIM_KEEP = 2;
const char *const driver_model_name[SIM_NR_MODELS] = { "sc", "tso", "pso", "weak" };
const char *const driver_sched_name[SIM_NR_SCHEDS] = { "random", "pct" };

/* Options that the command line has set. */
static struct {
	const char *scenarios;
	const char *mutant;
	bool model[SIM_NR_MODELS], sched[SIM_NR_SCHEDS];
	uint64_t seeds, first;
	double seconds;
	double unfinished_share;
	bool expect_fail;
	struct sim_options options;
} chosen SIM_KEEP = {
	.scenarios = "all",
	.model = { [SIM_TSO] = true, [SIM_PSO] = true, [SIM_WEAK] = true },
	.sched = { true, true },
	.seeds = 10000,
	.first = 1,
	.unfinished_share = 0.01,
	.options = { .change_points = 3 },
};

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

/* PCT spreads its change points over the length of a run.  The length is part of
 * what a replay needs, so it changes rarely and is printed with a failure. */
static void adapt_length(struct sim_options *options, const struct sim_search *search)
{
	if ((search->runs & (search->runs - 1)) == 0 && search->runs >= 16)
		options->length = search->steps / search->runs + 16;
}

void without_membarrier(void)
{
	sim_config()->membarrier = SIM_MEMBARRIER_ABSENT;
}

void without_rseq(void)
{
	sim_config()->rseq_kind = PLATFORM_RSEQ_NONE;
}

void without_threads(void)
{
	sim_config()->thread_start_failures = -1;
}

void with_many_cpus(void)
{
	sim_config()->nr_cpus = 0;
}

void driver_search(const struct sim_scenario *scenario, struct sim_options *options, struct sim_search *search)
{
	bool adapt = !options->length;
	double start = now();
	uint64_t saw = sim_nr_saw();

	if (adapt)
		options->length = 200;
	for (uint64_t i = 0; i < search->seeds; i++) {
		enum sim_result result;

		options->seed = search->first + i;
		result = sim_run(scenario, options);
		search->runs++;
		search->steps += sim_steps();
		search->unfinished += result == SIM_UNFINISHED;
		if (result == SIM_FAILED) {
			search->failed = true;
			search->failing_seed = options->seed;
			snprintf(search->failure, sizeof search->failure, "%s", sim_failure());
			break;
		}
		if (adapt)
			adapt_length(options, search);
		if (search->seconds && (i & 63) == 0 && now() - start > search->seconds)
			break;
	}
	search->elapsed = now() - start;
	search->saw = sim_nr_saw() - saw;
}

static void print_replay(const char *program, const char *scenario, const struct sim_options *o)
{
	printf("  replay: %s --scenario %s --model %s --sched %s --first %llu --seeds 1 --length %u --readers %d%s%s%s%s%s --trace\n",
	       program, scenario, driver_model_name[o->model], driver_sched_name[o->sched], (unsigned long long)o->seed,
	       o->length, driver_readers, chosen.mutant ? " --mutant " : "", chosen.mutant ? chosen.mutant : "",
	       o->strict_relseq ? " --strict-relseq" : "", o->rmw_acqrel ? " --rmw-acqrel" : "",
	       o->compiler ? " --compiler" : "");
}

/* Run one scenario under one model and scheduler; return 0 if it passed, 1 if it failed. */
static int run_one(const char *program, const struct sim_scenario *scenario, enum sim_model model, enum sim_sched sched)
{
	struct sim_options options = chosen.options;
	struct sim_search search = { .first = chosen.first, .seeds = chosen.seeds, .seconds = chosen.seconds };
	bool too_many, blind;

	options.model = model;
	options.sched = sched;
	driver_search(scenario, &options, &search);
	too_many = search.unfinished > search.runs * chosen.unfinished_share;
	blind = scenario->must_see && !search.saw && search.runs >= MUST_SEE_RUNS;
	printf("%-5s %-20s %-4s %-6s %9llu runs %11llu steps %8.0f runs/s %6llu unfinished\n",
	       search.failed || too_many || blind ? "FAIL" : "ok", scenario->name, driver_model_name[model],
	       driver_sched_name[sched], (unsigned long long)search.runs, (unsigned long long)search.steps,
	       search.runs / (search.elapsed + 1e-9), (unsigned long long)search.unfinished);
	if (search.failed) {
		printf("  seed %llu after %.3f s: %s\n", (unsigned long long)search.failing_seed, search.elapsed,
		       search.failure);
		print_replay(program, scenario->name, &options);
	} else if (too_many) {
		printf("  too many runs did not finish\n");
	} else if (blind) {
		printf("  never seen: %s\n", scenario->must_see);
	}
	fflush(stdout);
	return search.failed || too_many || blind;
}

/* True if @name is in the comma-separated @list. */
static bool listed(const char *list, const char *name)
{
	size_t length = strlen(name);

	if (!strcmp(list, "all"))
		return true;
	for (const char *p = list; (p = strstr(p, name)); p++)
		if ((p == list || p[-1] == ',') && (p[length] == ',' || !p[length]))
			return true;
	return false;
}

static bool choose(const char *list, const char *const *names, int n, bool *ret_chosen)
{
	int found = 0;

	for (int i = 0; i < n; i++)
		found += ret_chosen[i] = listed(list, names[i]);
	return found;
}

static void usage(FILE *out)
{
	fputs("Options:\n"
	      "  --scenario A,B|all   --list\n"
	      "  --model sc,tso,pso,weak (default tso,pso,weak)   --sched random,pct (default both)\n"
	      "  --seeds N            runs for each scenario, model and scheduler (10000)\n"
	      "  --seconds S          ... but no longer than this for each\n"
	      "  --first SEED         --length STEPS (of a run, for pct; default: learned)   --change-points N (3)\n"
	      "  --readers N          (2)\n"
	      "  --mutant NAME        weaken this; see src/platform/mutants.h\n"
	      "  --compiler           let relaxed stores sink below later loads\n"
	      "  --strict-relseq      release sequences as in C++20\n"
	      "  --rmw-acqrel           read-modify-write operations are no full fences in the weak model\n"
	      "  --unfinished SHARE   of runs that may hit the step limit (0.01)\n"
	      "  --expect-fail        exit 0 if and only if a failure was found\n"
	      "  --trace              print every step\n", out);
}

enum { OPT_SCENARIO = 256, OPT_MODEL, OPT_SCHED, OPT_SEEDS, OPT_FIRST, OPT_LENGTH, OPT_CHANGE, OPT_READERS, OPT_SECONDS,
       OPT_MUTANT, OPT_TRACE, OPT_LIST, OPT_EXPECT, OPT_RELSEQ, OPT_RMW, OPT_COMPILER, OPT_UNFINISHED, OPT_HELP };

static const struct option long_options[] = {
	{ "scenario", required_argument, NULL, OPT_SCENARIO }, { "model", required_argument, NULL, OPT_MODEL },
	{ "sched", required_argument, NULL, OPT_SCHED },       { "seeds", required_argument, NULL, OPT_SEEDS },
	{ "first", required_argument, NULL, OPT_FIRST },       { "length", required_argument, NULL, OPT_LENGTH },
	{ "change-points", required_argument, NULL, OPT_CHANGE }, { "readers", required_argument, NULL, OPT_READERS },
	{ "seconds", required_argument, NULL, OPT_SECONDS },   { "mutant", required_argument, NULL, OPT_MUTANT },
	{ "trace", no_argument, NULL, OPT_TRACE },             { "list", no_argument, NULL, OPT_LIST },
	{ "expect-fail", no_argument, NULL, OPT_EXPECT },      { "strict-relseq", no_argument, NULL, OPT_RELSEQ },
	{ "rmw-acqrel", no_argument, NULL, OPT_RMW },            { "compiler", no_argument, NULL, OPT_COMPILER },
	{ "unfinished", required_argument, NULL, OPT_UNFINISHED }, { "help", no_argument, NULL, OPT_HELP },
	{ NULL, 0, NULL, 0 },
};

static bool bounded(long value, long low, long high, int *ret_value)
{
	*ret_value = value;
	return value >= low && value <= high;
}

/* Take the value of an option; return 1 if it is valid, 0 if not. */
static int take_option(int option)
{
	int length = 0, ok = 1;

	switch (option) {
	case OPT_SCENARIO: chosen.scenarios = optarg; break;
	case OPT_MODEL: return choose(optarg, driver_model_name, SIM_NR_MODELS, chosen.model);
	case OPT_SCHED: return choose(optarg, driver_sched_name, SIM_NR_SCHEDS, chosen.sched);
	case OPT_SEEDS: return (chosen.seeds = strtoull(optarg, NULL, 0)) > 0;
	case OPT_FIRST: chosen.first = strtoull(optarg, NULL, 0); break;
	case OPT_LENGTH:
		ok = bounded(atol(optarg), 1, 1000000, &length);
		chosen.options.length = length;
		break;
	case OPT_CHANGE: return bounded(atol(optarg), 0, 8, &chosen.options.change_points);
	case OPT_READERS: return bounded(atol(optarg), 1, 8, &driver_readers);
	case OPT_SECONDS: return (chosen.seconds = atof(optarg)) > 0;
	case OPT_MUTANT: chosen.mutant = optarg; return quiesce_mutant_set(optarg) == 0;
	case OPT_TRACE: chosen.options.trace = true; break;
	case OPT_EXPECT: chosen.expect_fail = true; break;
	case OPT_RELSEQ: chosen.options.strict_relseq = true; break;
	case OPT_RMW: chosen.options.rmw_acqrel = true; break;
	case OPT_COMPILER: chosen.options.compiler = true; break;
	case OPT_UNFINISHED: chosen.unfinished_share = atof(optarg); break;
	default: ok = 0;
	}
	return ok;
}

static int list(const struct sim_scenario *const *tables)
{
	for (; *tables; tables++)
		for (const struct sim_scenario *s = *tables; s->name; s++)
			printf("%-20s %s\n", s->name, s->what);
	return 0;
}

/* Return the number of failures; with --expect-fail the first is enough. */
static int run_each_way(const char *program, const struct sim_scenario *scenario, int *ret_ran)
{
	int failures = 0;

	for (int model = 0; model < SIM_NR_MODELS; model++)
		for (int sched = 0; sched < SIM_NR_SCHEDS; sched++) {
			if (!chosen.model[model] || !chosen.sched[sched])
				continue;
			++*ret_ran;
			failures += run_one(program, scenario, model, sched);
			if (failures && chosen.expect_fail)
				return failures;
		}
	return failures;
}

static int run_all(const char *program, const struct sim_scenario *const *tables, int *ret_ran)
{
	int failures = 0;

	for (; *tables; tables++)
		for (const struct sim_scenario *s = *tables; s->name && !(failures && chosen.expect_fail); s++)
			if (listed(chosen.scenarios, s->name))
				failures += run_each_way(program, s, ret_ran);
	return failures;
}

int driver_main(int argc, char **argv, const struct sim_scenario *const *tables)
{
	int option, failures, ran = 0;

	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		if (option == OPT_LIST)
			return list(tables);
		if (option == OPT_HELP) {
			usage(stdout);
			return 0;
		}
		if (!take_option(option)) {
			usage(stderr);
			return 2;
		}
	}
	sim_init();
	failures = run_all(argv[0], tables, &ran);
	if (!ran) {
		fprintf(stderr, "no scenario of that name; see --list\n");
		return 2;
	}
	return chosen.expect_fail ? !failures : failures != 0;
}
