/* SPDX-License-Identifier: MIT */
/* test_shazptr_sandbox.c - hazard pointers without memory for slots, without the scan thread or without membarrier. */
#include "children.h"
#include "filter.h"
#include "no_threads.h"
#include "holders.h"
#include "use.h"

enum { MANY = 6000 }; /* more guards than slots that can be used without another mprotect() */
static int object[MANY + 100];

/* ---- this program once more ---- */

static const char *role;

static void become(void)
{
	execl("/proc/self/exe", "test_shazptr_sandbox", "--as", role, (char *)NULL);
	_exit(127);
}

static void become_one_with_lines_only(void)
{
	setenv("QUIESCE_SLOTS", "thread", 1);
	become();
}

/* ---- callers lead ---- */

static void callers_lead_themselves(void)
{
	static struct holder h[3];
	static struct waiter w[9];

	may_create = 1;
	flag_set(&no_threads);
	for (int i = 0; i < 3; i++)
		holder_begin(&h[i], &object[i]);
	for (int i = 0; i < 9; i++)
		waiter_begin(&w[i], &object[i % 3]);
	for (int i = 0; i < 9; i++)
		must(waiter_is_blocked(&w[i]));
	for (int k = 0; k < 3; k++) {
		holder_end(&h[k]);
		for (int i = k; i < 9; i += 3)
			waiter_end(&w[i]);
		for (int i = 0; i < 9; i++)
			must(i % 3 <= k || waiter_is_blocked(&w[i]));
	}
	must(flag_get(&nr_refused) > 0);
	must(!stats_now().scan_thread_running);
	may_create = 0;
	for (int i = 0; i < 10; i++)
		use_replace_single(i % 2);
	must(!stats_now().scan_thread_running);
}

static void without_a_scan_thread(void **state)
{
	(void)state;
	succeeds(callers_lead_themselves);
}

static void by_the_scan_at_once(void)
{
	quiesce_set_skip_self_scan(1);
	callers_lead_themselves();
}

static void without_a_scan_thread_and_self_scan(void **state)
{
	(void)state;
	succeeds(by_the_scan_at_once);
}

static void threads_come_back(void)
{
	callers_lead_themselves();
	quiesce_store_relaxed(&no_threads, 0);
	while (!stats_now().scan_thread_running)
		use_replace_single(1);
	must(quiesce_shutdown(0) == 0);
	must(use_everything());
}

static void the_scan_thread_starts_when_it_can(void **state)
{
	(void)state;
	succeeds(threads_come_back);
}

/* A fork needs no thread. */
static void fork_in_child(void)
{
	struct waiter w[2];
	struct holder h;
	int status;
	pid_t pid;

	may_create = 1;
	flag_set(&no_threads);
	holder_begin(&h, &object[0]);
	for (int i = 0; i < 2; i++)
		waiter_begin(&w[i], &object[0]);
	for (int i = 0; i < 2; i++)
		must(waiter_is_blocked(&w[i]));
	for (int i = 0; i < 4; i++) {
		pid = fork();
		if (pid == 0) {
			alarm(watchdog_seconds() / 3);
			must(is_free(&object[0]));
			callers_lead_themselves();
			_exit(0);
		}
		must(waitpid(pid, &status, 0) == pid && exited_with(status, 0));
	}
	holder_end(&h);
	for (int i = 0; i < 2; i++)
		waiter_end(&w[i]);
}

static void fork_while_callers_lead(void **state)
{
	(void)state;
	succeeds(fork_in_child);
}

/* ---- no memory for slots: guards that block each waiter ---- */

static struct shazptr_guard guards[MANY];
static int nr_guards;

/* Claim without further memory until that many guards are fallback guards; these come last in @guards.  A thread that moves to another CPU
 * may find a slot between two of them. */
static void exhaust(int nr_fallback)
{
	struct shazptr_guard fallback[2];
	int nr = 0;

	guards[nr_guards] = shazptr_acquire(&object[nr_guards]);
	nr_guards++;
	filter_now("mprotect=ENOMEM");
	while (nr < nr_fallback) {
		uint64_t before = stats_now().fallback_guards;
		struct shazptr_guard guard = shazptr_acquire(&object[nr_guards]);

		must(nr_guards < MANY);
		if (stats_now().fallback_guards > before)
			fallback[nr++] = guard;
		else
			guards[nr_guards++] = guard;
	}
	for (int i = 0; i < nr; i++)
		guards[nr_guards++] = fallback[i];
}

static void clear_all(void)
{
	while (nr_guards)
		shazptr_clear(guards[--nr_guards]);
}

static struct waiter early; /* started early, because its thread needs memory for a stack */
static sem_t go;

static void *wait_later(void *arg)
{
	wait_for(&go);
	return waiter_main(arg);
}

static void early_waiter(void)
{
	sem_init(&go, 0, 0);
	early = (struct waiter){ .object = &object[MANY + 1] };
	thread_must(pthread_create(&early.thread, NULL, wait_later, &early));
}

static void early_waiter_goes(void)
{
	sem_post(&go);
	wait_until(flag_get(&early.tid) != 0);
}

static void fallback_guards_block(void)
{
	early_waiter();
	quiesce_set_skip_self_scan(1);
	must(is_free(&object[MANY])); /* the thread runs */
	quiesce_set_skip_self_scan(0);
	exhaust(2);
	early_waiter_goes();
	must(waiter_is_blocked(&early));
	shazptr_clear(guards[--nr_guards]);
	must(waiter_is_blocked(&early));
	shazptr_clear(guards[--nr_guards]);
	waiter_end(&early);
	must(is_free(&object[MANY]));
	clear_all();
	must(is_free(SHAZPTR_WILDCARD));
	must(use_everything());
	must(stats_now().fallback_guards == 2); /* slots are free again */
}

static void guards_without_slots_block_all_waits(void **state)
{
	(void)state;
	succeeds(fallback_guards_block);
}

/* There is always one of two fallback guards: a wait is for those before it, not for all. */
static int newest, relay_over;

static void *relay(void *first)
{
	for (int k = *(int *)first; !flag_get(&relay_over); k += 2) {
		struct shazptr_guard guard;

		wait_until(flag_get(&newest) == k - 1 || flag_get(&relay_over));
		guard = shazptr_acquire(&object[MANY + 2]);
		quiesce_store_relaxed(&newest, k); /* Relaxed: a baton. */
		wait_until(flag_get(&newest) == k + 1 || flag_get(&relay_over));
		shazptr_clear(guard);
	}
	return NULL;
}

static void relay_of_fallback_guards(void)
{
	static int first[2] = { 1, 2 };
	pthread_t thread[2];

	newest = -1; /* no reader begins yet */
	for (int i = 0; i < 2; i++)
		thread_must(pthread_create(&thread[i], NULL, relay, &first[i]));
	quiesce_set_skip_self_scan(1);
	must(is_free(&object[MANY]));
	exhaust(1);
	quiesce_store_relaxed(&newest, 0);
	wait_until(flag_get(&newest) > 2);
	shazptr_clear(guards[--nr_guards]);
	for (int i = 0; i < 20; i++) {
		quiesce_set_skip_self_scan(i % 2);
		must(is_free(&object[MANY]));
	}
	must(stats_now().fallback_guards > 4); /* the guards of the relay count, too */
	flag_set(&relay_over);
	threads_end(thread, 2);
	clear_all();
	must(is_free(SHAZPTR_WILDCARD));
}

/* Do not use blocks of CPUs, which would have free slots. */
static void overlapping_guards_without_slots_do_not_starve(void **state)
{
	(void)state;
	role = "relay";
	succeeds(become_one_with_lines_only);
}

/* The child has slots of its own, and no fallback guard of the parent's counts in it. */
static void fork_when_exhausted(void)
{
	int status;
	pid_t pid;

	early_waiter();
	exhaust(2);
	pid = fork();
	if (pid == 0) {
		alarm(watchdog_seconds() / 3);
		must(is_free(&object[0]));
		must(is_free(SHAZPTR_WILDCARD));
		clear_all();
		must(is_free(SHAZPTR_WILDCARD));
		_exit(0);
	}
	must(waitpid(pid, &status, 0) == pid && exited_with(status, 0));
	early_waiter_goes();
	must(waiter_is_blocked(&early));
	clear_all();
	waiter_end(&early);
	must(is_free(SHAZPTR_WILDCARD));
}

static void a_fork_when_slots_are_exhausted(void **state)
{
	(void)state;
	succeeds(fork_when_exhausted);
}

/* ---- no address space for slots, from the beginning ---- */

static void become_one_without_space(void)
{
	filter_now("mmap@3&0x4000=ENOMEM"); /* MAP_NORESERVE */
	become();
}

static void more_guards_than_lines(void)
{
	must(quiesce_slots() == QUIESCE_SLOTS_THREAD);
	while (nr_guards < 200) {
		guards[nr_guards] = shazptr_acquire(&object[nr_guards]);
		nr_guards++;
	}
	must(stats_now().fallback_guards > 0);
	clear_all();
	must(is_free(SHAZPTR_WILDCARD));
	for (int i = 0; i < 50; i++)
		must(use_with_threads(1, 1));
	must(ends_with(shazptr_acquire(&object[0]), &object[0]));
}

static void the_reserve_of_lines_suffices(void **state)
{
	(void)state;
	role = "lines";
	succeeds(become_one_without_space);
}

static void fork_with_the_reserve(void)
{
	struct shazptr_guard mine = shazptr_acquire(&object[1]), fresh;
	struct holder h;
	int status;
	pid_t pid;

	holder_begin(&h, &object[0]);
	pid = fork();
	if (pid == 0) {
		alarm(watchdog_seconds() / 3);
		must(is_free(&object[0]));
		fresh = shazptr_acquire(&object[2]);
		shazptr_clear(mine);
		must(ends_with(fresh, &object[2]));
		must(is_free(SHAZPTR_WILDCARD));
		must(use_everything());
		_exit(0);
	}
	must(waitpid(pid, &status, 0) == pid && exited_with(status, 0));
	must(ends_with(mine, &object[1]));
	holder_end(&h);
	must(is_free(SHAZPTR_WILDCARD));
}

static void a_fork_with_the_reserve_of_lines(void **state)
{
	(void)state;
	role = "fork";
	succeeds(become_one_without_space);
}

/* ---- membarrier ---- */

static void lose_membarrier(void)
{
	must(use_everything());
	filter_now("membarrier=EPERM");
	must(use_everything());
	must(use_with_threads(2, 5));
}

static void losing_membarrier_is_said(void **state)
{
	(void)state;
	loses_membarrier(lose_membarrier);
}

static int play(const char *name)
{
	if (!strcmp(name, "relay"))
		relay_of_fallback_guards();
	else if (!strcmp(name, "lines"))
		more_guards_than_lines();
	else if (!strcmp(name, "fork"))
		fork_with_the_reserve();
	else
		return 2;
	return 0;
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(without_a_scan_thread),
		TEST(without_a_scan_thread_and_self_scan),
		TEST(the_scan_thread_starts_when_it_can),
		TEST(fork_while_callers_lead),
		TEST(guards_without_slots_block_all_waits),
		TEST(overlapping_guards_without_slots_do_not_starve),
		TEST(a_fork_when_slots_are_exhausted),
		TEST(the_reserve_of_lines_suffices),
		TEST(a_fork_with_the_reserve_of_lines),
		TEST(losing_membarrier_is_said),
	};

	if (argc == 3 && !strcmp(argv[1], "--as")) {
		alarm(watchdog_seconds() / 2);
		return play(argv[2]);
	}
	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
