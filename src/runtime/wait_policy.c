/* SPDX-License-Identifier: MIT */
/* wait_policy.c - when a waiter forces readers to yield.
 *
 * A reader that is preempted in its section waits for a CPU, and the updater with it, for as long as the run
 * queue is.  If other readers on that CPU yield as they leave, it runs sooner.  Where the delaying reader
 * runs, or sleeps, yields of other readers cost them time and gain nothing.
 *
 * I1. Readers yield in windows of at most WINDOW_NS.  A window is followed by a pause of its own length,
 *     or, where the primitive says so and the wait is not expedited, several times as long; in this wait and
 *     in the next one.
 * I2. The end of a window is a time that readers check, so it is observed even if the waiter does not run.
 *     RCU readers withdraw the request then, so that later readers take the fast path again.
 * I3. Whether the delaying reader is preempted is unknown: only the kernel knows, and reports it by calls that a sandbox
 *     may forbid.  So a window is judged by its effect, and as long as windows have none, the pauses
 *     between them grow.
 * I4. The time between two checks of a wait counts as at most a quarter of the stall limit.  Where it was
 *     longer the waiter did not run: the process was stopped, and its readers with it.  So no stop causes a
 *     stall report by itself.
 */
#include "wait_policy.h"

#define SPINS 16u
#define SPINS_FOR 4000u /* for a clock that stands still; more than fit into 50 us */
#define SPIN_PAUSES 8u
#define WINDOW_NS 1000000u
#define PAUSE_EXPEDITED 1u     /* times the window */
#define SLEEP_MIN_NS 50000u    /* the shortest sleep, before the next step of a window */
#define SLEEP_FIRST_NS 1000000u
#define SLEEP_MAX_NS 8000000u
#define BACKOFF_MIN_NS 16000000u
#define BACKOFF_EXPEDITED_NS 4000000u /* a time slice of other threads that may be scheduled first */
#define BACKOFF_MAX_NS 100000000u

bool quiesce__wait_spin_for(bool (*over)(void *wait), void *wait, uint64_t ns, uint64_t deadline)
{
	uint64_t end;

	if (over(wait))
		return true;
	end = platform_now_ns() + ns;
	end = deadline < end ? deadline : end;
	for (uint32_t i = 0; i < SPINS_FOR && platform_now_ns() < end; i++) {
		for (uint32_t k = 0; k < SPIN_PAUSES; k++)
			quiesce_cpu_relax();
		if (over(wait))
			return true;
	}
	return false;
}

bool quiesce__wait_spin(bool (*over)(void *wait), void *wait)
{
	for (uint32_t i = 0; i < SPINS; i++) {
		if (over(wait))
			return true;
		for (uint32_t k = 0; k < SPIN_PAUSES; k++)
			quiesce_cpu_relax();
	}
	return false;
}

static bool may_force(const struct quiesce__wait_policy *p)
{
	return p->expedited || quiesce_load_relaxed(&quiesce__settings.yield); /* Relaxed: a setting. */
}

/* The time at which the next window may begin. */
static uint64_t next_window(const struct quiesce__wait_policy *p)
{
	uint64_t at = p->expedited ? p->start : p->start + p->force_after_ns;

	if (at < *p->not_before)
		at = *p->not_before;
	return at < p->backoff_until ? p->backoff_until : at;
}

static void begin_window(struct quiesce__wait_policy *p, uint64_t now)
{
	p->forced_at = now;
	quiesce_store_relaxed(&p->yield->until, now + WINDOW_NS); /* Relaxed: readers may see it late. */
	p->force_yield(true);
	quiesce__count(expedited);
}

static void end_window(struct quiesce__wait_policy *p, uint64_t now)
{
	uint64_t length = now - p->forced_at;

	if (length > WINDOW_NS)
		length = WINDOW_NS; /* I2 */
	p->force_yield(false);
	p->forced_at = 0;
	*p->not_before = now + length * (p->expedited ? PAUSE_EXPEDITED : p->pause);
}

static void judge_window(struct quiesce__wait_policy *p, uint64_t now)
{
	if (p->helped(p->arg)) {
		p->backoff_ns = 0;
		return;
	}
	if (!p->backoff_ns)
		p->backoff_ns = p->expedited ? BACKOFF_EXPEDITED_NS : BACKOFF_MIN_NS;
	else
		p->backoff_ns = p->backoff_ns < BACKOFF_MAX_NS / 2 ? 2 * p->backoff_ns : BACKOFF_MAX_NS;
	p->backoff_until = now + p->backoff_ns;
}

void quiesce__wait_policy_step(struct quiesce__wait_policy *p, uint64_t now)
{
	if (!p->forced_at) {
		if (may_force(p) && now >= next_window(p))
			begin_window(p, now);
	} else if (now - p->forced_at >= WINDOW_NS) {
		end_window(p, now);
		judge_window(p, now);
	}
}

/* The time at which quiesce__wait_policy_step() has something to do next. */
static uint64_t next_step(const struct quiesce__wait_policy *p)
{
	return p->forced_at ? p->forced_at + WINDOW_NS : next_window(p);
}

uint64_t quiesce__wait_policy_sleep(struct quiesce__wait_policy *p, uint64_t now)
{
	uint64_t ns, at;

	if (!p->sleep_ns)
		p->sleep_ns = SLEEP_FIRST_NS;
	ns = p->sleep_ns;
	if (p->forced_at || may_force(p)) {
		at = next_step(p);
		if (at < now + SLEEP_MIN_NS)
			return SLEEP_MIN_NS;
		if (at < now + ns)
			return at - now;
	}
	if (p->sleep_ns < SLEEP_MAX_NS)
		p->sleep_ns *= 2;
	return ns;
}

/* I4: exclude the time in which the process was stopped. */
static void exclude_stop(struct quiesce__wait_policy *p, uint64_t now, uint64_t limit)
{
	uint64_t since = p->checked_at > p->start ? p->checked_at : p->start, max_at = since + limit / QUIESCE_STALL_CHECKS;

	p->checked_at = now;
	if (now > max_at && !QUIESCE_MUTANT(stall_counts_stops))
		p->stall_at += now - max_at;
}

bool quiesce__wait_policy_take_report(struct quiesce__wait_policy *p, uint64_t now)
{
	uint64_t limit = quiesce_load_relaxed(&quiesce__settings.stall_ns); /* Relaxed: a setting. */

	if (!p->stall_at)
		p->stall_at = p->start + limit;
	if (!limit)
		return false;
	exclude_stop(p, now, limit);
	if (now < p->stall_at)
		return false;
	p->stall_at = now + limit;
	return true;
}

void quiesce__wait_policy_end(struct quiesce__wait_policy *p)
{
	if (p->forced_at)
		end_window(p, platform_now_ns());
}
