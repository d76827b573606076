/* SPDX-License-Identifier: MIT */
/* peers.h - types of other libraries, which are in modules. */
#ifndef QUIESCE_TOOL_PEERS_H
#define QUIESCE_TOOL_PEERS_H

#include "ops/op.h"

struct peer {
	const char *name;    /* of the module, and how names of its types begin */
	const char *library; /* what it is called, and its package in Debian */
	bool tried;
	const char *failure; /* NULL: there was none */
};
extern struct peer peers[]; /* no name at the end */

/* Load its module and put its types into the tables, once.  NULL, or why that cannot be. */
const char *peer_load(struct peer *peer);
/* Whose is @op, which is absent? */
struct peer *peer_of(const struct op *op);

#endif
