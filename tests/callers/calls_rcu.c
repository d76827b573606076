/* SPDX-License-Identifier: MIT */
/* calls_rcu.c - RCU, QSBR, and the words of liburcu's programs. */
#include "world.h"

#include <quiesce/detail/qsbr.h>
#include <quiesce/detail/urcu_words.h>

static bool call_read(struct world *w)
{
	struct object *o;
	bool ok;

	rcu_read_lock();
	rcu_read_lock();
	o = rcu_dereference(w->shared);
	ok = is_alive(o) && is_alive(rcu_dereference_check(w->shared, false)) && is_alive(rcu_dereference_raw(w->shared));
	rcu_read_unlock();
	ok = ok && rcu_read_lock_held() && is_alive(o) && rcu_access_pointer(w->shared) != (void *)w;
	rcu_read_unlock();
	return ok;
}

static bool call_publish(struct world *w)
{
	struct world *p, *found, *expected = NULL;

	RCU_INIT_POINTER(p, NULL);
	rcu_assign_pointer(p, w);
	found = rcu_replace_pointer(p, NULL, true);
	if (found != w || rcu_dereference_protected(p, true) || rcu_xchg_pointer(&p, NULL))
		return false;
	return rcu_try_cmpxchg_pointer(&p, &expected, w) && rcu_cmpxchg_pointer(&p, w, NULL) == w && !p;
}

/* After the wait no reader has the old object. */
static bool replace_shared(struct world *w, void (*wait)(void))
{
	struct object *old = rcu_xchg_pointer(&w->shared, object_new(w));

	wait();
	object_end(old);
	return true;
}

static bool call_synchronize(struct world *w)
{
	return replace_shared(w, synchronize_rcu);
}

static bool call_expedited(struct world *w)
{
	return replace_shared(w, synchronize_rcu_expedited);
}

static bool call_cookie(struct world *w)
{
	struct rcu_gp_seq seq = get_state_synchronize_rcu();

	(void)w;
	return same_state_synchronize_rcu(seq, seq) && !same_state_synchronize_rcu(seq, get_completed_synchronize_rcu());
}

static void wait_by_polls(void)
{
	struct rcu_gp_seq seq = start_poll_synchronize_rcu();

	wait_until(poll_state_synchronize_rcu(seq));
}

static void wait_by_cookie(void)
{
	struct rcu_gp_seq seq = get_state_synchronize_rcu();

	cond_synchronize_rcu(seq);
	must(poll_state_synchronize_rcu(seq));
}

static bool call_poll(struct world *w)
{
	return poll_state_synchronize_rcu(get_completed_synchronize_rcu()) && replace_shared(w, wait_by_polls);
}

static bool call_cond_synchronize(struct world *w)
{
	return replace_shared(w, wait_by_cookie);
}

static bool call_call_rcu(struct world *w)
{
	struct object *old = rcu_xchg_pointer(&w->shared, object_owed(w));

	call_rcu(&old->rcu, object_rcu);
	call_rcu_sized(&object_owed(w)->rcu, object_rcu, 1000);
	return true;
}

/* Queue so many callbacks that memory is needed. */
static bool call_call_rcu_often(struct world *w)
{
	for (int i = 0; i < 300; i++)
		call_rcu(&object_owed(w)->rcu, object_rcu);
	return true;
}

static bool call_kfree_rcu(struct world *w)
{
	for (int i = 0; i < 40; i++)
		kfree_rcu(object_new(w), rcu);
	kfree_rcu_head(&object_new(w)->rcu, offsetof(struct object, rcu), sizeof(struct object));
	return true;
}

static bool call_kfree_mightsleep(struct world *w)
{
	kfree_rcu_mightsleep(object_new(w));
	return true;
}

static bool call_barrier(struct world *w)
{
	int *ran = &w->paid, before = flag_get(ran);

	call_rcu(&object_owed(w)->rcu, object_rcu);
	rcu_barrier();
	return flag_get(ran) > before;
}

static bool call_throttle(struct world *w)
{
	kfree_rcu(object_new(w), rcu);
	rcu_throttle();
	return true;
}

static bool call_qsbr(struct world *w)
{
	uint64_t cookie;
	int err = quiesce_qsbr_register(QUIESCE_LAYOUT);

	if (err)
		return done(w, err);
	quiesce__qsbr_quiescent_state();
	cookie = quiesce_qsbr_start_poll();
	quiesce_qsbr_synchronize();
	if (!quiesce_qsbr_poll(cookie))
		return false;
	quiesce__qsbr_offline();
	quiesce__qsbr_online();
	quiesce_qsbr_unregister();
	return !quiesce__qsbr_ongoing();
}

static uint64_t urcu_gp = 1;
static struct quiesce_urcu_domain urcu = { .call = "urcu_callers", .kind = QUIESCE_URCU_LIGHT, .gp = &urcu_gp };

static void urcu_add(void)
{
	(void)quiesce_urcu_domain_add(&urcu);
}

static bool call_urcu_words(struct world *w)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	uint64_t word = 0, cookie;
	struct quiesce_urcu_record record = { .word = &word };

	(void)w;
	pthread_once(&once, urcu_add);
	quiesce_urcu_record_add(&urcu, &record);
	cookie = quiesce_urcu_cookie(&urcu);
	quiesce_urcu_wait(&urcu);
	wait_until(quiesce_urcu_poll(&urcu, cookie));
	quiesce_urcu_record_remove(&urcu, &record);
	return true;
}

enum { ANYWHERE = IN_READER | IN_CALLBACK | AT_THREAD_END };

const struct call calls_rcu[] = {
	CALL(read, "rcu_read_lock rcu_read_unlock rcu_read_lock_held rcu_dereference rcu_dereference_check rcu_dereference_raw"
	     " rcu_access_pointer", NEVER_WAITS | ANYWHERE),
	CALL(publish, "RCU_INIT_POINTER rcu_assign_pointer rcu_replace_pointer rcu_dereference_protected rcu_xchg_pointer"
	     " rcu_try_cmpxchg_pointer rcu_cmpxchg_pointer", NEVER_WAITS | ANYWHERE),
	CALL(synchronize, "synchronize_rcu", WAITS | NOT_IN_READER | IN_CALLBACK | AT_THREAD_END),
	CALL(expedited, "synchronize_rcu_expedited", WAITS | NOT_IN_READER | IN_CALLBACK | AT_THREAD_END),
	CALL(cookie, "get_state_synchronize_rcu same_state_synchronize_rcu get_completed_synchronize_rcu", NEVER_WAITS | ANYWHERE),
	CALL(poll, "start_poll_synchronize_rcu poll_state_synchronize_rcu", WAITS | IN_CALLBACK | AT_THREAD_END),
	CALL(cond_synchronize, "cond_synchronize_rcu", WAITS | IN_CALLBACK | AT_THREAD_END),
	CALL(call_rcu, "call_rcu call_rcu_sized", ANYWHERE),
	CALL(call_rcu_often, "call_rcu", ANYWHERE),
	CALL(kfree_rcu, "kfree_rcu kfree_rcu_head", ANYWHERE),
	CALL(kfree_mightsleep, "kfree_rcu_mightsleep", WAITS | NOT_IN_READER | IN_CALLBACK | AT_THREAD_END),
	CALL(barrier, "rcu_barrier", WAITS | NOT_IN_READER | FOR_CALLBACKS | AT_THREAD_END),
	CALL(throttle, "rcu_throttle", WAITS | NOT_IN_READER | IN_CALLBACK | AT_THREAD_END),
	CALL(qsbr, "quiesce_qsbr_register quiesce_qsbr_unregister quiesce_qsbr_start_poll quiesce_qsbr_poll quiesce_qsbr_synchronize",
	     WAITS | MAY_FAIL),
	CALL(urcu_words, "quiesce_urcu_domain_add quiesce_urcu_record_add quiesce_urcu_record_remove quiesce_urcu_cookie"
	     " quiesce_urcu_wait quiesce_urcu_poll", WAITS | IN_CALLBACK | AT_THREAD_END),
	END_OF_CALLS,
};
