/* SPDX-License-Identifier: MIT */
/* walk.c - the structures of the tool's walkscale under hazard pointers, recorded.  A map is lists; one long list would take
 * minutes where delays are inserted.
 */
#include <quiesce/hazptr.h>

static void bury(struct hazptr_head *head);
#define WALK_HAZPTR_RETIRE(node) call_hazptr_inline(&(node)->head.hazptr, bury)
#define op tool_op /* both have a structure of that name */
#include "types/quiesce/walk_hazptr.c"
#undef op

#include "record.h"

/* Variables of the tool that the scheme uses. */
struct retire_params retire_params;

int op_rcu_init(enum op_fence fence)
{
	(void)fence;
	return 0;
}

void op_rcu_stats(struct op_stats *ret)
{
	(void)ret;
}

uint64_t op_hazptr_waiting(void)
{
	return 0;
}

/* Poison the object, so that a late reader goes astray. */
static void bury(struct hazptr_head *head)
{
	struct walk_node *node = (struct walk_node *)head;

	memset(&node->value, 0xa5, sizeof(*node) - offsetof(struct walk_node, value));
	free(node);
}

static struct walk_table *table;

/* Let retirers scan at once, so that objects are freed while late readers may still come. */
static void set_up(void *empty)
{
	table = empty;
	succeeded(quiesce_set_hazptr_batch(1, 1), 0);
}

static void set_up_map(uint64_t seed)
{
	(void)seed;
	set_up(walk_create_map(32));
}

static void set_up_skip(uint64_t seed)
{
	(void)seed;
	set_up(walk_create_skip(0));
}

static void set_up_tree(uint64_t seed)
{
	(void)seed;
	set_up(walk_create_tree(0));
}

/* The structures have three operations: other kinds of operations are replaced by these. */
static void prepare(struct op *op)
{
	static const uint8_t known[NR_KINDS] = { [OP_LOOKUP] = OP_LOOKUP,   [OP_INSERT] = OP_INSERT,   [OP_SET] = OP_INSERT,
						 [OP_REMOVE] = OP_REMOVE,   [OP_REPLACE] = OP_REMOVE,  [OP_DISCARD] = OP_LOOKUP,
						 [OP_UPDATE] = OP_LOOKUP };

	op->event.kind = known[op->event.kind];
}

static void set_found(struct event *e, bool inserted)
{
	e->done = inserted;
	e->found = inserted ? 0 : UNKNOWN;
}

#define PERFORM(how)                                                                           \
	static void perform_##how(struct op *op)                                               \
	{                                                                                      \
		struct event *e = &op->event;                                                  \
                                                                                               \
		walk_thread_enter();                                                           \
		e->done = 1;                                                                   \
		switch (e->kind) {                                                             \
		case OP_LOOKUP: e->found = how##_lookup(table, op->key); break;                \
		case OP_INSERT: set_found(e, how##_insert(table, op->key, e->value)); break;   \
		case OP_REMOVE: e->found = how##_take(table, op->key); break;                  \
		}                                                                              \
		walk_thread_exit();                                                            \
	}
PERFORM(list)
PERFORM(skip)
PERFORM(tree)

static void tear_down(void)
{
	walk_destroy(table);
	hazptr_barrier();
}

#define OF_ALL .model = MODEL_MAP, .prepare = prepare, .teardown = tear_down
const struct type walk_type_map = { .name = "walk_map", .setup = set_up_map, .perform = perform_list, OF_ALL };
const struct type walk_type_skip = { .name = "walk_skip", .setup = set_up_skip, .perform = perform_skip, OF_ALL };
const struct type walk_type_tree = { .name = "walk_tree", .setup = set_up_tree, .perform = perform_tree, OF_ALL };
