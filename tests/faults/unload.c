/* SPDX-License-Identifier: MIT */
/* unload.c - a program that is not linked with the library loads a plug-in that uses it, and unloads it.
 *
 *	unload PLUGIN stays|goes|crashes
 *
 * stays: the plug-in stays loaded in spite of dlclose(); goes: it is unloaded; in both cases the program goes on.
 * crashes: it is unloaded, and the kernel ends the program because of the sequence that was there.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 20

static void (*plugin_use)(void);
static sem_t used, unloaded;

static void must(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "unload: %s\n", what);
	_exit(2);
}

static void down(sem_t *sem)
{
	while (sem_wait(sem))
		;
}

static void on_signal(int number)
{
	(void)number;
}

/* This thread sleeps while the plug-in is unloaded: when it wakes, the kernel reads the descriptor of its last sequence.  Then it
 * exits. */
static void *user_main(void *unused)
{
	(void)unused;
	plugin_use();
	sem_post(&used);
	down(&unloaded);
	return NULL;
}

static void fork_once(void)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	must(waitpid(pid, &status, 0) == pid && status == 0, "a child of a fork after dlclose() did not end as it should");
}

static void one_round(const char *path, int stays)
{
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL), *found;
	pthread_t user;

	must(handle != NULL, handle ? "" : dlerror());
	found = dlsym(handle, "plugin_use");
	must(found != NULL, "no plugin_use()");
	memcpy(&plugin_use, &found, sizeof found);
	must(!pthread_create(&user, NULL, user_main, NULL), "no thread");
	down(&used);
	plugin_use();
	must(!dlclose(handle), "dlclose() failed");
	raise(SIGUSR1); /* the kernel reads the descriptor of this thread's last sequence */
	sem_post(&unloaded);
	pthread_join(user, NULL);
	fork_once();
	handle = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
	must(!handle == !stays, stays ? "it did not stay" : "it is still there");
}

static int in_child(const char *path, int stays)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		alarm(60);
		signal(SIGUSR1, on_signal);
		sem_init(&used, 0, 0);
		sem_init(&unloaded, 0, 0);
		for (int i = 0; i < ROUNDS; i++)
			one_round(path, stays);
		_exit(0);
	}
	must(pid > 0 && waitpid(pid, &status, 0) == pid, "no child");
	return status;
}

int main(int argc, char **argv)
{
	int crashes, status;

	must(argc == 3, "unload PLUGIN stays|goes|crashes");
	crashes = !strcmp(argv[2], "crashes");
	if (crashes && !dlsym(RTLD_DEFAULT, "__rseq_offset")) {
		puts("this C library knows no restartable sequences");
		return 77;
	}
	status = in_child(argv[1], !strcmp(argv[2], "stays"));
	printf("wait status %#x\n", (unsigned int)status);
	return crashes ? !(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV) : status != 0;
}
