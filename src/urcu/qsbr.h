/* SPDX-License-Identifier: MIT */
/* qsbr.h - the internal interface of qsbr.c, the RCU whose readers report when they are quiescent. */
#ifndef QUIESCE_SRC_QSBR_H
#define QUIESCE_SRC_QSBR_H

#include "rcu/rcu.h"

/* Unregister the thread, which ends, if it is registered. */
void quiesce__qsbr_thread_end(struct quiesce_tls_v1 *self);

#endif
