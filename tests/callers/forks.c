/* SPDX-License-Identifier: MIT */
/* forks.c - each call as the first one in the child of each kind of fork.
 *
 * Beside fork() bystanders go on, and their callbacks may be running. Other children run no handler; POSIX allows
 * hardly any call in them if there were threads, so bystanders are parked then, inside of sections and guards, and not
 * in the allocator.
 */
#include "world.h"

#include <linux/sched.h>
#include <signal.h>

/* ---- how the child is made ---- */

static pid_t by_clone(void)
{
	return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
}

static pid_t by_clone3(void)
{
	struct clone_args args = { .exit_signal = SIGCHLD };

	return (pid_t)syscall(SYS_clone3, &args, sizeof args);
}

#if defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 34)
#define by_underscore _Fork
#endif
#endif
#ifndef by_underscore
#define by_underscore by_clone
#endif

enum { NR_HOWS = 4, NR_STATES = 4, NR_PLACES = 4 };

static const struct how {
	const char *name;
	pid_t (*fork)(void);
} hows[NR_HOWS] = { { "fork()", fork }, { "_Fork()", by_underscore }, { "clone()", by_clone }, { "clone3()", by_clone3 } };

/* ---- kinds of forking threads ---- */

enum state { READER, STRANGER, INSIDE, HOLDER };

static const char *const states[NR_STATES] = { "a reader", "a thread that never read", "a thread inside a section",
					       "a thread that holds locks and slots" };

/* ---- the thread that makes the call ---- */

enum place { ONLY, FIRST, AFTER, GRANDCHILD };

static const char *const places[NR_PLACES] = { "the child's only thread", "a thread of the child's",
					       "the forker beside threads of the child's", "a grandchild" };

struct plan {
	const struct call *call;
	const struct how *how;
	enum state state;
	enum place place;
	struct world *world;
	struct insider holder;
};

/* A domain and a lock that only the forking thread is inside of. */
static struct srcu_struct held_domain;
static struct percpu_rw_semaphore held_lock;

static bool is_announced(const struct plan *p)
{
	return p->how->fork == fork;
}

/* True if the call uses objects that the child must reinitialise first, as the manual documents. */
static bool needs_reset(const struct call *call)
{
	return strstr(call->covers, "srcu") || strstr(call->covers, "percpu_") || strstr(call->covers, "shutdown");
}

static void make_call(struct plan *p)
{
	bool reset = p->place == AFTER || needs_reset(p->call);

	if (reset)
		world_in_child(p->world);
	if (p->place == AFTER)
		bystanders_begin(p->world, NR_BYSTANDERS);
	if (p->state == INSIDE && has(p->call, IN_READER))
		must(p->call->fn(p->world));
	else
		world_call(p->world, p->call);
	if (!reset)
		world_in_child(p->world);
}

static void *make_call_main(void *p)
{
	make_call(p);
	return NULL;
}

static void *wait_for_holder(void *p)
{
	insider_wait_each(&((struct plan *)p)->holder);
	return NULL;
}

/* A guard or section of the forking thread is held in the child, too. */
static void holder_is_waited_for(struct plan *p)
{
	pthread_t thread;

	if (!p->holder.ways)
		return;
	thread_begin(&thread, wait_for_holder, p);
	insider_leave_each(&p->holder);
	pthread_join(thread, NULL);
}

static void child_main(struct plan *p)
{
	pthread_t thread;

	child_begin();
	if (p->state == INSIDE && !has(p->call, IN_READER)) {
		insider_leave_all(&p->holder);
		p->holder.ways = 0;
	}
	if (p->place == FIRST) {
		thread_begin(&thread, make_call_main, p);
		rest(1000); /* this thread calls first: until the forker calls, a wait may last */
		(void)stats_now();
		pthread_join(thread, NULL);
	} else {
		make_call(p);
	}
	bystanders_end(p->world);
	holder_is_waited_for(p);
	world_settle(p->world);
	_exit(0);
}

/* The intermediate child calls the library as well, after its own child. */
static void fork_again(struct plan *p)
{
	pid_t pid;

	child_begin();
	pid = p->how->fork();
	must(pid >= 0);
	if (pid == 0)
		child_main(p);
	child_end(pid);
	child_main(p);
}

static void *forker_main(void *arg)
{
	struct plan *p = arg;
	pid_t pid;

	if (p->state == READER)
		must(world_read(p->world));
	if (p->holder.ways)
		insider_enter(&p->holder);
	pid = p->how->fork();
	must(pid >= 0);
	if (pid == 0 && p->place == GRANDCHILD)
		fork_again(p);
	if (pid == 0)
		child_main(p);
	if (p->holder.ways)
		insider_leave_all(&p->holder);
	child_end(pid);
	return NULL;
}

static void fork_and_call(void *arg)
{
	struct plan *p = arg;
	struct world w;
	pthread_t thread;

	p->world = &w;
	world_begin(&w, NR_BYSTANDERS);
	must(init_srcu_struct(&held_domain) == 0 && percpu_init_rwsem(&held_lock) == 0);
	p->holder = (struct insider){ .srcu = &held_domain, .rwsem = &held_lock, .slotted = w.fixed[0], .guarded = w.fixed[1] };
	if (p->state == INSIDE)
		p->holder.ways = 1 << BY_RCU;
	if (p->state == HOLDER) /* guards protect in the parent only */
		p->holder.ways = 1 << BY_SRCU | 1 << BY_SLOT | 1 << BY_LOCK;
	if (!is_announced(p))
		world_park(&w);
	if (p->state == STRANGER) {
		thread_begin(&thread, forker_main, p);
		pthread_join(thread, NULL);
	} else {
		forker_main(p);
	}
	world_unpark(&w);
	world_settle(&w);
}

static void fork_cell(const struct call *call, unsigned int how, unsigned int state, unsigned int place)
{
	struct plan p = { .call = call, .how = &hows[how % NR_HOWS], .state = state % NR_STATES, .place = place % NR_PLACES };

	cell(fork_and_call, &p, "%s of %s, %s - %s", p.how->name, states[p.state], places[p.place], call->name);
}

/* A call meets each kind of fork, and each pair of the other two some call. */
static void some_forks(const struct call *call)
{
	for (unsigned int how = 0; how < NR_HOWS; how++) {
		unsigned int n = cell_number();

		fork_cell(call, how, n, n / 4 + how);
	}
}

static void all_forks(const struct call *call)
{
	for (unsigned int how = 0; how < NR_HOWS; how++)
		for (unsigned int state = 0; state < NR_STATES; state++)
			for (unsigned int place = 0; place < NR_PLACES; place++)
				fork_cell(call, how, state, place);
}

int situation_forks(void)
{
	const struct call *call;

	for_each_call(call, i) {
		if (cells_are_all())
			all_forks(call);
		else
			some_forks(call);
	}
	return cells_end();
}
