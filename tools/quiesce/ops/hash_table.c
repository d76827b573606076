/* SPDX-License-Identifier: MIT */
/* hash_table.c - the types of hashscale that this build can measure, if the peers are there. */
#include "hash_table.h"

const struct op *hash_types[] = { HASH_TYPES(HASH_HERE, OP_ABSENT) NULL };
