/* SPDX-License-Identifier: MIT */
/* urcu.c - a program written for liburcu. */
#include <stdio.h>
#include <stdlib.h>
#if defined(USE_BP)
#include <urcu-bp.h>
#elif defined(USE_QSBR)
#include <urcu-qsbr.h>
#else
#include <urcu.h>
#endif

struct config {
	int limit;
	struct rcu_head rcu;
};

static struct config *current_config;
static int nr_freed;

static void config_free(struct rcu_head *head)
{
	free(caa_container_of(head, struct config, rcu));
	nr_freed++;
}

int main(void)
{
	struct config *old, *first = calloc(1, sizeof(*first));

	rcu_register_thread();
	rcu_assign_pointer(current_config, first);
	rcu_read_lock();
	first = rcu_dereference(current_config);
	rcu_read_unlock();
	old = rcu_xchg_pointer(&current_config, NULL);
	if (old != first)
		return 1;
	call_rcu(&old->rcu, config_free);
	rcu_barrier();
	synchronize_rcu();
	rcu_unregister_thread();
	printf("freed %d\n", nr_freed);
	return 0;
}
