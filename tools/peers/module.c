/* SPDX-License-Identifier: MIT */
/* module.c - the types of a peer's module, for the tool that loads it.  Compiled once
 * for each peer; PEER is its name in the lists of types. */
#include "types/hash_table.h"
#include "types/peer.h"
#include "types/queue.h"
#include "types/retire_table.h"
#include "types/rwlock.h"
#include "types/table.h"
#include "peer_stamp.h"
#include "types/walk_table.h"

#define LIST_OF(table, peer) table##_##peer
#define LIST(table, peer) LIST_OF(table, peer)

static const struct op *const ops[] = { LIST(OP, PEER)(OP_HERE) NULL };
static const struct op *const retires[] = { LIST(RETIRE, PEER)(RETIRE_HERE) NULL };
static const struct op *const rwlocks[] = { LIST(RWLOCK, PEER)(RWLOCK_HERE) NULL };
static const struct op *const hashes[] = { LIST(HASH, PEER)(HASH_HERE) NULL };
static const struct op *const queues[] = { LIST(QUEUE, PEER)(QUEUE_HERE) NULL };
static const struct op *const walks[] = { LIST(WALK, PEER)(WALK_HERE) NULL };

extern const struct peer_module quiesce_peer;
__attribute__((visibility("default"))) const struct peer_module quiesce_peer = {
	PEER_STAMP, { ops, retires, rwlocks, hashes, walks, queues },
};
