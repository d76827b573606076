/* SPDX-License-Identifier: MIT */
/* flavor.h - interface between the sources of liburcu's face: the functions of a flavour, and its data. */
#ifndef QUIESCE_URCU_SRC_FLAVOR_H
#define QUIESCE_URCU_SRC_FLAVOR_H

#include <pthread.h>
#include <quiesce-urcu/flavor.h>
#include <quiesce/atomic.h>
#include <stdbool.h>

/* The flavours of an object; an object that replaces one of liburcu's own has only one. */
#ifdef QUIESCE_URCU_ABI
enum flavor_index { FLAVOR_ONLY, NR_FLAVORS };
#else
enum flavor_index { FLAVOR_MEMB, FLAVOR_MB, FLAVOR_BP, FLAVOR_QSBR, NR_FLAVORS };
#endif

struct flavor {
	enum flavor_index index;
	void (*read_lock)(void), (*read_unlock)(void);
	void (*register_thread)(void), (*unregister_thread)(void);
	void (*offline)(void), (*online)(void);
	int (*ongoing)(void);
	void (*synchronize)(void);
	void (*native_barrier)(void); /* waits for callbacks queued by the names of quiesce/rcu.h; NULL: those belong to another RCU */

	pthread_mutex_t lock; /* guards the following members; held for short times, not while callbacks run or during a wait for readers */
	struct call_rcu_data *list;
	struct call_rcu_data *dflt;    /* NULL: no callback was ever queued there */
	struct call_rcu_data **of_cpu; /* NULL: none was set; never freed, because call_rcu() reads it without the lock */
	struct urcu_atfork *atfork;    /* fork handlers of hash tables, which are the same for all tables */
	int nr_atfork;
	bool paused;                   /* set by call_rcu_before_fork() */
	pthread_mutex_t forker;        /* held from there to call_rcu_after_fork_...(): one thread at a time forks */
};

/* The two stand around a wait for other threads, which may be waiting for
 * readers: an online thread of qsbr is offline meanwhile. */
static inline bool flavor_leave(struct flavor *f)
{
	bool online = f->ongoing() != 0;

	if (online)
		f->offline();
	return online;
}

static inline void flavor_return(struct flavor *f, bool online)
{
	if (online)
		f->online();
}

extern struct flavor flavor_memb, flavor_mb, flavor_bp, flavor_qsbr;
extern struct flavor *const flavors[NR_FLAVORS];

/* call_rcu.c */
void flavor_call_rcu(struct flavor *f, struct rcu_head *head, void (*func)(struct rcu_head *head));
struct call_rcu_data *flavor_create(struct flavor *f, unsigned long flags, int cpu);
void flavor_free(struct flavor *f, struct call_rcu_data *c);
struct call_rcu_data *flavor_default(struct flavor *f);
pthread_t flavor_thread_of(struct call_rcu_data *c);
void flavor_barrier(struct flavor *f);

/* call_rcu_who.c: the choice of the queue */
struct call_rcu_data *flavor_of_cpu(struct flavor *f, int cpu);
struct call_rcu_data *flavor_of_thread(struct flavor *f);
struct call_rcu_data *flavor_chosen(struct flavor *f);
void flavor_set_of_thread(struct flavor *f, struct call_rcu_data *c);
int flavor_set_of_cpu(struct flavor *f, int cpu, struct call_rcu_data *c);
int flavor_create_all(struct flavor *f, unsigned long flags);
void flavor_free_all(struct flavor *f);
void flavor_forget_all(struct flavor *f); /* called in a forked child */

/* call_rcu_fork.c */
void flavor_before_fork(struct flavor *f);
void flavor_after_fork_parent(struct flavor *f);
void flavor_after_fork_child(struct flavor *f);
void flavor_register_atfork(struct flavor *f, struct urcu_atfork *atfork);
void flavor_unregister_atfork(struct flavor *f);

/* defer.c */
void flavor_defer(struct flavor *f, void (*func)(void *arg), void *arg);
int flavor_defer_register(struct flavor *f);
void flavor_defer_unregister(struct flavor *f);
void flavor_defer_barrier(struct flavor *f, bool mine_only);

/* Reports an error that ends the program, because liburcu's calls cannot return it. */
void urcu_die(const char *call, int err) __attribute__((noreturn, cold));

#endif
