/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Private to hazptr.ko: lists of callbacks by their own links, first in, first out. */
#ifndef QUIESCE_HAZPTR_CALLBACKS_H
#define QUIESCE_HAZPTR_CALLBACKS_H

#include <linux/stddef.h>
#include <linux/types.h>

struct callbacks {
	struct callback_head *first;
	struct callback_head **last;
	unsigned long nr;
};

static inline void callbacks_init(struct callbacks *list)
{
	list->first = NULL;
	list->last = &list->first;
	list->nr = 0;
}

static inline void callbacks_add(struct callbacks *list, struct callback_head *head)
{
	head->next = NULL;
	*list->last = head;
	list->last = &head->next;
	list->nr++;
}

static inline struct callback_head *callbacks_take(struct callbacks *list)
{
	struct callback_head *head = list->first;

	if (!head)
		return NULL;
	list->first = head->next;
	if (!list->first)
		list->last = &list->first;
	list->nr--;
	return head;
}

/*
 * A queued head has its function in this form.  No head has that by accident, so
 * a second call for the same head is found; a first one may come with any contents.
 */
static inline rcu_callback_t callback_hidden(const struct callback_head *head, rcu_callback_t func)
{
	return (rcu_callback_t)((unsigned long)func ^ ~(unsigned long)head);
}

/* Returns the function of a queued head. */
static inline rcu_callback_t callback_func(const struct callback_head *head)
{
	return callback_hidden(head, head->func);
}

struct group {
	struct callbacks fresh;		/* retired since the last scan */
	struct callbacks kept;		/* protected in the last scan */
};

static inline bool group_empty(const struct group *group)
{
	return !group->fresh.first && !group->kept.first;
}

#endif /* QUIESCE_HAZPTR_CALLBACKS_H */
