/* SPDX-License-Identifier: MIT */
/* acts.c - callbacks that act on the thread in which they run: they cancel it, end it, fork, throw, take locks that readers hold.
 *
 * Afterwards callbacks of all kinds run, and waits for them return.
 */
#include "kinds.h"

#include <signal.h>
#include <sys/wait.h>

struct act {
	const char *name;
	void (*fn)(void *act); /* runs in the callback */
	bool is_reported;      /* the act is reported as misuse */
};

struct acting {
	const struct kind *kind;
	const struct act *act;
	struct world *world;
	pthread_mutex_t lock; /* readers hold this lock */
	pthread_t thread;     /* the thread in which the callback runs */
	int inside, go_on, over;
};

static struct acting *acting;
static int nr_reported;

static void note_end(enum quiesce_misuse kind, const char *text)
{
	(void)kind;
	if (!strstr(text, "ended in the callback"))
		cell_fails(__FILE__, __LINE__, text);
	count_up(&nr_reported);
}

/* ---- acts ---- */

/* A cancellation point, such as write() or printf(), inside a callback. */
static void is_cancelled(void *a)
{
	(void)a;
	pthread_cancel(pthread_self());
	rest(10);
	flag_set(&acting->over);
}

static void is_cancelled_by_another(void *a)
{
	(void)a;
	acting->thread = pthread_self();
	flag_set(&acting->inside);
	wait_until(flag_get(&acting->go_on)); /* the wait is a cancellation point */
	flag_set(&acting->over);
}

static void ends_its_thread(void *a)
{
	(void)a;
	flag_set(&acting->over);
	pthread_exit(NULL);
}

/* Code of the program enables the cancellation that the library has disabled. */
static void allows_its_cancellation(void *a)
{
	(void)a;
	flag_set(&acting->over);
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	pthread_cancel(pthread_self());
	rest(10);
}

/* The child has the thread that runs callbacks, inside a callback, and starts another thread that settles the world. */
static void *settle_child(void *unused)
{
	(void)unused;
	wait_until(flag_get(&acting->over));
	world_in_child(acting->world);
	world_settle(acting->world);
	_exit(0);
}

static void forks(void *unused)
{
	pthread_t thread;
	pid_t pid = fork();

	(void)unused;
	must(pid >= 0);
	if (pid == 0) {
		child_begin();
		thread_begin(&thread, settle_child, NULL);
	} else {
		child_end(pid);
	}
	flag_set(&acting->over);
}

/* A planted callback that never returns, so that a wait for callbacks must be reported as hanging. */
static void never_comes_back(void *unused)
{
	(void)unused;
	for (;;)
		pause();
}

static void takes_a_lock(void *unused)
{
	(void)unused;
	flag_set(&acting->inside);
	pthread_mutex_lock(&acting->lock);
	pthread_mutex_unlock(&acting->lock);
	flag_set(&acting->over);
}

/* ---- around them ---- */

static void *run_act(void *unused)
{
	(void)unused;
	acting->kind->run(acting->world, acting->act->fn, NULL);
	if (getpid() != acting->world->process)
		pause(); /* another thread ends the child */
	return NULL;
}

static void note_run(void *ran)
{
	flag_set((int *)ran);
}

struct again_run {
	const struct kind *kind;
	int ran;
};

static void *run_plain(void *arg)
{
	struct again_run *a = arg;

	a->kind->run(acting->world, note_run, &a->ran);
	return NULL;
}

/* Wait in a thread of its own, because a waiter may run remaining callbacks. */
static void all_kinds_run(void)
{
	const struct kind *kind;

	for_each_kind(kind, k) {
		struct again_run a = { .kind = kind };
		pthread_t thread;

		if (!kind->ends)
			continue;
		thread_begin(&thread, run_plain, &a);
		pthread_join(thread, NULL);
		must(flag_get(&a.ran));
	}
}

static void *cancel_it(void *unused)
{
	(void)unused;
	wait_until(flag_get(&acting->inside));
	pthread_cancel(acting->thread);
	rest(500);
	flag_set(&acting->go_on);
	return NULL;
}

/* A thread that retires may hold any lock, unless callbacks run in the caller. */
static void *hold_lock(void *unused)
{
	struct world *w = acting->world;

	(void)unused;
	pthread_mutex_lock(&acting->lock);
	wait_until(flag_get(&acting->inside));
	rcu_read_lock();
	for (int i = 0; i < 3000; i++) {
		call_rcu(&object_owed(w)->rcu, object_rcu);
		call_srcu(&w->srcu, &object_owed(w)->rcu, object_rcu);
		call_hazptr(&object_owed(w)->hazptr, object_hazptr);
	}
	rcu_read_unlock();
	pthread_mutex_unlock(&acting->lock);
	return NULL;
}

static void act_inside(void *arg)
{
	static struct world w;
	pthread_t thread, other;
	bool has_other = true;

	acting = arg;
	acting->world = &w;
	pthread_mutex_init(&acting->lock, NULL);
	world_begin(&w, NR_BYSTANDERS);
	quiesce_set_misuse_hook(note_end);
	if (acting->act->fn == is_cancelled_by_another)
		thread_begin(&other, cancel_it, NULL);
	else if (acting->act->fn == takes_a_lock)
		thread_begin(&other, hold_lock, NULL);
	else
		has_other = false;
	thread_begin(&thread, run_act, NULL);
	pthread_join(thread, NULL);
	if (has_other)
		pthread_join(other, NULL);
	must(flag_get(&acting->over));
	all_kinds_run();
	must(!acting->act->is_reported || flag_get(&nr_reported) > 0);
	must(acting->act->is_reported || flag_get(&nr_reported) == 0);
	quiesce_set_misuse_hook(NULL);
	world_settle(&w);
}

static const struct act planted_act = { "never comes back", never_comes_back, false };

static const struct act acts[] = {
	{ "is cancelled", is_cancelled, false },
	{ "is cancelled by another thread", is_cancelled_by_another, false },
	{ "ends its thread", ends_its_thread, true },
	{ "allows its cancellation", allows_its_cancellation, true },
	{ "forks, and goes on in both", forks, false },
	{ "takes a lock that a retiring reader holds", takes_a_lock, false },
};

#ifdef HAVE_CXX
static void run_throwing(void *arg)
{
	const struct kind *kind = arg;
	static struct world w;

	world_begin(&w, 0);
	kind->run(&w, throw_an_exception, NULL);
	_exit(0);
}

/* The exception ends the process where it is thrown, with a line that names it. */
static void throw_inside(void *arg)
{
	char text[4000] = "";
	size_t length = 0;
	int fd[2], status;
	ssize_t n;
	pid_t pid;

	must(pipe(fd) == 0);
	pid = fork();
	if (pid == 0) {
		dup2(fd[1], STDERR_FILENO);
		close(fd[0]);
		child_begin();
		run_throwing(arg);
	}
	close(fd[1]);
	while ((n = read(fd[0], text + length, sizeof text - 1 - length)) > 0)
		length += (size_t)n;
	must(waitpid(pid, &status, 0) == pid);
	must(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	must(strstr(text, "an exception leaves"));
}
#endif

int situation_acts(void)
{
	const struct kind *kind;

	for_each_kind(kind, k) {
		if (!kind->ends)
			continue;
		if (planted_call()) {
			struct acting a = { .kind = kind, .act = &planted_act };

			cell(act_inside, &a, "a callback of %s %s", kind->name, planted_act.name);
		}
		for (size_t i = 0; i < sizeof acts / sizeof *acts; i++) {
			struct acting a = { .kind = kind, .act = &acts[i] };

			cell(act_inside, &a, "a callback of %s %s", kind->name, acts[i].name);
		}
#ifdef HAVE_CXX
		cell(throw_inside, (void *)(uintptr_t)kind, "a callback of %s throws", kind->name);
#endif
	}
	return cells_end();
}
