/* SPDX-License-Identifier: MIT */
/* queuescale_messages.c - one window of messages: each comes from malloc(), and the thread that gets it frees it.
 *
 * The time of a thread ends when all that it retired is freed: so the rate and the CPU time have all of reclamation in
 * them, of messages and of the queue's own nodes, whichever thread does it.  The threads begin the window as they
 * end it, with nothing that waits to be freed.
 */
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <quiesce/atomic.h>

#include "queuescale.h"
#include "team.h"

#define WARM_UP 0.3 /* length of the warm-up, as a share of the window */
#define DISTURBED 0.05
#define POLL_NS 100000
#define LATE_NS 10000000000u
#define IN_FLIGHT 4096 /* messages in the queue for each producer */

enum { WARM, MEASURED, OVER };

struct sender {
	struct queue_hand hand;
	/* Other threads read these totals of messages put, and got. */
	uint64_t put __attribute__((aligned(128))), got __attribute__((aligned(128)));
	int64_t credit; /* messages that a producer may put before it reads the totals again */
	/* These are counted over the window. */
	uint64_t ns, cpu_ns, nr_got, nr_empty;
	double delay_ns; /* NAN: the kernel does not report it */
	int schedstat;
	uint32_t has_got; /* 1: the thread has got a message in the window */
} __attribute__((aligned(128)));

struct window {
	const struct op *op;
	struct queue_shape shape;
	uint32_t burst;
	int threads;
	uint32_t phase, begun;
	uint64_t cpu_ns; /* the CPU time of the process, which the first thread reads */
	struct spin_barrier begin, measured, end;
	struct sender *sender; /* one for each thread */
};

static uint32_t phase_of(const struct window *w)
{
	return quiesce_load_relaxed(&w->phase); /* the phase starts and stops clocks, and publishes nothing */
}

/* ---- threads ---- */

static void rest(const struct window *w)
{
	if (w->threads > cpus_online())
		sched_yield();
	else
		quiesce_cpu_relax();
}

/* A queue that lost messages ends, too: with the phase. */
static void step_pairs(struct window *w, struct sender *s)
{
	uint32_t got = 0, phase = phase_of(w);

	w->op->queues->send(&s->hand, w->burst);
	while (got < w->burst && phase == phase_of(w)) {
		uint32_t nr = w->op->queues->receive(&s->hand, w->burst - got);

		got += nr;
		if (!nr)
			rest(w);
	}
}

/* A share of the messages that may still be put. */
static int64_t new_credit(const struct window *w)
{
	int64_t there = 0;

	for (int i = 0; i < w->threads; i++)
		there += (int64_t)(quiesce_load_relaxed(&w->sender[i].put) - quiesce_load_relaxed(&w->sender[i].got)); /* statistics */
	return ((int64_t)IN_FLIGHT * w->shape.producers - there) / w->shape.producers;
}

static void step_producer(struct window *w, struct sender *s)
{
	if (s->credit < (int64_t)w->burst)
		s->credit = new_credit(w);
	if (s->credit < (int64_t)w->burst) {
		rest(w);
		return;
	}
	w->op->queues->send(&s->hand, w->burst);
	s->credit -= w->burst;
	quiesce_store_relaxed(&s->put, s->hand.nr_put);
}

static void step_consumer(struct window *w, struct sender *s)
{
	if (w->op->queues->receive(&s->hand, w->burst))
		quiesce_store_relaxed(&s->got, s->hand.nr_got);
	else
		rest(w);
}

static void drain(const struct window *w)
{
	if (w->op->queues->drain)
		w->op->queues->drain();
}

static void begin_window(struct window *w, struct sender *s)
{
	drain(w);
	spin_barrier_wait(&w->measured);
	if (s == w->sender) {
		w->cpu_ns = process_cpu_ns();
		quiesce_store_relaxed(&w->begun, 1u); /* the flag starts a clock, and publishes nothing */
	}
	s->nr_got = s->hand.nr_got;
	s->nr_empty = s->hand.nr_empty;
	s->delay_ns = -run_delay_ns(s->schedstat);
	s->cpu_ns = thread_cpu_ns();
	s->ns = now_ns();
}

static void end_window(struct window *w, struct sender *s)
{
	drain(w);
	s->ns = now_ns() - s->ns;
	s->cpu_ns = thread_cpu_ns() - s->cpu_ns;
	s->delay_ns += run_delay_ns(s->schedstat);
	s->nr_got = s->hand.nr_got - s->nr_got;
	s->nr_empty = s->hand.nr_empty - s->nr_empty;
	spin_barrier_wait(&w->end);
	if (s == w->sender)
		w->cpu_ns = process_cpu_ns() - w->cpu_ns;
}

static void work(struct window *w, struct sender *s, void (*step)(struct window *w, struct sender *s))
{
	spin_barrier_wait(&w->begin);
	while (phase_of(w) == WARM)
		step(w, s);
	begin_window(w, s);
	while (phase_of(w) != OVER) {
		step(w, s);
		if (s->hand.nr_got != s->nr_got)
			quiesce_store_relaxed(&s->has_got, 1u); /* the flag publishes nothing */
	}
	end_window(w, s);
}

static void body(struct member *m)
{
	struct window *w = m->team->arg;
	struct sender *s = &w->sender[m->index];

	op_thread_enter(w->op);
	s->schedstat = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	work(w, s, !w->shape.consumers ? step_pairs : m->index < w->shape.producers ? step_producer : step_consumer);
	if (s->schedstat >= 0)
		close(s->schedstat);
	op_thread_exit(w->op);
}

/* ---- the window ---- */

static bool make(struct window *w, struct queue_node *stub)
{
	w->sender = aligned_alloc(128, (size_t)w->threads * sizeof(*w->sender));
	if (!w->sender)
		return false;
	memset(w->sender, 0, (size_t)w->threads * sizeof(*w->sender));
	for (int i = 0; i < w->threads; i++)
		w->sender[i].hand.next = (uint64_t)i << 48; /* makes all values different */
	return !w->op->queues->create(stub);
}

static bool has_begun(const struct window *w)
{
	return quiesce_load_relaxed(&w->begun); /* the flag publishes nothing */
}

/* With more threads than CPUs, or on a busy machine, the threads that get may not have run yet. */
static bool has_got(const struct window *w)
{
	bool any = false;

	for (int i = 0; i < w->threads; i++)
		any = any || quiesce_load_relaxed(&w->sender[i].has_got); /* the flag publishes nothing */
	return any;
}

static void wait_until(bool (*is_true)(const struct window *w), const struct window *w)
{
	uint64_t late = now_ns() + LATE_NS;

	while (!is_true(w) && now_ns() < late)
		sleep_ns(POLL_NS);
}

static void run(struct window *w, double seconds)
{
	struct team team = { .nr = w->threads, .pinned = w->threads <= cpus_online(), .body = body, .arg = w };

	spin_barrier_init(&w->begin, (uint32_t)w->threads + 1);
	spin_barrier_init(&w->measured, (uint32_t)w->threads);
	spin_barrier_init(&w->end, (uint32_t)w->threads);
	team_start(&team);
	spin_barrier_wait(&w->begin);
	sleep_ns((uint64_t)(seconds * WARM_UP * 1e9));
	quiesce_store_relaxed(&w->phase, (uint32_t)MEASURED);
	wait_until(has_begun, w);
	sleep_ns((uint64_t)(seconds * 1e9));
	wait_until(has_got, w);
	quiesce_store_relaxed(&w->phase, (uint32_t)OVER);
	team_join(&team);
}

/* Empties the queue, and compares the counts and sums of all values. */
static bool check(struct window *w)
{
	struct queue_hand sum = { .nr_used = 0 };

	op_thread_enter(w->op);
	while (w->op->queues->receive(&sum, QUEUE_BATCH))
		;
	drain(w);
	op_thread_exit(w->op);
	for (int i = 0; i < w->threads; i++) {
		const struct queue_hand *hand = &w->sender[i].hand;

		sum.nr_put += hand->nr_put;
		sum.sum_put += hand->sum_put;
		sum.nr_got += hand->nr_got;
		sum.sum_got += hand->sum_got;
	}
	return queuescale_judge(&sum, 0);
}

static void send(const struct job *job, const struct window *w, int scenario)
{
	int first = w->shape.consumers ? w->shape.producers : 0;
	double rate = 0, empty = 0, got = 0, delay = 0, busy = 0, ns = 0;

	for (int i = 0; i < w->threads; i++) {
		const struct sender *s = &w->sender[i];

		delay += isfinite(s->delay_ns) ? s->delay_ns : 0;
		busy += (double)s->cpu_ns;
		ns += (double)s->ns;
		if (i < first)
			continue;
		rate += (double)s->nr_got * 1e9 / fmax((double)s->ns, 1);
		got += (double)s->nr_got;
		empty += (double)s->nr_empty;
	}
	/* The process's other threads, which free, delay these, too: that is part of the cost. */
	delay -= fmax((double)w->cpu_ns - busy, 0);
	job_send(scenario, w->threads, job->round | (w->threads <= cpus_online() && delay > DISTURBED * ns ? GROUP_DISTURBED : 0), rate);
	job_send_metric(scenario, QUEUE_EMPTY, w->threads, job->round, empty);
	job_send_metric(scenario, QUEUE_CPU_NS, w->threads, job->round, (double)w->cpu_ns / fmax(got, 1));
}

bool queuescale_messages(const struct job *job, struct queue_shape shape, uint32_t burst, int scenario)
{
	struct window w = { .op = job->op, .shape = shape, .burst = burst, .threads = shape.producers + shape.consumers };
	struct queue_node *stub = calloc(1, sizeof(*stub));
	bool good = stub && make(&w, stub);

	if (good) {
		run(&w, job->seconds);
		good = check(&w);
		if (good)
			send(job, &w, scenario);
	} else {
		job_send_note("out of memory");
	}
	free(stub);
	free(w.sender);
	return good;
}
