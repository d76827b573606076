/* SPDX-License-Identifier: MIT */
/* sched.c - choice of the next thread; sleeping, time, signals.
 *
 * random: any ready thread, in some seeds with a preference for the present one.
 * pct: the ready thread of highest priority; at each change point, drawn over the expected length of a run,
 *   the running thread drops below all others.  Long after the expected length each thread drops after each
 *   step, so that a thread that waits in a loop cannot starve the rest.
 * A timed sleep ends when no thread is ready, sometimes earlier.  When no thread is ready, no sleep is timed
 * and a thread has not finished: deadlock.
 */
#include "machine.h"

static int nth_bit(uint32_t mask, uint32_t n)
{
	while (n--)
		mask &= mask - 1;
	return __builtin_ctz(mask);
}

static int choose_random(void)
{
	uint32_t r = sim__draw();

	if (M->cur >= 0 && (M->ready >> M->cur & 1) && (r & 7) < M->sticky)
		return M->cur;
	return nth_bit(M->ready, (r >> 8) % __builtin_popcount(M->ready));
}

void sim__demote(struct thread *t)
{
	t->priority = --M->lowest_priority;
}

static int choose_pct(void)
{
	int best = -1;

	for (uint32_t left = M->ready; left; left &= left - 1) {
		int i = __builtin_ctz(left);

		if (best < 0 || M->threads[i].priority > M->threads[best].priority)
			best = i;
	}
	for (int i = 0; i < M->opt.change_points; i++)
		if (M->steps == M->change_at[i])
			sim__demote(&M->threads[best]);
	if (M->steps > 600 + 4 * M->opt.length)
		sim__demote(&M->threads[best]);
	return best;
}

void sim__ready(struct thread *t)
{
	t->state = THREAD_READY;
	t->word = NULL;
	M->ready |= 1u << (t - M->threads);
}

static void time_out(struct thread *t)
{
	if (t->deadline > M->now_ns)
		M->now_ns = t->deadline;
	t->timed_out = true;
	sim__ready(t);
}

static struct thread *first_deadline(void)
{
	struct thread *first = NULL;

	for (struct thread *t = M->threads; t < M->threads + M->nr_threads; t++)
		if (t->state == THREAD_BLOCKED && t->deadline != SIM_FOREVER && (!first || t->deadline < first->deadline))
			first = t;
	return first;
}

static void fail_deadlock(void)
{
	char list[200];
	size_t used = 0;

	for (int i = 0; i < M->nr_threads && used < sizeof list - 40; i++)
		if (M->threads[i].state == THREAD_BLOCKED)
			used += __builtin_snprintf(list + used, sizeof list - used, " %.20s(%d)", M->threads[i].name, i);
	sim_fail("deadlock: asleep for ever:%s", list);
}

/* No thread is ready: let time pass, or end the run. */
static void idle(void)
{
	struct thread *t = first_deadline();
	bool all_done = sim_all_done();

	if (all_done && (!t || M->nr_helper_timeouts++ >= 8))
		sim__end_run(SIM_PASSED);
	if (!t)
		fail_deadlock();
	if (t->deadline > M->now_ns)
		M->idle_ns += t->deadline - M->now_ns;
	if (!all_done && M->config.idle_limit_ns && M->idle_ns > M->config.idle_limit_ns)
		sim_fail("lost wake-up: nothing could run for %llu ms", (unsigned long long)M->idle_ns / 1000000);
	time_out(t);
}

/* Occasionally wake a sleeper for no reason, or end a short sleep early. */
static void disturb_sleepers(uint32_t r)
{
	struct thread *t = &M->threads[r % M->nr_threads];

	if (t->state != THREAD_BLOCKED)
		return;
	if (t->deadline != SIM_FOREVER && t->deadline < M->now_ns + 5000000)
		time_out(t);
	else if (M->spurious && M->config.spurious_wakeups)
		sim__ready(t);
}

/* Choose the thread of the next step; buffered stores may reach memory first. */
static int next_thread(void)
{
	for (;;) {
		uint32_t r;

		if (++M->steps > M->config.max_steps)
			sim__end_run(SIM_UNFINISHED);
		M->now_ns += SIM_STEP_NS;
		r = sim__draw();
		if ((r & 255) == 255)
			disturb_sleepers(r >> 8);
		if (!M->ready) {
			idle();
		} else if (M->buffered && (r & 7) == 0) {
			struct thread *t = &M->threads[(r >> 8) % M->nr_threads];

			if (t->nr_buffered)
				sim__buffer_flush_one(t);
		} else {
			return M->opt.sched == SIM_PCT ? choose_pct() : choose_random();
		}
	}
}

void sim__leave(void)
{
	void **from = M->cur < 0 ? &M->main_context : &M->threads[M->cur].context;
	int next = next_thread();

	if (M->config.nr_cpus)
		sim__cpu_place(&M->threads[next]);
	if (next == M->cur)
		return;
	if (M->cur >= 0)
		sim__buffer_hide(&M->threads[M->cur]);
	M->switches++;
	M->cur = next;
	sim__buffer_show(&M->threads[next]);
	sim__context_switch(from, M->threads[next].context);
}

static void run_handler(struct thread *t)
{
	t->in_handler = true;
	t->signals_left--;
	t->rseq_aborted = true;
	if (M->opt.model == SIM_TSO)
		sim__buffer_drain(t); /* an interrupt drains the buffer on x86; other CPUs do not guarantee that */
	if (M->opt.trace)
		sim__trace_text("T%d signal handler begins", M->cur);
	sim__held_release(t); /* the compiler moves no access into or out of a handler */
	t->handler();
	t->rseq_aborted = true;
	sim__held_release(t);
	if (M->opt.trace)
		sim__trace_text("T%d signal handler ends", M->cur);
	t->in_handler = false;
}

static void stop(struct thread *t)
{
	if (M->opt.trace)
		sim__trace_text("T%d stops for good", M->cur);
	t->state = THREAD_STOPPED;
	M->ready &= ~(1u << (t - M->threads));
	sim__cpu_remove(t);
	sim__leave();
}

void sim__point(void)
{
	struct thread *t = sim__current();

	if (!t)
		return;
	if (t->stop_in > 1)
		t->stop_in--;
	else if (t->stop_in && (!t->nr_locks || M->config.stops_in_locks))
		stop(t);
	sim__leave();
	if (t->handler && t->signals_left && !t->signals_blocked && !t->in_handler && sim__draw() % 16 == 0)
		run_handler(t);
}

void sim_point(const char *what)
{
	sim__point();
	if (M->opt.trace)
		sim__trace_text("T%d %s", M->cur, what);
}

void sim__block(struct thread *t, const uint32_t *word, uint64_t timeout_ns)
{
	t->state = THREAD_BLOCKED;
	t->word = word;
	t->timed_out = false;
	t->deadline = timeout_ns > SIM_FOREVER - M->now_ns ? SIM_FOREVER : M->now_ns + timeout_ns;
	M->ready &= ~(1u << (t - M->threads));
	sim__cpu_remove(t);
	sim__leave();
}
