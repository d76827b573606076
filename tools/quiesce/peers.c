/* SPDX-License-Identifier: MIT */
/* peers.c - load the module of a peer when a type of it is asked for.
 *
 * The tool starts where the peers' libraries are not installed, and a child loads those only that it measures: loading
 * one changes the process.  In the tables absent types hold the places of what is in modules, so that their order is
 * fixed; they have no facets, so that no subcommand takes them.
 */
#include "peers.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ops/peer.h"
#include "peer_stamp.h"

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
};
static const char *program = "/proc/self/exe";

void peers_beside(const char *other)
{
	program = other;
}

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

/* In the build tree, or where both are installed; never where somebody happens to be.  It need not be there. */
static const char *module_path(const char *name)
{
	static const char *const places[] = { "peers", PEERS_DIR };
	const char *path = NULL;
	char self[PATH_MAX] = "", *slash = realpath(program, self) ? strrchr(self, '/') : self;

	*slash = '\0';
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		path = places[i][0] == '/' ? text("%s/%s.so", places[i], name) : text("%s/%s/%s.so", self, places[i], name);
		if (!access(path, F_OK))
			break;
	}
	return path;
}

/* Instead of what held their places. */
static void fill(const struct op **table, const struct op *const *types)
{
	for (; *types; types++)
		for (const struct op **row = table; *row; row++)
			if ((*row)->absent && !strcmp((*row)->name, (*types)->name))
				*row = *types;
}

/* NULL, or why not. */
static const char *load(const struct peer *peer)
{
	const char *path = module_path(peer->name);
	const struct peer_module *module;
	void *handle;

	if (access(path, F_OK))
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
