/* SPDX-License-Identifier: MIT */
/* srcu_check.c - whether all sections of an index have left: sums of the counters of all CPUs.
 *
 * I1. An index is empty if the sections that have entered, as of a pass over the counters that follows the fence, are as many as those
 *     that had left, as of any earlier pass.  The earlier pass includes only sections that the later one includes as well, so if they
 *     are as many they are the same.  It may be older than the fence, by any time.  (Modulo 2^64: fewer sections begin between
 *     the two passes.)
 * I2. So each pass sums all four words, which are in one cache line of each CPU, and serves twice: its sums of entered end
 *     one check, and its sums of left begin the next one.
 * I3. If no section is open during a check, the check finds that: the sums of its own pass are equal then, though that alone proves
 *     nothing, and entered is summed once more.
 *
 * PC2  see percpu.c
 */
#include "srcu.h"

#define LEFT QUIESCE_SRCU_LEFT

uint64_t quiesce__srcu_inside(struct srcu_struct *ssp, uint32_t idx)
{
	return quiesce__percpu_inside(&ssp->percpu, quiesce__srcu_usage(ssp)->shared, idx, LEFT + idx);
}

static uint64_t sum_entered(struct srcu_struct *ssp, uint32_t idx)
{
	return quiesce__percpu_total(&ssp->percpu, quiesce__srcu_usage(ssp)->shared, idx);
}

/* Make a pass over the counters: returns the indexes that are empty (I1), and in @ret_balanced those whose sums in this pass are equal. */
static uint32_t pass(struct srcu_struct *ssp, uint64_t *left, uint32_t *ret_balanced)
{
	uint64_t sums[QUIESCE_SRCU_WORDS];
	uint32_t empty = 0;

	*ret_balanced = 0;
	quiesce__percpu_sums(&ssp->percpu, quiesce__srcu_usage(ssp)->shared, sums);
	for (uint32_t i = 0; i < 2; i++) {
		empty |= (uint32_t)(sums[i] == left[i]) << i;
		left[i] = sums[LEFT + i];
		*ret_balanced |= (uint32_t)(sums[i] == left[i]) << i;
	}
	return empty;
}

uint32_t quiesce__srcu_check(struct srcu_struct *ssp, uint32_t seen, uint64_t *left)
{
	uint32_t balanced;

	seen |= pass(ssp, left, &balanced);
	if (QUIESCE_MUTANT(srcu_one_pass))
		seen |= balanced;
	for (uint32_t i = 0; i < 2 && !QUIESCE_MUTANT(srcu_check_late); i++)
		if ((balanced & ~seen & 1u << i) && sum_entered(ssp, i) == left[i])
			seen |= 1u << i;
	return seen;
}
