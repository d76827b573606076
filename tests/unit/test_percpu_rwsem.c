/* SPDX-License-Identifier: MIT */
/* test_percpu_rwsem.c - the promises of each call of percpu_rwsem.h, one caller after the other. */
#include "rwsems.h"

#include <errno.h>

DEFINE_PERCPU_RWSEM(global_lock);
DEFINE_STATIC_PERCPU_RWSEM(static_lock);
static struct percpu_rw_semaphore dynamic_lock;

static struct percpu_rw_semaphore *const locks[] = { &global_lock, &static_lock, &dynamic_lock };
#define FOR_EACH_LOCK(sem) for (size_t k_ = 0; k_ < 3 && (sem = locks[k_]); k_++)

/* ---- both sides ---- */

static void a_lock_works_from_the_start(void **state)
{
	struct percpu_rw_semaphore *sem;

	(void)state;
	assert_false(percpu_is_read_locked(&static_lock));
	assert_false(percpu_is_write_locked(&static_lock));
	assert_int_equal(percpu_init_rwsem(&dynamic_lock), 0);
	FOR_EACH_LOCK(sem)
		for (int i = 0; i < 3; i++)
			lock_works(sem);
}

static void readers_are_inside_together(void **state)
{
	struct percpu_rw_semaphore *sem;
	struct user r[4];

	(void)state;
	FOR_EACH_LOCK(sem) {
		for (int i = 0; i < 4; i++)
			user_inside(&r[i], sem, false);
		assert_true(percpu_down_read_trylock(sem));
		assert_true(percpu_down_read_timeout(sem, MS));
		percpu_up_read(sem);
		percpu_up_read(sem);
		for (int i = 0; i < 4; i++) {
			assert_true(percpu_is_read_locked(sem));
			assert_false(percpu_down_write_trylock(sem));
			user_leave(&r[i]);
		}
		assert_false(percpu_is_read_locked(sem));
	}
}

static void ask_in_vain(void *sem)
{
	assert_false(percpu_down_read_trylock(sem));
	assert_false(percpu_down_read_timeout(sem, 0));
	assert_false(percpu_down_read_timeout(sem, 2 * MS));
	assert_false(percpu_down_write_trylock(sem));
	assert_false(percpu_down_write_timeout(sem, 2 * MS));
	assert_false(percpu_is_write_locked_by_me(sem));
	assert_true(percpu_is_write_locked(sem));
	assert_false(percpu_is_read_locked(sem));
}

static void a_writer_is_inside_alone(void **state)
{
	struct percpu_rw_semaphore *sem;

	(void)state;
	FOR_EACH_LOCK(sem) {
		percpu_down_write(sem);
		elsewhere(ask_in_vain, sem);
		assert_true(percpu_is_write_locked_by_me(sem));
		percpu_up_write(sem);
		assert_false(percpu_is_write_locked_by_me(sem));
		assert_true(percpu_down_write_timeout(sem, 1000 * MS));
		elsewhere(ask_in_vain, sem);
		percpu_up_write(sem);
		lock_works(sem);
	}
}

static void ask_beside_readers(void *sem)
{
	assert_false(percpu_down_write_trylock(sem));
	assert_false(percpu_down_write_timeout(sem, 2 * MS));
	assert_false(percpu_is_write_locked(sem)); /* failed attempts leave no count behind */
	assert_true(percpu_down_read_trylock(sem));
	percpu_up_read(sem);
	assert_true(percpu_down_read_timeout(sem, 0));
	percpu_up_read(sem);
}

/* Writers wait for readers on the fast path and on the slow one. */
static void a_reader_keeps_writers_out(void **state)
{
	struct percpu_rw_semaphore *sem;

	(void)state;
	FOR_EACH_LOCK(sem)
		for (int slow = 0; slow < 2; slow++) {
			wait_until(rcu_sync_is_idle(&sem->rss));
			if (slow)
				lock_works(sem);
			percpu_down_read(sem);
			elsewhere(ask_beside_readers, sem);
			assert_true(percpu_is_read_locked(sem));
			percpu_up_read(sem);
			lock_works(sem);
		}
}

/* The writer sleeps until the last reader has left, whichever path each has taken. */
static void a_writer_waits_for_each_reader(void **state)
{
	struct percpu_rw_semaphore *sem;
	struct user r[3], w;

	(void)state;
	FOR_EACH_LOCK(sem) {
		for (int i = 0; i < 3; i++)
			user_inside(&r[i], sem, false);
		user_drains(&w, sem, 0);
		for (int i = 0; i < 3; i++) {
			for (int k = 0; k < 3; k++) {
				short_rest();
				assert_false(flag_get(&w.inside));
			}
			user_leave(&r[i]);
		}
		wait_until(flag_get(&w.inside));
		elsewhere(ask_in_vain, sem);
		user_leave(&w);
		lock_works(sem);
	}
}

/* ---- fast and slow ---- */

/* A reader enters by the fast path and leaves by the slow one, and the other way round. */
static void a_section_may_outlive_the_mode_it_began_in(void **state)
{
	struct percpu_rw_semaphore *sem;

	(void)state;
	FOR_EACH_LOCK(sem) {
		wait_until(rcu_sync_is_idle(&sem->rss));
		percpu_down_read(sem);
		assert_false(percpu_down_write_timeout(sem, MS));
		percpu_up_read(sem);
		percpu_down_write(sem);
		assert_false(rcu_sync_is_idle(&sem->rss));
		percpu_up_write(sem);
		percpu_down_read(sem);
		wait_until(rcu_sync_is_idle(&sem->rss));
		assert_false(percpu_down_write_trylock(sem));
		percpu_up_read(sem);
		lock_works(sem);
	}
}

static void leave(void *sem)
{
	percpu_up_read(sem);
}

static void end_writing(void *sem)
{
	assert_false(percpu_is_write_locked_by_me(sem));
	percpu_up_write(sem);
}

static void any_thread_may_release(void **state)
{
	struct percpu_rw_semaphore *sem;

	(void)state;
	FOR_EACH_LOCK(sem)
		for (int slow = 0; slow < 2; slow++) {
			if (slow)
				lock_works(sem);
			percpu_down_read(sem);
			assert_true(percpu_down_read_trylock(sem));
			elsewhere(leave, sem);
			assert_true(percpu_is_read_locked(sem));
			elsewhere(leave, sem);
			assert_false(percpu_is_read_locked(sem));
			percpu_down_write(sem);
			elsewhere(end_writing, sem);
			assert_false(percpu_is_write_locked_by_me(sem));
			lock_works(sem);
			wait_until(rcu_sync_is_idle(&sem->rss));
		}
}

/* ---- questions ---- */

static void held_by_another_thread(void *sem)
{
	assert_false(percpu_is_write_locked_by_me(sem));
	REPORTED(QUIESCE_MISUSE_NOT_HELD, "write", percpu_rwsem_assert_held_write(sem));
}

static void assertions_report_callers_outside(void **state)
{
	struct percpu_rw_semaphore *sem;

	(void)state;
	FOR_EACH_LOCK(sem) {
		assert_false(percpu_rwsem_is_held(sem));
		REPORTED(QUIESCE_MISUSE_NOT_HELD, "read or write", percpu_rwsem_assert_held(sem));
		REPORTED(QUIESCE_MISUSE_NOT_HELD, "write", percpu_rwsem_assert_held_write(sem));
		percpu_down_read(sem);
		assert_true(percpu_rwsem_is_held(sem));
		percpu_rwsem_assert_held(sem);
		REPORTED(QUIESCE_MISUSE_NOT_HELD, "write", percpu_rwsem_assert_held_write(sem));
		percpu_up_read(sem);
		percpu_down_write(sem);
		assert_true(percpu_rwsem_is_held(sem));
		percpu_rwsem_assert_held(sem);
		percpu_rwsem_assert_held_write(sem);
		elsewhere(held_by_another_thread, sem);
		percpu_up_write(sem);
	}
}

/* A waiting writer takes nothing from readers that are inside. */
static void a_reader_holds_the_lock_while_a_writer_waits(void **state)
{
	struct percpu_rw_semaphore *sem;
	struct user w;

	(void)state;
	FOR_EACH_LOCK(sem) {
		percpu_down_read(sem);
		user_drains(&w, sem, 0);
		assert_true(percpu_rwsem_is_held(sem));
		percpu_rwsem_assert_held(sem);
		percpu_up_read(sem);
		user_leave(&w);
	}
}

/* ---- misuse ---- */

static void a_release_without_writer_is_reported(void **state)
{
	struct percpu_rw_semaphore *sem;
	char text[64];

	(void)state;
	FOR_EACH_LOCK(sem) {
		snprintf(text, sizeof text, " of %p, which no writer holds", (void *)sem);
		REPORTED(QUIESCE_MISUSE_UNBALANCED_UNLOCK, text, percpu_up_write(sem));
		percpu_down_write(sem);
		percpu_up_write(sem);
		REPORTED(QUIESCE_MISUSE_UNBALANCED_UNLOCK, "percpu_up_write() at test_percpu_rwsem", percpu_up_write(sem));
		lock_works(sem);
	}
}

static void a_lock_in_use_is_not_freed(void **state)
{
	struct percpu_rw_semaphore *sem;
	struct user w, r;

	(void)state;
	FOR_EACH_LOCK(sem) {
		percpu_down_read(sem);
		REPORTED(QUIESCE_MISUSE_IN_USE, "percpu_free_rwsem()", percpu_free_rwsem(sem));
		user_drains(&w, sem, 0);
		REPORTED(QUIESCE_MISUSE_IN_USE, "percpu_free_rwsem()", percpu_free_rwsem(sem));
		percpu_up_read(sem);
		wait_until(flag_get(&w.inside));
		REPORTED(QUIESCE_MISUSE_IN_USE, "percpu_free_rwsem()", percpu_free_rwsem(sem));
		user_queued(&r, sem, false, 0);
		REPORTED(QUIESCE_MISUSE_IN_USE, "percpu_free_rwsem()", percpu_free_rwsem(sem));
		user_leave(&w);
		wait_until(flag_get(&r.inside));
		REPORTED(QUIESCE_MISUSE_IN_USE, "percpu_free_rwsem()", percpu_free_rwsem(sem));
		user_leave(&r);
		lock_works(sem);
	}
}

#if !QUIESCE_TSAN
static void releases_a_free_lock(void)
{
	percpu_up_write(&static_lock);
}

static void asserts_a_free_lock(void)
{
	percpu_rwsem_assert_held(&static_lock);
}

static void frees_what_is_held(void)
{
	percpu_down_read(&static_lock);
	percpu_free_rwsem(&static_lock);
}

static void misuse_aborts_by_default(void **state)
{
	static void (*const how[])(void) = { releases_a_free_lock, asserts_a_free_lock, frees_what_is_held };
	struct outcome o;

	(void)state;
	for (int i = 0; i < 3; i++) {
		in_child(how[i], &o);
		assert_true(WIFSIGNALED(o.status));
		assert_int_equal(WTERMSIG(o.status), SIGABRT);
		assert_int_equal(count_lines(o.text), 1);
	}
	lock_works(&static_lock);
}
#endif

#if !QUIESCE_TSAN
static struct percpu_rw_semaphore *at_fork;
static bool was_open;

static void forgets_holders(void)
{
	alarm(20);
	percpu_rwsem_after_fork_child(at_fork);
	if (was_open && !at_fork->open) /* readers are as fast as before */
		_exit(3);
	lock_works(at_fork);
	percpu_free_rwsem(at_fork);
}

/* A reader is inside, a writer waits for it, and others queue behind that. */
static void a_child_may_forget_the_holder_of_a_lock(void **state)
{
	struct user reader, writer, queued;
	struct percpu_rw_semaphore *sem;
	struct outcome o;

	(void)state;
	FOR_EACH_LOCK(sem) {
		at_fork = sem;
		user_inside(&reader, sem, false);
		was_open = counts_in_sequences(sem);
		user_drains(&writer, sem, 0);
		user_queued(&queued, sem, false, 0);
		in_child(forgets_holders, &o);
		assert_string_equal(o.text, "");
		assert_int_equal(o.status, 0);
		REPORTED(QUIESCE_MISUSE_IN_USE, "no child of fork()", percpu_rwsem_after_fork_child(sem));
		user_leave(&reader);
		user_leave(&writer);
		user_leave(&queued);
	}
}
#endif

/* ---- the end ---- */

/* Memory of a destroyed lock may be initialised again, also if the lock was never used, or was just held for writing. */
static void a_lock_ends_and_begins(void **state)
{
	struct percpu_rw_semaphore *sem;
	DEFINE_PERCPU_RWSEM(unused);

	(void)state;
	percpu_free_rwsem(&unused);
	FOR_EACH_LOCK(sem)
		for (int i = 0; i < 3; i++) {
			if (i == 1)
				lock_works(sem); /* the callback is under way */
			percpu_free_rwsem(sem);
			assert_int_equal(percpu_init_rwsem(sem), 0);
			assert_false(percpu_is_read_locked(sem));
			if (i == 2)
				percpu_down_read(sem), percpu_up_read(sem);
		}
	FOR_EACH_LOCK(sem) {
		lock_works(sem);
		percpu_free_rwsem(sem);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(a_lock_works_from_the_start),
		TEST(readers_are_inside_together),
		TEST(a_writer_is_inside_alone),
		TEST(a_reader_keeps_writers_out),
		TEST(a_writer_waits_for_each_reader),
		TEST(a_section_may_outlive_the_mode_it_began_in),
		TEST(any_thread_may_release),
		TEST(assertions_report_callers_outside),
		TEST(a_reader_holds_the_lock_while_a_writer_waits),
		TEST(a_release_without_writer_is_reported),
		TEST(a_lock_in_use_is_not_freed),
#if !QUIESCE_TSAN
		TEST(misuse_aborts_by_default),
		TEST(a_child_may_forget_the_holder_of_a_lock),
#endif
		TEST(a_lock_ends_and_begins),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
