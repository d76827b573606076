/* SPDX-License-Identifier: MIT */
/* stopped.c - each call while every other thread of the process is stopped, at any place.
 *
 * The cell stops them by ptrace(), repeatedly, each time after another number of microseconds.  Calls that never wait return
 * while the others are stopped, all other calls as soon as these continue.
 */
#include "world.h"

#include <dirent.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

enum { MAX_TASKS = 64 };

/* Memory that the cell and the process that it stops share. */
struct shared {
	int ready, go, done; /* numbers of rounds */
};

struct stop {
	const struct call *call;
	unsigned int seed;
	int nr_rounds;
	struct shared *shared;
	pid_t process;
	pid_t task[MAX_TASKS]; /* threads that are stopped */
	int nr_tasks;
};

/* ---- the process that is stopped ---- */

static void be_stopped(const struct stop *s)
{
	struct world w;

	child_begin();
	world_begin(&w, NR_BYSTANDERS);
	must(world_read(&w));
	for (int round = 1; round <= s->nr_rounds; round++) {
		quiesce_store_relaxed(&s->shared->ready, round); /* Relaxed: a number. */
		wait_until(flag_get(&s->shared->go) == round);
		world_call(&w, s->call);
		quiesce_store_relaxed(&s->shared->done, round); /* Relaxed: a number. */
	}
	world_settle(&w);
	_exit(0);
}

/* ---- the cell ---- */

static bool is_stopped(const struct stop *s, pid_t task)
{
	for (int i = 0; i < s->nr_tasks; i++)
		if (s->task[i] == task)
			return true;
	return false;
}

/* Stop a thread; false if it has ended meanwhile. */
static bool stop_task(pid_t task)
{
	int status;

	if (ptrace(PTRACE_SEIZE, task, NULL, NULL)) {
		if (errno == EPERM)
			cell_skips("ptrace() is not permitted");
		return false;
	}
	return ptrace(PTRACE_INTERRUPT, task, NULL, NULL) == 0 && waitpid(task, &status, __WALL) == task && WIFSTOPPED(status);
}

/* Stop running threads; true if there were some, which may have started others. */
static bool stop_some(struct stop *s)
{
	char path[40];
	struct dirent *entry;
	bool found = false;
	DIR *dir;

	snprintf(path, sizeof path, "/proc/%d/task", (int)s->process);
	dir = opendir(path);
	must(dir);
	while ((entry = readdir(dir))) {
		pid_t task = (pid_t)strtol(entry->d_name, NULL, 10);

		if (task <= 0 || task == s->process || is_stopped(s, task) || s->nr_tasks == MAX_TASKS)
			continue;
		found = true;
		if (stop_task(task))
			s->task[s->nr_tasks++] = task;
	}
	closedir(dir);
	return found;
}

static void let_go(struct stop *s)
{
	for (int i = 0; i < s->nr_tasks; i++)
		ptrace(PTRACE_DETACH, s->task[i], NULL, NULL);
	s->nr_tasks = 0;
}

static bool is_over(const struct stop *s)
{
	siginfo_t info = { .si_pid = 0 };

	return waitid(P_PID, (id_t)s->process, &info, WEXITED | WNOHANG | WNOWAIT) || info.si_pid;
}

/* A process that has ended is checked later. */
static void wait_for_round(const struct stop *s, const int *number, int round)
{
	wait_until(flag_get(number) == round || is_over(s));
}

static void stop_once(struct stop *s, int round)
{
	wait_for_round(s, &s->shared->ready, round);
	s->seed = s->seed * 1103515245u + 12345u;
	rest(s->seed / 65536 % 150);
	while (stop_some(s))
		;
	quiesce_store_relaxed(&s->shared->go, round); /* Relaxed: a number. */
	if (has(s->call, NEVER_WAITS))
		wait_for_round(s, &s->shared->done, round);
	else
		rest(500);
	let_go(s);
	wait_for_round(s, &s->shared->done, round);
}

static void stop_and_call(void *arg)
{
	struct stop *s = arg;

	s->shared = mmap(NULL, sizeof *s->shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	must(s->shared != MAP_FAILED);
	s->process = fork();
	must(s->process >= 0);
	if (s->process == 0)
		be_stopped(s);
	for (int round = 1; round <= s->nr_rounds && !is_over(s); round++)
		stop_once(s, round);
	child_end(s->process);
}

int situation_stopped(void)
{
	const struct call *call;

	for_each_call(call, i) {
		struct stop s = { .call = call, .seed = cell_number(), .nr_rounds = cells_are_long() ? 200 : 12 };

		cell(stop_and_call, &s, "%s - %s", has(call, NEVER_WAITS) ? "while others stand still" : "when others have stood still",
		     call->name);
	}
	return cells_end();
}
