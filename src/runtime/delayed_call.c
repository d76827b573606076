/* SPDX-License-Identifier: MIT */
/* delayed_call.c - calls that the helper makes after a delay: a job whose heads wait one to two rounds.
 *
 *   quiesce__delayed_call() --> fresh --> aging --> calling --> called
 *
 * I1. A head is in one of the lists, or has been called, or is being called; the lists change under the lock.
 * I2. While a head is in a list, the job is listed or one of its steps is being taken; or the caller that
 *     added the head is about to list the job, or to remove the head again because there is no helper thread.
 */
#include "delayed_call.h"

#include "helper.h"

#define ROUND_NS 5000000u

static uint64_t step(struct quiesce__job *job);

static struct {
	struct quiesce__lock lock;
	struct rcu_head *fresh, *aging, *calling;
	struct quiesce__job job;
} delayed = { .job = { .step = step, .deferred = true } };

static struct rcu_head *pop(struct rcu_head **list)
{
	struct rcu_head *head;

	quiesce__lock(&delayed.lock);
	head = *list;
	if (head)
		*list = head->next;
	quiesce__unlock(&delayed.lock);
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
	call_all(&delayed.calling); /* heads whose calls a fork() interrupted */
	quiesce__lock(&delayed.lock);
	delayed.calling = delayed.aging;
	delayed.aging = delayed.fresh;
	delayed.fresh = NULL;
	quiesce__unlock(&delayed.lock);
	call_all(&delayed.calling);
	quiesce__lock(&delayed.lock);
	ns = delayed.aging || delayed.fresh ? ROUND_NS : QUIESCE_JOB_DONE;
	quiesce__unlock(&delayed.lock);
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

	quiesce__lock(&delayed.lock);
	ours = remove_from(&delayed.fresh, head) || remove_from(&delayed.aging, head) || remove_from(&delayed.calling, head);
	quiesce__unlock(&delayed.lock);
	return ours;
}

void quiesce__delayed_call(struct rcu_head *head, void (*func)(struct rcu_head *head))
{
	quiesce__init();
	head->func = func;
	quiesce__lock(&delayed.lock);
	head->next = delayed.fresh;
	delayed.fresh = head;
	quiesce__unlock(&delayed.lock);
	/* Without a helper thread the head would wait for a safe point that may never come. */
	if (!quiesce__job_start_after(&delayed.job, ROUND_NS) && take_back(head))
		func(head);
}

void quiesce__delayed_call_now(struct rcu_head *head)
{
	quiesce__init();
	if (take_back(head))
		head->func(head);
	else if (!QUIESCE_MUTANT(later_now_no_wait))
		quiesce__job_await_step(&delayed.job);
}

/* ---- fork ---- */

void quiesce__delayed_calls_fork_prepare(void)
{
	quiesce__lock(&delayed.lock);
}

void quiesce__delayed_calls_fork_parent(void)
{
	quiesce__unlock(&delayed.lock);
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
void quiesce__delayed_calls_forget(void (*forgotten)(struct rcu_head *head))
{
	forget_all(&delayed.calling, forgotten);
	forget_all(&delayed.aging, forgotten);
	forget_all(&delayed.fresh, forgotten);
}

void quiesce__delayed_calls_fork_child(void)
{
	quiesce__lock_reset(&delayed.lock, false);
	quiesce__job_forget(&delayed.job);
}
