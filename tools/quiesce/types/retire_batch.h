/* SPDX-License-Identifier: MIT */
/* retire_batch.h - what memory costs whose free is deferred: the batch of a thread, which fills and is freed in one go.
 *
 * A file that measures an allocator defines BATCH_FREE(object), which counts the object as well, and includes this.
 */
#ifndef QUIESCE_TOOL_RETIRE_BATCH_H
#define QUIESCE_TOOL_RETIRE_BATCH_H

#include <string.h>

#include "retire.h"

#ifndef BATCH_ROOM
#define BATCH_ROOM 0 /* room for further objects, of which the type's own functions make use */
#endif

static __thread struct retire_object **batch;
static __thread size_t nr_batched;

static void batch_enter(void)
{
	size_t size = (retire_params.batch + BATCH_ROOM) * sizeof(struct retire_object *);

	batch = malloc(size);
	if (!batch)
		abort();
	memset(batch, 0, size); /* makes the kernel allocate the pages */
	nr_batched = 0;
}

OP_FUNCTION(batch_exit, free(batch))

static void batch_drain(void)
{
	for (size_t i = 0; i < nr_batched; i++)
		BATCH_FREE(batch[i]);
	nr_batched = 0;
}

static inline void batch_put(struct retire_object *o)
{
	batch[nr_batched++] = o;
	if (quiesce_unlikely(nr_batched == retire_params.batch))
		batch_drain();
}

/* Nothing protects the object, so it is not accessed. */
static void read_address(void **where)
{
	retire_sum += (uintptr_t)quiesce_load_relaxed(where);
}

static void nothing(void)
{
}

#define BATCH_READERS .read = read_address, .hold = read_address, .release = nothing
#define BATCH_THREADS .thread_enter = batch_enter, .thread_exit = batch_exit

#endif
