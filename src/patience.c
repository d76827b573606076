/* SPDX-License-Identifier: MIT */
/* patience.c - the temper of a wait.
 *
 * Readers that run while others are preempted with a mark set keep the CPU from
 * them, and the wait lasts as long as the run queue.  "hurry" makes every reader
 * yield where it leaves until the wait is over.  Plain waits may do so after some
 * time and for a share of it; no wait does where it does not help.
 */
#include "patience.h"

#define STEP_NS 50000u           /* the shortest sleep, to begin a hurry in time */
#define SLEEP_MIN_NS 1000000u
#define SLEEP_MAX_NS 8000000u
#define HURRY_REST_NS 100000000u /* the longest */

static bool may_yield(void)
{
	return quiesce_load_relaxed(&quiesce__settings.yield) != 0; /* Relaxed: a setting. */
}

static bool may_hurry(const struct quiesce__patience *p, uint64_t now)
{
	return p->expedited || (may_yield() && now - p->start >= p->patience_ns && now >= *p->not_before);
}

static void stop_hurrying(struct quiesce__patience *p, uint64_t now)
{
	uint64_t pause = p->share * (now - p->hurried_at);

	p->hurry(false);
	p->hurried_at = 0;
	*p->not_before = now + (pause < p->pause_max_ns ? pause : p->pause_max_ns);
}

void quiesce__patience_step(struct quiesce__patience *p, uint64_t now)
{
	if (p->hurried_at) {
		if (now < p->check_at)
			return;
		p->check_at = now + p->check_ns;
		if (p->helps(p->arg))
			return;
		stop_hurrying(p, now);
		p->rest_until = now + p->rest_ns;
		p->rest_ns = p->rest_ns < HURRY_REST_NS / 2 ? 2 * p->rest_ns : HURRY_REST_NS;
	} else if (now >= p->rest_until && may_hurry(p, now)) {
		p->hurried_at = now;
		p->check_at = now + p->check_ns;
		p->hurry(true);
		quiesce__count(expedited);
	}
}

uint64_t quiesce__patience_sleep(struct quiesce__patience *p, uint64_t now)
{
	uint64_t ns;

	if (!p->sleep_ns)
		p->sleep_ns = SLEEP_MIN_NS;
	ns = p->sleep_ns;
	if (!p->hurried_at && now >= p->rest_until && may_yield()) {
		uint64_t from = p->start + p->patience_ns;

		if (from < *p->not_before)
			from = *p->not_before;
		return from > now + STEP_NS ? (from - now < ns ? from - now : ns) : STEP_NS;
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
		stop_hurrying(p, platform_now_ns());
}
