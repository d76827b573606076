/* SPDX-License-Identifier: MIT */
/* torture_report.c - the results of a torture run, and the verdict. */
#include <stdlib.h>

#include "torture.h"

static struct tally sum_up(void)
{
	struct tally sum = { 0 };

	for (int i = 0; i < torture_nr_tallies(); i++)
		for (int k = 0; k < NR_TALLY; k++)
			sum.n[k] += quiesce_load_relaxed(&torture.tally[i].n[k]);
	return sum;
}

static uint64_t too_old(const struct tally *sum)
{
	uint64_t n = 0;

	for (int i = 2; i <= PIPE_LENGTH; i++)
		n += sum->n[TALLY_PIPE + i];
	return n;
}

static uint64_t errors_of_kind(void)
{
	uint64_t n = 0;

	for (const struct torture_figure *f = torture.kind->figures; f && f->what; f++)
		n += f->error ? quiesce_load_relaxed(&f->n) : 0;
	return n;
}

static uint64_t errors_of(const struct tally *sum)
{
	return too_old(sum) + sum->n[TALLY_CANARY_ERRORS] + sum->n[TALLY_MAGIC_ERRORS] + sum->n[TALLY_REUSE_ERRORS] +
	       sum->n[TALLY_COOKIE_ERRORS] + quiesce_load_relaxed(&torture.barrier_errors) +
	       quiesce_load_relaxed(&torture.key_errors) + torture.leaks + torture.hung + errors_of_kind();
}

uint64_t torture_errors(void)
{
	struct tally sum = sum_up();

	return errors_of(&sum);
}

static void print_histogram(const char *name, const uint64_t v[PIPE_LENGTH + 1])
{
	char text[MESSAGE_TEXT_MAX];
	size_t n = 0;

	for (int i = 0; i <= PIPE_LENGTH && n < sizeof(text); i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, " %llu", (unsigned long long)v[i]);
	job_print("%-14s%s", name, text);
}

#define U(x) ((unsigned long long)(x))

/* Prints the figures of the kind, or its errors. */
static void print_figures(bool errors)
{
	char text[MESSAGE_TEXT_MAX] = "";
	size_t n = 0;

	for (const struct torture_figure *f = torture.kind->figures; f && f->what && n < sizeof(text); f++)
		if (f->error == errors)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s %llu", n ? ", " : "", f->what,
					      U(quiesce_load_relaxed(&f->n)));
	if (n)
		job_print("%s%s", errors ? "!!! " : "", text);
}

static void print_figures_of_kind(void)
{
	print_figures(false);
	if (errors_of_kind())
		print_figures(true);
}

static void print_own_counts(const struct tally *s)
{
	job_print("sections %llu (signal handlers %llu, exiting threads %llu), handed over %llu, updates %llu, signals %llu",
		  U(s->n[TALLY_READS]), U(s->n[TALLY_SIGNAL_READS]), U(torture.exits), U(s->n[TALLY_HANDED_OVER]), U(torture.version),
		  U(torture.signals));
	print_figures_of_kind();
}

static void print_counts(const struct tally *s)
{
	print_figures_of_kind();
	job_print("reads %llu (in signal handlers %llu, in %llu exiting threads), updates %llu, %s %llu, reused %llu",
		  U(s->n[TALLY_READS]), U(s->n[TALLY_SIGNAL_READS]), U(torture.exits), U(torture.version),
		  torture.op->object ? "waits" : "grace periods", U(torture.completed), U(torture.reused));
	if (torture.op->object)
		job_print("guards handed over %llu, fake writers' waits %llu, longest wait %.1f ms, signals %llu, free list empty %llu",
			  U(s->n[TALLY_HANDED_OVER]), U(torture.fake_waits), (double)torture.longest_ns / 1e6, U(torture.signals),
			  U(torture.empty));
	if (torture.op->object && torture.op->retire)
		job_print("retired: callbacks %llu, waited for %llu, barriers %llu (floods %llu)", U(torture.callbacks),
			  U(torture.retired_waits), U(torture.barriers), U(torture.floods));
	if (!torture.op->object)
		job_print("callbacks %llu, fake writers' waits %llu, barriers %llu (floods %llu), signals %llu, free list empty %llu",
			  U(torture.callbacks), U(torture.fake_waits), U(torture.barriers), U(torture.floods),
			  U(torture.signals), U(torture.empty));
	print_histogram("Reader Pipe:", &s->n[TALLY_PIPE]);
	print_histogram("Reader Batch:", &s->n[TALLY_BATCH]);
}

static void print_errors(const struct tally *s)
{
	if (!torture.kind->elements) {
		job_print("!!! errors %llu, hung %llu", U(errors_of_kind()), U(torture.hung));
		return;
	}
	job_print("!!! errors: age 2 or more %llu, canary %llu, magic %llu, reused in a section %llu, cookie %llu, "
		  "barrier %llu, key held %llu, leaked %llu, hung %llu", U(too_old(s)), U(s->n[TALLY_CANARY_ERRORS]),
		  U(s->n[TALLY_MAGIC_ERRORS]), U(s->n[TALLY_REUSE_ERRORS]), U(s->n[TALLY_COOKIE_ERRORS]), U(torture.barrier_errors),
		  U(torture.key_errors), U(torture.leaks), U(torture.hung));
}

/* A counter of a thread that may still run. */
#define NOW(counter) quiesce_load_relaxed(&torture.counter)

/* The work that a run did not do, without which it proves nothing.  NULL: it did all. */
static const char *idle_reason(const struct tally *s)
{
	if (!s->n[TALLY_READS] || (!s->n[TALLY_PIPE] && torture.kind->elements))
		return "the readers did not read";
	for (const struct torture_figure *f = torture.kind->figures; f && f->what; f++)
		if (f->idle && quiesce_load_relaxed(&f->n) <= f->few)
			return f->idle;
	if (!torture.kind->elements)
		return !NOW(version) ? "nothing was updated" : !s->n[TALLY_SIGNAL_READS] || !NOW(exits) || !s->n[TALLY_HANDED_OVER]
			? "signals, exits or hand-overs did not happen" : NULL;
	if (!NOW(version) || !NOW(completed))
		return "nothing was updated";
	if (!NOW(reused))
		return "no element was used twice";
	if (NOW(empty) > NOW(version))
		return "the free list was empty most of the time";
	if (!s->n[TALLY_SIGNAL_READS] || !NOW(exits))
		return "signals or exits did not happen";
	if (torture.op->object ? !s->n[TALLY_HANDED_OVER] || !NOW(fake_waits) : !NOW(barriers))
		return torture.op->object ? "no guard was handed over or no key waited for" : "barriers did not happen";
	if (torture.op->object && torture.op->retire && (!NOW(callbacks) || !NOW(retired_waits) || !NOW(barriers)))
		return "nothing was retired, or barriers did not happen";
	return NULL;
}

bool torture_is_idle(void)
{
	struct tally sum = sum_up();

	return idle_reason(&sum) != NULL;
}

static void send_counts(const struct tally *s, uint64_t errors)
{
	const struct { int what; uint64_t value; } row[] = {
		{ SCENARIO_READS, s->n[TALLY_READS] }, { SCENARIO_UPDATES, torture.version }, { SCENARIO_REUSED, torture.reused },
		{ SCENARIO_CLOSE_CALLS, s->n[TALLY_BATCH + 2] + s->n[TALLY_BATCH + 3] }, { SCENARIO_ERRORS, errors },
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		if (torture.kind->elements || (row[i].what != SCENARIO_REUSED && row[i].what != SCENARIO_CLOSE_CALLS))
			job_send(row[i].what, torture.nr_readers, torture.job->round, (double)row[i].value);
}

int torture_report(double seconds)
{
	struct tally sum = sum_up();
	uint64_t errors = errors_of(&sum);
	const char *idle = errors ? NULL : idle_reason(&sum);
	double hours = (double)sum.n[TALLY_CPU_NS] / 3.6e12;

	(torture.kind->elements ? print_counts : print_own_counts)(&sum);
	send_counts(&sum, errors);
	if (errors)
		print_errors(&sum);
	else if (idle)
		job_print("!!! proves nothing: %s", idle);
	else
		job_print("0 errors in %.4f reader-hours: less than %.3g errors per reader-hour at 95 %%", hours, 3 / hours);
	job_print("--- %s torture: %s after %.1f s", torture.op->name, errors || idle ? "FAILURE" : "SUCCESS", seconds);
	return errors || idle ? EXIT_FAILED : 0;
}
