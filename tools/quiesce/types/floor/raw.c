/* SPDX-License-Identifier: MIT */
/* raw.c - floors written by hand: the cost of the fewest instructions that can work.
 *
 * None of these is a usable primitive; each is the bare form of one.
 */
#include <errno.h>
#include <linux/membarrier.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "loop.h"
#include "registry.h"

/* ---- a load and a field: readers without protection ---- */

OP_READ(raw_load, (void)0, OP_LOAD, (void)0);

TYPE(raw_load, .rank = 110, .groups = RUN_READ | REPORT_READ | FAMILY_ALL,
	.what = "floor: load a pointer and a field, unprotected",
	.read = &raw_load_read);

/* ---- a flag in thread-local storage: cannot nest ---- */

static __thread uint64_t flag __attribute__((tls_model("initial-exec"), aligned(64)));

#define FLAG_SET() ({ quiesce_store_relaxed(&flag, 1); quiesce_fence_light(RAW); })
/* raw: the bare release store, as in the primitive that it is the floor of. */
#define FLAG_CLEAR() __atomic_store_n(&flag, 0, __ATOMIC_RELEASE)

OP_READ(raw_flag, FLAG_SET(), OP_LOAD, FLAG_CLEAR());

TYPE(raw_flag, .rank = 120,
	.what = "floor: set and clear a thread-local flag (cannot nest)",
	.read = &raw_flag_read);

/* ---- one word that nests, without the test for a waiter ---- */

static __thread uint64_t word __attribute__((tls_model("initial-exec"), aligned(64)));
static uint64_t number = 0x10001;

static inline __attribute__((always_inline)) void nest_enter(void)
{
	uint64_t w = quiesce_load_relaxed(&word);

	quiesce_store_relaxed(&word, quiesce_likely((uint16_t)w == 0) ? quiesce_load_relaxed(&number) : w + 1);
	quiesce_fence_light(RAW);
}

static inline __attribute__((always_inline)) void nest_leave(void)
{
	uint64_t w = quiesce_load_relaxed(&word);

	/* raw: the bare release store of a clear. */
	__atomic_store_n(&word, quiesce_likely((uint16_t)w == 1) ? 0 : w - 1, __ATOMIC_RELEASE);
}

OP_READ(raw_nest, nest_enter(), OP_LOAD, nest_leave());

TYPE(raw_nest, .rank = 130,
	.what = "floor: a nestable section in one thread-local word, without wake-ups",
	.read = &raw_nest_read);

/* ---- a hazard slot: store, load again, compare, clear ---- */

static const char *raw_slot_of_thread(void)
{
	return "thread";
}

static __thread struct op_item *slot __attribute__((tls_model("initial-exec"), aligned(64)));

static inline __attribute__((always_inline)) struct op_item *hazard_protect(struct op_item **where)
{
	struct op_item *first = quiesce_load_relaxed(where), *again;

	for (;; first = again) {
		quiesce_store_relaxed(&slot, first);
		quiesce_fence_light(RAW);
		again = quiesce_load_relaxed(where);
		if (quiesce_likely(again == first))
			return again;
	}
}

/* raw: the bare release store of a clear. */
#define HAZARD_CLEAR() __atomic_store_n(&slot, NULL, __ATOMIC_RELEASE)

OP_READ(raw_hp, (void)0, hazard_protect(&t->ptr), HAZARD_CLEAR());

TYPE(raw_hp, .rank = 140, .groups = RUN_READ | RUN_OBJECT,
	.what = "floor: a hazard pointer in a thread-local slot, without wake-ups",
	.read = &raw_hp_read, .slot_kind = raw_slot_of_thread);

/* ---- a hazard slot, one of eight: the lowest that is free in a mask ---- */

static __thread struct {
	struct op_item *slot[8];
	uint32_t taken;
} slots __attribute__((tls_model("initial-exec"), aligned(128)));

static inline __attribute__((always_inline)) uint32_t slot_take(void)
{
	uint32_t bit = ~slots.taken & (slots.taken + 1);

	slots.taken |= bit;
	quiesce_fence_light(RAW);
	return (uint32_t)__builtin_ctz(bit);
}

static inline __attribute__((always_inline)) struct op_item *slot_protect(uint32_t k, struct op_item **where)
{
	struct op_item *first = quiesce_load_relaxed(where), *again;

	for (;; first = again) {
		quiesce_store_relaxed(&slots.slot[k], first);
		quiesce_fence_light(RAW);
		again = quiesce_load_relaxed(where);
		if (quiesce_likely(again == first))
			return again;
	}
}

static inline __attribute__((always_inline)) void slot_give_back(uint32_t k)
{
	/* raw: the bare release store of a clear. */
	__atomic_store_n(&slots.slot[k], NULL, __ATOMIC_RELEASE);
	quiesce_fence_light(RAW);
	slots.taken &= ~(1u << k);
}

OP_SECTION(raw_hp_bitmask, uint32_t k = slot_take(), slot_protect(k, &t->ptr), slot_give_back(k))

static __thread uint32_t bitmask_held;

OP_FUNCTION(bitmask_lock, bitmask_held = slot_take(); slot_protect(bitmask_held, &op_target.ptr))
OP_FUNCTION(bitmask_unlock, slot_give_back(bitmask_held))

OP_READ_OPS(raw_hp_bitmask, bitmask_lock, bitmask_unlock);

TYPE(raw_hp_bitmask, .rank = 150,
	.what = "floor: a hazard pointer in a slot taken from eight by a mask and given back",
	.read = &raw_hp_bitmask_read, .slot_kind = raw_slot_of_thread);

/* ---- one slot, with a test for a waiter before the clear; then the same, claimed by a locked instruction ---- */

static uint64_t wake __attribute__((aligned(64)));
static __thread uint64_t woken __attribute__((tls_model("initial-exec")));

#define CLEAR_AND_WAKE(name, CLEAR)                                          \
	static __attribute__((noinline, cold)) void name##_slow(void)        \
	{                                                                    \
		woken++;                                                     \
		CLEAR();                                                     \
	}                                                                    \
	static inline __attribute__((always_inline)) void name(void)         \
	{                                                                    \
		if (quiesce_unlikely(quiesce_load_relaxed(&wake)))           \
			name##_slow();                                       \
		else                                                         \
			CLEAR();                                             \
	}
CLEAR_AND_WAKE(clear_and_wake, HAZARD_CLEAR)

/* Another thread scans the slot, which may outlive its owner: so the owner has a pointer to it. */
static __thread struct op_item **slot_at __attribute__((tls_model("initial-exec"), aligned(64)));

OP_FUNCTION(fence_slot_enter, slot_at = &slot)

#define FENCED_CLEAR() __atomic_store_n(slot_at, NULL, __ATOMIC_RELEASE) /* raw: the bare release store of a clear. */

CLEAR_AND_WAKE(fenced_clear_and_wake, FENCED_CLEAR)

static inline __attribute__((always_inline)) struct op_item *fence_protect(struct op_item **where)
{
	struct op_item *first = quiesce_load_relaxed(where), *again, *none = NULL;

	for (;; first = again) {
		if (quiesce_unlikely(!quiesce_cmpxchg(RAW, slot_at, &none, first)))
			abort(); /* a floor does not nest */
		again = quiesce_load_relaxed(where);
		if (quiesce_likely(again == first))
			return again;
		fenced_clear_and_wake();
	}
}

OP_READ(raw_hp_wake, (void)0, hazard_protect(&t->ptr), clear_and_wake());
OP_READ(raw_fence_slot, (void)0, fence_protect(&t->ptr), fenced_clear_and_wake());

TYPE(raw_hp_wake, .rank = 160,
	.what = "floor: raw_hp, and a test for a waiter before the clear",
	.read = &raw_hp_wake_read, .slot_kind = raw_slot_of_thread);

TYPE(raw_fence_slot, .rank = 210, .groups = RUN_OBJECT,
	.what = "floor: a hazard pointer in a slot found by a pointer and claimed by a locked instruction",
	.thread_enter = fence_slot_enter, .read = &raw_fence_slot_read, .slot_kind = raw_slot_of_thread);

/* ---- one full fence ---- */

OP_READ(raw_fence, quiesce_fence_full(RAW), OP_LOAD, quiesce_fence_light(RAW));

TYPE(raw_fence, .rank = 200, .groups = RUN_READ,
	.what = "floor: one full fence per section, and no mark",
	.read = &raw_fence_read);

/* ---- the bare system call of asymmetric fences ---- */

static int raw_membarrier_init(enum op_fence fence)
{
	(void)fence;
	return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) ? -errno : 0;
}

static void raw_membarrier_wait(void)
{
	syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

TYPE(raw_membarrier, .rank = 220, .groups = RUN_READ | RUN_WAITS,
	.what = "floor: one expedited membarrier, without a wait",
	.wait_only = true,
	.read = &raw_flag_read, /* the readers that the system call interrupts */
	.wait = &(const struct op_wait){ .wait = raw_membarrier_wait },
	.init = raw_membarrier_init);
