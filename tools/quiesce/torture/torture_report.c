/* SPDX-License-Identifier: MIT */
/* torture_report.c - the results of a torture run, and the verdict. */
#include <stdlib.h>

#include "torture.h"

static struct tally sum_up(void)
{
	struct tally sum = { 0 };

	for (int i = 0; i < torture_nr_tallies(); i++) {
		const struct tally *t = &torture.tally[i];

		sum.reads += quiesce_load_relaxed(&t->reads);
		sum.signal_reads += quiesce_load_relaxed(&t->signal_reads);
		sum.canary_errors += quiesce_load_relaxed(&t->canary_errors);
		sum.magic_errors += quiesce_load_relaxed(&t->magic_errors);
		sum.reuse_errors += quiesce_load_relaxed(&t->reuse_errors);
		sum.cookie_errors += quiesce_load_relaxed(&t->cookie_errors);
		sum.handed_over += quiesce_load_relaxed(&t->handed_over);
		sum.cpu_ns += quiesce_load_relaxed(&t->cpu_ns);
		for (int k = 0; k <= PIPE_LENGTH; k++) {
			sum.pipe[k] += quiesce_load_relaxed(&t->pipe[k]);
			sum.batch[k] += quiesce_load_relaxed(&t->batch[k]);
		}
	}
	return sum;
}

static uint64_t too_old(const struct tally *sum)
{
	uint64_t n = 0;

	for (int i = 2; i <= PIPE_LENGTH; i++)
		n += sum->pipe[i];
	return n;
}

static uint64_t errors_of(const struct tally *sum)
{
	return too_old(sum) + sum->canary_errors + sum->magic_errors + sum->reuse_errors + sum->cookie_errors +
	       quiesce_load_relaxed(&torture.barrier_errors) + quiesce_load_relaxed(&torture.key_errors) + torture.leaks + torture.hung +
	       (torture.kind ? torture.kind->errors() : 0);
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

/* True for a kind that does not use elements. */
static bool without_elements(void)
{
	return torture.kind && torture.kind->section;
}

static void print_own_counts(const struct tally *s)
{
	job_print("sections %llu (signal handlers %llu, exiting threads %llu), handed over %llu, updates %llu, signals %llu",
		  U(s->reads), U(s->signal_reads), U(torture.exits), U(s->handed_over), U(torture.version), U(torture.signals));
	torture.kind->report();
}

static void print_counts(const struct tally *s)
{
	if (torture.kind)
		torture.kind->report();
	job_print("reads %llu (in signal handlers %llu, in %llu exiting threads), updates %llu, %s %llu, reused %llu",
		  U(s->reads), U(s->signal_reads), U(torture.exits), U(torture.version),
		  torture.op->object ? "waits" : "grace periods", U(torture.completed), U(torture.reused));
	if (torture.op->object)
		job_print("guards handed over %llu, fake writers' waits %llu, longest wait %.1f ms, signals %llu, free list empty %llu",
			  U(s->handed_over), U(torture.fake_waits), (double)torture.longest_ns / 1e6, U(torture.signals),
			  U(torture.empty));
	if (torture.op->object && torture.op->retire)
		job_print("retired: callbacks %llu, waited for %llu, barriers %llu (floods %llu)", U(torture.callbacks),
			  U(torture.retired_waits), U(torture.barriers), U(torture.floods));
	if (!torture.op->object)
		job_print("callbacks %llu, fake writers' waits %llu, barriers %llu (floods %llu), signals %llu, free list empty %llu",
			  U(torture.callbacks), U(torture.fake_waits), U(torture.barriers), U(torture.floods),
			  U(torture.signals), U(torture.empty));
	print_histogram("Reader Pipe:", s->pipe);
	print_histogram("Reader Batch:", s->batch);
}

static void print_errors(const struct tally *s)
{
	if (without_elements()) {
		job_print("!!! errors %llu, hung %llu", U(torture.kind->errors()), U(torture.hung));
		return;
	}
	job_print("!!! errors: age 2 or more %llu, canary %llu, magic %llu, reused in a section %llu, cookie %llu, "
		  "barrier %llu, key held %llu, leaked %llu, hung %llu", U(too_old(s)), U(s->canary_errors), U(s->magic_errors),
		  U(s->reuse_errors), U(s->cookie_errors), U(torture.barrier_errors), U(torture.key_errors), U(torture.leaks),
		  U(torture.hung));
}

/* The work that a run did not do, without which it proves nothing.  NULL: it did all. */
static const char *idle_reason(const struct tally *s)
{
	if (!s->reads || (!s->pipe[0] && !without_elements()))
		return "the readers did not read";
	if (torture.kind && torture.kind->idle())
		return torture.kind->idle();
	if (without_elements())
		return !torture.version ? "nothing was updated" : !s->signal_reads || !torture.exits || !s->handed_over
			? "signals, exits or hand-overs did not happen" : NULL;
	if (!torture.version || !torture.completed)
		return "nothing was updated";
	if (!torture.reused)
		return "no element was used twice";
	if (torture.empty > torture.version)
		return "the free list was empty most of the time";
	if (!s->signal_reads || !torture.exits)
		return "signals or exits did not happen";
	if (torture.op->object ? !s->handed_over || !torture.fake_waits : !torture.barriers)
		return torture.op->object ? "no guard was handed over or no key waited for" : "barriers did not happen";
	if (torture.op->object && torture.op->retire && (!torture.callbacks || !torture.retired_waits || !torture.barriers))
		return "nothing was retired, or barriers did not happen";
	return NULL;
}

static void send_counts(const struct tally *s, uint64_t errors)
{
	const struct { int what; uint64_t value; } row[] = {
		{ SCENARIO_READS, s->reads }, { SCENARIO_UPDATES, torture.version }, { SCENARIO_REUSED, torture.reused },
		{ SCENARIO_CLOSE_CALLS, s->batch[2] + s->batch[3] }, { SCENARIO_ERRORS, errors },
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		if (!without_elements() || (row[i].what != SCENARIO_REUSED && row[i].what != SCENARIO_CLOSE_CALLS))
			job_send(row[i].what, torture.nr_readers, torture.job->round, (double)row[i].value);
}

int torture_report(double seconds)
{
	struct tally sum = sum_up();
	uint64_t errors = errors_of(&sum);
	const char *idle = errors ? NULL : idle_reason(&sum);
	double hours = (double)sum.cpu_ns / 3.6e12;

	(without_elements() ? print_own_counts : print_counts)(&sum);
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
