/* SPDX-License-Identifier: MIT */
/* retire_raw.c - floors of deferred reclamation: the allocator alone, and the fewest instructions of hazard pointers. */
#include <errno.h>
#include <linux/membarrier.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "registry.h"

#define MAX_SLOTS 256
#define BATCH_ROOM MAX_SLOTS /* protected objects stay in a batch, at most one for each slot */
#define BATCH_FREE(object) retire_free(object)
#include "types/retire_batch.h"

/* ---- allocate a batch, free it ---- */

RETIRE_PRODUCE(malloc_free, retire_alloc, batch_put)

TYPE(raw_malloc_free, .rank = 100, .groups = PEER_ALLOC | RUN_TABLE | REPORT,
	.what = "floor: allocate a batch, free it; readers touch nothing",
	.reason = "the objects of a batch stay in the caches, and wait for no reader",
	.reclaim = &(const struct op_reclaim){ RETIRE_PRODUCERS(malloc_free), BATCH_READERS, .drain = batch_drain }, BATCH_THREADS);

/* ---- a ring: each object frees the one that came as many before as a batch has ---- */

static void drain_ring(void)
{
	for (size_t i = 0; i < retire_params.batch; i++)
		if (batch[i])
			retire_free(batch[i]);
	memset(batch, 0, retire_params.batch * sizeof(*batch));
}

static inline void put_ring(struct retire_object *o)
{
	struct retire_object **at = &batch[nr_batched];

	if (quiesce_likely(*at != NULL))
		retire_free(*at);
	*at = o;
	if (quiesce_unlikely(++nr_batched == retire_params.batch))
		nr_batched = 0;
}

RETIRE_PRODUCE(ring, retire_alloc, put_ring)

TYPE(raw_malloc_ring, .rank = 105, .groups = RUN_TABLE,
	.what = "floor: allocate, and free the object that is a batch older; readers touch nothing",
	.reclaim = &(const struct op_reclaim){ RETIRE_PRODUCERS(ring), BATCH_READERS, .drain = drain_ring }, BATCH_THREADS);

/* ---- one hazard slot for each thread, one membarrier for each batch ---- */

static struct {
	struct retire_object *value;
	uint32_t taken;
} slots[MAX_SLOTS] __attribute__((aligned(64)));
static uint32_t nr_slots; /* number of slots that were ever taken */

static __thread struct retire_object **slot;
static __thread uint32_t slot_index;

static int asym_init(enum op_fence fence)
{
	(void)fence;
	return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) ? -errno : 0;
}

static void asym_enter(void)
{
	batch_enter();
	for (slot_index = 0; slot_index < MAX_SLOTS; slot_index++) {
		uint32_t none = 0;

		/* Relaxed: a slot is empty when its thread leaves. */
		if (!quiesce_cmpxchg(RAW, &slots[slot_index].taken, &none, 1u))
			continue;
		slot = &slots[slot_index].value;
		for (uint32_t nr = quiesce_load_relaxed(&nr_slots); nr < slot_index + 1;)
			if (quiesce_cmpxchg(RAW, &nr_slots, &nr, slot_index + 1))
				break;
		return;
	}
	abort(); /* more threads than the tool starts */
}

OP_FUNCTION(asym_exit, quiesce_store_release(RAW, &slots[slot_index].taken, 0u); batch_exit())

/* Scans the slots; stores the protected objects to @ret_held and returns their number. */
static size_t read_slots(const struct retire_object *ret_held[MAX_SLOTS])
{
	size_t nr = 0;

	for (uint32_t i = 0; i < quiesce_load_relaxed(&nr_slots); i++) {
		/* raw: acquire, with the release in asym_clear(). */
		const struct retire_object *held = __atomic_load_n(&slots[i].value, __ATOMIC_ACQUIRE);

		if (held)
			ret_held[nr++] = held;
	}
	return nr;
}

static bool is_held(const struct retire_object *o, const struct retire_object *const *held, size_t nr)
{
	while (nr--)
		if (held[nr] == o)
			return true;
	return false;
}

static __attribute__((noinline)) void reclaim(void)
{
	const struct retire_object *held[MAX_SLOTS];
	size_t nr, kept = 0;

	syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
	nr = read_slots(held);
	for (size_t i = 0; i < nr_batched; i++) {
		if (quiesce_unlikely(is_held(batch[i], held, nr)))
			batch[kept++] = batch[i];
		else
			retire_free(batch[i]);
	}
	nr_batched = kept;
}

static inline void put_asym(struct retire_object *o)
{
	batch[nr_batched++] = o;
	if (quiesce_unlikely(nr_batched >= retire_params.batch))
		reclaim();
}

RETIRE_PRODUCE(asym, retire_alloc, put_asym)

static void asym_hold(void **where)
{
	struct retire_object *first, *again = quiesce_load_relaxed((struct retire_object **)where);

	do {
		first = again;
		quiesce_store_relaxed(slot, first);
		quiesce_fence_light(RAW);
		again = quiesce_load_relaxed((struct retire_object **)where);
	} while (again != first);
	retire_use(again);
}

static void asym_clear(void)
{
	/* raw: the bare release store. */
	__atomic_store_n(slot, NULL, __ATOMIC_RELEASE);
}

static void asym_read(void **where)
{
	asym_hold(where);
	asym_clear();
}

static const struct op_reclaim asym_reclaim = {
	RETIRE_PRODUCERS(asym), .read = asym_read, .hold = asym_hold, .release = asym_clear, .drain = reclaim,
};

TYPE(raw_asym_hp_batch, .rank = 110,
	.what = "floor: hazard pointers by hand, one membarrier and one scan for each batch",
	.reclaim = &asym_reclaim, .init = asym_init, .thread_enter = asym_enter, .thread_exit = asym_exit);
