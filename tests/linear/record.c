/* SPDX-License-Identifier: MIT */
/* record.c - record histories of a shared table: rounds of a few ten thousand operations.
 *
 * A clock of ticks, one shared counter, orders returns and calls: if an operation had returned
 * before another was called, its tick is lower, and its effects happened before.  Rounds differ
 * in the number of keys and workers.  Each begins with no key of a worker in the table and ends
 * with recorded removals of all of them, so a round is a history by itself.
 *
 * File: "qlinear1", model and size of groups (32 bits each); then for each round the number of
 * its events (64 bits) and the events; then 0 and the number of all events.  Byte order and
 * padding are this machine's.
 * Exit status: 0, 1 if a reply was wrong that needs no history to judge, 2 usage.
 */
#include "record.h"

#include <quiesce/rcu.h>

#include <getopt.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef QUIESCE_PERTURB
#include "platform/mutants.h"
#endif

#define CLEAR_EVERY 512 /* operations */
#define ROUND 20000 /* events; the judge's memory grows with the square of those of one key */

static const struct type *const types[] = {
	&reference_type, &broken_type, &reference_cleared,
#ifdef HAVE_HASHMAP
	&hashmap_type, &hashmap_cleared,
#endif
#ifdef HAVE_HASHTABLE
	&hashtable_type_objects, &hashtable_type_hazptr, &hashtable_cleared, &hashtable_cleared_hazptr,
#endif
	&walk_type_map, &walk_type_skip, &walk_type_tree,
#ifdef HAVE_IDR
	&idr_type,
#endif
#ifdef HAVE_XARRAY
	&xarray_type,
#endif
#ifdef HAVE_LFQUEUE
	&lfqueue_type,
#endif
#ifdef HAVE_VALUE_QUEUE
	&value_queue_type,
#endif
#ifdef HAVE_LFSTACK
	&lfstack_type,
#endif
};

/* Written by main between rounds, read by workers behind the barrier. */
static struct round {
	uint32_t keys, workers;
	uint64_t last_tick;
	bool sparse; /* most keys are removed before others are looked up: the places of keys are used again */
	bool over;   /* no more rounds */
} current;

static struct worker {
	pthread_t thread;
	uint64_t random, serial, nr;
	struct event *log;
} __attribute__((aligned(128))) worker[MAX_WORKERS];

static const struct type *type;
static pthread_barrier_t edge; /* start and end of a round */
static struct {
	uint64_t now;
} __attribute__((aligned(128))) ticks;
static uint32_t up, nr_wrong;

/* raw: the recorder's own words; only the library's accesses are to be perturbed. */
#define LOAD(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
/* raw: the recorder's own words. */
#define STORE(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)

/* Relaxed would not do: what came before a return has to happen before a call with a later tick. */
uint64_t tick(void)
{
	/* raw: the recorder's own words. */
	return __atomic_add_fetch(&ticks.now, 1, __ATOMIC_SEQ_CST);
}

bool time_is_up(void)
{
	return LOAD(&up);
}

uint64_t draw(uint64_t *random)
{
	*random ^= *random << 13;
	*random ^= *random >> 7;
	*random ^= *random << 17;
	return *random >> 11;
}

void wrong(const char *format, ...)
{
	va_list args;

	/* raw: the recorder's own words. */
	if (__atomic_fetch_add(&nr_wrong, 1, __ATOMIC_RELAXED) >= 5)
		return;
	va_start(args, format);
	flockfile(stderr);
	fputs("wrong: ", stderr);
	vfprintf(stderr, format, args);
	fputs("\n", stderr);
	funlockfile(stderr);
	va_end(args);
}

void give_up(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(stderr, format, args);
	fputs("\n", stderr);
	va_end(args);
	exit(2);
}

uint8_t succeeded(int rc, int failure)
{
	if (rc && rc != failure)
		give_up("%s: an operation said %d", type->name, rc);
	return !rc;
}

void step(void (*of_type)(struct op *op), struct op *op)
{
	if (of_type)
		of_type(op);
}

void *allocate(size_t bytes)
{
	void *p = calloc(1, bytes);

	if (!p)
		give_up("out of memory");
	return p;
}

/* ---- workers ---- */

/* The kinds of operations are drawn with these weights. */
static const uint32_t weights_of[][NR_KINDS] = {
	[MODEL_MAP] = { [OP_LOOKUP] = 12, [OP_INSERT] = 4, [OP_SET] = 2, [OP_REMOVE] = 4,
			[OP_REPLACE] = 3, [OP_DISCARD] = 2, [OP_UPDATE] = 4 },
	/* There are many more removals than insertions, because the judge's search takes long for long queues. */
	[MODEL_QUEUE] = { [OP_LOOKUP] = 1, [OP_INSERT] = 6, [OP_REMOVE] = 12 },
	[MODEL_STACK] = { [OP_LOOKUP] = 1, [OP_INSERT] = 6, [OP_REMOVE] = 12 },
	[MODEL_IDS] = { [OP_LOOKUP] = 12, [OP_INSERT] = 4, [OP_REMOVE] = 6, [OP_ALLOC] = 4, [OP_EXCHANGE] = 3 },
};

/* Phases in which most operations insert alternate with phases in which most remove. */
static enum kind choose_kind(struct worker *w)
{
	bool removing = current.sparse || LOAD(&ticks.now) >> 11 & 1;
	uint32_t weights[NR_KINDS], sum = 0, r;
	enum kind kind = 0;

	if ((type->clears || type->erases) && draw(&w->random) % CLEAR_EVERY == 0)
		return type->clears ? OP_CLEAR : OP_ERASE;
	for (int i = 0; i < NR_KINDS; i++) {
		weights[i] = weights_of[type->model][i];
		if (type->model < MODEL_QUEUE && (i == (removing ? OP_REMOVE : OP_INSERT) || (!removing && i == OP_ALLOC)))
			weights[i] *= 3;
		sum += weights[i];
	}
	r = (uint32_t)(draw(&w->random) % sum);
	while (r >= weights[kind])
		r -= weights[kind++];
	return kind;
}

static uint32_t choose_key(struct worker *w)
{
	uint64_t r = draw(&w->random);

	/* With many keys, half of the operations are on a few. */
	return (uint32_t)((r >> 8) % (r & 1 && current.keys > 8 ? 8 : current.keys));
}

uint64_t updated(uint64_t value, uint64_t there)
{
	if (!there)
		return value >> 40 & 3 ? value : 0;
	switch ((value ^ there) >> 40 & 3) {
	case 0: return there;
	case 1: return 0;
	}
	return value;
}

bool is_chosen(uint64_t value)
{
	return value >> 43 & 1;
}

void dropped(struct op *op, uint32_t key, uint64_t value)
{
	op->drops[op->nr_drops++] = (struct event){ .key = key, .found = value, .kind = OP_DROP, .done = 1, .client = op->event.client };
}

/* Record an operation's events, and return their number. */
static uint64_t record(struct op *op, struct event *log)
{
	struct event *e = &op->event;

	op->drops = log + 1;
	step(type->prepare, op);
	e->call = tick();
	type->perform(op);
	e->ret = tick();
	*log = *e;
	for (uint32_t i = 0; i < op->nr_drops; i++) {
		op->drops[i].call = e->call;
		op->drops[i].ret = e->ret;
	}
	step(type->finish, op);
	return 1 + op->nr_drops;
}

static void work_round(struct worker *w)
{
	uint16_t client = (uint16_t)(w - worker);

	while (LOAD(&ticks.now) < current.last_tick) {
		uint32_t key = choose_key(w);
		enum kind kind = choose_kind(w);
		struct op op = { .event = { .key = key, .kind = (uint8_t)kind, .client = client }, .key = key_of_worker(key) };

		if (kind == OP_ALLOC) {
			op.event.key -= key % GROUP;
			op.key -= key % GROUP;
		}
		/* Now and then an id is reserved only. */
		if (type->model != MODEL_IDS || draw(&w->random) % 16)
			op.event.value = value_of(client, ++w->serial);
		w->nr += record(&op, &w->log[w->nr]);
	}
}

static void *work(void *arg)
{
	struct worker *w = arg;

	for (;;) {
		pthread_barrier_wait(&edge);
		if (current.over)
			return NULL;
		if (w - worker < current.workers)
			work_round(w);
		pthread_barrier_wait(&edge);
	}
}

/* ---- rounds ---- */

static void put(FILE *file, const void *data, size_t bytes)
{
	if (bytes && fwrite(data, bytes, 1, file) != 1)
		give_up("the history cannot be written");
}

/* Write the events of a round in the order of clients. */
static uint64_t write_round(FILE *file)
{
	struct event *last = allocate(current.keys * sizeof *last);
	uint64_t nr = current.keys;

	for (uint32_t i = 0; i < current.keys; i++) {
		struct op op = { .event = { .key = i, .kind = OP_REMOVE, .client = MAX_WORKERS }, .key = key_of_worker(i) };

		record(&op, &last[i]);
	}
	for (struct worker *w = worker; w < worker + MAX_WORKERS; w++)
		nr += w->nr;
	put(file, &nr, sizeof nr);
	for (struct worker *w = worker; w < worker + MAX_WORKERS; w++)
		put(file, w->log, w->nr * sizeof *w->log);
	put(file, last, current.keys * sizeof *last);
	free(last);
	return nr;
}

static uint64_t play_round(FILE *file, uint64_t number, uint64_t *random)
{
	static const struct {
		uint32_t keys, workers;
		bool alike, sparse;
	} regimes[] = {
		{ 8, 4, true, false },  { 64, 8, true, true },   { 8, 2, false, false }, { 16, 8, true, true },
		{ 64, 4, false, true }, { 2, 4, false, false }, { 8, 8, true, true },   { 1024, 4, true, false },
	};
	uint32_t regime = number % (sizeof regimes / sizeof *regimes);

	current.keys = regimes[regime].keys;
	if (type->in_order && (current.keys > 8 * GROUP || current.keys < GROUP))
		current.keys = 4 * GROUP;
	current.workers = regimes[regime].workers;
	current.sparse = regimes[regime].sparse;
	keys_choose(type, current.keys, regimes[regime].alike, random);
	for (struct worker *w = worker; w < worker + MAX_WORKERS; w++)
		w->nr = 0;
	/* Two ticks for each event; removals at the end are more of them. */
	current.last_tick = LOAD(&ticks.now) + 2 * ROUND;
	pthread_barrier_wait(&edge);
	pthread_barrier_wait(&edge);
	return write_round(file);
}

static void start(pthread_t *thread, void *(*body)(void *), void *arg)
{
	if (pthread_create(thread, NULL, body, arg))
		give_up("a thread cannot be started");
}

static void start_workers(uint64_t seed)
{
	pthread_barrier_init(&edge, NULL, MAX_WORKERS + 1);
	for (struct worker *w = worker; w < worker + MAX_WORKERS; w++) {
		w->random = (seed + (uint64_t)(w - worker) + 1) * 0x9e3779b97f4a7c15ull | 1;
		/* One more than the ticks of a round for each worker: the clock is read before an operation begins.  Twice as many,
		 * because a clear or an erasure may drop all that the others have put in. */
		w->log = allocate(2 * (ROUND + MAX_WORKERS) * sizeof *w->log);
		start(&w->thread, work, w);
	}
}

static void stop_workers(void)
{
	current.over = true;
	pthread_barrier_wait(&edge);
	for (struct worker *w = worker; w < worker + MAX_WORKERS; w++) {
		pthread_join(w->thread, NULL);
		free(w->log);
	}
}

/* A machine with other things to do may have left it to the workers alone so far. */
static bool enough(bool iterating)
{
	return LOAD(&nr_bursts) > 2 && (!iterating || LOAD(&nr_passes) > 2) && (!type->resizes || type->resizes() > 2);
}

static int report(uint64_t nr, uint64_t rounds)
{
	uint64_t resizes = type->resizes ? type->resizes() : 0;

	fprintf(stderr, "%s: %llu operations in %llu rounds, %llu bursts, ", type->name, (unsigned long long)nr,
		(unsigned long long)rounds, (unsigned long long)nr_bursts);
	if (type->resizes)
		fprintf(stderr, "%llu resizes, ", (unsigned long long)resizes);
	fprintf(stderr, "%llu iterations, %llu of them wrong, %u wrong in all\n", (unsigned long long)nr_passes,
		(unsigned long long)nr_wrong_passes, (unsigned int)nr_wrong);
	if (nr_wrong)
		return 1;
	if (nr_bursts && nr_passes && (!type->resizes || resizes > 2))
		return 0;
	fprintf(stderr, "proves nothing: some of that did not happen\n");
	return 1;
}

static int run(FILE *file, uint64_t operations, uint64_t seed, bool iterating)
{
	const struct {
		char magic[8];
		uint32_t model, group;
	} head = { "qlinear1", type->model, type->model == MODEL_IDS ? GROUP : 1 };
	uint64_t nr[2] = { 0, 0 }, rounds = 0, random = seed * 0x9e3779b97f4a7c15ull | 1;
	pthread_t churn, pass;
	int status;

	put(file, &head, sizeof head);
	iterating = iterating && type->iterate;
	if (type->setup)
		type->setup(seed);
	fixed_insert(type);
	start_workers(seed);
	start(&churn, grow_and_shrink, (void *)type);
	if (iterating)
		start(&pass, iterate_again, (void *)type);
	while (nr[1] < operations || (nr[1] < 20 * operations && !enough(iterating)))
		nr[1] += play_round(file, rounds++, &random);
	STORE(&up, 1u);
	stop_workers();
	pthread_join(churn, NULL);
	if (iterating)
		pthread_join(pass, NULL);
	else
		nr_passes = 1;
	put(file, nr, sizeof nr);
	if (fclose(file))
		give_up("the history cannot be written");
	status = report(nr[1], rounds);
	type->teardown();
	return status;
}

/* ---- */

static int usage(void)
{
	fprintf(stderr, "usage: record --type=TYPE --output=FILE [--operations=N] [--seed=N] [--perturb=RATE]\n"
			"              [--mutant NAME] [--no-iteration]\ntypes:");
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		fprintf(stderr, " %s", types[i]->name);
	fprintf(stderr, "\n");
	return 2;
}

static const struct type *find_type(const char *name)
{
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (!strcmp(types[i]->name, name))
			return types[i];
	return NULL;
}

static bool perturb(unsigned int rate, const char *mutant)
{
#ifdef QUIESCE_PERTURB
	quiesce_perturb_rate = rate;
	return !quiesce_mutant_set(mutant);
#else
	return !rate && !mutant;
#endif
}

/* By so much, at most, is an emulator slower. */
static unsigned int slower(void)
{
	const char *times = getenv("TEST_SLOWER");

	return times ? (unsigned int)atoi(times) : 1;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "type", required_argument, NULL, 't' },       { "output", required_argument, NULL, 'o' },
		{ "operations", required_argument, NULL, 'n' }, { "seed", required_argument, NULL, 's' },
		{ "perturb", required_argument, NULL, 'p' },    { "mutant", required_argument, NULL, 'm' },
		{ "no-iteration", no_argument, NULL, 'i' },     { NULL, 0, NULL, 0 },
	};
	const char *output = NULL, *mutant = NULL;
	uint64_t operations = ROUND, seed = 1;
	unsigned int rate = 0;
	bool iterating = true;
	FILE *file;

	for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		switch (c) {
		case 't': type = find_type(optarg); break;
		case 'o': output = optarg; break;
		case 'n': operations = strtoull(optarg, NULL, 10); break;
		case 's': seed = strtoull(optarg, NULL, 10); break;
		case 'p': rate = (unsigned int)atoi(optarg); break;
		case 'm': mutant = optarg; break;
		case 'i': iterating = false; break;
		default: return usage();
		}
	}
	if (!type || !output || optind < argc || !perturb(rate, mutant))
		return usage();
	file = fopen(output, "wb");
	if (!file)
		give_up("%s cannot be written", output);
	alarm(slower() * (unsigned int)(60 + operations / 5000)); /* a hang ends in a crash */
	return run(file, operations, seed, iterating);
}
