/* SPDX-License-Identifier: MIT */
/* test_percpu_ref.c - references counted per CPU: modes, lives, which put releases, and misuse. */
#include <quiesce/percpu_ref.h>

#include "../sanitized.h"
#include "testing.h"

static int released, confirmed;

static void on_release(struct percpu_ref *ref)
{
	(void)ref;
	count_up(&released);
}

static void on_confirm(struct percpu_ref *ref)
{
	assert_false(percpu_ref_tryget_live(ref));
	assert_true(percpu_ref_is_dying(ref));
	assert_int_equal(released, 0);
	confirmed++;
}

static void begin(struct percpu_ref *ref, unsigned int flags)
{
	released = confirmed = 0;
	assert_int_equal(percpu_ref_init(ref, on_release, flags), 0);
}

/* ---- a life ---- */

static void the_last_put_after_the_kill_releases_once(void **state)
{
	struct percpu_ref ref;

	(void)state;
	begin(&ref, 0);
	percpu_ref_get(&ref);
	assert_true(percpu_ref_tryget(&ref));
	assert_true(percpu_ref_tryget_live(&ref));
	percpu_ref_get_many(&ref, 2);
	assert_true(percpu_ref_tryget_many(&ref, 3));
	percpu_ref_put(&ref);
	assert_false(percpu_ref_is_dying(&ref));
	percpu_ref_kill_and_confirm(&ref, on_confirm);
	assert_int_equal(confirmed, 1);
	assert_true(percpu_ref_is_dying(&ref));
	assert_false(percpu_ref_is_zero(&ref));
	percpu_ref_put_many(&ref, 6);
	assert_int_equal(released, 0);
	assert_true(percpu_ref_tryget(&ref)); /* the last reference is still held */
	assert_false(percpu_ref_tryget_live(&ref));
	percpu_ref_put(&ref);
	percpu_ref_put(&ref);
	assert_int_equal(released, 1);
	assert_true(percpu_ref_is_zero(&ref));
	assert_false(percpu_ref_tryget(&ref));
	assert_false(percpu_ref_tryget_many(&ref, 7));
	assert_int_equal(released, 1);
	percpu_ref_exit(&ref);
	percpu_ref_exit(&ref);
}

static void without_users_the_kill_releases(void **state)
{
	struct percpu_ref ref;

	(void)state;
	begin(&ref, 0);
	percpu_ref_kill(&ref);
	assert_int_equal(released, 1);
	percpu_ref_exit(&ref);
}

static void nothing_is_zero_before_the_kill(void **state)
{
	struct percpu_ref ref;

	(void)state;
	begin(&ref, 0);
	percpu_ref_get(&ref);
	percpu_ref_put(&ref);
	assert_false(percpu_ref_is_zero(&ref));
	assert_int_equal(released, 0);
	percpu_ref_kill(&ref);
	assert_int_equal(released, 1);
	percpu_ref_exit(&ref);
}

static void a_get_writes_no_shared_word(void **state)
{
	struct percpu_ref ref;
	uint64_t count;

	(void)state;
	begin(&ref, 0);
	count = ref.count;
	assert_int_equal(ref.state, 0);
	percpu_ref_get(&ref);
	assert_int_equal(ref.count, count);
	percpu_ref_put(&ref);
	assert_int_equal(ref.count, count);
	percpu_ref_kill(&ref);
	percpu_ref_exit(&ref);
}

/* ---- modes ---- */

static void mode_confirmed(struct percpu_ref *ref)
{
	assert_int_equal(ref->state & QUIESCE_REF_ATOMIC, QUIESCE_REF_ATOMIC);
	if (percpu_ref_tryget(ref))
		percpu_ref_put(ref);
	confirmed++;
}

static void references_survive_changes_of_mode(void **state)
{
	struct percpu_ref ref;

	(void)state;
	begin(&ref, PERCPU_REF_ALLOW_REINIT);
	for (int i = 0; i < 5; i++) {
		percpu_ref_get(&ref);
		percpu_ref_switch_to_atomic(&ref, mode_confirmed);
		percpu_ref_get(&ref);
		percpu_ref_switch_to_atomic_sync(&ref);
		percpu_ref_put(&ref);
		assert_int_equal(ref.count / 2, i + 2);
		percpu_ref_switch_to_percpu(&ref);
		percpu_ref_switch_to_percpu(&ref);
		assert_int_equal(ref.state, 0);
		percpu_ref_get(&ref);
		percpu_ref_put(&ref);
	}
	assert_int_equal(confirmed, 5);
	percpu_ref_kill_and_confirm(&ref, on_confirm);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(released, 0);
		percpu_ref_put(&ref);
	}
	assert_int_equal(released, 1);
	percpu_ref_exit(&ref);
}

static void the_first_mode_is_as_asked(void **state)
{
	struct percpu_ref ref;

	(void)state;
	begin(&ref, PERCPU_REF_INIT_ATOMIC);
	assert_int_equal(ref.state, QUIESCE_REF_ATOMIC);
	assert_int_equal(ref.count / 2, 1);
	percpu_ref_kill(&ref);
	assert_int_equal(released, 1);
	percpu_ref_reinit(&ref);
	assert_int_equal(ref.state, QUIESCE_REF_ATOMIC); /* until a call changes the mode */
	percpu_ref_switch_to_percpu(&ref);
	assert_int_equal(ref.state, 0);
	percpu_ref_kill(&ref);
	assert_int_equal(released, 2);
	percpu_ref_exit(&ref);
}

static void a_dead_count_changes_its_mode_with_its_reinit(void **state)
{
	struct percpu_ref ref;

	(void)state;
	begin(&ref, PERCPU_REF_ALLOW_REINIT);
	percpu_ref_switch_to_atomic_sync(&ref);
	percpu_ref_kill(&ref);
	percpu_ref_switch_to_atomic(&ref, mode_confirmed);
	percpu_ref_switch_to_percpu(&ref);
	assert_int_equal(released, 1);
	assert_true(percpu_ref_is_zero(&ref));
	percpu_ref_reinit(&ref);
	assert_int_equal(ref.state, 0);
	percpu_ref_kill(&ref);
	assert_int_equal(released, 2);
	percpu_ref_exit(&ref);
}

/* ---- lives ---- */

static void a_count_lives_again(void **state)
{
	struct percpu_ref ref;

	(void)state;
	begin(&ref, PERCPU_REF_INIT_DEAD);
	assert_true(percpu_ref_is_dying(&ref));
	assert_true(percpu_ref_is_zero(&ref));
	assert_false(percpu_ref_tryget(&ref));
	assert_false(percpu_ref_tryget_live(&ref));
	for (int i = 0; i < 3; i++) {
		percpu_ref_reinit(&ref);
		assert_false(percpu_ref_is_dying(&ref));
		assert_true(percpu_ref_tryget_live(&ref));
		percpu_ref_kill(&ref);
		assert_int_equal(released, i);
		percpu_ref_put(&ref);
		assert_int_equal(released, i + 1);
	}
	percpu_ref_exit(&ref);
}

static void a_kill_is_taken_back(void **state)
{
	struct percpu_ref ref;

	(void)state;
	begin(&ref, PERCPU_REF_ALLOW_REINIT);
	percpu_ref_get(&ref);
	for (int i = 0; i < 3; i++) {
		percpu_ref_kill(&ref);
		assert_false(percpu_ref_tryget_live(&ref));
		percpu_ref_resurrect(&ref);
		assert_true(percpu_ref_tryget_live(&ref));
		percpu_ref_put(&ref);
	}
	percpu_ref_put(&ref);
	assert_int_equal(released, 0);
	percpu_ref_kill(&ref);
	assert_int_equal(released, 1);
	percpu_ref_resurrect(&ref); /* a count of zero may be resurrected, too */
	percpu_ref_kill(&ref);
	assert_int_equal(released, 2);
	percpu_ref_exit(&ref);
}

/* ---- callers' contexts, and no memory ---- */

static struct percpu_ref for_handler;

static void handler(int sig)
{
	(void)sig;
	percpu_ref_get(&for_handler);
	if (percpu_ref_tryget_live(&for_handler))
		percpu_ref_put(&for_handler);
}

static void signal_handlers_may_count(void **state)
{
	(void)state;
	begin(&for_handler, 0);
	signal(SIGUSR1, handler);
	for (int i = 0; i < 100; i++)
		raise(SIGUSR1);
	signal(SIGUSR1, SIG_DFL);
	percpu_ref_kill(&for_handler);
	assert_int_equal(for_handler.count / 2, 100);
	percpu_ref_put_many(&for_handler, 100);
	assert_int_equal(released, 1);
	percpu_ref_exit(&for_handler);
}

static void without_memory_the_count_is_atomic(void **state)
{
	struct rlimit old, none;
	struct percpu_ref ref;
	int err;

	(void)state;
	if (SANITIZED) { /* its mmap() needs memory itself */
		print_message("# no memory that could be missing for words alone\n");
		return;
	}
	released = 0;
	getrlimit(RLIMIT_DATA, &old);
	none = (struct rlimit){ .rlim_cur = 1, .rlim_max = old.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_DATA, &none), 0);
	err = percpu_ref_init(&ref, on_release, PERCPU_REF_ALLOW_REINIT);
	setrlimit(RLIMIT_DATA, &old);
	assert_int_equal(err, -ENOMEM);
	assert_int_equal(ref.state, QUIESCE_REF_ATOMIC);
	percpu_ref_switch_to_percpu(&ref);
	assert_true(percpu_ref_tryget_live(&ref));
	percpu_ref_kill(&ref);
	percpu_ref_put(&ref);
	assert_int_equal(released, 1);
	percpu_ref_exit(&ref);
}

static void many_counts_share_pages(void **state)
{
	enum { MANY = 3000 };
	static struct percpu_ref refs[MANY];

	(void)state;
	for (int round = 0; round < 2; round++) {
		released = 0;
		for (int i = 0; i < MANY; i++)
			assert_int_equal(percpu_ref_init(&refs[i], on_release, 0), 0);
		for (int i = 0; i < MANY; i++)
			percpu_ref_get_many(&refs[i], 2), percpu_ref_put(&refs[i]);
		for (int i = 0; i < MANY; i += 100) {
			percpu_ref_kill(&refs[i]);
			assert_int_equal(refs[i].count / 2, 1);
		}
		assert_int_equal(released, 0);
		for (int i = 0; i < MANY; i++)
			percpu_ref_put(&refs[i]), percpu_ref_exit(&refs[i]);
		assert_int_equal(released, MANY / 100);
	}
}

/* ---- fork ---- */

static struct percpu_ref parents;

static void use_of_parents(void)
{
	struct percpu_ref own;

	released = 0;
	percpu_ref_kill(&parents); /* the count still has the reference that the parent got */
	if (released || parents.count / 2 != 1)
		abort();
	percpu_ref_put(&parents);
	if (released != 1 || percpu_ref_init(&own, on_release, PERCPU_REF_ALLOW_REINIT))
		abort();
	percpu_ref_get(&own);
	percpu_ref_kill(&own);
	percpu_ref_put(&own);
	percpu_ref_reinit(&own);
	if (released != 2)
		abort();
}

static void a_child_has_the_counts_of_its_parent(void **state)
{
	struct outcome o;

	(void)state;
	begin(&parents, 0);
	percpu_ref_get(&parents);
	in_child(use_of_parents, &o);
	assert_string_equal(o.text, "");
	assert_true(exited_with(o.status, 0));
	percpu_ref_put(&parents);
	assert_int_equal(released, 0);
	percpu_ref_kill(&parents);
	assert_int_equal(released, 1);
	percpu_ref_exit(&parents);
}

/* The state in a child if another thread was changing the mode: the lock is held, without a holder, and the count has its bias. */
static void a_half_done_change_is_completed(void **state)
{
	struct percpu_ref ref;

	(void)state;
	begin(&ref, PERCPU_REF_ALLOW_REINIT);
	percpu_ref_get(&ref);
	ref.state = QUIESCE_REF_ATOMIC | QUIESCE_REF_DEAD;
	ref.lock = 0x7ffffffd; /* a lock that is held, in another generation than this process's */
	percpu_ref_get(&ref);
	percpu_ref_switch_to_atomic_sync(&ref);
	assert_int_equal(ref.lock, 0);
	assert_int_equal(ref.count / 2, 3);
	percpu_ref_put_many(&ref, 3);
	assert_int_equal(released, 1);
	percpu_ref_exit(&ref);
}

/* ---- misuse ---- */

static int misuses;
static enum quiesce_misuse misuse_kind;

static void hook(enum quiesce_misuse kind, const char *text)
{
	misuse_kind = kind;
	misuses += strstr(text, "percpu_ref_") != NULL;
}

#define REPORTED(kind, call)                            \
	do {                                            \
		misuses = 0;                            \
		quiesce_set_misuse_hook(hook);          \
		call;                                   \
		quiesce_set_misuse_hook(NULL);          \
		assert_int_equal(misuses, 1);           \
		assert_int_equal(misuse_kind, kind);    \
	} while (0)

static void a_second_kill_is_reported(void **state)
{
	struct percpu_ref ref;

	(void)state;
	begin(&ref, 0);
	percpu_ref_get(&ref);
	percpu_ref_kill(&ref);
	REPORTED(QUIESCE_MISUSE_COUNT, percpu_ref_kill(&ref));
	assert_int_equal(released, 0);
	percpu_ref_put(&ref);
	assert_int_equal(released, 1);
	percpu_ref_exit(&ref);
}

static void one_put_too_many_is_reported(void **state)
{
	struct percpu_ref ref;

	(void)state;
	begin(&ref, 0);
	percpu_ref_kill(&ref);
	assert_int_equal(released, 1);
	REPORTED(QUIESCE_MISUSE_COUNT, percpu_ref_put(&ref));
	assert_false(percpu_ref_tryget(&ref));
	REPORTED(QUIESCE_MISUSE_COUNT, percpu_ref_get(&ref));
	REPORTED(QUIESCE_MISUSE_COUNT, percpu_ref_put(&ref));
	assert_false(percpu_ref_is_zero(&ref));
	assert_int_equal(released, 1);
	percpu_ref_exit(&ref);
}

/* The per-CPU mode does not detect the extra put; the kill does. */
static void a_put_without_get_is_reported_by_the_kill(void **state)
{
	struct percpu_ref ref;

	(void)state;
	begin(&ref, 0);
	percpu_ref_put(&ref);
	REPORTED(QUIESCE_MISUSE_COUNT, percpu_ref_kill(&ref));
	assert_int_equal(released, 0);
	percpu_ref_exit(&ref);
}

static void a_reinit_out_of_place_is_reported(void **state)
{
	struct percpu_ref ref;

	(void)state;
	begin(&ref, PERCPU_REF_ALLOW_REINIT);
	REPORTED(QUIESCE_MISUSE_COUNT, percpu_ref_reinit(&ref));
	REPORTED(QUIESCE_MISUSE_COUNT, percpu_ref_resurrect(&ref));
	percpu_ref_get(&ref);
	percpu_ref_kill(&ref);
	REPORTED(QUIESCE_MISUSE_COUNT, percpu_ref_reinit(&ref));
	assert_true(percpu_ref_is_dying(&ref));
	percpu_ref_put(&ref);
	assert_int_equal(released, 1);
	percpu_ref_exit(&ref);
	begin(&ref, 0);
	REPORTED(QUIESCE_MISUSE_COUNT, percpu_ref_switch_to_percpu(&ref));
	percpu_ref_kill(&ref);
	REPORTED(QUIESCE_MISUSE_COUNT, percpu_ref_reinit(&ref));
	REPORTED(QUIESCE_MISUSE_COUNT, percpu_ref_resurrect(&ref));
	assert_int_equal(released, 1);
	percpu_ref_exit(&ref);
}

static void confirm_that_reinits(struct percpu_ref *ref)
{
	percpu_ref_resurrect(ref);
	confirmed++;
}

static void a_change_in_a_confirm_function_is_reported(void **state)
{
	struct percpu_ref ref;

	(void)state;
	begin(&ref, PERCPU_REF_ALLOW_REINIT);
	REPORTED(QUIESCE_MISUSE_WAIT_IN_CALLBACK, percpu_ref_kill_and_confirm(&ref, confirm_that_reinits));
	assert_int_equal(confirmed, 1);
	assert_int_equal(released, 1);
	percpu_ref_reinit(&ref);
	percpu_ref_kill(&ref);
	assert_int_equal(released, 2);
	percpu_ref_exit(&ref);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(without_memory_the_count_is_atomic),
		TEST(the_last_put_after_the_kill_releases_once),
		TEST(without_users_the_kill_releases),
		TEST(nothing_is_zero_before_the_kill),
		TEST(a_get_writes_no_shared_word),
		TEST(references_survive_changes_of_mode),
		TEST(the_first_mode_is_as_asked),
		TEST(a_dead_count_changes_its_mode_with_its_reinit),
		TEST(a_count_lives_again),
		TEST(a_kill_is_taken_back),
		TEST(signal_handlers_may_count),
		TEST(many_counts_share_pages),
		TEST(a_child_has_the_counts_of_its_parent),
		TEST(a_half_done_change_is_completed),
		TEST(a_second_kill_is_reported),
		TEST(one_put_too_many_is_reported),
		TEST(a_put_without_get_is_reported_by_the_kill),
		TEST(a_reinit_out_of_place_is_reported),
		TEST(a_change_in_a_confirm_function_is_reported),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
