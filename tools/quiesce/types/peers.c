/* SPDX-License-Identifier: MIT */
/* peers.c - load the module of a peer when a type of it is needed.
 *
 * The tool starts where the peers' libraries are not installed, and a child loads only those that it measures:
 * loading a library changes the process.  Absent types stand in the tables for the types of modules, so that their
 * order is fixed; they have no facets, so that no subcommand takes them.
 */
#include "peers.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peer.h"
#include "peer_stamp.h"
#include "place.h"

struct peer peers[] = {
	{ .name = "liburcu", .library = "liburcu (Debian: liburcu8)" },
	{ .name = "ck", .library = "Concurrency Kit (Debian: libck0)" },
	{ .name = "libcds", .library = "libcds (Debian: libcds2.3.3)" },
	{ .name = "tbb", .library = "oneTBB (Debian: libtbb12)" },
	{ .name = NULL },
};

static const struct op **const tables[NR_PEER_TABLES] = {
	[PEER_OP_TABLE] = op_table,
	[PEER_RETIRE_TABLE] = retire_table,
	[PEER_RWLOCK_TYPES] = rwlock_types,
	[PEER_HASH_TYPES] = hash_types,
	[PEER_WALK_TYPES] = walk_types,
	[PEER_QUEUE_TYPES] = queue_types,
};

struct peer *peer_of(const struct op *op)
{
	struct peer *peer = peers;

	while (peer->name && strncmp(op->name, peer->name, strlen(peer->name)))
		peer++;
	return peer;
}

static const char *text(const char *format, ...) __attribute__((format(printf, 1, 2)));
static const char *text(const char *format, ...)
{
	va_list args;
	char *ret;

	va_start(args, format);
	if (vasprintf(&ret, format, args) < 0)
		ret = NULL;
	va_end(args);
	return ret ? ret : "out of memory";
}

/* Replaces the absent types by those of the module. */
static void fill(const struct op **table, const struct op *const *types)
{
	for (; *types; types++)
		for (const struct op **row = table; *row; row++)
			if ((*row)->absent && !strcmp((*row)->name, (*types)->name))
				*row = *types;
}

/* Returns NULL, or the reason of a failure. */
static const char *load(const struct peer *peer)
{
	const struct peer_module *module;
	char name[64], path[PLACE_MAX];
	void *handle;

	snprintf(name, sizeof(name), "peers/%s.so", peer->name);
	if (!place_find(path, sizeof(path), name, name))
		return text("its module is not there: %s", path);
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		return text("needs %s, which cannot be loaded: %s", peer->library, dlerror());
	module = dlsym(handle, "quiesce_peer");
	if (!module || strncmp(module->stamp, PEER_STAMP, sizeof(module->stamp)))
		return text("its module belongs to another build of quiesce: %s", path);
	for (int i = 0; i < NR_PEER_TABLES; i++)
		fill(tables[i], module->types[i]);
	return NULL;
}

const char *peer_load(struct peer *peer)
{
	if (!peer->tried)
		peer->failure = load(peer);
	peer->tried = true;
	return peer->failure;
}
