// SPDX-License-Identifier: GPL-2.0 OR MIT
/* The torture test's types: how each protects, and how its updaters wait. */
#include <linux/kernel.h>
#include <linux/preempt.h>
#include <linux/printk.h>
#include <linux/rcupdate.h>
#include <linux/string.h>

#include "haz_torture.h"

static bool torture_rcu_lock(struct hazptr_context *ctx, struct element **gp, struct hold *hold)
	__acquires(RCU)
{
	rcu_read_lock();
	hold->element = READ_ONCE(*gp);
	return true;
}

static void torture_rcu_unlock(struct hazptr_context *ctx, struct hold *hold)
	__releases(RCU)
{
	rcu_read_unlock();
}

static void torture_rcu_sync(struct element *element)
{
	synchronize_rcu_expedited();
}

/* The address is known by other means, and the pointer is loaded once more. */
static bool torture_shazptr_lock(struct hazptr_context *ctx, struct element **gp, struct hold *hold)
{
	preempt_disable();
	hold->element = READ_ONCE(*gp);
	hold->guard = shazptr_acquire(hold->element);
	if (READ_ONCE(*gp) == hold->element)
		return true;
	shazptr_clear(hold->guard);
	preempt_enable();
	return false;
}

static bool torture_shazptr_protect(struct hazptr_context *ctx, struct element **gp,
				    struct hold *hold)
{
	preempt_disable();
	hold->element = shazptr_tryprotect(&hold->guard, gp);
	if (hold->element)
		return true;
	preempt_enable();
	return false;
}

static void torture_shazptr_unlock(struct hazptr_context *ctx, struct hold *hold)
{
	shazptr_clear(hold->guard);
	preempt_enable();
}

static void torture_shazptr_sync(struct element *element)
{
	synchronize_shazptr(element);
}

static bool torture_hazptr_lock(struct hazptr_context *ctx, struct element **gp, struct hold *hold)
{
	hold->slot = hazptr_alloc(ctx);
	if (!hold->slot)
		return false;
	hold->element = hazptr_tryprotect(hold->slot, gp, head);
	if (hold->element)
		return true;
	hazptr_free(ctx, hold->slot);
	return false;
}

static void torture_hazptr_unlock(struct hazptr_context *ctx, struct hold *hold)
{
	hazptr_free(ctx, hold->slot);
}

static void torture_hazptr_sync(struct element *element)
{
	synchronize_hazptr(&element->head);
}

static void torture_busted_sync(struct element *element)
{
}

static const struct torture_ops all[] = {
	{
		.name = "rcu", .held = 1,
		.lock = torture_rcu_lock, .unlock = torture_rcu_unlock, .sync = torture_rcu_sync,
	}, {
		.name = "shazptr", .held = 1,
		.lock = torture_shazptr_lock, .unlock = torture_shazptr_unlock,
		.sync = torture_shazptr_sync,
	}, {
		.name = "shazptr_protect", .held = 1,
		.lock = torture_shazptr_protect, .unlock = torture_shazptr_unlock,
		.sync = torture_shazptr_sync,
	}, {
		.name = "shazptr_wildcard", .held = 2,
		.lock = torture_shazptr_protect, .unlock = torture_shazptr_unlock,
		.sync = torture_shazptr_sync,
	}, {
		.name = "hazptr", .held = 3, .sleeps = true, .contexts = true,
		.lock = torture_hazptr_lock, .unlock = torture_hazptr_unlock,
		.call = call_hazptr, .drain = hazptr_barrier,
	}, {
		.name = "hazptr_sync", .held = 2, .sleeps = true, .contexts = true,
		.lock = torture_hazptr_lock, .unlock = torture_hazptr_unlock,
		.sync = torture_hazptr_sync,
	}, {
		.name = "busted", .held = 1,	/* does not wait: the test must notice */
		.lock = torture_shazptr_lock, .unlock = torture_shazptr_unlock,
		.sync = torture_busted_sync,
	},
};

const struct torture_ops *torture_ops_find(const char *name)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(all); i++)
		if (!strcmp(all[i].name, name))
			return &all[i];
	return NULL;
}

void torture_ops_list(void)
{
	int i;

	pr_alert("haz-torture: torture_type is one of\n");
	for (i = 0; i < ARRAY_SIZE(all); i++)
		pr_alert("haz-torture:   %s\n", all[i].name);
}
