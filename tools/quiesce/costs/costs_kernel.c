/* SPDX-License-Identifier: MIT */
/* costs_kernel.c - operations of the kernel: system calls, membarriers, wake-ups. */
#include <errno.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <quiesce/atomic.h>

#include "costs.h"
#include "team.h"

#define WAKES 100       /* wake-ups in each round */
#define ASLEEP_NS 50000 /* a pause long enough for the other thread to fall asleep */

static uint32_t empty;

COST_LOOP(syscall, "syscall", "a system call that does nothing: getppid()", syscall(SYS_getppid));
COST_LOOP(yield, "sched_yield", "sched_yield() without another runnable thread", sched_yield());
COST_LOOP(wake_empty, "wake_empty", "futex wake without a waiter", syscall(SYS_futex, &empty, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0));

/* ---- membarrier ---- */

static long membarrier(int command)
{
	return syscall(SYS_membarrier, command, 0, 0);
}

static void membarrier_batch(uint64_t turns)
{
	while (turns--)
		membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

static bool membarrier_ready(void)
{
	if (!membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) && !membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED))
		return true;
	job_send_note("left out: membarrier: %s", strerror(errno));
	return false;
}

static int measure_membarrier_idle(const struct cost *cost, const struct job *job)
{
	return membarrier_ready() ? cost_simple(cost, job) : EXIT_UNAVAILABLE;
}

const struct cost cost_membarrier_idle = {
	.op = { .name = "membarrier_idle", .what = "expedited membarrier, the other threads of the process asleep" },
	.measure = measure_membarrier_idle,
	.batch = membarrier_batch,
	.per_turn = 1,
};

struct siblings {
	const struct cost *cost;
	const struct job *job;
	struct spin_barrier barrier;
	uint32_t stop; /* written by thread 0 */
};

static void beside_a_sibling(struct member *m)
{
	struct siblings *s = m->team->arg;

	spin_barrier_wait(&s->barrier);
	if (m->index == 0) {
		cost_simple(s->cost, s->job);
		quiesce_store_relaxed(&s->stop, 1);
	} else {
		while (!quiesce_load_relaxed(&s->stop))
			quiesce_cpu_relax();
	}
}

static int measure_membarrier_busy(const struct cost *cost, const struct job *job)
{
	struct siblings s = { .cost = cost, .job = job };
	struct team team = { .nr = 2, .pinned = true, .body = beside_a_sibling, .arg = &s };

	if (!cost_two_cpus() || !membarrier_ready())
		return EXIT_UNAVAILABLE;
	spin_barrier_init(&s.barrier, 2);
	team_start(&team);
	team_join(&team);
	return 0;
}

const struct cost cost_membarrier_busy = {
	.op = { .name = "membarrier_busy", .what = "expedited membarrier, one other thread of the process running on another CPU" },
	.measure = measure_membarrier_busy,
	.batch = membarrier_batch,
	.per_turn = 1,
};

/* ---- wake-ups ---- */

struct wakes {
	const struct job *job;
	bool latency;
	uint32_t word;   /* futex word: thread 0 counts wake-ups in it */
	uint32_t ready;  /* written by thread 1: the number of the wake-up for which it is about to sleep */
	uint64_t awake_at; /* written by thread 1: its clock, published by the next value of @ready */
};

static void sleeper(struct wakes *w)
{
	for (uint32_t i = 0; i < WAKES; i++) {
		/* raw: the release publishes awake_at; the tool has no labels. */
		__atomic_store_n(&w->ready, i + 1, __ATOMIC_RELEASE);
		while (quiesce_load_relaxed(&w->word) == i)
			syscall(SYS_futex, &w->word, FUTEX_WAIT_PRIVATE, i, NULL, NULL, 0);
		w->awake_at = now_ns();
	}
	/* raw: the release publishes awake_at; the tool has no labels. */
	__atomic_store_n(&w->ready, WAKES + 1, __ATOMIC_RELEASE);
}

static void await_sleeper(const struct wakes *w, uint32_t turn)
{
	/* raw: the acquire belongs to the release in sleeper(). */
	while (__atomic_load_n(&w->ready, __ATOMIC_ACQUIRE) != turn)
		quiesce_cpu_relax();
}

static void waker(struct wakes *w)
{
	for (uint32_t i = 0; i < WAKES; i++) {
		uint64_t begin, end;
		long woken;

		await_sleeper(w, i + 1);
		for (begin = now_ns(); now_ns() - begin < ASLEEP_NS;)
			quiesce_cpu_relax();
		begin = now_ns();
		quiesce_store_relaxed(&w->word, i + 1);
		woken = syscall(SYS_futex, &w->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
		end = now_ns();
		await_sleeper(w, i + 2);
		if (woken == 1) /* thread 1 was asleep */
			job_send(SCENARIO_COST, 2, w->job->round, (double)((w->latency ? w->awake_at : end) - begin));
	}
}

static void wake_body(struct member *m)
{
	(m->index ? sleeper : waker)(m->team->arg);
}

static int measure_wakes(const struct cost *cost, const struct job *job)
{
	struct wakes w = { .job = job, .latency = cost == &cost_wake_run };
	struct team team = { .nr = 2, .pinned = true, .body = wake_body, .arg = &w };

	if (!cost_two_cpus())
		return EXIT_UNAVAILABLE;
	team_start(&team);
	team_join(&team);
	return 0;
}

const struct cost cost_wake_call = {
	.op = { .name = "wake_call", .what = "futex wake of a thread asleep on another CPU: the call" },
	.measure = measure_wakes,
};
const struct cost cost_wake_run = {
	.op = { .name = "wake_run", .what = "futex wake of a thread asleep on another CPU: until that thread runs" },
	.measure = measure_wakes,
};
