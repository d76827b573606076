/* SPDX-License-Identifier: MIT */
/* call_rcu_fork.c - queues of callbacks around fork(): their threads pause while they hold no callbacks, and a child
 * has none of these threads.
 *
 * A thread that is asked to pause answers, at the latest before it ends, and then waits: so its queue is not freed
 * while the forking thread waits for the answer.  A thread that is started meanwhile is asked before it runs
 * (start_thread()).
 */
#include "call_rcu_data.h"

/* The caller holds the lock. */
static void pause_all(struct flavor *f)
{
	f->paused = true;
	for (struct call_rcu_data *c = f->list; c; c = c->next) {
		if (!quiesce_load_relaxed(&c->has_thread)) /* Relaxed: under the lock. */
			continue;
		quiesce_store_relaxed(&c->pause, PAUSE_ASKED); /* Relaxed: the semaphore orders it. */
		call_rcu_data_wake(c);
	}
}

/* The caller holds the lock. */
static struct call_rcu_data *unanswered(const struct flavor *f)
{
	struct call_rcu_data *c = f->list;

	while (c && quiesce_load_relaxed(&c->pause) != PAUSE_ASKED) /* Relaxed: under the lock. */
		c = c->next;
	return c;
}

/* Waits until every thread has answered.  Returns with the lock held. */
static void lock_with_all_paused(struct flavor *f)
{
	struct call_rcu_data *c;

	pthread_mutex_lock(&f->lock);
	while ((c = unanswered(f))) {
		pthread_mutex_unlock(&f->lock);
		while (sem_wait(&c->paused))
			;
		pthread_mutex_lock(&f->lock);
		quiesce_store_relaxed(&c->pause, PAUSE_ANSWERED); /* Relaxed: under the lock. */
	}
}

void flavor_before_fork(struct flavor *f)
{
	bool online = flavor_leave(f);
	int cancelable;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelable);
	pthread_mutex_lock(&f->forker);
	if (f->atfork)
		f->atfork->before_fork(f->atfork->priv);
	pthread_mutex_lock(&f->lock);
	pause_all(f);
	pthread_mutex_unlock(&f->lock);
	lock_with_all_paused(f);
	pthread_mutex_unlock(&f->lock);
	flavor_return(f, online);
	pthread_setcancelstate(cancelable, NULL);
}

void flavor_after_fork_parent(struct flavor *f)
{
	bool online = flavor_leave(f);
	int cancelable;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelable);
	lock_with_all_paused(f);
	f->paused = false;
	for (struct call_rcu_data *c = f->list; c; c = c->next) {
		if (!quiesce_load_relaxed(&c->pause)) /* Relaxed: under the lock. */
			continue;
		quiesce_store_relaxed(&c->pause, PAUSE_NONE); /* Relaxed: the semaphore orders it. */
		sem_post(&c->resume);
	}
	pthread_mutex_unlock(&f->lock);
	if (f->atfork)
		f->atfork->after_fork_parent(f->atfork->priv);
	pthread_mutex_unlock(&f->forker);
	flavor_return(f, online);
	pthread_setcancelstate(cancelable, NULL);
}

/* Its thread exists in the parent only. */
static void without_thread(struct call_rcu_data *c)
{
	quiesce_store_relaxed(&c->has_thread, 0);     /* Relaxed: the child has one thread. */
	quiesce_store_relaxed(&c->pause, PAUSE_NONE); /* Relaxed: as above. */
	sem_init(&c->work, 0, 1);
	sem_init(&c->paused, 0, 0);
	sem_init(&c->resume, 0, 0);
	pthread_mutex_init(&c->caller, NULL);
}

void flavor_after_fork_child(struct flavor *f)
{
	struct call_rcu_data *next;

	flavor_forget_all(f);
	for (struct call_rcu_data *c = f->list; c; c = next) {
		next = c->next;
		if (c == f->dflt)
			continue;
		call_rcu_data_move_to_default(c);
		call_rcu_data_unlist(c);
		call_rcu_data_release(c);
	}
	if (f->atfork)
		f->atfork->after_fork_child(f->atfork->priv);
	if (f->dflt)
		call_rcu_data_ensure_thread(f->dflt);
}

/* ---- fork handlers of hash tables ---- */

void flavor_register_atfork(struct flavor *f, struct urcu_atfork *atfork)
{
	pthread_mutex_lock(&f->lock);
	if (!f->nr_atfork++)
		f->atfork = atfork;
	pthread_mutex_unlock(&f->lock);
}

void flavor_unregister_atfork(struct flavor *f)
{
	pthread_mutex_lock(&f->lock);
	if (!--f->nr_atfork)
		f->atfork = NULL;
	pthread_mutex_unlock(&f->lock);
}

/* ---- programs that fork without call_rcu_before_fork() ---- */

static void lock_all(void)
{
	for (int i = 0; i < NR_FLAVORS; i++)
		pthread_mutex_lock(&flavors[i]->lock);
}

static void unlock_all(void)
{
	for (int i = NR_FLAVORS; i-- > 0;)
		pthread_mutex_unlock(&flavors[i]->lock);
}

static void in_child(void)
{
	for (int i = 0; i < NR_FLAVORS; i++) {
		flavors[i]->paused = false;
		pthread_mutex_init(&flavors[i]->forker, NULL); /* its holder is this thread, or a thread of the parent */
		for (struct call_rcu_data *c = flavors[i]->list; c; c = c->next)
			without_thread(c);
	}
	unlock_all();
}

__attribute__((constructor)) static void watch_forks(void)
{
	(void)pthread_atfork(lock_all, unlock_all, in_child);
}
