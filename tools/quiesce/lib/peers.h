/* SPDX-License-Identifier: MIT */
/* peers.h - types of other libraries, which are in modules. */
#ifndef QUIESCE_TOOL_PEERS_H
#define QUIESCE_TOOL_PEERS_H

#include "op.h"

struct peer {
	const char *name;    /* name of the module, with which the names of its types begin */
	const char *library; /* name of the library, and its package in Debian */
	bool tried;
	const char *failure; /* reason why the module cannot be loaded; NULL: none */
};
extern struct peer peers[]; /* ends with a NULL name; tools/peers/meson.build has the list */

/* Loads the module and registers its types, once.  Returns NULL, or the reason of a failure. */
const char *peer_load(struct peer *peer);
/* The peer whose module has types with names such as @type; NULL: none. */
struct peer *peer_of(const char *type);
/* A type with the name alone, in the place of one whose module cannot be loaded. */
const struct op *peer_absent(const char *name);

#endif
