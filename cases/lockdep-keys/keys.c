/* SPDX-License-Identifier: MIT */
/* keys.c - the registry, as the kernel's lockdep has one: what lookups do to be waited for, and the waits.
 *
 *	                 a lookup                                 the wait
 *	rcu              is inside a section                      for every section
 *	shazptr_bucket   has a guard of the bucket's address      for guards of that bucket
 *	shazptr_object   has a guard of the key it stands on      for guards of that key
 *	hazptr_cohort    has a slot with the key it stands on     once, for slots with any of all the keys
 *
 * I1. An updater of a bucket has the registry's lock; lookups take no lock.
 * I2. A key's link gets its mark, the low bit, before the key is unlinked, and so before the wait: a lookup that reads a link without
 *     it was at a key that was still in the list.
 * I3. So a lookup may go from key to key: it protects what the link leads to, reads the link again, and goes on only if that is the
 *     same and has no mark.  Either the wait for the next key sees the protection; or the lookup sees all that was written
 *     before the wait, that is another link, or the mark, and begins again at the bucket.  (The mark is for keys that are
 *     unlinked together.  With a wait for each, no key is unlinked while a lookup stands on the one before.)
 * I4. Buckets are never freed, so their addresses may be protected before the walk, and need not be checked again.
 *
 * Links are published by rcu_assign_pointer(), and followed by rcu_dereference() or by the protecting loads, which acquire.
 */
#include "keys.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include <quiesce/atomic.h>
#include <quiesce/rcu.h>
#include <quiesce/shazptr.h>

#define MARK ((uintptr_t)1)
#define SLICE_NS 10000000u

uint64_t keys_freed;

/* ---- updates ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_marked(const struct key *link)
{
	return (uintptr_t)link & MARK;
}

static struct key *marked(struct key *link)
{
	return (struct key *)((uintptr_t)link | MARK);
}

static struct key *unmarked(struct key *link)
{
	return (struct key *)((uintptr_t)link & ~MARK);
}

struct key *new_key(struct bucket *bucket)
{
	struct key *key = calloc(1, sizeof(*key));

	if (!key) {
		case_note("no memory for a key");
		exit(CASE_FAILED);
	}
	canary_init(&key->canary);
	pthread_mutex_lock(&lock);
	RCU_INIT_POINTER(key->next, rcu_access_pointer(bucket->first));
	rcu_assign_pointer(bucket->first, key);
	pthread_mutex_unlock(&lock);
	return key;
}

void unlink_key(struct bucket *bucket, struct key *key)
{
	struct key **where = &bucket->first, *at, *next;

	pthread_mutex_lock(&lock);
	while ((at = rcu_access_pointer(*where)) != key)
		where = &at->next;
	next = rcu_access_pointer(key->next);
	rcu_assign_pointer(key->next, marked(next)); /* I2 */
	rcu_assign_pointer(*where, next);
	pthread_mutex_unlock(&lock);
}

/* Free a key, in the control thread. */
void free_key(struct key *key)
{
	keys_freed++;
	canary_free(key, &key->canary);
}

/* ---- lookups ---- */

/* With --check a lookup takes its time, to see its key die.  False: it did. */
static bool stand_on(struct walker *w, const struct key *key)
{
	uint64_t random;

	if (quiesce_likely(!w->check))
		return true;
	w->visits++;
	if (!canary_sings(&key->canary))
		return false;
	random = random_next(&w->random) >> 40;
	for (uint32_t i = 0; i < random % 64; i++)
		quiesce_cpu_relax();
	if (random % 32 == 0)
		sched_yield();
	return canary_sings(&key->canary);
}

/* Sleep on a key, as a reader that does not run does; in slices, so that a measurement can end. */
static void stay(const struct walker *w)
{
	uint64_t slice;

	for (uint64_t ns = w->stay_ns; ns && !quiesce_load_relaxed(w->stop); ns -= slice) { /* Relaxed: soon is enough. */
		slice = ns < SLICE_NS ? ns : SLICE_NS;
		sleep_ns(slice);
	}
}

/* All keys that can be met are protected already.  One that has been unlinked still leads on. */
static bool walk(struct walker *w, struct bucket *bucket, uintptr_t address)
{
	for (struct key *key = rcu_dereference(bucket->first); key; key = unmarked(rcu_dereference(key->next))) {
		if (!stand_on(w, key))
			return false; /* the link of a dead key may lead anywhere */
		if ((uintptr_t)key == address) {
			stay(w);
			return true;
		}
	}
	return false;
}

static bool find_rcu(struct walker *w, struct bucket *bucket, uintptr_t address)
{
	bool found;

	rcu_read_lock();
	found = walk(w, bucket, address);
	rcu_read_unlock();
	return found;
}

static bool find_shazptr_bucket(struct walker *w, struct bucket *bucket, uintptr_t address)
{
	shazptr_scoped struct shazptr_guard guard = shazptr_acquire(bucket); /* I4 */

	return walk(w, bucket, address);
}

/* From key to key (I3): the guard of a key is cleared when the next one is protected. */
static bool find_shazptr_object(struct walker *w, struct bucket *bucket, uintptr_t address)
{
	struct shazptr_guard at = { NULL, NULL }, next;
	struct key **where = &bucket->first, *key;
	bool found = false;

	for (;;) {
		next = shazptr_protect(where);
		shazptr_clear(at);
		at = next;
		key = shazptr_ptr(at);
		if (!key)
			return false;
		if (is_marked(key)) {
			where = &bucket->first;
			continue;
		}
		found = (uintptr_t)key == address;
		if (!stand_on(w, key) || found)
			break;
		where = &key->next;
	}
	if (found)
		stay(w);
	shazptr_clear(at);
	return found;
}

/* Search with two slots that the reader keeps: a slot that is set again no longer protects its previous key. */
static bool find_hazptr(struct walker *w, struct bucket *bucket, uintptr_t address)
{
	struct key **where = &bucket->first, *key;
	bool found = false;

	for (int turn = 0;; turn ^= 1) {
		key = hazptr_protect(w->slot[turn], where);
		if (!key)
			break;
		if (is_marked(key)) {
			where = &bucket->first;
			continue;
		}
		found = (uintptr_t)key == address;
		if (!stand_on(w, key) || found)
			break;
		where = &key->next;
	}
	if (found)
		stay(w);
	hazptr_clear(w->slot[0]);
	hazptr_clear(w->slot[1]);
	return found;
}

/* ---- waits ---- */

static void wait_rcu(struct bucket *bucket, struct key *key)
{
	(void)bucket, (void)key;
	synchronize_rcu();
}

static void wait_expedited(struct bucket *bucket, struct key *key)
{
	(void)bucket, (void)key;
	synchronize_rcu_expedited();
}

static void wait_bucket(struct bucket *bucket, struct key *key)
{
	(void)key;
	synchronize_shazptr(bucket);
}

static void wait_object(struct bucket *bucket, struct key *key)
{
	(void)bucket;
	synchronize_shazptr(key);
}

static struct hazptr_cohort cohort = HAZPTR_COHORT_INIT;

static void reclaim_key(struct hazptr_head *head)
{
	free_key((struct key *)head);
}

static void retire_key(struct key *key)
{
	call_hazptr_cohort(&cohort, &key->hazptr, reclaim_key);
}

static void wait_cohort(struct bucket *bucket, struct key *key)
{
	(void)bucket, (void)key;
	synchronize_hazptr_cohort(&cohort);
}

static void wait_not(struct bucket *bucket, struct key *key)
{
	(void)bucket, (void)key;
}

const struct case_choice variants[] = {
	{ "rcu", "synchronize_rcu() for each key", false },
	{ "rcu_expedited", "synchronize_rcu_expedited() for each key", false },
	{ "rcu_batched", "unlink all Q keys, one synchronize_rcu(), free them", false },
	{ "shazptr_bucket", "readers guard the bucket; synchronize_shazptr() of it for each key", false },
	{ "shazptr_object", "readers guard key after key; synchronize_shazptr() for each key", false },
	{ "hazptr_cohort", "readers protect key after key in slots; retire all Q, one wait", false },
	{ "none", "free without waiting", true },
	{ NULL, NULL, false },
};

const struct method methods[] = {
	{ .find = find_rcu, .wait = wait_rcu },
	{ .find = find_rcu, .wait = wait_expedited },
	{ .find = find_rcu, .wait = wait_rcu, .batched = true },
	{ .find = find_shazptr_bucket, .wait = wait_bucket },
	{ .find = find_shazptr_object, .wait = wait_object },
	{ .find = find_hazptr, .wait = wait_cohort, .batched = true, .retire = retire_key, .slots = true },
	{ .find = walk, .wait = wait_not },
};
