/* SPDX-License-Identifier: MIT */
/* hash_table.c - the types of hashscale that this build can measure. */
#include "hash_table.h"

#define HASH_ENTRY(name) &hash_op_##name,
const struct op *const hash_types[] = { HASH_TYPES(HASH_ENTRY) NULL };
