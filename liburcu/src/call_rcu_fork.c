/* SPDX-License-Identifier: MIT */
/* call_rcu_fork.c - queues of callbacks around fork(): their threads pause with nothing in their hands, and a child has none of
 * these threads. */
#include "call_rcu_data.h"

/* Under the lock. */
static void pause_all(struct flavor *f)
{
	for (struct call_rcu_data *c = f->list; c; c = c->next) {
		if (!quiesce_load_relaxed(&c->has_thread)) /* Relaxed: under the lock. */
			continue;
		quiesce_store_relaxed(&c->pause, 1); /* Relaxed: the semaphore orders it. */
		call_rcu_data_wake(c);
	}
}

void flavor_before_fork(struct flavor *f)
{
	struct call_rcu_data *list;
	bool online = flavor_leave(f);
	int cancelable;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelable);

	if (f->atfork)
		f->atfork->before_fork(f->atfork->priv);
	pthread_mutex_lock(&f->lock);
	f->paused = true;
	pause_all(f);
	list = f->list;
	pthread_mutex_unlock(&f->lock);
	/* Callbacks may make queues meanwhile, in front of these; none starts a thread. */
	for (struct call_rcu_data *c = list; c; c = c->next)
		while (quiesce_load_relaxed(&c->pause) && sem_wait(&c->paused)) /* Relaxed: the caller's own. */
			;
	flavor_return(f, online);
	pthread_setcancelstate(cancelable, NULL);
}

void flavor_after_fork_parent(struct flavor *f)
{
	pthread_mutex_lock(&f->lock);
	f->paused = false;
	for (struct call_rcu_data *c = f->list; c; c = c->next) {
		if (!quiesce_load_relaxed(&c->pause)) /* Relaxed: under the lock. */
			continue;
		quiesce_store_relaxed(&c->pause, 0); /* Relaxed: the semaphore orders it. */
		sem_post(&c->resume);
	}
	pthread_mutex_unlock(&f->lock);
	if (f->atfork)
		f->atfork->after_fork_parent(f->atfork->priv);
}

/* Its thread is the parent's. */
static void without_thread(struct call_rcu_data *c)
{
	quiesce_store_relaxed(&c->has_thread, 0); /* Relaxed: the child has one thread. */
	quiesce_store_relaxed(&c->pause, 0);      /* Relaxed: as above. */
	sem_init(&c->work, 0, 1);
	sem_init(&c->paused, 0, 0);
	sem_init(&c->resume, 0, 0);
	pthread_mutex_init(&c->caller, NULL);
}

void flavor_after_fork_child(struct flavor *f)
{
	struct call_rcu_data *next;

	f->paused = false;
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

/* ---- of hash tables ---- */

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

/* ---- programs that fork without saying so ---- */

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
	for (int i = 0; i < NR_FLAVORS; i++)
		for (struct call_rcu_data *c = flavors[i]->list; c; c = c->next)
			without_thread(c);
	unlock_all();
}

__attribute__((constructor)) static void watch_forks(void)
{
	(void)pthread_atfork(lock_all, unlock_all, in_child);
}
