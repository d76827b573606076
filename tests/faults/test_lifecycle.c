/* SPDX-License-Identifier: MIT */
/* test_lifecycle.c - events in the life of a process after the library has been used: other rights, another root, no descriptors, limits,
 * another program in the same process, and each way to end, from inside sections.  docs/lifecycle.md names these tests.
 *
 * Each event happens in a process of its own: this program executes itself with the name of the event.
 */
#include "../unit/testing.h"
#include "use.h"

#include <quiesce/percpu_ref.h>
#include <quiesce/percpu_rwsem.h>
#include <quiesce/slab.h>
#include <quiesce/srcu.h>

#include <grp.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/stat.h>

extern char **environ;

#define NOBODY 65534

static struct held reader; /* is inside a section while the event happens */

/* ---- counts of CPUs, which use.h does not use ---- */

DEFINE_STATIC_SRCU(domain);
DEFINE_STATIC_PERCPU_RWSEM(lock);
static struct percpu_ref count;
static int nr_released;

static void released(struct percpu_ref *ref)
{
	(void)ref;
	count_up(&nr_released);
}

static bool use_counts(void)
{
	int idx = srcu_read_lock(&domain), before = flag_get(&nr_released);

	srcu_read_unlock(&domain, idx);
	synchronize_srcu(&domain);
	percpu_down_read(&lock);
	percpu_up_read(&lock);
	percpu_down_write(&lock);
	percpu_up_write(&lock);
	must(percpu_ref_init(&count, released, 0) == 0);
	percpu_ref_get(&count);
	percpu_ref_put(&count);
	percpu_ref_kill(&count);
	wait_until(flag_get(&nr_released) > before);
	percpu_ref_exit(&count);
	return flag_get(&nr_released) == before + 1;
}

/* ---- caches, which use.h does not use ---- */

struct cached {
	struct rcu_head rcu;
	uint64_t value;
};
static struct kmem_cache *cache, *typesafe;

/* Return whether the cache gave objects, and has them all back. */
static bool use_cache(struct kmem_cache *c)
{
	struct kmem_cache_stats stats;
	struct cached *one;
	void *row[100];

	one = kmem_cache_zalloc(c);
	must(one && !one->value && kmem_cache_alloc_bulk(c, 100, row) == 100);
	kfree_rcu(one, rcu);
	kmem_cache_free_bulk(c, 99, row);
	kmem_cache_free(c, row[99]);
	rcu_barrier();
	must(kmem_cache_shrink(c) == 0);
	kmem_cache_get_stats(c, &stats);
	return !stats.objects && !stats.sheaved;
}

/* The caches are made before the event, and are used by all after it. */
static bool use_caches(void)
{
	if (!cache) {
		cache = KMEM_CACHE(cached, 0);
		typesafe = KMEM_CACHE(cached, SLAB_TYPESAFE_BY_RCU);
	}
	must(cache && typesafe);
	return use_cache(cache) && use_cache(typesafe);
}

/* ---- events after which the process goes on ---- */

/* The C library changes the ids of each thread by a signal, the library's own threads included. */
static int threads_of_other_users(void)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	int nr = 0;

	while (dir && (entry = readdir(dir))) {
		struct stat info;

		if (entry->d_name[0] != '.' && fstatat(dirfd(dir), entry->d_name, &info, 0) == 0)
			nr += info.st_uid != NOBODY;
	}
	if (dir)
		closedir(dir);
	return nr;
}

static void drop_rights(void)
{
	must(setgroups(0, NULL) == 0 && setgid(NOBODY) == 0 && setuid(NOBODY) == 0);
	must(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0); /* without it the files of /proc/self stay root's */
	must(threads_of_other_users() == 0);
}

static void change_root(void)
{
	char empty[] = "/tmp/quiesce-XXXXXX";

	must(mkdtemp(empty) && chroot(empty) == 0 && chdir("/") == 0);
	must(access("/proc", F_OK) != 0);
}

static void change_root_and_drop_rights(void)
{
	change_root();
	must(setgroups(0, NULL) == 0 && setgid(NOBODY) == 0 && setuid(NOBODY) == 0);
}

static void close_descriptors(void)
{
	for (int fd = 0; fd < 1024; fd++)
		close(fd);
}

static void allow_no_descriptors(void)
{
	struct rlimit none = { 0, 0 };

	must(setrlimit(RLIMIT_NOFILE, &none) == 0);
}

static void leave_session(void)
{
	must(setsid() >= 0 || errno == EPERM);
	must(chdir("/") == 0);
	umask(0777);
}

/* ---- events that end the program ---- */

static void execute_another(void)
{
	rcu_read_lock();
	shazptr_protect(&use_single);
	execl("/bin/true", "true", (char *)NULL);
}

static void end_by_exit(void)
{
	rcu_read_lock();
	shazptr_protect(&use_single);
	exit(0);
}

static void end_by_underscore_exit(void)
{
	rcu_read_lock();
	_exit(0);
}

static void end_by_quick_exit(void)
{
	rcu_read_lock();
	quick_exit(0);
}

static void callback_that_exits(struct rcu_head *head)
{
	(void)head;
	exit(0);
}

static void end_in_a_callback(void)
{
	static struct rcu_head head;

	call_rcu(&head, callback_that_exits);
	held_end(&reader);
	for (;;)
		pause();
}

static void end_by_abort(void)
{
	rcu_read_lock();
	abort();
}

static void end_by_a_fault(void)
{
	rcu_read_lock();
	raise(SIGSEGV);
}

static const struct event {
	const char *name;
	void (*happen)(void);
	bool as_root;
	int signal; /* the process ends by it */
} events[] = {
	{ "setuid", drop_rights, true, 0 },
	{ "chroot", change_root, true, 0 },
	{ "chroot and setuid", change_root_and_drop_rights, true, 0 },
	{ "all descriptors closed", close_descriptors, false, 0 },
	{ "no descriptor allowed", allow_no_descriptors, false, 0 },
	{ "another session", leave_session, false, 0 },
	{ "exec from inside a section", execute_another, false, 0 },
	{ "exit() from inside a section", end_by_exit, false, 0 },
	{ "_exit() from inside a section", end_by_underscore_exit, false, 0 },
	{ "quick_exit() from inside a section", end_by_quick_exit, false, 0 },
	{ "exit() in a callback", end_in_a_callback, false, 0 },
	{ "abort() from inside a section", end_by_abort, false, SIGABRT },
	{ "a fatal signal inside a section", end_by_a_fault, false, SIGSEGV },
};
enum { NR_EVENTS = sizeof events / sizeof *events };

/* The process of one event: the library is in full use before, during, and after it. */
static int live(const struct event *event)
{
	alarm(watchdog_seconds());
	must(use_with_threads(2, 1) && use_counts() && use_caches() && stats_now().worker_running);
	held_begin(&reader, NULL);
	event->happen();
	held_end(&reader);
	return use_with_threads(4, 3) && use_counts() && use_caches() && quiesce_shutdown(0) == 0 && use_with_threads(2, 1) ? 0 : 1;
}

/* ---- the tests ---- */

static int nr_event;

static void event_passes(void **state)
{
	const struct event *event = &events[nr_event];
	char number[16], program[] = "/proc/self/exe";
	char *argv[] = { program, number, NULL };
	int status = -1;
	bool good;
	pid_t pid;

	(void)state;
	snprintf(number, sizeof number, "%d", nr_event++);
	if (event->as_root && geteuid() != 0) {
		print_message("# %s is not tried: only root may\n", event->name);
		return;
	}
	alarm(2 * watchdog_seconds());
	assert_int_equal(posix_spawn(&pid, program, NULL, NULL, argv, environ), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	good = event->signal ? WIFSIGNALED(status) && WTERMSIG(status) == event->signal : exited_with(status, 0);
	if (!good)
		print_error("%s: wait status %#x\n", event->name, (unsigned int)status);
	assert_true(good);
}

int main(int argc, char **argv)
{
	struct CMUnitTest tests[NR_EVENTS];

	if (argc > 1)
		return live(&events[atoi(argv[1])]);
	for (int i = 0; i < NR_EVENTS; i++)
		tests[i] = (struct CMUnitTest){ .name = events[i].name, .test_func = event_passes };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
