/* SPDX-License-Identifier: MIT */
/* calls_percpu_ref.c - references counted per CPU. */
#include "world.h"

static bool call_ref_use(struct world *w)
{
	bool ok = percpu_ref_tryget(&w->ref) && percpu_ref_tryget_live(&w->ref) && percpu_ref_tryget_many(&w->ref, 2);

	percpu_ref_get(&w->ref);
	percpu_ref_get_many(&w->ref, 3);
	percpu_ref_put_many(&w->ref, 7);
	percpu_ref_put(&w->ref);
	return ok && !percpu_ref_is_zero(&w->ref) && !percpu_ref_is_dying(&w->ref);
}

struct counting {
	struct percpu_ref ref;
	int released, confirmed;
};

static void counting_released(struct percpu_ref *ref)
{
	count_up(&((struct counting *)(void *)ref)->released);
}

static void counting_confirmed(struct percpu_ref *ref)
{
	struct counting *c = (struct counting *)(void *)ref;

	count_up(&c->confirmed);
	if (percpu_ref_is_dying(ref) && percpu_ref_tryget_live(ref))
		count_up(&c->released); /* taken too late: the check finds one release too many */
}

static struct counting *counting_new(struct world *w, bool *ret_ok)
{
	struct counting *c = calloc(1, sizeof *c);

	if (!c)
		abort();
	*ret_ok = done(w, percpu_ref_init(&c->ref, counting_released, PERCPU_REF_ALLOW_REINIT));
	return c;
}

static bool counting_end(struct counting *c, int released)
{
	bool ok = c->released == released && percpu_ref_is_zero(&c->ref);

	percpu_ref_exit(&c->ref);
	free(c);
	return ok;
}

static bool call_ref_kill(struct world *w)
{
	bool ok;
	struct counting *c = counting_new(w, &ok);

	percpu_ref_get(&c->ref);
	percpu_ref_kill_and_confirm(&c->ref, counting_confirmed);
	ok = ok && c->confirmed == 1 && percpu_ref_is_dying(&c->ref) && !percpu_ref_tryget_live(&c->ref) && !c->released;
	percpu_ref_put(&c->ref);
	ok = ok && c->released == 1 && !percpu_ref_tryget(&c->ref);
	percpu_ref_reinit(&c->ref);
	percpu_ref_kill(&c->ref);
	return counting_end(c, 2) && ok;
}

static bool call_ref_modes(struct world *w)
{
	bool ok;
	struct counting *c = counting_new(w, &ok);

	percpu_ref_switch_to_atomic(&c->ref, counting_confirmed);
	percpu_ref_get(&c->ref);
	percpu_ref_switch_to_percpu(&c->ref);
	percpu_ref_put(&c->ref);
	percpu_ref_switch_to_atomic_sync(&c->ref);
	percpu_ref_get(&c->ref);
	percpu_ref_kill(&c->ref);
	percpu_ref_resurrect(&c->ref);
	percpu_ref_put(&c->ref);
	percpu_ref_switch_to_percpu(&c->ref);
	ok = ok && percpu_ref_tryget_live(&c->ref) && c->confirmed == 1;
	percpu_ref_kill(&c->ref);
	percpu_ref_put(&c->ref);
	return counting_end(c, 1) && ok;
}

static bool call_ref_many(struct world *w)
{
	bool ok[3], all = true;
	struct counting *c[3];
	struct percpu_ref *refs[3];

	for (int i = 0; i < 3; i++) {
		c[i] = counting_new(w, &ok[i]);
		refs[i] = &c[i]->ref;
	}
	percpu_ref_kill_many(refs, 3);
	for (int i = 0; i < 3; i++)
		all = counting_end(c[i], 1) && ok[i] && all;
	return all;
}

enum { ANYWHERE = IN_READER | IN_CALLBACK | AT_THREAD_END };

const struct call calls_ref[] = {
	CALL(ref_use, "percpu_ref_get percpu_ref_put percpu_ref_tryget percpu_ref_tryget_live percpu_ref_get_many percpu_ref_put_many"
	     " percpu_ref_tryget_many percpu_ref_is_zero percpu_ref_is_dying", NEVER_WAITS | ANYWHERE),
	CALL(ref_kill, "percpu_ref_init percpu_ref_exit percpu_ref_kill percpu_ref_kill_and_confirm percpu_ref_reinit",
	     ANYWHERE | MAY_FAIL),
	CALL(ref_modes, "percpu_ref_switch_to_atomic percpu_ref_switch_to_atomic_sync percpu_ref_switch_to_percpu percpu_ref_resurrect",
	     ANYWHERE | MAY_FAIL),
	CALL(ref_many, "percpu_ref_kill_many", ANYWHERE | MAY_FAIL),
	END_OF_CALLS,
};
