/* SPDX-License-Identifier: MIT */
/* rwscale_contenders.c - readers of one lock, beside the caller, which writes.
 *
 * With some locks readers that come back to back starve a writer for ever.  So a watcher checks how long the writer
 * has been waiting: at the limit readers stop, and the writer gets the lock.
 */
#include <math.h>
#include <stdlib.h>

#include <quiesce/atomic.h>

#include "rwscale.h"

#define GAP_NS 1000000   /* pause between the sections of a sparse reader */
#define QUIET_NS 1000000 /* CPU time for which each reader measures its cost */
#define QUIET_LATE_NS 200000000 /* limit of that measurement by the clock, for a reader without a CPU */
#define BATCH 64
#define WATCH_NS 1000000 /* pause between two checks of the watcher */
#define POLL_NS 100000
#define POLL_LATE_NS 1000000000u
#define NR_WAITS (sizeof(((struct waits *)NULL)->us) / sizeof(double))

static uint32_t phase_of(const struct contenders *c)
{
	return quiesce_load_relaxed(&c->phase);
}

static void read_once(struct contenders *c)
{
	c->lock->read_lock();
	if (quiesce_load_relaxed(&c->first) != quiesce_load_relaxed(&c->second))
		(void)quiesce_fetch_add_relaxed(&c->broken, 1u);
	c->lock->read_unlock();
}

/* CPU time of one section, with all readers running. */
static double measure_quiet(struct contenders *c)
{
	uint64_t begin = thread_cpu_ns(), late = now_ns() + QUIET_LATE_NS, cpu, n = 0;

	do {
		for (int i = 0; i < BATCH; i++)
			read_once(c);
		n += BATCH;
		cpu = thread_cpu_ns() - begin;
	} while (cpu < QUIET_NS && now_ns() < late);
	return (double)cpu / (double)n;
}

static void note_wait(struct contender *r, uint64_t ns)
{
	r->waits->us[r->nr_waits++ % NR_WAITS] = (double)ns / 1e3;
	r->worst_ns = ns > r->worst_ns ? ns : r->worst_ns;
	r->reads++;
}

/* A wait counts if the burst was on when the wait began. */
static void read_and_note(struct contenders *c, struct contender *r)
{
	bool counts = phase_of(c) == PHASE_BURST;
	uint64_t begin = now_ns();

	c->lock->read_lock();
	if (counts)
		note_wait(r, now_ns() - begin);
	if (quiesce_load_relaxed(&c->first) != quiesce_load_relaxed(&c->second))
		(void)quiesce_fetch_add_relaxed(&c->broken, 1u);
	c->lock->read_unlock();
}

static void reader(struct contenders *c, struct contender *r)
{
	if (c->lock->thread_enter)
		c->lock->thread_enter();
	spin_barrier_wait(&c->barrier);
	r->quiet_ns = measure_quiet(c);
	spin_barrier_wait(&c->barrier);
	while (phase_of(c) != PHASE_STOP) {
		read_and_note(c, r);
		if (c->sparse)
			sleep_ns(GAP_NS);
	}
	spin_barrier_wait(&c->barrier); /* no reader unregisters while others are inside */
	if (c->lock->thread_exit)
		c->lock->thread_exit();
}

static void watch(struct contenders *c)
{
	while (!quiesce_load_relaxed(&c->over)) {
		uint64_t since = quiesce_load_relaxed(&c->since), now = now_ns();

		if (since && now > since && now - since > c->limit_ns) {
			quiesce_store_relaxed(&c->cut, 1u);
			quiesce_store_relaxed(&c->phase, (uint32_t)PHASE_STOP);
		}
		sleep_ns(WATCH_NS);
	}
}

static void body(struct member *m)
{
	struct contenders *c = m->team->arg;

	if (m->index < c->readers)
		reader(c, &c->reader[m->index]);
	else
		watch(c);
}

static struct contenders *make(const struct job *job, int readers)
{
	struct contenders *c = calloc(1, sizeof(*c));
	size_t bytes = (size_t)(readers + 1) * sizeof(*c->reader);

	if (!c)
		return NULL;
	c->reader = aligned_alloc(128, bytes);
	for (int i = 0; c->reader && i < readers; i++) {
		c->reader[i] = (struct contender){ .contenders = c, .waits = calloc(1, sizeof(struct waits)) };
		if (!c->reader[i].waits)
			return NULL; /* the process ends then */
	}
	c->lock = job->op->rwlock;
	c->readers = readers;
	return c->reader ? c : NULL;
}

struct contenders *contenders_start(const struct job *job, int scenario, int readers, double limit_s)
{
	struct contenders *c = make(job, readers);

	if (!c) {
		job_send_note("out of memory");
		return NULL;
	}
	c->sparse = scenario == SCENARIO_RW_SPARSE;
	c->limit_ns = (uint64_t)(limit_s * 1e9);
	c->turns = turns_for(RW_WORK_NS);
	c->team = (struct team){ .nr = readers + 1, .pinned = readers < cpus_online(), .first_cpu = 1, .body = body, .arg = c };
	spin_barrier_init(&c->barrier, (uint32_t)readers + 1);
	if (c->team.pinned)
		bind_cpu(0);
	if (c->lock->thread_enter)
		c->lock->thread_enter();
	team_start(&c->team);
	spin_barrier_wait(&c->barrier);
	spin_barrier_wait(&c->barrier);
	return c;
}

uint64_t contenders_write(struct contenders *c)
{
	uint64_t begin = now_ns(), wait;

	if (c->each_wait)
		quiesce_store_relaxed(&c->since, begin);
	c->lock->write_lock();
	wait = now_ns() - begin;
	if (c->each_wait)
		quiesce_store_relaxed(&c->since, (uint64_t)0);
	quiesce_store_relaxed(&c->first, c->first + 1);
	for (uint32_t i = 0; i < c->turns; i++)
		quiesce_cpu_relax();
	quiesce_store_relaxed(&c->second, c->second + 1);
	c->lock->write_unlock();
	return wait;
}

bool contenders_wait_until_fast(const struct contenders *c)
{
	uint64_t late = now_ns() + POLL_LATE_NS;

	while (c->lock->fast && !c->lock->fast()) {
		if (now_ns() > late)
			return false;
		sleep_ns(POLL_NS);
	}
	return true;
}

bool contenders_is_cut(const struct contenders *c)
{
	return quiesce_load_relaxed(&c->cut) != 0;
}

bool contenders_stop(struct contenders *c, const char *where, uint64_t sections)
{
	bool good;

	quiesce_store_relaxed(&c->phase, (uint32_t)PHASE_STOP);
	spin_barrier_wait(&c->barrier);
	quiesce_store_relaxed(&c->over, 1u);
	team_join(&c->team);
	if (c->lock->thread_exit)
		c->lock->thread_exit();
	bind_cpu(-1);
	good = !c->broken && c->first == sections && c->second == sections;
	if (!good)
		job_send_note("BROKEN: %s, %d readers: readers saw %u times half of what a writer did; %llu sections made %llu and %llu",
			      where, c->readers, c->broken, (unsigned long long)sections, (unsigned long long)c->first,
			      (unsigned long long)c->second);
	for (int i = 0; i < c->readers; i++)
		free(c->reader[i].waits);
	free(c->reader);
	free(c);
	return good;
}
