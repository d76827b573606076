/* SPDX-License-Identifier: MIT */
/* alone.c - threads beside the workers, each with keys of its own.
 *
 * One makes the table grow and shrink all the time.  The other iterates: an element that stays from the
 * first to the last moment is visited exactly once, and found, whatever happens to the table meanwhile.
 */
#include "record.h"

#include <inttypes.h>
#include <time.h>

#define CLIENT_FIXED 1000
#define CLIENT_BURST 1001

uint64_t nr_bursts, nr_passes, nr_wrong_passes;

static void sleep_ns(long ns)
{
	nanosleep(&(struct timespec){ .tv_nsec = ns }, NULL);
}

static void count(uint64_t *nr)
{
	/* raw: the recorder's own, read by main. */
	__atomic_fetch_add(nr, 1, __ATOMIC_RELEASE);
}

/* Make an operation that is not recorded, and return its event. */
static struct event run(const struct type *type, enum kind kind, uint64_t key, uint64_t value)
{
	struct op op = { .event = { .kind = (uint8_t)kind, .value = value, .key = NO_KEY }, .key = key };

	step(type->prepare, &op);
	type->perform(&op);
	step(type->finish, &op);
	return op.event;
}

static void insert(const struct type *type, uint64_t key, uint64_t value)
{
	if (!run(type, OP_INSERT, key, value).done)
		wrong("%s: key %#" PRIx64 " was there before its only owner inserted it", type->name, key);
}

static void expect(const struct type *type, enum kind kind, uint64_t key, uint64_t value)
{
	uint64_t found = run(type, kind, key, 0).found;

	if (found != value && (found || !type->clears))
		wrong("%s: %s of key %#" PRIx64 ", which no other thread changes: %#" PRIx64 " instead of %#" PRIx64, type->name,
		      kind == OP_LOOKUP ? "a lookup" : "removal", key, found, value);
}

/* ---- grow and shrink ---- */

static void burst(const struct type *type, uint32_t nr, uint64_t *random)
{
	uint64_t first = nr_bursts * MAX_BURST;

	/* The table has no reservation, so it may shrink again. */
	if (type->reserve)
		type->reserve(draw(random) % 4 ? 0 : nr);
	for (uint32_t i = 0; i < nr && !time_is_up(); i++)
		insert(type, key_of_burst(type, nr_bursts, i), value_of(CLIENT_BURST, first + i + 1));
	for (uint32_t i = 0; i < nr && !time_is_up(); i += 1 + draw(random) % 8)
		expect(type, OP_LOOKUP, key_of_burst(type, nr_bursts, i), value_of(CLIENT_BURST, first + i + 1));
	for (uint32_t i = 0; i < nr && !time_is_up(); i++)
		expect(type, OP_REMOVE, key_of_burst(type, nr_bursts, i), value_of(CLIENT_BURST, first + i + 1));
}

void *grow_and_shrink(void *arg)
{
	static const uint32_t sizes[] = { 16, 32, 64, 128, 256, 512, MAX_BURST };
	const struct type *type = arg;
	uint64_t random = 521288629;

	for (; !time_is_up(); count(&nr_bursts)) {
		burst(type, sizes[draw(&random) % (sizeof sizes / sizeof *sizes)], &random);
		if (draw(&random) % 4 == 0)
			sleep_ns(50000);
	}
	return NULL;
}

/* ---- iterate ---- */

void fixed_insert(const struct type *type)
{
	for (uint32_t i = 0; i < NR_FIXED; i++)
		insert(type, key_fixed(type, i), value_of(CLIENT_FIXED, i + 1));
}

void visit(struct pass *pass, const struct type *type, uint64_t key, uint64_t value)
{
	uint32_t i = 0;

	if (type->in_order && pass->all && (pass->down ? key >= pass->last : key <= pass->last)) {
		wrong("%s: an iteration met key %" PRIu64 " after %" PRIu64, type->name, key, pass->last);
		pass->wrong = true;
	}
	pass->all++;
	pass->last = key;
	while (i < NR_FIXED && key_fixed(type, i) != key)
		i++;
	if (i == NR_FIXED)
		return;
	pass->seen[i]++;
	if (value != value_of(CLIENT_FIXED, i + 1)) {
		wrong("%s: an iteration met key %#" PRIx64 " with another value", type->name, key);
		pass->wrong = true;
	}
}

static void check(struct pass *pass, const struct type *type)
{
	for (uint32_t i = 0; i < NR_FIXED; i++)
		if (pass->seen[i] != 1) {
			wrong("%s: an iteration met key %#" PRIx64 " %u times", type->name, key_fixed(type, i),
			      (unsigned int)pass->seen[i]);
			pass->wrong = true;
		}
	nr_wrong_passes += pass->wrong;
}

void *iterate_again(void *arg)
{
	const struct type *type = arg;

	for (; !time_is_up(); count(&nr_passes)) {
		struct pass pass = { .all = 0 };

		type->iterate(&pass);
		check(&pass, type);
		for (uint32_t i = 0; i < NR_FIXED; i++)
			expect(type, OP_LOOKUP, key_fixed(type, i), value_of(CLIENT_FIXED, i + 1));
		sleep_ns(100000);
	}
	return NULL;
}
