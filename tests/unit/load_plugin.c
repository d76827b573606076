/* SPDX-License-Identifier: MIT */
/* load_plugin.c - a program without the library loads a plug-in that is linked with it, by dlopen().
 *
 *     load_plugin PLUGIN
 *
 * Threads that are older than the plug-in, and new ones, are readers whose sections a wait takes into account. */
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void (*plugin_hold)(void (*inside)(void));
static int (*plugin_use)(void);
static void (*plugin_wait)(void);
static sem_t loaded, entered, leave;
static int over; /* a wait has returned */

static void check(int ok, const char *what)
{
	printf("%s - %s\n", ok ? "ok" : "not ok", what);
	if (!ok)
		exit(1);
}

static void inside(void)
{
	sem_post(&entered);
	sem_wait(&leave);
}

static void *reader(void *unused)
{
	sem_wait(&loaded);
	plugin_hold(inside);
	return unused;
}

static void *waiter(void *unused)
{
	plugin_wait();
	__atomic_store_n(&over, 1, __ATOMIC_RELEASE); /* raw: the program does not use the library */
	return unused;
}

static void *user(void *unused)
{
	return plugin_use() >= 2 ? unused : NULL;
}

static void start(pthread_t *thread, void *(*func)(void *))
{
	if (pthread_create(thread, NULL, func, &loaded))
		abort();
}

/* The wait of another thread lasts until @reader leaves its section. */
static void delays(pthread_t reader, const char *what)
{
	pthread_t other;
	int early;

	__atomic_store_n(&over, 0, __ATOMIC_RELAXED); /* raw: the program does not use the library */
	sem_wait(&entered);
	start(&other, waiter);
	usleep(20000);
	early = __atomic_load_n(&over, __ATOMIC_ACQUIRE); /* raw: the program does not use the library */
	sem_post(&leave);
	pthread_join(reader, NULL);
	pthread_join(other, NULL);
	check(!early, what);
}

int main(int argc, char **argv)
{
	pthread_t old, fresh, more;
	void *result, *handle;

	if (argc != 2)
		return 2;
	sem_init(&loaded, 0, 0);
	sem_init(&entered, 0, 0);
	sem_init(&leave, 0, 0);
	alarm(50);
	start(&old, reader);
	handle = dlopen(argv[1], RTLD_NOW);
	if (!handle)
		printf("# %s\n", dlerror());
	check(handle != NULL, "the plug-in is loaded");
	*(void **)&plugin_hold = dlsym(handle, "plugin_hold");
	*(void **)&plugin_use = dlsym(handle, "plugin_use");
	*(void **)&plugin_wait = dlsym(handle, "plugin_wait");
	check(plugin_hold && plugin_use && plugin_wait, "it has its functions");
	sem_post(&loaded);
	delays(old, "a section of a thread that is older than the plug-in delays a wait");
	sem_post(&loaded);
	start(&fresh, reader);
	delays(fresh, "a section of a new thread delays a wait");
	check(plugin_use() == 2, "objects that the first thread retires are reclaimed");
	start(&more, user);
	pthread_join(more, &result);
	check(result != NULL, "and those of another");
	dlclose(handle);
	return 0;
}
