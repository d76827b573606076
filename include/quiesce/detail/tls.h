/* SPDX-License-Identifier: MIT */
/* quiesce/detail/tls.h - the library's per-thread state, and the shared words that claims of slots
 * read; private. */
#ifndef QUIESCE_DETAIL_TLS_H
#define QUIESCE_DETAIL_TLS_H

#include <quiesce/atomic.h>

QUIESCE_BEGIN_DECLS

/* The reader word: the low 16 bits as below, the grace-period number above.  One word, because with
 * two words, in any order of the stores, a signal handler or the code that it interrupts would be
 * unprotected. */
#define QUIESCE_RCU_DEPTH 0x1fffull     /* nesting depth; 0: outside; all ones: word set, fence to come */
#define QUIESCE_RCU_SLOW 0x2000ull      /* an updater requests the slow path of the outermost unlock */
#define QUIESCE_RCU_FULL 0x4000ull      /* full fences: the outermost lock takes the slow path */
#define QUIESCE_RCU_UNREG 0x8000ull     /* thread is not registered (or exits): every call takes the slow path */

struct quiesce__reader; /* registry entry, private */
struct quiesce__queue;  /* queue of retired objects, private */
struct quiesce__retired_queue; /* queue of retired objects of hazard pointers, private */
struct quiesce__run;    /* a call of the program's code, private */

/* A slot in the block of a CPU or concurrency id, which the thread uses while it has that id. */
struct quiesce__cached_slot {
	uintptr_t *slot;
	uint64_t id; /* all ones: none */
};

/* The library's per-thread state.  Only its thread writes it, except that updaters set
 * QUIESCE_RCU_SLOW in rcu_word by compare-and-exchange, and set qsbr_waiting, and that the helper
 * sets named_at. */
struct quiesce_tls_v1 {
	uint64_t rcu_word;              /* read by updaters */
	struct quiesce__reader *reader; /* NULL until registered */
	struct quiesce__queue *queue;   /* NULL until the first call_rcu() */
	uint32_t unregistered;          /* nesting of sections of an unregistered reader; private form */
	uint32_t state;                 /* private */
	const void *site;               /* debug build: where the outermost section began */
	uintptr_t *shazptr_own;         /* first slot of this thread's line; NULL: no line */
	struct quiesce__cached_slot shazptr_cached; /* used without a line: this slot, while the thread has this id */
	uintptr_t *shazptr_hint;        /* last shared slot of this thread; private */
	uintptr_t *hazptr;              /* first slot of this thread's line for hazptr.h; NULL: no line */
	struct quiesce__retired_queue *retired; /* NULL until the first call_hazptr() */
	uintptr_t *hazptr_spare;        /* line for the next context; private */
	uint32_t tid;                   /* thread id, private; 0: not read yet */
	uint32_t process;               /* generation of forks in which the thread was found new; private */
	struct quiesce__run *runs;      /* the innermost run of the program's code in this thread; private */
	uint64_t since;                 /* debug build: when the outermost section began */
	uint64_t qsbr_word;             /* grace-period number at the last quiescent state; 0: offline.  Read by updaters */
	uint32_t qsbr_waiting;          /* 1: an updater sleeps until qsbr_word changes; set by the updater */
	uint32_t qsbr_registered;
	uint64_t named_at;              /* time of the last call of the holdout hook for it; set by the helper */
};

/* The thread state lies at a constant distance from the thread pointer (model initial-exec) if it
 * is there when the program starts, or if the C library reserves memory for it, as glibc does.
 * Others, such as musl, refuse to load an object later that relies on that.  So with them the code
 * of shared objects calls the library for the thread state; that of programs does not.  A program
 * that defines QUIESCE_TLS_DYNAMIC, as 0 or 1, decides by itself. */
#if QUIESCE_TLS_DYNAMIC && defined(__PIC__) && !defined(__PIE__)
#define QUIESCE__OWN_BY_CALL 1
#define QUIESCE__TLS_MODEL
#else
#define QUIESCE__OWN_BY_CALL 0
#define QUIESCE__TLS_MODEL __attribute__((__tls_model__("initial-exec")))
#endif

#if defined(QUIESCE_SIM)
struct quiesce_tls_v1 *quiesce_sim_self(void);
#elif defined(QUIESCE_SCALE)
struct quiesce_tls_v1 *quiesce_scale_self(void);
#else
extern QUIESCE_DATA __thread struct quiesce_tls_v1 quiesce_tls_v1 QUIESCE__TLS_MODEL;
#endif

/* The thread state of the caller.  There are two ways to reach it, because no language knows that
 * a function may continue in another thread after a call, where a program switches fibers or its
 * coroutines await: compilers keep addresses of thread-local variables across calls.
 *
 * quiesce__self() - for the library: an address, which compilers keep.  Functions of the library,
 * and so the callbacks that they run, return in the thread that called them.
 * quiesce__own() - for code that is inlined into programs: once in each call, in the middle of
 * which no switch happens.  All that compilers may keep of it is the distance of the thread state
 * from the thread pointer, a constant of the process.  The thread pointer is read by the instruction
 * that accesses the thread state, or by one that the compiler neither drops nor moves across a call.
 * Where the CPU's file in quiesce/arch/ has no such instruction the compiler's own is used, or, in
 * programs that define QUIESCE_FIBERS, a call.
 */
#if defined(QUIESCE_SIM)
#define quiesce__self() quiesce_sim_self()
#elif defined(QUIESCE_SCALE) /* tests/scale/, whose threads are not the system's */
#define quiesce__self() quiesce_scale_self()
#else
#define quiesce__self() (&quiesce_tls_v1)
#endif
QUIESCE_API struct quiesce_tls_v1 *quiesce__own_call(void);

/* The address of a thread-local @variable of @type in the second way; @call is the function that
 * returns it. */
#if defined(quiesce__tls_offset) && !QUIESCE__OWN_BY_CALL
#define QUIESCE__OWN_ADDRESS(type, variable, call) \
	QUIESCE_CAST(type *, QUIESCE_CAST(void *, quiesce__thread_at(quiesce__tls_offset(variable))))
#elif defined(QUIESCE_FIBERS) || QUIESCE__OWN_BY_CALL
#define QUIESCE__OWN_ADDRESS(type, variable, call) call()
#else
#define QUIESCE__OWN_ADDRESS(type, variable, call) (&variable)
#endif

/* The result of quiesce__own(), and accesses to its fields.  Relaxed: the thread's own; a release
 * is for updaters, _u32() for fields that no other thread reads.  ThreadSanitizer and the
 * perturbing build need addresses. */
#if QUIESCE_HAVE_SEGMENT && !QUIESCE_TSAN && !defined(QUIESCE_SIM) && !defined(QUIESCE_PERTURB) && !QUIESCE__OWN_BY_CALL
#define QUIESCE_OWN_BY_SEGMENT 1
/* Files of one program may differ in the form of the thread state, so its types have two names. */
#define quiesce__own_block quiesce__own_segment
struct quiesce__own_segment {
	int64_t at; /* distance from the thread pointer */
};
#define QUIESCE__OWN_AT quiesce__tls_offset(quiesce_tls_v1)
#define quiesce_own_load_relaxed(self, field) quiesce__segment_load((self).at, struct quiesce_tls_v1, field)
#define quiesce_own_load_u32(self, field) quiesce__segment_load_u32((self).at, struct quiesce_tls_v1, field)
#define quiesce_own_store_relaxed(self, field, value) quiesce__segment_store((self).at, struct quiesce_tls_v1, field, value)
#define quiesce_own_store_release(label, self, field, value) quiesce__segment_store((self).at, struct quiesce_tls_v1, field, value)
#else
#define QUIESCE_OWN_BY_SEGMENT 0
struct quiesce__own_block {
	struct quiesce_tls_v1 *at;
};
#if defined(QUIESCE_SIM)
#define QUIESCE__OWN_AT quiesce_sim_self()
#elif defined(QUIESCE_SCALE)
#define QUIESCE__OWN_AT quiesce_scale_self()
#else
#define QUIESCE__OWN_AT QUIESCE__OWN_ADDRESS(struct quiesce_tls_v1, quiesce_tls_v1, quiesce__own_call)
#endif
#define quiesce_own_load_relaxed(self, field) quiesce_load_relaxed(&(self).at->field) /* Relaxed: the thread's own. */
#define quiesce_own_load_u32(self, field) ((uint64_t)(self).at->field)
#define quiesce_own_store_relaxed(self, field, value) quiesce_store_relaxed(&(self).at->field, (value)) /* Relaxed: the thread's own. */
#define quiesce_own_store_release(label, self, field, value) quiesce_store_release(label, &(self).at->field, (value))
#endif

QUIESCE_FAST struct quiesce__own_block quiesce__own(void)
{
	struct quiesce__own_block self = { QUIESCE__OWN_AT };

	return self;
}

/* The words that claims and clears read, on one cache line that changes only while a waiter waits. */
struct quiesce_shazptr_v1 {
	uint64_t requests;  /* to readers; nonzero: check the slot, or clear by quiesce__shazptr_clear_slow() */
	int64_t rseq;       /* from the thread pointer to its rseq area; 0: claim by compare-and-exchange */
	int64_t id;         /* from the thread pointer to its id; 0: there is none */
	uint64_t nr_ids;
	uintptr_t *slot_array; /* private: the array of all slots */
	uint64_t hazptr_slow; /* nonzero: QUIESCE_HAZPTR_FULL, and requests, for quiesce__hazptr_set_slow() */
	uint64_t reserved[2];
};

#if defined(QUIESCE_SIM)
extern struct quiesce_shazptr_v1 quiesce_shazptr_v1;
#else
extern QUIESCE_DATA struct quiesce_shazptr_v1 quiesce_shazptr_v1;
#endif

QUIESCE_END_DECLS

#endif
