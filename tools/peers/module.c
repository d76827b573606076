/* SPDX-License-Identifier: MIT */
/* module.c - the types of a peer's module, for the tool that loads it.  Compiled once for each peer. */
#include "peer_stamp.h"
#include "peer.h"
#include "registry.h"

extern const struct peer_module quiesce_peer;
__attribute__((visibility("default"))) const struct peer_module quiesce_peer = {
	PEER_STAMP, __start_quiesce_types, __stop_quiesce_types, peer_missing,
};
