/* SPDX-License-Identifier: MIT */
/* patience.c - when a wait makes readers yield.
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
#include "patience.h"

#define STEP_NS 50000u         /* the shortest sleep */
#define STRETCH_NS 1000000u
#define PAUSE_EXPEDITED 1u     /* times the stretch */
#define SLEEP_MIN_NS 1000000u
#define SLEEP_MAX_NS 8000000u
#define REST_MIN_NS 16000000u
#define REST_MAX_NS 100000000u

static bool may_hurry(const struct quiesce__patience *p)
{
	return p->expedited || quiesce_load_relaxed(&quiesce__settings.yield); /* Relaxed: a setting. */
}

/* When a stretch may begin. */
static uint64_t next_stretch(const struct quiesce__patience *p)
{
	uint64_t at = p->expedited ? p->start : p->start + p->patience_ns;

	if (at < *p->not_before)
		at = *p->not_before;
	return at < p->rest_until ? p->rest_until : at;
}

static void begin_stretch(struct quiesce__patience *p, uint64_t now)
{
	p->hurried_at = now;
	quiesce_store_relaxed(&p->yield->until, now + STRETCH_NS); /* Relaxed: readers may see it late. */
	p->hurry(true);
	quiesce__count(expedited);
}

static void end_stretch(struct quiesce__patience *p, uint64_t now)
{
	uint64_t length = now - p->hurried_at;

	if (length > STRETCH_NS)
		length = STRETCH_NS; /* I2 */
	p->hurry(false);
	p->hurried_at = 0;
	*p->not_before = now + length * (p->expedited ? PAUSE_EXPEDITED : p->pause);
}

/* Where nobody can tell whether it helps. */
static void judge_stretch(struct quiesce__patience *p, uint64_t now)
{
	if (p->helped(p->arg)) {
		p->rest_ns = 0;
		return;
	}
	p->rest_ns = !p->rest_ns ? REST_MIN_NS : p->rest_ns < REST_MAX_NS / 2 ? 2 * p->rest_ns : REST_MAX_NS;
	p->rest_until = now + p->rest_ns;
}

void quiesce__patience_step(struct quiesce__patience *p, uint64_t now)
{
	bool point;

	if (!p->hurried_at && !may_hurry(p))
		return;
	point = !p->stuck || p->stuck(p->arg, now);
	if (!p->hurried_at) {
		if (point && now >= next_stretch(p))
			begin_stretch(p, now);
	} else if (!point || now - p->hurried_at >= STRETCH_NS) {
		end_stretch(p, now);
		if (p->helped)
			judge_stretch(p, now);
	}
}

/* When there is something to do for quiesce__patience_step(). */
static uint64_t next_step(const struct quiesce__patience *p)
{
	uint64_t at = p->hurried_at ? p->hurried_at + STRETCH_NS : next_stretch(p);

	return !p->hurried_at && p->stuck && p->look_at > at ? p->look_at : at;
}

uint64_t quiesce__patience_sleep(struct quiesce__patience *p, uint64_t now)
{
	uint64_t ns, at;

	if (!p->sleep_ns)
		p->sleep_ns = SLEEP_MIN_NS;
	ns = p->sleep_ns;
	if (p->hurried_at || may_hurry(p)) {
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

bool quiesce__patience_stalled(struct quiesce__patience *p, uint64_t now)
{
	uint64_t limit = quiesce_load_relaxed(&quiesce__settings.stall_ns); /* Relaxed: a setting. */

	if (!p->stall_at)
		p->stall_at = p->start + limit;
	if (!limit || now < p->stall_at)
		return false;
	p->stall_at = now + limit;
	quiesce__count(stalls);
	return true;
}

void quiesce__patience_end(struct quiesce__patience *p)
{
	if (p->hurried_at)
		end_stretch(p, platform_now_ns());
}
