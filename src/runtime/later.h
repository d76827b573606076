/* SPDX-License-Identifier: MIT */
/* later.h - calls that the helper makes after a delay. */
#ifndef QUIESCE_LATER_H
#define QUIESCE_LATER_H

#include <quiesce/detail/head.h>

#include "core.h"

/* Call @func(@head) in the helper thread after 5 to 10 ms; without a helper thread, at once.  No grace
 * period. */
void quiesce__later(struct rcu_head *head, void (*func)(struct rcu_head *head));
/* Call the function of @head, which was passed to quiesce__later(), now in this thread; or wait until the
 * helper has called it. */
void quiesce__later_now(struct rcu_head *head);

void quiesce__laters_fork_prepare(void);
void quiesce__laters_fork_parent(void);
void quiesce__laters_fork_child(void);
/* In a forked child: drop every waiting head, and call @forgotten for each instead of its function. */
void quiesce__laters_forget(void (*forgotten)(struct rcu_head *head));

#endif
