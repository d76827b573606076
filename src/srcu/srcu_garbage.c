/* SPDX-License-Identifier: MIT */
/* srcu_garbage.c - callbacks of all domains: their number, their bytes, and a wait until none is pending.
 *
 *   call_srcu():  queued++ in the set of this id; bytes_in += bytes in the thread's list; on passing a multiple of 64 KiB
 *                 add to the process-wide sum
 *   a step:       takes callbacks and adds the rest to the sum; after some have run, takes their share off
 *
 * I1. A callback is counted as queued before it is pushed, and as run after it has returned and before its domain counts
 *     it.  So when the difference is 0, all callbacks that the caller can know of have run, and a caller that has waited
 *     for a domain finds its callbacks counted.
 * I2. The sum includes @bytes_reported less @bytes_out of each domain.  A caller reports before it pushes.  The holder of
 *     @step_lock corrects the error, also downwards, as the sum may include a part of what callers report later: less than
 *     64 KiB of each sum.  After the last callback is taken no caller reports, so @bytes_reported is the sum of @bytes_in
 *     of the lists then, and @bytes_out once it has run.
 * I3. The size of a single callback is not stored: each of a batch counts as the batch's average, the last one as the rest.
 * I4. In a forked child both sums begin at zero, and each domain adds its own share when it is reinitialised: at once if
 *     its job is listed.
 *
 * PC2  a callback has run, then counted | counts read, then quiesce_shutdown() returns
 */
#include "srcu_all.h"

#include "rcu/garbage.h"
#include "runtime/pace.h"
#include "srcu.h"

#if defined(QUIESCE_SIM)
#define REPORT_BYTES 128u
#else
#define REPORT_BYTES 65536u
#endif
#define RETRY_NS 10000000u
#define SLEEP_MIN_NS 1000000u
#define SLEEP_MAX_NS 8000000u
#define FAIR_TRY_NS 100000000u
#define YIELD_NS 1000000u /* above the ceiling readers yield for this time, and at most half of the time */


enum { QUEUED, RUN, NR_COUNTS };

static struct {
	struct quiesce_percpu percpu;
	uint64_t shared[NR_COUNTS];
	uint64_t retry_at; /* time of the next attempt to allocate the sets */
} counts;

/* ---- counts ---- */

static QUIESCE_COLD void count_slow(uint32_t index)
{
	/* Relaxed: a hint. */
	if (!quiesce_load_relaxed(&counts.percpu.base) && quiesce__pace_claim(&counts.retry_at, RETRY_NS))
		quiesce__percpu_open(&counts.percpu, NR_COUNTS);
	quiesce__percpu_add(&counts.percpu, counts.shared, index);
}

void quiesce__srcu_count_run(void)
{
	/* PC2: release, pairs with PC2 in sum() */
	if (quiesce_unlikely(!quiesce_count_release_always(PC2, &counts.percpu, 8 * RUN)))
		count_slow(RUN);
}

static uint64_t nr_pending(void)
{
	return quiesce__percpu_inside(&counts.percpu, counts.shared, QUEUED, RUN);
}

static uint64_t nr_run(void)
{
	return quiesce__percpu_total(&counts.percpu, counts.shared, RUN);
}

void quiesce__srcu_stats(struct quiesce_stats *stats)
{
	int64_t bytes = quiesce_load_relaxed(&quiesce__garbage_srcu); /* Relaxed: a sum. */

	/* Run is summed before queued, so that the difference never misses a callback. */
	stats->srcu_callbacks_run = nr_run();
	stats->srcu_callbacks_queued = quiesce__percpu_total(&counts.percpu, counts.shared, QUEUED);
	stats->garbage_objects += stats->srcu_callbacks_queued - stats->srcu_callbacks_run;
	stats->garbage_bytes += bytes > 0 ? (uint64_t)bytes : 0;
}

/* ---- bytes ---- */

static void report(struct quiesce__srcu_usage *u, int64_t bytes)
{
	quiesce_fetch_add_relaxed(&u->bytes_reported, (uint64_t)bytes); /* Relaxed: a sum. */
	quiesce__garbage_add_srcu(bytes);
}

bool quiesce__srcu_count_queued(struct quiesce__srcu_usage *u, const struct quiesce__srcu_place *place, size_t bytes)
{
	uint64_t before, after;

	/* Relaxed: the exchange of push() follows. */
	if (quiesce_unlikely(!quiesce_count_relaxed(&counts.percpu, 8 * QUEUED)))
		count_slow(QUEUED);
	before = quiesce__srcu_add(place, &place->sums->bytes_in, bytes);
	after = before + bytes;
	if (quiesce_likely(before / REPORT_BYTES == after / REPORT_BYTES))
		return false;
	report(u, (int64_t)((after / REPORT_BYTES - before / REPORT_BYTES) * REPORT_BYTES));
	return quiesce__garbage_above_ceiling();
}

/* Correct the reported bytes to @bytes_in. */
static void report_all(struct quiesce__srcu_usage *u, uint64_t bytes_in)
{
	int64_t bytes = (int64_t)(bytes_in - quiesce_load_relaxed(&u->bytes_reported)); /* Relaxed: a sum. */

	if (bytes)
		report(u, bytes);
}

void quiesce__srcu_report_bytes(struct quiesce__srcu_usage *u)
{
	report_all(u, quiesce__srcu_bytes_in(u));
}

void quiesce__srcu_bytes_taken(struct quiesce__srcu_usage *u, uint64_t nr, uint64_t bytes_in)
{
	u->nr_taken = nr;
	u->bytes_taken = bytes_in;
	report_all(u, bytes_in);
}

void quiesce__srcu_bytes_run(struct quiesce__srcu_usage *u, uint64_t nr)
{
	uint64_t bytes = u->bytes_taken - u->bytes_out;

	if (u->taken) {
		bytes = nr < u->nr_taken ? bytes / u->nr_taken * nr : 0;
		u->nr_taken -= nr < u->nr_taken ? nr : 0;
	}
	quiesce_store_relaxed(&u->bytes_out, u->bytes_out + bytes); /* Relaxed: under @step_lock; reports read it. */
	if (!QUIESCE_MUTANT(srcu_bytes_kept))
		quiesce__garbage_add_srcu(-(int64_t)bytes);
}

/* ---- drain and fork ---- */

/* Number of callbacks that wait for inherited sections, whose threads may not exist. */
static uint64_t nr_stuck(struct quiesce__job *job)
{
	struct quiesce__srcu_usage *u = quiesce__srcu_of_job(job);

	return u && quiesce__srcu_inherits(u) ? quiesce__srcu_pending(u) : 0;
}

static bool all_are_stuck(void)
{
	uint64_t pending = nr_pending();

	return quiesce__generation() && quiesce__jobs_sum(nr_stuck) >= pending;
}

/* Sleep until a step is over, which may have run callbacks. */
static void sleep_until(uint64_t deadline, uint64_t now, uint64_t ns)
{
	quiesce__helper_await_step(deadline && deadline - now < ns ? deadline - now : ns);
}

bool quiesce__srcu_drain_until(uint64_t deadline)
{
	uint64_t now = platform_now_ns(), since = now, ns = SLEEP_MIN_NS, run = nr_run(), before;

	for (quiesce__helper_wake(); nr_pending(); now = platform_now_ns()) {
		if (deadline ? now >= deadline : now - since >= FAIR_TRY_NS && all_are_stuck())
			return false;
		before = run;
		if (!quiesce__helper_ensure())
			quiesce__jobs_take_steps();
		if ((run = nr_run()) == before) {
			sleep_until(deadline, now, ns);
			ns = ns < SLEEP_MAX_NS ? 2 * ns : ns;
			continue;
		}
		since = now;
		ns = SLEEP_MIN_NS;
	}
	return true;
}

/* ---- fork ---- */

void quiesce__srcu_garbage_fork_child(struct quiesce__srcu_usage *u, uint64_t pending)
{
	uint64_t bytes_in = quiesce__srcu_bytes_in(u);

	if (!pending)
		u->bytes_out = bytes_in;
	u->bytes_taken = bytes_in; /* this includes bytes of callers that were about to push */
	quiesce_store_relaxed(&u->bytes_reported, bytes_in); /* Relaxed: only this thread knows the domain. */
	if (!pending)
		return;
	quiesce__garbage_add_srcu((int64_t)(bytes_in - u->bytes_out));
	quiesce_fetch_add_relaxed(&counts.shared[RUN], -pending); /* Relaxed: a count. */
}

static uint64_t reinit(struct quiesce__job *job)
{
	struct quiesce__srcu_usage *u = quiesce__srcu_of_job(job);

	if (u)
		quiesce__srcu_reinit(u);
	return 0;
}

/* The sums begin at zero in the child (I4). */
void quiesce__srcu_fork_child(void)
{
	quiesce__srcu_fork_reinit();
	quiesce__garbage_srcu = 0;
	counts.shared[RUN] += nr_pending();
	quiesce__jobs_sum_locked(reinit);
}

bool quiesce__srcu_request_yields(struct quiesce__srcu_usage *u)
{
	uint64_t now;

	if (!quiesce__garbage_above_ceiling())
		return false;
	now = platform_now_ns();
	if (now >= u->force_not_before) {
		quiesce_store_relaxed(&quiesce__srcu_yield.until, now + YIELD_NS); /* Relaxed: readers may see it late. */
		u->force_not_before = now + 2 * YIELD_NS;
	}
	return true;
}
