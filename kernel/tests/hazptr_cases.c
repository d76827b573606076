// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Tests of hazptr.ko, run when the module is loaded; KTAP in the kernel's log.
 *
 * Usage in a guest:
 *	insmod hazptr.ko; insmod hazptr_test.ko; dmesg
 *	insmod hazptr_test.ko stall=1
 *	insmod hazptr_test.ko misuse=1
 *		hazptr_reports.c describes the lines in the log.
 */
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/vmalloc.h>

#include <linux/hazptr.h>

#include "hazptr_threads.h"
#include "ktap.h"

static bool stall, misuse;
module_param(stall, bool, 0444);
module_param(misuse, bool, 0444);

static bool test_slots(void)
{
	struct hazptr_context ctx;
	hazptr_t *slots[HAZPTR_SLOT_PER_CTX], *again;
	bool good = true;
	int i;

	init_hazptr_context(&ctx);
	for (i = 0; i < HAZPTR_SLOT_PER_CTX; i++) {
		slots[i] = hazptr_alloc(&ctx);
		good &= slots[i] && (!i || slots[i] != slots[i - 1]);
	}
	good &= !hazptr_alloc(&ctx);
	hazptr_free(&ctx, slots[3]);
	again = hazptr_alloc(&ctx);
	good &= again == slots[3] && !hazptr_alloc(&ctx);
	for (i = 0; i < HAZPTR_SLOT_PER_CTX; i++)
		hazptr_free(&ctx, slots[i]);
	hazptr_free(&ctx, NULL);
	cleanup_hazptr_context(&ctx);
	return good;
}

static bool test_protect(void)
{
	struct object object = {}, *gp = &object, *none = NULL;
	struct hazptr_context ctx;
	hazptr_t *slot;
	bool good;

	init_hazptr_context(&ctx);
	slot = hazptr_alloc(&ctx);
	good = hazptr_tryprotect(slot, &gp, head) == &object;
	good &= READ_ONCE(slot->value) == (unsigned long)&object.head;
	good &= !hazptr_protect(slot, &none, head) && !READ_ONCE(slot->value);
	good &= hazptr_protect(slot, &gp, head) == &object;
	good &= !hazptr_tryprotect(slot, &none, head) && !READ_ONCE(slot->value);
	hazptr_free(&ctx, slot);
	cleanup_hazptr_context(&ctx);
	return good;
}

#ifdef DEFINE_CLASS
static bool test_scope(void)
{
	struct object object = {}, *gp = &object;
	struct hazptr_context ctx;
	hazptr_t *first;
	bool good;

	init_hazptr_context(&ctx);
	{
		CLASS(hazptr, scope)(&ctx);

		first = scope.slot;
		good = hazptr_protect(scope.slot, &gp, head) == &object;
	}
	good &= READ_ONCE(first->value) == HAZPTR_UNUSED;
	cleanup_hazptr_context(&ctx);
	return good;
}
#endif

/* Two pointers take turns: sooner or later one attempt sees the first and then the second one. */
static bool test_changes(void)
{
	unsigned long end = jiffies + msecs_to_jiffies(LONG_MS);
	struct object a = {}, b = {}, *p = &a;
	struct flip flip = { .gp = &a, .other = &b };
	struct hazptr_context ctx;
	bool good = true;
	hazptr_t *slot;

	if (!start_flip(&flip))
		return false;
	init_hazptr_context(&ctx);
	slot = hazptr_alloc(&ctx);
	while (p && good && time_before(jiffies, end)) {
		p = hazptr_tryprotect(slot, &flip.gp, head);
		good = READ_ONCE(slot->value) == (p ? (unsigned long)&p->head : 0);
		cond_resched();
	}
	good &= !p && hazptr_protect(slot, &flip.gp, head);
	hazptr_free(&ctx, slot);
	cleanup_hazptr_context(&ctx);
	WRITE_ONCE(flip.stop, true);
	wait_for_completion(&flip.done);
	return good;
}

/* A thread, the interrupts of its CPU and this task take slots of one context. */
static bool test_shared(void)
{
	unsigned long end = jiffies + msecs_to_jiffies(10 * SHORT_MS);
	struct hazptr_context ctx;
	struct object mine = {}, theirs = {}, handlers = {};
	struct sharer task = { .ctx = &ctx, .gp = &mine };
	struct sharer thread = { .ctx = &ctx, .gp = &theirs };
	struct sharer handler = { .ctx = &ctx, .gp = &handlers };

	init_hazptr_context(&ctx);
	if (!start_sharer(&thread))
		return false;
	do {
		smp_call_function_single(cpumask_last(cpu_online_mask), share_slot, &handler,
					 false);
		share_slot(&task);
		cond_resched();
	} while (time_before(jiffies, end));
	WRITE_ONCE(thread.stop, true);
	wait_for_completion(&thread.done);
	/* The last call without waiting may still be under way. */
	smp_call_function_single(cpumask_last(cpu_online_mask), share_slot, &handler, true);
	cleanup_hazptr_context(&ctx);
	return thread.rounds && handler.rounds && task.rounds &&
	       !thread.bad && !handler.bad && !task.bad;
}

static bool test_unprotected(void)
{
	struct object object = {};

	call_hazptr(&object.head, note_run);
	return goes(&object);
}

/* True if @object lasts as long as the caller's protection, and other objects end before. */
static bool lasts_until_clear(struct object *object, hazptr_t *slot)
{
	struct object other = {};
	bool good;

	call_hazptr(&object->head, note_run);
	call_hazptr(&other.head, note_run);
	good = goes(&other) & stays(object);
	hazptr_clear(slot);
	return good & goes(object);
}

static bool test_each_slot(void)
{
	struct hazptr_context ctx;
	hazptr_t *slots[HAZPTR_SLOT_PER_CTX];
	bool good = true;
	int i;

	init_hazptr_context(&ctx);
	for (i = 0; i < HAZPTR_SLOT_PER_CTX; i++)
		slots[i] = hazptr_alloc(&ctx);
	/* Each slot in turn, in one context: a scan must not use an old value of a slot. */
	for (i = 0; i < HAZPTR_SLOT_PER_CTX; i++) {
		struct object object = {}, *gp = &object;

		good &= hazptr_protect(slots[i], &gp, head) == &object;
		good &= lasts_until_clear(&object, slots[i]);
	}
	for (i = 0; i < HAZPTR_SLOT_PER_CTX; i++)
		hazptr_free(&ctx, slots[i]);
	cleanup_hazptr_context(&ctx);
	return good;
}

static bool test_two_slots(void)
{
	struct object object = {}, *gp = &object;
	struct hazptr_context ctx;
	hazptr_t *a, *b;
	bool good;

	init_hazptr_context(&ctx);
	a = hazptr_alloc(&ctx);
	b = hazptr_alloc(&ctx);
	good = hazptr_protect(a, &gp, head) && hazptr_protect(b, &gp, head);
	hazptr_clear(a);
	good &= lasts_until_clear(&object, b);
	hazptr_free(&ctx, a);
	hazptr_free(&ctx, b);
	cleanup_hazptr_context(&ctx);
	return good;
}

static bool test_slot_reused(void)
{
	struct object first = {}, second = {}, *gp = &first;
	struct hazptr_context ctx;
	hazptr_t *slot;
	bool good;

	init_hazptr_context(&ctx);
	slot = hazptr_alloc(&ctx);
	good = hazptr_protect(slot, &gp, head) == &first;
	call_hazptr(&first.head, note_run);
	good &= stays(&first);
	gp = &second;
	good &= hazptr_protect(slot, &gp, head) == &second && goes(&first);
	good &= lasts_until_clear(&second, slot);
	hazptr_free(&ctx, slot);
	cleanup_hazptr_context(&ctx);
	return good;
}

static bool test_synchronize(void)
{
	struct object object = {}, other = {}, *gp = &object;
	struct wait wait = { .object = &object }, second = { .object = &object };
	struct hazptr_context ctx;
	hazptr_t *slot;
	bool good;

	init_hazptr_context(&ctx);
	slot = hazptr_alloc(&ctx);
	good = hazptr_protect(slot, &gp, head) == &object;
	good &= start_wait(&wait) & start_wait(&second);
	synchronize_hazptr(&other.head);
	good = good && waits(&wait) && waits(&second);
	hazptr_free(&ctx, slot);
	/* Waits for both, because they are on this stack. */
	good &= ends(&wait) & ends(&second);
	cleanup_hazptr_context(&ctx);
	return good;
}

static bool test_barriers(void)
{
	struct object object = {}, later = {}, *gp = &object;
	struct wait first = {}, second = {};
	struct hazptr_context ctx;
	hazptr_t *slot;
	bool good;

	init_hazptr_context(&ctx);
	slot = hazptr_alloc(&ctx);
	good = hazptr_protect(slot, &gp, head) == &object;
	call_hazptr(&object.head, note_run);
	good &= start_wait(&first);
	good = good && waits(&first);
	/* A later callback does not wait for the barrier, and the barrier does not wait for it. */
	call_hazptr(&later.head, note_run);
	good &= goes(&later) & start_wait(&second);
	good = good && waits(&second) && waits(&first);
	hazptr_free(&ctx, slot);
	good &= ends(&first) & ends(&second) & READ_ONCE(object.done);
	goes(&object);
	cleanup_hazptr_context(&ctx);
	return good;
}

static void call_in_interrupt(void *object)
{
	call_hazptr(&((struct object *)object)->head, note_run);
}

static bool test_interrupt(void)
{
	unsigned int cpu = cpumask_last(cpu_online_mask);
	struct object object = {};

	smp_call_function_single(cpu, call_in_interrupt, &object, true);
	return goes(&object);
}

struct in_interrupt {
	struct hazptr_context *ctx;
	struct object **gp;
	hazptr_t *slot;
};

static void protect_in_interrupt(void *arg)
{
	struct in_interrupt *in = arg;

	in->slot = hazptr_alloc(in->ctx);
	if (in->slot)
		hazptr_protect(in->slot, in->gp, head);
}

/* A slot that an interrupt took stays taken when the interrupt returns, and the task frees it. */
static bool test_interrupt_slot(void)
{
	struct object object = {}, *gp = &object;
	struct hazptr_context ctx;
	struct in_interrupt in = { .ctx = &ctx, .gp = &gp };
	hazptr_t *mine;
	bool good;

	init_hazptr_context(&ctx);
	mine = hazptr_alloc(&ctx);
	smp_call_function_single(cpumask_last(cpu_online_mask), protect_in_interrupt, &in, true);
	good = in.slot && in.slot != mine && lasts_until_clear(&object, in.slot);
	hazptr_free(&ctx, in.slot);
	hazptr_free(&ctx, mine);
	cleanup_hazptr_context(&ctx);
	return good;
}

static void rcu_note_run(struct rcu_head *head)
{
	note_run(head);
}

static void chain_to_rcu(struct callback_head *head)
{
	call_rcu(head, rcu_note_run);
}

static bool test_chain(void)
{
	struct object object = {};
	bool good;

	call_hazptr(&object.head, chain_to_rcu);
	good = goes(&object);
	rcu_barrier();
	return good;
}

static struct object *waited_for;

static void wait_and_note(struct callback_head *head)
{
	synchronize_hazptr(&waited_for->head);
	note_run(head);
}

/* A callback that waits for an object delays the other callbacks, and ends with the wait. */
static bool test_wait_in_callback(void)
{
	struct object held = {}, object = {}, other = {}, *gp = &held;
	struct hazptr_context ctx;
	hazptr_t *slot;
	bool good;

	init_hazptr_context(&ctx);
	slot = hazptr_alloc(&ctx);
	good = hazptr_protect(slot, &gp, head) == &held;
	waited_for = &held;
	call_hazptr(&object.head, wait_and_note);
	call_hazptr(&other.head, note_run);
	good &= stays(&object);
	hazptr_free(&ctx, slot);
	cleanup_hazptr_context(&ctx);
	return good & goes(&object) & goes(&other);
}

static bool test_kfree(void)
{
	struct hazptr_stats before, after;
	struct object *object = kzalloc(sizeof(*object), GFP_KERNEL);

	if (!object)
		return false;
	hazptr_get_stats(&before);
	kfree_hazptr(object, head);
	object = NULL;
	OPTIMIZER_HIDE_VAR(object);
	kfree_hazptr(object, head);
	hazptr_barrier();
	hazptr_get_stats(&after);
	return after.run == before.run + 1;
}

#define NR_OBJECTS 10000
#define NR_CONTEXTS 50 /* more than are scanned under one hold of the lock */
#define NR_PROTECTED (NR_CONTEXTS * HAZPTR_SLOT_PER_CTX)

static void protect_some(struct hazptr_context *ctxs, struct object *objects)
{
	int i, j;

	for (i = 0; i < NR_CONTEXTS; i++) {
		init_hazptr_context(&ctxs[i]);
		for (j = 0; j < HAZPTR_SLOT_PER_CTX; j++) {
			struct object *gp = &objects[(i * HAZPTR_SLOT_PER_CTX + j) * 24];

			hazptr_protect(hazptr_alloc(&ctxs[i]), &gp, head);
		}
	}
}

static int nr_done(struct object *objects)
{
	int i, nr = 0;

	for (i = 0; i < NR_OBJECTS; i++)
		nr += READ_ONCE(objects[i].done);
	return nr;
}

static void wait_done(struct object *objects, int nr)
{
	unsigned long end = jiffies + msecs_to_jiffies(LONG_MS);

	while (nr_done(objects) < nr && time_before(jiffies, end))
		usleep_range(500, 1000);
}

/* Several batches are retired, with four hundred protected objects among them. */
static bool test_many(void)
{
	struct hazptr_context *ctxs = kcalloc(NR_CONTEXTS, sizeof(*ctxs), GFP_KERNEL);
	struct object *objects = vzalloc(array_size(NR_OBJECTS, sizeof(*objects)));
	bool good = false;
	int i, j;

	if (ctxs && objects) {
		protect_some(ctxs, objects);
		for (i = 0; i < NR_OBJECTS; i++)
			call_hazptr(&objects[i].head, note_run);
		wait_done(objects, NR_OBJECTS - NR_PROTECTED);
		msleep(SHORT_MS);
		good = nr_done(objects) == NR_OBJECTS - NR_PROTECTED;
		for (i = 0; i < NR_CONTEXTS; i++) {
			for (j = 0; j < HAZPTR_SLOT_PER_CTX; j++)
				hazptr_free(&ctxs[i], &ctxs[i].slots[j]);
			cleanup_hazptr_context(&ctxs[i]);
		}
		hazptr_barrier();
		good &= nr_done(objects) == NR_OBJECTS;
		wait_done(objects, NR_OBJECTS);
	}
	vfree(objects);
	kfree(ctxs);
	return good;
}

static bool test_churn(void)
{
	struct object published = {};
	struct churn churn = { .gp = &published };
	bool good = true;
	int i;

	if (!start_churn(&churn))
		return false;
	for (i = 0; i < 100 && good; i++) {
		struct object object = {};

		call_hazptr(&object.head, note_run);
		good = goes(&object);
		if (!good) /* if a wait failed, its memory must stay */
			hazptr_barrier();
	}
	WRITE_ONCE(churn.stop, true);
	wait_for_completion(&churn.done);
	return good && churn.rounds;
}

/* A context that is registered on one CPU, cleaned up on another, and used on both. */
static bool test_migrate(void)
{
	struct object object = {}, *gp = &object;
	struct hazptr_context ctx;
	hazptr_t *slot;
	bool good;

	set_cpus_allowed_ptr(current, cpumask_of(cpumask_first(cpu_online_mask)));
	init_hazptr_context(&ctx);
	slot = hazptr_alloc(&ctx);
	good = hazptr_protect(slot, &gp, head) == &object;
	set_cpus_allowed_ptr(current, cpumask_of(cpumask_last(cpu_online_mask)));
	good &= lasts_until_clear(&object, slot);
	hazptr_free(&ctx, slot);
	cleanup_hazptr_context(&ctx);
	set_cpus_allowed_ptr(current, cpu_possible_mask);
	return good;
}

/* Few walks while an object stays protected: the pauses grow. */
static bool test_scan_sleeps(void)
{
	struct object object = {}, *gp = &object;
	struct hazptr_stats before, after;
	struct hazptr_context ctx;
	hazptr_t *slot;
	bool good;

	init_hazptr_context(&ctx);
	slot = hazptr_alloc(&ctx);
	good = hazptr_protect(slot, &gp, head) == &object;
	hazptr_get_stats(&before);
	call_hazptr(&object.head, note_run);
	msleep(500);
	hazptr_get_stats(&after);
	good &= after.kept == 1 && after.scans - before.scans < 30 && !READ_ONCE(object.done);
	hazptr_free(&ctx, slot);
	good &= goes(&object);
	cleanup_hazptr_context(&ctx);
	return good;
}

static const struct {
	const char *name;
	bool (*run)(void);
} tests[] = {
	{ "slots are taken and given back", test_slots },
	{ "protect and tryprotect", test_protect },
#ifdef DEFINE_CLASS
	{ "a slot of a scope", test_scope },
#endif
	{ "one attempt fails where the pointer changes", test_changes },
	{ "tasks and interrupts share a context", test_shared },
	{ "a callback runs where no reader protects the object", test_unprotected },
	{ "every slot protects, until it is cleared", test_each_slot },
	{ "two slots protect one object", test_two_slots },
	{ "a slot that is reused lets go", test_slot_reused },
	{ "synchronize waits for its object, and for no other", test_synchronize },
	{ "barriers wait for what was called before", test_barriers },
	{ "call from an interrupt", test_interrupt },
	{ "slots of an interrupt and a task in one context", test_interrupt_slot },
	{ "a callback hands over to RCU", test_chain },
	{ "a callback waits for an object", test_wait_in_callback },
	{ "synchronize does not wait for callbacks", test_wait_beside_callbacks },
	{ "a callback waits for a work of the kernel's queue", test_flush_in_callback },
	{ "kfree_hazptr", test_kfree },
	{ "ten thousand callbacks, four hundred protected", test_many },
	{ "contexts come and go during scans", test_churn },
	{ "a context is cleaned up on another CPU", test_migrate },
	{ "the scan sleeps while an object is protected", test_scan_sleeps },
	{ "many contexts are not scanned in every tick", test_many_contexts },
};

static void run_tests(void)
{
	int i;

	ktap_start(ARRAY_SIZE(tests));
	for (i = 0; i < ARRAY_SIZE(tests); i++) {
		if (tests[i].run == test_changes && num_online_cpus() < 2)
			ktap_skip(tests[i].name, "one CPU");
		else
			ktap_case(tests[i].run(), tests[i].name);
	}
}

static int __init hazptr_test_init(void)
{
	if (stall)
		hazptr_hold_long();
	else if (misuse)
		hazptr_do_wrong();
	else
		run_tests();
	return 0;
}

static void __exit hazptr_test_exit(void)
{
	/* The code of the callbacks is in this module. */
	hazptr_barrier();
}

module_init(hazptr_test_init);
module_exit(hazptr_test_exit);
MODULE_DESCRIPTION("Tests of hazptr.ko");
MODULE_AUTHOR("The quiesce authors");
MODULE_LICENSE("Dual MIT/GPL");
