/* SPDX-License-Identifier: MIT */
/* planted.c - calls that break their promise in one situation each: a situation that does not detect its own proves nothing. */
#include "world.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>

/* Keep the id of the parent's process; `forks` detects it. */
static bool call_planted_forks(struct world *w)
{
	return quiesce_load_relaxed(&w->process) == getpid(); /* Relaxed: written before there are threads. */
}

/* Wait for callbacks; `callbacks` detects it. */
static bool call_planted_callbacks(struct world *w)
{
	call_rcu(&object_owed(w)->rcu, object_rcu);
	rcu_barrier();
	return true;
}

/* Rely on a thread-local value that has been destroyed by then; `ends` detects it. */
static pthread_key_t planted_key;

static void forget(void *unused)
{
	(void)unused;
}

static void make_key(void)
{
	pthread_key_create(&planted_key, forget);
}

static bool call_planted_ends(struct world *w)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	static __thread bool used;
	bool ok;

	pthread_once(&once, make_key);
	ok = !used || pthread_getspecific(planted_key);
	used = true;
	pthread_setspecific(planted_key, ok ? w : NULL);
	return ok;
}

/* Use memory without checking the allocation; `failing` detects it. */
static bool call_planted_failing(struct world *w)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)w;
	*(int *)p = ALIVE;
	return munmap(p, 4096) == 0;
}

/* Take a lock that a stopped thread holds; `stopped` detects it. */
static pthread_mutex_t planted_mutex = PTHREAD_MUTEX_INITIALIZER;

static void *hold_now_and_then(void *unused)
{
	for (;;) {
		pthread_mutex_lock(&planted_mutex);
		rest(500);
		pthread_mutex_unlock(&planted_mutex);
		rest(50);
	}
	return unused;
}

static void make_holder(void)
{
	pthread_t thread;

	thread_begin(&thread, hold_now_and_then, NULL);
	pthread_detach(thread);
}

static bool call_planted_stopped(struct world *w)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)w;
	pthread_once(&once, make_holder);
	pthread_mutex_lock(&planted_mutex);
	pthread_mutex_unlock(&planted_mutex);
	return true;
}

/* Keep an answer of the kernel across a restore; `restored` detects it. */
static bool call_planted_restored(struct world *w)
{
	static int number;
	int now = (int)syscall(SYS_gettid);
	bool ok = !number || number == now;

	(void)w;
	number = now;
	return ok;
}

/* Work once only; `twice` detects it. */
static bool call_planted_twice(struct world *w)
{
	static int made;

	(void)w;
	return quiesce_fetch_add_relaxed(&made, 1) == 0; /* Relaxed: a count. */
}

/* Stand for a callback that never returns, so that its thread runs no others (acts.c); `acts` detects it. */
static bool call_planted_acts(struct world *w)
{
	(void)w;
	return true;
}

enum { ANYWHERE = IN_READER | IN_CALLBACK | AT_THREAD_END };

static const struct call planted[] = {
	CALL(planted_forks, "", ANYWHERE),
	CALL(planted_callbacks, "", IN_CALLBACK),
	CALL(planted_acts, "", ANYWHERE),
	CALL(planted_ends, "", ANYWHERE),
	CALL(planted_failing, "", ANYWHERE),
	CALL(planted_restored, "", ANYWHERE),
	CALL(planted_twice, "", ANYWHERE),
	CALL(planted_stopped, "", ANYWHERE | NEVER_WAITS),
	END_OF_CALLS,
};

/* Each row has a situation, and a pattern of its cells that must fail. */
static const struct {
	const char *situation, *pattern;
} noticed_by[] = {
	{ "forks", "of a reader" },
	{ "callbacks", "in call_rcu" },
	{ "acts", "a callback of call_rcu never comes back" },
	{ "ends", "each round of a key" },
	{ "failing", "mmap" },
	{ "restored", "threads have other numbers" },
	{ "twice", "again and again" },
	{ "stopped", "while others stand still" },
};

static const struct call *chosen;

void plant(void)
{
	const char *name = getenv("CALLERS_PLANT");

	for (const struct call *call = planted; name && call->name; call++)
		if (!strcmp(call->name, name))
			chosen = call;
}

const struct call *planted_call(void)
{
	return chosen;
}

/* Run this program again without output, and return its exit status. */
static int run_planted(const char *name, const char *situation, const char *pattern)
{
	char program[] = "/proc/self/exe", *argv[] = { program, strdup(situation), strdup(pattern), NULL };
	int status, null = open("/dev/null", O_WRONLY);
	pid_t pid = fork();

	must(pid >= 0);
	if (pid == 0) {
		setenv("CALLERS_PLANT", name, 1);
		setenv("CALLERS_ALARM", "2", 1);
		dup2(null, STDOUT_FILENO);
		execv(program, argv);
		_exit(2);
	}
	must(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	close(null);
	free(argv[1]);
	free(argv[2]);
	return WEXITSTATUS(status);
}

/* The planted call's own situation has to fail; in another situation the call does no harm. */
static void is_noticed(void *arg)
{
	size_t i = (size_t)(uintptr_t)arg;
	bool is_twice = !strcmp(noticed_by[i].situation, "twice");

	must(is_twice || run_planted(planted[i].name, "twice", "again and again") == 0);
	must(run_planted(planted[i].name, noticed_by[i].situation, noticed_by[i].pattern) == 1);
}

int situation_planted(void)
{
	for (size_t i = 0; planted[i].name; i++)
		cell(is_noticed, (void *)(uintptr_t)i, "%s is noticed by %s", planted[i].name, noticed_by[i].situation);
	return cells_end();
}
