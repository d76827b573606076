/* SPDX-License-Identifier: MIT */
/* test_misuse.c - every detected misuse, with a hook and with the default: one line, then abort. */
#include <quiesce/ds/value_queue.h>
#include <quiesce/percpu_ref.h>
#include <quiesce/percpu_rwsem.h>
#include <quiesce/srcu.h>

#include "misuses.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

/* ---- waiting in a section ---- */

static void in_section_synchronize(void)
{
	rcu_read_lock();
	synchronize_rcu();
	rcu_read_unlock();
}

static void in_section_expedited(void)
{
	rcu_read_lock();
	synchronize_rcu_expedited();
	rcu_read_unlock();
}

static void in_section_cond(void)
{
	rcu_read_lock();
	cond_synchronize_rcu(get_state_synchronize_rcu());
	rcu_read_unlock();
}

static void in_section_barrier(void)
{
	rcu_read_lock();
	rcu_barrier();
	rcu_read_unlock();
}

static void in_section_shutdown(void)
{
	rcu_read_lock();
	if (quiesce_shutdown(0) == 0)
		abort();
	rcu_read_unlock();
}

static void in_section_kfree(void)
{
	int *object = malloc(sizeof *object);

	rcu_read_lock();
	kfree_rcu_mightsleep(object);
	rcu_read_unlock();
	free(object); /* the call had no effect */
}

static void free_one(struct rcu_head *head)
{
	free(head);
}

/* A throttle inside a section has no effect, because the garbage could not shrink before the section ends. */
static void in_section_throttle(void)
{
	struct rcu_head *head = malloc(sizeof *head);

	quiesce_set_garbage_ceiling(1 << 20);
	rcu_read_lock();
	call_rcu_sized(head, free_one, 2 << 20);
	rcu_throttle();
	rcu_read_unlock();
	rcu_barrier();
	quiesce_set_garbage_ceiling(64ull << 20);
}

static void in_section_pop(void)
{
	struct value_queue queue;
	int value;

	value_queue_init(&queue, sizeof value, 1);
	rcu_read_lock();
	value_queue_pop(&queue, &value);
	rcu_read_unlock();
	value_queue_destroy(&queue, NULL, NULL);
}

static void in_section_push(void)
{
	struct value_queue queue;
	int values[2] = { 1, 2 };

	value_queue_init(&queue, sizeof *values, 1);
	rcu_read_lock();
	value_queue_push_many_timeout(&queue, values, 2, UINT64_MAX);
	rcu_read_unlock();
	value_queue_destroy(&queue, NULL, NULL);
}

static void waiting_in_a_section(void **state)
{
	(void)state;
	misuse(in_section_pop, QUIESCE_MISUSE_WAIT_IN_READER, "value_queue_pop() at test_misuse");
	misuse(in_section_push, QUIESCE_MISUSE_WAIT_IN_READER, "value_queue_push_many_timeout() at test_misuse");
	misuse(in_section_throttle, QUIESCE_MISUSE_WAIT_IN_READER, "rcu_throttle()");
	misuse(in_section_synchronize, QUIESCE_MISUSE_WAIT_IN_READER, "synchronize_rcu()");
	misuse(in_section_expedited, QUIESCE_MISUSE_WAIT_IN_READER, "synchronize_rcu_expedited()");
	misuse(in_section_cond, QUIESCE_MISUSE_WAIT_IN_READER, "synchronize_rcu");
	misuse(in_section_barrier, QUIESCE_MISUSE_WAIT_IN_READER, "rcu_barrier() at test_misuse");
	misuse(in_section_shutdown, QUIESCE_MISUSE_WAIT_IN_READER, "quiesce_shutdown() at test_misuse");
	misuse(in_section_kfree, QUIESCE_MISUSE_WAIT_IN_READER, "kfree_rcu_mightsleep()");
	synchronize_rcu(); /* the refused calls leave no section open */
}

/* Places are looked up in /proc/self/maps, where a name may be longer than a line that is read. */
static void a_long_name_before_the_code(void **state)
{
	const char *directory = getenv("TMPDIR");
	char name[240], path[512];
	void *map;
	int fd;

	(void)state;
	memset(name, 'x', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	snprintf(path, sizeof path, "%s/%s", directory ? directory : "/tmp", name);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	map = mmap((void *)0x10000000, 1, PROT_READ, MAP_PRIVATE, fd, 0); /* an address below the program */
	close(fd);
	unlink(path);
	assert_true(map != MAP_FAILED);
	reported(in_section_barrier, QUIESCE_MISUSE_WAIT_IN_READER, "rcu_barrier() at test_misuse");
	munmap(map, 1);
}

/* ---- waiting in a callback ---- */

static int nr_returned;

static void barrier_run(struct rcu_head *head)
{
	(void)head;
	rcu_barrier();
	count_up(&nr_returned); /* without this the compiler makes a tail call, and the reported caller is in the library */
}

static void shutdown_run(struct rcu_head *head)
{
	(void)head;
	if (quiesce_shutdown(0) == 0)
		abort();
}

static void callback_barrier(void)
{
	static struct rcu_head head;

	call_rcu(&head, barrier_run);
	rcu_barrier();
}

static void callback_shutdown(void)
{
	static struct rcu_head head;

	call_rcu(&head, shutdown_run);
	rcu_barrier();
}

static void waiting_in_a_callback(void **state)
{
	(void)state;
	misuse(callback_barrier, QUIESCE_MISUSE_WAIT_IN_CALLBACK, "rcu_barrier() at test_misuse");
	misuse(callback_shutdown, QUIESCE_MISUSE_WAIT_IN_CALLBACK, "quiesce_shutdown() at test_misuse");
}

/* ---- unbalanced, too deep, NULL ---- */

static void unlock_only(void)
{
	rcu_read_unlock();
}

static void unlock_once_too_often(void)
{
	rcu_read_lock();
	rcu_read_lock();
	rcu_read_unlock();
	rcu_read_unlock();
	rcu_read_unlock();
}

static void *unlock_in_new_thread(void *unused)
{
	(void)unused;
	rcu_read_unlock();
	return NULL;
}

static void unlock_unregistered(void)
{
	pthread_t thread;

	thread_must(pthread_create(&thread, NULL, unlock_in_new_thread, NULL));
	pthread_join(thread, NULL);
}

static void unbalanced_unlock(void **state)
{
	(void)state;
	misuse(unlock_only, QUIESCE_MISUSE_UNBALANCED_UNLOCK, "rcu_read_unlock() at test_misuse");
	misuse(unlock_once_too_often, QUIESCE_MISUSE_UNBALANCED_UNLOCK, "rcu_read_unlock() at test_misuse");
	misuse(unlock_unregistered, QUIESCE_MISUSE_UNBALANCED_UNLOCK, "rcu_read_unlock() at test_misuse");
	assert_false(rcu_read_lock_held());
	synchronize_rcu();
}

static void nest(int depth)
{
	for (int i = 0; i < depth; i++)
		rcu_read_lock();
}

static void nest_too_deep(void)
{
	nest(8192);
}

static void nest_too_deep_with_hook(void)
{
	quiesce_set_misuse_hook(keep_report);
	nest(8192);
}

static void nesting(void **state)
{
	struct outcome o;

	(void)state;
	nest(8190);
	assert_true(rcu_read_lock_held());
	for (int i = 0; i < 8190; i++)
		rcu_read_unlock();
	assert_false(rcu_read_lock_held());
	synchronize_rcu();
	fatal(nest_too_deep, "nested deeper");
	in_child(nest_too_deep_with_hook, &o); /* the hook has received the report; the program cannot go on */
	assert_true(WIFSIGNALED(o.status));
	assert_int_equal(WTERMSIG(o.status), SIGABRT);
	assert_int_equal(o.length, 0);
}

static void null_head(void)
{
	call_rcu(NULL, barrier_run);
}

static void null_function(void)
{
	struct rcu_head head;

	call_rcu(&head, NULL);
}

static void null_objects(void **state)
{
	uint64_t queued = stats_now().callbacks_queued;

	(void)state;
	misuse(null_head, QUIESCE_MISUSE_NULL, "rcu_head");
	misuse(null_function, QUIESCE_MISUSE_NULL, "function");
	assert_int_equal(stats_now().callbacks_queued, queued);
}

static void wrong_layout(void)
{
	quiesce__rcu_lock_slow(QUIESCE_LAYOUT + 1);
}

static void layout_in_new_process(void)
{
	/* Act as a program that was built from other headers: its first section passes its layout stamp. */
	wrong_layout();
}

static void *layout_main(void *unused)
{
	(void)unused;
	layout_in_new_process();
	return NULL;
}

static void layout_thread(void)
{
	pthread_t thread;

	thread_must(pthread_create(&thread, NULL, layout_main, NULL));
	pthread_join(thread, NULL);
}

static void a_foreign_layout_aborts(void **state)
{
	(void)state;
	fatal(layout_thread, "layout");
}

static struct percpu_rw_semaphore foreign_sem = PERCPU_RWSEM_INIT;
static struct srcu_struct foreign_domain;
static struct percpu_ref foreign_ref;

static void never(struct percpu_ref *ref)
{
	(void)ref;
}

static void init_lock(void)
{
	quiesce_percpu_init_rwsem(QUIESCE_LAYOUT + 1, &foreign_sem);
}

static void use_lock(void)
{
	quiesce__percpu_down_read_slow(QUIESCE_LAYOUT + 1, &foreign_sem);
}

static void init_domain(void)
{
	quiesce_init_srcu_struct(QUIESCE_LAYOUT + 1, &foreign_domain, "foreign");
}

static void use_domain(void)
{
	quiesce__srcu_lock_slow(QUIESCE_LAYOUT + 1, &foreign_domain, 0);
}

static void init_ref(void)
{
	quiesce_percpu_ref_init(QUIESCE_LAYOUT + 1, &foreign_ref, never, 0);
}

/* The abort also comes when the first user of the counters opens them. */
static void counters_of_a_foreign_layout_abort(void **state)
{
	static void (*const how[])(void) = { init_lock, use_lock, init_domain, use_domain, init_ref };

	(void)state;
	for (size_t i = 0; i < sizeof how / sizeof *how; i++)
		fatal(how[i], "layout");
}

/* ---- a thread ends inside a section ---- */

static sem_t inside;

static void *return_inside(void *unused)
{
	(void)unused;
	rcu_read_lock();
	sem_post(&inside);
	return NULL;
}

static void *pthread_exit_inside(void *unused)
{
	(void)unused;
	rcu_read_lock();
	sem_post(&inside);
	pthread_exit(NULL);
}

static void *cancelled_inside(void *unused)
{
	(void)unused;
	rcu_read_lock();
	rcu_read_lock();
	sem_post(&inside);
	for (;;)
		pause();
	return NULL;
}

static void exit_by(void *(*fn)(void *), int cancel)
{
	pthread_t thread;

	sem_init(&inside, 0, 0);
	thread_must(pthread_create(&thread, NULL, fn, NULL));
	wait_for(&inside);
	if (cancel)
		pthread_cancel(thread);
	synchronize_rcu(); /* must not hang */
	pthread_join(thread, NULL);
	synchronize_rcu();
}

static void exit_by_return(void)
{
	exit_by(return_inside, 0);
}

static void exit_by_pthread_exit(void)
{
	exit_by(pthread_exit_inside, 0);
}

static void exit_by_cancel(void)
{
	exit_by(cancelled_inside, 1);
}

static void is_reported(void (*fn)(void))
{
	struct outcome o;

	reported(fn, QUIESCE_MISUSE_EXIT_IN_READER, "exited inside");
	in_child(fn, &o);
	assert_true(exited_with(o.status, 0)); /* reported, not fatal */
	one_line(&o, "exited inside");
	assert_null(strstr(o.text, "nil"));
}

static void exit_in_a_section(void **state)
{
	uint32_t readers = stats_now().readers;

	(void)state;
	is_reported(exit_by_return);
	is_reported(exit_by_pthread_exit);
	is_reported(exit_by_cancel);
	assert_int_equal(stats_now().readers, readers);
}

/* A key destructor that runs after the library's exit hook opens a section and forgets it. */
static pthread_key_t forgetful_key;

static void forget_to_unlock(void *unused)
{
	(void)unused;
	rcu_read_lock();
}

static void *exit_forgetfully(void *unused)
{
	(void)unused;
	rcu_read_lock();
	rcu_read_unlock();
	pthread_setspecific(forgetful_key, &forgetful_key);
	sem_post(&inside);
	return NULL;
}

static void exit_by_destructor(void)
{
	exit_by(exit_forgetfully, 0);
}

static void exit_in_a_section_of_a_destructor(void **state)
{
	(void)state;
	assert_int_equal(pthread_key_create(&forgetful_key, forget_to_unlock), 0);
	is_reported(exit_by_destructor);
	pthread_key_delete(forgetful_key);
}

/* A thread vanishes without its destructors, as one of another run-time library may. */
static void *vanish_inside(void *unused)
{
	(void)unused;
	pthread_detach(pthread_self());
	rcu_read_lock();
	sem_post(&inside);
	syscall(SYS_exit, 0);
	return NULL;
}

static void vanish(void)
{
	uint32_t readers = stats_now().readers;
	pthread_t thread;

	sem_init(&inside, 0, 0);
	thread_must(pthread_create(&thread, NULL, vanish_inside, NULL));
	wait_for(&inside);
	errno = ENOTTY; /* must not change, whatever the kernel returns for a thread that has ended */
	synchronize_rcu();
	if (errno != ENOTTY || stats_now().readers != readers)
		abort();
}

static void a_vanished_thread_does_not_hang_updaters(void **state)
{
	struct outcome o;

	(void)state;
	in_child(vanish, &o);
	assert_true(exited_with(o.status, 0));
}

/* ---- debug build ---- */

#ifdef QUIESCE_DEBUG
static int *shared_pointer;
static int lock_is_held;

static void fetch_outside(void)
{
	(void)rcu_dereference_check(shared_pointer, lock_is_held);
}

static void fetch_unprotected(void)
{
	(void)rcu_dereference_protected(shared_pointer, lock_is_held);
}

static void the_debug_build_checks_the_fetcher(void **state)
{
	(void)state;
	reported(fetch_outside, QUIESCE_MISUSE_NOT_HELD, "rcu_dereference_check(shared_pointer, lock_is_held): the caller does not hold");
	reported(fetch_unprotected, QUIESCE_MISUSE_NOT_HELD, "rcu_dereference_protected(shared_pointer, lock_is_held)");
}

static void the_debug_build_shows_where(void **state)
{
	(void)state;
	reported(in_section_synchronize, QUIESCE_MISUSE_WAIT_IN_READER, "began near test_misuse-debug+0x");
	reported(in_section_pop, QUIESCE_MISUSE_WAIT_IN_READER, "began near test_misuse-debug+0x");
	reported(exit_by_return, QUIESCE_MISUSE_EXIT_IN_READER, "began near test_misuse-debug+0x");
}
#define DEBUG_TESTS TEST(the_debug_build_shows_where), TEST(the_debug_build_checks_the_fetcher),
#else
#define DEBUG_TESTS
#endif

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(waiting_in_a_section),
		TEST(a_long_name_before_the_code),
		TEST(waiting_in_a_callback),
		TEST(unbalanced_unlock),
		TEST(nesting),
		TEST(null_objects),
		TEST(a_foreign_layout_aborts),
		TEST(counters_of_a_foreign_layout_abort),
		TEST(exit_in_a_section),
		TEST(exit_in_a_section_of_a_destructor),
		TEST(a_vanished_thread_does_not_hang_updaters),
		DEBUG_TESTS
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
