/* SPDX-License-Identifier: MIT */
/* hashscale_keys.c - sets of keys, and the stream of operations of each thread.
 *
 * A key is a number of 61 bits, unique in its set; every second one has HASH_CHURNED.  Lines of a file are hashed to
 * such numbers; the generator makes them from the numbers from 1 on, scattered by a bijection or as they are.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hashscale.h"
#include "types/hash_array.h"

#define BITS 61
#define BASE (HASH_CHURNED - 1)

/* ---- sets ---- */

/* A bijection on 61 bits: multiplications by odd factors, and shifts to the right. */
uint64_t hash_key_number(uint64_t i)
{
	uint64_t x = (i + 1) & BASE;

	x ^= x >> 31;
	x = x * 0x9fb21c651e98df25u & BASE;
	x ^= x >> 29;
	x = x * 0xd1b54a32d192ed03u & BASE;
	return x ^ x >> 32;
}

static uint64_t mark(uint64_t number, uint64_t index)
{
	return number | (index & 1 ? HASH_CHURNED : 0);
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void shuffle(uint64_t *key, uint64_t nr, uint64_t *state)
{
	for (uint64_t i = nr; i-- > 1;) {
		uint64_t other = random_next(state) % (i + 1), moved = key[i];

		key[i] = key[other];
		key[other] = moved;
	}
}

/* Sorts the keys by their hash, to find equal ones; the order of the file is lost. */
static void keep_different(struct hash_keys *keys)
{
	uint64_t kept = 0, state = 88172645463325252u;

	qsort(keys->key, keys->nr, sizeof(*keys->key), by_number);
	for (uint64_t i = 0; i < keys->nr; i++)
		if (!kept || keys->key[i] != keys->key[kept - 1])
			keys->key[kept++] = keys->key[i];
	keys->nr = kept;
	/* Shuffles them, because no table shall profit from the order of the hash either. */
	shuffle(keys->key, kept, &state);
}

static uint64_t hash_line(const char *line, size_t length)
{
	uint64_t h = length;

	for (size_t i = 0; i < length; i++)
		h = hash_mix((h ^ (unsigned char)line[i]) * 0x9e3779b97f4a7c15u);
	h &= BASE;
	return h ? h : 1;
}

/* The length of a line without its newline; -1: the end of the file, or a line that no list of keys has. */
static ssize_t read_line(char line[HASH_MAX_LINE + 1], FILE *f)
{
	ssize_t n = 0;
	int c;

	while ((c = getc_unlocked(f)) != EOF && c != '\n') {
		if (n == HASH_MAX_LINE)
			return -1;
		line[n++] = (char)c;
	}
	line[n] = '\0';
	return c == EOF && !n ? -1 : n;
}

static bool read_lines(struct hash_keys *keys, FILE *f)
{
	char line[HASH_MAX_LINE + 1];
	size_t room = 0;
	ssize_t n;

	while (keys->nr < HASH_MAX_KEYS && (n = read_line(line, f)) >= 0) {
		if (!n || !strncmp(line, "//", 2)) /* a comment, in the list of public suffixes */
			continue;
		if (keys->nr == room) {
			uint64_t *more = realloc(keys->key, (room = 2 * room + 1024) * sizeof(*more));

			if (!more)
				break;
			keys->key = more;
		}
		keys->key[keys->nr++] = hash_line(line, (size_t)n);
	}
	return feof(f);
}

static bool from_file(struct hash_keys *ret, const char *path)
{
	FILE *f = fopen(path, "re");
	bool good = f && read_lines(ret, f);

	if (f)
		fclose(f);
	if (!good)
		return false;
	keep_different(ret);
	return ret->nr >= HASH_MIN_KEYS;
}

bool hash_keys_make(struct hash_keys *ret, const struct hash_set *set)
{
	*ret = (struct hash_keys){ .nr = set->nr };
	if (*set->path) {
		if (!from_file(ret, set->path))
			return false;
	} else {
		ret->key = malloc(ret->nr * sizeof(*ret->key));
		for (uint64_t i = 0; ret->key && i < ret->nr; i++)
			ret->key[i] = set->dense ? i + 1 : hash_key_number(i);
	}
	for (uint64_t i = 0; ret->key && i < ret->nr; i++)
		ret->key[i] = mark(ret->key[i], i);
	return ret->key;
}

void hash_keys_free(struct hash_keys *keys)
{
	free(keys->key);
	*keys = (struct hash_keys){ 0 };
}

/* ---- distributions ---- */

#define ZIPF 0.99

/* Ranks by rejection from the area under x^-ZIPF, whose integral can be inverted. */
struct zipf {
	double first, range; /* first value and range of the integral */
};

static double integral(double x)
{
	return pow(x, 1 - ZIPF) / (1 - ZIPF);
}

static struct zipf zipf_of(uint64_t nr)
{
	double first = integral(1.5) - 1;

	return (struct zipf){ first, integral((double)nr + 0.5) - first };
}

static double fraction(uint64_t *state)
{
	return (double)(random_next(state) >> 11) * 0x1p-53;
}

/* Draws a rank; the most frequent one is 1. */
static uint64_t zipf_rank(const struct zipf *z, uint64_t *state)
{
	for (;;) {
		double u = z->first + fraction(state) * z->range;
		double k = floor(pow(u * (1 - ZIPF), 1 / (1 - ZIPF)) + 0.5);

		if (k < 1)
			k = 1;
		if (u >= integral(k + 0.5) - pow(k, -ZIPF))
			return (uint64_t)k;
	}
}

struct chooser {
	const struct hash_work *work;
	struct zipf zipf;
	uint64_t state;
};

static uint64_t below(uint64_t nr, uint64_t *state)
{
	return ((random_next(state) >> 32) * nr) >> 32;
}

/* A prime scatters the ranks, so that neighbours in rank were not inserted one after the other. */
static uint64_t choose(struct chooser *c)
{
	uint64_t nr = c->work->keys->nr;

	switch (c->work->distribution) {
	case HASH_ZIPF:
		return ((zipf_rank(&c->zipf, &c->state) - 1) % nr) * 2654435761u % nr;
	case HASH_HOT:
		return 0;
	default:
		return below(nr, &c->state);
	}
}

/* ---- streams ---- */

#define AWAY 16 /* most keys of a thread that are removed at one time */

struct churn {
	uint64_t key[AWAY]; /* removed keys, the oldest at @first */
	uint32_t first, nr;
};

/* The thread's own key that is nearest to @index: every second key churns,
 * and the threads divide these among themselves. */
static uint64_t own_key(const struct hash_work *w, uint64_t index)
{
	uint64_t own = index / 2 / (uint64_t)w->threads * (uint64_t)w->threads + (uint64_t)w->thread;

	while (2 * own + 1 >= w->keys->nr)
		own -= (uint64_t)w->threads;
	return w->keys->key[2 * own + 1];
}

static bool is_away(const struct churn *churn, uint64_t key)
{
	for (uint32_t i = 0; i < churn->nr; i++)
		if (churn->key[(churn->first + i) % AWAY] == key)
			return true;
	return false;
}

/* Inserts the key that was removed first, so that the words after any point
 * of the stream show which keys are missing there. */
static uint64_t insert_oldest(struct churn *churn)
{
	uint64_t key = churn->key[churn->first];

	churn->first = (churn->first + 1) % AWAY;
	churn->nr--;
	return key | HASH_INSERT;
}

static uint64_t next_update(struct churn *churn, struct chooser *c)
{
	uint64_t key = own_key(c->work, choose(c));

	if (churn->nr == AWAY || is_away(churn, key) || (churn->nr && random_next(&c->state) >> 63))
		return insert_oldest(churn);
	churn->key[(churn->first + churn->nr++) % AWAY] = key;
	return key | HASH_REMOVE;
}

void hash_stream_make(uint64_t *word, uint64_t nr, const struct hash_work *work)
{
	struct chooser c = { work, zipf_of(work->keys->nr), hash_mix(work->seed * HASH_CELL_THREADS + (uint64_t)work->thread + 1) | 1 };
	uint64_t threshold = (uint64_t)(work->updates / 100 * 0x1p32);
	struct churn churn = { .nr = 0 };

	for (uint64_t i = 0; i < nr; i++)
		if (churn.nr && nr - i <= churn.nr)
			word[i] = insert_oldest(&churn); /* all keys are in the table at the end, so that the stream can begin again */
		else if (threshold && random_next(&c.state) >> 32 < threshold && nr - i > churn.nr + 1)
			word[i] = next_update(&churn, &c);
		else
			word[i] = work->keys->key[choose(&c)];
}

uint64_t hash_stream_away(const uint64_t *word, uint64_t nr)
{
	uint64_t away = 0;

	for (uint64_t i = 0; i < nr; i++)
		away += (word[i] & HASH_REMOVE) ? 1 : (word[i] & HASH_INSERT) ? (uint64_t)-1 : 0;
	return away;
}

/* ---- turnovers ---- */

#define ROOM 8 /* one of so many keys is out: a key that comes back does not find the place that it has just left */

bool hash_turnover_begin(struct hash_turnover *ret, const struct hash_keys *keys, uint64_t times, uint64_t seed)
{
	*ret = (struct hash_turnover){ .nr = keys->nr, .room = keys->nr / ROOM, .removes = times * keys->nr,
				       .state = hash_mix(seed + 1) | 1 };
	ret->key = hash_array_alloc(ret->nr * sizeof(*ret->key)); /* malloc() would raise its threshold for mappings when this is freed */
	if (!ret->key)
		return false;
	memcpy(ret->key, keys->key, ret->nr * sizeof(*ret->key));
	shuffle(ret->key, ret->nr, &ret->state); /* the last @room keys are the first that go */
	return true;
}

/* First the keys of the ring are removed.  Then each step removes a random key, which takes the place of the oldest
 * key in the ring, and inserts that one.  At the end all keys of the ring are inserted. */
static uint64_t turnover_step(struct hash_turnover *t, uint64_t word[2])
{
	uint64_t *oldest = &t->key[t->nr - t->room + t->step % t->room], *going, key = *oldest;

	t->step++;
	if (t->step <= t->room) {
		word[0] = key | HASH_REMOVE;
		return 1;
	}
	if (t->step > t->removes) {
		word[0] = key | HASH_INSERT;
		return 1;
	}
	going = &t->key[below(t->nr - t->room, &t->state)];
	word[0] = *going | HASH_REMOVE;
	word[1] = key | HASH_INSERT;
	*oldest = *going;
	*going = key;
	return 2;
}

uint64_t hash_turnover_words(struct hash_turnover *t, uint64_t *word, uint64_t most)
{
	uint64_t n = 0;

	while (n + 2 <= most && t->step < t->removes + t->room)
		n += turnover_step(t, word + n);
	return n;
}

void hash_turnover_end(struct hash_turnover *t)
{
	hash_array_free(t->key, t->nr * sizeof(*t->key));
}
