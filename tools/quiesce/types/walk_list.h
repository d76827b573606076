/* SPDX-License-Identifier: MIT */
/* walk_list.h - Michael's list: sorted, lock-free, three slots; instantiated by walk_types.h.
 *
 * A node is marked in its own next word before it is unlinked, and the thread that unlinks it retires it.  A reader
 * protects a node's successor, and then checks that the word that led it to the node still does, without a mark: so
 * the node was linked after the protection was set, and its successor with it.  Source: M. Michael, "High performance
 * dynamic lock-free hash tables and list-based sets", 2002; T. Harris, 2001.
 */
#ifndef QUIESCE_TOOL_WALK_LIST_H
#define QUIESCE_TOOL_WALK_LIST_H

struct walk_place {
	uintptr_t *where; /* the word that leads to @node */
	uintptr_t node;   /* the first node whose key is not less; 0: none */
	uintptr_t next;   /* the successor of @node */
};

#define WALK_NODE(word) ((struct walk_node *)(word))

static inline uintptr_t *list_head(const struct walk_table *table, uint64_t key)
{
	return &table->bucket[table->mask ? hash_mix(key) & table->mask : 0];
}

/* Returns false if the walk has to start again. */
static inline __attribute__((always_inline)) bool list_walk(uintptr_t *head, uint64_t key, struct walk_slots *s, struct walk_place *ret)
{
	unsigned int here = 0, ahead = 1, behind = 2, t;
	uintptr_t *where = head, node = walk_protect(s, here, where), next = 0;

	while (node) {
		next = walk_protect(s, ahead, &WALK_NODE(node)->next);
		if (WALK_CHECKS && walk_load(where) != node)
			return false;
		if (quiesce_unlikely(next & WALK_MARK)) {
			next &= ~WALK_MARK;
			if (!walk_change(where, node, next))
				return false;
			walk_retire(WALK_NODE(node));
			t = here, here = ahead, ahead = t;
		} else {
			if (WALK_NODE(node)->key >= key)
				break;
			where = &WALK_NODE(node)->next;
			t = behind, behind = here, here = ahead, ahead = t;
		}
		node = next;
	}
	ret->where = where;
	ret->node = node;
	ret->next = next;
	return true;
}

static inline bool list_find(uintptr_t *head, uint64_t key, struct walk_slots *s, struct walk_place *ret)
{
	while (!list_walk(head, key, s, ret))
		;
	return ret->node && WALK_NODE(ret->node)->key == key;
}

/* For readers that may pass through unlinked nodes: they need not unlink any. */
static inline uintptr_t list_pass(uintptr_t *head, uint64_t key)
{
	uintptr_t node = walk_load(head) & ~WALK_MARK, next;

	for (; node; node = next & ~WALK_MARK) {
		next = walk_load(&WALK_NODE(node)->next);
		if (WALK_NODE(node)->key >= key)
			return WALK_NODE(node)->key == key && !(next & WALK_MARK) ? node : 0;
	}
	return 0;
}

static inline uint64_t list_lookup(struct walk_table *table, uint64_t key)
{
	uintptr_t *head = list_head(table, key), node;
	struct walk_place place;
	struct walk_slots s;
	uint64_t value;

	walk_begin(&s);
	if (WALK_CHECKS)
		node = list_find(head, key, &s, &place) ? place.node : 0;
	else
		node = list_pass(head, key);
	value = node ? WALK_NODE(node)->value : 0;
	walk_end(&s);
	return value;
}

static bool list_insert(struct walk_table *table, uint64_t key, uint64_t value)
{
	uintptr_t *head = list_head(table, key);
	struct walk_node *fresh = (struct walk_node *)malloc(sizeof(*fresh));
	struct walk_place place;
	struct walk_slots s;
	bool there;

	if (!fresh)
		return false;
	fresh->key = key;
	fresh->value = value;
	walk_begin(&s);
	do {
		there = list_find(head, key, &s, &place);
		fresh->next = place.node;
	} while (!there && !walk_change(place.where, place.node, (uintptr_t)fresh));
	walk_end(&s);
	if (there)
		free(fresh);
	return !there;
}

/* Returns the value that was removed; 0: there was none. */
static uint64_t list_take(struct walk_table *table, uint64_t key)
{
	uintptr_t *head = list_head(table, key);
	struct walk_place place;
	struct walk_slots s;
	uint64_t value = 0;
	bool there;

	walk_begin(&s);
	do
		there = list_find(head, key, &s, &place);
	while (there && !walk_change(&WALK_NODE(place.node)->next, place.next, place.next | WALK_MARK));
	if (there)
		value = WALK_NODE(place.node)->value;
	if (there && walk_change(place.where, place.node, place.next))
		walk_retire(WALK_NODE(place.node));
	else if (there)
		list_find(head, key, &s, &place); /* unlinks the node */
	walk_end(&s);
	return value;
}

static inline bool list_remove(struct walk_table *table, uint64_t key)
{
	return list_take(table, key);
}

#endif
