/* SPDX-License-Identifier: MIT */
/* plugin_codec.c - the plug-in of plugin.c, which has the description. */
#include "plugin.h"
#include <quiesce/rcu.h>
#include <stdlib.h>

struct key {
	unsigned int value;
	struct rcu_head rcu;
};

static struct key *key;

static unsigned int encode(unsigned int value)
{
	const struct key *k;

	rcu_read_lock();
	k = rcu_dereference(key);
	value ^= k ? k->value : 0;
	rcu_read_unlock();
	return value;
}

/* Code of the plug-in that a thread of the library calls, some time later: the host waits for it before it unloads. */
static void key_free(struct rcu_head *head)
{
	struct key *k = (struct key *)((char *)head - offsetof(struct key, rcu));

	k->value = 0; /* keys do not stay in freed memory */
	free(k);
}

static void publish(struct key *fresh)
{
	struct key *old = rcu_xchg_pointer(&key, fresh);

	if (old)
		call_rcu(&old->rcu, key_free);
}

static bool set_key(unsigned int value)
{
	struct key *fresh = malloc(sizeof(*fresh));

	if (!fresh)
		return false;
	fresh->value = value;
	publish(fresh);
	return true;
}

static void leave(void)
{
	publish(NULL);
}

__attribute__((visibility("default"))) const struct codec codec = { encode, set_key, leave };
