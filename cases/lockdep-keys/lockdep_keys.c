/* SPDX-License-Identifier: MIT */
/* lockdep_keys.c - replace the lock keys of a device while others look keys up, and time the wait before each may be freed.
 *
 * Lookups walk a bucket without pause and only compare addresses.  A control thread replaces the Q keys of a device, as
 * `tc qdisc replace` does: register a new key, unlink the old one, WAIT until no lookup stands on it, free it; then the next.
 * keys.c has the protection of lookups, and the waits.
 *
 * The device has its own buckets, the first ones, so that "others" and "the same" are exact.  Readers only know the addresses
 * of its keys, and may look up a key that has just gone.
 */
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <quiesce/atomic.h>

#include "keys.h"
#include "number.h"

#define BUCKETS 128       /* lockdep: 4096, for thousands of keys */
#define RESIDENTS 5       /* in each bucket, for ever */
#define DEVICE_BUCKETS 32 /* the first ones: for the keys of the device */
#define MAX_Q 4096
#define PAUSE_NS 1000000u /* shortest pause between replacements; the longest is twice that */
#define TURN 64           /* lookups between two checks of the time */

/* A reader repeats its habit all the time. */
struct habit {
	enum { NOTHING, OTHERS, DEVICE, ANY } keys; /* those it looks up */
	uint32_t stay_us[2];                        /* how long it stays inside, from, to; 0: it does not */
	uint32_t gap_us;                            /* between two stays, at most; 0: each lookup is one */
};

struct reader {
	struct walker walker;
	const struct habit *habit;
	uint64_t due_ns;  /* time of the next stay */
	uint64_t lookups; /* read by the control thread */
} __attribute__((aligned(128)));

static struct bucket registry[BUCKETS] __attribute__((aligned(128)));
static struct key *resident[BUCKETS][RESIDENTS];

static struct {
	const struct method *method;
	uint32_t q, spread;      /* the device's keys, and the buckets that they are in */
	uintptr_t device[MAX_Q]; /* addresses; written by the control thread */
	bool downwards;
	uint64_t worst_ns;
	uint32_t stop, ready __attribute__((aligned(128)));
} world;

/* ---- the device ---- */

static struct bucket *device_bucket(uint32_t i)
{
	return &registry[i % world.spread];
}

/* Register a new key, which readers look up from now on by its address, a number to them.  Returns the old key. */
static struct key *register_key(uint32_t i)
{
	struct key *old = (struct key *)quiesce_load_relaxed(&world.device[i]); /* Relaxed: the caller stored it. */

	quiesce_store_relaxed(&world.device[i], (uintptr_t)new_key(device_bucket(i))); /* Relaxed: a number to readers. */
	return old;
}

static void timed_wait(struct bucket *bucket, struct key *key)
{
	uint64_t ns = now_ns();

	world.method->wait(bucket, key);
	ns = now_ns() - ns;
	if (ns > world.worst_ns)
		world.worst_ns = ns;
}

/* As a queue is replaced: the new one is made, and then the old one goes.  Returns that, unlinked. */
static struct key *swap_key(uint32_t i)
{
	struct key *old = register_key(i);

	unlink_key(device_bucket(i), old);
	return old;
}

static void replace_one(uint32_t i)
{
	struct key *old = swap_key(i);

	timed_wait(device_bucket(i), old);
	free_key(old);
}

/* Upwards and downwards in turn.  So the first to be unlinked is always the last that was added, and ahead of the others in its
 * chain: its link leads to the key that is unlinked next, and no updater changes that link any more (I3). */
static uint32_t in_turn(uint32_t i)
{
	return world.downwards ? world.q - 1 - i : i;
}

static void replace_all(void)
{
	static struct key *old[MAX_Q];

	for (uint32_t i = 0; i < world.q; i++) {
		old[i] = swap_key(in_turn(i));
		if (world.method->retire)
			world.method->retire(old[i]);
	}
	timed_wait(NULL, NULL);
	for (uint32_t i = 0; i < world.q && !world.method->retire; i++)
		free_key(old[i]);
}

/* The device's Q keys, or as many as go before @end.  Returns how many. */
static uint64_t replace_device(uint64_t end)
{
	uint32_t i = 0;

	world.downwards = !world.downwards;
	if (world.method->batched) {
		replace_all();
		return world.q;
	}
	do
		replace_one(in_turn(i++));
	while (i < world.q && now_ns() < end);
	return i;
}

static void register_device(uint32_t q, uint32_t spread)
{
	world.q = q;
	world.spread = spread;
	for (uint32_t i = 0; i < q; i++)
		register_key(i);
}

/* No reader is left. */
static void unregister_device(void)
{
	for (uint32_t i = 0; i < world.q; i++) {
		struct key *key = (struct key *)quiesce_load_relaxed(&world.device[i]); /* Relaxed: the caller stored it. */

		unlink_key(device_bucket(i), key);
		free_key(key);
	}
}

static void register_residents(void)
{
	for (uint32_t b = 0; b < BUCKETS; b++)
		for (uint32_t i = 0; i < RESIDENTS; i++)
			resident[b][i] = new_key(&registry[b]);
}

/* ---- readers ---- */

static uint32_t below(struct reader *r, uint32_t limit)
{
	return (uint32_t)((random_next(&r->walker.random) >> 32) * limit >> 32);
}

/* A key that is registered now, or was a moment ago: its bucket, and its address. */
static struct bucket *pick(struct reader *r, uintptr_t *ret_address)
{
	uint32_t keys = r->habit->keys, b, i;

	if (keys == DEVICE || (keys == ANY && below(r, BUCKETS * RESIDENTS + world.q) < world.q)) {
		i = below(r, world.q);
		*ret_address = quiesce_load_relaxed(&world.device[i]); /* Relaxed: a number. */
		return device_bucket(i);
	}
	b = keys == OTHERS ? DEVICE_BUCKETS + below(r, BUCKETS - DEVICE_BUCKETS) : below(r, BUCKETS);
	*ret_address = (uintptr_t)resident[b][below(r, RESIDENTS)];
	return &registry[b];
}

static void lookup(struct reader *r, uint64_t stay_ns)
{
	uintptr_t address;
	struct bucket *bucket = pick(r, &address);

	if (!stay_ns && below(r, 2))
		address = (uintptr_t)r; /* no key: to the end of the chain */
	r->walker.stay_ns = stay_ns;
	world.method->find(&r->walker, bucket, address);
	quiesce_store_relaxed(&r->lookups, r->lookups + 1); /* Relaxed: a count. */
}

static void lookup_and_stay(struct reader *r)
{
	const struct habit *h = r->habit;

	lookup(r, UINT64_C(1000) * (h->stay_us[0] + below(r, h->stay_us[1] - h->stay_us[0] + 1)));
	if (h->gap_us)
		r->due_ns = now_ns() + UINT64_C(1000) * below(r, h->gap_us);
}

static void turn(struct reader *r)
{
	const struct habit *h = r->habit;

	if (h->keys == NOTHING) {
		sleep_ns(5000000);
	} else if (h->stay_us[0] && (!h->gap_us || now_ns() >= r->due_ns)) {
		lookup_and_stay(r);
	} else {
		for (int i = 0; i < TURN; i++)
			lookup(r, 0);
	}
}

static void take_slots(struct walker *w)
{
	w->slot[0] = hazptr_alloc(NULL);
	w->slot[1] = hazptr_alloc(NULL);
	if (!w->slot[0] || !w->slot[1]) {
		case_note("no memory for slots");
		exit(CASE_FAILED);
	}
}

static void reader_main(struct member *member)
{
	struct reader *r = (struct reader *)member->team->arg + member->index;

	if (world.method->slots)
		take_slots(&r->walker);
	lookup(r, 0); /* the library then also knows readers that sleep */
	(void)quiesce_fetch_add_relaxed(&world.ready, 1u);
	while (!quiesce_load_relaxed(&world.stop)) /* Relaxed: soon is enough. */
		turn(r);
	hazptr_free(NULL, r->walker.slot[0]);
	hazptr_free(NULL, r->walker.slot[1]);
}

static void start_readers(struct team *team, const struct case_run *run, const struct habit *first, const struct habit *rest)
{
	struct reader *readers = aligned_alloc(128, sizeof(*readers) * (size_t)team->nr);

	if (!readers) {
		case_note("no memory for %d readers", team->nr);
		exit(CASE_FAILED);
	}
	memset(readers, 0, sizeof(*readers) * (size_t)team->nr);
	for (int i = 0; i < team->nr; i++) {
		readers[i].habit = i ? rest : first;
		readers[i].walker.random = (uint64_t)(run->round * 1000 + (uint32_t)i + 1) * UINT64_C(0x9e3779b97f4a7c15);
		readers[i].walker.stop = &world.stop;
		readers[i].walker.check = run->check;
	}
	world.stop = world.ready = 0;
	team->body = reader_main;
	team->arg = readers;
	if (!team_start(team))
		exit(CASE_FAILED);
	while (quiesce_load_relaxed(&world.ready) < (uint32_t)team->nr) /* Relaxed: a count. */
		sched_yield();
}

static void stop_readers(struct team *team)
{
	quiesce_store_relaxed(&world.stop, 1u); /* Relaxed: pthread_join() orders the rest. */
	team_join(team);
}

/* ---- measurements ---- */

static const struct case_choice scenarios[] = {
	{ "idle", "readers are asleep, outside", false },
	{ "others", "readers of other buckets: one without pause, the rest stay inside for 1 ms each time", false },
	{ "same", "all keys of the device in one bucket, and all lookups are there", false },
	{ "delays", "readers of all keys, each of which now and then stays inside for 1 to 10 ms", false },
	{ "stopped", "readers of other buckets: one without pause, the rest stay inside for 100 ms each time, as if stopped", false },
	{ "held", "all keys of the device in one bucket, where readers stay for 20 ms each time; one reads without pause", false },
	{ NULL, NULL, false },
};

/* Where some stay all the time there are several, so that one is inside while another waits for a CPU, outside. */
static const struct scene {
	int readers;     /* unless --threads says how many */
	uint32_t spread; /* buckets that the device's keys are in */
	struct habit first, rest; /* habits of the first reader, and of the others */
} scenes[] = {
	{ 3, DEVICE_BUCKETS, { NOTHING, { 0, 0 }, 0 }, { NOTHING, { 0, 0 }, 0 } },
	{ 4, DEVICE_BUCKETS, { OTHERS, { 0, 0 }, 0 }, { OTHERS, { 1000, 1000 }, 0 } },
	{ 2, 1, { DEVICE, { 0, 0 }, 0 }, { DEVICE, { 0, 0 }, 0 } },
	{ 3, DEVICE_BUCKETS, { ANY, { 1000, 10000 }, 10000 }, { ANY, { 1000, 10000 }, 10000 } },
	{ 3, DEVICE_BUCKETS, { OTHERS, { 0, 0 }, 0 }, { OTHERS, { 100000, 100000 }, 0 } },
	{ 6, 1, { ANY, { 0, 0 }, 0 }, { DEVICE, { 20000, 20000 }, 0 } },
};

static uint64_t count_lookups(const struct team *team)
{
	const struct reader *readers = team->arg;
	uint64_t sum = 0;

	for (int i = 0; i < team->nr; i++)
		sum += quiesce_load_relaxed(&readers[i].lookups); /* Relaxed: a count. */
	return sum;
}

/* The tally has the costs of all replacements. */
struct tally {
	uint64_t keys, ns, cpu_ns;
	double interrupts, membarriers, grace_periods;
	double lookups_s; /* by all readers, pauses included: some replacements are too short to count in */
};

static void replace_and_count(struct tally *t, uint64_t end)
{
	struct case_meter m;
	uint64_t ns, cpu_ns;

	case_meter_begin(&m); /* reads a file, so it takes longer than some of what is measured */
	cpu_ns = process_cpu_ns();
	ns = now_ns();
	t->keys += replace_device(end);
	t->ns += now_ns() - ns;
	t->cpu_ns += process_cpu_ns() - cpu_ns;
	case_meter_end(&m);
	t->interrupts += m.interrupts;
	t->membarriers += m.membarriers;
	t->grace_periods += m.grace_periods;
}

/* Replace keys for some time.  Devices are replaced at any time, so there is a pause before each replacement, in which readers get to where
 * they are most of the time.  Replacements without a pause would come in bursts, when all readers happen to be outside. */
static void replace_for(const struct team *team, struct tally *t, double seconds, uint64_t random)
{
	uint64_t lookups = count_lookups(team), begin = now_ns(), end = begin + (uint64_t)(seconds * 1e9);

	do {
		sleep_ns(PAUSE_NS + random_next(&random) % PAUSE_NS);
		replace_and_count(t, end);
	} while (now_ns() < end);
	t->lookups_s = (double)(count_lookups(team) - lookups) * 1e9 / (double)(now_ns() - begin);
}

static void report(const struct case_run *run, const char *name, const struct tally *t)
{
	char scenario[64];
	double replaces = (double)t->keys / world.q;

	snprintf(scenario, sizeof(scenario), "%s, Q=%u", name, world.q);
	CASE_RESULT(run, scenario, { "ms", (double)t->ns / 1e6 / replaces }, { "us_key", (double)t->ns / 1e3 / (double)t->keys },
		    { "interrupts", t->interrupts / replaces }, { "membarriers", t->membarriers / replaces },
		    { "grace_periods", t->grace_periods / replaces }, { "cpu_ms", (double)t->cpu_ns / 1e6 / replaces },
		    { "lookups_M", t->lookups_s / 1e6 }, { "worst_ms", (double)world.worst_ns / 1e6 },
		    { "cut", t->keys < world.q ? 1 : NAN });
}

static void measure(const struct case_run *run, const char *name, const struct scene *scene, uint32_t q)
{
	struct team team = { .nr = run->threads ? run->threads : scene->readers };
	struct tally tally = { .keys = 0 };

	register_device(q, scene->spread);
	start_readers(&team, run, &scene->first, &scene->rest);
	world.worst_ns = 0;
	replace_for(&team, &tally, run->seconds, run->round + 1);
	stop_readers(&team);
	report(run, name, &tally);
	unregister_device();
	free(team.arg);
}

static int measure_all(const struct case_run *run)
{
	static const uint32_t numbers[] = { 8, 64, 256 };
	uint32_t only = run->own ? *(const uint32_t *)run->own : run->quick ? 64 : 0;

	for (size_t s = 0; scenarios[s].name; s++)
		for (size_t i = 0; i < (only ? 1 : 3) && case_wants(run, scenarios[s].name); i++)
			measure(run, scenarios[s].name, &scenes[s], only ? only : numbers[i]);
	return 0;
}

/* Readers everywhere and where it matters, and replacements as fast as the wait allows. */
static int check(const struct case_run *run)
{
	static const struct habit everywhere = { ANY, { 0, 0 }, 0 }, there = { DEVICE, { 0, 0 }, 0 };
	struct team team = { .nr = run->threads ? run->threads : 3 };
	uint64_t visits = 0, end = now_ns() + (uint64_t)(run->seconds * 1e9), frees;
	const struct reader *readers;

	register_device(64, 8);
	start_readers(&team, run, &everywhere, &there);
	do
		replace_device(end);
	while (now_ns() < end && !canary_dead());
	frees = keys_freed;
	stop_readers(&team);
	readers = team.arg;
	for (int i = 0; i < team.nr; i++)
		visits += readers[i].walker.visits;
	free(team.arg);
	return case_verdict(run, visits, frees);
}

static int run_case(struct case_run *run)
{
	world.method = &methods[run->variant - variants];
	register_residents();
	return run->check ? check(run) : measure_all(run);
}

static void take_q(struct case_run *run, const char *text)
{
	static uint32_t q;
	double value;

	if (!number_read(text, 1, MAX_Q, &value) || value != floor(value))
		case_usage("--keys=%s: a whole number from 1 to %d is needed", text, MAX_Q);
	q = (uint32_t)value;
	run->own = &q;
}

int main(int argc, char **argv)
{
	static const struct case_option options[] = {
		{ "keys", "Q", "keys of the device; default: 8, 64 and 256 in turn", take_q },
		{ NULL, NULL, NULL, NULL },
	};
	static const struct case_program program = {
		.name = "lockdep-keys",
		.what = "Replace the lock keys of a device while others look keys up.",
		.variants = variants,
		.scenarios = scenarios,
		.options = options,
		.seconds = 0.12,
		.run = run_case,
	};

	return case_main(&program, argc, argv);
}
