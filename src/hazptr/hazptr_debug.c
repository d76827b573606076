/* SPDX-License-Identifier: MIT */
/* hazptr_debug.c - checks of programs built with QUIESCE_DEBUG: which thread has taken which slot, use of a
 * slot that is free, and objects that are retired twice. */
#include <quiesce/hazptr.h>

#include "hazptr.h"
#include "runtime/debug_pending.h"
#include "runtime/object.h"
#include "runtime/held.h"
#include "runtime/run.h"
#include "shazptr/shazptr.h"

/* ---- slots ---- */

void quiesce__slot_taken_debug(const void *slot)
{
	if (slot)
		quiesce__held_add(slot, QUIESCE_HELD_SLOT, quiesce__caller());
}

static bool is_free(const void *taken)
{
	const hazptr_t *slot = taken;

	return quiesce_load_relaxed(&slot->value) == QUIESCE_HAZPTR_FREE; /* Relaxed: the caller's own slot, unless it is misused. */
}

/* Called before the slot is free, so no other thread has taken it yet. */
bool quiesce__slot_given_back_debug(const void *slot)
{
	struct platform_location here;

	if (is_free(slot)) {
		quiesce__misuse(QUIESCE_MISUSE_UNBALANCED_UNLOCK, "hazptr_free() at %s of slot %p, which is free already",
				platform_location(quiesce__caller(), &here), slot);
		return false;
	}
	quiesce__held_remove(slot, QUIESCE_HELD_SLOT);
	return true;
}

bool quiesce__slot_used_debug(const void *slot, const char *call)
{
	const void *site = quiesce__caller();
	struct platform_location here;

	if (quiesce_likely(slot && !is_free(slot)))
		return true;
	if (slot)
		quiesce__misuse(QUIESCE_MISUSE_NOT_HELD, "%s at %s in slot %p, which is free: hazptr_alloc() comes first", call,
				platform_location(site, &here), slot);
	else
		quiesce__misuse(QUIESCE_MISUSE_NULL, "%s at %s with a NULL slot: did hazptr_alloc() return one?", call,
				platform_location(site, &here));
	return false;
}

bool quiesce__slot_repeated_debug(const void *array, size_t nr)
{
	hazptr_t *const *slots = array;
	struct platform_location here;

	for (size_t i = 0; i < nr; i++)
		if (slots[i] == slots[nr]) {
			quiesce__misuse(QUIESCE_MISUSE_TWICE, "hazptr_protect_batch() at %s with slot %p twice: it protects one pointer",
					platform_location(quiesce__caller(), &here), (const void *)slots[nr]);
			return true;
		}
	return false;
}

static bool protects(const void *slot, uintptr_t address)
{
	uintptr_t value = quiesce_load_relaxed(&((const hazptr_t *)slot)->value); /* Relaxed: the thread's own slot. */

	return (value ^ address) << 1 == 0;
}

const void *quiesce__hazptr_held_by_me(uintptr_t address)
{
	return quiesce__held_slot_of_mine(protects, address);
}

/* Report the slots of the calling thread.  @format takes the thread id, the number of slots, one of them, and
 * the code that took it. */
static void report_slots(const char *format)
{
	struct quiesce__held first = { NULL, NULL, QUIESCE_HELD_SLOT }, h;
	struct platform_location taken;
	uint32_t nr = 0;

	while (quiesce__held_disown(true, &h)) {
		if (is_free(h.object)) /* freed by a part of the program that is a release build */
			continue;
		first = nr++ ? first : h;
	}
	if (nr)
		quiesce__misuse(QUIESCE_MISUSE_EXIT_IN_READER, format, platform_tid(), nr, first.object,
				platform_location(first.site, &taken));
}

void quiesce__hazptr_thread_report(const struct quiesce_tls_v1 *self)
{
	(void)self;
	report_slots("thread %u exits and holds %u slots of hazptr_alloc() that were not freed; one is %p, taken at %s");
}

void quiesce__hazptr_process_report(const struct quiesce_tls_v1 *self)
{
	(void)self;
	report_slots("the process exits in thread %u, which holds %u slots of hazptr_alloc(); one is %p, taken at %s");
}

/* ---- retired objects ---- */

/* Queued in place of the program's function, which may also be the offset of an object for free(). */
static void run_recorded(struct hazptr_head *head)
{
	uintptr_t func = quiesce__pending_take(head);

	quiesce__run_record_func(func);
	if (func > QUIESCE_KFREE_OFFSET_MAX)
		((void (*)(struct hazptr_head *))func)(head);
	else if (func)
		quiesce__object_free_in_heap((char *)head - (func - 1));
}

static void delete_recorded(void *object)
{
	uintptr_t deleter = quiesce__pending_take(object);

	quiesce__run_record_func(deleter);
	if (deleter)
		((void (*)(void *))deleter)(object);
}

/* Record an object that is about to be queued.  The queueing call reports NULL arguments. */
static enum quiesce__pending record(const void *object, uintptr_t func, const char *call, const void *site)
{
	return object && func ? quiesce__pending_add(object, func, call, site) : QUIESCE_PENDING_UNRECORDED;
}

void quiesce__call_hazptr_debug(struct hazptr_head *head, void (*func)(struct hazptr_head *head), size_t bytes)
{
	bool kfree = (uintptr_t)func <= QUIESCE_KFREE_OFFSET_MAX;
	const char *call = kfree ? "kfree_hazptr()" : "call_hazptr()";
	enum quiesce__pending how = record(head, (uintptr_t)func, call, quiesce__caller());

	if (how == QUIESCE_PENDING_UNRECORDED)
		quiesce_call_hazptr(head, func, bytes);
	else if (how == QUIESCE_PENDING_RECORDED && kfree) /* like free(), this function may run in the caller */
		quiesce_call_hazptr_inline(head, run_recorded, bytes);
	else if (how == QUIESCE_PENDING_RECORDED)
		quiesce_call_hazptr(head, run_recorded, bytes);
}

void quiesce__call_hazptr_inline_debug(struct hazptr_head *head, void (*func)(struct hazptr_head *head), size_t bytes)
{
	enum quiesce__pending how = record(head, (uintptr_t)func, "call_hazptr_inline()", quiesce__caller());

	if (how != QUIESCE_PENDING_TWICE)
		quiesce_call_hazptr_inline(head, how == QUIESCE_PENDING_RECORDED ? run_recorded : func, bytes);
}

void quiesce__call_hazptr_cohort_debug(struct hazptr_cohort *cohort, struct hazptr_head *head,
				       void (*func)(struct hazptr_head *head))
{
	enum quiesce__pending how = QUIESCE_PENDING_UNRECORDED;

	if (cohort)
		how = record(head, (uintptr_t)func, "call_hazptr_cohort()", quiesce__caller());
	if (how != QUIESCE_PENDING_TWICE)
		quiesce_call_hazptr_cohort(cohort, head, how == QUIESCE_PENDING_RECORDED ? run_recorded : func);
}

void quiesce__hazptr_retire_debug(void *object, void (*deleter)(void *object), size_t bytes)
{
	enum quiesce__pending how = record(object, (uintptr_t)deleter, "hazptr_retire()", quiesce__caller());

	if (how != QUIESCE_PENDING_TWICE)
		quiesce_hazptr_retire(object, how == QUIESCE_PENDING_RECORDED ? delete_recorded : deleter, bytes);
}
