/* SPDX-License-Identifier: MIT */
/* srcu_all.h - statistics, draining and fork handling of all SRCU domains together. */
#ifndef QUIESCE_SRC_SRCU_ALL_H
#define QUIESCE_SRC_SRCU_ALL_H

#include "runtime/core.h"

/* Set the SRCU counts of @stats, and add SRCU's garbage to the totals. */
void quiesce__srcu_stats(struct quiesce_stats *stats);
/* Wait until no callback of any domain is pending; run callbacks here if there is no helper thread.  Returns false
 * at @deadline; without one (0), when every pending callback waits for sections that a forked child inherited and
 * whose threads it may not have.  Not in a callback. */
bool quiesce__srcu_drain_until(uint64_t deadline);
void quiesce__srcu_fork_child(void);

#endif
