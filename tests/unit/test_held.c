/* SPDX-License-Identifier: MIT */
/* test_held.c - debug builds of programs: which thread holds which lock or domain, and reports of a thread that waits for itself. */
#include "rwsems.h"

#include <quiesce/hazptr.h>
#include <quiesce/srcu.h>

#if !defined(QUIESCE_DEBUG)
#error "is about debug builds"
#endif

DEFINE_STATIC_PERCPU_RWSEM(sem);
DEFINE_STATIC_PERCPU_RWSEM(other);
DEFINE_STATIC_SRCU(domain);

/* ---- holders ---- */

static void holds_nothing(void *unused)
{
	(void)unused;
	assert_false(percpu_rwsem_is_held(&sem));
	assert_false(srcu_read_lock_held(&domain));
	REPORTED(QUIESCE_MISUSE_NOT_HELD, "read or write", percpu_rwsem_assert_held(&sem));
}

/* The holder is a thread, for read sides too: no other thread counts as one. */
static void each_thread_holds_its_own(void **state)
{
	int idx, nested;

	(void)state;
	holds_nothing(NULL);
	percpu_down_read(&sem);
	idx = srcu_read_lock(&domain);
	nested = srcu_read_lock(&domain);
	assert_true(percpu_rwsem_is_held(&sem));
	assert_false(percpu_rwsem_is_held(&other));
	assert_true(srcu_read_lock_held(&domain));
	percpu_rwsem_assert_held(&sem);
	elsewhere(holds_nothing, NULL);
	srcu_read_unlock(&domain, idx);
	assert_true(srcu_read_lock_held(&domain));
	srcu_read_unlock(&domain, nested);
	percpu_up_read(&sem);
	holds_nothing(NULL);
	percpu_down_write(&sem);
	assert_true(percpu_rwsem_is_held(&sem));
	elsewhere(holds_nothing, NULL);
	percpu_up_write(&sem);
	assert_true(percpu_down_read_trylock(&sem));
	assert_true(percpu_down_read_timeout(&sem, MS));
	percpu_up_read(&sem);
	assert_true(percpu_rwsem_is_held(&sem));
	percpu_up_read(&sem);
	assert_true(percpu_down_write_timeout(&sem, 0));
	assert_true(percpu_rwsem_is_held(&sem));
	assert_false(percpu_down_read_trylock(&sem)); /* a lock that was refused is not held */
	percpu_up_write(&sem);
	holds_nothing(NULL);
}

static void release_read(void *unused)
{
	(void)unused;
	percpu_up_read(&sem);
}

static void release_section(void *idx)
{
	srcu_read_unlock(&domain, *(int *)idx);
}

/* A lock that another thread has released is no longer held by the thread that acquired it. */
static void a_handed_over_lock_is_not_held(void **state)
{
	int idx;

	(void)state;
	percpu_down_read(&sem);
	elsewhere(release_read, NULL);
	idx = srcu_read_lock(&domain);
	elsewhere(release_section, &idx);
	holds_nothing(NULL);
	idx = srcu_down_read(&domain);
	assert_false(srcu_read_lock_held(&domain));
	srcu_up_read(&domain, idx);
	synchronize_srcu(&domain);
	lock_works(&sem);
}

/* ---- waits that would not end ---- */

static void reads_twice(void)
{
	percpu_down_read(&sem);
	percpu_down_read(&sem);
}

static void writes_while_it_reads(void)
{
	percpu_down_read(&sem);
	percpu_down_write(&sem);
}

static void reads_while_it_writes(void)
{
	percpu_down_write(&sem);
	percpu_down_read(&sem);
}

static void writes_twice(void)
{
	percpu_down_write(&sem);
	percpu_down_write(&sem);
}

static void updates_in_its_section(void)
{
	srcu_read_lock(&domain);
	synchronize_srcu(&domain);
}

static void releases_an_unread_lock(void)
{
	percpu_up_read(&sem);
}

static void ends_a_section_that_cannot_be(void)
{
	srcu_read_unlock(&domain, 2);
}

static const struct {
	void (*fn)(void);
	const char *says[2];
} wrong[] = {
	{ reads_twice, { "percpu_down_read()", "for reading" } },
	{ writes_while_it_reads, { "percpu_down_write()", "for reading" } },
	{ reads_while_it_writes, { "percpu_down_read()", "for writing" } },
	{ writes_twice, { "percpu_down_write()", "for writing" } },
	{ updates_in_its_section, { "synchronize_srcu(domain)", "inside a section" } },
	{ releases_an_unread_lock, { "percpu_up_read()", "nobody holds" } },
	{ ends_a_section_that_cannot_be, { "srcu_read_unlock(domain)", "no srcu_read_lock()" } },
};

static void deadlocks_are_reported_before_they_begin(void **state)
{
	struct outcome o;

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		in_child(wrong[i].fn, &o);
		assert_true(WIFSIGNALED(o.status));
		assert_int_equal(WTERMSIG(o.status), SIGABRT);
		assert_int_equal(count_lines(o.text), 1);
		for (int k = 0; k < 2; k++)
			if (!strstr(o.text, wrong[i].says[k]))
				fail_msg("%zu: \"%s\" does not say \"%s\"", i, o.text, wrong[i].says[k]);
	}
}

/* With a hook the program goes on: a harmless call is executed, a harmful one is not. */
static void a_hook_may_go_on(void **state)
{
	int idx;

	(void)state;
	percpu_down_read(&sem);
	REPORTED(QUIESCE_MISUSE_WAIT_IN_READER, "taken at test_held+0x", percpu_down_read(&sem)); /* no writer is in the way */
	percpu_up_read(&sem);
	assert_true(percpu_rwsem_is_held(&sem));
	percpu_up_read(&sem);
	assert_false(percpu_rwsem_is_held(&sem));
	REPORTED(QUIESCE_MISUSE_UNBALANCED_UNLOCK, "percpu_up_read() at test_held+0x", percpu_up_read(&sem));
	assert_false(percpu_is_read_locked(&sem));
	REPORTED(QUIESCE_MISUSE_UNBALANCED_UNLOCK, "percpu_up_write() at test_held+0x", percpu_up_write(&sem));
	idx = srcu_read_lock(&domain);
	REPORTED(QUIESCE_MISUSE_WAIT_IN_READER, "began at test_held+0x", synchronize_srcu(&domain));
	REPORTED(QUIESCE_MISUSE_WAIT_IN_READER, "synchronize_srcu_expedited(", synchronize_srcu_expedited(&domain));
	REPORTED(QUIESCE_MISUSE_WAIT_IN_READER, "srcu_barrier(", srcu_barrier(&domain));
	REPORTED(QUIESCE_MISUSE_UNBALANCED_UNLOCK, "srcu_read_unlock(", srcu_read_unlock(&domain, -1));
	srcu_read_unlock(&domain, idx);
	synchronize_srcu(&domain);
	lock_works(&sem);
}

/* ---- threads that end ---- */

static int nr_exits;
static char texts[4][400];

static void note_exit(enum quiesce_misuse kind, const char *text)
{
	if (kind != QUIESCE_MISUSE_EXIT_IN_READER || nr_exits == 4)
		abort();
	snprintf(texts[nr_exits], sizeof texts[0], "%s", text);
	nr_exits++;
}

static void take_all(void *idx)
{
	percpu_down_read(&sem);
	percpu_down_write(&other);
	*(int *)idx = srcu_read_lock(&domain);
}

static int nr_lines_about(const char *what, const void *object)
{
	char address[32];
	int nr = 0;

	snprintf(address, sizeof address, "%p", object);
	for (int i = 0; i < nr_exits; i++)
		nr += strstr(texts[i], what) && strstr(texts[i], address);
	return nr;
}

/* Each lock that an ended thread held is reported, stays held, and may be released by any thread. */
static void a_thread_that_ends_with_all_three(void **state)
{
	int idx;

	(void)state;
	quiesce_set_misuse_hook(note_exit);
	elsewhere(take_all, &idx);
	quiesce_set_misuse_hook(NULL);
	assert_int_equal(nr_exits, 3);
	assert_int_equal(nr_lines_about("for reading", &sem), 1);
	assert_int_equal(nr_lines_about("for writing", &other), 1);
	assert_int_equal(nr_lines_about("SRCU", &domain), 1);
	assert_true(percpu_is_read_locked(&sem));
	assert_true(percpu_is_write_locked(&other));
	assert_false(percpu_rwsem_is_held(&sem) || percpu_rwsem_is_held(&other) || srcu_read_lock_held(&domain));
	percpu_up_read(&sem);
	percpu_up_write(&other);
	srcu_read_unlock(&domain, idx);
	lock_works(&sem);
	lock_works(&other);
	synchronize_srcu(&domain);
}

/* ---- slots of hazard pointers ---- */

static hazptr_t *slots[3];

static void take_three(void *ctx)
{
	for (int i = 0; i < 3; i++)
		slots[i] = hazptr_alloc(NULL);
	hazptr_free(NULL, slots[1]);
	assert_non_null(hazptr_alloc(ctx)); /* a slot of a context, which has its own end */
}

static void a_thread_that_ends_with_slots(void **state)
{
	struct hazptr_context ctx;

	(void)state;
	nr_exits = 0;
	assert_int_equal(init_hazptr_context(&ctx), 0);
	quiesce_set_misuse_hook(note_exit);
	elsewhere(take_three, &ctx);
	quiesce_set_misuse_hook(NULL);
	assert_int_equal(nr_exits, 1);
	assert_int_equal(nr_lines_about("holds 2 slots of hazptr_alloc()", slots[0]), 1);
	assert_int_equal(nr_lines_about("taken at test_held+0x", slots[0]), 1);
	hazptr_free(NULL, slots[0]);
	hazptr_free(NULL, slots[2]);
	hazptr_free(&ctx, ctx.first);
	cleanup_hazptr_context(&ctx);
}

static void ends_holding(void)
{
	int idx;

	elsewhere(take_all, &idx);
}

/* By default the misuse is reported, and the program goes on. */
static void without_a_hook_it_is_only_said(void **state)
{
	struct outcome o;

	(void)state;
	in_child(ends_holding, &o);
	assert_true(exited_with(o.status, 0));
	assert_int_equal(count_lines(o.text), 3);
}

/* ---- more than the table has room for ---- */

enum { MANY = 5000 };

static void too_much_to_keep_account_of(void **state)
{
	static int idx[MANY];

	(void)state;
	for (int i = 0; i < MANY; i++)
		idx[i] = srcu_read_lock(&domain);
	assert_true(srcu_read_lock_held(&domain));
	percpu_down_read(&sem); /* the record is full, so nothing is reported */
	percpu_up_read(&sem);
	for (int i = 0; i < MANY; i++)
		srcu_read_unlock(&domain, idx[i]);
	holds_nothing(NULL);
	lock_works(&sem);
	synchronize_srcu(&domain);
}

/* ---- fork ---- */

static int idx_at_fork;

static void still_holds(void)
{
	if (!percpu_rwsem_is_held(&sem) || !srcu_read_lock_held(&domain) || percpu_rwsem_is_held(&other))
		_exit(3);
	percpu_up_read(&sem);
	srcu_read_unlock(&domain, idx_at_fork);
	if (percpu_rwsem_is_held(&sem) || srcu_read_lock_held(&domain))
		_exit(4);
	lock_works(&sem);
	synchronize_srcu(&domain);
}

static void the_child_holds_what_its_thread_held(void **state)
{
	struct outcome o;
	struct user u;

	(void)state;
	user_inside(&u, &other, true);
	percpu_down_read(&sem);
	idx_at_fork = srcu_read_lock(&domain);
	in_child(still_holds, &o);
	assert_string_equal(o.text, "");
	assert_int_equal(o.status, 0);
	assert_true(percpu_rwsem_is_held(&sem));
	percpu_up_read(&sem);
	srcu_read_unlock(&domain, idx_at_fork);
	user_leave(&u);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(each_thread_holds_its_own),
		TEST(a_handed_over_lock_is_not_held),
		TEST(deadlocks_are_reported_before_they_begin),
		TEST(a_hook_may_go_on),
		TEST(a_thread_that_ends_with_all_three),
		TEST(a_thread_that_ends_with_slots),
		TEST(without_a_hook_it_is_only_said),
		TEST(too_much_to_keep_account_of),
		TEST(the_child_holds_what_its_thread_held),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
