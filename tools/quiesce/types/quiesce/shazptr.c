/* SPDX-License-Identifier: MIT */
/* shazptr.c - simple hazard pointers of quiesce: one object, a wildcard, without self-scan, and the broken type. */
#include <quiesce/control.h>
#include <quiesce/shazptr.h>

#include "ours.h"
#include "types/busted.h"
#include "loop.h"
#include "registry.h"

_Static_assert(sizeof(struct shazptr_guard) <= sizeof(struct op_guard), "op_guard has room for the library's guard");

static __thread struct shazptr_guard held __attribute__((tls_model("initial-exec")));

static struct shazptr_guard *guard_of(struct op_guard *guard)
{
	return (struct shazptr_guard *)guard->space;
}

/* ---- sections ---- */

OP_SECTION(shazptr, struct shazptr_guard guard = shazptr_protect(&t->ptr), (struct op_item *)shazptr_ptr(guard),
	   shazptr_clear(guard))
OP_SECTION(shazptr_wildcard, struct shazptr_guard guard = shazptr_acquire(SHAZPTR_WILDCARD), OP_LOAD, shazptr_clear(guard))

static void lock_object(void *object)
{
	held = shazptr_acquire(object);
}

static void lock_wildcard(void *object)
{
	(void)object;
	held = shazptr_acquire(SHAZPTR_WILDCARD);
}

OP_FUNCTION(section_lock, held = shazptr_protect(&op_target.ptr))
OP_FUNCTION(section_lock_wildcard, held = shazptr_acquire(SHAZPTR_WILDCARD))
OP_FUNCTION(section_unlock, shazptr_clear(held))

OP_READ_OPS(shazptr, section_lock, section_unlock);
OP_READ_OPS(shazptr_wildcard, section_lock_wildcard, section_unlock);

/* The first guard gives the thread its slots. */
OP_FUNCTION(first_section, shazptr_clear(shazptr_acquire(&op_target)))

static const char *slot_kind(void)
{
	static const char *const name[] = { [QUIESCE_SLOTS_THREAD] = "thread", [QUIESCE_SLOTS_CPU_ID] = "cpu_id",
					    [QUIESCE_SLOTS_MM_CID] = "mm_cid", [QUIESCE_SLOTS_SHARED] = "shared" };
	shazptr_scoped struct shazptr_guard guard = shazptr_acquire(&op_target);

	return name[quiesce_shazptr_slot(guard)];
}

/* ---- objects ---- */

#define ON_OBJECT(object) shazptr_acquire(object)
#define ON_EVERYTHING(object) shazptr_acquire(SHAZPTR_WILDCARD)
/* The field of each object is its first word. */
#define OBJECT_LOOP(name, ACQUIRE)                                                                      \
	static uint64_t name(void *const *objects, uint64_t mask, uint64_t loops)                       \
	{                                                                                               \
		uint64_t sum = 0;                                                                       \
		OP_ROLLED                                                                               \
		for (uint64_t i = 0; i < loops; i++) {                                                  \
			struct op_item *item = objects[i & mask];                                       \
			struct shazptr_guard guard = ACQUIRE(item);                                     \
			sum += quiesce_load_relaxed(&item->field);                                      \
			shazptr_clear(guard);                                                           \
		}                                                                                       \
		return sum;                                                                             \
	}
OBJECT_LOOP(loop_objects, ON_OBJECT)
OBJECT_LOOP(loop_wildcard, ON_EVERYTHING)

OP_FUNCTION(wait_target, synchronize_shazptr(op_target.ptr))

static void wait_object(void *object)
{
	synchronize_shazptr(object);
}

static void *protect(void **where, struct op_guard *ret_guard)
{
	*guard_of(ret_guard) = shazptr_protect(where);
	return shazptr_ptr(*guard_of(ret_guard));
}

static void *attempt(void **where, struct op_guard *ret_guard)
{
	*guard_of(ret_guard) = shazptr_tryprotect(where);
	return shazptr_ptr(*guard_of(ret_guard));
}

static void *protect_wildcard(void **where, struct op_guard *ret_guard)
{
	*guard_of(ret_guard) = shazptr_acquire(SHAZPTR_WILDCARD);
	return rcu_dereference(*where);
}

static void acquire(void *object, struct op_guard *ret_guard)
{
	*guard_of(ret_guard) = shazptr_acquire(object);
}

static void acquire_wildcard(void *object, struct op_guard *ret_guard)
{
	(void)object;
	*guard_of(ret_guard) = shazptr_acquire(SHAZPTR_WILDCARD);
}

static void clear(struct op_guard *guard)
{
	shazptr_clear(*guard_of(guard));
}

static const struct op_wait target_wait = { .wait = wait_target, .per_object = true };

#define SHAZPTR_OBJECT(WAIT)                                                                                    \
	.lock = lock_object, .unlock = section_unlock, .loop = loop_objects, .wait = WAIT, .protect = protect,   \
	.attempt = attempt, .acquire = acquire, .clear = clear, .everything = SHAZPTR_WILDCARD
static const struct op_object shazptr_object = { SHAZPTR_OBJECT(wait_object) };

static const struct op_object shazptr_wildcard_object = {
	.lock = lock_wildcard, .unlock = section_unlock, .loop = loop_wildcard, .wait = wait_object,
	.protect = protect_wildcard, .attempt = protect_wildcard, .acquire = acquire_wildcard, .clear = clear,
	.everything = SHAZPTR_WILDCARD,
};

/* ---- types ---- */

static int init_skip(enum op_fence fence)
{
	quiesce_set_skip_self_scan(1);
	return op_rcu_init(fence);
}

#define SHAZPTR_TYPE(READERS, INIT)                                                                            \
	.fence_modes = true, .read = &READERS##_read, .wait = &target_wait, .object = &READERS##_object,        \
	.init = INIT, .thread_enter = first_section, .stats = op_rcu_stats, .slot_kind = slot_kind

TYPE(shazptr, .rank = 400, .groups = RUN_SIX_WAIT | RUN_READ | RUN_OBJECT | RUN_WAITS | REPORT_READ | REPORT_WAIT | FAMILY_OBJECT,
	.peers = PEER_RCU | PEER_HAZPTR,
	.what = "quiesce hazard pointers; synchronize_shazptr() of one object",
	SHAZPTR_TYPE(shazptr, op_rcu_init));

TYPE(shazptr_skip_self_scan, .rank = 410, .groups = RUN_WAITS,
	.what = "quiesce hazard pointers, every wait is left to the scan thread",
	.wait_only = true, SHAZPTR_TYPE(shazptr, init_skip));

TYPE(shazptr_wildcard, .rank = 420, .groups = RUN_WAITS,
	.what = "quiesce hazard pointers, all readers hold the wildcard, which blocks every wait",
	SHAZPTR_TYPE(shazptr_wildcard, op_rcu_init));

TYPE(shazptr_wildcard_skip_self_scan, .rank = 430,
	.what = "wildcard readers, every wait is left to the scan thread",
	.wait_only = true, SHAZPTR_TYPE(shazptr_wildcard, init_skip));

/* ---- busted: updaters do not wait ---- */

TYPE(busted_shazptr, .rank = 440,
	.what = "hazard pointers whose updaters do not wait: torture must notice",
	.broken = true, .wait_only = true, .read = &shazptr_read, .wait = &busted_object_wait,
	.object = &(const struct op_object){ SHAZPTR_OBJECT(busted_object) },
	.init = op_rcu_init, .thread_enter = first_section, .stats = op_rcu_stats,
	.slot_kind = slot_kind);
