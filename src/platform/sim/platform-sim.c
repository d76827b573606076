/* SPDX-License-Identifier: MIT */
/* platform-sim.c - platform.h on the simulated machine. */
#include "machine.h"
#include "platform/platform.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct sim_site syscall_site = { "system call", "", 0 };

/* ---- membarrier ---- */

int platform_membarrier_init(void)
{
	return M->config.membarrier == SIM_MEMBARRIER_ABSENT ? -ENOSYS : 0;
}

/* The interrupt of a membarrier: a full fence on the target.  Accesses of the caller before the call precede
 * accesses of the target after the interrupt; accesses of the target before it precede accesses of the caller
 * after the call. */
static void interrupt(struct thread *target, const struct view *before, struct view *gathered)
{
	sim__buffer_drain(target); /* a store that the compiler moved down stays held */
	view_join(&target->cur, before);
	view_fence(target);
	view_join(gathered, &target->cur);
}

/* A membarrier is not atomic: other threads run between two interrupts.  @restart: each interrupt also aborts
 * the target's restartable sequence. */
static void membarrier(struct thread *t, bool restart)
{
	struct view before, gathered;
	int n = M->nr_threads;

	sim__fence(t);
	before = gathered = t->cur; /* copied whole: locations may be added during the call */
	for (int i = 0; i < n; i++) {
		struct thread *target = &M->threads[i];

		if (target == t)
			continue;
		/* An ended thread left its CPU with a fence: it is ordered before, without an interrupt. */
		if (target->state == THREAD_DONE) {
			view_join(&gathered, &target->cur);
			continue;
		}
		sim__point();
		interrupt(target, &before, &gathered);
		target->rseq_aborted |= restart;
	}
	view_join(&t->cur, &gathered);
	view_fence(t);
}

/* Membarriers that take time are executed one after the other. */
static void membarrier_takes_time(struct thread *t)
{
	uint64_t end = (M->membarriers_end > M->now_ns ? M->membarriers_end : M->now_ns) + M->config.membarrier_ns;

	M->membarriers_end = end;
	while (M->now_ns < end)
		sim__block(t, NULL, end - M->now_ns);
}

static int membarrier_call(bool restart)
{
	struct thread *t = sim__current();

	if (M->config.membarrier == SIM_MEMBARRIER_ABSENT)
		return -ENOSYS;
	if (!t || M->config.membarrier == SIM_MEMBARRIER_LIES)
		return 0;
	sim__held_release(t);
	sim__point();
	sim__trace("membarrier", NULL, 0, SIM_FULL, &syscall_site);
	if (M->config.membarrier_ns)
		membarrier_takes_time(t);
	membarrier(t, restart);
	sim__trace("membarrier-ends", NULL, 0, SIM_FULL, &syscall_site);
	return 0;
}

int platform_membarrier(void)
{
	return M->config.membarrier == SIM_MEMBARRIER_LOST ? -EPERM : membarrier_call(false);
}

int platform_try_membarrier(void)
{
	return platform_membarrier();
}

int platform_membarrier_restart(void)
{
	if (M->config.membarrier == SIM_MEMBARRIER_LOST)
		return -EPERM;
	return M->config.membarrier == SIM_MEMBARRIER_NO_RESTART ? -ENOSYS : membarrier_call(true);
}

/* The threads are switched out one after the other. */
int platform_fence_by_turns(void)
{
	return membarrier_call(true);
}

/* ---- sleeping ---- */

int platform_futex_wait(uint32_t *word, uint32_t value, uint64_t timeout_ns)
{
	struct thread *t = sim__current();
	uint32_t found;

	if (!t) {
		sim_fail("futex wait outside of the threads");
		return 0;
	}
	sim__held_release(t);
	sim__point();
	sim__fence(t);
	found = sim__read_newest(t, word, sizeof *word);
	sim__trace(found == value ? "futex-wait" : "futex-differs", word, found, SIM_FULL, &syscall_site);
	if (found == value)
		sim__block(t, word, timeout_ns);
	else
		t->timed_out = false;
	sim__fence(t);
	return t->timed_out ? -ETIMEDOUT : 0;
}

int platform_futex_wait_shared(uint32_t *word, uint32_t value, uint64_t timeout_ns)
{
	return platform_futex_wait(word, value, timeout_ns);
}

uint32_t platform_futex_wake(uint32_t *word, uint32_t nr_threads)
{
	struct thread *t = sim__current();
	uint32_t nr_woken = 0;
	int first;

	if (!t)
		return 0;
	sim__held_release(t);
	sim__point();
	sim__fence(t);
	sim__trace("futex-wake", word, nr_threads, SIM_FULL, &syscall_site);
	first = sim__draw() % M->nr_threads;
	for (int i = 0; i < M->nr_threads && nr_woken < nr_threads; i++) {
		struct thread *sleeper = &M->threads[(first + i) % M->nr_threads];

		if (sleeper->state == THREAD_BLOCKED && sleeper->word == word) {
			sim__ready(sleeper);
			nr_woken++;
		}
	}
	return nr_woken;
}

int platform_lock_pi(uint32_t *word, uint32_t tid)
{
	(void)tid;
	(void)word;
	return -ENOSYS;
}

int platform_unlock_pi(uint32_t *word)
{
	(void)word;
	return -ENOSYS;
}

void platform_yield(void)
{
	struct thread *t = sim__current();

	if (!t)
		return;
	sim__demote(t);
	sim__held_release(t);
	sim__point();
	sim__trace("yield", NULL, 0, SIM_RELAXED, &syscall_site);
}

/* The clock sometimes jumps ahead, so that code on both sides of a deadline runs. */
uint64_t platform_now_ns(void)
{
	if (M->cur >= 0) {
		sim__point();
		if (sim__draw() % 16 == 0)
			M->now_ns += 100000;
	}
	return M->now_ns;
}

/* ---- threads ---- */

#define FIRST_TID 100

uint32_t platform_tid(void)
{
	return FIRST_TID + M->cur;
}

bool platform_in_process(void)
{
	return true;
}

void platform_process_begin(void)
{
}

/* A caller that learns from the kernel that a thread is gone is ordered after all accesses of that thread. */
bool platform_thread_alive(uint32_t tid)
{
	struct thread *t = sim__current(), *other = &M->threads[tid - FIRST_TID];

	sim__point();
	if (tid - FIRST_TID >= (uint32_t)M->nr_threads)
		return false;
	if (other->state != THREAD_DONE)
		return true;
	if (t)
		view_join(&t->cur, &other->cur);
	return false;
}

char platform_thread_state(uint32_t tid)
{
	return platform_thread_alive(tid) ? 'R' : '?';
}

uint32_t platform_cpu(void)
{
	return 0;
}

uint32_t platform_cpu_of(int64_t distance)
{
	(void)distance;
	return PLATFORM_NO_CPU;
}

void platform_thread_name(uint32_t tid, char name[16])
{
	bool known = tid - FIRST_TID < (uint32_t)M->nr_threads;

	snprintf(name, 16, "%s", known ? M->threads[tid - FIRST_TID].name : "?");
}

void platform_describe_code(const void *at, char *text, size_t size)
{
	snprintf(text, size, "%p", at);
}

static bool injected(int *failures)
{
	if (*failures > 0)
		return (*failures)--;
	return *failures < 0;
}

int platform_thread_start(const struct platform_start *start, const struct platform_thread *how, pthread_t *ret)
{
	struct thread *t = sim__current();
	int nr;

	(void)how;
	if (injected(&M->config.thread_start_failures))
		return -EAGAIN;
	if (t) {
		sim__held_release(t);
		sim__point();
		sim__fence(t);
	}
	nr = sim__spawn(start->fn, start->arg, "thread", true);
	*ret = (pthread_t)nr;
	return nr < 0 ? -EAGAIN : 0;
}

void platform_thread_settle(pthread_t thread, const struct platform_thread *how)
{
	(void)how;
	if (M->threads[thread].state == THREAD_DONE)
		sim_fail("a thread has ended when its starter gives it its CPUs");
}

void platform_thread_begin(const char *name, const struct platform_thread *how)
{
	(void)how;
	if (sim__current())
		sim__current()->name = name;
}

int platform_thread_change(uint32_t tid, const struct platform_thread *how, const char *name)
{
	(void)tid;
	(void)how;
	(void)name;
	return 0;
}

void platform_cpus_of_process(struct platform_cpus *ret)
{
	memset(ret, 0xff, sizeof *ret);
}

bool platform_cpus_of_list(const char *file, struct platform_cpus *ret)
{
	(void)file;
	(void)ret;
	return false;
}

int platform_arm_thread_exit(void)
{
	struct thread *t = sim__current();

	if (injected(&M->config.arm_exit_failures))
		return -EAGAIN;
	if (t)
		t->arm_exit = true;
	return 0;
}

void platform_run(void (*code)(void *arg), void (*ended)(void *arg), void *arg)
{
	struct thread *t = sim__current();
	struct sim__run run = { ended, arg, t ? t->runs : NULL };

	if (t)
		t->runs = &run;
	code(arg);
	if (t)
		t->runs = run.outer;
}

bool platform_set_cancelable(bool may)
{
	struct thread *t = sim__current();
	bool before = t && !t->uncancelable;

	if (t)
		t->uncancelable = !may;
	return before;
}

void platform_signals_block(struct platform_sigmask *ret_old)
{
	struct thread *t = sim__current();

	memset(ret_old, 0, sizeof *ret_old);
	if (!t)
		return;
	sim__point();
	ret_old->bits[0] = t->signals_blocked;
	t->signals_blocked = true;
}

void platform_signals_restore(const struct platform_sigmask *old)
{
	struct thread *t = sim__current();

	if (!t)
		return;
	t->signals_blocked = old->bits[0];
	sim__point();
}

/* ---- process ---- */

int platform_init(const struct platform_hooks *hooks)
{
	(void)hooks; /* scenarios call the library's functions directly */
	return 0;
}

static struct platform_canary canary;

struct platform_canary *platform_canary(void)
{
	return &canary;
}

void sim__canary_wipe(void)
{
	memset(&canary, 0, sizeof canary);
	sim_forget(&canary, sizeof canary);
}

bool platform_is_first_thread(void)
{
	return M->cur == M->first;
}

static void *take_pages(size_t bytes)
{
	void *start;

	M->arena_used = (M->arena_used + 4095) & ~(size_t)4095; /* align after blocks */
	start = M->arena + M->arena_used;
	bytes = (bytes + 4095) & ~(size_t)4095;
	if (bytes > SIM_ARENA - M->arena_used)
		return NULL;
	M->arena_used += bytes;
	return start;
}

void *platform_reserve(size_t bytes)
{
	int turn = M->config.reserve_turn;
	void *start;

	if (turn)
		M->config.reserve_turn = 3 - turn;
	start = turn == 1 ? NULL : take_pages(bytes);
	if (start)
		sim_forget(start, bytes);
	return start;
}

/* Several threads may commit the same memory, and some may use it already. */
int platform_commit(void *start, size_t bytes)
{
	(void)start;
	(void)bytes;
	return 0;
}

/* Every byte is available at once. */
void *platform_arena_reserve(size_t bytes, size_t max)
{
	return platform_reserve(bytes > max ? bytes : max);
}

int platform_arena_extend(void *start, size_t bytes)
{
	(void)start;
	(void)bytes;
	return -EEXIST;
}

void platform_objects_begin(void *start, size_t bytes)
{
	(void)start;
	(void)bytes;
}

/* Not zeroes: memory that is locked keeps its content. */
void platform_objects_end(void *start, size_t bytes)
{
	memset(start, 0xff, bytes);
	sim_forget(start, bytes);
}

bool platform_poisons(void)
{
	return false;
}

void platform_poison(const void *start, size_t bytes, bool on)
{
	(void)start;
	(void)bytes;
	(void)on;
}

/* Pages are never reused in a run, so that a use after the release sees stale data at worst. */
void *platform_pages_get(size_t bytes)
{
	void *start = take_pages(bytes);

	if (start)
		sim_forget(start, bytes);
	return start;
}

void platform_pages_put(void *start, size_t bytes)
{
	memset(start, 0xa5, bytes);
	sim_forget(start, bytes);
}

void platform_release(void *start, size_t bytes)
{
	platform_pages_put(start, bytes);
}

/* Blocks of the heap are never reused in a run either. */
static void heap_is_called(void)
{
	if (M->config.heap_hook && M->cur >= 0)
		M->config.heap_hook();
}

void *platform_block_get(size_t bytes)
{
	void *start;

	heap_is_called();
	start = M->arena + M->arena_used;
	bytes = (bytes + 15) & ~(size_t)15;
	if (injected(&M->config.block_failures) || bytes > SIM_ARENA - M->arena_used)
		return NULL;
	M->arena_used += bytes;
	sim_forget(start, bytes);
	return start;
}

void platform_block_put(void *start, size_t bytes)
{
	heap_is_called();
	platform_pages_put(start, bytes);
}

void *platform_lines_get(size_t bytes)
{
	heap_is_called();
	return injected(&M->config.lines_failures) ? NULL : platform_pages_get(bytes);
}

void platform_lines_put(void *start, size_t bytes)
{
	heap_is_called();
	platform_pages_put(start, bytes);
}

uint64_t platform_random(void)
{
	return 0x6a09e667f3bcc908u + M->now_ns;
}

int platform_count_copies(void)
{
	return 1;
}

const char *platform_location(const void *address, struct platform_location *ret)
{
	snprintf(ret->text, sizeof ret->text, "%p", address);
	return ret->text;
}

const char *platform_getenv(const char *name)
{
	return M->config.getenv_hook ? M->config.getenv_hook(name) : NULL;
}

void platform_free(void *object)
{
	heap_is_called();
	if (M->config.free_hook)
		M->config.free_hook(object);
	else
		sim_fail("platform_free() without a hook in the scenario");
}

void platform_write_stderr(const char *text, size_t length)
{
	size_t space = sizeof M->captured - 1 - M->nr_captured;

	if (length > space)
		length = space;
	memcpy(M->captured + M->nr_captured, text, length);
	M->nr_captured += length;
	M->captured[M->nr_captured] = 0;
}

void platform_die(void)
{
	sim_fail("library aborted: %s", M->captured);
	__builtin_trap(); /* in setup() there is no thread to switch away from */
}
