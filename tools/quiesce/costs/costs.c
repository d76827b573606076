/* SPDX-License-Identifier: MIT */
/* costs.c - the basic operations of this machine and their cost, beside those of 2003.
 *
 * The article of 2003 that measured hash tables under RCU explained its results by such a table: a lookup is a
 * handful of instructions, so its cost depends on which of these operations are among them.
 */
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "costs.h"
#include "emit.h"
#include "registry.h"
#include "team.h"

#define BATCH_NS 100000 /* a batch is long against the clock, short against a time slice */
#define BATCHES 9       /* batches in each round */
#define RUNS 5

/* They register themselves in the order of their rows. */
static const struct op *const types[] TYPE_ENTRY = {
	&cost_cycle.op, &cost_instruction.op,
	&cost_l1.op, &cost_l2.op, &cost_l2_huge.op, &cost_l3.op, &cost_l3_huge.op, &cost_memory.op, &cost_memory_huge.op,
	&cost_atomic_inc.op, &cost_cmpxchg_inc.op, &cost_spin_lock.op, &cost_mutex.op,
	&cost_transfer.op, &cost_atomic_inc_two.op,
	&cost_fence_light.op, &cost_fence_acq_rel.op, &cost_fence_full.op,
#if defined(__x86_64__)
	&cost_fence_mfence.op,
#endif
	&cost_fence_xchg.op, &cost_fence_seq_cst.op,
	&cost_membarrier_idle.op, &cost_membarrier_busy.op,
	&cost_wake_empty.op, &cost_wake_call.op, &cost_wake_run.op,
	&cost_syscall.op, &cost_yield.op, &cost_clock.op,
#if defined(__x86_64__)
	&cost_tsc.op,
#endif
};

static const struct scenario_info scenarios[] = { [SCENARIO_COST] = { "cost", "ns", "one operation" } };

/* ---- the child ---- */

bool cost_two_cpus(void)
{
	if (cpus_online() > 1)
		return true;
	job_send_note("left out: it needs two CPUs");
	return false;
}

static cpu_set_t allowed;

int cost_cpu_number(int index)
{
	int at = 0;

	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &allowed) && at++ == index)
			return cpu;
	return index;
}

uint64_t cost_calibrate(void (*batch)(uint64_t turns), uint64_t ns)
{
	uint64_t turns = 1, took;

	for (;; turns *= 2) {
		took = now_ns();
		batch(turns);
		took = now_ns() - took;
		if (took >= ns / 2 || turns >> 40)
			break;
	}
	return turns * ns / took + 1;
}

int cost_simple(const struct cost *cost, const struct job *job)
{
	uint64_t turns = cost_calibrate(cost->batch, BATCH_NS);

	for (int i = 0; i < BATCHES; i++) {
		uint64_t took = now_ns();

		cost->batch(turns);
		took = now_ns() - took;
		job_send(SCENARIO_COST, 1, job->round, (double)took / ((double)turns * cost->per_turn));
	}
	return 0;
}

static void *sleep_on(void *arg)
{
	for (;;)
		pause();
	return arg;
}

/* A C library takes its locks without atomic instructions in a process of one
 * thread, and membarrier returns at once there. */
static void have_a_sibling(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, sleep_on, NULL))
		job_send_note("no second thread can be had: locks and membarriers are cheaper without one");
	else
		pthread_detach(thread);
}

static int child(const struct job *job)
{
	const struct cost *cost = (const struct cost *)job->op; /* struct op is the first member of struct cost */

	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		CPU_ZERO(&allowed);
	cpus_online(); /* counts the CPUs before the first thread is bound */
	have_a_sibling();
	bind_cpu(0);
	return cost->measure(cost, job);
}

/* ---- the parent ---- */

static void take_pairs(const char *arg, struct options *o)
{
	if (strcmp(arg, "all") != 0)
		usage_error("--pairs=%s: valid: all", arg);
	OWN(struct cost_options, o)->all_pairs = true;
}

static const struct option_row own[] = {
	{ "pairs", "all", "transfer between all pairs of CPUs, not only a few", .take = take_pairs }, { 0 }
};

static bool fits(const struct op *op)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (types[i] == op)
			return true;
	return false;
}

/* The units, and after them the other types that --type names. */
static int choose_types(const struct options *options, const struct op *ret[MAX_TYPES])
{
	static const struct cost *const units[] = { &cost_cycle, &cost_instruction, &cost_l1 };
	const struct op *asked[MAX_TYPES];
	int nr = options_types(options, &costs_command, asked), n = 0;

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		ret[n++] = &units[i]->op;
	for (int i = 0; i < nr; i++) {
		bool unit = false;

		for (size_t k = 0; k < sizeof(units) / sizeof(units[0]); k++)
			unit = unit || asked[i] == &units[k]->op;
		if (!unit && n < MAX_TYPES)
			ret[n++] = asked[i];
	}
	return n;
}

const struct subcommand costs_command = {
	.name = "costs",
	.what = "Cost of the basic operations of this machine, beside those of 2003.",
	.doc = "Result: nanoseconds of one operation, the median over batches and rounds, with the range over batches, beside figures "
	       "of 2003. The first three rows are measured whatever --type names. See quiesce-costs(1).",
	OPTIONS(options_type, options_runs, own),
	.fits = fits,
	SCENARIOS(scenarios),
	.columns = costs_columns,
	.row_threads = costs_threads,
	.print = costs_print,
	.runs = RUNS,
	.choose = choose_types,
	.child = child,
};
