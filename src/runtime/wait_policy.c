/* SPDX-License-Identifier: MIT */
/* wait_policy.c - when a wait makes readers yield.
 *
 * A reader that is preempted in its section waits for a CPU, and the updater with it, for as long as the run queue is.  If
 * readers on that CPU yield as they leave, it gets there at once.  Where the reader in the way runs, or sleeps, yields of
 * others cost them and help nobody.
 *
 * I1. Readers yield in stretches of STRETCH_NS at the most.  A stretch is followed by a pause of its own length, or, where
 *     the primitive says so and the wait is not expedited, several times as long; in this wait and in the next one.
 * I2. The end of a stretch is a time that readers check: it comes also if the waiter does not run.  Readers of RCU then take the request
 *     back, so that those who come later are as fast as ever.
 * I3. Nothing says whether the reader in the way is kept from a CPU: the kernel would have to be asked, by calls that a sandbox
 *     may forbid.  So a stretch is judged by its effect, and readers are left alone for longer and longer as long as it has none.
 * I4. The time between two checks of a wait counts as at most a quarter of the limit of its reports.  Where it was longer the
 *     waiter did not run: the process was stopped, and its readers with it.  So no stop leads to a report by itself.
 */
#include "wait_policy.h"

#define SPINS 16u
#define SPIN_PAUSES 8u
#define STEP_NS 50000u         /* the shortest sleep */
#define STRETCH_NS 1000000u
#define PAUSE_EXPEDITED 1u     /* times the stretch */
#define SLEEP_MIN_NS 1000000u
#define SLEEP_MAX_NS 8000000u
#define BACKOFF_MIN_NS 16000000u
#define BACKOFF_EXPEDITED_NS 4000000u /* a time slice of others, who may have come first */
#define BACKOFF_MAX_NS 100000000u

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

/* When a stretch may begin. */
static uint64_t next_stretch(const struct quiesce__wait_policy *p)
{
	uint64_t at = p->expedited ? p->start : p->start + p->force_after_ns;

	if (at < *p->not_before)
		at = *p->not_before;
	return at < p->backoff_until ? p->backoff_until : at;
}

static void begin_stretch(struct quiesce__wait_policy *p, uint64_t now)
{
	p->forced_at = now;
	quiesce_store_relaxed(&p->yield->until, now + STRETCH_NS); /* Relaxed: readers may see it late. */
	p->force_yield(true);
	quiesce__count(expedited);
}

static void end_stretch(struct quiesce__wait_policy *p, uint64_t now)
{
	uint64_t length = now - p->forced_at;

	if (length > STRETCH_NS)
		length = STRETCH_NS; /* I2 */
	p->force_yield(false);
	p->forced_at = 0;
	*p->not_before = now + length * (p->expedited ? PAUSE_EXPEDITED : p->pause);
}

static void judge_stretch(struct quiesce__wait_policy *p, uint64_t now)
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
		if (may_force(p) && now >= next_stretch(p))
			begin_stretch(p, now);
	} else if (now - p->forced_at >= STRETCH_NS) {
		end_stretch(p, now);
		judge_stretch(p, now);
	}
}

/* When there is something to do for quiesce__wait_policy_step(). */
static uint64_t next_step(const struct quiesce__wait_policy *p)
{
	return p->forced_at ? p->forced_at + STRETCH_NS : next_stretch(p);
}

uint64_t quiesce__wait_policy_sleep(struct quiesce__wait_policy *p, uint64_t now)
{
	uint64_t ns, at;

	if (!p->sleep_ns)
		p->sleep_ns = SLEEP_MIN_NS;
	ns = p->sleep_ns;
	if (p->forced_at || may_force(p)) {
		at = next_step(p);
		if (at < now + STEP_NS)
			return STEP_NS;
		if (at < now + ns)
			return at - now;
	}
	if (p->sleep_ns < SLEEP_MAX_NS)
		p->sleep_ns *= 2;
	return ns;
}

/* I4. */
static void leave_out_stop(struct quiesce__wait_policy *p, uint64_t now, uint64_t limit)
{
	uint64_t since = p->checked_at > p->start ? p->checked_at : p->start, most = since + limit / QUIESCE_STALL_CHECKS;

	p->checked_at = now;
	if (now > most && !QUIESCE_MUTANT(stall_counts_stops))
		p->stall_at += now - most;
}

bool quiesce__wait_policy_stalled(struct quiesce__wait_policy *p, uint64_t now)
{
	uint64_t limit = quiesce_load_relaxed(&quiesce__settings.stall_ns); /* Relaxed: a setting. */

	if (!p->stall_at)
		p->stall_at = p->start + limit;
	if (!limit)
		return false;
	leave_out_stop(p, now, limit);
	if (now < p->stall_at)
		return false;
	p->stall_at = now + limit;
	return true;
}

void quiesce__wait_policy_end(struct quiesce__wait_policy *p)
{
	if (p->forced_at)
		end_stretch(p, platform_now_ns());
}
