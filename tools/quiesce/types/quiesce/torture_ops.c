/* SPDX-License-Identifier: MIT */
/* torture_ops.c - percpu_rwsem, SRCU, percpu_ref and slab as torture calls them, and variants that are broken on purpose. */
#include "ours.h"
#include "torture_ops.h"
#include "types/busted.h"
#include "registry.h"

/* ---- locks ---- */

static bool rwsem_read(struct percpu_rw_semaphore *sem, uint64_t timeout_ns)
{
	if (timeout_ns == UINT64_MAX)
		percpu_down_read(sem);
	else
		return timeout_ns ? percpu_down_read_timeout(sem, timeout_ns) : percpu_down_read_trylock(sem);
	return true;
}

static void rwsem_read_end(struct percpu_rw_semaphore *sem)
{
	percpu_up_read(sem);
}

static bool rwsem_write(struct percpu_rw_semaphore *sem, uint64_t timeout_ns)
{
	if (timeout_ns == UINT64_MAX)
		percpu_down_write(sem);
	else
		return timeout_ns ? percpu_down_write_timeout(sem, timeout_ns) : percpu_down_write_trylock(sem);
	return true;
}

static void rwsem_write_end(struct percpu_rw_semaphore *sem)
{
	percpu_up_write(sem);
}

const struct torture_rwsem_ops torture_rwsem_ops = { rwsem_read, rwsem_read_end, rwsem_write, rwsem_write_end };

/* Readers that writers do not count. */
static bool busted_read(struct percpu_rw_semaphore *sem, uint64_t timeout_ns)
{
	(void)timeout_ns;
	return !percpu_is_write_locked(sem);
}

static void busted_read_end(struct percpu_rw_semaphore *sem)
{
	(void)sem;
}

const struct torture_rwsem_ops torture_busted_rwsem_ops = { busted_read, busted_read_end, rwsem_write, rwsem_write_end };

TYPE(percpu_rwsem, .rank = 620,
	.what = "quiesce's reader-writer lock with readers counted per CPU",
	OURS, .torture = &torture_rwsem);

TYPE(busted_percpu_rwsem, .rank = 630,
	.what = "reader-writer lock whose users check and do not count: torture must notice",
	.broken = true, .init = op_rcu_init, .stats = op_rcu_stats, .torture = &torture_busted_rwsem);

/* ---- domains ---- */

DEFINE_SRCU(torture_domain);

/* Sections nest, in signal handlers, too: an entry is taken before it is filled. */
#define DEPTH 32
/* raw: between a thread and its own signal handler. */
static __thread volatile uint32_t depth;
static __thread int section[DEPTH];

static void srcu_lock(void)
{
	uint32_t mine = depth;

	depth = mine + 1;
	section[mine % DEPTH] = srcu_read_lock(&torture_domain);
}

static void srcu_unlock(void)
{
	uint32_t mine = depth - 1;

	srcu_read_unlock(&torture_domain, section[mine % DEPTH]);
	depth = mine;
}

OP_FUNCTION(srcu_wait, synchronize_srcu(&torture_domain))
OP_FUNCTION(srcu_expedited, synchronize_srcu_expedited(&torture_domain))

static void srcu_call(struct op_head *head)
{
	call_srcu(&torture_domain, (struct rcu_head *)head->space, rcu_run_callback);
}

OP_FUNCTION(srcu_wait_for_calls, srcu_barrier(&torture_domain))

static uint64_t srcu_get(void)
{
	return get_state_synchronize_srcu(&torture_domain).value;
}

static uint64_t srcu_start(void)
{
	return start_poll_synchronize_srcu(&torture_domain).value;
}

static int srcu_poll(uint64_t cookie)
{
	return poll_state_synchronize_srcu(&torture_domain, (struct rcu_gp_seq){ cookie });
}

static void srcu_cond(uint64_t cookie)
{
	if (!srcu_poll(cookie))
		synchronize_srcu(&torture_domain);
}

static void *srcu_fetch(void **where)
{
	return srcu_dereference(*where, &torture_domain);
}

static void srcu_publish(void **where, void *object)
{
	rcu_assign_pointer(*where, object);
}

static const struct op_read read_ops = { .lock = srcu_lock, .unlock = srcu_unlock };
static const struct op_wait wait_ops = { .wait = srcu_wait, .expedited = srcu_expedited };
static const struct op_retire retire_ops = { .call = srcu_call, .barrier = srcu_wait_for_calls };
static const struct op_polled polled_ops = { srcu_get, srcu_start, srcu_poll, srcu_cond };
static const struct op_pointer pointer_ops = { srcu_fetch, srcu_publish };

TYPE(srcu, .rank = 600,
	.what = "quiesce SRCU: sleeping readers, several domains",
	OURS, .read = &read_ops, .wait = &wait_ops, .retire = &retire_ops, .polled = &polled_ops,
	.pointer = &pointer_ops, .torture = &torture_srcu);

TYPE(busted_srcu, .rank = 610,
	.what = "SRCU whose updaters do not wait: torture must notice",
	.broken = true, .read = &read_ops, .wait = &busted_wait, .retire = &busted_retire, .polled = &busted_polled,
	.pointer = &pointer_ops, .init = op_rcu_init, .stats = op_rcu_stats, .torture = &torture_srcu);

/* ---- counts ---- */

static void ref_get(struct percpu_ref *ref, unsigned long nr)
{
	if (nr == 1)
		percpu_ref_get(ref);
	else
		percpu_ref_get_many(ref, nr);
}

static void ref_put(struct percpu_ref *ref, unsigned long nr)
{
	if (nr == 1)
		percpu_ref_put(ref);
	else
		percpu_ref_put_many(ref, nr);
}

static bool ref_tryget(struct percpu_ref *ref, bool live)
{
	return live ? percpu_ref_tryget_live(ref) : percpu_ref_tryget(ref);
}

const struct torture_ref_ops torture_ref_ops = { ref_get, ref_put, ref_tryget };

/* Users that only check whether the reference is dying, and are not counted. */
static void busted_count(struct percpu_ref *ref, unsigned long nr)
{
	(void)ref, (void)nr;
}

static bool busted_tryget(struct percpu_ref *ref, bool live)
{
	(void)live;
	return !percpu_ref_is_dying(ref);
}

const struct torture_ref_ops torture_busted_ref_ops = { busted_count, busted_count, busted_tryget };

TYPE(percpu_ref, .rank = 640,
	.what = "quiesce's reference count per CPU",
	OURS, .torture = &torture_ref);

TYPE(busted_percpu_ref, .rank = 650,
	.what = "reference count whose users are not counted: torture must notice",
	.broken = true, .init = op_rcu_init, .stats = op_rcu_stats, .torture = &torture_busted_ref);

/* ---- caches ---- */

static struct kmem_cache *create(size_t bytes, void (*construct)(void *object))
{
	return kmem_cache_create("tortured", bytes, 0, SLAB_TYPESAFE_BY_RCU, construct);
}

const struct torture_slab_ops torture_slab_ops = { create };

/* Memory that goes back to the system at once. */
static struct kmem_cache *busted_create(size_t bytes, void (*construct)(void *object))
{
	return kmem_cache_create("tortured", bytes, 0, 0, construct);
}

const struct torture_slab_ops torture_busted_slab_ops = { busted_create };

TYPE(slab, .rank = 660,
	.what = "objects of a type-safe cache of quiesce, freed and reused at once",
	OURS, .torture = &torture_slab);

TYPE(busted_slab, .rank = 670,
	.what = "cache that is not type-safe, whose objects are freed at once: torture must notice",
	.broken = true, .init = op_rcu_init, .stats = op_rcu_stats, .torture = &torture_busted_slab);
