/* SPDX-License-Identifier: MIT */
/* walk_table.c - the types of walkscale. */
#include "walk_table.h"

const struct op *walk_types[] = { WALK_TYPES(WALK_HERE, OP_ABSENT) NULL };
