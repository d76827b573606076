/* SPDX-License-Identifier: MIT */
/* test_hazptr_ends.c - hazard pointers where threads, processes and plug-ins end: nothing is lost, nothing hangs. */
#include "hazptr_holders.h"
#include "small_stack.h"

#include <dlfcn.h>
#include <limits.h>

static struct thing object[4000];

static void fresh(void)
{
	hazptr_barrier();
	memset(object, 0, sizeof object);
}

/* ---- destructors of thread-specific data, which run after the library's own ---- */

static pthread_key_t late_key;
static hazptr_t *left_behind;
static int late_ok;

/* Each round uses slots, a context, an object that is protected when it is retired, and one that is not. */
static void late_destructor(void *round)
{
	uintptr_t n = (uintptr_t)round;
	struct hazptr_context ctx;
	hazptr_t *slot = slot_with(NULL, &object[n]), *more;

	thing_retire(&object[n]);
	thing_retire(&object[100 + n]);
	must(init_hazptr_context(&ctx) == 0);
	more = slot_with(&ctx, &object[n]);
	hazptr_free(NULL, slot);
	hazptr_free(&ctx, more);
	cleanup_hazptr_context(&ctx);
	if (n == PTHREAD_DESTRUCTOR_ITERATIONS - 1) {
		left_behind = slot_with(NULL, &object[200]);
		thing_retire(&object[200]);
	} else if (n < PTHREAD_DESTRUCTOR_ITERATIONS - 1) {
		late_ok += lets_go(&object[300]);
	}
	pthread_setspecific(late_key, (void *)(n + 1)); /* the last registration has no effect */
}

static void *leave_late(void *before)
{
	if (before)
		thing_retire(&object[99]);
	pthread_setspecific(late_key, (void *)(uintptr_t)1);
	return NULL;
}

static void hazard_pointers_in_late_destructors(void **state)
{
	(void)state;
	assert_int_equal(pthread_key_create(&late_key, late_destructor), 0);
	for (int before = 0; before < 2; before++) {
		fresh();
		late_ok = 0;
		in_thread(leave_late, before ? object : NULL);
		assert_true(late_ok > 0);
		for (int n = 1; n < PTHREAD_DESTRUCTOR_ITERATIONS; n++)
			wait_until(runs_of(&object[n]) == 1 && runs_of(&object[100 + n]) == 1);
		assert_int_equal(runs_of(&object[200]), 0);
		hazptr_free(NULL, left_behind);
		hazptr_barrier();
		assert_int_equal(runs_of(&object[200]), 1);
		assert_int_equal(runs_of(&object[99]), before);
	}
	pthread_key_delete(late_key);
}

/* ---- threads that vanish without destructors ---- */

static sem_t ready;

static void *vanish(void *slot)
{
	pthread_detach(pthread_self());
	for (int i = 0; i < 100; i++)
		thing_retire(&object[i]);
	*(hazptr_t **)slot = slot_with(NULL, &object[0]);
	sem_post(&ready);
	syscall(SYS_exit, 0);
	return NULL;
}

/* Objects that vanished threads retired are reclaimed, objects that they protect are not. */
static void what_the_vanished_leave(void)
{
	hazptr_t *slot;
	pthread_t thread;
	struct waiter w;

	sem_init(&ready, 0, 0);
	slot = slot_with(NULL, &object[0]); /* the slot protects the object from the beginning */
	left_behind = slot;
	thread_must(pthread_create(&thread, NULL, vanish, &slot));
	wait_for(&ready);
	hazptr_free(NULL, left_behind);
	wait_until(things_run(object, 100) == 99);
	waiter_begin(&w, &object[0]);
	must(waiter_is_blocked(&w));
	must(runs_of(&object[0]) == 0);
	hazptr_free(NULL, slot); /* any thread may free the slot */
	waiter_end(&w);
	hazptr_barrier();
	must(things_run(object, 100) == 100 && hazptrs_work());
}

static void threads_that_vanish(void **state)
{
	struct outcome o;

	(void)state;
	fresh();
	in_child(what_the_vanished_leave, &o);
	if (!exited_with(o.status, 0))
		fail_msg("child: wait status %#x, stderr: %s", (unsigned int)o.status, o.text);
	alarm(watchdog_seconds());
}

/* ---- many threads ---- */

static void *short_life(void *arg)
{
	struct thing *t = arg;
	struct hazptr_context ctx;
	hazptr_t *slot = slot_with(NULL, t), *more;

	must(init_hazptr_context(&ctx) == 0);
	more = slot_with(&ctx, t);
	thing_retire(t);
	hazptr_free(NULL, slot);
	hazptr_free(&ctx, more);
	cleanup_hazptr_context(&ctx);
	return NULL;
}

/* Forty threads at a time vanish, in several rounds: neither lines nor queues are left behind. */
static void threads_that_come_and_go_leave_nothing(void **state)
{
	enum { AT_ONCE = 40, ROUNDS = 40 };
	pthread_t thread[AT_ONCE];
	uint32_t lines = 0;
	long pages = 0;

	(void)state;
	fresh();
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < AT_ONCE; i++)
			thread_must(pthread_create(&thread[i], NULL, short_life, &object[round * AT_ONCE + i]));
		threads_end(thread, AT_ONCE);
		if (round == 3) {
			hazptr_barrier();
			lines = stats_now().slots_lines;
			pages = address_space();
		}
	}
	hazptr_barrier();
	assert_int_equal(things_run(object, ROUNDS * AT_ONCE), ROUNDS * AT_ONCE);
	assert_in_range(stats_now().slots_lines, 1, lines + 2 * AT_ONCE);
	/* One queue has 17 pages or more, so queues of all threads would have 25000. */
	assert_true(pages > 0 && address_space() < pages + 10000);
}

static void *in_little_space(void *ok)
{
	*(int *)ok = hazptrs_work_alone();
	return NULL;
}

static void the_smallest_stack_suffices(void **state)
{
	(void)state;
	suffices_for(in_little_space);
}

/* ---- the process ends ---- */

static void *retire_for_ever(void *unused)
{
	for (;;) {
		struct thing *t = malloc(sizeof *t);

		must(t != NULL);
		kfree_hazptr(t, hazptr);
	}
	return unused;
}

static void retire_at_exit(void)
{
	thing_retire(&object[1]);
	hazptr_barrier();
	if (runs_of(&object[1]) != 1)
		_exit(4);
	thing_retire(&object[2]);
}

static int ending;

__attribute__((destructor(101))) static void last_of_all(void)
{
	if (!ending)
		return;
	hazptr_barrier();
	if (runs_of(&object[2]) != 1 || runs_of(&object[0]))
		_exit(5);
}

static void ends_with_objects_left(void)
{
	for (int i = 100; i < 300; i++)
		thing_retire(&object[i]);
	atexit(retire_at_exit);
	ending = 1;
	exit(0);
}

static void ends_beside_threads_that_retire(void)
{
	pthread_t thread[3];

	threads_begin(thread, 3, retire_for_ever, NULL);
	wait_until(stats_now().hazptr_reclaimed > 20000);
	exit(0);
}

/* An object is protected for ever. */
static void ends_with_a_slot_taken(void)
{
	slot_with(NULL, &object[0]);
	for (int i = 0; i < 300; i++)
		thing_retire(&object[i]);
	must(worker_works());
	exit(0);
}

static void a_process_ends_whatever_is_left(void **state)
{
	static void (*const how[])(void) = { ends_with_objects_left, ends_beside_threads_that_retire, ends_with_a_slot_taken };
	struct outcome o;

	(void)state;
	for (size_t i = 0; i < 3 * sizeof how / sizeof *how; i++) {
		fresh();
		in_child(how[i / 3], &o);
		if (!exited_with(o.status, 0))
			fail_msg("%zu: wait status %#x, stderr: %s", i / 3, (unsigned int)o.status, o.text);
		assert_int_equal(o.length, 0);
		alarm(watchdog_seconds());
	}
}

/* ---- a plug-in is unloaded ---- */

static const char *plugin;

static void a_plugin_is_unloaded_after_a_barrier(void **state)
{
	enum { NR = 1500 };

	(void)state;
	if (!plugin)
		fail_msg("no plug-in was named");
	for (int round = 0; round < 20; round++) {
		void *handle = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
		int (*use)(int, int *);
		int nr_freed = 0;
		void *found;

		if (!handle)
			fail_msg("%s", dlerror());
		found = dlsym(handle, "plugin_use");
		assert_non_null(found);
		memcpy(&use, &found, sizeof use);
		assert_int_equal(use(NR, &nr_freed), NR);
		hazptr_barrier();
		assert_int_equal(nr_freed, NR);
		assert_int_equal(dlclose(handle), 0);
		assert_null(dlopen(plugin, RTLD_NOW | RTLD_NOLOAD)); /* the plug-in is not loaded any more */
		retire_plenty();
	}
	assert_true(hazptrs_work() && worker_works());
}

/* ---- a thread that a callback has ended in a step holds nothing: its cleanup handlers may wait ---- */

static int nr_ended;

static void end_once(struct hazptr_head *head)
{
	(void)head;
	if (!nr_ended++)
		pthread_exit(NULL);
}

static void count_end(enum quiesce_misuse kind, const char *text)
{
	(void)text;
	must(kind == QUIESCE_MISUSE_EXIT_IN_CALLBACK);
}

static void waits_for_the_rest(void *unused)
{
	(void)unused;
	hazptr_barrier();
}

static void *ends_in_a_step(void *unused)
{
	quiesce_set_thread_hazptr_batch(8, 8);
	pthread_cleanup_push(waits_for_the_rest, NULL);
	for (int i = 0; i < 40; i++)
		call_hazptr_inline(&object[i].hazptr, end_once);
	pthread_cleanup_pop(0);
	return unused;
}

static void an_ended_thread_may_wait(void **state)
{
	pthread_t thread;

	(void)state;
	fresh();
	nr_ended = 0;
	quiesce_set_misuse_hook(count_end);
	thread_must(pthread_create(&thread, NULL, ends_in_a_step, NULL));
	pthread_join(thread, NULL);
	hazptr_barrier();
	assert_in_range(nr_ended, 2, 39); /* those that were queued before the end */
	quiesce_set_misuse_hook(NULL);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(hazard_pointers_in_late_destructors),
		TEST(an_ended_thread_may_wait),
		TEST(threads_that_vanish),
		TEST(threads_that_come_and_go_leave_nothing),
		TEST(the_smallest_stack_suffices),
		TEST(a_process_ends_whatever_is_left),
		TEST(a_plugin_is_unloaded_after_a_barrier),
	};

	if (argc > 1)
		plugin = argv[1];
	if (argc > 2)
		cmocka_set_test_filter(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
