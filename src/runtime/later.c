/* SPDX-License-Identifier: MIT */
/* later.c - calls that the helper makes after a delay: a job whose heads wait one to two rounds.
 *
 *   quiesce__later() --> fresh --> aging --> calling --> called
 *
 * I1. A head is in one of the lists, or has been called, or is being called; the lists change under the lock.
 * I2. While a head is in a list, the job is listed or one of its steps is being taken; or the caller that
 *     added the head is about to list the job, or to remove the head again because there is no helper thread.
 */
#include "later.h"

#include "helper.h"

#define ROUND_NS 5000000u

static uint64_t step(struct quiesce__job *job);

static struct {
	struct quiesce__lock lock;
	struct rcu_head *fresh, *aging, *calling;
	struct quiesce__job job;
} later = { .job = { .step = step, .deferred = true } };

static struct rcu_head *pop(struct rcu_head **list)
{
	struct rcu_head *head;

	quiesce__lock(&later.lock);
	head = *list;
	if (head)
		*list = head->next;
	quiesce__unlock(&later.lock);
	return head;
}

static void call_all(struct rcu_head **list)
{
	struct rcu_head *head;

	while ((head = pop(list)))
		head->func(head);
}

static uint64_t step(struct quiesce__job *job)
{
	uint64_t ns;

	(void)job;
	call_all(&later.calling); /* heads whose calls a fork() interrupted */
	quiesce__lock(&later.lock);
	later.calling = later.aging;
	later.aging = later.fresh;
	later.fresh = NULL;
	quiesce__unlock(&later.lock);
	call_all(&later.calling);
	quiesce__lock(&later.lock);
	ns = later.aging || later.fresh ? ROUND_NS : QUIESCE_JOB_DONE;
	quiesce__unlock(&later.lock);
	return ns;
}

/* Remove @head from @list if it is there.  Under the lock. */
static bool remove_from(struct rcu_head **list, const struct rcu_head *head)
{
	while (*list && *list != head)
		list = &(*list)->next;
	if (!*list)
		return false;
	*list = head->next;
	return true;
}

/* Remove @head from the lists; false if it has been called, or is being called. */
static bool take_back(const struct rcu_head *head)
{
	bool ours;

	quiesce__lock(&later.lock);
	ours = remove_from(&later.fresh, head) || remove_from(&later.aging, head) || remove_from(&later.calling, head);
	quiesce__unlock(&later.lock);
	return ours;
}

void quiesce__later(struct rcu_head *head, void (*func)(struct rcu_head *head))
{
	quiesce__init();
	head->func = func;
	quiesce__lock(&later.lock);
	head->next = later.fresh;
	later.fresh = head;
	quiesce__unlock(&later.lock);
	/* Without a helper thread the head would wait for a safe point that may never come. */
	if (!quiesce__job_start_after(&later.job, ROUND_NS) && take_back(head))
		func(head);
}

void quiesce__later_now(struct rcu_head *head)
{
	quiesce__init();
	if (take_back(head))
		head->func(head);
	else if (!QUIESCE_MUTANT(later_now_no_wait))
		quiesce__job_await_step(&later.job);
}

/* ---- fork ---- */

void quiesce__laters_fork_prepare(void)
{
	quiesce__lock(&later.lock);
}

void quiesce__laters_fork_parent(void)
{
	quiesce__unlock(&later.lock);
}

static void forget_all(struct rcu_head **list, void (*forgotten)(struct rcu_head *head))
{
	while (*list) {
		struct rcu_head *head = *list;

		*list = head->next;
		forgotten(head);
	}
}

/* The heads belong to locks that the child may not use any more, or is about to initialise again. */
void quiesce__laters_forget(void (*forgotten)(struct rcu_head *head))
{
	forget_all(&later.calling, forgotten);
	forget_all(&later.aging, forgotten);
	forget_all(&later.fresh, forgotten);
}

void quiesce__laters_fork_child(void)
{
	quiesce__lock_reset(&later.lock, false);
	quiesce__job_forget(&later.job);
}
