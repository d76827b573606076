/* SPDX-License-Identifier: MIT */
/* retire.c - jemalloc: objects that are allocated and freed by batches, without a grace period.
 *
 * Debian's library exports malloc() and free() under these names only.  It is opened when it is measured, so that they stay its own, and
 * because its thread-local memory is more than the C library keeps for libraries that are loaded late (struct op, @static_tls).
 */
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "peer.h"
#include "registry.h"
#include "types/retire.h"

#define LIBRARY "libjemalloc.so.2"

static void *(*library_malloc)(size_t size);
static void (*library_free)(void *object);

const char *peer_missing(void)
{
	const char *why = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL) ? NULL : dlerror();

	/* Without that memory the library is there, and a child that is started for it has more. */
	return why && strstr(why, "static TLS") ? NULL : why;
}

static int init(enum op_fence fence)
{
	void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

	(void)fence;
	if (!handle)
		return -ELIBACC;
	*(void **)&library_malloc = dlsym(handle, "malloc");
	*(void **)&library_free = dlsym(handle, "free");
	return library_malloc && library_free ? 0 : -ELIBACC;
}

static inline struct retire_object *allocate(uint64_t value)
{
	struct retire_object *o = library_malloc(retire_params.bytes);

	if (quiesce_unlikely(!o))
		abort();
	o->value = value;
	return o;
}

static void dispose(void *object)
{
	library_free(object);
}

#define BATCH_FREE(object) (library_free(object), retire_count())
#include "types/retire_batch.h"

RETIRE_PRODUCE(batch, allocate, batch_put)

TYPE(jemalloc_free, .rank = 1410, .groups = PEER_ALLOC | RUN_TABLE,
	.what = "jemalloc: allocate a batch, free it; readers touch nothing",
	.reason = "a cache of the thread for each size, which grows with its use and takes and gives back many objects at once",
	.static_tls = true,
	.reclaim = &(const struct op_reclaim){ RETIRE_PRODUCERS(batch), BATCH_READERS, .drain = batch_drain, .dispose = dispose },
	.init = init, BATCH_THREADS);
