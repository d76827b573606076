/* SPDX-License-Identifier: MIT */
/* test_percpu_ends.c - threads that end, vanish or are cancelled with a lock or a section: waits, reports, and releases by others. */
#include "../unit/rwsems.h"

#include <quiesce/srcu.h>

DEFINE_STATIC_PERCPU_RWSEM(sem);
DEFINE_STATIC_SRCU(domain);

/* ---- a thread ends, and its locks and sections stay ---- */

enum how { RETURN, EXIT, VANISH };

struct ending {
	enum how how;
	bool write;
	int idx, gone;
};

static void *end_with_all(void *arg)
{
	struct ending *e = arg;

	if (e->write)
		percpu_down_write(&sem);
	else
		percpu_down_read(&sem);
	e->idx = srcu_read_lock(&domain);
	if (e->how == EXIT)
		pthread_exit(NULL);
	if (e->how == VANISH) {
		pthread_detach(pthread_self());
		flag_set(&e->gone);
		syscall(SYS_exit, 0);
	}
	return NULL;
}

static void thread_ends(struct ending *e)
{
	pthread_t thread;

	thread_must(pthread_create(&thread, NULL, end_with_all, e));
	if (e->how == VANISH)
		wait_until(flag_get(&e->gone));
	else
		pthread_join(thread, NULL);
}

static void *wait_for_domain(void *done)
{
	synchronize_srcu(&domain);
	flag_set((int *)done);
	return NULL;
}

static void section_stays(int idx)
{
	uint64_t sleeps = stats_now().sleeps;
	pthread_t thread;
	int done = 0;

	thread_must(pthread_create(&thread, NULL, wait_for_domain, &done));
	wait_until(stats_now().sleeps > sleeps + 1);
	must(!flag_get(&done));
	srcu_read_unlock(&domain, idx);
	pthread_join(thread, NULL);
}

static enum how how_now;

static void a_reader_ends(void)
{
	struct ending e = { .how = how_now };

	thread_ends(&e);
	must(percpu_is_read_locked(&sem));
	must(!percpu_down_write_trylock(&sem));
	must(!percpu_down_write_timeout(&sem, 2 * MS));
	must(percpu_down_read_trylock(&sem));
	percpu_up_read(&sem);
	percpu_up_read(&sem); /* any thread may release it */
	percpu_down_write(&sem);
	percpu_up_write(&sem);
	section_stays(e.idx);
}

static void a_writer_ends(void)
{
	struct ending e = { .how = how_now, .write = true };
	struct user w;

	thread_ends(&e);
	must(percpu_is_write_locked(&sem) && !percpu_is_write_locked_by_me(&sem));
	must(!percpu_down_read_trylock(&sem));
	must(!percpu_down_read_timeout(&sem, 2 * MS));
	must(!percpu_down_write_timeout(&sem, 2 * MS));
	user_queued(&w, &sem, true, 0);
	percpu_up_write(&sem);
	user_leave(&w);
	percpu_down_read(&sem);
	percpu_up_read(&sem);
	section_stays(e.idx);
}

static void threads_end_with_all_they_have(void **state)
{
	struct outcome o;

	(void)state;
	for (int i = 0; i < 6; i++) {
		how_now = (enum how)(i / 2);
		in_child(i % 2 ? a_writer_ends : a_reader_ends, &o);
		if (!exited_with(o.status, 0))
			fail_msg("%d: wait status %#x, stderr: %s", i, (unsigned int)o.status, o.text);
	}
	alarm(watchdog_seconds());
}

/* ---- a wait without end is reported with its cause ---- */

static void writer_stalls(void)
{
	struct ending e = { .how = RETURN };
	uint64_t stalls = stats_now().stalls;
	struct user w;

	thread_ends(&e);
	user_drains(&w, &sem, 0);
	wait_until(stats_now().stalls > stalls);
	percpu_up_read(&sem);
	user_leave(&w);
}

static void updater_stalls(void)
{
	struct ending e = { .how = RETURN };
	uint64_t stalls = stats_now().stalls;
	pthread_t thread;
	int done = 0;

	thread_ends(&e);
	thread_must(pthread_create(&thread, NULL, wait_for_domain, &done));
	wait_until(stats_now().stalls > stalls);
	must(!flag_get(&done));
	srcu_read_unlock(&domain, e.idx);
	pthread_join(thread, NULL);
}

static void do_nothing(struct rcu_head *head)
{
	(void)head;
}

static void callbacks_stall(void)
{
	struct ending e = { .how = RETURN };
	uint64_t stalls = stats_now().stalls;
	static struct rcu_head head;

	thread_ends(&e);
	call_srcu(&domain, &head, do_nothing);
	wait_until(stats_now().stalls > stalls);
	srcu_read_unlock(&domain, e.idx);
	srcu_barrier(&domain);
}

/* The environment sets the time of reports: see meson.build. */
static void stalls_are_reported(void **state)
{
	static void (*const who[])(void) = { writer_stalls, updater_stalls, callbacks_stall };
	static const char *const says[] = { "percpu_down_write(", "synchronize_srcu(", "call_srcu(" };
	struct outcome o;

	(void)state;
	for (int i = 0; i < 3; i++) {
		in_child(who[i], &o);
		if (!exited_with(o.status, 0))
			fail_msg("%d: wait status %#x, stderr: %s", i, (unsigned int)o.status, o.text);
		assert_true(count_lines(o.text) >= 1);
		assert_int_equal(strncmp(o.text, "quiesce: ", 9), 0);
		if (!strstr(o.text, says[i]) || !strstr(o.text, "1 readers"))
			fail_msg("%d: \"%s\"", i, o.text);
		alarm(watchdog_seconds());
	}
}

/* ---- cancellation ---- */

struct cancelled {
	pthread_t thread;
	bool write;
	int inside, asked;
};

static void let_go(void *arg)
{
	struct cancelled *c = arg;

	if (c->write)
		percpu_up_write(&sem);
	else
		percpu_up_read(&sem);
}

static void *hold_until_cancelled(void *arg)
{
	struct cancelled *c = arg;

	flag_set(&c->asked);
	if (c->write)
		percpu_down_write(&sem);
	else
		percpu_down_read(&sem);
	pthread_cleanup_push(let_go, c);
	flag_set(&c->inside);
	for (;;)
		pause();
	pthread_cleanup_pop(1);
	return NULL;
}

static void cancel(struct cancelled *c)
{
	void *result;

	pthread_cancel(c->thread);
	pthread_join(c->thread, &result);
	assert_ptr_equal(result, PTHREAD_CANCELED);
}

/* A wait for the lock is no cancellation point, so a cancelled thread has the lock at its next one. */
static void a_cancelled_thread_lets_go(void **state)
{
	(void)state;
	for (int write = 0; write < 2; write++) {
		struct cancelled c = { .write = write };

		thread_must(pthread_create(&c.thread, NULL, hold_until_cancelled, &c));
		wait_until(flag_get(&c.inside));
		cancel(&c);
		lock_works(&sem);
	}
}

static void a_waiter_is_cancelled_once_it_has_the_lock(void **state)
{
	(void)state;
	for (int write = 0; write < 2; write++) {
		struct cancelled c = { .write = write };

		percpu_down_write(&sem);
		thread_must(pthread_create(&c.thread, NULL, hold_until_cancelled, &c));
		wait_until(read_waiter(&sem.first));
		pthread_cancel(c.thread);
		for (int i = 0; i < 5; i++) {
			short_rest();
			assert_false(flag_get(&c.inside));
		}
		percpu_up_write(&sem);
		cancel(&c);
		assert_true(flag_get(&c.inside));
		lock_works(&sem);
	}
}

/* ---- the library's own thread ---- */

static void end_beside_helper(void)
{
	static struct rcu_head head[100];
	int idx = srcu_read_lock(&domain);

	for (int i = 0; i < 100; i++)
		call_srcu(&domain, &head[i], do_nothing);
	percpu_down_write(&sem);
	percpu_up_write(&sem);
	percpu_down_write(&sem);
	(void)idx; /* section, write lock and callbacks are there yet */
	exit(0);
}

static void a_process_ends_whatever_is_left(void **state)
{
	struct outcome o;

	(void)state;
	for (int i = 0; i < 5; i++) {
		in_child(end_beside_helper, &o);
		if (!exited_with(o.status, 0))
			fail_msg("%d: wait status %#x, stderr: %s", i, (unsigned int)o.status, o.text);
		assert_int_equal(o.length, 0);
	}
	alarm(watchdog_seconds());
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(threads_end_with_all_they_have),
		TEST(stalls_are_reported),
		TEST(a_cancelled_thread_lets_go),
		TEST(a_waiter_is_cancelled_once_it_has_the_lock),
		TEST(a_process_ends_whatever_is_left),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
