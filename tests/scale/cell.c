/* SPDX-License-Identifier: MIT */
/* cell.c - one measurement: threads warm up, begin together, and end together. */
#include "cell.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct workload *const tables[] = { scale_reads, scale_retires, scale_waits, scale_updates, scale_peers, scale_threads };
#define NR_TABLES (sizeof tables / sizeof tables[0])
#define REST_NS 100000u /* between bursts */

static struct cell *cell;
static struct actor actors[SCALE_THREADS];
static struct scale_barrier begin_barrier, settle_barrier, end_barrier;
static bool stopped;
static uint64_t begun_ps, nr_made; /* time, and operations since then */

const struct workload *cell_workload(const char *name)
{
	for (size_t t = 0; t < NR_TABLES; t++)
		for (const struct workload *w = tables[t]; w->name; w++)
			if (!strncmp(name, w->group, strlen(w->group)) && name[strlen(w->group)] == '/' &&
			    !strcmp(name + strlen(w->group) + 1, w->name))
				return w;
	scale_fail("no such workload: %s", name);
}

int cell_list(void)
{
	for (size_t t = 0; t < NR_TABLES; t++)
		for (const struct workload *w = tables[t]; w->name; w++)
			printf("%s/%s%s\n", w->group, w->name, w->waits ? " waits" : "");
	return 0;
}

static void begin_measure(void)
{
	memset(scale_counts, 0, sizeof scale_counts);
	begun_ps = scale_now_ps();
	nr_made = 0;
}

static void end_measure(void)
{
	memcpy(cell->counts, scale_counts, sizeof scale_counts);
	stopped = true;
}

/* Fewer operations where many threads make them. */
static unsigned int nr_ops(void)
{
	unsigned int nr = cell->workload->ops, share = 40000u / (unsigned int)cell->callers;

	if (cell->workload->floods)
		return nr;
	return nr < share ? nr : share > 10 ? share : 10;
}

/* All objects that the callers have retired are reclaimed, by the library's threads or in the first caller. */
static void settle(const struct actor *a)
{
	if (!cell->workload->settle)
		return;
	scale_barrier(&settle_barrier, cell->callers, NULL);
	if (a->number)
		return;
	scale_set_group(SCALE_OTHERS);
	scale_op();
	cell->workload->settle();
	cell->freed_ps = scale_now_ps() - begun_ps;
	scale_set_group(SCALE_SETUP);
}

/* The time of the sleep is not that of the operations. */
static void rest(uint64_t *start)
{
	cell->total_ps += scale_now_ps() - *start;
	scale_sleep(REST_NS);
	*start = scale_now_ps();
}

static void count_waiting(void)
{
	uint64_t freed = 0;

	for (int i = 0; i < SCALE_NR_GROUPS; i++)
		freed += scale_counts[i][SCALE_FREED];
	if (++nr_made - freed > cell->most_waiting && nr_made > freed)
		cell->most_waiting = nr_made - freed;
}

static void caller(struct actor *a)
{
	const struct workload *w = cell->workload;
	unsigned int nr = nr_ops();
	uint64_t start;

	for (unsigned int i = 0; i < w->warm; i++)
		w->op(a);
	settle(a);
	scale_barrier(&begin_barrier, cell->threads, begin_measure);
	scale_set_group(SCALE_MEASURED);
	start = scale_now_ps();
	for (unsigned int i = 0; i < nr; i++) {
		scale_op();
		w->op(a);
		if (w->floods)
			count_waiting();
		if (w->burst && i % w->burst == w->burst - 1)
			rest(&start);
	}
	cell->total_ps += scale_now_ps() - start;
	cell->ops += nr;
	scale_set_group(SCALE_SETUP);
	settle(a);
	scale_barrier(&end_barrier, cell->callers, end_measure);
}

/* A reader stops when the callers have; an idle one has been in a section, and sleeps. */
static void reader(struct actor *a)
{
	const struct workload *w = cell->workload;

	w->enter(a);
	w->leave(a);
	scale_barrier(&begin_barrier, cell->threads, begin_measure);
	scale_set_group(SCALE_OTHERS);
	while (!stopped) {
		if (cell->reader == READER_IDLE) {
			scale_sleep(1000000000);
			continue;
		}
		w->enter(a);
		if (cell->reader == READER_BUSY)
			scale_work(500);
		else
			scale_sleep(20000);
		w->leave(a);
		scale_work(cell->reader == READER_BUSY ? 100 : 2000);
	}
	scale_set_group(SCALE_SETUP);
}

static void thread(void *arg)
{
	struct actor *a = arg;
	const struct workload *w = cell->workload;

	if (w->begin)
		w->begin(a);
	if (a->number < cell->callers)
		caller(a);
	else
		reader(a);
	if (w->end)
		w->end(a);
}

static void first(void *arg)
{
	(void)arg;
	if (cell->workload->setup)
		cell->workload->setup();
	scale_sleep(50000000); /* until what the setup has retired is reclaimed */
	for (int i = 0; i < cell->threads; i++) {
		actors[i].number = i;
		actors[i].random = (uint64_t)i * 0x9e3779b97f4a7c15u + 1;
		scale_spawn(thread, &actors[i], i % cell->cpus, SCALE_SETUP);
		if (cell->threads > SCALE_CPUS)
			scale_sleep(5000); /* so that thousands do not contend to be registered */
	}
	scale_join();
}

void cell_run(struct cell *c)
{
	const struct workload *w = c->workload;

	cell = c;
	if (c->cpus < 1 || c->cpus > SCALE_CPUS || c->callers < 1 || c->threads < c->callers || c->threads > SCALE_THREADS - 600)
		scale_fail("%d CPUs, %d callers and %d threads are no machine", c->cpus, c->callers, c->threads);
	if (w->most_callers && c->callers > w->most_callers)
		scale_fail("%s/%s has room for %d callers, not for %d", w->group, w->name, w->most_callers, c->callers);
	scale_machine(c->cpus, c->cpus_of_socket, c->seed, first, NULL);
}

bool cell_run_apart(struct cell *c)
{
	struct cell *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status = -1;
	pid_t child;

	if (shared == MAP_FAILED)
		return false;
	*shared = *c;
	child = fork();
	if (child == 0) {
		cell_run(shared);
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
		return false;
	*c = *shared;
	munmap(shared, sizeof *shared);
	return true;
}

double cell_per_op(const struct cell *c, enum scale_group group, enum scale_count count)
{
	return c->ops ? (double)c->counts[group][count] / (double)c->ops : 0;
}

double cell_whole(const struct cell *c, enum scale_count count)
{
	return cell_per_op(c, SCALE_MEASURED, count) + cell_per_op(c, SCALE_LIBRARY, count) + cell_per_op(c, SCALE_OTHERS, count);
}

static json_t *counts_of(const struct cell *c, enum scale_group group)
{
	json_t *o = json_object();

	for (int i = 0; i < SCALE_NR_COUNTS; i++)
		json_object_set_new(o, scale_count_names[i], json_real(cell_per_op(c, group, (enum scale_count)i)));
	return o;
}

void cell_print(const struct cell *c)
{
	static const char *const readers[NR_READERS] = { "idle", "busy", "sleeping" };
	json_t *o = json_pack("{s:s, s:s, s:i, s:i, s:i, s:s, s:I, s:f}", "group", c->workload->group, "name", c->workload->name,
			      "cpus", c->cpus, "callers", c->callers, "threads", c->threads, "readers", readers[c->reader],
			      "ops", (json_int_t)c->ops, "ns", (double)c->total_ps / (double)c->ops / 1000);

	if (c->workload->floods)
		json_object_update_new(o, json_pack("{s:f, s:I}", "freed_per_us", (double)c->ops / (double)c->freed_ps * 1000000,
						    "most_waiting", (json_int_t)c->most_waiting));
	json_object_set_new(o, "stay_ns", json_integer((json_int_t)(scale_stay_ps / 1000)));
	json_object_set_new(o, "own", counts_of(c, SCALE_MEASURED));
	json_object_set_new(o, "library", counts_of(c, SCALE_LIBRARY));
	json_object_set_new(o, "others", counts_of(c, SCALE_OTHERS));
	json_dumpf(o, stdout, JSON_REAL_PRECISION(5) | JSON_PRESERVE_ORDER);
	putchar('\n');
	json_decref(o);
}
