/* SPDX-License-Identifier: MIT */
/* words.h - the words of liburcu that programs built for it access by inlined code. */
#ifndef QUIESCE_URCU_ABI_WORDS_H
#define QUIESCE_URCU_ABI_WORDS_H

#include "../src/flavor.h"
#include "../src/wake.h"

#include <quiesce-urcu/words.h>

#define URCU_LINE 128

struct urcu_gp {
	uint64_t ctr;
	uint32_t futex;
} __attribute__((aligned(URCU_LINE)));

/* The word of a thread in memb, mb and qsbr.  Programs write ctr and
 * waiting; assertions of debug builds read registered. */
struct urcu_reader {
	uint64_t ctr;
	char need_mb;
	void *node[2] __attribute__((aligned(URCU_LINE))); /* links of liburcu's list, which is not used here */
	union {
		struct {
			pthread_t tid;
			unsigned int registered;
		} nesting;
		struct {
			uint32_t waiting;
			pthread_t tid;
			unsigned int registered;
		} qsbr;
	} at;
	struct quiesce_urcu_record record;
};
_Static_assert(sizeof(struct urcu_gp) == 128 && sizeof(struct urcu_reader) == 256, "programs have these sizes");

#endif
