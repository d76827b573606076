/* SPDX-License-Identifier: MIT */
/* cells.c - calls in processes of their own: how they are run, judged and printed. */
#include "callers.h"

#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

static unsigned int nr_cells, nr_failed;
static const char *only; /* a part of the names of cells that are run */

static const char *setting(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

unsigned int cell_seconds(void)
{
	const char *value = setting("CALLERS_ALARM");

	return value ? (unsigned int)strtoul(value, NULL, 10) : 30;
}

bool cells_are_long(void)
{
	return setting("CI_LONG") != NULL;
}

unsigned int cell_number(void)
{
	static unsigned int number;
	const char *seed = setting("CALLERS_SEED");

	return number++ + (seed ? (unsigned int)strtoul(seed, NULL, 10) : 0) * 1013904223u;
}

bool cells_are_all(void)
{
	return only || cells_are_long();
}

bool cell_is_drawn(size_t i, size_t k, unsigned int one_of)
{
	const char *seed = setting("CALLERS_SEED");

	return cells_are_all() || (i + k + (seed ? strtoul(seed, NULL, 10) : 0)) % one_of == 0;
}

/* ---- in a cell ---- */

void cell_fails(const char *file, int line, const char *what)
{
	dprintf(STDERR_FILENO, "%s:%d: not so: %s\n", file, line, what);
	_exit(3);
}

void cell_skips(const char *why)
{
	dprintf(STDERR_FILENO, "%s\n", why);
	_exit(77);
}

/* A process that hangs is ended by the alarm; the name of the cell says which call it was. */
void child_begin(void)
{
	signal(SIGALRM, SIG_DFL);
	alarm(cell_seconds());
}

void child_end(pid_t pid)
{
	int status;

	must(waitpid(pid, &status, 0) == pid);
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		cell_fails(__FILE__, __LINE__, "a child comes back: it hangs");
	if (WIFSIGNALED(status))
		dprintf(STDERR_FILENO, "a child ends by signal %d\n", WTERMSIG(status));
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		_exit(77);
	if (status)
		_exit(3);
}

static void cell_begin(int error_fd)
{
	struct rlimit none = { 0, 0 };

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setrlimit(RLIMIT_CORE, &none);
	dup2(error_fd, STDERR_FILENO);
	dup2(error_fd, STDOUT_FILENO);
	close(error_fd);
	child_begin();
}

/* ---- around it ---- */

struct outcome {
	int status;
	bool hangs;
	size_t length;
	char text[6000];
};

/* Read until each process of the cell has closed the pipe; false: the time is over. */
static bool read_all(int fd, struct outcome *o)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char more[512];

	for (;;) {
		size_t room = sizeof o->text - 1 - o->length;
		ssize_t n;

		if (poll(&p, 1, (int)(cell_seconds() + 5) * 1000) == 0)
			return false;
		n = room ? read(fd, o->text + o->length, room) : read(fd, more, sizeof more);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return true;
		o->length += room ? (size_t)n : 0;
	}
}

static void judge(pid_t pid, int fd, struct outcome *o)
{
	o->length = 0;
	o->hangs = !read_all(fd, o);
	o->text[o->length] = '\0';
	close(fd);
	kill(-pid, SIGKILL); /* process group of the cell: only hanging processes are left in it */
	if (o->hangs)
		kill(pid, SIGKILL);
	waitpid(pid, &o->status, 0);
	o->hangs = o->hangs || (WIFSIGNALED(o->status) && WTERMSIG(o->status) == SIGALRM);
}

static void run_cell(void (*fn)(void *arg), void *arg, struct outcome *o)
{
	int fd[2];
	pid_t pid;

	fflush(NULL);
	if (pipe(fd))
		abort();
	pid = fork();
	if (pid == 0) {
		close(fd[0]);
		cell_begin(fd[1]);
		fn(arg);
		_exit(0);
	}
	if (pid < 0)
		abort();
	setpgid(pid, pid); /* the cell makes this call, too: either may be first */
	close(fd[1]);
	judge(pid, fd[0], o);
}

static void print_lines(const char *text)
{
	char copy[6000], *at = copy, *line;

	snprintf(copy, sizeof copy, "%s", text);
	while ((line = strsep(&at, "\n")))
		if (*line)
			printf("#   %s\n", line);
}

static bool print_outcome(const char *name, const struct outcome *o)
{
	bool skipped = WIFEXITED(o->status) && WEXITSTATUS(o->status) == 77;
	bool ok = skipped || (!o->hangs && o->status == 0 && !o->length);

	nr_failed += !ok;
	if (skipped)
		printf("ok %u - %s # SKIP %.*s\n", nr_cells, name, (int)strcspn(o->text, "\n"), o->text);
	else
		printf("%s %u - %s\n", ok ? "ok" : "not ok", nr_cells, name);
	if (ok)
		return true;
	if (o->hangs)
		printf("# hangs: %s\n", name);
	else if (WIFSIGNALED(o->status))
		printf("# ends by signal %d: %s\n", WTERMSIG(o->status), name);
	print_lines(o->text);
	fflush(stdout);
	return false;
}

bool cell(void (*fn)(void *arg), void *arg, const char *format, ...)
{
	static struct outcome o;
	char name[200];
	va_list args;

	va_start(args, format);
	vsnprintf(name, sizeof name, format, args);
	va_end(args);
	if (only && !strstr(name, only))
		return true;
	nr_cells++;
	run_cell(fn, arg, &o);
	return print_outcome(name, &o);
}

int cells_end(void)
{
	printf("1..%u\n", nr_cells);
	if (nr_failed)
		printf("# %u of %u cells failed\n", nr_failed, nr_cells);
	return nr_failed || !nr_cells;
}

/* ---- this program again ---- */

void again(const char *when, const char *name)
{
	char program[] = "/proc/self/exe", *argv[] = { program, NULL };

	setenv("CALLERS_WHEN", when, 1);
	setenv("CALLERS_CALL", name, 1);
	execv(program, argv);
	cell_fails(__FILE__, __LINE__, "execv() succeeds");
}

const char *again_when(void)
{
	return setting("CALLERS_WHEN");
}

const struct call *again_call(void)
{
	const char *name = setting("CALLERS_CALL");
	const struct call *call = NULL;

	for_each_call(call, i)
		if (name && !strcmp(call->name, name))
			break;
	return call;
}

void cells_only(const char *pattern)
{
	only = pattern;
}
