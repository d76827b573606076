/* SPDX-License-Identifier: MIT */
/* qsbr.h - the RCU whose readers say when they are quiescent, for its own room. */
#ifndef QUIESCE_SRC_QSBR_H
#define QUIESCE_SRC_QSBR_H

#include "rcu.h"

/* A thread that is registered ends. */
void quiesce__qsbr_thread_end(struct quiesce_tls_v1 *self);

#endif
