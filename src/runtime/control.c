/* SPDX-License-Identifier: MIT */
/* control.c - initialisation, settings, counters, fork.
 *
 * Initialisation runs in the constructor, or earlier if another library's
 * constructor or a signal handler is the first user; with signals blocked, so that
 * a handler never waits for the code that it interrupted.
 *
 * IN1  everything initialised, then state | state read, then use
 */
#include "core.h"

#include "gate.h"
#include "held.h"
#include "helper.h"
#include "later.h"
#include "queued.h"
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

uint32_t quiesce__init_state; /* 0 not yet, 1 under way, 2 done */
uint32_t quiesce__light;
uint32_t quiesce__in_use;
struct quiesce__counters quiesce__counters;

uint32_t quiesce__fork_generation;
const struct quiesce_tls_v1 *quiesce__fork_survivor;
static uint32_t no_canary = 1;
uint32_t *quiesce__fork_canary = &no_canary; /* before initialisation there is nothing to repair */

static int membarrier_status = -ENOSYS; /* what platform_membarrier_init() said */

/* ---- initialisation ---- */

static void fence_from_environment(void)
{
	static const char *const words[] = { "auto", "light", "full" }; /* as in enum quiesce_fence */
	uint32_t asked = quiesce__environment_word("QUIESCE_FENCE", words, 3);

	quiesce__light = asked != QUIESCE_FENCE_FULL && membarrier_status == 0;
	if (asked == QUIESCE_FENCE_LIGHT && !quiesce__light)
		quiesce__say("QUIESCE_FENCE=light is impossible here (membarrier: %s); using full fences",
			     strerror(-membarrier_status));
}

static const struct platform_hooks hooks = {
	.fork_prepare = quiesce__fork_prepare,
	.fork_parent = quiesce__fork_parent,
	.fork_child = quiesce__fork_child,
	.thread_exit = quiesce__thread_exit,
	.exception = quiesce__run_throws,
};

static void init_all(void)
{
	quiesce__threads_init();
	quiesce__settings_from_environment();
	membarrier_status = platform_membarrier_init();
	fence_from_environment();
	quiesce__readers_init();
	quiesce__each_subsystem(init);
	quiesce__heavy_init();
	platform_init(&hooks);
	quiesce__fork_canary = platform_fork_canary();
}

/* In init_all(): its allocations may retire. */
static const struct quiesce_tls_v1 *initializer;

void quiesce__init_slow(void)
{
	struct platform_sigmask mask;
	uint32_t none = 0;
	int saved = errno;

	/* Relaxed: only the thread's own value matters to it.  All but the hooks is there. */
	if (quiesce_load_relaxed(&initializer) == quiesce__self())
		return;
	platform_signals_block(&mask);
	/* IN1: full, pairs with IN1 in quiesce__init() */
	if (quiesce_cmpxchg(IN1, &quiesce__init_state, &none, 1)) {
		quiesce_store_relaxed(&initializer, quiesce__self()); /* Relaxed: as above. */
		init_all();
		quiesce_store_relaxed(&initializer, NULL); /* Relaxed: as above. */
		/* IN1: release, pairs with IN1 in quiesce__init() */
		quiesce_store_release(IN1, &quiesce__init_state, 2);
		platform_futex_wake(&quiesce__init_state, INT32_MAX);
	}
	/* Not a yield: that one may need the CPU of a caller of high priority. */
	/* IN1: acquire, pairs with IN1 in quiesce__init_slow() */
	while (quiesce_load_acquire(IN1, &quiesce__init_state) != 2)
		platform_futex_wait(&quiesce__init_state, 1, PLATFORM_FOREVER);
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

/* Threads of ours, handlers of fork() and destructors of threads are in the object that contains us: a plug-in perhaps. */
__attribute__((constructor)) static void at_load(void)
{
	quiesce__init();
	refuse_copies();
	quiesce__keep_loaded(&quiesce__init_state);
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
	if (fence == QUIESCE_FENCE_LIGHT && membarrier_status)
		return membarrier_status;
	quiesce_store_relaxed(&quiesce__light, /* Relaxed: before first use. */
			      fence != QUIESCE_FENCE_FULL && membarrier_status == 0);
	quiesce__each_subsystem(fence_chosen);
	return 0;
}

#if !defined(QUIESCE_SIM)
void quiesce__promise_light_fences(void)
{
	quiesce__init();
	quiesce__used(); /* so that nobody may choose others any more */
	if (quiesce_fence() == QUIESCE_FENCE_LIGHT)
		return;
	quiesce__say("this program was compiled with QUIESCE_LIGHT_FENCES_ONLY, but has full fences (membarrier: %s)",
		     membarrier_status ? strerror(-membarrier_status) : "there, but full fences were chosen");
	abort();
}
#endif

enum quiesce_fence quiesce_fence(void)
{
	quiesce__init();
	/* Relaxed: fixed before first use. */
	return quiesce_load_relaxed(&quiesce__light) ? QUIESCE_FENCE_LIGHT : QUIESCE_FENCE_FULL;
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
	stats->hazptr_scans = quiesce_load_relaxed(&c->hazptr_scans); /* Relaxed: as above. */
	stats->srcu_grace_periods = quiesce_load_relaxed(&c->srcu_grace_periods); /* Relaxed: as above. */
	stats->hazptr_swept = quiesce_load_relaxed(&c->hazptr_swept); /* Relaxed: as above. */
	stats->garbage_warnings = quiesce_load_relaxed(&c->garbage_warnings); /* Relaxed: as above. */
	stats->hazptr_queues_visited = quiesce_load_relaxed(&c->hazptr_queues_visited); /* Relaxed: as above. */
}

void quiesce_get_stats(struct quiesce_stats *ret_stats, size_t size)
{
	struct quiesce_stats stats;

	quiesce__init();
	quiesce__fork_check();
	fill_stats(&stats);
	memset(ret_stats, 0, size);
	memcpy(ret_stats, &stats, size < sizeof stats ? size : sizeof stats);
}

/* ---- fork ---- */

/* The runtime's own locks, among those of the others. */
static void locks_prepare(void)
{
	quiesce__lock(&quiesce__readers.lock);
	quiesce__laters_fork_prepare();
	quiesce__helper_fork_prepare();
}

static void locks_parent(void)
{
	quiesce__helper_fork_parent();
	quiesce__laters_fork_parent();
	quiesce__unlock(&quiesce__readers.lock);
}

static void runtime_child(void)
{
	quiesce__gate_fork_child();
	quiesce__threads_fork_child();
	quiesce__heavy_fork_child();
	quiesce__readers_fork_child();
	quiesce__helper_fork_child();
	quiesce__laters_fork_child();
	quiesce__held_fork_child();
	quiesce__reports_fork_child();
	quiesce__queued_fork_child();
}

static void report_thread(const struct quiesce_tls_v1 *self)
{
	(void)self;
	quiesce__runs_thread_exit();
	quiesce__held_thread_exit();
}

static void report_held_by_process(const struct quiesce_tls_v1 *self)
{
	(void)self;
	quiesce__held_process_exit();
}

extern const struct quiesce__subsystem quiesce__runtime_subsystem;
const struct quiesce__subsystem quiesce__runtime_subsystem = {
	.paused = quiesce__helper_paused,
	.fork_prepare = locks_prepare,
	.fork_parent = locks_parent,
	.fork_child = runtime_child,
	.thread_report = report_thread,
	.process_report = report_held_by_process,
};

/* Signals are blocked from the first lock to the last: a handler may be some lock's next user.  Other libraries' fork
 * handlers, which may come between, run with signals blocked too. */
static struct platform_sigmask mask_before_fork;
static const struct quiesce_tls_v1 *forking; /* whose mask this is; both under the locks */

void quiesce__fork_prepare(void)
{
	struct platform_sigmask mask;

	platform_signals_block(&mask);
	quiesce__gate_close();
	quiesce__each_subsystem(fork_prepare);
	quiesce__queued_fork_prepare(); /* the last: callbacks take this lock, whatever others are held around them */
	mask_before_fork = mask;
	forking = quiesce__self();
}

void quiesce__fork_parent(void)
{
	struct platform_sigmask mask = mask_before_fork;
	size_t nr = 0;

	forking = NULL;
	quiesce__queued_fork_parent();
	while (quiesce__subsystems[nr])
		nr++;
	while (nr)
		if (quiesce__subsystems[--nr]->fork_parent)
			quiesce__subsystems[nr]->fork_parent();
	quiesce__gate_open();
	platform_signals_restore(&mask);
}

void quiesce__fork_child(void)
{
	int saved = errno;

	quiesce_store_relaxed(quiesce__fork_canary, 1); /* Relaxed: the child has one thread. */
	quiesce__fork_survivor = quiesce__self();
	quiesce__self()->tid = 0;
	quiesce_store_relaxed(&quiesce__fork_generation, quiesce__fork_generation + 1); /* Relaxed: as above. */
	if (platform_membarrier_init() && quiesce__light)
		quiesce__say("membarrier is not available in this forked child");
	quiesce__each_subsystem(fork_child);
	if (forking == quiesce__self()) /* else nobody prepared for this child */
		platform_signals_restore(&mask_before_fork);
	forking = NULL;
	errno = saved;
}

bool quiesce__is_child(const char *call)
{
	bool is_child = quiesce_load_relaxed(&quiesce__fork_generation) != 0; /* Relaxed: changes in a child with one thread. */

	if (quiesce_unlikely(!is_child))
		quiesce__misuse(QUIESCE_MISUSE_IN_USE, "%s in a process that is no child of fork()", call);
	return is_child;
}
