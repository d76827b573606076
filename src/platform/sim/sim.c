/* SPDX-License-Identifier: MIT */
/* sim.c - one run of the machine, from reset to result.
 *
 * The program's variables are restored before each run by copying the writable part of the executable, except
 * for the section sim_keep.  That needs a dynamically linked executable: in a static one the C library's own
 * state would be restored, too.  Threads that a failed run leaves behind are abandoned.
 */
#include "machine.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

extern char __data_start[], _end[], __start_sim_keep[], __stop_sim_keep[];

struct machine *sim__machine SIM_KEEP;
static char *snapshot SIM_KEEP;

/* The ranges to restore: [ret_part[i][0], ret_part[i][1]). */
static void restored_parts(char *ret_part[2][2])
{
	ret_part[0][0] = __data_start;
	ret_part[0][1] = _end;
	ret_part[1][0] = ret_part[1][1] = _end;
	if (&__start_sim_keep[0] >= &__data_start[0] && &__stop_sim_keep[0] <= &_end[0]) {
		ret_part[0][1] = __start_sim_keep;
		ret_part[1][0] = __stop_sim_keep;
	}
}

static void variables_copy(bool restore)
{
	char *part[2][2];

	restored_parts(part);
	for (int i = 0; i < 2; i++) {
		char *saved = snapshot + (part[i][0] - __data_start);
		size_t bytes = part[i][1] - part[i][0];

		if (restore)
			memcpy(part[i][0], saved, bytes);
		else
			memcpy(saved, part[i][0], bytes);
	}
}

/* The code under test has followed an invalid pointer: the run fails.  The handler never returns; main()
 * continues on its own stack. */
static void crashed(int signal, siginfo_t *info, void *context)
{
	(void)context;
	if (M->cur >= 0)
		sim_fail("%s at address %p", signal == SIGSEGV ? "invalid access" : "crash", info->si_addr);
	raise(SIGABRT);
}

static void catch_crashes(void)
{
	static const int signals[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE };
	struct sigaction action = { .sa_sigaction = crashed, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER };

	sigaltstack(&(stack_t){ .ss_sp = M->crash_stack, .ss_size = sizeof M->crash_stack }, NULL);
	for (unsigned i = 0; i < sizeof signals / sizeof signals[0]; i++)
		sigaction(signals[i], &action, NULL);
}

void sim_init(void)
{
	M = mmap(NULL, sizeof *M, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	snapshot = malloc(_end - __data_start);
	if (M == MAP_FAILED || !snapshot) {
		perror("simulator");
		exit(2);
	}
	M->cur = -1;
	catch_crashes();
	variables_copy(false);
}

static void config_reset(void)
{
	M->config = (struct sim_config){
		.spurious_wakeups = true,
		.rseq_kind = 2,
		.max_steps = 20000,
		.idle_limit_ns = 5000000000ull,
	};
}

/* Draw the parameters of this run: a mixture over seeds finds more than any one setting. */
static void draw_habits(const struct sim_options *options)
{
	static const uint8_t stale[] = { 1, 4, 7 }, sticky[] = { 0, 4, 7 };

	M->random = options->seed * 0x9e3779b97f4a7c15ull + 1;
	for (int i = 0; i < 4; i++)
		sim__draw();
	M->stale = stale[sim__draw() % 3];
	M->sticky = sticky[sim__draw() % 3];
	M->spurious = sim__draw() % 4 == 0;
	M->lowest_priority = 0;
	for (int i = 0; i < 8; i++)
		M->change_at[i] = sim__draw() % options->length;
}

/* Restart all stamps at 0 before they overflow, which takes some thousand runs. */
static void stamps_reset(void)
{
	for (int i = 0; i < SIM_LOCATIONS; i++) {
		M->locations[i].stamp = 0;
		for (int k = 0; k < SIM_HISTORY && i < M->most_locations; k++)
			memset(M->message_views[i][k].stamp, 0, sizeof M->sc.stamp);
	}
	for (int i = 0; i < SIM_MAX_THREADS; i++) {
		memset(M->threads[i].cur.stamp, 0, sizeof M->sc.stamp);
		memset(M->threads[i].acq.stamp, 0, sizeof M->sc.stamp);
		memset(M->threads[i].rel.stamp, 0, sizeof M->sc.stamp);
		memset(M->cpus[i].left.stamp, 0, sizeof M->sc.stamp);
		memset(M->cid_left[i].stamp, 0, sizeof M->sc.stamp);
	}
	memset(M->sc.stamp, 0, sizeof M->sc.stamp);
	M->highest_stamp = 0;
}

static void reset(const struct sim_options *options)
{
	if (M->nr_locations > M->most_locations)
		M->most_locations = M->nr_locations;
	if (M->highest_stamp > 8000)
		stamps_reset();
	variables_copy(true);
	M->opt = *options;
	M->buffered = options->model == SIM_TSO || options->model == SIM_PSO;
	M->result = SIM_PASSED;
	M->stopped = false;
	M->failure[0] = 0;
	M->nr_captured = 0;
	M->captured[0] = 0;
	M->steps = M->switches = 0;
	M->now_ns = 1000000000;
	M->idle_ns = M->membarriers_end = 0;
	M->nr_helper_timeouts = 0;
	M->hash = 0xcbf29ce484222325ull;
	M->cur = -1;
	M->nr_threads = M->nr_done = 0;
	M->ready = 0;
	M->epoch++;
	M->nr_locations = 0;
	memset(M->arena, 0, M->arena_used);
	M->arena_used = 0;
	memset(M->objects, 0, M->nr_objects * sizeof M->objects[0]);
	M->nr_objects = 0;
	sim__cpu_reset();
	config_reset();
	draw_habits(options);
}

/* Let the threads run until one of them ends the run. */
static void run_threads(void)
{
	if (M->stopped || !M->ready)
		return;
	sim__leave();
}

enum sim_result sim_run(const struct sim_scenario *scenario, const struct sim_options *options)
{
	reset(options);
	scenario->setup();
	if (scenario->but)
		scenario->but();
	run_threads();
	M->cur = -1;
	for (int i = 0; i < M->nr_threads; i++)
		sim__buffer_drain(&M->threads[i]);
	if (M->result == SIM_PASSED && scenario->finish)
		scenario->finish();
	return M->result;
}

/* Called on a simulated thread; main() continues in run_threads(). */
void sim__end_run(enum sim_result result)
{
	void *abandoned;
	void **from = M->cur < 0 ? &abandoned : &M->threads[M->cur].context;

	if (M->result == SIM_PASSED) {
		M->result = result;
		if (M->cur >= 0)
			sim__buffer_hide(&M->threads[M->cur]);
	}
	M->stopped = true;
	sim__context_switch(from, M->main_context);
	__builtin_unreachable();
}

void sim_fail(const char *format, ...)
{
	va_list args;

	if (M->result != SIM_FAILED) {
		va_start(args, format);
		vsnprintf(M->failure, sizeof M->failure, format, args);
		va_end(args);
		M->result = SIM_FAILED;
		if (M->opt.trace)
			sim__trace_text("FAILURE: %s", M->failure);
	}
	if (M->cur >= 0)
		sim__end_run(SIM_FAILED);
	M->stopped = true;
}

/* ---- threads ---- */

static void thread_reset(struct thread *t)
{
	/* Stamps stay: those of earlier runs are below all of this one, see location_new(). */
	memset(t->cur.clock, 0, sizeof t->cur.clock);
	memset(t->acq.clock, 0, sizeof t->acq.clock);
	memset(t->rel.clock, 0, sizeof t->rel.clock);
	memset(&t->acq_any, 0, sizeof *t - offsetof(struct thread, acq_any));
	memset(&t->tls, 0, sizeof t->tls);
	t->cpu = t->cid = -1;
}

int sim__spawn(void (*fn)(void *), void *arg, const char *name, bool helper)
{
	struct thread *t = &M->threads[M->nr_threads];

	if (M->nr_threads == SIM_MAX_THREADS) {
		sim_fail("machine: more than %d threads", SIM_MAX_THREADS);
		return -1;
	}
	thread_reset(t);
	if (M->cur >= 0)
		view_copy(&t->cur, &M->threads[M->cur].cur);
	t->fn = fn;
	t->arg = arg;
	t->name = name;
	t->helper = helper;
	t->signals_blocked = helper;
	t->priority = 1000 + sim__draw() % 1000;
	if (quiesce__tls_init)
		quiesce__tls_init(&t->tls);
	sim_forget(&t->tls, sizeof t->tls);
	sim__context_make(t);
	M->nr_threads++;
	M->ready |= 1u << (t - M->threads);
	return t - M->threads;
}

int sim_spawn(void (*fn)(void *), void *arg, const char *name)
{
	return sim__spawn(fn, arg, name, false);
}

static void thread_finish(struct thread *t)
{
	t->handler = NULL;
	sim__point(); /* the end of a thread is a step of its own, and a fence */
	sim__fence(t);
	sim__cpu_remove(t);
	t->state = THREAD_DONE;
	M->ready &= ~(1u << (t - M->threads));
	M->nr_done++;
	sim__leave();
	__builtin_unreachable();
}

static void thread_exit(struct thread *t)
{
	if (t->arm_exit && quiesce__thread_exit)
		quiesce__thread_exit();
	sim__locks_at_end(t);
	thread_finish(t);
	__builtin_unreachable();
}

void sim__thread_main(void)
{
	struct thread *t = sim__current();

	t->fn(t->arg);
	thread_exit(t);
}

/* Handlers run on top of the stack, and the frames below are abandoned. */
void sim_exit(void)
{
	struct thread *t = sim__current();
	struct sim__run *run;

	t->uncancelable = true;
	while ((run = t->runs)) {
		t->runs = run->outer;
		run->ended(run->arg);
	}
	thread_exit(t);
	__builtin_unreachable();
}

bool sim_cancelable(void)
{
	return !sim__current()->uncancelable;
}

void sim_die(void)
{
	sim__current()->killed = true;
	thread_finish(sim__current());
	__builtin_unreachable();
}

void sim_stop_within(uint32_t points)
{
	sim__current()->stop_in = 1 + sim__draw() % points;
}

/* End thread @t at a fork.  The child has its stores, even buffered ones: no store to the child's memory is
 * under way. */
static void vanish(struct thread *t)
{
	sim__buffer_drain(t);
	t->held.location = NULL;
	t->handler = NULL;
	t->killed = true;
	if (t->state == THREAD_READY)
		sim__cpu_remove(t);
	t->state = THREAD_DONE;
	t->word = NULL;
	M->ready &= ~(1u << (t - M->threads));
	M->nr_done++;
}

void sim_fork(void)
{
	struct thread *self = sim__current();

	sim__held_release(self);
	sim__point();
	sim__fence(self);
	for (struct thread *t = M->threads; t < M->threads + M->nr_threads; t++) {
		if (t == self)
			continue;
		if (t->state != THREAD_DONE)
			vanish(t);
		view_join(&self->cur, &t->cur); /* joined for ended threads, too: their stores are in the child's memory */
	}
	view_fence(self);
	M->first = M->cur;
	sim__canary_wipe();
	if (M->opt.trace)
		sim__trace_text("T%d is alone", M->cur);
}

bool sim_all_done(void)
{
	for (int i = 0; i < M->nr_threads; i++)
		if (!M->threads[i].helper && M->threads[i].state < THREAD_STOPPED)
			return false;
	return true;
}

int sim_nr_helpers(void)
{
	int nr = 0;

	for (int i = 0; i < M->nr_threads; i++)
		nr += M->threads[i].helper && M->threads[i].state != THREAD_DONE;
	return nr;
}

/* ---- queries ---- */

struct sim_config *sim_config(void) { return &M->config; }
int sim_self(void) { return M->cur; }
const char *sim_failure(void) { return M->failure; }
const char *sim_stderr(void) { return M->captured; }
uint32_t sim_steps(void) { return M->steps; }
uint64_t sim_trace_hash(void) { return M->hash; }
uint64_t sim_now_ns(void) { return M->now_ns; }
void sim_leap(uint64_t ns) { M->now_ns += ns; }
int sim_nr_switches(void) { return M->switches; }
void sim_saw(void) { M->nr_saw++; }
uint64_t sim_nr_saw(void) { return M->nr_saw; }
uint32_t sim_random(uint32_t below) { return sim__draw() % below; }

void sim_set_signal(void (*handler)(void), int times)
{
	sim__current()->handler = handler;
	sim__current()->signals_left = times;
}

struct quiesce_tls_v1 *quiesce_sim_self(void)
{
	/* setup() and finish() act as one more thread. */
	static struct quiesce_tls_v1 outside;
	static bool outside_ready;

	if (M->cur >= 0)
		return &M->threads[M->cur].tls;
	if (!outside_ready && quiesce__tls_init)
		quiesce__tls_init(&outside);
	outside_ready = true;
	return &outside;
}
