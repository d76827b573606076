/* SPDX-License-Identifier: MIT */
/* retire_raw.c - floors of deferred reclamation: the allocator alone, and the fewest instructions of hazard pointers. */
#include <errno.h>
#include <linux/membarrier.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "registry.h"
#include "types/retire.h"

/* ---- the batch of a thread: filled, then freed, except for protected objects: at most one for each slot ---- */

#define MAX_SLOTS 256

static __thread struct retire_object **batch;
static __thread size_t nr_batched;

static void thread_enter(void)
{
	size_t size = (retire_params.batch + MAX_SLOTS) * sizeof(struct retire_object *);

	batch = malloc(size);
	if (!batch)
		abort();
	memset(batch, 0, size); /* makes the kernel allocate the pages */
	nr_batched = 0;
}

OP_FUNCTION(free_batched, free(batch))

/* ---- allocate a batch, free it ---- */

static void free_all(void)
{
	for (size_t i = 0; i < nr_batched; i++)
		retire_free(batch[i]);
	nr_batched = 0;
}

static inline void put(struct retire_object *o)
{
	batch[nr_batched++] = o;
	if (quiesce_unlikely(nr_batched == retire_params.batch))
		free_all();
}

RETIRE_PRODUCE(malloc_free, retire_alloc, put)

/* Nothing protects the object, so it is not accessed. */
static void read_address(void **where)
{
	retire_sum += (uintptr_t)quiesce_load_relaxed(where);
}

static void nothing(void)
{
}

static const struct op_reclaim malloc_free_reclaim = {
	RETIRE_PRODUCERS(malloc_free), .read = read_address, .hold = read_address, .release = nothing, .drain = free_all,
};

TYPE(raw_malloc_free, .rank = 100, .groups = RUN_TABLE | REPORT,
	.what = "floor: allocate a batch, free it; readers touch nothing",
	.reclaim = &malloc_free_reclaim, .thread_enter = thread_enter, .thread_exit = free_batched);

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
	thread_enter();
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

OP_FUNCTION(asym_exit, quiesce_store_release(RAW, &slots[slot_index].taken, 0u); free_batched())

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
