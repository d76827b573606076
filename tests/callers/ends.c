/* SPDX-License-Identifier: MIT */
/* ends.c - each call where threads and processes begin and end: constructors, destructors of thread-local storage, exit(), after
 * quiesce_shutdown().
 */
#include "world.h"

#include <limits.h>

/* ---- threads ---- */

enum storage { OLD_KEY, NEW_KEY, REARMED_KEY, THREAD_LOCAL, NR_STORAGES };

static const char *const storages[NR_STORAGES] = { "a key older than the library's", "a key newer than the library's",
						   "each round of a key", "thread_local" };

struct leaving {
	const struct call *call;
	enum storage storage;
	bool stranger; /* the thread has not used the library before */
	struct world *world;
	int rounds;
};

/* A key made before the first use of the library, and one made when each primitive is in use. */
static pthread_key_t old_key, new_key;

/* C++ compilers register the destructor of a thread_local object by this call. */
extern int __cxa_thread_atexit_impl(void (*fn)(void *), void *arg, void *dso);
extern void *__dso_handle;

static void leave_once(void *arg)
{
	struct leaving *l = arg;

	l->rounds++;
	world_call(l->world, l->call);
}

/* A first use in the last round is not supported. */
static void leave_again(void *arg)
{
	struct leaving *l = arg;

	leave_once(l);
	if (l->storage == REARMED_KEY && l->rounds < PTHREAD_DESTRUCTOR_ITERATIONS)
		pthread_setspecific(new_key, l);
}

static void make_old_key(void)
{
	if (pthread_key_create(&old_key, leave_once))
		abort();
}

static void *leaving_main(void *arg)
{
	struct leaving *l = arg;

	if (!l->stranger) {
		must(world_read(l->world));
		call_rcu(&object_owed(l->world)->rcu, object_rcu);
		hazptr_retire(object_owed(l->world), object_delete);
	}
	if (l->storage == THREAD_LOCAL)
		must(__cxa_thread_atexit_impl(leave_once, l, &__dso_handle) == 0);
	else
		must(pthread_setspecific(l->storage == OLD_KEY ? old_key : new_key, l) == 0);
	return NULL;
}

static void leave_and_call(void *arg)
{
	struct leaving *l = arg;
	struct world w;
	uint32_t readers;

	l->world = &w;
	world_begin(&w, NR_BYSTANDERS);
	must(pthread_key_create(&new_key, leave_again) == 0);
	synchronize_rcu();
	readers = stats_now().readers;
	for (int i = 0; i < 2; i++) { /* the second call has the state that the first one left */
		pthread_t thread;

		l->rounds = 0;
		thread_begin(&thread, leaving_main, l);
		pthread_join(thread, NULL);
		must(l->rounds == (l->storage == REARMED_KEY ? PTHREAD_DESTRUCTOR_ITERATIONS : 1));
	}
	bystanders_end(&w);
	must(stats_now().readers <= readers + 1); /* threads of the library may have started */
	world_settle(&w);
}

static void thread_cells(const struct call *call, size_t nr)
{
	for (unsigned int i = 0; i < NR_STORAGES; i++)
		for (unsigned int stranger = 0; stranger < 2; stranger++) {
			struct leaving l = { .call = call, .storage = (enum storage)i, .stranger = stranger };

			if (cell_is_drawn(nr, 2 * i + stranger, 3))
				cell(leave_and_call, &l, "destructor of %s, of a thread that %s - %s", storages[i],
				     stranger ? "never called" : "has called", call->name);
		}
}

/* ---- the process ---- */

static const char *const whens[] = { "constructor 101", "constructor", "atexit", "destructor", "destructor 101", "shutdown" };
enum { NR_WHENS = sizeof whens / sizeof *whens };

static struct world process_world;

static void process_call(bool beside)
{
	world_begin(&process_world, NR_BYSTANDERS);
	process_world.beside = beside;
	world_call(&process_world, again_call());
	world_settle(&process_world);
}

static bool is_when(const char *when)
{
	return again_when() && !strcmp(again_when(), when);
}

/* Threads of the library have ended; those that are needed have to start again. */
static void call_after_shutdown(void)
{
	struct world *w = &process_world;

	world_begin(w, 0);
	must(world_read(w));
	call_rcu(&object_owed(w)->rcu, object_rcu);
	call_hazptr(&object_owed(w)->hazptr, object_hazptr);
	must(quiesce_shutdown(0) == 0);
	world_call(w, again_call());
	world_settle(w);
}

/* End as if the program had been executed for this call alone. */
static void end_here(void)
{
	fflush(NULL);
	_exit(0);
}

__attribute__((constructor(101))) static void first_of_all(void)
{
	plant();
	make_old_key();
	if (is_when("constructor 101")) {
		process_call(false);
		end_here();
	}
}

__attribute__((constructor)) static void beside_others(void)
{
	if (is_when("constructor")) {
		process_call(false);
		end_here();
	}
}

static void at_exit(void)
{
	if (is_when("atexit"))
		process_call(true);
}

__attribute__((destructor)) static void among_destructors(void)
{
	if (is_when("destructor"))
		process_call(true);
}

__attribute__((destructor(101))) static void last_of_all(void)
{
	if (is_when("destructor 101"))
		process_call(true);
}

/* In main() of a program that was executed again: bystanders read, and exit() is called. */
int again_main(void)
{
	static struct world w;

	child_begin();
	atexit(at_exit);
	if (is_when("shutdown")) {
		call_after_shutdown();
		return 0;
	}
	if (failing_main())
		return 0;
	world_begin(&w, NR_BYSTANDERS);
	must(world_read(&w));
	return 0;
}

struct process {
	const struct call *call;
	const char *when;
};

static void run_again(void *arg)
{
	const struct process *p = arg;

	again(p->when, p->call->name);
}

static void process_cells(const struct call *call, size_t nr)
{
	for (size_t i = 0; i < NR_WHENS; i++) {
		struct process p = { .call = call, .when = whens[i] };

		if (cell_is_drawn(nr, i, 3))
			cell(run_again, &p, "%s - %s", whens[i], call->name);
	}
}

int situation_ends(void)
{
	const struct call *call;

	for_each_call(call, i) {
		if (!has(call, AT_THREAD_END))
			continue;
		thread_cells(call, i);
		process_cells(call, i);
	}
	return cells_end();
}
