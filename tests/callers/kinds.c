/* SPDX-License-Identifier: MIT */
/* kinds.c - runs a function inside a callback, a deleter, a release function and so on of each kind. */
#include "kinds.h"

#include <quiesce/ds/rculist.h>

/* The function to run, in an object that is retired. */
struct task {
	struct object object; /* first member: its heads lead to the task */
	struct percpu_ref ref;
	struct hashtable table;
	void (*fn)(void *arg);
	void *arg;
};

static struct task *task_new(struct world *w, void (*fn)(void *arg), void *arg)
{
	struct task *t = calloc(1, sizeof *t);

	if (!t)
		abort();
	t->object.world = w;
	t->fn = fn;
	t->arg = arg;
	return t;
}

/* Run the function, which may not return: nothing of the task is accessed after that. */
static void task_run(struct task *t)
{
	void (*fn)(void *arg) = t->fn;
	void *arg = t->arg;

	free(t);
	fn(arg);
}

#define task_of(node, member) ((struct task *)(void *)((char *)(node) - offsetof(struct task, member)))

static void task_rcu(struct rcu_head *head) { task_run(task_of(head, object.rcu)); }
static void task_hazptr(struct hazptr_head *head) { task_run(task_of(head, object.hazptr)); }
static void task_counted(struct counted *counted) { task_run(task_of(counted, object.counted)); }
static void task_delete(void *task) { task_run(task); }

static void run_in_call_rcu(struct world *w, void (*fn)(void *arg), void *arg)
{
	call_rcu(&task_new(w, fn, arg)->object.rcu, task_rcu);
	rcu_barrier();
}

/* A separate domain, because the function may wait for the world's domain. */
DEFINE_STATIC_SRCU(domain);

static void run_in_call_srcu(struct world *w, void (*fn)(void *arg), void *arg)
{
	call_srcu(&domain, &task_new(w, fn, arg)->object.rcu, task_rcu);
	srcu_barrier(&domain);
}

static void run_in_call_hazptr(struct world *w, void (*fn)(void *arg), void *arg)
{
	call_hazptr(&task_new(w, fn, arg)->object.hazptr, task_hazptr);
	hazptr_barrier();
}

static void run_in_call_hazptr_inline(struct world *w, void (*fn)(void *arg), void *arg)
{
	call_hazptr_inline(&task_new(w, fn, arg)->object.hazptr, task_hazptr);
	hazptr_barrier();
}

static void run_in_hazptr_retire(struct world *w, void (*fn)(void *arg), void *arg)
{
	hazptr_retire(task_new(w, fn, arg), task_delete);
	hazptr_barrier();
}

static void run_in_cohort(struct world *w, void (*fn)(void *arg), void *arg)
{
	static struct hazptr_cohort cohort = HAZPTR_COHORT_INIT;

	call_hazptr_cohort(&cohort, &task_new(w, fn, arg)->object.hazptr, task_hazptr);
	synchronize_hazptr_cohort(&cohort);
}

static void run_in_counted(struct world *w, void (*fn)(void *arg), void *arg)
{
	struct task *t = task_new(w, fn, arg);

	counted_init(&t->object.counted, task_counted);
	counted_put(&t->object.counted);
	hazptr_barrier();
}

/* ---- references ---- */

static void task_release(struct percpu_ref *ref)
{
	percpu_ref_exit(ref);
	task_run(task_of(ref, ref));
}

static void run_in_release(struct world *w, void (*fn)(void *arg), void *arg)
{
	struct task *t = task_new(w, fn, arg);

	(void)percpu_ref_init(&t->ref, task_release, 0);
	percpu_ref_get(&t->ref);
	percpu_ref_kill(&t->ref);
	percpu_ref_put(&t->ref);
}

static void task_confirm(struct percpu_ref *ref)
{
	struct task *t = task_of(ref, ref);

	t->fn(t->arg);
}

static void task_forget(struct percpu_ref *ref)
{
	(void)ref;
}

static void run_in_confirm(struct world *w, void (*fn)(void *arg), void *arg)
{
	struct task *t = task_new(w, fn, arg);

	(void)percpu_ref_init(&t->ref, task_forget, 0);
	percpu_ref_kill_and_confirm(&t->ref, task_confirm);
	percpu_ref_exit(&t->ref);
	free(t);
}

/* ---- tables ---- */

static void task_drop(void *object, void *task)
{
	struct task *t = task;

	free(object);
	t->fn(t->arg);
}

static struct task *task_in_table(struct world *w, void (*fn)(void *arg), void *arg)
{
	struct task *t = task_new(w, fn, arg);

	hashtable_init(&t->table, &object_type);
	must(object_insert(&t->table, object_new(w)) == 0);
	return t;
}

static void run_in_clear(struct world *w, void (*fn)(void *arg), void *arg)
{
	struct task *t = task_in_table(w, fn, arg);

	hashtable_clear(&t->table, task_drop, t);
	hashtable_destroy(&t->table, NULL, NULL);
	free(t);
}

static bool any_object(void *object, void *task)
{
	(void)task;
	return object != NULL;
}

static void run_in_remove_if(struct world *w, void (*fn)(void *arg), void *arg)
{
	struct task *t = task_in_table(w, fn, arg);

	hashtable_remove_if(&t->table, any_object, task_drop, t);
	hashtable_destroy(&t->table, NULL, NULL);
	free(t);
}

static void run_in_destroy(struct world *w, void (*fn)(void *arg), void *arg)
{
	struct task *t = task_in_table(w, fn, arg);

	hashtable_destroy(&t->table, task_drop, t);
	free(t);
}

static void *task_update(void *object, void *task)
{
	struct task *t = task;

	if (t->fn)
		t->fn(t->arg);
	t->fn = NULL;
	return object;
}

static void run_in_update(struct world *w, void (*fn)(void *arg), void *arg)
{
	struct task *t = task_new(w, fn, arg);

	hashtable_init(&t->table, &object_type);
	must(object_insert(&t->table, w->fixed[0]) == 0);
	must(hashtable_update(&t->table, &w->fixed[0]->key, task_update, t, NULL) == 0);
	hashtable_destroy(&t->table, NULL, NULL);
	free(t);
}

/* A type whose comparison calls the function once. */
static struct task *comparing;

static uint64_t compared_hash(const void *key, uint64_t seed)
{
	return object_hash(key, seed);
}

static bool compared_equal(const void *object, const void *key)
{
	struct task *t = comparing;

	comparing = NULL;
	if (t)
		t->fn(t->arg);
	return object_equal(object, key);
}

static void run_in_comparison(struct world *w, void (*fn)(void *arg), void *arg)
{
	static const struct hashtable_type type = { compared_hash, object_key, compared_equal };
	struct task *t = task_new(w, fn, arg);

	hashtable_init(&t->table, &type);
	must(hashtable_insert(&t->table, w->fixed[0]) == 0);
	comparing = t;
	must(hashtable_remove_key(&t->table, &w->fixed[0]->key) == w->fixed[0]);
	hashtable_destroy(&t->table, NULL, NULL);
	must(!comparing);
	free(t);
}

/* ---- rcu_sync, lists, ids ---- */

static void sync_wait(void *task)
{
	struct task *t = task;

	t->fn(t->arg);
	synchronize_rcu();
}

static void sync_call(void *task, struct rcu_head *head, void (*func)(struct rcu_head *head))
{
	(void)task;
	call_rcu(head, func);
}

static void sync_barrier(void *task, struct rcu_head *head)
{
	(void)task;
	(void)head;
	rcu_barrier();
}

static void run_in_sync_wait(struct world *w, void (*fn)(void *arg), void *arg)
{
	static const struct rcu_sync_ops ops = { sync_wait, sync_call, sync_barrier, NULL };
	struct task *t = task_new(w, fn, arg);
	struct rcu_sync sync;

	rcu_sync_init_ops(&sync, &ops, t);
	rcu_sync_enter(&sync);
	rcu_sync_exit(&sync);
	rcu_sync_dtor(&sync);
	free(t);
}

static struct task *splicing;

static void splice_sync(void)
{
	splicing->fn(splicing->arg);
}

static void run_in_splice(struct world *w, void (*fn)(void *arg), void *arg)
{
	LIST_HEAD(from);
	LIST_HEAD(to);
	struct list_head entry;

	splicing = task_new(w, fn, arg);
	list_add_rcu(&entry, &from);
	list_splice_init_rcu(&from, &to, splice_sync);
	free(splicing);
}

static int id_seen(int id, void *entry, void *task)
{
	struct task *t = task;

	(void)entry;
	if (id)
		return 1;
	t->fn(t->arg);
	return 0;
}

static void run_in_for_each(struct world *w, void (*fn)(void *arg), void *arg)
{
	struct task *t = task_new(w, fn, arg);

	rcu_read_lock();
	idr_for_each(&w->idr, id_seen, t);
	rcu_read_unlock();
	free(t);
}

/* ---- hooks ---- */

static struct task *hooked;
static int hook_ran;

static void report_hook(const struct quiesce_report *report)
{
	struct task *t = __atomic_exchange_n(&hooked, NULL, __ATOMIC_SEQ_CST); /* raw: whichever thread reports first */

	(void)report;
	if (t)
		task_run(t);
	flag_set(&hook_ran);
}

static void *slow_reader(void *inside)
{
	rcu_read_lock();
	flag_set((int *)inside);
	wait_until(flag_get(&hook_ran));
	rcu_read_unlock();
	return NULL;
}

static void run_in_report(struct world *w, void (*fn)(void *arg), void *arg)
{
	pthread_t thread;
	int inside = 0;

	flag_clear(&hook_ran);
	hooked = task_new(w, fn, arg);
	w->has_hook = true; /* until the end: a wait that has begun may report once more */
	quiesce_set_report_hook(report_hook);
	quiesce_set_stall_timeout(1000000);
	thread_begin(&thread, slow_reader, &inside);
	wait_until(flag_get(&inside));
	synchronize_rcu();
	pthread_join(thread, NULL);
	quiesce_set_stall_timeout(STALL_NS);
}

static struct task *named;
static int hook_begun;

/* The hook for which the reader leaves its section when it has begun, so that the hook may wait. */
static void holdout_hook(int tid, uint64_t waited_ns, void *arg)
{
	struct task *t = __atomic_exchange_n(&named, NULL, __ATOMIC_SEQ_CST); /* raw: whichever call is the first */

	(void)tid, (void)waited_ns, (void)arg;
	flag_set(&hook_begun);
	if (t)
		task_run(t);
}

static void *reader_in_the_way(void *inside)
{
	rcu_read_lock();
	flag_set((int *)inside);
	wait_until(flag_get(&hook_begun));
	rcu_read_unlock();
	return NULL;
}

static void run_in_holdout_hook(struct world *w, void (*fn)(void *arg), void *arg)
{
	pthread_t thread;
	int inside = 0;

	flag_clear(&hook_begun);
	named = task_new(w, fn, arg);
	quiesce_set_holdout_hook(holdout_hook, NULL);
	thread_begin(&thread, reader_in_the_way, &inside);
	wait_until(flag_get(&inside));
	synchronize_rcu();
	pthread_join(thread, NULL);
	quiesce_set_holdout_hook(NULL, NULL); /* the hook has returned by then */
}

static const struct kind kinds[] = {
	{ "call_rcu", run_in_call_rcu, ALLOWS_WAITS, true },
	{ "call_srcu", run_in_call_srcu, ALLOWS_WAITS, true },
	{ "call_hazptr", run_in_call_hazptr, ALLOWS_RETIRES, true },
	{ "call_hazptr_inline", run_in_call_hazptr_inline, ALLOWS_RETIRES, true },
	{ "hazptr_retire", run_in_hazptr_retire, ALLOWS_RETIRES, true },
	{ "a cohort", run_in_cohort, ALLOWS_RETIRES, true },
	{ "the release of a counted pointer", run_in_counted, ALLOWS_RETIRES, true },
	{ "the release of a reference", run_in_release, ALLOWS_ALL, false },
	{ "the confirmation of a kill", run_in_confirm, ALLOWS_WAITS, false },
	{ "hashtable_clear", run_in_clear, ALLOWS_READERS, false },
	{ "hashtable_remove_if", run_in_remove_if, ALLOWS_READERS, false },
	{ "hashtable_destroy", run_in_destroy, ALLOWS_READERS, false },
	{ "hashtable_update", run_in_update, ALLOWS_LITTLE, false },
	{ "a comparison", run_in_comparison, ALLOWS_LITTLE, false },
	{ "the wait of an rcu_sync", run_in_sync_wait, ALLOWS_WAITS, false },
	{ "the wait of a list's splice", run_in_splice, ALLOWS_ALL, false },
	{ "idr_for_each", run_in_for_each, ALLOWS_READERS, false },
	{ "a report hook", run_in_report, ALLOWS_REPORTS, false },
	{ "a hook for readers in the way", run_in_holdout_hook, ALLOWS_WAITS, true },
#ifdef HAVE_CXX
	{ "a deleter of rcu_retire in C++", run_in_rcu_retire, ALLOWS_WAITS, false },
	{ "a deleter of hazard_pointer_obj_base", run_in_hazard_retire, ALLOWS_RETIRES, false },
#endif
};

const struct kind *kind_at(size_t i)
{
	return i < sizeof kinds / sizeof *kinds ? &kinds[i] : NULL;
}
