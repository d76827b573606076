/* SPDX-License-Identifier: MIT */
/* walk_exchange.c - plain hazard pointers: an exchange for each protection.
 * raw, whole file: not a part of the library, but of the comparison. */
#define WALK_SCHEME exchange
#define WALK_WHAT "hazard pointers by hand, an exchange for each protection"
#define WALK_RANK 400
#define plain_set(slot, address) ((void)__atomic_exchange_n((slot), (address), __ATOMIC_SEQ_CST))
#define plain_fence() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#include "types/walk_plain.h"

#define walk_init NULL
#include "types/walk_types.h"
