/* SPDX-License-Identifier: MIT */
/* lfstack.c - quiesce/ds/lfstack.h, recorded: each key is a stack of its own. */
#include <quiesce/ds/lfstack.h>

#define CONTAINER struct lfs_stack
#define NODE struct lfs_node
#define INIT lfs_init
#define PUT lfs_push
#define TAKE lfs_pop
#define IS_EMPTY lfs_empty
#define ENTRY lfs_entry
#define TYPE lfstack_type
#define NAME "lfstack"
#define MODEL MODEL_STACK
#include "ends.h"
