/* SPDX-License-Identifier: MIT */
/* queuescale_cell.c - one window of puts and gets.
 *
 * Each thread's rate is its number of gets divided by the time that it had: waits for readers, and the time for which
 * other processes took the CPU away, are not counted.  In pairs a thread puts a node and gets one, so its number of
 * nodes is constant and there is always one to get.  After a wait for readers it also waits for the other threads, so
 * that all of them meet as often after slow grace periods as after fast ones.  Producers take nodes from a depot, to
 * which consumers return them.
 */
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include <quiesce/atomic.h>

#include "queuescale.h"
#include "team.h"

#define WARM_UP 0.3 /* length of the warm-up, as a share of the window */
#define DISTURBED 0.05
#define POLL_NS 500000
#define LATE_NS 10000000000u
#define BATCHES 4 /* batches of nodes for each producer */

enum { WARM, MEASURED, OVER };

struct lap {
	struct queue_hand hand;
	/* Times and counts of the window; away_ns: the thread waited for readers and for other threads. */
	uint64_t ns, waited_ns, away_ns, nr_got, nr_empty;
	double delay_ns;                          /* NAN: the kernel does not report it */
	int schedstat;
	uint32_t has_got; /* 1: the thread has got a node in the window */
	uint32_t turns;
} __attribute__((aligned(128)));

struct window {
	const struct op *op;
	struct queue_shape shape;
	int threads;
	uint32_t phase;
	struct spin_barrier begin, end;
	struct spin_barrier turn; /* for pairs whose nodes wait for readers: the barrier between two batches */
	uint32_t last_turn;  /* number of the last batch, the same for all threads; written by the first thread; 0: not known yet */
	struct lap *lap; /* one lap for each thread */
	struct queue_node *node;
	/* Nodes that no thread has; guarded by the lock. */
	pthread_mutex_t lock;
	struct queue_node **depot;
	uint32_t nr_depot;
};

static bool in_phase(const struct window *w, uint32_t phase)
{
	return quiesce_load_relaxed(&w->phase) == phase; /* the phase starts and stops clocks, and publishes nothing */
}

/* ---- nodes ---- */

static bool has_turns(const struct window *w)
{
	return !w->shape.consumers && w->op->queues->wait;
}

static void meet(struct window *w, struct lap *lap)
{
	lap->turns++;
	if (lap == w->lap && in_phase(w, OVER))
		quiesce_store_relaxed(&w->last_turn, lap->turns); /* stored as a number, because others may check only after a later turn */
	__atomic_thread_fence(__ATOMIC_SEQ_CST); /* raw: the barrier orders nothing, and all threads must read the same number. */
	spin_barrier_wait(&w->turn);
	__atomic_thread_fence(__ATOMIC_SEQ_CST); /* raw: the barrier orders nothing, and all threads must read the same number. */
}

static void wait_for_readers(struct window *w, struct lap *lap)
{
	uint64_t begin = now_ns();
	double delay = run_delay_ns(lap->schedstat);

	if (!w->op->queues->wait)
		return;
	w->op->queues->wait();
	lap->waited_ns += now_ns() - begin;
	if (has_turns(w))
		meet(w, lap);
	lap->away_ns += now_ns() - begin;
	lap->delay_ns -= run_delay_ns(lap->schedstat) - delay;
}

/* The nodes of the gets become the nodes of the next puts. */
static void turn_over(struct queue_hand *hand)
{
	memcpy(hand->fresh, hand->used, hand->nr_used * sizeof(hand->used[0]));
	hand->nr_fresh = hand->nr_used;
	hand->nr_used = 0;
}

static void bring(struct window *w, struct queue_hand *hand)
{
	pthread_mutex_lock(&w->lock);
	memcpy(w->depot + w->nr_depot, hand->used, hand->nr_used * sizeof(hand->used[0]));
	w->nr_depot += hand->nr_used;
	pthread_mutex_unlock(&w->lock);
	hand->nr_used = 0;
}

static void take(struct window *w, struct queue_hand *hand)
{
	uint32_t nr;

	pthread_mutex_lock(&w->lock);
	nr = w->nr_depot < QUEUE_BATCH ? w->nr_depot : QUEUE_BATCH;
	w->nr_depot -= nr;
	memcpy(hand->fresh, w->depot + w->nr_depot, nr * sizeof(hand->fresh[0]));
	pthread_mutex_unlock(&w->lock);
	hand->nr_fresh = nr;
}

/* ---- threads ---- */

static void rest(const struct window *w)
{
	if (w->threads > cpus_online())
		sched_yield();
	else
		quiesce_cpu_relax();
}

static void step_pairs(struct window *w, struct lap *lap)
{
	w->op->queues->pairs(&lap->hand);
	wait_for_readers(w, lap);
	turn_over(&lap->hand);
}

static void step_producer(struct window *w, struct lap *lap)
{
	take(w, &lap->hand);
	if (lap->hand.nr_fresh)
		w->op->queues->produce(&lap->hand);
	else
		rest(w);
}

static void step_consumer(struct window *w, struct lap *lap)
{
	w->op->queues->consume(&lap->hand);
	if (lap->hand.nr_used < QUEUE_BATCH) {
		rest(w);
		return;
	}
	wait_for_readers(w, lap);
	bring(w, &lap->hand);
}

static bool is_over(const struct window *w, const struct lap *lap)
{
	uint32_t last = quiesce_load_relaxed(&w->last_turn); /* the number publishes nothing */

	return has_turns(w) ? last && lap->turns >= last : in_phase(w, OVER);
}

static void work(struct window *w, struct lap *lap, void (*step)(struct window *w, struct lap *lap))
{
	spin_barrier_wait(&w->begin);
	while (in_phase(w, WARM) && !is_over(w, lap))
		step(w, lap);
	lap->waited_ns = lap->away_ns = 0;
	lap->nr_got = lap->hand.nr_got;
	lap->nr_empty = lap->hand.nr_empty;
	lap->ns = now_ns();
	lap->delay_ns = -run_delay_ns(lap->schedstat);
	while (!is_over(w, lap)) {
		step(w, lap);
		if (lap->hand.nr_got != lap->nr_got)
			quiesce_store_relaxed(&lap->has_got, 1u);
	}
	lap->delay_ns += run_delay_ns(lap->schedstat);
	lap->ns = now_ns() - lap->ns;
	lap->nr_got = lap->hand.nr_got - lap->nr_got;
	lap->nr_empty = lap->hand.nr_empty - lap->nr_empty;
	spin_barrier_wait(&w->end);
}

static void body(struct member *m)
{
	struct window *w = m->team->arg;
	struct lap *lap = &w->lap[m->index];

	op_thread_enter(w->op);
	lap->schedstat = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	work(w, lap, !w->shape.consumers ? step_pairs : m->index < w->shape.producers ? step_producer : step_consumer);
	if (lap->schedstat >= 0)
		close(lap->schedstat);
	op_thread_exit(w->op);
}

/* ---- the window ---- */

static bool make(struct window *w)
{
	int batches = w->shape.consumers ? w->shape.producers * BATCHES + w->shape.consumers : w->threads;
	size_t nr = (size_t)batches * QUEUE_BATCH;

	w->lap = aligned_alloc(128, (size_t)w->threads * sizeof(*w->lap));
	w->node = aligned_alloc(64, (nr + 1) * sizeof(*w->node));
	w->depot = calloc(nr, sizeof(*w->depot));
	if (!w->lap || !w->node || !w->depot)
		return false;
	memset(w->lap, 0, (size_t)w->threads * sizeof(*w->lap));
	memset(w->node, 0, (nr + 1) * sizeof(*w->node));
	for (size_t i = 0; i < nr; i++)
		w->depot[w->nr_depot++] = &w->node[i + 1];
	for (int i = 0; i < w->threads; i++)
		w->lap[i].hand.next = (uint64_t)i << 48; /* makes all values different */
	for (int i = 0; !w->shape.consumers && i < w->threads; i++)
		take(w, &w->lap[i].hand);
	return !w->op->queues->create(&w->node[0]);
}

/* With more threads than CPUs, the threads that get may not have run yet. */
static void wait_for_gets(const struct window *w)
{
	uint64_t late = now_ns() + LATE_NS;
	bool any = false;

	while (!any && now_ns() < late) {
		for (int i = 0; i < w->threads; i++)
			any = any || quiesce_load_relaxed(&w->lap[i].has_got);
		if (!any)
			sleep_ns(POLL_NS);
	}
}

static void run(struct window *w, double seconds)
{
	struct team team = { .nr = w->threads, .pinned = w->threads <= cpus_online(), .body = body, .arg = w };

	spin_barrier_init(&w->begin, (uint32_t)w->threads + 1);
	spin_barrier_init(&w->end, (uint32_t)w->threads);
	spin_barrier_init(&w->turn, (uint32_t)w->threads);
	team_start(&team);
	spin_barrier_wait(&w->begin);
	sleep_ns((uint64_t)(seconds * WARM_UP * 1e9));
	quiesce_store_relaxed(&w->phase, (uint32_t)MEASURED);
	sleep_ns((uint64_t)(seconds * 1e9));
	wait_for_gets(w);
	quiesce_store_relaxed(&w->phase, (uint32_t)OVER);
	team_join(&team);
}

bool queuescale_judge(const struct queue_hand *sum, uint64_t found_empty)
{
	if (sum->nr_put == sum->nr_got && sum->sum_put == sum->sum_got && !found_empty && sum->nr_put)
		return true;
	job_send_note("BROKEN: %llu put, %llu got, sums %s, %llu times nothing was found where there was something",
		      (unsigned long long)sum->nr_put, (unsigned long long)sum->nr_got,
		      sum->sum_put == sum->sum_got ? "equal" : "not equal", (unsigned long long)found_empty);
	return false;
}

/* Empties the queue, and compares the counts and sums of all values. */
static bool check(struct window *w)
{
	struct queue_hand sum = { .nr_used = 0 };
	uint64_t found_empty = 0;

	op_thread_enter(w->op);
	do {
		sum.nr_used = 0;
		w->op->queues->consume(&sum);
	} while (sum.nr_used == QUEUE_BATCH);
	op_thread_exit(w->op);
	for (int i = 0; i < w->threads; i++) {
		const struct queue_hand *hand = &w->lap[i].hand;

		sum.nr_put += hand->nr_put;
		sum.sum_put += hand->sum_put;
		sum.nr_got += hand->nr_got;
		sum.sum_got += hand->sum_got;
		found_empty += w->shape.consumers || w->op->queues->may_miss ? 0 : hand->nr_empty;
	}
	return queuescale_judge(&sum, found_empty);
}

static void send(const struct job *job, const struct window *w)
{
	int first = w->shape.consumers ? w->shape.producers : 0;
	double rate = 0, in_all = 0, waited = 0, empty = 0;
	int scenario = w->shape.consumers;
	bool disturbed = false;

	for (int i = first; i < w->threads; i++) {
		const struct lap *lap = &w->lap[i];
		double ns = (double)(lap->ns - lap->away_ns), delay = isfinite(lap->delay_ns) ? fmax(lap->delay_ns, 0) : 0;

		delay = w->threads > cpus_online() ? 0 : fmin(delay, ns / 2);
		disturbed = disturbed || delay > DISTURBED * ns;
		rate += (double)lap->nr_got * 1e9 / fmax(ns - delay, 1);
		in_all += (double)lap->nr_got * 1e9 / fmax((double)lap->ns - delay, 1);
		waited += (double)lap->waited_ns / (double)lap->ns / (w->threads - first);
		empty += (double)lap->nr_empty;
	}
	job_send(scenario, w->threads, job->round | (disturbed ? GROUP_DISTURBED : 0), rate);
	job_send_metric(scenario, QUEUE_IN_ALL, w->threads, job->round, in_all);
	job_send_metric(scenario, QUEUE_WAITED, w->threads, job->round, waited);
	job_send_metric(scenario, QUEUE_EMPTY, w->threads, job->round, empty);
}

bool queuescale_cell(const struct job *job, struct queue_shape shape)
{
	struct window w = { .op = job->op, .shape = shape, .threads = shape.producers + shape.consumers,
			    .lock = PTHREAD_MUTEX_INITIALIZER };
	bool good = make(&w);

	if (good) {
		run(&w, job->seconds);
		good = check(&w);
	} else {
		job_send_note("out of memory");
	}
	if (good)
		send(job, &w);
	free(w.lap);
	free(w.node);
	free(w.depot);
	return good;
}
