/* SPDX-License-Identifier: MIT */
/* calls_percpu.c - domains of SRCU, rcu_sync, reader-writer locks. */
#include "world.h"

#include <sys/wait.h>

static bool call_srcu_read(struct world *w)
{
	int outer = srcu_read_lock(&w->srcu), inner = srcu_down_read(&w->srcu);
	struct object *o = srcu_dereference(w->fixed[0], &w->srcu);
	bool ok = is_alive(o) && srcu_read_lock_held(&w->srcu) && is_alive(srcu_dereference_check(w->fixed[1], &w->srcu, false));

	srcu_up_read(&w->srcu, inner);
	srcu_read_unlock(&w->srcu, outer);
	smp_mb__after_srcu_read_unlock();
	return ok;
}

static bool call_synchronize_srcu(struct world *w)
{
	synchronize_srcu(&w->srcu);
	synchronize_srcu_expedited(&w->srcu);
	return true;
}

static bool call_srcu_cookie(struct world *w)
{
	struct rcu_gp_seq seq = get_state_synchronize_srcu(&w->srcu);

	return same_state_synchronize_srcu(seq, seq) && poll_state_synchronize_srcu(&w->srcu, get_completed_synchronize_srcu());
}

static bool call_srcu_poll(struct world *w)
{
	unsigned long before = srcu_batches_completed(&w->srcu);
	struct rcu_gp_seq seq = start_poll_synchronize_srcu(&w->srcu);

	wait_until(poll_state_synchronize_srcu(&w->srcu, seq));
	return srcu_batches_completed(&w->srcu) > before;
}

static bool call_call_srcu(struct world *w)
{
	call_srcu(&w->srcu, &object_owed(w)->rcu, object_rcu);
	call_srcu_sized(&w->srcu, &object_owed(w)->rcu, object_rcu, 1000);
	return true;
}

static bool call_srcu_wait(struct world *w)
{
	int before = flag_get(&w->paid);

	call_srcu(&w->srcu, &object_owed(w)->rcu, object_rcu);
	srcu_barrier(&w->srcu);
	return flag_get(&w->paid) > before;
}

/* Take a domain through its whole life. */
static bool call_srcu_life(struct world *w)
{
	struct srcu_struct *own = malloc(sizeof *own);
	bool ok;

	if (!own)
		abort();
	ok = done(w, init_srcu_struct(own));
	srcu_read_unlock(own, srcu_read_lock(own));
	synchronize_srcu(own);
	cleanup_srcu_struct(own);
	free(own);
	return ok;
}

/* Reinitialise, in the child of a fork, a domain and a lock that bystanders may have been inside of. */
static void in_the_child(struct world *w)
{
	child_begin();
	srcu_after_fork_child(&w->srcu);
	percpu_rwsem_after_fork_child(&w->rwsem);
	synchronize_srcu(&w->srcu);
	percpu_down_write(&w->rwsem);
	percpu_up_write(&w->rwsem);
	_exit(0);
}

static bool call_after_fork_child(struct world *w)
{
	pid_t pid = fork();

	if (pid == 0)
		in_the_child(w);
	if (pid < 0)
		return false;
	child_end(pid);
	return true;
}

/* ---- rcu_sync ---- */

static bool call_sync_read(struct world *w)
{
	rcu_read_lock();
	(void)rcu_sync_is_idle(&w->sync); /* calls beside this one enter, too */
	rcu_read_unlock();
	return true;
}

static bool call_sync(struct world *w)
{
	bool ok;

	rcu_sync_enter(&w->sync);
	rcu_sync_enter(&w->sync);
	ok = !rcu_sync_is_idle(&w->sync);
	rcu_sync_exit(&w->sync);
	ok = ok && !rcu_sync_is_idle(&w->sync);
	rcu_sync_exit(&w->sync);
	return ok;
}

static bool sync_life(struct rcu_sync *own)
{
	bool ok = rcu_sync_is_idle(own);

	rcu_sync_enter(own);
	ok = ok && !rcu_sync_is_idle(own);
	rcu_sync_exit(own);
	rcu_sync_dtor(own);
	free(own);
	return ok;
}

static bool call_sync_life(struct world *w)
{
	struct rcu_sync *own = malloc(sizeof *own);

	(void)w;
	if (!own)
		abort();
	rcu_sync_init_ops(own, &quiesce_rcu_sync_fence, NULL);
	return sync_life(own);
}

static bool call_sync_life_rcu(struct world *w)
{
	struct rcu_sync *own = malloc(sizeof *own);

	(void)w;
	if (!own)
		abort();
	rcu_sync_init(own);
	return sync_life(own);
}

/* ---- locks ---- */

static bool call_rwsem_try(struct world *w)
{
	if (!percpu_down_read_trylock(&w->rwsem))
		return true; /* a writer is inside */
	percpu_up_read(&w->rwsem);
	return true;
}

static bool call_rwsem_read(struct world *w)
{
	bool ok;

	percpu_down_read(&w->rwsem);
	percpu_rwsem_assert_held(&w->rwsem);
	ok = percpu_rwsem_is_held(&w->rwsem) && percpu_is_read_locked(&w->rwsem) && !percpu_is_write_locked_by_me(&w->rwsem);
	percpu_up_read(&w->rwsem);
	if (percpu_down_read_timeout(&w->rwsem, 1000000))
		percpu_up_read(&w->rwsem);
	return ok;
}

static bool call_rwsem_write(struct world *w)
{
	bool ok;

	percpu_down_write(&w->rwsem);
	percpu_rwsem_assert_held_write(&w->rwsem);
	ok = percpu_is_write_locked(&w->rwsem) && percpu_is_write_locked_by_me(&w->rwsem) && !percpu_down_read_trylock(&w->rwsem);
	percpu_up_write(&w->rwsem);
	if (percpu_down_write_trylock(&w->rwsem))
		percpu_up_write(&w->rwsem);
	if (percpu_down_write_timeout(&w->rwsem, 1000000))
		percpu_up_write(&w->rwsem);
	return ok && !percpu_is_write_locked_by_me(&w->rwsem);
}

static bool call_rwsem_life(struct world *w)
{
	enum { NR = 3 };
	struct percpu_rw_semaphore own[NR], *many[NR];
	bool ok = true;

	for (int i = 0; i < NR; i++) {
		ok = ok && done(w, percpu_init_rwsem(&own[i]));
		many[i] = &own[i];
	}
	percpu_down_write_many(many, NR);
	for (int i = 0; i < NR; i++) {
		ok = ok && percpu_is_write_locked_by_me(&own[i]);
		percpu_up_write(&own[i]);
		percpu_down_read(&own[i]);
		percpu_up_read(&own[i]);
	}
	for (int i = 0; i < NR; i++)
		percpu_free_rwsem(&own[i]);
	return ok;
}

enum { ANYWHERE = IN_READER | IN_CALLBACK | AT_THREAD_END };

const struct call calls_percpu[] = {
	CALL(srcu_read, "srcu_read_lock srcu_read_unlock srcu_down_read srcu_up_read srcu_dereference srcu_dereference_check"
	     " srcu_read_lock_held smp_mb__after_srcu_read_unlock", NEVER_WAITS | ANYWHERE),
	CALL(synchronize_srcu, "synchronize_srcu synchronize_srcu_expedited", WAITS | ANYWHERE),
	CALL(srcu_cookie, "get_state_synchronize_srcu same_state_synchronize_srcu get_completed_synchronize_srcu", ANYWHERE),
	CALL(srcu_poll, "start_poll_synchronize_srcu poll_state_synchronize_srcu srcu_batches_completed", WAITS | ANYWHERE),
	CALL(call_srcu, "call_srcu call_srcu_sized", ANYWHERE),
	CALL(srcu_wait, "srcu_barrier", WAITS | FOR_CALLBACKS | AT_THREAD_END),
	CALL(srcu_life, "init_srcu_struct cleanup_srcu_struct", WAITS | ANYWHERE | MAY_FAIL),
	CALL(after_fork_child, "srcu_after_fork_child percpu_rwsem_after_fork_child", WAITS | IN_CALLBACK | AT_THREAD_END),
	CALL(sync_read, "rcu_sync_is_idle", NEVER_WAITS | ANYWHERE),
	CALL(sync, "rcu_sync_enter rcu_sync_exit", WAITS | IN_CALLBACK | AT_THREAD_END),
	CALL(sync_life, "rcu_sync_init_ops rcu_sync_dtor", WAITS | IN_CALLBACK | AT_THREAD_END),
	CALL(sync_life_rcu, "rcu_sync_init rcu_sync_dtor", WAITS | AT_THREAD_END),
	CALL(rwsem_try, "percpu_down_read_trylock percpu_up_read", NEVER_WAITS | ANYWHERE),
	CALL(rwsem_read, "percpu_down_read percpu_down_read_timeout percpu_rwsem_is_held percpu_rwsem_assert_held percpu_is_read_locked",
	     ANYWHERE),
	CALL(rwsem_write, "percpu_down_write percpu_up_write percpu_down_write_trylock percpu_down_write_timeout percpu_is_write_locked"
	     " percpu_is_write_locked_by_me percpu_rwsem_assert_held_write", WAITS | ANYWHERE),
	CALL(rwsem_life, "percpu_init_rwsem percpu_free_rwsem percpu_down_write_many", ANYWHERE | MAY_FAIL),
	END_OF_CALLS,
};
