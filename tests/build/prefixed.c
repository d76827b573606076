/* SPDX-License-Identifier: MIT */
/* prefixed.c - a program with a list.h and an RCU of its own, and quiesce beside them, by headers with the prefix my_. */
#include <quiesce/ds/rculist.h>
#include <quiesce/hazptr.h>
#include <quiesce/percpu_rwsem.h>
#include <quiesce/rcu.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(WITH_URCU)
#include <urcu.h>
#include <urcu/rculist.h>
#include <urcu/rculfhash.h>
#else
struct rcu_head {
	int theirs;
};
static void rcu_read_lock(void) {}
static void rcu_read_unlock(void) {}
static void synchronize_rcu(void) {}
static void rcu_register_thread(void) {}
static void rcu_unregister_thread(void) {}
#define rcu_dereference(p) (p)
#endif

struct list_head {
	struct list_head *forward, *back;
};
#define LIST_HEAD(name) struct list_head name = { &(name), &(name) }
static int list_empty(const struct list_head *head) { return head->forward == head; }

struct item {
	int value;
	struct my_list_head node;
	struct list_head theirs;
	struct my_rcu_head rcu;
};

static MY_LIST_HEAD(items);
static LIST_HEAD(their_items);

static int sum(void)
{
	struct item *i;
	int total = 0;

	my_rcu_read_lock();
	my_list_for_each_entry_rcu(i, &items, node)
		total += i->value;
	my_rcu_read_unlock();
	return total;
}

int main(void)
{
	struct item *item = (struct item *)calloc(1, sizeof(*item)), *shared = item, *seen;
	my_hazptr_t *slot = my_hazptr_alloc(NULL);
	struct rcu_head head;
	int before;

	(void)head;
	item->value = 7;
	my_list_add_rcu(&item->node, &items);
	seen = my_hazptr_protect(slot, &shared);
	before = sum();
	my_hazptr_clear(slot);
	my_hazptr_free(NULL, slot);
	my_list_del_rcu(&item->node);
	my_kfree_rcu(item, rcu);
	my_rcu_barrier();
	rcu_register_thread();
	rcu_read_lock();
	seen = rcu_dereference(seen);
	rcu_read_unlock();
	synchronize_rcu();
	rcu_unregister_thread();
	printf("%d %d %d\n", before, sum(), list_empty(&their_items) && seen);
	return 0;
}
