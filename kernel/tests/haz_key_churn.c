// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Lockdep keys of one bucket that come and go while other tasks walk the bucket.
 *
 * lockdep_unregister_key() promises that no walker uses the key when it
 * returns.  So the owner here overwrites the link in the key at once, with an
 * address that faults: a walker that is still at the key crashes.
 *
 * Usage in a guest, whose kernel has CONFIG_LOCKDEP:
 *	insmod haz_key_churn.ko; sleep 10; rmmod haz_key_churn
 */
#define pr_fmt(fmt) "haz-key-churn: " fmt

#include <linux/cpumask.h>
#include <linux/debug_locks.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/hash.h>
#include <linux/kthread.h>
#include <linux/lockdep.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/poison.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "haz_stats.h"
#include "ktap.h"

/* lockdep.c defines the same value. */
#define BUCKET_BITS (MAX_LOCKDEP_KEYS_BITS - 1)
/* The first key stays and is the last in its bucket, so that a search for it passes all others. */
#define NR_KEYS 8

static struct lock_class_key *memory, *keys[NR_KEYS];
static struct task_struct **walkers, *owner;
static unsigned long *walks, rounds;

static bool find_keys(void)
{
	size_t nr = 2 * NR_KEYS << BUCKET_BITS, i;
	unsigned int found = 0;
	u32 bucket;

	memory = vzalloc(array_size(nr, sizeof(*memory)));
	if (!memory)
		return false;
	bucket = hash_long((unsigned long)memory, BUCKET_BITS);
	for (i = 0; i < nr && found < NR_KEYS; i++)
		if (hash_long((unsigned long)&memory[i], BUCKET_BITS) == bucket)
			keys[found++] = &memory[i];
	return found == NR_KEYS;
}

static int walk(void *count)
{
	struct lockdep_map map;

	while (!kthread_should_stop()) {
		lockdep_init_map(&map, "haz_key_churn", keys[0], 0);
		WRITE_ONCE(*(unsigned long *)count, *(unsigned long *)count + 1);
		cond_resched();
	}
	return 0;
}

static void come_and_go(struct lock_class_key *key)
{
	lockdep_unregister_key(key);
	WRITE_ONCE(key->hash_entry.next, LIST_POISON1);
	udelay(20);
	lockdep_register_key(key);
}

static int own(void *unused)
{
	unsigned int i;

	while (!kthread_should_stop()) {
		for (i = 1; i < NR_KEYS; i++)
			come_and_go(keys[i]);
		WRITE_ONCE(rounds, rounds + 1);
		cond_resched();
	}
	return 0;
}

static void stop(void)
{
	unsigned int cpu, i;

	if (!IS_ERR_OR_NULL(owner))
		kthread_stop(owner);
	for_each_possible_cpu(cpu)
		if (walkers && !IS_ERR_OR_NULL(walkers[cpu]))
			kthread_stop(walkers[cpu]);
	for (i = 0; i < NR_KEYS; i++)
		lockdep_unregister_key(keys[i]);
}

static void free_all(void)
{
	vfree(memory);
	kfree(walkers);
	kfree(walks);
}

static int __init haz_key_churn_init(void)
{
	unsigned int cpu, i;

	walkers = kcalloc(nr_cpu_ids, sizeof(*walkers), GFP_KERNEL);
	walks = kcalloc(nr_cpu_ids, sizeof(*walks), GFP_KERNEL);
	if (!walkers || !walks || !find_keys()) {
		free_all();
		return -ENOMEM;
	}
	for (i = 0; i < NR_KEYS; i++)
		lockdep_register_key(keys[i]);
	for_each_online_cpu(cpu) {
		walkers[cpu] = haz_thread(walk, &walks[cpu], cpu, "haz_key_walk");
		if (IS_ERR(walkers[cpu]))
			goto failed;
	}
	owner = kthread_run(own, NULL, "haz_key_own");
	if (!IS_ERR(owner))
		return 0;
failed:
	stop();
	free_all();
	return -ENOMEM;
}

static void __exit haz_key_churn_exit(void)
{
	unsigned long sum = 0;
	unsigned int cpu;

	stop();
	for_each_possible_cpu(cpu)
		sum += walks[cpu];
	pr_info("%lu walks, %lu keys came and went\n", sum, rounds * (NR_KEYS - 1));
	ktap_start(2);
	ktap_case(sum > 1000 && rounds > 10, "walkers walked while keys came and went");
	ktap_case(debug_locks, "lockdep is still on");
	free_all();
}

module_init(haz_key_churn_init);
module_exit(haz_key_churn_exit);
MODULE_DESCRIPTION("Lockdep keys that come and go while others walk their bucket");
MODULE_AUTHOR("The quiesce authors");
MODULE_LICENSE("Dual MIT/GPL");
