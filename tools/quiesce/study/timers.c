/* SPDX-License-Identifier: MIT */
/* timers.c - timer_gettime() by 16 processes, after the kernel's timer ids under RCU. */
#include "study.h"

static const struct study_variant variants[] = {
	{ "global_spin", NULL, "one spinlock for the table, held until the timer's own lock is; spins, then yields" },
	{ "global_ticket", NULL, "one spinlock for the table, first come, first served, as the kernel's was" },
	{ "global_pthread_spin", NULL, "one spinlock of the C library for the table, which never yields" },
	{ "global_mutex", NULL, "one mutex of the C library for the table" },
	{ "bucket_lock", NULL, "a spinlock for each of 512 chains, held the same way" },
	{ "rcu_lock", "light", "a section until the timer's lock is held; timers are freed after a grace period" },
	{ "rcu_lock", "full", NULL },
	{ "rcu_seqlock", "light", "a section, and a sequence count instead of the timer's lock" },
	{ "rcu_seqlock", "full", NULL },
	{ "kernel", NULL, "timer_gettime() of this kernel: a system call, and RCU since 2011" },
	{ NULL, NULL, NULL },
};

static const struct study_column columns[] = {
	{ "Mops", "M/s", false }, { "ns_op", "ns/op", false }, { "cpu_ns", "CPU ns/op", false }, { "sys", "sys %", false },
	{ "switches", "switches/1000", false }, { NULL, NULL, false },
};

#define MANY "0 % updates"
#define ONE "1 worker, 0 % updates"
#define TWO "2 workers, 0 % updates"

/* These macros name variants with their fence mode. */
#define RCU_LOCK "rcu_lock", "light"
#define RCU_SEQLOCK "rcu_seqlock", "light"
#define LOCKS(name) name, NULL

#define TIMES(text, figure, a, b, where) { text, figure, STUDY_RATIO, { a, where, "Mops" }, { b, where, "Mops" }, STUDY_NOWHERE }
#define SLOPE(text, a) { text, NULL, STUDY_RATIO, { a, TWO, "Mops" }, { a, ONE, "Mops" }, STUDY_NOWHERE }

static const struct study_shape shapes[] = {
	TIMES("rcu_lock / global_spin, 16 workers", "24 on 16 CPUs", RCU_LOCK, LOCKS("global_spin"), MANY),
	TIMES("rcu_lock / global_pthread_spin, 16 workers", NULL, RCU_LOCK, LOCKS("global_pthread_spin"), MANY),
	TIMES("rcu_lock / global_mutex, 16 workers", NULL, RCU_LOCK, LOCKS("global_mutex"), MANY),
	TIMES("rcu_lock / bucket_lock, 16 workers", NULL, RCU_LOCK, LOCKS("bucket_lock"), MANY),
	TIMES("rcu_seqlock / rcu_lock, 16 workers", NULL, RCU_SEQLOCK, RCU_LOCK, MANY),
	TIMES("rcu_lock / global_spin, 10 % updates", NULL, RCU_LOCK, LOCKS("global_spin"), "10 % updates"),
	TIMES("rcu_lock / bucket_lock, 10 % updates", NULL, RCU_LOCK, LOCKS("bucket_lock"), "10 % updates"),
	TIMES("rcu_lock / global_spin, 1 worker", NULL, RCU_LOCK, LOCKS("global_spin"), ONE),
	TIMES("rcu_lock / global_spin, 2 workers", NULL, RCU_LOCK, LOCKS("global_spin"), TWO),
	TIMES("rcu_lock / global_ticket, 2 workers", "24 on 16 CPUs", RCU_LOCK, LOCKS("global_ticket"), TWO),
	SLOPE("2 workers / 1 worker, rcu_lock", RCU_LOCK),
	SLOPE("2 workers / 1 worker, bucket_lock", LOCKS("bucket_lock")),
	SLOPE("2 workers / 1 worker, global_spin", LOCKS("global_spin")),
	SLOPE("2 workers / 1 worker, global_ticket", LOCKS("global_ticket")),
	SLOPE("2 workers / 1 worker, kernel", LOCKS("kernel")),
	STUDY_END,
};

const struct study study_timers = {
	.name = "timers",
	.what = "16 workers look up their own timers in a table of all, as timer_gettime() does",
	.document = "E. Dumazet, \"posix-timers: RCU conversion\", LKML, 2011: 16 processes, 2x4x2 CPUs",
	.honesty = "An operation here is the lookup alone. The document's is a system call, of which the kernel row shows the price: "
		   "its factor has a constant above and below the line that ours has not. Its 16 processes had a CPU each, and its "
		   "spinlock was a ticket taken with preemption off; nearest to that is global_ticket with 2 workers on 2 CPUs. With "
		   "more workers than CPUs a thread is preempted that has the lock, which a process cannot prevent: global_spin "
		   "yields then, and what a ticket or the C library's spinlock loses there, no kernel lost. Without such losses the "
		   "factor is at most CPUs x (ns/op of 1 worker under the lock) / (ns/op of 1 worker under RCU), as the lock lets "
		   "one worker in at a time; what is above that is the lock's line on its way between caches. That rcu_lock's slope "
		   "goes on, a larger machine has to show: here it ends at the last CPU. ns/op: time x CPUs in use / operations; CPU "
		   "ns/op: processor time, with that of the library's own thread. On a busy machine believe the second.",
	.program = "timers/timers",
	.variants = variants,
	.columns = columns,
	.shapes = shapes,
	.rounds = 5,
	.quick_rounds = 2,
	.seconds = 0.14,
	.quick_seconds = 0.07,
};
