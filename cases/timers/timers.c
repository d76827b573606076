/* SPDX-License-Identifier: MIT */
/* timers.c - workers that ask for their own timers without pause, as 16 processes did in timer_gettime(); see ids.c.
 *
 * A worker replaces a timer after each so many lookups: it deletes one and creates another, which is two operations.  With
 * --check workers look up one another's timers, too, to meet them as they die, and two workers share an owner, so that one
 * may read a setting while the other changes it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <quiesce/atomic.h>
#include <quiesce/rcu.h>

#include "case.h"
#include "ids.h"

#define WORKERS 16 /* the document's */
#define CHECK_WORKERS 8
#define HOT 4       /* timers of each, of which --check speaks, so that workers meet there */
#define LOOKUPS 256 /* number between two checks of the time, where there are no updates */

enum { ALL, ONE, TWO, EACH_CPU };

/* Each scene has the workers, and how often they update. */
static const struct scene {
	int workers;      /* one of the above */
	uint32_t lookups; /* for each timer that is replaced: 198 and 2 make 1 %; 0: none is */
} scenes[] = { { ALL, 0 }, { ALL, 198 }, { ALL, 18 }, { ONE, 0 }, { TWO, 0 }, { EACH_CPU, 0 } };

/* The entries have the order of scenes. */
static const struct case_choice scenarios[] = {
	{ "0 % updates", "16 workers, or --threads", false },
	{ "1 % updates", "16 workers; of 100 operations one creates or deletes a timer", false },
	{ "10 % updates", "16 workers; of 100 operations ten create or delete a timer", false },
	{ "1 worker, 0 % updates", "bound to a CPU", false },
	{ "2 workers, 0 % updates", "bound to a CPU each", false },
	{ "a worker on each CPU, 0 % updates", "bound, where there are more than two", false },
	{ NULL, NULL, false },
};

static struct {
	struct worker *worker;
	struct usage *begin;
	int nr;
	uint32_t lookups; /* as in struct scene */
	bool check;
	bool stop;
	struct spin_barrier barrier;
} world;

/* ---- what a stretch of time cost ---- */

struct usage {
	uint64_t ns; /* the time */
	double user_s, sys_s, switches;
};

static double seconds_of(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

static struct usage usage_of(int who)
{
	struct rusage r;

	getrusage(who, &r);
	return (struct usage){ now_ns(), seconds_of(r.ru_utime), seconds_of(r.ru_stime), (double)(r.ru_nvcsw + r.ru_nivcsw) };
}

/* ---- workers ---- */

static void must(struct worker *w, uint32_t i)
{
	int err = ids_create(w, i);

	if (!err)
		return;
	case_note("cannot create a timer: %s%s", strerror(-err), err == -EAGAIN ? ", as many signals may be pending: ulimit -i" : "");
	exit(err == -EAGAIN ? CASE_UNAVAILABLE : CASE_FAILED);
}

static void replace(struct worker *w, uint32_t i)
{
	ids_delete(w, i);
	must(w, i);
	w->updates += 2;
}

static void turn(struct worker *w)
{
	ids_get_own(w, world.lookups ? world.lookups : LOOKUPS);
	if (world.lookups)
		replace(w, w->at);
}

/* Choose a worker whose timer is looked up: mostly the other one with the same owner, else any. */
static const struct worker *somebody(const struct worker *w, uint64_t random)
{
	uint64_t k = random & 1 ? random >> 1 : w->index ^ 1;

	return &world.worker[k % (uint64_t)world.nr];
}

/* Look up a timer and check the result: a worker must find its own timers; of others only those of its owner, and only as they were set. */
static void lookup(struct worker *w, const struct worker *whose, uint32_t i)
{
	uintptr_t id = quiesce_load_relaxed(&whose->id[i]); /* Relaxed: a number, and perhaps another's by now. */
	struct setting setting;

	if (id == NO_ID)
		return;
	if (ids_get(w, id, &setting) ? !ids_plausible(w, id, &setting) : whose == w)
		w->failed++;
	w->lookups++;
}

static void check_turn(struct worker *w)
{
	uint64_t random = random_next(&w->random);
	uint32_t i = (uint32_t)(random >> 32) % HOT;

	switch (random >> 16 & 3) {
	case 0: replace(w, i); break;
	case 1: ids_change(w, i, random >> 40); break;
	default: lookup(w, somebody(w, random >> 40), i);
	}
}

static bool over(void)
{
	/* Relaxed: soon is enough. */
	return quiesce_load_relaxed(&world.stop) || (world.check && canary_dead());
}

static void worker_main(struct member *member)
{
	struct worker *w = &world.worker[member->index];

	for (uint32_t i = 0; i < TIMERS; i++)
		must(w, i);
	spin_barrier_wait(&world.barrier);
	world.begin[member->index] = usage_of(RUSAGE_THREAD);
	while (!over())
		(world.check ? check_turn : turn)(w);
}

/* ---- all of them ---- */

static void *zeroed(size_t nr, size_t size)
{
	void *memory = aligned_alloc(128, (nr * size + 127) / 128 * 128);

	if (!memory) {
		case_note("no memory for %zu workers", nr);
		exit(CASE_FAILED);
	}
	return memset(memory, 0, nr * size);
}

static void make_workers(const struct case_run *run, int nr)
{
	world.nr = nr;
	world.worker = zeroed((size_t)nr, sizeof(*world.worker));
	world.begin = zeroed((size_t)nr, sizeof(*world.begin));
	for (int k = 0; k < nr; k++) {
		struct worker *w = &world.worker[k];

		w->index = (uint32_t)k;
		w->owner = world.check ? w->index / 2 : w->index;
		w->random = (uint64_t)(run->round * 10000 + w->index + 1) * UINT64_C(0x9e3779b97f4a7c15);
		w->nodes = (struct idr_nodes)IDR_NODES_INIT;
		for (int i = 0; i < TIMERS; i++)
			w->id[i] = NO_ID;
	}
}

static void run_workers(double seconds, bool pinned)
{
	struct team team = { .nr = world.nr, .pinned = pinned, .body = worker_main };

	spin_barrier_init(&world.barrier, (uint32_t)world.nr + 1);
	world.stop = false; /* no other thread runs yet */
	if (!team_start(&team))
		exit(CASE_FAILED);
	spin_barrier_wait(&world.barrier);
	case_wait(seconds);
	quiesce_store_relaxed(&world.stop, true); /* Relaxed: soon is enough. */
	team_join(&team);
}

static void drop_workers(void)
{
	for (int k = 0; k < world.nr; k++) {
		for (uint32_t i = 0; i < TIMERS; i++)
			ids_delete(&world.worker[k], i);
		idr_preload_end(&world.worker[k].nodes);
	}
	free(world.worker);
	free(world.begin);
}

/* Return the sum of all workers' counts. */
static struct worker sum(void)
{
	struct worker s = { .lookups = 0 };

	for (int k = 0; k < world.nr; k++) {
		s.lookups += world.worker[k].lookups;
		s.updates += world.worker[k].updates;
		s.failed += world.worker[k].failed;
	}
	return s;
}

/* ---- measurements ---- */

/* Return the cost since the first worker began: the library's own thread counts, earlier work of the workers does not. */
static struct usage cost_since(const struct usage *before)
{
	struct usage now = usage_of(RUSAGE_SELF);
	uint64_t first = UINT64_MAX;

	now.user_s -= before->user_s;
	now.sys_s -= before->sys_s;
	now.switches -= before->switches;
	for (int k = 0; k < world.nr; k++) {
		now.user_s -= world.begin[k].user_s;
		now.sys_s -= world.begin[k].sys_s;
		now.switches -= world.begin[k].switches;
		first = world.begin[k].ns < first ? world.begin[k].ns : first;
	}
	now.ns -= first;
	return now;
}

static int measure(const struct case_run *run, const struct scene *scene, const char *name)
{
	static const int fixed[] = { WORKERS, 1, 2 };
	int cpus = cpus_online(), nr = scene->workers == EACH_CPU ? cpus : fixed[scene->workers];
	struct usage before, cost;
	struct worker all;
	double ops, cpu_s, sys;

	if (scene->workers == ALL && run->threads)
		nr = run->threads;
	make_workers(run, nr);
	world.lookups = scene->lookups;
	before = usage_of(RUSAGE_SELF);
	run_workers(run->seconds, scene->workers != ALL);
	cost = cost_since(&before);
	all = sum();
	ops = (double)(all.lookups + all.updates);
	cpu_s = cost.user_s + cost.sys_s; /* exact, but how it is divided is not */
	sys = cost.sys_s < 0 ? 0 : cost.sys_s < cpu_s ? 100 * cost.sys_s / cpu_s : 100;
	CASE_RESULT(run, name, { "Mops", ops / (double)cost.ns * 1e3 }, { "ns_op", (double)cost.ns * (nr < cpus ? nr : cpus) / ops },
		    { "cpu_ns", cpu_s / ops * 1e9 }, { "switches", cost.switches / ops * 1e3 }, { "sys", sys });
	drop_workers();
	if (all.failed)
		case_note("%s: %llu lookups of own timers failed", name, (unsigned long long)all.failed);
	return all.failed ? CASE_FAILED : 0;
}

static bool has_cpus(const struct scene *scene)
{
	int cpus = cpus_online();

	return scene->workers == EACH_CPU ? cpus > 2 : scene->workers != TWO || cpus >= 2;
}

static int measure_all(const struct case_run *run)
{
	int status = 0;

	for (size_t i = 0; scenarios[i].name; i++) {
		if (!case_wants(run, scenarios[i].name))
			continue;
		if (has_cpus(&scenes[i]))
			status |= measure(run, &scenes[i], scenarios[i].name);
		else if (run->scenario)
			case_note("%s: this process may use %d", run->scenario, cpus_online());
	}
	ids_exit();
	return status;
}

static int check(const struct case_run *run)
{
	struct worker all;
	int status;

	make_workers(run, run->threads ? run->threads : CHECK_WORKERS);
	run_workers(run->seconds, false);
	all = sum();
	drop_workers();
	ids_exit();
	status = case_verdict(run, all.lookups, ids_freed());
	if (all.failed && !canary_dead()) {
		case_note("%llu lookups found no timer where there was one, or a setting that no worker had made",
			  (unsigned long long)all.failed);
		status = CASE_FAILED;
	}
	return status;
}

static int run_timers(struct case_run *run)
{
	world.check = run->check;
	ids_init(run->variant, run->check);
	return run->check ? check(run) : measure_all(run);
}

int main(int argc, char **argv)
{
	static const struct case_program program = {
		.name = "timers",
		.what = "Workers look up their own timers in a table of all; a variant is what keeps a timer until its lock is held.",
		.variants = ids_variants,
		.scenarios = scenarios,
		.seconds = 0.2,
		.run = run_timers,
	};

	return case_main(&program, argc, argv);
}
