/* SPDX-License-Identifier: MIT */
/* wait_policy.c - when a wait makes readers yield.
 *
 * A reader that is preempted in its section waits for a CPU, and the updater with it, for as long as the run queue is.  If
 * readers on that CPU yield as they leave, it gets there at once.  Where the reader in the way runs, or sleeps, yields of
 * others cost them and help nobody.
 *
 * I1. Readers yield in stretches of STRETCH_NS at the most.  A stretch is followed by a pause of its own length, or, where
 *     the primitive says so and the wait is not expedited, several times as long; in this wait and in the next one.
 * I2. The end of a stretch is a time that readers look at: it comes also if the waiter does not run.
 * I3. Where it can be told (@stuck) a stretch begins only if the reader in the way is kept from a CPU, and ends with that.
 *     Where it cannot, readers are left alone for longer and longer as long as it does not help.
 */
#include "wait_policy.h"

#define STEP_NS 50000u         /* the shortest sleep */
#define STRETCH_NS 1000000u
#define PAUSE_EXPEDITED 1u     /* times the stretch */
#define SLEEP_MIN_NS 1000000u
#define SLEEP_MAX_NS 8000000u
#define BACKOFF_MIN_NS 16000000u
#define BACKOFF_MAX_NS 100000000u

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

/* Where nobody can tell whether it helps. */
static void judge_stretch(struct quiesce__wait_policy *p, uint64_t now)
{
	if (p->helped(p->arg)) {
		p->backoff_ns = 0;
		return;
	}
	p->backoff_ns = !p->backoff_ns ? BACKOFF_MIN_NS : p->backoff_ns < BACKOFF_MAX_NS / 2 ? 2 * p->backoff_ns : BACKOFF_MAX_NS;
	p->backoff_until = now + p->backoff_ns;
}

void quiesce__wait_policy_step(struct quiesce__wait_policy *p, uint64_t now)
{
	bool point;

	if (!p->forced_at && !may_force(p))
		return;
	point = !p->stuck || p->stuck(p->arg, now);
	if (!p->forced_at) {
		if (point && now >= next_stretch(p))
			begin_stretch(p, now);
	} else if (!point || now - p->forced_at >= STRETCH_NS) {
		end_stretch(p, now);
		if (p->helped)
			judge_stretch(p, now);
	}
}

/* When there is something to do for quiesce__wait_policy_step(). */
static uint64_t next_step(const struct quiesce__wait_policy *p)
{
	uint64_t at = p->forced_at ? p->forced_at + STRETCH_NS : next_stretch(p);

	return !p->forced_at && p->stuck && p->check_at > at ? p->check_at : at;
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

bool quiesce__wait_policy_stalled(struct quiesce__wait_policy *p, uint64_t now)
{
	uint64_t limit = quiesce_load_relaxed(&quiesce__settings.stall_ns); /* Relaxed: a setting. */

	if (!p->stall_at)
		p->stall_at = p->start + limit;
	if (!limit || now < p->stall_at)
		return false;
	p->stall_at = now + limit;
	return true;
}

void quiesce__wait_policy_end(struct quiesce__wait_policy *p)
{
	if (p->forced_at)
		end_stretch(p, platform_now_ns());
}
