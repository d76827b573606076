/* SPDX-License-Identifier: MIT */
/* peers.c - load the module of a peer when a type of it is needed.
 *
 * The tool starts where the peers' libraries are not installed, and a child loads only those that it measures:
 * loading a library changes the process.  An absent type has a name and no facets, so that no subcommand takes it.
 */
#include "peers.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peer.h"
#include "peer_stamp.h"
#include "peers_list.h"
#include "place.h"
#include "registry.h"

#define PEER(name_, library_) { .name = name_, .library = library_ },
struct peer peers[] = { PEERS(PEER) { .name = NULL } };

struct peer *peer_of(const char *type)
{
	for (struct peer *peer = peers; peer->name; peer++)
		if (!strncmp(type, peer->name, strlen(peer->name)) && type[strlen(peer->name)] == '_')
			return peer;
	return NULL;
}

const struct op *peer_absent(const char *name)
{
	struct op *op = calloc(1, sizeof(*op)); /* kept: results refer to it */

	if (!op)
		abort();
	op->name = strdup(name);
	op->absent = true;
	return op;
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

/* Returns NULL, or the reason of a failure. */
static const char *load(const struct peer *peer)
{
	const struct peer_module *module;
	const char *missing;
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
	missing = module->missing ? module->missing() : NULL;
	if (missing)
		return text("needs %s, which cannot be loaded: %s", peer->library, missing);
	types_add(module->types, module->end);
	return NULL;
}

const char *peer_load(struct peer *peer)
{
	if (!peer->tried)
		peer->failure = load(peer);
	peer->tried = true;
	return peer->failure;
}
