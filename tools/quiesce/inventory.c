/* SPDX-License-Identifier: MIT */
/* inventory.c - `quiesce types`: the types of each subcommand and their groups as JSON, for scripts. */
#include "inventory.h"

#include <jansson.h>

#include "peers.h"
#include "registry.h"

#define TYPE_GROUP_NAME(name) #name,
static const char *const group_name[] = { TYPE_GROUPS(TYPE_GROUP_NAME) };

static json_t *groups_of(uint32_t groups)
{
	json_t *list = json_array();

	for (int i = 0; i < NR_TYPE_GROUPS; i++)
		if (groups & (1u << i))
			json_array_append_new(list, json_string(group_name[i]));
	return list;
}

static void add_types(json_t *list, const struct subcommand *command)
{
	const struct op *types[MAX_TYPES];
	int nr = command->fits ? types_all(command->fits, types, MAX_TYPES) : 0;

	for (int i = 0; i < nr; i++) {
		const struct peer *peer = peer_of(types[i]->name);

		json_array_append_new(list, json_pack("{ss ss ss* sb so so ss*}", "subcommand", command->name, "type", types[i]->name,
						      "peer", peer ? peer->name : NULL, "broken", types[i]->broken,
						      "groups", groups_of(types[i]->groups), "peers", groups_of(types[i]->peers),
						      "reason", types[i]->reason));
	}
}

int inventory(const struct subcommand *const *commands, size_t nr)
{
	json_t *types = json_array(), *names = json_array(), *root;

	for (size_t i = 0; i < nr; i++)
		add_types(types, commands[i]);
	for (const struct peer *peer = peers; peer->name; peer++)
		json_array_append_new(names, json_string(peer->name));
	root = json_pack("{so so}", "peers", names, "types", types);
	json_dumpf(root, stdout, JSON_INDENT(1));
	putchar('\n');
	json_decref(root);
	return emit_close(stdout, &(struct options){ 0 });
}
