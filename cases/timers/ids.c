/* SPDX-License-Identifier: MIT */
/* ids.c - from ids to timers: the locks or sections that a lookup must hold until it has the timer's own lock.
 *
 * Workers ask for their timers again and again, as timer_gettime() does: find the id in the table of all, lock the timer, make
 * sure that it is theirs, read two words, unlock.  No worker needs another's timer; they only share the table.  A
 * variant is lock_timer(), and the steps of deletion that keep a timer from going away between the table and its lock:
 *
 *	            from the table to the timer's lock      deletion, when the timer has no owner any more
 *	global_*    one lock for all, then handed over      remove it under that lock, free it
 *	bucket_lock the same, one lock for each chain       the same
 *	rcu_lock    a section                               remove it, free it after a grace period
 *	rcu_seqlock a section, and no lock at all           the same
 *	typesafe    a section                               remove it, free it at once: it stays a timer, perhaps another one
 *	none        nothing                                 remove it, free it: a lookup may still have its address
 *
 * 1. A timer's owner is read and changed under its lock.  Deletion clears the owner before it removes the timer from the table.
 *    So a lookup that has the lock of a timer, and finds it its own, needs nothing else: deletion waits for that lock.
 * 2. A lookup that finds a timer not its own unlocks it before it releases the table or leaves the section: such a timer
 *    may have no owner, be out of the table next, and free then.
 * 3. idr gives out the lowest free id, so an id that was read a moment ago may be another's timer by now.  No grace period
 *    helps against that, which is why the owner is compared.
 * 4. rcu_seqlock's lookup has no lock that keeps the timer, so its section lasts until the words are read; they were right together
 *    at one moment, and the timer may have no owner at the next.
 * 5. typesafe's section keeps no timer, only memory that is some timer or a free one, with a lock.  So everything but the lock
 *    is written under the lock, also when the timer is created, and the lookup compares the id, too, when it has the lock: the
 *    same owner may have created another timer there.
 */
#include "ids.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <quiesce/atomic.h>
#include <quiesce/ds/idr.h>
#include <quiesce/rcu.h>
#include <quiesce/slab.h>

#include "timer.h"

#define FIRST_ID 64   /* the tree has two levels then, also if there is one worker */
#define BUCKET_BITS 9 /* 512 buckets, as the kernel has them since 2013 */

/* How a variant works. */
struct way {
	/* A lookup, and @n of them: compiled together, so that all variants pay alike for the loop. */
	bool (*get)(uintptr_t id, uint32_t owner, struct setting *ret);
	void (*get_own)(struct worker *w, uint32_t n);
	struct timer *(*lock_timer)(uintptr_t id, uint32_t owner);
	int (*insert)(struct worker *w, struct timer *t, uintptr_t *ret_id); /* 0, or -errno */
	void (*retire)(struct timer *t, uintptr_t id);                       /* the timer has no owner */
	int (*create)(struct worker *w, uintptr_t *ret_id);                  /* NULL: calloc(), and insert() */
};

static struct {
	const struct way *way;
	uint64_t freed __attribute__((aligned(128)));
} table __attribute__((aligned(128)));
bool timer_watched __attribute__((aligned(128)));

static struct idr ids __attribute__((aligned(128))) = IDR_INIT(ids);
static struct spin ids_spin __attribute__((aligned(128)));
static struct ticket ids_ticket __attribute__((aligned(128)));
static pthread_spinlock_t ids_pthread_spin __attribute__((aligned(128)));
static pthread_mutex_t ids_mutex __attribute__((aligned(128))) = PTHREAD_MUTEX_INITIALIZER;
static struct bucket {
	struct spin lock;
	struct timer *first;
} __attribute__((aligned(64))) buckets[1 << BUCKET_BITS];

static void bury(struct timer *t)
{
	if (!timer_watched) {
		free(t);
		return;
	}
	(void)quiesce_fetch_add_relaxed(&table.freed, (uint64_t)1); /* Relaxed: a count. */
	canary_free(t, &t->canary);
}

/* ---- lookups ---- */

/* Defines NAME_get() by NAME_lock_timer(). */
#define GET_LOCKED(name)                                                                                   \
	QUIESCE_FAST bool name##_get(uintptr_t id, uint32_t owner, struct setting *ret)                    \
	{                                                                                                  \
		struct timer *t = name##_lock_timer(id, owner);                                            \
                                                                                                           \
		if (quiesce_likely(t != NULL))                                                             \
			read_and_unlock(t, ret);                                                           \
		return t != NULL;                                                                          \
	}

/* @n lookups of own timers, in turn. */
QUIESCE_FAST void get_own(struct worker *w, uint32_t n, bool (*get)(uintptr_t id, uint32_t owner, struct setting *ret))
{
	struct setting setting = { 0, 0 };
	uint64_t sum = 0;
	uint32_t at = w->at;

	for (uint32_t i = 0; i < n; i++) {
		uintptr_t id = quiesce_load_relaxed(&w->id[at++ % TIMERS]); /* Relaxed: the worker's own. */

		if (quiesce_unlikely(!get(id, w->owner, &setting)))
			w->failed++;
		sum += setting.interval + setting.expiry;
	}
	w->sum += sum;
	w->at = at % TIMERS;
	w->lookups += n;
}

#define GET_OWN(name)                                                \
	static void name##_get_own(struct worker *w, uint32_t n)     \
	{                                                            \
		get_own(w, n, name##_get);                           \
	}

/* ---- global_*: the lock is held until the timer's own is held ----
 *
 * Removal takes the same lock, so no lookup is between the table and the timer, and by 1. none has its lock.  Nothing waits.
 * Insertion takes it too, and must not allocate under a spinlock: hence the preloaded nodes.  (idr has its own lock for
 * updates, which is never contended here.)
 */
#define GLOBAL(name, LOCK, UNLOCK)                                                                         \
	QUIESCE_FAST struct timer *name##_lock_timer(uintptr_t id, uint32_t owner)                         \
	{                                                                                                  \
		struct timer *t;                                                                           \
                                                                                                           \
		LOCK;                                                                                      \
		t = idr_find(&ids, id);                                                                    \
		if (t && !claim(t, owner))                                                                 \
			t = NULL;                                                                          \
		UNLOCK;                                                                                    \
		return t;                                                                                  \
	}                                                                                                  \
	GET_LOCKED(name)                                                                                   \
	GET_OWN(name)                                                                                      \
                                                                                                           \
	static int name##_insert(struct worker *w, struct timer *t, uintptr_t *ret_id)                     \
	{                                                                                                  \
		int id = idr_preload(&w->nodes);                                                           \
                                                                                                           \
		if (id)                                                                                    \
			return id;                                                                         \
		LOCK;                                                                                      \
		id = idr_alloc_preloaded(&ids, &w->nodes, t, FIRST_ID, 0);                                 \
		UNLOCK;                                                                                    \
		*ret_id = (uintptr_t)id;                                                                   \
		return id < 0 ? id : 0;                                                                    \
	}                                                                                                  \
                                                                                                           \
	static void name##_retire(struct timer *t, uintptr_t id)                                           \
	{                                                                                                  \
		LOCK;                                                                                      \
		(void)idr_remove(&ids, id);                                                                \
		UNLOCK;                                                                                    \
		bury(t);                                                                                   \
	}

GLOBAL(global_spin, spin_lock(&ids_spin), spin_unlock(&ids_spin))
GLOBAL(global_ticket, ticket_lock(&ids_ticket), ticket_unlock(&ids_ticket))
GLOBAL(global_pthread_spin, pthread_spin_lock(&ids_pthread_spin), pthread_spin_unlock(&ids_pthread_spin))
GLOBAL(global_mutex, pthread_mutex_lock(&ids_mutex), pthread_mutex_unlock(&ids_mutex))

/* ---- bucket_lock: the same hand-over in one of 512 chains ----
 *
 * An id is the worker's number and a count of its own, so that nothing is shared there either, and is never given out twice.
 */
QUIESCE_FAST struct bucket *bucket_of(uintptr_t id)
{
	return &buckets[id * UINT64_C(0x9e3779b97f4a7c15) >> (64 - BUCKET_BITS)];
}

QUIESCE_FAST struct timer *bucket_lock_lock_timer(uintptr_t id, uint32_t owner)
{
	struct bucket *b = bucket_of(id);
	struct timer *t;

	spin_lock(&b->lock);
	for (t = b->first; t && t->id != id; t = t->next)
		;
	if (t && !claim(t, owner))
		t = NULL;
	spin_unlock(&b->lock);
	return t;
}
GET_LOCKED(bucket_lock)
GET_OWN(bucket_lock)

static int bucket_lock_insert(struct worker *w, struct timer *t, uintptr_t *ret_id)
{
	struct bucket *b;

	t->id = *ret_id = w->created++ * MAX_OWNERS + w->index;
	b = bucket_of(t->id);
	spin_lock(&b->lock);
	t->next = b->first;
	b->first = t;
	spin_unlock(&b->lock);
	return 0;
}

static void bucket_lock_retire(struct timer *t, uintptr_t id)
{
	struct bucket *b = bucket_of(id);
	struct timer **at = &b->first;

	spin_lock(&b->lock);
	while (*at != t)
		at = &(*at)->next;
	*at = t->next;
	spin_unlock(&b->lock);
	bury(t);
}

/* ---- rcu_lock: the section keeps the timer until its lock does ---- */

QUIESCE_FAST struct timer *rcu_lock_lock_timer(uintptr_t id, uint32_t owner)
{
	struct timer *t;

	rcu_read_lock();
	t = idr_find(&ids, id);
	if (t && !claim(t, owner))
		t = NULL;
	rcu_read_unlock();
	return t;
}
GET_LOCKED(rcu_lock)
GET_OWN(rcu_lock)

static int idr_insert(struct worker *w, struct timer *t, uintptr_t *ret_id)
{
	int id = idr_alloc(&ids, t, FIRST_ID, 0);

	(void)w;
	*ret_id = (uintptr_t)id;
	return id < 0 ? id : 0;
}

static void bury_rcu(struct rcu_head *head)
{
	bury((struct timer *)((char *)head - offsetof(struct timer, rcu)));
}

static void rcu_retire(struct timer *t, uintptr_t id)
{
	(void)idr_remove(&ids, id);
	if (timer_watched)
		call_rcu(&t->rcu, bury_rcu);
	else
		kfree_rcu(t, rcu);
	rcu_throttle();
}

/* ---- rcu_seqlock: readers write nothing ---- */

/* Read the timer once; false: a writer was active, and the values are not valid. */
QUIESCE_FAST bool read_once(const struct timer *t, uint32_t *ret_owner, struct setting *ret)
{
	uint32_t count = sequence_read_begin(&t->sequence);

	/* TM3: acquire, pairs with TM3 in write_setting(); all three */
	*ret_owner = quiesce_load_acquire(TM3, &t->owner);
	ret->interval = quiesce_load_acquire(TM3, &t->setting.interval);
	(void)alive(t);
	ret->expiry = quiesce_load_acquire(TM3, &t->setting.expiry);
	return !sequence_read_again(&t->sequence, count);
}

static __attribute__((cold, noinline)) void read_again(const struct timer *t, uint32_t *ret_owner, struct setting *ret)
{
	while (!read_once(t, ret_owner, ret))
		;
}

QUIESCE_FAST bool rcu_seqlock_get(uintptr_t id, uint32_t owner, struct setting *ret)
{
	const struct timer *t;
	uint32_t found = NO_OWNER;

	rcu_read_lock();
	t = idr_find(&ids, id);
	if (t && alive(t) && quiesce_unlikely(!read_once(t, &found, ret)))
		read_again(t, &found, ret);
	rcu_read_unlock();
	return found == owner;
}
GET_OWN(rcu_seqlock)

/* ---- typesafe: a timer is free to be another one as soon as it is removed, and a lookup finds that out ---- */

static struct kmem_cache *timers;

/* Called once for the memory, not for each timer that it becomes: a lookup may have the lock of a timer that is being created. */
static void construct(void *object)
{
	struct timer *t = memset(object, 0, sizeof(*t));

	canary_init(&t->canary); /* it stays so, because the memory lives; the setting says of which timer it is */
	quiesce_store_relaxed(&t->owner, NO_OWNER); /* Relaxed: no lookup has the address. */
}

static bool make_cache(void)
{
	timers = kmem_cache_create("timers", sizeof(struct timer), 0, SLAB_HWCACHE_ALIGN | SLAB_TYPESAFE_BY_RCU, construct);
	return timers != NULL;
}

QUIESCE_FAST struct timer *typesafe_lock(uintptr_t id, uint32_t owner, bool checked)
{
	struct timer *t;

	rcu_read_lock();
	t = idr_find(&ids, id);
	if (t) {
		if (quiesce_unlikely(timer_watched))
			delay();
		if (!claim_memory(t, owner)) {
			t = NULL;
		} else if (checked && quiesce_unlikely(t->id != id)) {
			spin_unlock(&t->lock);
			t = NULL;
		}
	}
	rcu_read_unlock();
	return t;
}

QUIESCE_FAST struct timer *typesafe_lock_timer(uintptr_t id, uint32_t owner)
{
	return typesafe_lock(id, owner, true);
}
GET_LOCKED(typesafe)
GET_OWN(typesafe)

/* Busted: by the owner alone a lookup cannot distinguish two of its own timers, which took turns in the same memory. */
QUIESCE_FAST struct timer *typesafe_owner_lock_timer(uintptr_t id, uint32_t owner)
{
	return typesafe_lock(id, owner, false);
}
GET_LOCKED(typesafe_owner)
GET_OWN(typesafe_owner)

/* Lookups of the id wait for the lock until the timer is whole, and so do late ones of what the memory was before. */
static int typesafe_create(struct worker *w, uintptr_t *ret_id)
{
	struct timer *t;
	int id = idr_preload(&w->nodes);

	if (id)
		return id;
	t = kmem_cache_alloc(timers);
	if (!t)
		return -ENOMEM;
	spin_lock(&t->lock);
	id = idr_alloc_preloaded(&ids, &w->nodes, t, FIRST_ID, 0);
	if (id >= 0) {
		t->id = *ret_id = (uintptr_t)id;
		write_setting(t, w->owner, w->created++);
	}
	spin_unlock(&t->lock);
	if (id < 0)
		kmem_cache_free(timers, t);
	return id < 0 ? id : 0;
}

static void typesafe_retire(struct timer *t, uintptr_t id)
{
	(void)idr_remove(&ids, id);
	kmem_cache_free(timers, t);
	if (timer_watched) {
		(void)quiesce_fetch_add_relaxed(&table.freed, (uint64_t)1); /* Relaxed: a count. */
		delay(); /* others take the id, or the memory, and this worker the rest */
	}
}

/* ---- none ---- */

QUIESCE_FAST struct timer *none_lock_timer(uintptr_t id, uint32_t owner)
{
	struct timer *t = idr_find(&ids, id);

	return t && claim(t, owner) ? t : NULL;
}
GET_LOCKED(none)
GET_OWN(none)

static void none_retire(struct timer *t, uintptr_t id)
{
	(void)idr_remove(&ids, id);
	bury(t);
}

/* ---- kernel: the real ones, a system call each; their owner is the process ---- */

static inline bool kernel_get(uintptr_t id, uint32_t owner, struct setting *ret)
{
	struct itimerspec spec;

	(void)owner;
	if (timer_gettime((timer_t)id, &spec)) /* the C library's ids are the kernel's where no thread is to be notified */
		return false;
	ret->interval = (uint64_t)spec.it_interval.tv_sec;
	ret->expiry = (uint64_t)spec.it_value.tv_sec;
	return true;
}
GET_OWN(kernel)

static int kernel_create(struct worker *w, uintptr_t *ret_id)
{
	struct sigevent nothing = { .sigev_notify = SIGEV_NONE };
	timer_t timer;

	(void)w;
	if (timer_create(CLOCK_MONOTONIC, &nothing, &timer))
		return -errno;
	*ret_id = (uintptr_t)timer;
	return 0;
}

static void kernel_delete(uintptr_t id)
{
	timer_delete((timer_t)id);
	(void)quiesce_fetch_add_relaxed(&table.freed, (uint64_t)1); /* Relaxed: a count. */
}

static bool is_kernel(void)
{
	return table.way->create == kernel_create;
}

/* ---- the choice ---- */

const struct case_choice ids_variants[] = {
	{ "global_spin", "one spinlock for all, held until the timer's lock is held", false },
	{ "global_ticket", "one spinlock for all, first come, first served", false },
	{ "global_pthread_spin", "one spinlock of the C library for all, which never yields", false },
	{ "global_mutex", "one mutex of the C library for all", false },
	{ "bucket_lock", "a spinlock for each of 512 chains", false },
	{ "rcu_lock", "a section until the timer's lock is held", false },
	{ "rcu_seqlock", "a section, and a sequence count instead of the timer's lock", false },
	{ "typesafe", "a section until the timer's lock is held; timers are freed at once, into a type-safe cache", false },
	{ "kernel", "timer_gettime() of this kernel", false },
	{ "typesafe_owner", "typesafe, but a lookup does not compare the id", true },
	{ "none", "nothing, and timers are freed at once", true },
	{ NULL, NULL, false },
};

/* The entries have the order of ids_variants. */
static const struct way ways[] = {
	{ global_spin_get, global_spin_get_own, global_spin_lock_timer, global_spin_insert, global_spin_retire, NULL },
	{ global_ticket_get, global_ticket_get_own, global_ticket_lock_timer, global_ticket_insert, global_ticket_retire, NULL },
	{ global_pthread_spin_get, global_pthread_spin_get_own, global_pthread_spin_lock_timer, global_pthread_spin_insert,
	  global_pthread_spin_retire, NULL },
	{ global_mutex_get, global_mutex_get_own, global_mutex_lock_timer, global_mutex_insert, global_mutex_retire, NULL },
	{ bucket_lock_get, bucket_lock_get_own, bucket_lock_lock_timer, bucket_lock_insert, bucket_lock_retire, NULL },
	{ rcu_lock_get, rcu_lock_get_own, rcu_lock_lock_timer, idr_insert, rcu_retire, NULL },
	{ rcu_seqlock_get, rcu_seqlock_get_own, rcu_lock_lock_timer, idr_insert, rcu_retire, NULL },
	{ typesafe_get, typesafe_get_own, typesafe_lock_timer, NULL, typesafe_retire, typesafe_create },
	{ .get = kernel_get, .get_own = kernel_get_own, .create = kernel_create },
	{ typesafe_owner_get, typesafe_owner_get_own, typesafe_owner_lock_timer, NULL, typesafe_retire, typesafe_create },
	{ none_get, none_get_own, none_lock_timer, idr_insert, none_retire, NULL },
};

void ids_init(const struct case_choice *variant, bool watched)
{
	pthread_spin_init(&ids_pthread_spin, PTHREAD_PROCESS_PRIVATE);
	table.way = &ways[variant - ids_variants];
	timer_watched = watched;
	if (table.way->create == typesafe_create && !make_cache()) {
		case_note("no memory for a cache");
		exit(CASE_FAILED);
	}
}

void ids_exit(void)
{
	rcu_barrier(); /* timers */
	idr_destroy(&ids);
	kmem_cache_destroy(timers);
	rcu_barrier(); /* what the tree was made of */
}

/* ---- for workers ---- */

static int create(struct worker *w, uintptr_t *ret_id)
{
	struct timer *t = calloc(1, sizeof(*t));
	int err;

	if (!t)
		return -ENOMEM;
	canary_init(&t->canary);
	write_setting(t, w->owner, w->created++);
	err = table.way->insert(w, t, ret_id);
	if (err)
		free(t);
	return err;
}

int ids_create(struct worker *w, uint32_t i)
{
	uintptr_t id;
	int err = table.way->create ? table.way->create(w, &id) : create(w, &id);

	if (!err)
		quiesce_store_relaxed(&w->id[i], id); /* Relaxed: a number. */
	return err;
}

void ids_delete(struct worker *w, uint32_t i)
{
	uintptr_t id = quiesce_load_relaxed(&w->id[i]); /* Relaxed: the worker's own. */
	struct timer *t;

	/* Relaxed: a number.  Before it is free to be given out again. */
	quiesce_store_relaxed(&w->id[i], NO_ID);
	if (is_kernel()) {
		kernel_delete(id);
		return;
	}
	t = table.way->lock_timer(id, w->owner);
	if (!t) {
		w->failed++;
		return;
	}
	write_setting(t, NO_OWNER, 0);
	spin_unlock(&t->lock);
	(void)alive(t); /* I still have its address */
	table.way->retire(t, id);
}

void ids_change(struct worker *w, uint32_t i, uint64_t time)
{
	struct timer *t;

	if (is_kernel())
		return;
	t = table.way->lock_timer(quiesce_load_relaxed(&w->id[i]), w->owner); /* Relaxed: the worker's own. */
	if (!t) {
		w->failed++;
		return;
	}
	write_setting(t, w->owner, time);
	spin_unlock(&t->lock);
}

bool ids_get(const struct worker *w, uintptr_t id, struct setting *ret)
{
	return table.way->get(id, w->owner, ret);
}

void ids_get_own(struct worker *w, uint32_t n)
{
	table.way->get_own(w, n);
}

bool ids_plausible(const struct worker *w, uintptr_t id, const struct setting *setting)
{
	static const struct canary dead = { 0 };

	if (is_kernel())
		return true;
	/* It is another timer than that of the id, which was freed. */
	if (table.way->create && setting->interval / MAX_OWNERS % MAX_IDS != id % MAX_IDS)
		return canary_sings(&dead);
	return setting->expiry == 3 * setting->interval && setting->interval % MAX_OWNERS == w->owner;
}

uint64_t ids_freed(void)
{
	return quiesce_load_relaxed(&table.freed); /* Relaxed: a count. */
}
