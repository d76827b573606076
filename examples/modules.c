/* SPDX-License-Identifier: MIT */
/* modules.c - modules that are removed while other threads call them, and while a call of another module takes long.
 *
 * Problem.  A server calls its modules by number, from many threads.  One of them is replaced at run time: its memory may be
 *   freed only when no thread is inside it.  A call of another module may take minutes.
 * Without it.  If unload() frees at once, a thread that has just loaded the pointer calls a function through freed memory.  If calls
 *   are sections of RCU, synchronize_rcu() waits for all of them, so also for the slow call of a module that stays.
 * Primitive.  shazptr: a call protects its module by a guard, and an unload waits for the guards of that module alone.
 *   The guard may be held while the call sleeps, and needs no memory or set-up for each thread.
 *
 *	cc modules.c $(pkg-config --cflags --libs quiesce)
 */
#include <quiesce/rcu.h> /* rcu_assign_pointer(), rcu_xchg_pointer() */
#include <quiesce/shazptr.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { NR_THREADS = 2, NR_LOADS = 200, FAST = 0, SLOW, NR_MODULES };

struct module {
	int (*run)(const struct module *m, int value);
	int increment; /* 0 once the module is removed: a call that finds it came too late */
};

static struct module *modules[NR_MODULES]; /* NULL: not loaded */
static atomic_bool stop, slow_call_inside;
static atomic_ulong nr_calls, nr_wrong;

static bool call(int id, int value, int *ret_result)
{
	shazptr_scoped struct shazptr_guard guard = shazptr_protect(&modules[id]);
	const struct module *m = shazptr_ptr(guard);

	if (!m)
		return false;
	*ret_result = m->run(m, value); /* it may sleep: the guard keeps the module */
	return true;                    /* the guard is cleared at the end of its scope */
}

static int add(const struct module *m, int value)
{
	usleep(20); /* a disk: a guard may be held across sleep */
	return value + m->increment;
}

static int add_slowly(const struct module *m, int value)
{
	slow_call_inside = true;
	while (!stop)
		usleep(1000);
	return add(m, value);
}

static bool load(int id, int (*run)(const struct module *m, int value))
{
	struct module *m = malloc(sizeof(*m));

	if (!m)
		return false;
	*m = (struct module){ run, 1 };
	rcu_assign_pointer(modules[id], m); /* complete before it is published */
	return true;
}

static void unload(int id)
{
	struct module *m = rcu_xchg_pointer(&modules[id], NULL); /* no new call finds it */

	if (!m)
		return;
	synchronize_shazptr(m); /* no call is inside it */
	m->increment = 0;
	free(m);
}

static void *caller(void *arg)
{
	unsigned long calls = 0;
	int result;

	while (!stop)
		if (call(FAST, 1, &result)) {
			nr_wrong += result != 2;
			calls++;
		}
	nr_calls += calls;
	return arg;
}

static void *slow_caller(void *arg)
{
	int result;

	nr_wrong += !call(SLOW, 1, &result) || result != 2;
	return arg;
}

int main(void)
{
	pthread_t threads[NR_THREADS + 1];
	int nr = 0, loads = 0;

	if (!load(SLOW, add_slowly) || pthread_create(&threads[nr++], NULL, slow_caller, NULL) != 0)
		return 1;
	while (nr <= NR_THREADS && pthread_create(&threads[nr], NULL, caller, NULL) == 0)
		nr++;
	while (!slow_call_inside)
		usleep(100);
	for (; loads < NR_LOADS && load(FAST, add); loads++) {
		usleep(100);
		unload(FAST); /* does not wait for the slow call, which is inside all the time */
	}
	stop = true;
	while (nr > 0)
		pthread_join(threads[--nr], NULL);
	unload(SLOW);
	printf("modules: %d unloads beside a slow call, %lu calls, %lu wrong\n", loads, nr_calls, nr_wrong);
	return loads != NR_LOADS || !nr_calls || nr_wrong;
}
