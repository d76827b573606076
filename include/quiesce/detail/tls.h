/* SPDX-License-Identifier: MIT */
/* quiesce/detail/tls.h - what the library keeps in each thread, and what all threads look at to claim slots; private. */
#ifndef QUIESCE_DETAIL_TLS_H
#define QUIESCE_DETAIL_TLS_H

#include <quiesce/atomic.h>

QUIESCE_BEGIN_DECLS

/* The reader's word: low 16 bits as below, grace-period number above.  One word,
 * because two words in any store order leave a signal handler, or the code that
 * it interrupts, unprotected. */
#define QUIESCE_RCU_DEPTH 0x1fffull     /* nesting depth; 0: outside; all ones: mark set, fence to come */
#define QUIESCE_RCU_SLOW 0x2000ull      /* an updater asks the outermost unlock to take the slow path */
#define QUIESCE_RCU_FULL 0x4000ull      /* full-fence mode: the outermost lock takes the slow path */
#define QUIESCE_RCU_UNREG 0x8000ull     /* not registered (or exiting): everything takes the slow path */

struct quiesce__reader; /* registry entry, private */
struct quiesce__queue;  /* queue of retired objects, private */
struct quiesce__retired; /* the same of hazard pointers, private */
struct quiesce__run;    /* a call of the program's code, private */

/* A slot for hazard pointers in the block of a CPU or concurrency id, which a thread has for a while. */
struct quiesce__cached_slot {
	uintptr_t *slot;
	uint64_t id; /* all ones: none */
};

/* What the library keeps in each thread.  Written by its thread only, with one
 * exception: an updater may set QUIESCE_RCU_SLOW in rcu_word by compare-and-exchange, and qsbr_waiting. */
struct quiesce_tls_v1 {
	uint64_t rcu_word;              /* read by updaters */
	struct quiesce__reader *reader; /* NULL until registered */
	struct quiesce__queue *queue;   /* NULL until the first call_rcu() */
	uint32_t unregistered;          /* nesting of a section without a registry entry; private form */
	uint32_t state;                 /* private */
	const void *site;               /* debug build: where the outermost section began */
	uintptr_t *shazptr_own;         /* the first slot of this thread's line; NULL: it has none */
	struct quiesce__cached_slot shazptr_cached; /* else this slot, while the thread has this id */
	uintptr_t *shazptr_hint;        /* the last shared slot of this thread; private */
	uintptr_t *hazptr;              /* the first slot of this thread's line for hazptr.h; NULL: it has none */
	struct quiesce__retired *retired; /* NULL until the first call_hazptr() */
	uintptr_t *hazptr_spare;        /* a line for the next context; private */
	uint32_t tid;                   /* private; 0: not asked yet */
	uint32_t reserved32;
	struct quiesce__run *runs;      /* calls of the program's code that this thread is in, the innermost first; private */
	uint64_t since;                 /* debug build: when it began, as @site */
	uint64_t qsbr_word;             /* the number at its last quiescent state; 0: offline.  Read by updaters */
	uint32_t qsbr_waiting;          /* 1: an updater sleeps until that changes; set by it */
	uint32_t qsbr_registered;
};

#if defined(QUIESCE_SIM)
#define quiesce__self() quiesce_sim_self()
struct quiesce_tls_v1 *quiesce_sim_self(void);
#else
extern QUIESCE_DATA __thread struct quiesce_tls_v1 quiesce_tls_v1 __attribute__((tls_model("initial-exec")));
#define quiesce__self() (&quiesce_tls_v1)
#endif

/* What claims and clears look at, on one line that changes only while somebody waits. */
struct quiesce_shazptr_v1 {
	uint64_t attention; /* not 0: look at the slot, or clear by quiesce__shazptr_clear_slow() */
	int64_t rseq;       /* from the thread pointer to its rseq area; 0: claim by compare-and-exchange */
	int64_t id;         /* from the thread pointer to its id; 0: there is none */
	uint64_t nr_ids;
	uintptr_t *slots;   /* private */
	uint64_t hazptr;    /* not 0: protect by quiesce__hazptr_set_slow() */
	uint64_t reserved[2];
};

#if defined(QUIESCE_SIM)
extern struct quiesce_shazptr_v1 quiesce_shazptr_v1;
#else
extern QUIESCE_DATA struct quiesce_shazptr_v1 quiesce_shazptr_v1;
#endif

#if defined(__has_feature)
#define QUIESCE_TSAN __has_feature(thread_sanitizer)
#elif defined(__SANITIZE_THREAD__)
#define QUIESCE_TSAN 1
#else
#define QUIESCE_TSAN 0
#endif

QUIESCE_END_DECLS

#endif
