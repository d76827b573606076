/* SPDX-License-Identifier: MIT */
/* fastpath.c - the inline fast paths, one function each, for fastpath.py to read as instructions. */
#include <quiesce/detail/qsbr.h>
#include <quiesce/ds/hashmap.h>
#include <quiesce/ds/hashtable.h>
#include <quiesce/ds/idr.h>
#include <quiesce/ds/xarray.h>
#include <quiesce/hazptr.h>
#include <quiesce/percpu_ref.h>
#include <quiesce/slab.h>
#include <quiesce/percpu_rwsem.h>
#include <quiesce/rcu.h>
#include <quiesce/shazptr.h>
#include <quiesce/srcu.h>

int *fast_hazptr_protect(hazptr_t *slot, int **p);
int *fast_hazptr_tryprotect(hazptr_t *slot, int **p);
int fast_hazptr_section(hazptr_t *slot, int **p);
struct fast_node;
struct fast_node *fast_hazptr_walk(hazptr_t *slots, struct fast_node **head, long key);
struct fast_node *planted_hazptr_walk(hazptr_t **slots, struct fast_node **head, long key);
struct fast_node *fast_hazptr_set_walk(hazptr_t *ahead, hazptr_t *here, struct fast_node **where, long key);
struct fast_node *fast_hazptr_try_walk(hazptr_t *ahead, hazptr_t *here, struct fast_node **where, long key);
struct fast_node *planted_hazptr_set_walk(hazptr_t *ahead, hazptr_t *here, struct fast_node **where, long key);
int fast_hazptr_whole(int **p);
int fast_hazptr_whole_context(struct hazptr_context *ctx, int **p);
int *planted_hazptr_fence(hazptr_t *slot, int **p);
int *planted_hazptr_call(hazptr_t *slot, int **p);
int *planted_hazptr_long(hazptr_t *slot, int **p, int *q);
struct shazptr_guard fast_shazptr_acquire(const void *ptr);
void fast_shazptr_clear(struct shazptr_guard guard);
int fast_shazptr_section(int **p);
void planted_shazptr_fence(struct shazptr_guard guard);
struct shazptr_guard planted_shazptr_call(const void *ptr);
struct shazptr_guard planted_shazptr_long(const void *ptr, int *p);
void fast_percpu_down_read(struct percpu_rw_semaphore *sem);
void fast_percpu_up_read(struct percpu_rw_semaphore *sem);
int fast_percpu_rwsem_section(struct percpu_rw_semaphore *sem, int **p);
int fast_srcu_read_lock(struct srcu_struct *ssp);
void fast_srcu_read_unlock(struct srcu_struct *ssp, int idx);
int fast_srcu_section(struct srcu_struct *ssp, int **p);
void fast_percpu_ref_get(struct percpu_ref *ref);
void fast_percpu_ref_put(struct percpu_ref *ref);
bool fast_percpu_ref_tryget_live(struct percpu_ref *ref);
void *fast_kmem_cache_alloc(struct kmem_cache *cache);
void fast_kmem_cache_free(struct kmem_cache *cache, void *object);
void planted_count_fence(struct percpu_ref *ref);
void planted_count_call(struct percpu_ref *ref);
void planted_count_long(struct percpu_ref *ref, int *p);
struct flow {
	uint64_t id;
};
uint64_t fast_hashmap_lookup(const struct hashmap *map, uint64_t key);
struct flow *fast_hashtable_lookup(const struct hashtable *ht, const uint64_t *id);
uint64_t planted_table_fence(const struct hashmap *map, uint64_t key);
uint64_t planted_table_call(const struct hashmap *map, uint64_t key);
uint64_t planted_table_long(const struct hashmap *map, uint64_t key, int *p);
void *fast_idr_find(const struct idr *idr, unsigned long id);
struct file { /* a type of its own, so that its load is not compiled as a jump to that of an idr */
	long size;
	struct xarray pages;
};
void *fast_xa_load(const struct file *file, unsigned long index);
void *planted_idr_fence(const struct idr *idr, unsigned long id);
void *planted_idr_call(const struct idr *idr, unsigned long id);
void *planted_idr_long(const struct idr *idr, unsigned long id, int *p);
void fast_qsbr_quiescent_state(void);
void fast_qsbr_offline(void);
void fast_qsbr_online(void);
void planted_qsbr_two_fences(void);
void planted_qsbr_call(void);
void fast_rcu_read_lock(void);
void fast_rcu_read_unlock(void);
int fast_rcu_section(int **p);
void planted_fence(void);
void planted_call(void);
void planted_long(int *p);

void fast_rcu_read_lock(void) { rcu_read_lock(); }

void fast_rcu_read_unlock(void) { rcu_read_unlock(); }

int fast_rcu_section(int **p)
{
	int value;

	rcu_read_lock();
	value = *rcu_dereference(*p);
	rcu_read_unlock();
	return value;
}

struct shazptr_guard fast_shazptr_acquire(const void *ptr) { return shazptr_acquire(ptr); }

void fast_shazptr_clear(struct shazptr_guard guard) { shazptr_clear(guard); }

int fast_shazptr_section(int **p)
{
	struct shazptr_guard guard = shazptr_protect(p);
	int value = *(int *)shazptr_ptr(guard);

	shazptr_clear(guard);
	return value;
}

int *fast_hazptr_protect(hazptr_t *slot, int **p) { return hazptr_protect(slot, p); }

int *fast_hazptr_tryprotect(hazptr_t *slot, int **p) { return hazptr_tryprotect(slot, p); }

int fast_hazptr_section(hazptr_t *slot, int **p)
{
	int value = *hazptr_protect(slot, p);

	hazptr_clear(slot);
	return value;
}

struct fast_node {
	struct fast_node *next; /* bit 0: this node is to be unlinked */
	long key;
};

/* The search of a Michael list: three protections for each node, three slots that take turns, everything else in registers. */
struct fast_node *fast_hazptr_walk(hazptr_t *slots, struct fast_node **head, long key)
{
	hazptr_t *here = slots, *ahead = slots + 1, *behind = slots + 2, *free;
	struct fast_node **where = head, *node = hazptr_protect(here, where), *next;

	while (node) {
		next = hazptr_protect_masked(ahead, &node->next, 1);
		if (rcu_dereference(*where) != node || (uintptr_t)next & 1)
			return NULL;
		if (node->key >= key)
			return node;
		where = &node->next;
		node = next;
		free = behind;
		behind = here;
		here = ahead;
		ahead = free;
	}
	return NULL;
}

/* Hand over hand with two slots: each address is set, and the pointer that led to it is loaded again. */
struct fast_node *fast_hazptr_set_walk(hazptr_t *ahead, hazptr_t *here, struct fast_node **where, long key)
{
	struct fast_node *node;

	while ((node = rcu_dereference(*where)) != NULL) {
		hazptr_t *free = here;

		hazptr_set(ahead, node);
		if (quiesce_unlikely(rcu_dereference(*where) != node))
			return NULL;
		if (node->key >= key)
			break;
		where = &node->next;
		here = ahead;
		ahead = free;
	}
	return node;
}

struct fast_node *fast_hazptr_try_walk(hazptr_t *ahead, hazptr_t *here, struct fast_node **where, long key)
{
	struct fast_node *node;

	while ((node = hazptr_tryprotect(ahead, where)) != NULL && node->key < key) {
		hazptr_t *free = here;

		where = &node->next;
		here = ahead;
		ahead = free;
	}
	return node;
}

/* A call in the loop, for which it saves registers on the stack. */
struct fast_node *planted_hazptr_set_walk(hazptr_t *ahead, hazptr_t *here, struct fast_node **where, long key)
{
	struct fast_node *node;

	while ((node = rcu_dereference(*where)) != NULL) {
		hazptr_t *free = here;

		hazptr_set(ahead, node);
		if (quiesce_unlikely(rcu_dereference(*where) != node))
			quiesce__hazptr_set_slow(ahead, (uintptr_t)node);
		if (node->key >= key)
			break;
		where = &node->next;
		here = ahead;
		ahead = free;
	}
	return node;
}

/* A walk whose slots are reached through memory, as those of structures that take any scheme often are. */
struct fast_node *planted_hazptr_walk(hazptr_t **slots, struct fast_node **head, long key)
{
	struct fast_node **where = head, *node = hazptr_protect(slots[0], where), *next;

	while (node) {
		hazptr_t *here = slots[0];

		next = hazptr_protect_masked(slots[1], &node->next, 1);
		if (rcu_dereference(*where) != node || (uintptr_t)next & 1)
			return NULL;
		if (node->key >= key)
			return node;
		where = &node->next;
		node = next;
		slots[0] = slots[1];
		slots[1] = slots[2];
		slots[2] = here;
	}
	return NULL;
}

int fast_hazptr_whole(int **p)
{
	hazptr_t *slot = hazptr_alloc(NULL);
	int value = *hazptr_protect(slot, p);

	hazptr_free(NULL, slot);
	return value;
}

int fast_hazptr_whole_context(struct hazptr_context *ctx, int **p)
{
	hazptr_t *slot = hazptr_alloc(ctx);
	int value = *hazptr_protect(slot, p);

	hazptr_free(ctx, slot);
	return value;
}

void fast_percpu_down_read(struct percpu_rw_semaphore *sem) { percpu_down_read(sem); }

void fast_percpu_up_read(struct percpu_rw_semaphore *sem) { percpu_up_read(sem); }

int fast_percpu_rwsem_section(struct percpu_rw_semaphore *sem, int **p)
{
	int value;

	percpu_down_read(sem);
	value = **p;
	percpu_up_read(sem);
	return value;
}

int fast_srcu_read_lock(struct srcu_struct *ssp) { return srcu_read_lock(ssp); }

void fast_srcu_read_unlock(struct srcu_struct *ssp, int idx) { srcu_read_unlock(ssp, idx); }

int fast_srcu_section(struct srcu_struct *ssp, int **p)
{
	int idx = srcu_read_lock(ssp), value = *srcu_dereference(*p, ssp);

	srcu_read_unlock(ssp, idx);
	return value;
}

void fast_percpu_ref_get(struct percpu_ref *ref) { percpu_ref_get(ref); }

void fast_percpu_ref_put(struct percpu_ref *ref) { percpu_ref_put(ref); }

void *fast_kmem_cache_alloc(struct kmem_cache *cache) { return kmem_cache_alloc(cache); }

void fast_kmem_cache_free(struct kmem_cache *cache, void *object) { kmem_cache_free(cache, object); }

bool fast_percpu_ref_tryget_live(struct percpu_ref *ref) { return percpu_ref_tryget_live(ref); }

void *fast_idr_find(const struct idr *idr, unsigned long id) { return idr_find(idr, id); }

void *fast_xa_load(const struct file *file, unsigned long index) { return xa_load(&file->pages, index); }

HASHTABLE_TYPE(flow, struct flow, id);

uint64_t fast_hashmap_lookup(const struct hashmap *map, uint64_t key) { return hashmap_lookup(map, key); }

struct flow *fast_hashtable_lookup(const struct hashtable *ht, const uint64_t *id) { return flow_lookup(ht, id); }

/* Planted functions that the test must refuse show that it can fail. */
void planted_fence(void)
{
	rcu_read_lock();
	quiesce_fence_full(RU1);
}

void planted_call(void)
{
	rcu_read_lock();
	quiesce_synchronize_rcu();
}

void planted_long(int *p)
{
	rcu_read_lock();
	for (int i = 0; i < 12; i += 3)
		quiesce_store_relaxed(p + i, i);
}

void planted_shazptr_fence(struct shazptr_guard guard)
{
	shazptr_clear(guard);
	quiesce_fence_full(SH1);
}

struct shazptr_guard planted_shazptr_call(const void *ptr)
{
	quiesce_synchronize_shazptr(ptr);
	return shazptr_acquire(ptr);
}

struct shazptr_guard planted_shazptr_long(const void *ptr, int *p)
{
	for (int i = 0; i < 36; i += 3)
		quiesce_store_relaxed(p + i, i);
	return shazptr_acquire(ptr);
}

int *planted_hazptr_fence(hazptr_t *slot, int **p)
{
	quiesce_fence_full(HP1);
	return hazptr_protect(slot, p);
}

int *planted_hazptr_call(hazptr_t *slot, int **p)
{
	quiesce_synchronize_shazptr(*p);
	return hazptr_protect(slot, p);
}

int *planted_hazptr_long(hazptr_t *slot, int **p, int *q)
{
	for (int i = 0; i < 12; i += 3)
		quiesce_store_relaxed(q + i, i);
	return hazptr_protect(slot, p);
}

void planted_count_fence(struct percpu_ref *ref)
{
	percpu_ref_get(ref);
	quiesce_fence_full(PR1);
}

void planted_count_call(struct percpu_ref *ref)
{
	percpu_ref_get(ref);
	quiesce_synchronize_rcu();
}

void planted_count_long(struct percpu_ref *ref, int *p)
{
	percpu_ref_get(ref);
	for (int i = 0; i < 12; i += 3)
		quiesce_store_relaxed(p + i, i);
}

void *planted_idr_fence(const struct idr *idr, unsigned long id)
{
	quiesce_fence_full(ID1);
	return idr_find(idr, id);
}

void *planted_idr_call(const struct idr *idr, unsigned long id)
{
	quiesce_synchronize_rcu();
	return idr_find(idr, id);
}

void *planted_idr_long(const struct idr *idr, unsigned long id, int *p)
{
	for (int i = 0; i < 12; i += 3)
		quiesce_store_relaxed(p + i, i);
	for (int i = 1; i < 13; i += 3)
		quiesce_store_relaxed(p + i, i);
	return idr_find(idr, id);
}

uint64_t planted_table_fence(const struct hashmap *map, uint64_t key)
{
	quiesce_fence_full(HM1);
	return hashmap_lookup(map, key);
}

uint64_t planted_table_call(const struct hashmap *map, uint64_t key)
{
	quiesce_synchronize_rcu();
	return hashmap_lookup(map, key);
}

uint64_t planted_table_long(const struct hashmap *map, uint64_t key, int *p)
{
	for (int i = 0; i < 12; i += 3)
		quiesce_store_relaxed(p + i, i);
	for (int i = 1; i < 13; i += 3)
		quiesce_store_relaxed(p + i, i);
	return hashmap_lookup(map, key);
}

void fast_qsbr_quiescent_state(void)
{
	quiesce__qsbr_quiescent_state();
}

void fast_qsbr_offline(void)
{
	quiesce__qsbr_offline();
}

void fast_qsbr_online(void)
{
	quiesce__qsbr_online();
}

void planted_qsbr_two_fences(void)
{
	quiesce__qsbr_online();
	quiesce_fence_full(QS1);
}

void planted_qsbr_call(void)
{
	quiesce__qsbr_quiescent_slow();
	quiesce__qsbr_online();
}
