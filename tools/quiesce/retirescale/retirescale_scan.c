/* SPDX-License-Identifier: MIT */
/* retirescale_scan.c - the cost of scans: M slots in use, N objects retired.
 *
 * Objects come from one array and are not freed, so that the allocator has no part in it.
 */
#include <stdlib.h>

#include "retirescale.h"
#include "team.h"

#define STRIDE 64
#define AT_LEAST 20000 /* least number of objects in one sample */

static const int slots_in_use[] = { 1, 16, 64, 256, 1024, 4096 };
#define NR_SLOTS (sizeof(slots_in_use) / sizeof(slots_in_use[0]))

/* Returns nanoseconds for @nr objects; for types that leave all objects to one scan, the time of that scan. */
static uint64_t one(const struct op_reclaim *reclaim, char *objects, uint64_t nr)
{
	uint64_t begin = now_ns();

	reclaim->give(objects, STRIDE, nr);
	if (reclaim->finish) {
		begin = now_ns();
		reclaim->finish();
	} else {
		reclaim->barrier();
	}
	return now_ns() - begin;
}

static bool sample(const struct job *job, char *objects, int slots, int size)
{
	uint64_t nr = scan_objects(size), repeat = nr < AT_LEAST ? AT_LEAST / nr : 1, ns = 0, mine = 0;
	uint64_t freed = retirescale_freed(job->op);

	for (uint64_t i = 0; i < repeat; i++) {
		uint64_t before = retire_tally()->freed;

		ns += one(job->op->reclaim, objects, nr);
		mine += retire_tally()->freed - before;
	}
	if (!retirescale_all_freed(nr * repeat, retirescale_freed(job->op) - freed, "scan"))
		return false;
	/* Objects that the worker took over are not a sample. */
	if (mine == nr * repeat)
		job_send(SCENARIO_RETIRE_SCAN + size, slots, job->round, (double)ns / (double)(nr * repeat));
	job_flush();
	return true;
}

bool retirescale_scan(const struct job *job)
{
	char *objects = aligned_alloc(STRIDE, STRIDE * scan_objects(NR_SCAN_SIZES - 1));
	bool good = true;

	if (!objects) {
		job_send_note("out of memory");
		return false;
	}
	for (size_t i = 0; i < STRIDE * scan_objects(NR_SCAN_SIZES - 1); i += STRIDE)
		objects[i] = 0; /* makes the kernel allocate the pages */
	op_thread_enter(job->op);
	for (size_t i = 0; i < NR_SLOTS && good; i++) {
		if (!job->op->reclaim->occupy((uint32_t)slots_in_use[i])) {
			job_send_note("left out: %d slots in use, out of memory", slots_in_use[i]);
			continue;
		}
		for (int size = 0; size < NR_SCAN_SIZES && good; size++)
			good = sample(job, objects, slots_in_use[i], size);
		job->op->reclaim->vacate();
	}
	op_thread_exit(job->op);
	free(objects);
	return good;
}
