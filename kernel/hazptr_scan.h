/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Private to hazptr.ko: between the walk over slots and the scan. */
#ifndef QUIESCE_HAZPTR_SCAN_H
#define QUIESCE_HAZPTR_SCAN_H

#include <linux/types.h>

struct hazptr_context;

u64 hazptr_walk(void);
u64 hazptr_nr_contexts(void);
void hazptr_contexts_init(void);

/* A slot of @ctx holds @value.  Called under a raw spinlock. */
void hazptr_found(unsigned long value, const struct hazptr_context *ctx);

#endif /* QUIESCE_HAZPTR_SCAN_H */
