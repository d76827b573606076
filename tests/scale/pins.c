/* SPDX-License-Identifier: MIT */
/* pins.c - what may not grow: limits of the costs of operations, on up to 256 CPUs.
 *
 * Where a limit is above what the operation ought to cost, a comment says so.
 */
#include "cell.h"

#include <stdio.h>
#include <string.h>

struct pin {
	const char *name;
	int cpus, callers; /* 0: all */
	enum reader reader;
	enum scale_count count;
	double most, least;
	bool whole;    /* with what the library's threads and the barrier at the end of the run do */
	bool by_stay; /* the limit holds only where a line stays for a while where it arrives */
};

/* A section costs no line, no locked instruction and no fence, however many CPUs read. */
#define NOTHING(name, cpus)                                                                                            \
	{ name, cpus, 0, READER_IDLE, SCALE_TRANSFERS, 0 }, { name, cpus, 0, READER_IDLE, SCALE_FILLS, 0 },             \
	{ name, cpus, 0, READER_IDLE, SCALE_DROPPED, 0 }, { name, cpus, 0, READER_IDLE, SCALE_LOCKED, 0 },              \
	{ name, cpus, 0, READER_IDLE, SCALE_FENCES, 0 }
#define READ(name) NOTHING("read/" name, 2), NOTHING("read/" name, 64), NOTHING("read/" name, 256)
#define ALL(name, cpus, count, most) { name, cpus, 0, READER_IDLE, SCALE_##count, most }
/* A retired object is freed, and moves so many lines where that happens; the other limits are of the call alone. */
#define OBJECT(name, cpus, most)                                                                                       \
	{ name, cpus, 0, READER_IDLE, SCALE_FREED, 1.001, 0.999, true }, { name, cpus, 0, READER_IDLE, SCALE_TRANSFERS, most, 0, true }
#define STAYS(name, cpus, most) { name, cpus, 0, READER_IDLE, SCALE_TRANSFERS, most, .by_stay = true }
#define ONE(name, cpus, reader, count, most) { "wait/" name, cpus, 1, READER_##reader, SCALE_##count, most }

static const struct pin pins[] = {
	READ("rcu"), READ("shazptr"), READ("hazptr"), READ("srcu"), READ("percpu_rwsem"), READ("percpu_ref"), READ("hashtable"),
	READ("hashmap"), READ("xarray"), READ("rcu_sync"),
	/* A call costs nearly nothing; the object costs its line, and more, where it is freed. */
	ALL("retire/call_rcu", 64, TRANSFERS, 0.1), ALL("retire/call_rcu", 64, LOCKED, 0.1), OBJECT("retire/call_rcu", 64, 1.3),
	ALL("retire/call_rcu", 256, TRANSFERS, 0.1), OBJECT("retire/call_rcu", 256, 1.3),
	ALL("flood/call_rcu_throttled", 64, TRANSFERS, 0.1), ALL("flood/call_rcu_throttled", 64, LOCKED, 0.1),
	ALL("retire/kfree_rcu", 64, TRANSFERS, 0.1), OBJECT("retire/kfree_rcu", 64, 1.3),
	ALL("retire/kfree_rcu", 256, TRANSFERS, 0.1), OBJECT("retire/kfree_rcu", 256, 1.3),
	ALL("retire/call_hazptr", 64, TRANSFERS, 0.1), ALL("retire/call_hazptr", 64, LOCKED, 0.1), OBJECT("retire/call_hazptr", 64, 2),
	ALL("retire/kfree_hazptr", 64, TRANSFERS, 0.1), ALL("retire/kfree_hazptr", 64, LOCKED, 0.1), OBJECT("retire/kfree_hazptr", 64, 1.3),
	ALL("retire/hazptr_retire", 64, TRANSFERS, 0.1), OBJECT("retire/hazptr_retire", 64, 2),
	ALL("retire/hazptr_retire", 256, TRANSFERS, 0.1),
	ALL("retire/call_srcu", 64, TRANSFERS, 0.1), ALL("retire/call_srcu", 64, LOCKED, 1.1), OBJECT("retire/call_srcu", 64, 1.6),
	ALL("retire/call_srcu", 256, TRANSFERS, 0.1), ALL("retire/call_srcu", 256, LOCKED, 1.1),
	/* A cohort has a list and a count of its own; all cohorts together have a count of the process. */
	STAYS("retire/call_hazptr_cohort", 64, 4.5), ALL("retire/call_hazptr_cohort_own", 64, TRANSFERS, 2.5),
	ALL("update/hashmap_set", 64, TRANSFERS, 2), ALL("update/hashtable_set", 64, TRANSFERS, 2),
	ALL("update/hashmap_insert", 64, TRANSFERS, 2),
	ALL("update/lfqueue_enqueue_dequeue", 64, TRANSFERS, 28),
	ALL("update/value_queue_push_pop", 64, TRANSFERS, 27), /* exchanges that fail */
	ALL("update/idr_alloc_remove", 64, TRANSFERS, 20),
	/* Each CPU that spins for a lock moves its line to itself, but not at each release. */
	ALL("update/ida_alloc_free", 64, TRANSFERS, 24), ALL("update/ida_alloc_free", 256, TRANSFERS, 85),
	ALL("update/xarray_store_equal", 64, TRANSFERS, 11), ALL("update/xarray_store_equal", 256, TRANSFERS, 40),
	ALL("update/kfree_rcu_burst_32", 256, TRANSFERS, 9.5),
	ALL("update/slab_alloc_free_8", 64, TRANSFERS, 0), ALL("update/slab_alloc_free_8", 64, LOCKED, 0),
	ALL("update/wfcqueue_enqueue", 64, TRANSFERS, 2),
	/* A grace period costs one membarrier, the words of the readers, and a few locked instructions. */
	ONE("synchronize_rcu", 64, IDLE, MEMBARRIERS, 1), ONE("synchronize_rcu", 64, IDLE, LOCKED, 17),
	ONE("synchronize_rcu", 64, IDLE, LINES, 180),
	ONE("synchronize_rcu", 64, BUSY, LOCKED, 26), ONE("synchronize_rcu", 64, BUSY, TRANSFERS, 75),
	ONE("synchronize_rcu_after_10000", 64, IDLE, LOCKED, 26), /* entries of ended threads cost a load */
	ONE("synchronize_rcu_expedited", 64, SLEEPING, TRANSFERS, 200), /* with the kernel's words of readers that it wakes */
	ONE("rcu_sync_enter_exit", 64, IDLE, MEMBARRIERS, 1.1), ONE("rcu_sync_enter_exit", 64, IDLE, LINES, 210),
	ONE("synchronize_shazptr_after_10000", 64, IDLE, LINES, 220),
	/* The lines of guards that are no thread's own stay in use: shared lines that were ever needed at one time. */
	ONE("synchronize_shazptr_guards_after_10000", 64, IDLE, LINES, 18000),
	ONE("synchronize_shazptr", 64, IDLE, LOCKED, 5), ONE("synchronize_shazptr", 64, BUSY, LINES, 160),
	ONE("synchronize_srcu", 64, IDLE, MEMBARRIERS, 1), ONE("synchronize_srcu", 64, IDLE, LOCKED, 16),
	/* Each pass over the counters loads the lines of all CPUs: three or four passes, and some lines move twice in one. */
	ONE("synchronize_srcu", 64, BUSY, TRANSFERS, 320), ONE("synchronize_srcu", 256, BUSY, TRANSFERS, 1600),
	ONE("percpu_down_write", 64, IDLE, LOCKED, 10), ONE("percpu_down_write", 64, IDLE, LINES, 290),
	ALL("thread/first_use", 64, LOCKED, 16), ALL("thread/first_use", 64, TRANSFERS, 40), /* the registry's lock */
	ALL("thread/exit", 64, LOCKED, 8), ALL("thread/exit", 64, TRANSFERS, 10),
};
#define NR_PINS (sizeof pins / sizeof pins[0])

static bool same_cell(const struct pin *a, const struct pin *b)
{
	return !strcmp(a->name, b->name) && a->cpus == b->cpus && a->callers == b->callers && a->reader == b->reader;
}

static bool measure(const struct pin *pin, struct cell *cell, uint64_t seed)
{
	*cell = (struct cell){ .workload = cell_workload(pin->name), .cpus = pin->cpus, .threads = pin->cpus, .reader = pin->reader,
			       .callers = pin->callers ? pin->callers : pin->cpus, .cpus_of_socket = 64, .seed = seed };
	if (cell_run_apart(cell) && cell->ops)
		return true;
	printf("%s on %d CPUs: the run has failed\n", pin->name, pin->cpus);
	return false;
}

static bool holds(const struct pin *pin, const struct cell *cell)
{
	double value = pin->whole ? cell_whole(cell, pin->count) : cell_per_op(cell, SCALE_MEASURED, pin->count);

	if (value <= pin->most && value >= pin->least)
		return true;
	printf("%s on %d CPUs: %g %s for each operation, of which %g to %g are allowed\n", pin->name, pin->cpus, value,
	       scale_count_names[pin->count], pin->least, pin->most);
	return false;
}

/* A run counts the same each time. */
static bool repeats(uint64_t seed)
{
	static const struct pin pin = { "update/hashmap_insert", 16, 0, READER_IDLE, SCALE_TRANSFERS, 0 };
	struct cell cell[2];

	if (measure(&pin, &cell[0], seed) && measure(&pin, &cell[1], seed) && cell[0].total_ps == cell[1].total_ps &&
	    !memcmp(cell[0].counts, cell[1].counts, sizeof cell[0].counts))
		return true;
	printf("two runs of %s differ\n", pin.name);
	return false;
}

/* More callers than a workload has room for are refused, before they write where they should not. */
static bool refuses(uint64_t seed)
{
	struct cell cell = { .workload = cell_workload("update/wfcqueue_enqueue"), .cpus = 64, .threads = SCALE_CPUS + 1,
			     .callers = SCALE_CPUS + 1, .cpus_of_socket = 64, .seed = seed };

	if (!cell_run_apart(&cell))
		return true;
	printf("%d callers of update/%s have run\n", cell.callers, cell.workload->name);
	return false;
}

int cell_check_pins(uint64_t seed, bool all)
{
	struct cell cell;
	size_t broken = 0, left = 0;
	bool ran = false;

	if (!repeats(seed) || !refuses(seed))
		return 1;
	for (size_t i = 0; i < NR_PINS; i++) {
		if (!all && pins[i].by_stay) {
			left++;
			continue;
		}
		if (!i || pins[i - 1].by_stay || !same_cell(&pins[i], &pins[i - 1]))
			ran = measure(&pins[i], &cell, seed);
		broken += !ran || !holds(&pins[i], &cell);
	}
	printf("%zu of %zu limits hold\n", NR_PINS - left - broken, NR_PINS - left);
	return broken != 0;
}

/* For a build with a bad layout: the workload runs, and breaks a limit of lines. */
int cell_check_shows(const char *name, uint64_t seed)
{
	struct cell cell;

	for (size_t i = 0; i < NR_PINS; i++)
		if (!strcmp(pins[i].name, name) && pins[i].cpus > 1 && pins[i].count == SCALE_TRANSFERS)
			return !measure(&pins[i], &cell, seed) || holds(&pins[i], &cell);
	scale_fail("%s has no limit of transfers", name);
}
