/* SPDX-License-Identifier: MIT */
/* later.h - what the helper calls after a while. */
#ifndef QUIESCE_LATER_H
#define QUIESCE_LATER_H

#include <quiesce/detail/head.h>

#include "core.h"

/* Call @func(@head) in the helper thread after some 5 to 10 ms; without it, at once.  No grace period. */
void quiesce__later(struct rcu_head *head, void (*func)(struct rcu_head *head));
/* @head was given to quiesce__later(): call it now, in this thread; or wait until the helper has. */
void quiesce__later_now(struct rcu_head *head);

void quiesce__laters_fork_prepare(void);
void quiesce__laters_fork_parent(void);
void quiesce__laters_fork_child(void);
/* In a forked child: heads that wait will not be called; @forgotten is called for each instead. */
void quiesce__laters_forget(void (*forgotten)(struct rcu_head *head));

#endif
