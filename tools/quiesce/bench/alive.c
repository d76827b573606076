/* SPDX-License-Identifier: MIT */
/* alive.c - threads that are registered readers and sleep. */
#include "alive.h"

static void sleeper(struct member *m)
{
	struct sleepers *s = m->team->arg;

	op_thread_enter(s->op);
	if (s->op->read && s->op->read->lock) {
		s->op->read->lock();
		s->op->read->unlock();
	}
	op_sleep_begin(s->op);
	pthread_mutex_lock(&s->lock);
	s->ready++;
	pthread_cond_broadcast(&s->change);
	while (!s->stop)
		pthread_cond_wait(&s->change, &s->lock);
	pthread_mutex_unlock(&s->lock);
	op_sleep_end(s->op);
	op_thread_exit(s->op);
}

void sleepers_start(struct sleepers *sleepers, const struct op *op, int nr)
{
	*sleepers = (struct sleepers){ .op = op, .team = { .nr = nr, .body = sleeper, .arg = sleepers } };
	pthread_mutex_init(&sleepers->lock, NULL);
	pthread_cond_init(&sleepers->change, NULL);
	team_start(&sleepers->team);
	pthread_mutex_lock(&sleepers->lock);
	while (sleepers->ready < nr)
		pthread_cond_wait(&sleepers->change, &sleepers->lock);
	pthread_mutex_unlock(&sleepers->lock);
}

void sleepers_stop(struct sleepers *sleepers)
{
	pthread_mutex_lock(&sleepers->lock);
	sleepers->stop = true;
	pthread_cond_broadcast(&sleepers->change);
	pthread_mutex_unlock(&sleepers->lock);
	team_join(&sleepers->team);
}
