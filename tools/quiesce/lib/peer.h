/* SPDX-License-Identifier: MIT */
/* peer.h - the interface between a peer's module and the tool. */
#ifndef QUIESCE_TOOL_PEER_H
#define QUIESCE_TOOL_PEER_H

#include "op.h"

/* A module exports one symbol, quiesce_peer, of this type. */
struct peer_module {
	char stamp[32]; /* PEER_STAMP: a hash of the headers that both sides were compiled with */
	const struct op *const *types, *const *end;
	const char *(*missing)(void); /* NULL, or as peer_missing() */
};

/* A module that opens its library itself defines it: returns the reason why the library is not here; NULL: it is. */
const char *peer_missing(void) __attribute__((weak, visibility("hidden")));

#endif
