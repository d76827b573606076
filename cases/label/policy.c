/* SPDX-License-Identifier: MIT */
/* policy.c - one label, shared by all workers, replaced while they ask it.
 *
 * A check finds the label, asks its rules, and lets it go.  It happens at each open of each worker, and a replacement hardly
 * ever; so what matters is what a check writes, and to whose line.  The variants differ in this alone:
 *
 *	refcount     two atomic additions to the label's count, which is one line for all.  As AppArmor did: the label is found
 *	             through the worker's own reference (its credential), so the count cannot be zero
 *	percpu_ref   the same reference, counted in a line of the CPU
 *	condref      no count: the worker's reference keeps the label until the worker itself changes it.  As AppArmor does now
 *	counted_ptr  no credential: find the label by hazard pointer, turn that into a reference, put it
 *	hazptr       the address in a slot of the thread
 *	rcu          a mark of the thread
 *	unchecked    no label at all
 *	none         a plain load: the label may be gone while it is asked
 *
 * 1. A published label does not change, its count and its mark "stale" aside.
 * 2. `current` owns a reference of the label it points to, a worker with a credential (refcount, percpu_ref, condref) another.
 *    The last of them hands the label to call_rcu(), because repin() may read it without having one.
 * 3. A worker trades its credential for the newest label at its first check after a replacement, not before: one that never
 *    checks again keeps an old label, as a process keeps its credential.
 */
#include "policy.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <quiesce/atomic.h>
#include <quiesce/counted_ptr.h>
#include <quiesce/hazptr.h>
#include <quiesce/percpu_ref.h>
#include <quiesce/rcu.h>

#define MAX_RULES 8
#define MAX_PREFIX 32
/* A watched check yields or sleeps after so many turns; a sleep outlasts a replacement. */
#define YIELD_EVERY 4
#define SLEEP_EVERY 64
#define SLEEP_NS 3000000
#define FAST static inline __attribute__((always_inline))

struct rule {
	char prefix[MAX_PREFIX];
	size_t length;
	bool allow;
};

struct label {
	union { /* how it is retired */
		struct hazptr_head hazptr;
		struct counted counted; /* with its count */
		struct rcu_head rcu;
	};
	union { /* counts have their own cache lines, so that checks of the rules do not wait for these */
		int64_t refs;
		struct percpu_ref users;
	} __attribute__((aligned(64)));
	struct canary canary __attribute__((aligned(64)));
	uint32_t stale; /* 1: the label has been replaced */
	bool complain;
	int nr;
	struct rule rule[MAX_RULES];
};

struct worker {
	bool joined;
	struct label *pin; /* the worker's credential */
	struct hazptr_context hazptr; /* a separate one, because a thread's own slots must not be held when its keys are destroyed */
	hazptr_t *slot;
	unsigned int turn;
};

struct protection {
	bool (*check)(struct worker *w, const char *path);
	void (*init)(struct label *fresh);  /* NULL: nothing to do */
	void (*retire)(struct label *old);  /* called when the label can no longer be found */
	bool (*tryget)(struct label *l);    /* takes a credential, of a label found under RCU; NULL: workers have none */
	void (*put)(struct label *l);
	bool slots;                         /* workers have one each */
};

static const struct protection *protection;
static struct label *current;
static bool watched;
static uint64_t freed;
static pthread_key_t leave_key;
static __thread struct worker me;

/* ---- asking ---- */

static void watch(const struct label *l, bool yield)
{
	canary_sings(&l->canary);
	if (!yield || ++me.turn % YIELD_EVERY)
		return;
	if (me.turn % SLEEP_EVERY)
		sched_yield();
	else
		sleep_ns(SLEEP_NS);
}

FAST bool ask(const struct label *l, const char *path)
{
	bool allowed = l->complain;

	if (quiesce_unlikely(watched))
		watch(l, true);
	for (int i = 0; i < l->nr && !allowed; i++)
		if (!strncmp(path, l->rule[i].prefix, l->rule[i].length)) {
			allowed = l->rule[i].allow;
			break;
		}
	if (quiesce_unlikely(watched))
		watch(l, false);
	return allowed;
}

static void bury(struct label *l)
{
	(void)quiesce_fetch_add_relaxed(&freed, (uint64_t)1); /* Relaxed: a statistic. */
	canary_free(l, &l->canary);
}

/* ---- credentials: refcount, percpu_ref, condref ---- */

static __attribute__((cold, noinline)) void repin(struct worker *w)
{
	struct label *old = w->pin, *l;

	rcu_read_lock();
	do /* a label without references was replaced before the last was put: the next load finds its successor */
		l = rcu_dereference(current);
	while (!protection->tryget(l));
	rcu_read_unlock();
	w->pin = l;
	if (old)
		protection->put(old);
}

FAST struct label *pinned(struct worker *w)
{
	/* Relaxed: the mark only means that there is a newer label.  A worker that missed it uses one that its own reference keeps, and a
	 * request that came after the answer to the replacement does not miss it: the answer came after the store. */
	if (quiesce_unlikely(!w->pin) || quiesce_unlikely(quiesce_load_relaxed(&w->pin->stale)))
		repin(w);
	return w->pin;
}

static void mark_stale(struct label *old)
{
	quiesce_store_relaxed(&old->stale, 1u); /* Relaxed: see pinned(); `current` was exchanged before, by a full fence. */
}

static void refs_init(struct label *fresh)
{
	quiesce_store_relaxed(&fresh->refs, (int64_t)1); /* Relaxed: no other thread has it. */
}

FAST void refs_get(struct label *l)
{
	/* Relaxed: the caller has a reference, so this is not the first and the object is visible. */
	(void)quiesce_fetch_add_relaxed(&l->refs, (int64_t)1);
}

static bool refs_tryget(struct label *l)
{
	int64_t refs = quiesce_load_relaxed(&l->refs); /* Relaxed: the exchange decides. */

	do
		if (!refs)
			return false;
	/* LB1: full, pairs with LB1 in refs_put() */
	while (!quiesce_cmpxchg(LB1, &l->refs, &refs, refs + 1));
	return true;
}

static void bury_rcu(struct rcu_head *head)
{
	bury((struct label *)((char *)head - offsetof(struct label, rcu)));
}

FAST void refs_put(struct label *l)
{
	/* All checks of the label come before the put, and each put before the free. */
	/* LB1: full, pairs with LB1 in refs_put() and refs_tryget() */
	if (quiesce_unlikely(quiesce_fetch_add(LB1, &l->refs, (int64_t)-1) == 1))
		call_rcu(&l->rcu, bury_rcu);
}

static void refs_put_cold(struct label *l)
{
	refs_put(l);
}

static void refs_retire(struct label *old)
{
	mark_stale(old);
	refs_put(old);
}

static bool refcount_check(struct worker *w, const char *path)
{
	struct label *l = pinned(w);
	bool allowed;

	refs_get(l);
	allowed = ask(l, path);
	refs_put(l);
	return allowed;
}

static bool condref_check(struct worker *w, const char *path)
{
	return ask(pinned(w), path); /* only this worker puts its credential, and not now */
}

static void users_bury(struct rcu_head *head)
{
	struct label *l = (struct label *)((char *)head - offsetof(struct label, rcu));

	percpu_ref_exit(&l->users); /* here, because until now repin() may have tried to get one */
	bury(l);
}

static void users_gone(struct percpu_ref *users)
{
	struct label *l = (struct label *)((char *)users - offsetof(struct label, users));

	call_rcu(&l->rcu, users_bury);
}

static void users_init(struct label *fresh)
{
	(void)percpu_ref_init(&fresh->users, users_gone, 0); /* without memory it is a plain count */
}

static bool users_tryget(struct label *l)
{
	return percpu_ref_tryget(&l->users);
}

static void users_put(struct label *l)
{
	percpu_ref_put(&l->users);
}

static void users_retire(struct label *old)
{
	mark_stale(old);
	percpu_ref_kill(&old->users);
}

static bool percpu_ref_check(struct worker *w, const char *path)
{
	struct label *l = pinned(w);
	bool allowed;

	percpu_ref_get(&l->users);
	allowed = ask(l, path);
	percpu_ref_put(&l->users);
	return allowed;
}

/* ---- without credentials ---- */

static bool rcu_check(struct worker *w, const char *path)
{
	bool allowed;

	(void)w;
	rcu_read_lock();
	allowed = ask(rcu_dereference(current), path);
	rcu_read_unlock();
	return allowed;
}

static void rcu_retire(struct label *old)
{
	call_rcu(&old->rcu, bury_rcu);
}

static bool hazptr_check(struct worker *w, const char *path)
{
	bool allowed = ask(hazptr_protect(w->slot, &current, hazptr), path);

	hazptr_clear(w->slot);
	return allowed;
}

static void bury_hazptr(struct hazptr_head *head)
{
	bury((struct label *)((char *)head - offsetof(struct label, hazptr)));
}

static void retire_by_hazptr(struct label *old)
{
	call_hazptr(&old->hazptr, bury_hazptr);
}

static bool counted_ptr_check(struct worker *w, const char *path)
{
	struct label *l = counted_load(&current, counted);
	bool allowed = ask(l, path);

	(void)w;
	counted_put(&l->counted);
	return allowed;
}

static void bury_counted(struct counted *counted)
{
	bury((struct label *)((char *)counted - offsetof(struct label, counted)));
}

static void counted_ptr_init(struct label *fresh)
{
	counted_init(&fresh->counted, bury_counted);
}

static void counted_ptr_retire(struct label *old)
{
	counted_put(&old->counted);
}

static bool unchecked_check(struct worker *w, const char *path)
{
	(void)w, (void)path;
	return true;
}

static bool none_check(struct worker *w, const char *path)
{
	(void)w;
	return ask(rcu_dereference(current), path); /* the load is ordered; nothing keeps what it finds */
}

/* ---- the choice ---- */

const struct case_choice policy_variants[] = {
	{ "unchecked", "every path is allowed, without a check of the label", false },
	{ "refcount", "a reference of the worker's own label, on one shared count", false },
	{ "percpu_ref", "the same reference, counted per CPU", false },
	{ "rcu", "a section around the check", false },
	{ "hazptr", "a hazard pointer in a slot of the thread", false },
	{ "counted_ptr", "a hazard pointer, turned into a reference", false },
	{ "condref", "no reference while the worker's own label is not stale", false },
	{ "none", "a plain load, and the old label is freed at once", true },
	{ NULL, NULL, false },
};

/* The entries have the order of policy_variants. */
static const struct protection protections[] = {
	{ .check = unchecked_check, .retire = bury },
	{ refcount_check, refs_init, refs_retire, refs_tryget, refs_put_cold, false },
	{ percpu_ref_check, users_init, users_retire, users_tryget, users_put, false },
	{ .check = rcu_check, .retire = rcu_retire },
	{ .check = hazptr_check, .retire = retire_by_hazptr, .slots = true },
	{ .check = counted_ptr_check, .init = counted_ptr_init, .retire = counted_ptr_retire },
	{ condref_check, refs_init, refs_retire, refs_tryget, refs_put_cold, false },
	{ .check = none_check, .retire = bury },
};

/* ---- workers ---- */

static void leave(void *arg)
{
	struct worker *w = arg;

	if (w->pin)
		protection->put(w->pin);
	if (w->slot) {
		hazptr_free(&w->hazptr, w->slot);
		cleanup_hazptr_context(&w->hazptr);
	}
	*w = (struct worker){ 0 };
}

static __attribute__((cold, noinline)) void join(void)
{
	me = (struct worker){ .joined = true };
	if (protection->slots && !init_hazptr_context(&me.hazptr))
		me.slot = hazptr_alloc(&me.hazptr);
	if ((protection->slots && !me.slot) || pthread_setspecific(leave_key, &me)) {
		case_note("no memory for a worker");
		exit(CASE_FAILED);
	}
}

bool policy_check(const char *path)
{
	if (quiesce_unlikely(!me.joined))
		join();
	return protection->check(&me, path);
}

/* ---- replacement ---- */

static bool parse_line(struct label *l, const char *line)
{
	struct rule *rule = &l->rule[l->nr];
	char verb[8], more;

	if (!strcmp(line, "complain"))
		return l->complain = true;
	if (l->nr == MAX_RULES || sscanf(line, "%7s %31s %c", verb, rule->prefix, &more) != 2)
		return false;
	rule->length = strlen(rule->prefix);
	rule->allow = !strcmp(verb, "allow");
	l->nr++;
	return rule->allow || !strcmp(verb, "deny");
}

static bool parse(struct label *l, const char *text)
{
	char copy[POLICY_TEXT_MAX + 1], *save;
	bool good = true;

	if (strlen(text) >= sizeof(copy))
		return false;
	strcpy(copy, text);
	for (char *line = strtok_r(copy, "\n", &save); line && good; line = strtok_r(NULL, "\n", &save))
		good = parse_line(l, line);
	return good && (l->nr || l->complain);
}

static int make(const char *text, struct label **ret)
{
	struct label *l = aligned_alloc(64, sizeof(*l));

	if (!l)
		return -ENOMEM;
	memset(l, 0, sizeof(*l));
	if (!parse(l, text)) {
		free(l);
		return -EINVAL;
	}
	canary_init(&l->canary);
	if (protection->init)
		protection->init(l);
	*ret = l;
	return 0;
}

int policy_replace(const char *text)
{
	struct label *fresh, *old;
	int err = make(text, &fresh);

	if (err)
		return err;
	old = rcu_xchg_pointer(&current, fresh);
	if (old)
		protection->retire(old);
	return 0;
}

int policy_init(const struct case_choice *variant, const char *text, bool watch_it)
{
	int err = pthread_key_create(&leave_key, leave);

	protection = &protections[variant - policy_variants];
	watched = watch_it;
	return err ? -err : policy_replace(text);
}

void policy_exit(void)
{
	struct label *last = rcu_xchg_pointer(&current, NULL);

	if (last)
		protection->retire(last);
	hazptr_barrier();
	rcu_barrier();
	pthread_key_delete(leave_key);
}

uint64_t policy_freed(void)
{
	return quiesce_load_relaxed(&freed); /* Relaxed: a statistic. */
}
