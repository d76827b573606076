/* SPDX-License-Identifier: MIT */
/* delayed_call.h - calls that the helper makes after a delay. */
#ifndef QUIESCE_DELAYED_CALL_H
#define QUIESCE_DELAYED_CALL_H

#include <quiesce/detail/head.h>

#include "core.h"

/* Call @func(@head) in the helper thread after 5 to 10 ms; without a helper thread, at once.  No grace
 * period. */
void quiesce__delayed_call(struct rcu_head *head, void (*func)(struct rcu_head *head));
/* Call the function of @head, which was passed to quiesce__delayed_call(), now in this thread; or wait until the
 * helper has called it. */
void quiesce__delayed_call_now(struct rcu_head *head);

void quiesce__delayed_calls_fork_prepare(void);
void quiesce__delayed_calls_fork_parent(void);
void quiesce__delayed_calls_fork_child(void);
/* In a forked child: drop every waiting head, and call @forgotten for each instead of its function. */
void quiesce__delayed_calls_forget(void (*forgotten)(struct rcu_head *head));

#endif
