/* SPDX-License-Identifier: MIT */
/* retirescale_cell.c - one window of deferred reclamation: allocate, publish or not, retire, free, drain. */
#include <stdlib.h>

#include "meter.h"
#include "retirescale.h"
#include "team.h"

#define CHUNK 64         /* objects between two checks for the end of the window */
#define POLL_NS 500000   /* pause between two samples of the garbage */
#define HELD_NS 50000    /* pause between two checks of a thread that holds an object */
#define GAP_NS 100       /* pause between the reads of a reader that is not busy */
#define CAP_BYTES (128u << 20)

struct window {
	const struct op *op;
	int scenario;
	void **where; /* NULL: nothing is published */
	struct histogram *ticks; /* a histogram for the calls of each producer; NULL: calls are not timed */
	int producers, readers;
	uint32_t stop;
	uint32_t finished; /* number of producers that have finished */
	struct spin_barrier begin, end;
	uint64_t begin_ns[MAX_RETIRING];
	uint64_t end_ns[MAX_RETIRING];
};

static bool is_over(const struct window *w)
{
	return quiesce_load_relaxed(&w->stop);
}

/* ---- producers ---- */

static uint64_t produce_chunk(const struct window *w, int index)
{
	if (w->ticks)
		return w->op->reclaim->timed(w->where, CHUNK, &w->ticks[index]);
	return w->op->reclaim->produce(w->where, CHUNK);
}

static void produce(struct window *w, int index)
{
	struct retire_tally *tally = retire_tally();

	spin_barrier_wait(&w->begin);
	w->begin_ns[index] = now_ns();
	do {
		uint64_t n = produce_chunk(w, index);

		quiesce_store_relaxed(&tally->retired, tally->retired + n);
	} while (!is_over(w));
	w->end_ns[index] = now_ns();
	(void)quiesce_fetch_add_relaxed(&w->finished, (uint32_t)1);
	spin_barrier_wait(&w->end);
	if (w->op->reclaim->drain)
		w->op->reclaim->drain();
}

/* ---- readers ---- */

static void read_busily(struct window *w)
{
	while (!is_over(w))
		for (int i = 0; i < CHUNK; i++)
			w->op->reclaim->read(w->where);
}

static void read_with_gaps(struct window *w, uint32_t turns)
{
	while (!is_over(w)) {
		w->op->reclaim->read(w->where);
		for (uint32_t i = 0; i < turns; i++)
			quiesce_cpu_relax();
	}
}

static void read_for_the_window(struct window *w)
{
	uint32_t turns = w->scenario == SCENARIO_RETIRE_GAP ? turns_for(GAP_NS) : 0;

	if (w->scenario == SCENARIO_RETIRE_STALLED)
		w->op->reclaim->hold(w->where);
	spin_barrier_wait(&w->begin);
	if (w->scenario == SCENARIO_RETIRE_BUSY)
		read_busily(w);
	else if (w->scenario == SCENARIO_RETIRE_GAP)
		read_with_gaps(w, turns);
	else
		while (!is_over(w))
			sleep_ns(HELD_NS);
	if (w->scenario == SCENARIO_RETIRE_STALLED)
		w->op->reclaim->release();
	spin_barrier_wait(&w->end);
}

static void body(struct member *m)
{
	struct window *w = m->team->arg;

	op_thread_enter(w->op);
	if (m->index < w->producers)
		produce(w, m->index);
	else
		read_for_the_window(w);
	op_thread_exit(w->op);
	retire_tally_leave();
}

/* ---- the watcher ---- */

uint64_t retirescale_freed(const struct op *op)
{
	return op->reclaim->freed ? op->reclaim->freed() : retire_all_freed();
}

struct watch {
	uint64_t retired, freed; /* counts before the window */
	uint64_t peak[2];        /* most garbage in each half of the window */
	bool seen[2];
	uint64_t sum, samples;
	bool capped;
};

/* Retired objects are counted first, so the result never exceeds the garbage that there was. */
static uint64_t garbage(const struct window *w, const struct watch *watch)
{
	uint64_t retired = retire_all_retired() - watch->retired, freed;

	quiesce_fence_full(RAW);
	freed = retirescale_freed(w->op) - watch->freed;
	return retired > freed ? retired - freed : 0;
}

static void watch_window(struct window *w, struct watch *watch, uint64_t length_ns)
{
	uint64_t begin = now_ns(), now = begin;

	do {
		int half = now - begin > length_ns / 2;
		uint64_t there = garbage(w, watch);

		watch->seen[half] = true;
		watch->sum += there;
		watch->samples++;
		if (there > watch->peak[half])
			watch->peak[half] = there;
		watch->capped = there * retire_params.bytes > CAP_BYTES;
		sleep_ns(POLL_NS);
		now = now_ns();
	} while (now - begin < length_ns && !watch->capped);
	quiesce_store_relaxed(&w->stop, 1u);
}

bool retirescale_all_freed(uint64_t retired, uint64_t freed, const char *where)
{
	if (freed == retired)
		return true;
	job_send_note("%s: %s: %llu objects retired, %llu freed when all should have been",
		      freed < retired ? "LOST" : "FREED TWICE", where, (unsigned long long)retired, (unsigned long long)freed);
	return false;
}

static uint64_t first_of(const uint64_t *ns, int nr)
{
	uint64_t first = ns[0];

	for (int i = 1; i < nr; i++)
		first = ns[i] < first ? ns[i] : first;
	return first;
}

static uint64_t last_of(const uint64_t *ns, int nr)
{
	uint64_t last = ns[0];

	for (int i = 1; i < nr; i++)
		last = ns[i] > last ? ns[i] : last;
	return last;
}

static void report_rate(const struct job *job, const struct window *w, const struct watch *watch, uint64_t retired, uint64_t ended)
{
	uint64_t ns = ended - first_of(w->begin_ns, w->producers);

	job_send(w->scenario, w->producers, job->round, (double)retired * 1e9 / (double)ns);
	for (int half = 0; half < 2; half++)
		if (watch->seen[half])
			job_send_metric(w->scenario, half ? RETIRE_GARBAGE_SECOND : RETIRE_GARBAGE_FIRST, w->producers,
				 job->round, (double)watch->peak[half]);
	job_send_metric(w->scenario, RETIRE_GARBAGE_MEAN, w->producers, job->round, (double)watch->sum / (double)watch->samples);
	job_send_metric(w->scenario, RETIRE_DRAIN, w->producers, job->round,
		 (double)(ended - last_of(w->end_ns, w->producers)) / 1e6);
	job_send_metric(w->scenario, RETIRE_CAPPED, w->producers, job->round, watch->capped);
}

static void report_calls(const struct job *job, const struct window *w, const struct watch *watch, const struct stopwatch *began)
{
	retirescale_report_calls(job, w->scenario, w->producers, w->ticks, stopwatch_tick_ns(began));
	job_send_metric(w->scenario, RETIRE_CALL_CAPPED, w->producers, job->round, watch->capped);
}

/* The main thread samples the garbage, and waits until all objects are freed. */
static bool measure(const struct job *job, struct window *w)
{
	struct watch watch = { .retired = retire_all_retired(), .freed = retirescale_freed(w->op) };
	int nr = w->producers + w->readers;
	struct team team = { .nr = nr, .pinned = nr <= cpus_online(), .body = body, .arg = w };
	uint64_t ended, retired;
	struct stopwatch began;
	struct meter meter;
	struct costs costs;

	spin_barrier_init(&w->begin, (uint32_t)nr + 1);
	spin_barrier_init(&w->end, (uint32_t)nr);
	stopwatch_start(&began);
	team_start(&team);
	meter_read(&meter, w->op);
	spin_barrier_wait(&w->begin);
	watch_window(w, &watch, (uint64_t)(job->seconds * 1e9));
	team_join(&team);
	if (w->op->reclaim->barrier)
		w->op->reclaim->barrier();
	ended = now_ns();
	retired = retire_all_retired() - watch.retired;
	costs = meter_since(&meter, w->op, (double)retired);
	if (w->ticks) {
		report_calls(job, w, &watch, &began);
	} else {
		report_rate(job, w, &watch, retired, ended);
		job_send_costs(w->scenario, w->producers, &costs);
	}
	return retirescale_all_freed(retired, retirescale_freed(w->op) - watch.freed, retirescale_command.scenarios[w->scenario].name);
}

static void dispose(const struct op *op, void *object)
{
	if (object && op->reclaim->dispose)
		op->reclaim->dispose(object);
	else
		free(object);
}

bool retirescale_cell(const struct job *job, int scenario, int producers, bool timed)
{
	static void *pointer;
	struct window *w = calloc(1, sizeof(*w));
	struct histogram *ticks = timed ? retirescale_histograms(producers) : NULL;
	bool good;

	if (!w || (timed && !ticks)) {
		job_send_note("out of memory");
		free(w);
		free(ticks);
		return false;
	}
	w->op = job->op;
	w->scenario = scenario;
	w->ticks = ticks;
	w->producers = producers;
	w->readers = scenario >= SCENARIO_RETIRE_BUSY;
	op_thread_enter(w->op);
	if (scenario != SCENARIO_RETIRE_IDLE) {
		w->where = &pointer;
		w->op->reclaim->produce(w->where, 1); /* the first object replaces none */
	}
	good = measure(job, w);
	op_thread_exit(w->op);
	dispose(w->op, pointer); /* the last object; no other thread is left */
	pointer = NULL;
	free(ticks);
	free(w);
	job_flush();
	return good;
}
