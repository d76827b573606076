// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * A module that other authors may begin from: limits that are read often, may be
 * read by a task that sleeps meanwhile, and are replaced as a whole.
 *
 *	echo 7 > /sys/module/limits_example/parameters/most
 *	cat /sys/module/limits_example/parameters/most
 *
 * The same limits are in a list of one, whose walk is protected by its head.
 */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/preempt.h>
#include <linux/rculist.h>
#include <linux/slab.h>

#include <linux/hazptr.h>
#include <linux/shazptr.h>

struct limits {
	int most;
	struct callback_head head;
};

static struct limits *limits;

struct entry {
	int most;
	struct hlist_node node;
};

static HLIST_HEAD(entries);
static DEFINE_MUTEX(update);	/* guards stores to both */

/* A reader that may sleep while it uses an object. */
static int read_slowly(void)
{
	struct hazptr_context ctx;
	struct limits *seen;
	hazptr_t *slot;
	int most = 0;

	init_hazptr_context(&ctx);
	slot = hazptr_alloc(&ctx);
	seen = hazptr_protect(slot, &limits, head);
	if (seen) {
		msleep(20);
		most = seen->most;
	}
	hazptr_free(&ctx, slot);
	cleanup_hazptr_context(&ctx);
	return most;
}

/* A short reader, which knows the address that it protects: that of the list. */
static int read_fast(void)
{
	struct shazptr_guard guard;
	struct entry *entry;
	int most = 0;

	preempt_disable();
	guard = shazptr_acquire(&entries);
	hlist_for_each_entry_rcu(entry, &entries, node, true)
		most = entry->most;
	shazptr_clear(guard);
	preempt_enable();
	return most;
}

static int replace(int most)
{
	struct limits *fresh = kzalloc(sizeof(*fresh), GFP_KERNEL), *old;
	struct entry *entry = kzalloc(sizeof(*entry), GFP_KERNEL), *gone;

	if (!fresh || !entry) {
		kfree(fresh);
		kfree(entry);
		return -ENOMEM;
	}
	fresh->most = most;
	entry->most = most;
	mutex_lock(&update);
	gone = hlist_entry_safe(entries.first, struct entry, node);
	if (gone)
		hlist_replace_rcu(&gone->node, &entry->node);
	else
		hlist_add_head_rcu(&entry->node, &entries);
	old = xchg(&limits, fresh);
	mutex_unlock(&update);
	kfree_hazptr(old, head);
	synchronize_shazptr(&entries);
	kfree(gone);
	return 0;
}

static int most_set(const char *value, const struct kernel_param *kp)
{
	int most, err = kstrtoint(value, 0, &most);

	return err ? err : replace(most);
}

static int most_get(char *buffer, const struct kernel_param *kp)
{
	int slow = read_slowly(), fast = read_fast();

	return sysfs_emit(buffer, "%d %d\n", slow, fast);
}

static const struct kernel_param_ops most_ops = { .set = most_set, .get = most_get };
module_param_cb(most, &most_ops, NULL, 0644);

static int __init limits_init(void)
{
	return limits ? 0 : replace(1);
}

/* No reader is left: readers hold a reference to the module. */
static void __exit limits_exit(void)
{
	struct entry *entry = hlist_entry_safe(entries.first, struct entry, node);

	kfree(limits);
	kfree(entry);
}

module_init(limits_init);
module_exit(limits_exit);
MODULE_DESCRIPTION("An example of a module that uses hazard pointers");
MODULE_AUTHOR("The quiesce authors");
MODULE_LICENSE("Dual MIT/GPL");
