/* SPDX-License-Identifier: MIT */
/* control.c - initialisation, settings, counters.
 *
 * Initialisation runs in the constructor, or earlier if another library's
 * constructor or a signal handler is the first user; with signals blocked, so that
 * a handler never waits for the code that it interrupted.
 *
 * IN1  everything initialised, then state and the canary | one of them read, then use
 */
#include "core.h"

#include "readers.h"
#include "report.h"
#include "run.h"
#include "settings.h"
#include "subsystem.h"
#include "thread.h"
#include "yield.h"

#include <quiesce/arch/rseq.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint32_t init_state; /* 0 not yet, 1 under way, 2 done */
struct quiesce__fixed quiesce__fixed;
uint32_t quiesce__in_use;
struct quiesce__counters quiesce__counters;

#define NOT_ASKED 1
static int membarrier_status = NOT_ASKED; /* or the result of platform_membarrier_init() */

/* ---- initialisation ---- */

/* Return 0 if light fences are possible, else -errno.  The kernel is asked only if light fences are wanted: a sandbox may kill a process
 * that makes the system call, and QUIESCE_FENCE=full promises that the library never makes it. */
static int ask_for_membarrier(void)
{
	if (membarrier_status == NOT_ASKED)
		membarrier_status = platform_membarrier_init();
	return membarrier_status;
}

static void fence_from_environment(void)
{
	static const char *const words[] = { "auto", "light", "full" }; /* as in enum quiesce_fence */
	uint32_t asked = quiesce__environment_word("QUIESCE_FENCE", words, 3);

	quiesce__fixed.light = asked != QUIESCE_FENCE_FULL && !ask_for_membarrier();
	if (asked == QUIESCE_FENCE_LIGHT && !quiesce__fixed.light)
		quiesce__say("QUIESCE_FENCE=light is impossible here (membarrier: %s); using full fences",
			     strerror(-membarrier_status));
}

static const struct platform_hooks hooks = {
	.fork_prepare = quiesce__fork_prepare,
	.fork_parent = quiesce__fork_parent,
	.fork_child = quiesce__fork_child,
	.thread_exit = quiesce__thread_exit,
	.exception = quiesce__run_report_exception,
};

static void init_all(void)
{
	quiesce__settings_from_environment();
	fence_from_environment();
	quiesce__readers_init();
	quiesce__each_subsystem(init);
	quiesce__heavy_init();
	platform_init(&hooks);
	quiesce__fork_init();
}

/* The thread that is in init_all(), whose allocations may retire objects; NULL: none. */
static const struct quiesce_tls_v1 *initializer;

static void initialise(void)
{
	uint32_t none = 0;

	/* IN1: full, pairs with IN1 in initialise() */
	if (quiesce_cmpxchg(IN1, &init_state, &none, 1)) {
		quiesce_store_relaxed(&initializer, quiesce__self()); /* Relaxed: only its own value matters to a thread. */
		init_all();
		quiesce_store_relaxed(&initializer, NULL); /* Relaxed: only its own value matters to a thread. */
		/* IN1: release, pairs with IN1 in initialise() */
		quiesce_store_release(IN1, &init_state, 2);
		platform_futex_wake(&init_state, INT32_MAX);
	}
	/* Sleep instead of yielding: the initialising thread may need the CPU of a caller with a higher priority. */
	/* IN1: acquire, pairs with IN1 in initialise() */
	while (quiesce_load_acquire(IN1, &init_state) != 2)
		platform_futex_wait(&init_state, 1, PLATFORM_FOREVER);
}

void quiesce__init_slow(void)
{
	struct platform_sigmask mask;
	int saved = errno;

	/* Relaxed: only the thread's own value matters to it.  For allocations in init_all(), enough is initialised. */
	if (quiesce_load_relaxed(&initializer) == quiesce__self() || quiesce__fork_is_new(quiesce__self()))
		return;
	platform_signals_block(&mask);
	initialise();
	quiesce__fork_detect();
	platform_signals_restore(&mask);
	errno = saved;
}

#if !defined(QUIESCE_SIM)
static void refuse_copies(void)
{
	int copies = platform_count_copies();

	if (copies <= 1 || quiesce__settings.allow_copies)
		return;
	quiesce__misuse(QUIESCE_MISUSE_COPIES,
			"%d copies of the library in one process do not see each other's readers; "
			"link one shared libquiesce, or set QUIESCE_ALLOW_COPIES=1 if they share no data",
			copies);
}

#if QUIESCE_TSAN
static void warn_of_tsan(void)
{
}
#else
extern void __tsan_acquire(void *address) __attribute__((weak)); /* part of ThreadSanitizer's runtime */

/* The sanitizer does not see this library's accesses, so it reports races that do not exist. */
static void warn_of_tsan(void)
{
	if (__tsan_acquire)
		quiesce__say("this program is built with ThreadSanitizer and this library is not, so that correct programs "
			     "get reports of races; link with the library of pkg-config quiesce-tsan");
}
#endif

/* The library's threads, handlers of fork() and destructors of threads execute code of the object that contains the library, perhaps a
 * plug-in: so that is never unloaded. */
__attribute__((constructor)) static void at_load(void)
{
	quiesce__init();
	warn_of_tsan();
	refuse_copies();
	quiesce__keep_loaded(&init_state);
}
#endif

/* ---- settings ---- */

int quiesce_set_fence(enum quiesce_fence fence)
{
	quiesce__init();
	if ((unsigned int)fence > QUIESCE_FENCE_FULL)
		return -EINVAL;
	if (quiesce_load_relaxed(&quiesce__in_use)) /* Relaxed: a latch. */
		return -EBUSY;
	if (fence == QUIESCE_FENCE_LIGHT && ask_for_membarrier())
		return membarrier_status;
	quiesce_store_relaxed(&quiesce__fixed.light, /* Relaxed: before first use. */
			      fence != QUIESCE_FENCE_FULL && !ask_for_membarrier());
	quiesce__each_subsystem(fence_chosen);
	return 0;
}

#if !defined(QUIESCE_SIM)
static const char *why_not_light(void)
{
	if (membarrier_status == NOT_ASKED)
		return "not asked for, as full fences were chosen";
	return membarrier_status ? strerror(-membarrier_status) : "there, but full fences were chosen";
}

void quiesce__promise_light_fences(void)
{
	quiesce__init();
	quiesce__fix_mode(); /* from now on the mode cannot be changed */
	if (quiesce_fence() == QUIESCE_FENCE_LIGHT)
		return;
	quiesce__say("this program was compiled with QUIESCE_LIGHT_FENCES_ONLY, but has full fences (membarrier: %s)",
		     why_not_light());
	abort();
}
#endif

enum quiesce_fence quiesce_fence(void)
{
	quiesce__init();
	/* Relaxed: fixed before first use. */
	return quiesce_load_relaxed(&quiesce__fixed.light) ? QUIESCE_FENCE_LIGHT : QUIESCE_FENCE_FULL;
}

const char *quiesce_version(void)
{
	return QUIESCE_VERSION;
}

/* ---- counters ---- */

static void fill_stats(struct quiesce_stats *stats)
{
	struct quiesce__counters *c = &quiesce__counters;

	*stats = (struct quiesce_stats){ .readers = quiesce__readers_live() };
	quiesce__each_subsystem(stats, stats);
	stats->yields = quiesce__yields();
	/* Relaxed: counters order nothing. */
	stats->grace_periods = quiesce_load_relaxed(&c->grace_periods);
	stats->expedited = quiesce_load_relaxed(&c->expedited);
	stats->membarriers = quiesce_load_relaxed(&c->membarriers);
	stats->sleeps = quiesce_load_relaxed(&c->sleeps);
	stats->wakeups = quiesce_load_relaxed(&c->wakeups);
	stats->stalls = quiesce_load_relaxed(&c->stalls);
	stats->backpressure = quiesce_load_relaxed(&c->backpressure);
	stats->shazptr_waits = quiesce_load_relaxed(&c->shazptr_waits);
	stats->shazptr_blocked = quiesce_load_relaxed(&c->shazptr_blocked);
	stats->scans = quiesce_load_relaxed(&c->scans);
	stats->overflows = quiesce_load_relaxed(&c->overflows);
	stats->fallback_guards = quiesce_load_relaxed(&c->fallback_guards);
	stats->hazptr_scans = quiesce_load_relaxed(&c->hazptr_scans); /* Relaxed: a counter. */
	stats->srcu_grace_periods = quiesce_load_relaxed(&c->srcu_grace_periods); /* Relaxed: a counter. */
	stats->hazptr_swept = quiesce_load_relaxed(&c->hazptr_swept); /* Relaxed: a counter. */
	stats->garbage_warnings = quiesce_load_relaxed(&c->garbage_warnings); /* Relaxed: a counter. */
	stats->hazptr_queues_visited = quiesce_load_relaxed(&c->hazptr_queues_visited); /* Relaxed: a counter. */
}

void quiesce_get_stats(struct quiesce_stats *ret_stats, size_t size)
{
	struct quiesce_stats stats;

	quiesce__init();
	fill_stats(&stats);
	memset(ret_stats, 0, size);
	memcpy(ret_stats, &stats, size < sizeof stats ? size : sizeof stats);
}
