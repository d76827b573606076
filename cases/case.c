/* SPDX-License-Identifier: MIT */
/* case.c - what the programs of the case studies share. */
#include "case.h"

#include <argp.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <signal.h>

#include <quiesce/atomic.h>
#include <quiesce/control.h>

#include "meter.h"
#include "number.h"
#include "tool.h"

static const struct case_program *program;

void case_usage(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s: ", program->name);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(CASE_USAGE);
}

/* ---- the command line ---- */

enum { KEY_VARIANT = 256, KEY_SCENARIO, KEY_SECONDS, KEY_THREADS, KEY_ROUND, KEY_QUICK, KEY_CHECK, KEY_OWN = 512 };
#define MAX_OWN 8

static const struct argp_option common[] = {
	{ "variant", KEY_VARIANT, "NAME", 0, "measure this one", 1 },
	{ "scenario", KEY_SCENARIO, "NAME", 0, "only this one", 1 },
	{ "seconds", KEY_SECONDS, "S", 0, "duration of one measurement", 1 },
	{ "threads", KEY_THREADS, "N", 0, "readers or workers", 1 },
	{ "round", KEY_ROUND, "N", 0, "number of the run, for the seeds", 1 },
	{ "quick", KEY_QUICK, NULL, 0, "fewer and shorter measurements", 1 },
	{ "check", KEY_CHECK, NULL, 0, "search for objects that are used after they were freed; measure nothing", 1 },
};
#define NR_COMMON (sizeof(common) / sizeof(common[0]))

static const struct case_choice *find(const struct case_choice *list, const char *kind, const char *name)
{
	for (const struct case_choice *c = list; c && c->name; c++)
		if (!strcmp(c->name, name))
			return c;
	fprintf(stderr, "%s: unknown %s '%s'; valid:", program->name, kind, name);
	for (const struct case_choice *c = list; c && c->name; c++)
		fprintf(stderr, " %s", c->name);
	fputc('\n', stderr);
	exit(CASE_USAGE);
}

static double number(const char *option, const char *text, double min, double max)
{
	double value;

	if (!number_read(text, min, max, &value))
		case_usage("--%s=%s: a number from %g to %g is needed", option, text, min, max);
	return value;
}

static error_t take(int key, char *arg, struct argp_state *state)
{
	struct case_run *run = state->input;

	switch (key) {
	case KEY_VARIANT: run->variant = find(program->variants, "variant", arg); break;
	case KEY_SCENARIO: run->scenario = find(program->scenarios, "scenario", arg)->name; break;
	case KEY_SECONDS: run->seconds = number("seconds", arg, 0.001, 3600); break;
	case KEY_THREADS: run->threads = (int)number("threads", arg, 1, MAX_THREADS); break;
	case KEY_ROUND: run->round = (unsigned int)number("round", arg, 0, 1e6); break;
	case KEY_QUICK: run->quick = true; break;
	case KEY_CHECK: run->check = true; break;
	case ARGP_KEY_ARG: case_usage("unexpected argument '%s'; see --help", arg);
	default:
		if (key < KEY_OWN || key >= KEY_OWN + MAX_OWN)
			return ARGP_ERR_UNKNOWN;
		program->options[key - KEY_OWN].take(run, arg);
	}
	return 0;
}

static size_t list(char *text, size_t n, size_t size, const char *title, const struct case_choice *choices)
{
	n += (size_t)snprintf(text + n, size - n, "%s:\n", title);
	for (const struct case_choice *c = choices; c->name && n < size; c++)
		n += (size_t)snprintf(text + n, size - n, "  %-18s %s%s\n", c->name, c->what, c->busted ? " (busted)" : "");
	return n;
}

static void parse(int argc, char **argv, struct case_run *run)
{
	struct argp_option options[NR_COMMON + MAX_OWN + 1] = { 0 };
	char doc[8192];
	struct argp argp = { options, take, NULL, doc, NULL, NULL, NULL };
	size_t n = (size_t)snprintf(doc, sizeof(doc), "%s\v", program->what);

	memcpy(options, common, sizeof(common));
	for (int i = 0; program->options && program->options[i].name; i++)
		options[NR_COMMON + (size_t)i] = (struct argp_option){ program->options[i].name, KEY_OWN + i, program->options[i].arg, 0,
								       program->options[i].what, 2 };
	n = list(doc, n, sizeof(doc), "Variants", program->variants);
	if (program->scenarios)
		list(doc, n, sizeof(doc), "Scenarios", program->scenarios);
	argp_err_exit_status = CASE_USAGE;
	argp_parse(&argp, argc, argv, 0, NULL, run);
	if (!run->variant)
		case_usage("--variant is needed; see --help");
}

bool case_wants(const struct case_run *run, const char *name)
{
	return !run->scenario || !strcmp(run->scenario, name);
}

int case_main(const struct case_program *mine, int argc, char **argv)
{
	struct case_run run = { .seconds = mine->seconds };
	const char *fence = getenv("QUIESCE_FENCE");

	program = mine;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	parse(argc, argv, &run);
	/* The library would go on with full ones, and the row would have the wrong name. */
	if (fence && !strcmp(fence, "light") && quiesce_set_fence(QUIESCE_FENCE_LIGHT)) {
		case_note("left out: light fences are not available here");
		return CASE_UNAVAILABLE;
	}
	return program->run(&run);
}

/* ---- results ---- */

static void print_line(json_t *object)
{
	if (!object || json_dumpf(object, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6)))
		fputs("{\"note\":\"out of memory for a result\"}", stdout);
	fputc('\n', stdout);
	json_decref(object);
	if (fflush(stdout))
		exit(CASE_FAILED); /* the reader of the output has gone */
}

void case_result(const struct case_run *run, const char *scenario, const struct case_value *values, size_t nr)
{
	json_t *object = json_pack("{ss ss}", "scenario", scenario ? scenario : "", "variant", run->variant->name);

	for (size_t i = 0; i < nr; i++)
		if (isfinite(values[i].value))
			json_object_set_new(object, values[i].metric, json_real(values[i].value));
	print_line(object);
}

static void print_note(const char *format, va_list args)
{
	char text[500];

	vsnprintf(text, sizeof(text), format, args);
	print_line(json_pack("{ss}", "note", text));
}

void case_note(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print_note(format, args);
	va_end(args);
}

/* The parts of the tool that the cases use print their notes by this. */
void job_send_note(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print_note(format, args);
	va_end(args);
}

/* ---- what a stretch of time cost ---- */

static void read_meter(struct case_meter *m)
{
	struct quiesce_stats stats;

	quiesce_get_stats(&stats, sizeof(stats));
	*m = (struct case_meter){
		.s = (double)now_ns() / 1e9,
		.cpu_s = (double)process_cpu_ns() / 1e9,
		.interrupts = meter_interrupts(),
		.membarriers = (double)stats.membarriers,
		.grace_periods = (double)stats.grace_periods,
	};
}

void case_meter_begin(struct case_meter *m)
{
	read_meter(m);
}

void case_meter_end(struct case_meter *m)
{
	struct case_meter now;

	read_meter(&now);
	m->s = now.s - m->s;
	m->cpu_s = now.cpu_s - m->cpu_s;
	m->interrupts = now.interrupts - m->interrupts;
	m->membarriers = now.membarriers - m->membarriers;
	m->grace_periods = now.grace_periods - m->grace_periods;
}

/* ---- objects that detect late uses ---- */

#define ALIVE UINT64_C(0x5a1157a7ed0b1ec7)
#define DEAD UINT64_C(0xdeadbeefdeadbeef)
#define WAIT_STEP_NS 2000000
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CASE_ASAN
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define CASE_ASAN
#endif
#define BURIED 1024 /* dead objects that can still be read */

static uint64_t dead;

void canary_init(struct canary *canary)
{
	quiesce_store_relaxed(&canary->alive, ALIVE); /* Relaxed: no other thread has the object. */
}

bool canary_sings(const struct canary *canary)
{
	/* Relaxed: an object that can be found is alive; the question is whether the library keeps it so. */
	if (quiesce_likely(quiesce_load_relaxed(&canary->alive) == ALIVE))
		return true;
	(void)quiesce_fetch_add_relaxed(&dead, (uint64_t)1);
	return false;
}

uint64_t canary_dead(void)
{
	return quiesce_load_relaxed(&dead);
}

void case_wait(double seconds)
{
	uint64_t now = now_ns(), end = now + (uint64_t)(fmax(seconds, 0) * 1e9);

	for (; now < end && !canary_dead(); now = now_ns())
		sleep_ns(end - now < WAIT_STEP_NS ? end - now : WAIT_STEP_NS);
}

void canary_free(void *object, struct canary *canary)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static void *grave[BURIED];
	static size_t at;
	void *old = object;

	quiesce_store_relaxed(&canary->alive, DEAD); /* Relaxed: the library has to order it. */
#ifndef CASE_ASAN
	pthread_mutex_lock(&lock);
	old = grave[at];
	grave[at++ % BURIED] = object;
	at %= BURIED;
	pthread_mutex_unlock(&lock);
#else
	(void)lock, (void)grave, (void)at;
#endif
	free(old);
}

int case_verdict(const struct case_run *run, uint64_t reads, uint64_t frees)
{
	bool worked = reads && frees, good = worked && !canary_dead();

	printf("%s: %s: %llu reads, %llu objects freed, %llu reads of an object that was freed%s\n", program->name, run->variant->name,
	       (unsigned long long)reads, (unsigned long long)frees, (unsigned long long)canary_dead(),
	       worked ? "" : "; nothing was tested");
	return good ? 0 : CASE_FAILED;
}
