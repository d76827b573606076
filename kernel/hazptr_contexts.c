// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Hazard pointers: the contexts of readers, and the walk over their slots.
 *
 * Each CPU has a list of the contexts that were registered on it, so that
 * registrations do not contend for one lock.  A walk holds the lock, with
 * interrupts off, for as long as it takes to read the slots of a few contexts, and
 * keeps its place by a cursor in the list; the values are looked up afterwards.
 * There is one walk at a time, under hazptr_walking.
 *
 * A walk may miss a context that is registered meanwhile: it is inserted before
 * the cursor.  It is registered under the lock of the list after the walk began,
 * so its owner sees what had been unlinked before.  Contexts never move between
 * lists.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpumask.h>
#include <linux/export.h>
#include <linux/init.h>
#include <linux/instruction_pointer.h>
#include <linux/list.h>
#include <linux/lockdep.h>
#include <linux/minmax.h>
#include <linux/percpu.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#include <linux/hazptr.h>

#include "hazptr_scan.h"

/* Number of contexts that are scanned with interrupts off. */
#define CONTEXTS_AT_ONCE 32

/* The contexts that were registered on a CPU. */
struct context_list {
	raw_spinlock_t lock;		/* guards all fields; nothing nests inside */
	struct list_head contexts;
	struct list_head cursor;	/* place of the walk in the list, while there is one */
	unsigned int nr;
} ____cacheline_aligned_in_smp;

static DEFINE_PER_CPU(struct context_list, context_lists);

/* Values that were read under the lock; only the walk uses them. */
static struct {
	struct {
		unsigned long value;
		struct hazptr_owner owner;
	} slots[CONTEXTS_AT_ONCE * HAZPTR_SLOT_PER_CTX];
	unsigned int nr;
} held;

/**
 * init_hazptr_context() - register a context with all slots free
 * @ctx: memory of the caller, aligned as the type requires
 *
 * Context: Any but NMI.
 */
void init_hazptr_context(struct hazptr_context *ctx)
{
	struct context_list *list;
	unsigned long flags;
	int i;

	for (i = 0; i < HAZPTR_SLOT_PER_CTX; i++)
		ctx->slots[i].value = HAZPTR_UNUSED;
#ifdef QUIESCE_MUTANTS
	memset(ctx->seen, 0, sizeof(ctx->seen));
#endif
	/* The list of any CPU will do; that of this CPU is in its cache. */
	ctx->cpu = raw_smp_processor_id();
	ctx->pid = task_pid_nr(current);
	ctx->caller = _RET_IP_;
	list = per_cpu_ptr(&context_lists, ctx->cpu);
	raw_spin_lock_irqsave(&list->lock, flags);
	list_add(&ctx->node, &list->contexts);
	WRITE_ONCE(list->nr, list->nr + 1);
	raw_spin_unlock_irqrestore(&list->lock, flags);
}
EXPORT_SYMBOL_GPL(init_hazptr_context);

/**
 * cleanup_hazptr_context() - unregister a context
 * @ctx: the context; all its slots are free
 *
 * Context: Any but NMI; on any CPU.
 */
void cleanup_hazptr_context(struct hazptr_context *ctx)
{
	struct context_list *list = per_cpu_ptr(&context_lists, ctx->cpu);
	unsigned long flags;

#ifdef QUIESCE_DEBUG
	int i;

	for (i = 0; i < HAZPTR_SLOT_PER_CTX; i++)
		WARN_ONCE(READ_ONCE(ctx->slots[i].value) != HAZPTR_UNUSED,
			  "hazptr: a context ends with slots taken\n");
#endif
	raw_spin_lock_irqsave(&list->lock, flags);
	list_del(&ctx->node);
	WRITE_ONCE(list->nr, list->nr - 1);
	raw_spin_unlock_irqrestore(&list->lock, flags);
}
EXPORT_SYMBOL_GPL(cleanup_hazptr_context);

static unsigned long hazptr_slot_read(const hazptr_t *slot)
{
	/* HK2: acquire, pairs with HK2 in hazptr_clear(), hazptr_free() and __hazptr_set() */
	return smp_load_acquire(&slot->value);
}

static void scan_context(struct hazptr_context *ctx)
{
	int i;

	for (i = 0; i < HAZPTR_SLOT_PER_CTX; i++) {
		unsigned long value = hazptr_slot_read(&ctx->slots[i]);

		if (HAZPTR_MUTANT(skip_slot) && i == HAZPTR_SLOT_PER_CTX - 1)
			continue;
#ifdef QUIESCE_MUTANTS
		if (HAZPTR_MUTANT(stale))
			swap(value, ctx->seen[i]);
#endif
		if (value && value != HAZPTR_UNUSED) {
			held.slots[held.nr].value = value;
			held.slots[held.nr++].owner = (struct hazptr_owner) {
				.ctx = ctx, .caller = ctx->caller, .pid = ctx->pid, .cpu = ctx->cpu,
			};
		}
	}
}

/* Scans the next few contexts after the cursor.  Returns true if there are more. */
static bool scan_some(struct context_list *list)
{
	struct list_head *last = &list->cursor;
	int i;

	lockdep_assert_held(&list->lock);
	held.nr = 0;
	for (i = 0; i < CONTEXTS_AT_ONCE && !list_is_last(last, &list->contexts); i++) {
		last = last->next;
		scan_context(list_entry(last, struct hazptr_context, node));
	}
	if (i)
		list_move(&list->cursor, last);
	return !list_is_last(&list->cursor, &list->contexts);
}

static void scan_list(struct context_list *list, hazptr_found_t *found)
{
	unsigned long flags;
	bool more = true, first = true;
	unsigned int i;

	while (more) {
		raw_spin_lock_irqsave(&list->lock, flags);
		if (first)
			list_add(&list->cursor, &list->contexts);
		first = false;
		more = scan_some(list);
		if (!more)
			list_del(&list->cursor);
		raw_spin_unlock_irqrestore(&list->lock, flags);
		for (i = 0; i < held.nr; i++)
			found(held.slots[i].value, &held.slots[i].owner);
		cond_resched();
	}
}

/**
 * hazptr_walk() - call a function for each slot that protects an object
 * @found: the function
 *
 * Context: Process, under hazptr_walking.
 * Return: the number of slots.
 */
u64 hazptr_walk(hazptr_found_t *found)
{
	u64 contexts = 0;
	int cpu;

	for_each_possible_cpu(cpu) {
		struct context_list *list = per_cpu_ptr(&context_lists, cpu);

		scan_list(list, found);
		contexts += READ_ONCE(list->nr);
	}
	return contexts * HAZPTR_SLOT_PER_CTX;
}

/* Returns the number of registered contexts. */
u64 hazptr_nr_contexts(void)
{
	u64 nr = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		nr += READ_ONCE(per_cpu(context_lists, cpu).nr);
	return nr;
}

void __init hazptr_contexts_init(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct context_list *list = per_cpu_ptr(&context_lists, cpu);

		raw_spin_lock_init(&list->lock);
		INIT_LIST_HEAD(&list->contexts);
	}
}
