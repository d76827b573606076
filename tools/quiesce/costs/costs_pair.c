/* SPDX-License-Identifier: MIT */
/* costs_pair.c - the cost of communication between two CPUs. */
#include <quiesce/atomic.h>

#include "costs.h"
#include "team.h"

#define TRIPS 1000   /* round trips in a batch */
#define BATCHES 7    /* batches in each round */
#define SOME_CPUS 4  /* number of CPUs whose pairs are measured by default */
#define INCREMENTS 20000

struct pair {
	int cpu[2]; /* indices of the CPUs of the two threads */
	const struct job *job;
	void (*batch)(struct pair *pair, int index);
	double per_batch;
	struct spin_barrier barrier;
	uint64_t word __attribute__((aligned(128)));
	double ns[BATCHES] __attribute__((aligned(128))); /* written by thread 0 */
};

/* Thread 0 writes odd numbers and waits for the even ones of thread 1. */
static void play(struct pair *pair, int index)
{
	uint64_t begin = quiesce_load_relaxed(&pair->word) & ~(uint64_t)1;

	for (uint64_t i = 0; i < TRIPS; i++) {
		uint64_t mine = begin + 2 * i + 1 + (uint64_t)index;

		while (index && quiesce_load_relaxed(&pair->word) != mine - 1)
			;
		quiesce_store_relaxed(&pair->word, mine);
		while (!index && quiesce_load_relaxed(&pair->word) != mine + 1)
			;
	}
}

static void increment(struct pair *pair, int index)
{
	(void)index;
	for (int i = 0; i < INCREMENTS; i++)
		quiesce_fetch_add_relaxed(&pair->word, 1);
}

static void body(struct member *m)
{
	struct pair *pair = m->team->arg;

	bind_cpu(pair->cpu[m->index]);
	for (int i = 0; i < BATCHES; i++) {
		uint64_t took;

		spin_barrier_wait(&pair->barrier);
		took = now_ns();
		pair->batch(pair, m->index);
		took = now_ns() - took;
		if (m->index == 0)
			pair->ns[i] = (double)took / pair->per_batch;
		spin_barrier_wait(&pair->barrier);
	}
}

static void measure_pair(struct pair *pair)
{
	struct team team = { .nr = 2, .body = body, .arg = pair };
	int threads = COST_PAIR(cost_cpu_number(pair->cpu[0]), cost_cpu_number(pair->cpu[1]));

	spin_barrier_init(&pair->barrier, 2);
	quiesce_store_relaxed(&pair->word, 0);
	team_start(&team);
	team_join(&team);
	for (int i = 0; i < BATCHES; i++)
		job_send(SCENARIO_COST, threads, pair->job->round, pair->ns[i]);
	job_flush();
}

/* True for a few CPUs, near and far in number: systems number siblings of a core, cores and sockets in such steps. */
static bool is_some(int cpu)
{
	int nr = cpus_online();

	return nr <= SOME_CPUS || cpu <= 1 || cpu == nr / 2 || cpu == nr - 1;
}

static int measure_transfer(const struct cost *cost, const struct job *job)
{
	struct pair pair = { .job = job, .batch = play, .per_batch = 2 * TRIPS };
	int nr = cpus_online();

	(void)cost;
	if (!cost_two_cpus())
		return EXIT_UNAVAILABLE;
	for (int a = 0; a < nr; a++)
		for (int b = a + 1; b < nr; b++) {
			pair.cpu[0] = a;
			pair.cpu[1] = b;
			if (OWN(const struct cost_options, job)->all_pairs || (is_some(a) && is_some(b)))
				measure_pair(&pair);
		}
	return 0;
}

const struct cost cost_transfer = {
	.op = { .name = "transfer", .what = "a written line goes to another CPU: half a round trip" },
	.measure = measure_transfer,
	.article = 170.4,
	.article_max = 360.9,
};

static int measure_atomic_inc_two(const struct cost *cost, const struct job *job)
{
	struct pair pair = { .cpu = { 0, 1 }, .job = job, .batch = increment, .per_batch = INCREMENTS };

	(void)cost;
	if (!cost_two_cpus())
		return EXIT_UNAVAILABLE;
	measure_pair(&pair);
	return 0;
}

const struct cost cost_atomic_inc_two = {
	.op = { .name = "atomic_inc_two", .what = "atomic increment of a word that another CPU increments too" },
	.measure = measure_atomic_inc_two,
};
