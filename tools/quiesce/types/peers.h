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
extern struct peer peers[]; /* ends with a NULL name */

/* Loads the module and puts its types into the tables, once.  Returns NULL, or the reason of a failure. */
const char *peer_load(struct peer *peer);
/* The peer that the absent type @op belongs to. */
struct peer *peer_of(const struct op *op);

#endif
