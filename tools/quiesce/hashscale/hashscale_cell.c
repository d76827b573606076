/* SPDX-License-Identifier: MIT */
/* hashscale_cell.c - one window of lookups and updates.
 *
 * The rate is the number of operations divided by the time that all threads had.  As long as each thread has a CPU,
 * the time for which other processes took the CPU away is not counted (the scheduler reports for how long a thread
 * was runnable and did not run), but the time for which the process's own workers took it is.
 *
 * Before the window the threads warm up until they have done as many operations as there are keys: the window must
 * not measure the way from what the filling of the table left in caches and TLBs to what lookups leave there.
 */
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hashscale.h"

#define WARM_UP 0.5    /* share of a window that the warm-up takes at least, for the clocks of the CPUs */
#define WARM_MOST_S 10 /* longest warm-up */
#define DISTURBED 0.05

struct lap {
	uint64_t ns, cpu_ns;
	double delay_ns; /* time as a runnable thread without a CPU; NAN: the kernel does not report it */
	uint64_t warm;       /* operations of the warm-up so far; read by the main thread */
	uint64_t operations; /* operations in the window, or the number of resizes */
	uint64_t worst_ns;
	struct hash_tally tally;
} __attribute__((aligned(128)));

enum { WARM, MEASURED, OVER };

/* The metrics that are sent for each kind of window. */
static const struct {
	int rate, worst; /* metrics; for the first window the rate is that of the row */
	const char *what;
} windows[HASH_NR_WINDOWS] = {
	{ 0, HASH_WORST, "" },
	{ HASH_CONTROL_SMALL, HASH_CONTROL_WORST, ", another table resized" },
	{ HASH_CONTROL_LARGE, HASH_CONTROL_WORST, ", large, another table resized" },
	{ HASH_RESIZED, HASH_RESIZED_WORST, ", resized" },
};

struct window {
	const struct hash_cell *cell;
	uint32_t phase;
	uint32_t ready; /* threads that have reached the barrier, or will within some instructions */
	struct spin_barrier begin, end;
	struct lap *lap; /* one lap for each thread */
};

#define POLL_NS 500000

static void wait_first_barrier(struct window *w)
{
	(void)quiesce_fetch_add_relaxed(&w->ready, 1u);
	spin_barrier_wait(&w->begin);
}

static bool has_resizer(const struct hash_cell *c)
{
	return c->window != HASH_WINDOW_ALONE;
}

static bool has_staller(const struct hash_cell *c)
{
	return hash_plan_of(c->job)->stall;
}

static int nr_extra_threads(const struct hash_cell *c)
{
	return has_resizer(c) || has_staller(c);
}

static bool is_over(const struct window *w)
{
	return quiesce_load_relaxed(&w->phase) == OVER;
}

static void run(const struct hash_cell *c, const uint64_t *word, uint64_t nr, struct hash_tally *tally)
{
	const struct hash_op *hash = c->op->hash;

	hash->run(c->table, word, nr, tally);
	if (hash->between)
		hash->between();
}

/* ---- a thread's clocks ---- */

/* The time is read first here and last in lap_end(), so that no delay is longer than the window. */
static void lap_begin(struct lap *lap, int fd)
{
	lap->ns = now_ns();
	lap->cpu_ns = thread_cpu_ns();
	lap->delay_ns = run_delay_ns(fd);
}

static void lap_end(struct lap *lap, int fd)
{
	lap->delay_ns = run_delay_ns(fd) - lap->delay_ns;
	lap->cpu_ns = thread_cpu_ns() - lap->cpu_ns;
	lap->ns = now_ns() - lap->ns;
}

/* ---- threads of the lookups ---- */

struct position {
	const uint64_t *word;
	uint64_t at;
};

static void step(struct window *w, struct position *p, struct lap *lap)
{
	run(w->cell, p->word + p->at, HASH_CHUNK, &lap->tally);
	p->at = p->at + HASH_CHUNK < w->cell->stream_words ? p->at + HASH_CHUNK : 0;
}

static void work_plainly(struct window *w, struct position *p, struct lap *lap)
{
	do {
		step(w, p, lap);
		lap->operations += HASH_CHUNK;
	} while (!is_over(w));
}

static void work_timed(struct window *w, struct position *p, struct lap *lap)
{
	uint64_t then = now_ns();

	do {
		uint64_t now;

		step(w, p, lap);
		lap->operations += HASH_CHUNK;
		now = now_ns();
		lap->worst_ns = now - then > lap->worst_ns ? now - then : lap->worst_ns;
		then = now;
	} while (!is_over(w));
}

/* Inserts again what the thread has removed: the next inserts of its stream. */
static void reinsert_removed(struct window *w, const struct position *p, struct lap *lap)
{
	for (uint64_t away = hash_stream_away(p->word, p->at), at = p->at; away; at++)
		if (p->word[at] & HASH_INSERT) {
			run(w->cell, p->word + at, 1, &lap->tally);
			away--;
		}
}

static void work(struct window *w, int index)
{
	const struct hash_cell *c = w->cell;
	struct lap *lap = &w->lap[index];
	const struct hash_work work = { &c->keys, hash_plan_of(c->job)->distribution, c->updates, index, c->threads, c->job->round };
	int fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	struct position p = { c->stream[index], 0 };

	if (!has_resizer(c)) /* with a resizer the stream of the cell's first window is used again */
		hash_stream_make(c->stream[index], c->stream_words, &work);
	wait_first_barrier(w);
	while (quiesce_load_relaxed(&w->phase) == WARM) {
		step(w, &p, lap);
		quiesce_store_relaxed(&lap->warm, lap->warm + HASH_CHUNK);
	}
	lap_begin(lap, fd);
	(hash_plan_of(c->job)->resize ? work_timed : work_plainly)(w, &p, lap);
	lap_end(lap, fd);
	spin_barrier_wait(&w->end);
	reinsert_removed(w, &p, lap);
	if (fd >= 0)
		close(fd);
}

/* ---- the thread that resizes a table ---- */

/* This thread begins and ends the window, so that it contains whole cycles. */
static void resize(struct window *w, int index)
{
	const struct hash_cell *c = w->cell;
	struct lap *lap = &w->lap[index];

	wait_first_barrier(w);
	op_sleep_begin(c->op);
	while (quiesce_load_relaxed(&w->phase) == WARM)
		sleep_ns(POLL_NS);
	op_sleep_end(c->op);
	lap->ns = now_ns();
	do {
		hash_resize_cycle(c, &lap->tally);
		lap->operations += HASH_RESIZES_OF_CYCLE;
	} while ((double)(now_ns() - lap->ns) < c->seconds * 1e9);
	lap->ns = now_ns() - lap->ns;
	quiesce_store_relaxed(&w->phase, (uint32_t)OVER);
	spin_barrier_wait(&w->end);
}

/* ---- the reader that stays ---- */

static void stay(void *arg)
{
	struct window *w = arg;

	wait_first_barrier(w);
	while (!is_over(w))
		sleep_ns(POLL_NS);
	spin_barrier_wait(&w->end);
}

static void stall(struct window *w)
{
	w->cell->op->hash->stall(w->cell->table, stay, w);
}

static void body(struct member *m)
{
	struct window *w = m->team->arg;
	bool resizes = m->index == w->cell->threads && has_resizer(w->cell);

	if (resizes && m->team->pinned)
		hash_resize_bind();
	op_thread_enter(w->cell->op);
	if (m->index == w->cell->threads && has_staller(w->cell))
		stall(w);
	else
		(resizes ? resize : work)(w, m->index);
	op_thread_exit(w->cell->op);
}

/* ---- the window ---- */

bool hash_tally_good(const struct hash_tally *t, const char *where)
{
	if (!t->lost && !t->wrong && !t->failed)
		return true;
	job_send_note("BROKEN: %s: %llu keys not found that were there, %llu wrong values, %llu updates that failed", where,
		      (unsigned long long)t->lost, (unsigned long long)t->wrong, (unsigned long long)t->failed);
	return false;
}

/* Operations in a second of each thread's own time, multiplied by the number of threads. */
static double rate(const struct window *w, double workers_ns, bool *ret_disturbed)
{
	const struct hash_cell *c = w->cell;
	double operations = 0, ns = 0, delay = 0;

	for (int i = 0; i < c->threads; i++) {
		operations += (double)w->lap[i].operations;
		ns += (double)w->lap[i].ns;
		delay += w->lap[i].delay_ns;
	}
	if (!hash_resize_apart(c))
		delay = fmax(delay - workers_ns, 0);
	if (c->threads + nr_extra_threads(c) > cpus_online())
		delay = 0;
	*ret_disturbed = delay > DISTURBED * ns;
	return operations * c->threads * 1e9 / (ns - delay);
}

static void send_resizes(const struct window *w)
{
	const struct hash_cell *c = w->cell;
	const struct lap *lap = &w->lap[c->threads];

	job_send_metric(c->scenario, HASH_RESIZES, c->threads, c->job->round, (double)lap->operations);
	job_send_metric(c->scenario, HASH_RESIZE_MS, c->threads, c->job->round, (double)lap->ns / 1e6 / (double)lap->operations);
}

static uint64_t operations_before(const struct window *w)
{
	uint64_t operations = 0;

	for (int i = 0; i < w->cell->threads; i++)
		operations += quiesce_load_relaxed(&w->lap[i].warm);
	return operations;
}

static void send_window(const struct window *w)
{
	const struct hash_cell *c = w->cell;

	job_send_metric(c->scenario, HASH_WARM, c->threads, c->job->round, (double)operations_before(w));
	job_send_metric(c->scenario, HASH_WINDOW_S, c->threads, c->job->round, c->seconds);
}

static void send_cell(struct hash_cell *c, const struct window *w, double workers_ns)
{
	bool disturbed;
	double value = rate(w, workers_ns, &disturbed);
	uint64_t worst = 0;

	c->rate[c->window] = value;
	for (int i = 0; i < c->threads; i++)
		worst = w->lap[i].worst_ns > worst ? w->lap[i].worst_ns : worst;
	job_send_metric(c->scenario, windows[c->window].rate, c->threads,
			c->job->round | (disturbed ? GROUP_DISTURBED : 0), value);
	if (hash_plan_of(c->job)->resize)
		job_send_metric(c->scenario, windows[c->window].worst, c->threads, c->job->round, (double)worst / 1e3);
	if (c->window == HASH_WINDOW_ALONE)
		send_window(w);
	if (c->window == HASH_WINDOW_RESIZED)
		send_resizes(w);
}

static struct hash_tally tally_of(const struct window *w, int nr)
{
	struct hash_tally sum = { 0 };

	for (int i = 0; i < nr; i++) {
		sum.lost += w->lap[i].tally.lost;
		sum.wrong += w->lap[i].tally.wrong;
		sum.failed += w->lap[i].tally.failed;
	}
	return sum;
}

/* Samples the number of removed elements that are not freed yet until the window is over, and sends the most and the mean. */
static void watch(struct window *w)
{
	const struct hash_cell *c = w->cell;
	uint64_t end = now_ns() + (uint64_t)(c->seconds * 1e9), most = 0, sum = 0, samples = 0;

	do {
		uint64_t now = c->op->hash->waiting();

		most = now > most ? now : most;
		sum += now;
		samples++;
		sleep_ns(POLL_NS);
	} while (now_ns() < end);
	job_send_metric(c->scenario, HASH_WAITING, c->threads, c->job->round, (double)most);
	job_send_metric(c->scenario, HASH_WAITING_MEAN, c->threads, c->job->round, (double)sum / (double)samples);
}

/* Without updates lookups are left alone; walks may have a reader that stays beside. */
static bool is_watched(const struct hash_cell *c)
{
	return c->op->hash->waiting && !has_resizer(c) && (c->updates > 0 || c->op->walk);
}

static void wait_for_end(struct window *w)
{
	if (is_watched(w->cell))
		watch(w);
	else if (!has_resizer(w->cell))
		sleep_ns((uint64_t)(w->cell->seconds * 1e9));
	if (!has_resizer(w->cell))
		quiesce_store_relaxed(&w->phase, (uint32_t)OVER);
	while (!is_over(w))
		sleep_ns(POLL_NS);
}

/* With one key all is in the caches at once. */
static bool is_warm(const struct window *w)
{
	return operations_before(w) >= w->cell->keys.nr || hash_plan_of(w->cell->job)->distribution == HASH_HOT;
}

static void warm_up(const struct window *w)
{
	uint64_t begin = now_ns();

	sleep_ns((uint64_t)(w->cell->seconds * 1e9 * WARM_UP));
	while (!is_warm(w) && now_ns() - begin < (uint64_t)WARM_MOST_S * 1000000000)
		sleep_ns(POLL_NS);
}

bool hash_cell_measure(struct hash_cell *c)
{
	int nr = c->threads + nr_extra_threads(c);
	struct window w = { .cell = c, .lap = aligned_alloc(128, (size_t)nr * sizeof(*w.lap)) };
	struct team team = { .nr = nr, .pinned = nr <= cpus_online(), .body = body, .arg = &w };
	struct hash_tally sum;
	uint64_t cpu, own = 0;
	char where[128];

	if (!w.lap) {
		job_send_note("out of memory");
		return false;
	}
	memset(w.lap, 0, (size_t)nr * sizeof(*w.lap));
	spin_barrier_init(&w.begin, (uint32_t)nr + 1);
	spin_barrier_init(&w.end, (uint32_t)nr + 1);
	op_sleep_begin(c->op);
	team_start(&team);
	while (quiesce_load_relaxed(&w.ready) < (uint32_t)nr)
		sleep_ns(POLL_NS); /* sleeps instead of waiting at the barrier: the threads that make their streams need the CPU */
	spin_barrier_wait(&w.begin);
	warm_up(&w);
	cpu = process_cpu_ns();
	quiesce_store_relaxed(&w.phase, (uint32_t)MEASURED);
	wait_for_end(&w);
	spin_barrier_wait(&w.end);
	cpu = process_cpu_ns() - cpu;
	team_join(&team);
	op_sleep_end(c->op);
	for (int i = 0; i < nr; i++)
		own += w.lap[i].cpu_ns;
	send_cell(c, &w, cpu > own ? (double)(cpu - own) : 0);
	sum = tally_of(&w, nr);
	free(w.lap);
	job_flush();
	snprintf(where, sizeof(where), "%s, %g%% updates, %d threads%s", hash_plan_of(c->job)->set[hash_set_of(c->scenario)].name,
		 c->updates, c->threads, windows[c->window].what);
	return hash_tally_good(&sum, where);
}
