/* SPDX-License-Identifier: MIT */
/* hash_table.c - the types of hashscale in this build; those of peers if their modules can be loaded. */
#include "hash_table.h"

const struct op *hash_types[] = { HASH_TYPES(HASH_HERE, OP_ABSENT) NULL };
