/* SPDX-License-Identifier: MIT */
/* srcu_all.h - callbacks of all SRCU domains. */
#ifndef QUIESCE_SRC_SRCU_ALL_H
#define QUIESCE_SRC_SRCU_ALL_H

#include "runtime/core.h"

/* Set the counts of SRCU, and add its garbage to the others'. */
void quiesce__srcu_stats(struct quiesce_stats *stats);
/* Wait until no callback of any domain is pending; run them if there is no helper thread.  False: at @deadline; without
 * one (0), when all that are left have been waiting for sections that a forked child cannot know to be anybody's.
 * Not in a callback. */
bool quiesce__srcu_drain_until(uint64_t deadline);
void quiesce__srcu_fork_child(void);

#endif
