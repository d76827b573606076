/* SPDX-License-Identifier: MIT */
/* peer.h - the interface between a peer's module and the tool. */
#ifndef QUIESCE_TOOL_PEER_H
#define QUIESCE_TOOL_PEER_H

#include "op.h"

/* The tables that the types of a module belong to. */
enum peer_table { PEER_OP_TABLE, PEER_RETIRE_TABLE, PEER_RWLOCK_TYPES, PEER_HASH_TYPES, PEER_WALK_TYPES, PEER_QUEUE_TYPES, NR_PEER_TABLES };

/* A module exports one symbol, quiesce_peer, of this type. */
struct peer_module {
	char stamp[32]; /* PEER_STAMP: a hash of the headers that both sides were compiled with */
	const struct op *const *types[NR_PEER_TABLES]; /* each list ends with NULL */
};

#endif
