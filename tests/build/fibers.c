/* SPDX-License-Identifier: MIT */
/* fibers.c - each inline call, several times in one function, with switch_() in between; for fibers.py, which searches for
 * values of a thread that a compiler keeps over switch_(), where the function goes on in another thread. */
#if defined(FACE)
#include <urcu/urcu-mb.h>
#include <urcu/urcu-memb.h>
#include <urcu/urcu-qsbr.h>
#else
#include <quiesce/counted_ptr.h>
#include <quiesce/hazptr.h>
#include <quiesce/percpu_ref.h>
#include <quiesce/slab.h>
#include <quiesce/percpu_rwsem.h>
#include <quiesce/rcu.h>
#include <quiesce/shazptr.h>
#include <quiesce/srcu.h>
#endif
#include <quiesce/detail/qsbr.h>

QUIESCE_BEGIN_DECLS

void switch_(void);
int some(void);
void use(const void *at);

/* In a line; in a loop; in the ways of a loop and around it, so that what they share is taken out of it. */
#define CALL(name, type, ...)                              \
	void line_##name(type *a);                         \
	void line_##name(type *a)                          \
	{                                                  \
		use(a);                                    \
		{ __VA_ARGS__; }                           \
		switch_();                                 \
		{ __VA_ARGS__; }                           \
		switch_();                                 \
		{ __VA_ARGS__; }                           \
	}                                                  \
	void loop_##name(type *a);                         \
	void loop_##name(type *a)                          \
	{                                                  \
		for (use(a); some(); switch_()) {          \
			__VA_ARGS__;                       \
		}                                          \
	}                                                  \
	void ways_##name(type *a);                         \
	void ways_##name(type *a)                          \
	{                                                  \
		if (some()) {                              \
			__VA_ARGS__;                       \
		} else                                     \
			switch_();                         \
		for (int i = 0; i < 24; i++) {             \
			if (i & 1) {                       \
				__VA_ARGS__;               \
				switch_();                 \
			} else {                           \
				use(a);                    \
				__VA_ARGS__;               \
				use(a);                    \
			}                                  \
			switch_();                         \
		}                                          \
		__VA_ARGS__;                               \
	}

#if defined(FACE)
CALL(memb, int, urcu_memb_read_lock(); use(a); urcu_memb_read_unlock())
CALL(memb_ongoing, int, *a += urcu_memb_read_ongoing())
CALL(mb, int, urcu_mb_read_lock(); use(a); urcu_mb_read_unlock())
CALL(mb_ongoing, int, *a += urcu_mb_read_ongoing())
CALL(qsbr, int, urcu_qsbr_thread_online(); urcu_qsbr_quiescent_state(); urcu_qsbr_thread_offline())
CALL(qsbr_ongoing, int, *a += urcu_qsbr_read_ongoing())
#else
struct held {
	void *where;
	void *found;
	hazptr_t *slot;
	struct hazptr_context ctx;
	struct shazptr_guard guard;
	struct rcu_head rcu;
	struct hazptr_head hazptr;
};

struct counting {
	struct counted counted;
	struct counting *where;
	hazptr_t *slot;
};

CALL(rcu_read_lock, int, rcu_read_lock())
CALL(rcu_read_unlock, int, rcu_read_unlock())
CALL(rcu_section, int *, rcu_read_lock(); use(rcu_dereference(*a)); rcu_read_unlock())
CALL(rcu_read_lock_held, int, *a += rcu_read_lock_held())
CALL(shazptr_acquire, struct held, a->guard = shazptr_acquire(a))
CALL(shazptr_protect, struct held, a->guard = shazptr_protect(&a->where))
CALL(shazptr_tryprotect, struct held, a->guard = shazptr_tryprotect(&a->where))
CALL(shazptr_clear, struct held, shazptr_clear(a->guard))
CALL(shazptr_section, struct held, struct shazptr_guard guard = shazptr_protect(&a->where); use(shazptr_ptr(guard)); shazptr_clear(guard))
CALL(hazptr_alloc, struct held, a->slot = hazptr_alloc(NULL))
CALL(hazptr_alloc_of_ctx, struct held, a->slot = hazptr_alloc(&a->ctx))
CALL(hazptr_alloc_array, struct held, a->slot = hazptr_alloc_array(NULL, 3))
CALL(hazptr_free, struct held, hazptr_free(NULL, a->slot))
CALL(hazptr_protect, struct held, a->found = hazptr_protect(a->slot, &a->where))
CALL(hazptr_tryprotect, struct held, a->found = hazptr_tryprotect(a->slot, &a->where))
CALL(hazptr_clear, struct held, hazptr_clear(a->slot))
CALL(hazptr_section, struct held, hazptr_t *slot = hazptr_alloc(NULL); use(hazptr_protect(slot, &a->where)); hazptr_free(NULL, slot))
CALL(shazptr_protect_detached, struct held, a->guard = shazptr_protect_detached(&a->where))
CALL(hazptr_protect_masked, struct held, a->found = hazptr_protect_masked(a->slot, &a->where, 1))
CALL(kfree_rcu, struct held, kfree_rcu(a, rcu))
CALL(kfree_hazptr, struct held, kfree_hazptr(a, hazptr))
CALL(counted_protect, struct counting, use(counted_protect(a->slot, &a->where, counted)))
CALL(counted_tryprotect, struct counting, use(counted_tryprotect(a->slot, &a->where, counted)))
CALL(counted_publish, struct counting, counted_publish(&a->where, a, counted))
CALL(counted_load, struct held, a->found = quiesce__counted_load(&a->where, 8))
CALL(counted_get, struct counted, counted_get(a))
CALL(counted_tryget, struct counted, use(counted_tryget(a) ? a : NULL))
CALL(counted_put, struct counted, counted_put(a))
CALL(percpu_ref_get, struct percpu_ref, percpu_ref_get(a))
CALL(percpu_ref_tryget, struct percpu_ref, use(percpu_ref_tryget(a) ? a : NULL))
CALL(percpu_ref_tryget_live, struct percpu_ref, use(percpu_ref_tryget_live(a) ? a : NULL))
CALL(percpu_ref_put, struct percpu_ref, percpu_ref_put(a))
CALL(kmem_cache_alloc, struct kmem_cache, use(kmem_cache_alloc(a)))
CALL(kmem_cache_free, struct kmem_cache, kmem_cache_free(a, some() ? a : NULL))
CALL(srcu_read_lock, struct srcu_struct, use(srcu_read_lock(a) ? a : NULL))
CALL(srcu_read_unlock, struct srcu_struct, srcu_read_unlock(a, some()))
CALL(srcu_down_read, struct srcu_struct, use(srcu_down_read(a) ? a : NULL))
CALL(srcu_up_read, struct srcu_struct, srcu_up_read(a, some()))
CALL(percpu_down_read, struct percpu_rw_semaphore, percpu_down_read(a))
CALL(percpu_down_read_trylock, struct percpu_rw_semaphore, use(percpu_down_read_trylock(a) ? a : NULL))
CALL(percpu_up_read, struct percpu_rw_semaphore, percpu_up_read(a))
CALL(qsbr, int, quiesce__qsbr_online(); quiesce__qsbr_quiescent_state(); *a += quiesce__qsbr_ongoing(); quiesce__qsbr_offline())

/* Planted functions that the test must find show that it can fail. */
int planted_address(void);
int planted_address(void)
{
	struct quiesce_tls_v1 *self = quiesce__self();

	__asm__ __volatile__("" : "+r"(self)); /* raw: now it is a number like any other */
	switch_();
	return (int)self->state;
}

void planted_slot(void);
void planted_slot(void)
{
	uintptr_t *slot = quiesce_own_load_relaxed(quiesce__own(), shazptr_own);

	switch_();
	*slot = 0;
}

int planted_value(void);
int planted_value(void)
{
	uint64_t word = quiesce_own_load_relaxed(quiesce__own(), rcu_word);

	switch_();
	return word == 1;
}

void planted_note(struct quiesce_tls_v1 **note);
void planted_note(struct quiesce_tls_v1 **note)
{
	*note = quiesce__self();
}
#endif

QUIESCE_END_DECLS
