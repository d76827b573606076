/* SPDX-License-Identifier: MIT */
/* lfqueue.c - quiesce/ds/lfqueue.h, recorded: each key is a queue of its own. */
#include <quiesce/ds/lfqueue.h>

#define CONTAINER struct lfq_queue
#define NODE struct lfq_node
#define INIT lfq_init
#define PUT lfq_enqueue
#define TAKE lfq_dequeue
#define IS_EMPTY lfq_empty
#define ENTRY lfq_entry
#define TYPE lfqueue_type
#define NAME "lfqueue"
#define MODEL MODEL_QUEUE
#include "ends.h"
