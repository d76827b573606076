/* SPDX-License-Identifier: MIT */
/* scenario.c - names and descriptions of scenarios: what readers do during a measurement. */
#include "tool.h"

/* Each set of keys has a scenario for each share of updates. */
#define HASH_SET(set, name)                                                                                           \
	[SCENARIO_HASH + (set) * HASH_MAX_UPDATES ... SCENARIO_HASH + ((set) + 1) * HASH_MAX_UPDATES - 1] = \
		{ name, "operations/s", "lookups, and updates, of a table" }
_Static_assert(HASH_MAX_SETS == 4, "each set has a name");

const struct scenario_info scenario_info[NR_SCENARIOS] = {
	[SCENARIO_NONE] = { "read", "ns", "CPU time of one read-side operation" },
	[SCENARIO_IDLE] = { "idle", "us", "readers registered, but asleep outside sections" },
	[SCENARIO_SAME] = { "same", "us", "readers back to back, on what is waited for" },
	[SCENARIO_OTHERS] = { "others", "us", "readers back to back, on 1024 other objects" },
	[SCENARIO_DOCUMENT] = { "document", "us", "readers back to back, each on an object of its own" },
	[SCENARIO_LONG] = { "long", "us", "readers that sleep 1 ms inside their sections" },
	[SCENARIO_HELD] = { "held", "us", "time from the end of a section of 100 ms to the return of the wait for it" },
	[SCENARIO_HELD_CPU] = { "held_cpu", "us", "of held: CPU time of the process during the wait of 100 ms" },
	[SCENARIO_CALLERS] = { "callers", "us", "8 callers beside one reader of what they wait for" },
	[SCENARIO_CALLERS0] = { "callers0", "us", "8 callers, each for an object of its own, no readers" },
	[SCENARIO_CALLERS2] = { "callers2", "us", "8 callers, each for an object of its own, beside 2 readers of others" },
	[SCENARIO_RATE] = { "rate", "waits/s", "of callers: waits of all of them together" },
	[SCENARIO_RATE0] = { "rate0", "waits/s", "of callers0: waits of all of them together" },
	[SCENARIO_RATE2] = { "rate2", "waits/s", "of callers2: waits of all of them together" },
	[SCENARIO_FAIRNESS] = { "fairness", "ratio", "of callers: waits of the slowest over the mean" },
	[SCENARIO_FAIRNESS0] = { "fairness0", "ratio", "of callers0: waits of the slowest over the mean" },
	[SCENARIO_FAIRNESS2] = { "fairness2", "ratio", "of callers2: waits of the slowest over the mean" },
	[SCENARIO_ALIVE] = { "alive", "us", "1024 registered threads asleep" },
	[SCENARIO_HOGS] = { "hogs", "us", "64 readers beside 2 other processes that hog CPUs" },
	[SCENARIO_BESIDE] = { "beside", "ratio", "readers back to back: their rate beside an updater, over that without" },
	[SCENARIO_BESIDE_LONG] = { "beside_long", "ratio", "beside of one reader, with one on the updater's CPU in a section of 20 ms" },
	[SCENARIO_RETIRE] = { "retire", "objects/s", "call_rcu() or call_hazptr() of 64-byte objects, final barrier included" },
	[SCENARIO_GARBAGE] = { "garbage", "objects", "of retire: most objects retired and not yet freed" },
	[SCENARIO_RETIRE_IDLE] = { "idle", "objects/s", "objects that no other thread saw; no readers" },
	[SCENARIO_RETIRE_PUBLISHED] = { "published", "objects/s", "each object replaces the last at a shared pointer; no readers" },
	[SCENARIO_RETIRE_BUSY] = { "busy", "objects/s", "objects are published; one reader back to back" },
	[SCENARIO_RETIRE_GAP] = { "gap", "objects/s", "objects are published; one reader with 100 ns between reads" },
	[SCENARIO_RETIRE_STALLED] = { "stalled", "objects/s", "objects are published; one reader holds one object all the time" },
	[SCENARIO_RW_SPARSE] = { "sparse", "ms", "a burst of writes, while each reader reads once in a millisecond" },
	[SCENARIO_RW_DENSE] = { "dense", "ms", "a burst of writes, while readers read back to back" },
	[SCENARIO_RW_RARE] = { "rare", "us", "wait of a writer that comes when readers are fast; readers back to back" },
	[SCENARIO_RW_OFTEN] = { "often", "us", "wait of a writer that writes back to back; readers back to back" },
	HASH_SET(0, "hash"), HASH_SET(1, "hash2"), HASH_SET(2, "hash3"), HASH_SET(3, "hash4"),
	[SCENARIO_READS] = { "reads", "count", "read-side sections" },
	[SCENARIO_UPDATES] = { "updates", "count", "elements replaced" },
	[SCENARIO_REUSED] = { "reused", "count", "elements used again" },
	[SCENARIO_CLOSE_CALLS] = { "close_calls", "count", "sections during which two or three grace periods ended" },
	[SCENARIO_COST] = { "cost", "ns", "one operation" },
	[SCENARIO_QUEUE] = { "pairs", "operations/s", "pairs of a put and a get" },
	[SCENARIO_QUEUE + 1] = { "to_1", "operations/s", "gets of one consumer" },
	[SCENARIO_QUEUE + 2] = { "to_2", "operations/s", "gets of two consumers" },
	[SCENARIO_QUEUE + 3] = { "to_3", "operations/s", "gets of three consumers" },
	[SCENARIO_QUEUE + 4] = { "to_4", "operations/s", "gets of four consumers" },
	[SCENARIO_ERRORS] = { "errors", "count", "whatever must not happen" },
};

const char *fence_name(enum op_fence fence)
{
	static const char *const name[OP_NR_FENCES] = { NULL, "light", "full" };

	return name[fence];
}
