/* SPDX-License-Identifier: MIT */
/* pass.c - a pass: take all listed queues, wait for one grace period for all of them, reclaim.  reclaimers.c runs the callbacks.
 *
 * The holder of a pass is the thread that makes it, and holds quiesce__pass.lock: the worker, or a caller where there is
 * no worker.
 *
 * I1. Each object that a pass reclaims was queued before the grace period of the pass began: the snapshot is taken first.
 * I2. A callback is taken from its queue (@taken) before it runs, and counted (@nr_run) after it has returned, so that the child of a fork
 *     does not run it again.  An object is taken before it is freed; in the child, one that another thread was freeing counts as freed.
 * I3. One pass is made at a time (quiesce__pass.lock).  Callers make passes only while there is no worker; a caller that finds the lock
 *     taken sets @again, and the holder of the lock makes another pass, if it may run callbacks.
 * I4. A queue is marked unlisted before its snapshot, and checked once more after the heavy fence of the grace period.  So either its
 *     owner sees that it is unlisted, or the pass sees what the owner has appended, and lists the queue again (CB3).  In full-fence mode
 *     owners execute a full fence, and the exchange that marks the queue is the pass's fence.
 *     The owner may be preempted between marking its queue listed and pushing it.  A pass that finds such a queue carries it over: the
 *     next pass takes it, pushed or not, so that a barrier for what was queued in it does not wait until the owner runs.
 * I5. A pass that a caller waits for frees the ready objects of all queues.  Other passes free only those of owners that have exited, or
 *     have stopped retiring, also above the ceiling: an owner that goes on retiring frees as much as it retires.
 * I6. A pass visits only queues that were listed, carried over, or left unfreed; it never walks all queues.
 * I7. quiesce__pass.lock guards all that a pass has, except queues whose callbacks other reclaimers are running.  If a callback ends the
 *     holder's thread, the pass stays unfinished; its queues are listed again once these reclaimers are done.  The next pass has a higher
 *     number, so it completes the callers that wait for this one.
 *
 * CB1  address written, then queued raised     | queued read, then the address read
 * CB2  grace period over, then ready raised    | ready read, then freed
 * CB3  queued raised, then listed read         | unlisted, then queued read
 * CB4  callbacks run, objects freed; then done | done read, then rcu_barrier() returns
 * CB6  queue written, then pushed              | list taken, then queues read
 * CB7  callback queued, then begun read        | begun raised, then lists taken and waiting read
 * CB8  again set, then lock tried              | lock released, then again read
 * OF1, OF2, OF3  see queue.c
 */
#include "platform/probe.h"
#include "queue.h"
#include "rcu.h"
#include "reclaim.h"
#include "runtime/run.h"
#include "spill.h"

#define FREE_CHUNK 64u
#define OWNER_NS 10000000u /* time from one visit to queues whose ready objects are left to their owners to the next one */
#define OWNER_MIN_NS 1000000u /* that time above half of the ceiling */
#define OWNER_VISITS 16u   /* an owner that would need more than so many visits to free what is ready counts as stopped */
#if defined(QUIESCE_SIM)
#define POLLS 0u
#else
#define POLLS 100u         /* about the time of a free() */
#endif
#define POLL_MIN_NS 50000u /* sleep of a thread that waits for a free() of an owner, which is preempted: leave the CPU to it */
#define POLL_MAX_NS 1000000u

struct quiesce__pass quiesce__pass;

/* Data of the passes, guarded by quiesce__pass.lock. */
static struct {
	struct quiesce__queue *queues;  /* queues of the pass in progress */
	struct quiesce__queue *unfreed; /* queues whose ready objects are left to their owners */
	struct quiesce__queue *carried; /* queues that the next pass begins with: marked listed, but maybe not pushed yet (I4) */
	uint64_t visit_at; /* time of the next visit to the unfreed queues; PLATFORM_FOREVER: there are none */
	uint64_t visited;  /* number of visits to queues, ever */
	uint64_t max_taken; /* largest number of addresses that this pass has taken from one queue */
	bool runs_callbacks;
	bool needs_gp;     /* the pass needs a grace period */
} work = { .visit_at = PLATFORM_FOREVER };

uint64_t quiesce__queues_visited(void)
{
	return quiesce_load_relaxed(&work.visited); /* Relaxed: a statistic. */
}

uint64_t quiesce__pass_max_taken(void)
{
	return work.max_taken;
}

bool quiesce__pass_requeued(void)
{
	return quiesce__pass_holder->requeued;
}

static void count_visit(void)
{
	quiesce_store_relaxed(&work.visited, work.visited + 1); /* Relaxed: a statistic. */
}

/* ---- taking ---- */

/* Add to the pass a queue that was just marked unlisted, or carried over, and take its snapshot. */
static void take_unlisted(struct quiesce__queue *queue)
{
	uint64_t before, frees_before, taken;

	if (!queue->in_pass) {
		queue->in_pass = true;
		queue->next_in_pass = work.queues;
		work.queues = queue;
	}
	count_visit();
	if (work.runs_callbacks) /* spilled objects may be callbacks, so all of them count as callbacks */
		quiesce__spill_take(&queue->spill);
	before = queue->callbacks_snap.nr;
	/* Relaxed: a policy: objects that the owner knows to be ready are not worth a pass. */
	frees_before = quiesce__newer(queue->frees_snap.nr, quiesce_load_relaxed(&queue->known.nr));
	quiesce__take_snapshot(&queue->callbacks_snap, &queue->callbacks);
	quiesce__take_snapshot(&queue->frees_snap, &queue->frees);
	taken = queue->callbacks_snap.nr - before + queue->frees_snap.nr - frees_before;
	if (taken > work.max_taken)
		work.max_taken = taken;
	/* While the queue has an owner, the check of I4 needs the heavy fence of a grace period. */
	work.needs_gp |= !queue->gone || queue->running.taken != queue->callbacks_snap.nr || queue->ready != queue->frees_snap.nr;
}

static void take_queue(struct quiesce__queue *queue)
{
	/* CB3: full, pairs with CB3 in finish_append() and quiesce__queue_leave() and quiesce__queue_list() */
	queue->gone |= quiesce_xchg(CB3, &queue->listed, QUIESCE_UNLISTED) == QUIESCE_LISTED_LAST;
	take_unlisted(queue);
}

/* Take the queues that were carried over.  Their owners push them sooner or later, and then a pass takes them once more. */
static void take_carried(void)
{
	struct quiesce__queue *queue, *next = work.carried;

	quiesce_store_relaxed(&work.carried, NULL); /* Relaxed: CB7; begun was raised before. */
	while ((queue = next)) {
		next = queue->next_carried;
		queue->carried = false;
		take_unlisted(queue);
	}
}

static void take_listed(struct quiesce__shard *shard)
{
	struct quiesce__queue *queue, *next;

	if (!quiesce_load_relaxed(&shard->listed)) /* Relaxed: CB7 orders it. */
		return;
	/* CB6: full, pairs with CB6 in push_listed() */
	for (queue = quiesce_xchg(CB6, &shard->listed, NULL); queue; queue = next) {
		next = quiesce_load_relaxed(&queue->next_listed); /* Relaxed: CB6.  Loaded before the queue can be listed again. */
		take_queue(queue);
	}
}

static void take_all(void)
{
	work.queues = NULL;
	work.max_taken = 0;
	work.needs_gp = quiesce__pass_holder->requeued = false;
	take_carried();
	for (uint32_t i = 0; i < QUIESCE_NR_SHARDS; i++)
		take_listed(&quiesce__queues.shard[i]);
	work.needs_gp |= (work.runs_callbacks && quiesce__spill_take_of_shards()) || quiesce__gp_wanted();
}

/* ---- reclaiming ---- */

static void publish_ready(struct quiesce__queue *queue)
{
	quiesce_store_relaxed(&queue->ready_bytes, queue->frees_snap.bytes); /* Relaxed: a sum. */
	/* CB2: release, pairs with CB2 in quiesce__queue_ready() */
	quiesce_store_release(CB2, &queue->ready, queue->frees_snap.nr);
}

/* True if a ready object is to be freed, or the owner is in free(). */
static bool has_ready(const struct quiesce__queue *queue)
{
	/* CB4: acquire, pairs with CB4 in free_ready() and free_one_or_more() and quiesce__end_free() */
	return (int64_t)(queue->ready - quiesce_load_acquire(CB4, &queue->freed)) > 0;
}

/* Free all ready objects, in chunks; the right to do so is revoked from the owner, or there is none. */
static void free_all_ready(struct quiesce__queue *queue)
{
	while ((int64_t)(queue->ready - queue->freeing.taken) > 0) {
		quiesce__gate_enter(&quiesce__pass_holder->in_gate);
		quiesce__free_ready(queue, FREE_CHUNK);
		quiesce__gate_leave(&quiesce__pass_holder->in_gate);
	}
	quiesce__queue_report_freed(queue);
}

static bool owner_is_busy(const struct quiesce__queue *queue)
{
	/* OF2: acquire, pairs with OF2 in quiesce__free_paced() and quiesce__end_free() */
	return quiesce_load_acquire(OF2, &queue->busy);
}

/* Wait until the owner, which does not begin to free any more, is out of free().  It may be preempted there, so the caller sleeps. */
static void await_owner(const struct quiesce__queue *queue)
{
	uint64_t ns = POLL_MIN_NS;

	for (uint32_t i = POLLS; i && owner_is_busy(queue); i--)
		quiesce_cpu_relax();
	while (owner_is_busy(queue)) {
		uint32_t never = 0;

		platform_futex_wait(&never, 0, ns);
		ns = ns < POLL_MAX_NS ? 2 * ns : ns;
	}
}

/* Free the ready objects in place of the owner, to which the right to do so is revoked, and give it back.  If the owner is freeing one,
 * wait for it; or, unless @wait, leave all to it. */
static void free_for_owner(struct quiesce__queue *queue, bool wait)
{
	if (wait && !QUIESCE_MUTANT(cb_owner_unawaited))
		await_owner(queue);
	if (wait || !owner_is_busy(queue))
		free_all_ready(queue);
	/* OF3: release, pairs with OF3 in quiesce__free_paced() */
	quiesce_store_release(OF3, &queue->revoked, 0);
}

/* ---- queues after the grace period ---- */

/* True if garbage is above half of the ceiling, or a caller has found it above the ceiling. */
static bool is_under_pressure(void)
{
	uint64_t ceiling = quiesce_load_relaxed(&quiesce__settings.ceiling); /* Relaxed: a setting. */

	return quiesce_load_relaxed(&quiesce__worker.urgent) || /* Relaxed: a best-effort hint. */
	       quiesce__garbage_above(ceiling / 2);
}

/* Leave the ready objects to the owner of @queue until the next visit. */
static void leave_to_owner(struct quiesce__queue *queue)
{
	if (queue->unfreed)
		return;
	if (!work.unfreed)
		/* Relaxed: the end of the pass is a release. */
		quiesce_store_relaxed(&work.visit_at, platform_now_ns() + (is_under_pressure() ? OWNER_MIN_NS : OWNER_NS));
	queue->seen_taken = quiesce_load_relaxed(&queue->freeing.taken); /* Relaxed: a hint. */
	queue->unfreed = true;
	queue->next_unfreed = work.unfreed;
	work.unfreed = queue;
}

/* True if objects in @queue need another pass: the owner has appended them since the snapshot, or this pass runs no callbacks. */
static bool has_new(const struct quiesce__queue *queue)
{
	/* Relaxed throughout: the heavy fence precedes it (I4). */
	return quiesce_load_relaxed(&queue->callbacks.queued) != queue->running.taken ||
	       quiesce_load_relaxed(&queue->frees.queued) != queue->frees_snap.nr || quiesce_load_relaxed(&queue->spill);
}

/* Have the next pass begin with @queue, which its owner has marked listed but may not push for a long time (I4). */
static void carry_over(struct quiesce__queue *queue)
{
	if (queue->carried || QUIESCE_MUTANT(cb_carry_forgotten))
		return;
	queue->carried = true;
	queue->next_carried = work.carried;
	quiesce_store_relaxed(&work.carried, queue); /* Relaxed: the end of the pass is a release. */
}

/* List @queue in place of its owner. */
static void list_again(struct quiesce__queue *queue)
{
	/* Relaxed: the heavy fence precedes it (I4). */
	bool callback = quiesce_load_relaxed(&queue->callbacks.queued) != queue->running.taken || quiesce_load_relaxed(&queue->spill);

	if (callback && !QUIESCE_MUTANT(cb_prompt_unset))
		quiesce_store_relaxed(&quiesce__worker.prompt, 1); /* Relaxed: the worker paces only after this pass. */
	if (!quiesce__queue_list(queue, callback))
		carry_over(queue);
}

/* List @queue again if objects in it need another pass; free it if its owner has exited and none is left. */
static void relist_or_free(struct quiesce__queue *queue)
{
	if (has_new(queue) && !QUIESCE_MUTANT(cb_unlisted_unchecked))
		list_again(queue);
	/* Relaxed: no owner lists it any more. */
	if (queue->gone && !queue->unfreed && !queue->carried && quiesce_load_relaxed(&queue->listed) == QUIESCE_UNLISTED)
		quiesce__queue_free(queue);
}

/* Reclaim @queue, the first of @work.queues.  It remains the first until its callbacks have run, since one may end the thread (I7). */
static void reclaim_queue(struct quiesce__queue *queue, bool callbacks)
{
	bool more_ready = queue->ready != queue->frees_snap.nr;

	publish_ready(queue);
	if (callbacks)
		quiesce__run_callbacks(queue);
	work.queues = queue->next_in_pass;
	queue->in_pass = false;
	if (queue->gone)
		free_for_owner(queue, true);
	else if (more_ready)
		leave_to_owner(queue);
	relist_or_free(queue);
}

static void reclaim(bool callbacks)
{
	struct quiesce_tls_v1 *self = quiesce__self();

	self->state |= QUIESCE_TLS_IN_CALLBACK;
	if (callbacks) {
		quiesce__spill_run();
		quiesce__share_callbacks(work.queues);
	}
	while (work.queues)
		reclaim_queue(work.queues, callbacks);
	self->state &= ~QUIESCE_TLS_IN_CALLBACK;
}

/* True if the owner of an unfreed queue has stopped retiring, or retires too slowly for what is ready. */
static bool owner_stopped(const struct quiesce__queue *queue)
{
	uint64_t taken = quiesce_load_relaxed(&queue->freeing.taken); /* Relaxed: a hint. */

	if (QUIESCE_MUTANT(cb_stopped_unseen))
		return false;
	return (int64_t)((taken - queue->seen_taken) * OWNER_VISITS) <= (int64_t)(queue->ready - taken);
}

/* Revoke from the owners of unfreed queues the right to free: from all of them if @all, else from those that have stopped.  Return the list
 * of their queues, and leave the others to their owners. */
static struct quiesce__queue *revoke_unfreed(bool all)
{
	struct quiesce__queue *queue, *next = work.unfreed, *revoked = NULL;

	work.unfreed = NULL;
	quiesce_store_relaxed(&work.visit_at, PLATFORM_FOREVER); /* Relaxed: the end of the pass is a release. */
	while ((queue = next)) {
		next = queue->next_unfreed;
		queue->unfreed = false;
		count_visit();
		if (!has_ready(queue)) {
			relist_or_free(queue);
		} else if (all || queue->gone || owner_stopped(queue)) {
			quiesce_store_relaxed(&queue->revoked, 1); /* Relaxed: the fence follows. */
			queue->next_unfreed = revoked;
			revoked = queue;
		} else {
			leave_to_owner(queue);
		}
	}
	return revoked;
}

/* Free the ready objects of all unfreed queues if @all, else of those whose owners have exited or stopped. */
static void visit_unfreed(bool all)
{
	struct quiesce__queue *queue, *next = revoke_unfreed(all);

	if (next)
		/* OF1: pairs with OF1 in quiesce__free_paced() */
		quiesce_fence_heavy(OF1);
	while ((queue = next)) {
		next = queue->next_unfreed;
		free_for_owner(queue, all || queue->gone);
		if (has_ready(queue))
			leave_to_owner(queue);
		else
			relist_or_free(queue);
	}
}

bool quiesce__pass_carries(void)
{
	return quiesce_load_relaxed(&work.carried) != NULL; /* Relaxed: no older than the last pass that the caller saw end. */
}

uint64_t quiesce__visit_due(void)
{
	return quiesce_load_relaxed(&work.visit_at); /* Relaxed: no older than the last pass that the caller saw end. */
}

/* ---- a pass ---- */

static uint64_t pass_begin(void)
{
	uint64_t number = quiesce__pass.begun + 1;

	/* Relaxed: the exchange follows.  If a retirer sets it again, what it has queued may be too late for the lists of this pass. */
	quiesce_store_relaxed(&quiesce__worker.prompt, 0);
	/* CB7: full, pairs with CB7 in quiesce__pass_wait() */
	quiesce_xchg(CB7, &quiesce__pass.begun, number);
	quiesce_probe(pass_begin, number);
	return number;
}

static void pass_end(uint64_t number, bool callbacks)
{
	quiesce_probe(pass_end, number, callbacks, work.max_taken);
	if (callbacks || QUIESCE_MUTANT(cb_barrier_any_pass))
		/* CB4: release, pairs with CB4 in pass_ran() */
		quiesce_store_release(CB4, &quiesce__pass.ran_callbacks, number);
	/* CB4: release, pairs with CB4 in pass_done() */
	quiesce_store_release(CB4, &quiesce__pass.done, number);
	/* CB4: full, pairs with CB4 in count_waiter() */
	quiesce_fetch_add(CB4, &quiesce__pass.done_word, 1u);
	if (quiesce_load_relaxed(&quiesce__pass.waiting)) /* Relaxed: CB4 orders it. */
		platform_futex_wake(&quiesce__pass.done_word, INT32_MAX);
	quiesce__throttle_wake();
}

/* Return the urgency of the grace period.  If no caller waits for the pass, readers are not disturbed until garbage is above half of the
 * ceiling. */
static enum quiesce__urgency urgency(bool pressure)
{
	if (pressure)
		return QUIESCE_EXPEDITED;
	return quiesce__pass_wanted() || quiesce__gp_wanted() || !(quiesce__self()->state & QUIESCE_TLS_WORKER) ? QUIESCE_NORMAL
														 : QUIESCE_DEFERRED;
}

static void wait_for_readers(bool pressure)
{
	enum quiesce__urgency how = urgency(pressure);

	quiesce_store_relaxed(&quiesce__worker.urgent, 0); /* Relaxed: a best-effort hint. */
	quiesce_store_relaxed(&quiesce__worker.filled, 0); /* Relaxed: a best-effort hint. */
	if (!QUIESCE_MUTANT(cb_no_gp))
		quiesce__rcu_wait(how, "call_rcu");
}

static void make_pass(bool callbacks)
{
	uint64_t number = pass_begin();
	bool pressure = is_under_pressure();
	/* Relaxed: CB7 orders it.  All ready objects are freed if a caller waits (I5). */
	bool all = quiesce_load_relaxed(&quiesce__pass.waiting) || quiesce__throttled() ||
		   !(quiesce__self()->state & QUIESCE_TLS_WORKER);

	work.runs_callbacks = callbacks;
	take_all();
	if (work.needs_gp)
		wait_for_readers(pressure);
	reclaim(callbacks);
	if (all || platform_now_ns() >= quiesce__visit_due())
		visit_unfreed(all);
	pass_end(number, callbacks);
}

/* ---- a callback has ended the thread ---- */

struct pass_run {
	struct quiesce__run run;
	bool callbacks;
};

static void run_pass(struct quiesce__run *run)
{
	make_pass(((struct pass_run *)run)->callbacks);
}

/* List the queues that are left of the pass for the next one, which has a grace period of its own (I7). */
static void relist_queues(void)
{
	struct quiesce__queue *queue;

	while ((queue = work.queues)) {
		work.queues = queue->next_in_pass;
		queue->in_pass = false;
		if (QUIESCE_MUTANT(cb_ended_lost))
			continue;
		if (has_ready(queue) && !QUIESCE_MUTANT(cb_ended_unfreed))
			leave_to_owner(queue);
		list_again(queue);
	}
}

/* Give up the pass, because a callback has ended the holder's thread (I7). */
static void pass_ended(struct quiesce__run *run)
{
	(void)run; /* the state to clean up is in @work */
	quiesce__spill_ended();
	quiesce__reclaimers_ended();
	relist_queues();
	quiesce__unlock(&quiesce__pass.lock);
}

void quiesce__pass_run(bool callbacks)
{
	struct pass_run pass_run = { .run = { .call = "call_rcu()", .named = &quiesce__pass_holder->func }, .callbacks = callbacks };

	quiesce__run(&pass_run.run, run_pass, pass_ended);
}

/* ---- passes of callers ---- */

static bool pass_trylock(void)
{
	uint32_t free = 0;

	/* CB8: full, pairs with CB8 in quiesce__pass_make_here() */
	if (!quiesce_cmpxchg(CB8, &quiesce__pass.lock.word, &free, quiesce__tid()))
		return false;
	quiesce__lock_taken(&quiesce__pass.lock);
	return true;
}

void quiesce__pass_make_here(bool callbacks)
{
	/* CB8: full, pairs with CB8 in pass_trylock() */
	quiesce_xchg(CB8, &quiesce__pass.again, 1);
	while (quiesce_load_relaxed(&quiesce__pass.again) && pass_trylock()) { /* Relaxed: CB8 orders it. */
		/* CB8: full, pairs with CB8 in pass_trylock() */
		quiesce_xchg(CB8, &quiesce__pass.again, 0);
		quiesce__pass_run(callbacks);
		quiesce__unlock(&quiesce__pass.lock);
		if (!callbacks)
			break; /* a caller that waits for callbacks sets @again repeatedly, and must find the lock free */
	}
	/* A worker that was started meanwhile may sleep, since it found the lists empty while this pass had taken them. */
	if (quiesce__queues_listed() && quiesce__reclaim_has_worker() && !QUIESCE_MUTANT(cb_left_unwoken))
		quiesce__worker_wake();
}

/* ---- fork ---- */

/* List a queue of the parent for the last time.  The thread that has forked begins a new queue, and starts a worker when it lists that. */
static void list_in_child(struct quiesce__queue *queue, bool in_callback)
{
	queue->nr_run = queue->running.taken;
	queue->row = queue->row_end = queue->row_single = NULL;
	queue->goal.nr = queue->freeing.taken;
	queue->known.nr = queue->freeing.taken; /* grace periods of the parent do not count */
	queue->revoked = 0;
	/* A free() that the survivor is in ends in the child. */
	queue->busy = queue->busy && quiesce__fork_survivor && quiesce__fork_survivor->queue == queue &&
		      !QUIESCE_MUTANT(cb_child_unawaited);
	queue->unfreed = queue->carried = false;
	queue->in_pass = queue->in_pass && in_callback;
	queue->gone = true;
	queue->listed = QUIESCE_UNLISTED;
	queue->freed = queue->freeing.taken;
	queue->share = 0;
	quiesce__queue_report(queue);
	quiesce__queue_list(queue, true);
}

/* A pass of the parent is not continued: its grace period does not count in the child, whose passes take new snapshots.  But if a callback
 * of the pass has called fork(), the pass continues. */
void quiesce__pass_fork_child(void)
{
	const struct quiesce_tls_v1 *survivor = quiesce__fork_survivor;
	uint32_t state = survivor ? survivor->state : 0;
	bool in_callback = (state & QUIESCE_TLS_IN_CALLBACK) && !(state & QUIESCE_TLS_RECLAIMER);
	struct quiesce__queue *before = NULL;

	quiesce__lock_reset(&quiesce__pass.lock, in_callback);
	if (state & QUIESCE_TLS_IN_CALLBACK && !in_callback)
		(void)quiesce__trylock(&quiesce__pass.lock); /* the reclaimer holds it until its callback returns: I4 of reclaimers.c */
	quiesce__reclaimers_fork_child(in_callback);
	quiesce__pass.waiting = quiesce__pass.again = 0;
	quiesce__pass.wanted = quiesce__pass.ran_callbacks;
	if (!in_callback)
		work.queues = NULL;
	work.unfreed = work.carried = NULL;
	work.visit_at = PLATFORM_FOREVER;
	quiesce__garbage = 0; /* each queue reports anew below */
	quiesce__spill_fork_child(in_callback);
	for (uint32_t i = 0; i < QUIESCE_NR_SHARDS; i++)
		quiesce__queues.shard[i].listed = NULL;
	for (struct quiesce__queue *queue = quiesce__queues.all; queue; queue = queue->next) {
		queue->prev = before; /* at a fork without the library's handlers, a thread may have been about to change it */
		before = queue;
		list_in_child(queue, in_callback);
	}
}
