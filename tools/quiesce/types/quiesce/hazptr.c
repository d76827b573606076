/* SPDX-License-Identifier: MIT */
/* hazptr.c - hazard pointers of quiesce: a slot kept, one taken for each
 * section, one of a context; and the broken type. */
#include <sched.h>
#include <stdlib.h>

#include <quiesce/hazptr.h>
#include <quiesce/shazptr.h>

#include "ours.h"
#include "types/busted.h"
#include "loop.h"
#include "registry.h"

_Static_assert(sizeof(struct hazptr_head) <= sizeof(((struct op_head *)0)->space), "op_head has room for the library's head");

/* The thread owns this slot from thread_enter() to thread_exit(). */
static __thread hazptr_t *mine __attribute__((tls_model("initial-exec")));
static __thread struct hazptr_context context __attribute__((tls_model("initial-exec")));
/* true while the context is initialised: signal handlers may take slots of it, too */
static __thread bool context_open __attribute__((tls_model("initial-exec")));

/* ---- sections ---- */

OP_KEPT(hazptr, hazptr_t *, mine)

static inline __attribute__((always_inline)) struct op_item *tryprotect(hazptr_t *slot, struct op_item **where)
{
	struct op_item *item;

	while (quiesce_unlikely(!(item = hazptr_tryprotect(slot, where))))
		;
	return item;
}

#define hazptr_tryprotect_kept hazptr_kept
#define hazptr_tryprotect_begin hazptr_begin
#define hazptr_tryprotect_end hazptr_end

OP_SECTION_KEPT(hazptr, hazptr_protect(kept, &t->ptr), hazptr_clear(kept))
OP_SECTION_KEPT(hazptr_tryprotect, tryprotect(kept, &t->ptr), hazptr_clear(kept))
OP_SECTION(hazptr_alloc, hazptr_t *slot = hazptr_alloc(NULL), hazptr_protect(slot, &t->ptr), hazptr_free(NULL, slot))

/* As in a program that keeps a context for each thread: the loop knows its address, and that it is there. */
OP_KEPT(hazptr_context, struct hazptr_context *, &context)

static inline __attribute__((always_inline)) uint64_t hazptr_context_section(struct op_target *t, struct hazptr_context *kept)
{
	hazptr_t *slot = hazptr_alloc(kept);
	uint64_t value = hazptr_protect(slot, &t->ptr)->field;

	hazptr_free(kept, slot);
	return value;
}
OP_PADS(OP_LOOP_KEPT, hazptr_context)

OP_FUNCTION(section_lock, (void)hazptr_protect(mine, &op_target.ptr))
OP_FUNCTION(section_unlock, hazptr_clear(mine))

OP_READ_OPS(hazptr, section_lock, section_unlock);
OP_READ_OPS(hazptr_tryprotect, section_lock, section_unlock);
OP_READ_OPS(hazptr_alloc, section_lock, section_unlock);
OP_READ_OPS(hazptr_context, section_lock, section_unlock);

/* ---- threads ---- */

static void thread_enter(void)
{
	mine = hazptr_alloc(NULL);
	if (!mine)
		abort();
}

OP_FUNCTION(thread_exit, hazptr_free(NULL, mine); mine = NULL)

static void context_enter(void)
{
	if (init_hazptr_context(&context))
		abort();
	quiesce_store_relaxed(&context_open, true); /* Relaxed: read by this thread and its signal handlers only. */
	quiesce_fence_light(HANDLER);
}

/* A slot of the context may still be on its way to the thread that frees it.
 * A call that gets all slots proves that none is. */
static void context_exit(void)
{
	hazptr_t *all[HAZPTR_SLOT_PER_CTX];

	quiesce_store_relaxed(&context_open, false); /* Relaxed: read by this thread and its handlers only. */
	quiesce_fence_light(HANDLER);
	while (!hazptr_alloc_batch(&context, all, HAZPTR_SLOT_PER_CTX))
		sched_yield();
	hazptr_free_batch(&context, all, HAZPTR_SLOT_PER_CTX);
	cleanup_hazptr_context(&context);
}

/* For sections alone: gives the thread its line, and leaves its first slot free. */
OP_FUNCTION(only_line, hazptr_free(NULL, hazptr_alloc(NULL)))

static void only_context(void)
{
	if (init_hazptr_context(&context))
		abort();
}

OP_FUNCTION(no_context, cleanup_hazptr_context(&context))

/* ---- objects ---- */

static void lock_object(void *object)
{
	hazptr_protect(mine, &object);
}

/* The field of each object is its first word. */
static uint64_t loop_objects(void *const *objects, uint64_t mask, uint64_t loops)
{
	hazptr_t *slot = mine;
	uint64_t sum = 0;

	OP_ROLLED
	for (uint64_t i = 0; i < loops; i++) {
		struct op_item *item = (struct op_item *)hazptr_protect(slot, (void **)(uintptr_t)&objects[i & mask]);

		sum += quiesce_load_relaxed(&item->field);
		hazptr_clear(slot);
	}
	return sum;
}

OP_FUNCTION(wait_target, synchronize_hazptr(op_target.ptr))

static void wait_object(void *object)
{
	synchronize_hazptr(object);
}

/* A guard is a slot; or, if its second word is set, a guard of shazptr.h, which the same waits scan. */
static hazptr_t *slot_of(const struct op_guard *guard)
{
	return (hazptr_t *)guard->space[0];
}

static hazptr_t *must(hazptr_t *slot)
{
	if (!slot)
		abort();
	return slot;
}

/* Takes slots from each source in turn.  A context without a free slot, or
 * one that the thread has not made, is passed over. */
static hazptr_t *any_slot(void)
{
	static __thread unsigned int turn __attribute__((tls_model("initial-exec")));
	hazptr_t *slot = NULL;

	switch (turn++ % 4) {
	case 0: slot = hazptr_alloc_detached(); break;
	case 1: slot = quiesce_load_relaxed(&context_open) ? hazptr_alloc(&context) : NULL; break;
	}
	return slot ? slot : must(hazptr_alloc(NULL));
}

static bool take_simple(void)
{
	static __thread unsigned int turn __attribute__((tls_model("initial-exec")));

	return turn++ % 8 == 7;
}

static void keep_simple(struct op_guard *ret_guard, struct shazptr_guard guard)
{
	*ret_guard = (struct op_guard){ { guard.ptr ? guard.slot : NULL, guard.ptr } }; /* an empty guard has no slot */
}

static void *protect(void **where, struct op_guard *ret_guard)
{
	hazptr_t *slot;

	if (take_simple()) {
		keep_simple(ret_guard, shazptr_protect(where));
		return ret_guard->space[1];
	}
	slot = any_slot();
	*ret_guard = (struct op_guard){ { slot, NULL } };
	return hazptr_protect(slot, where);
}

static void *attempt(void **where, struct op_guard *ret_guard)
{
	hazptr_t *slot = any_slot();

	*ret_guard = (struct op_guard){ { slot, NULL } };
	return hazptr_tryprotect(slot, where);
}

/* An address known by other means is protected as the value of a local variable. */
static void acquire(void *object, struct op_guard *ret_guard)
{
	hazptr_t *slot = any_slot();

	*ret_guard = (struct op_guard){ { slot, NULL } };
	hazptr_protect(slot, &object);
}

static void clear(struct op_guard *guard)
{
	if (guard->space[1])
		shazptr_clear((struct shazptr_guard){ guard->space[0], guard->space[1] });
	else if (guard->space[0])
		hazptr_free(NULL, slot_of(guard));
}

static const struct op_wait target_wait = { .wait = wait_target, .per_object = true };

#define HAZPTR_OBJECT(WAIT)                                                                                     \
	.enter = context_enter, .exit = context_exit, .lock = lock_object, .unlock = section_unlock,            \
	.loop = loop_objects, .wait = WAIT, .protect = protect, .attempt = attempt, .acquire = acquire, .clear = clear

/* ---- deferred reclamation ---- */

static void run_callback(struct hazptr_head *head)
{
	struct op_head *op_head = (struct op_head *)head;

	op_head->fn(op_head);
}

/* Uses both kinds.  Most callbacks run in the retiring thread, so that elements come back before the helper has run. */
static void retire(struct op_head *head)
{
	static __thread uint32_t n;

	if (++n % 8)
		call_hazptr_inline((struct hazptr_head *)head->space, run_callback);
	else
		call_hazptr((struct hazptr_head *)head->space, run_callback);
}

OP_FUNCTION(retire_barrier, hazptr_barrier())

static void retire_together(struct op_head **heads, int nr)
{
	struct hazptr_cohort cohort = HAZPTR_COHORT_INIT;

	for (int i = 0; i < nr; i++)
		call_hazptr_cohort(&cohort, (struct hazptr_head *)heads[i]->space, run_callback);
	synchronize_hazptr_cohort(&cohort);
}

/* ---- types ---- */

TYPE(hazptr, .rank = 500, .groups = RUN_SIX | RUN_READ | RUN_OBJECT | RUN_WAIT | REPORT_READ | REPORT_WAIT | FAMILY_OBJECT,
	.peers = PEER_RCU | PEER_HAZPTR,
	.what = "quiesce hazard pointers, a slot in hand; synchronize_hazptr() of one object, call_hazptr()",
	OURS, .read = &hazptr_read, .wait = &target_wait,
	.retire = &(const struct op_retire){ retire, retire_barrier, retire_together },
	.object = &(const struct op_object){ HAZPTR_OBJECT(wait_object) },
	.thread_enter = thread_enter, .thread_exit = thread_exit);

#define HAZPTR_READ_TYPE(NAME, ENTER, EXIT) OURS, .read = &NAME##_read, .thread_enter = ENTER, .thread_exit = EXIT

TYPE(hazptr_tryprotect, .rank = 510,
	.what = "quiesce hazard pointers, a slot in hand; hazptr_tryprotect(), again until it succeeds",
	HAZPTR_READ_TYPE(hazptr_tryprotect, thread_enter, thread_exit));

TYPE(hazptr_alloc, .rank = 520, .groups = RUN_OBJECT, .peers = PEER_HAZPTR,
	.what = "quiesce hazard pointers, a slot of the thread's own taken and freed around each section",
	HAZPTR_READ_TYPE(hazptr_alloc, only_line, NULL));

TYPE(hazptr_context, .rank = 530,
	.what = "quiesce hazard pointers, a slot of a context of the caller's taken and freed around each section",
	HAZPTR_READ_TYPE(hazptr_context, only_context, no_context));

/* ---- busted: updaters do not wait, and retired objects are freed at once ---- */

static void busted_together(struct op_head **heads, int nr)
{
	for (int i = 0; i < nr; i++)
		heads[i]->fn(heads[i]);
}

TYPE(busted_hazptr, .rank = 570,
	.what = "hazard pointers whose updaters free at once: torture must notice",
	.broken = true, .wait_only = true, .read = &hazptr_read, .wait = &busted_object_wait,
	.retire = &(const struct op_retire){ busted_call, busted_nothing, busted_together },
	.object = &(const struct op_object){ HAZPTR_OBJECT(busted_object) }, .init = op_rcu_init,
	.thread_enter = thread_enter, .thread_exit = thread_exit, .stats = op_rcu_stats);
