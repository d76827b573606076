/* SPDX-License-Identifier: MIT */
/* plugin.c - a plug-in that is unloaded while threads call it, and that has callbacks of its own.
 *
 * Problem.  Threads call functions of a shared object that is replaced meanwhile: dlclose() must not unmap code that
 *   a thread executes, or that the library is going to call.
 * Without it.  A thread returns into, or a worker calls, memory that is not mapped any more: SIGSEGV at an address
 *   that no debugger can name, because the object is gone.
 * Primitive.  SRCU in the host: a call into a plug-in may sleep, and the unload waits for callers of plug-ins, not for
 *   all readers of the process.  Then rcu_barrier(): the plug-in retires objects by call_rcu(), and a grace period does
 *   not wait for callbacks.  Host and plug-in link the same shared library: two static copies abort.
 *
 *	cc -shared -fPIC plugin_codec.c -o plugin_codec.so $(pkg-config --cflags --libs quiesce)
 *	cc plugin.c $(pkg-config --cflags --libs quiesce) && ./a.out ./plugin_codec.so
 */
#include "plugin.h"
#include <quiesce/srcu.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { NR_THREADS = 2, NR_LOADS = 5, NR_KEYS = 100 };

DEFINE_STATIC_SRCU(plugins);
static const struct codec *loaded; /* NULL: none */
static atomic_bool stop;
static atomic_ulong nr_calls;

static bool call_plugin(unsigned int value, unsigned int *ret_code)
{
	int idx = srcu_read_lock(&plugins);
	const struct codec *c = srcu_dereference(loaded, &plugins);

	if (c)
		*ret_code = c->encode(value);
	srcu_read_unlock(&plugins, idx);
	return c != NULL;
}

static void *caller(void *arg)
{
	unsigned long calls = 0;
	unsigned int code;

	while (!stop)
		if (call_plugin(1, &code))
			calls++;
		else
			usleep(50);
	nr_calls += calls;
	return arg;
}

static void unload(void *handle, const struct codec *c)
{
	rcu_assign_pointer(loaded, NULL); /* 1. no new caller finds it */
	synchronize_srcu(&plugins);       /* 2. no thread is inside */
	c->exit();                        /* 3. it retires what it has left */
	rcu_barrier();                    /* 4. its callbacks have returned */
	dlclose(handle);                  /* 5. nothing can reach its code */
}

static bool load_use_unload(const char *path)
{
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	const struct codec *c = handle ? dlsym(handle, "codec") : NULL;
	bool ok = c != NULL;

	if (!c) {
		fprintf(stderr, "plugin: %s\n", dlerror());
		return false;
	}
	rcu_assign_pointer(loaded, c);
	for (unsigned int key = 1; key <= NR_KEYS; key++) {
		unsigned int code;

		ok &= c->set_key(key) && call_plugin(8, &code) && code == (8 ^ key);
		usleep(50);
	}
	unload(handle, c);
	return ok && !dlopen(path, RTLD_NOW | RTLD_NOLOAD);
}

int main(int argc, char **argv)
{
	pthread_t threads[NR_THREADS];
	int nr = 0, loads = 0;

	if (argc != 2) {
		fprintf(stderr, "usage: %s PLUGIN\n", argv[0]);
		return 2;
	}
	while (nr < NR_THREADS && pthread_create(&threads[nr], NULL, caller, NULL) == 0)
		nr++;
	while (loads < NR_LOADS && load_use_unload(argv[1]))
		loads++;
	stop = true;
	while (nr > 0)
		pthread_join(threads[--nr], NULL);
	cleanup_srcu_struct(&plugins);
	printf("plugin: %d times loaded and unloaded, %lu calls\n", loads, nr_calls);
	return loads != NR_LOADS || !nr_calls;
}
