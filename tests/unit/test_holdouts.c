/* SPDX-License-Identifier: MIT */
/* test_holdouts.c - the program's hook learns which readers hold up grace periods: those, no others, and all of them. */
#include "testing.h"

#define NAME_AGAIN_NS 10000000u
#define MAX_NAMED 64

/* ---- readers that have been named, and how often ---- */

struct named {
	pid_t tid;
	int times;
	uint64_t first_waited_ns, first_at, last_at;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct named named[MAX_NAMED];
static int nr_named;
static int in_hook, others_hooks; /* calls that are running; calls that were not made by the helper */

static struct named *find_named(pid_t tid)
{
	for (int i = 0; i < nr_named; i++)
		if (named[i].tid == tid)
			return &named[i];
	return NULL;
}

static void keep_name(int tid, uint64_t waited_ns, void *arg)
{
	char name[16] = "";
	struct named *n;

	must(!quiesce_fetch_add_relaxed(&in_hook, 1)); /* Relaxed: a count. */
	pthread_getname_np(pthread_self(), name, sizeof name);
	rcu_read_lock();
	rcu_read_unlock();
	free(malloc(100));
	pthread_mutex_lock(arg);
	n = find_named(tid);
	if (!n && nr_named < MAX_NAMED) {
		n = &named[nr_named++];
		*n = (struct named){ .tid = tid, .first_waited_ns = waited_ns, .first_at = now_ns() };
	}
	if (n) {
		n->times++;
		n->last_at = now_ns();
	}
	if (strcmp(name, "quiesce-helper"))
		others_hooks++;
	pthread_mutex_unlock(arg);
	quiesce_fetch_add_relaxed(&in_hook, -1); /* Relaxed: a count. */
}

static struct named named_of(pid_t tid)
{
	struct named *n, copy = { .times = 0 };

	pthread_mutex_lock(&lock);
	n = find_named(tid);
	if (n)
		copy = *n;
	pthread_mutex_unlock(&lock);
	return copy;
}

static int times(pid_t tid)
{
	return named_of(tid).times;
}

static void names_begin(void)
{
	pthread_mutex_lock(&lock);
	nr_named = 0;
	pthread_mutex_unlock(&lock);
	assert_int_equal(quiesce_set_holdout_hook(keep_name, &lock), 0);
}

static void names_end(void)
{
	assert_int_equal(quiesce_set_holdout_hook(NULL, NULL), 0);
	assert_int_equal(others_hooks, 0);
}

/* ---- one that waits ---- */

static void *synchronizes(void *over)
{
	synchronize_rcu();
	if (over)
		flag_set((int *)over);
	return NULL;
}

static pthread_t waiter_begin(int *over)
{
	pthread_t thread;

	thread_must(pthread_create(&thread, NULL, synchronizes, over));
	return thread;
}

/* ---- readers that are named ---- */

#define NR_READERS 5

static void all_readers_in_the_way_are_named(void **state)
{
	struct held reader[NR_READERS];
	pthread_t waiter;

	(void)state;
	names_begin();
	for (int i = 0; i < NR_READERS; i++)
		held_begin(&reader[i], NULL);
	waiter = waiter_begin(NULL);
	for (int i = 0; i < NR_READERS; i++)
		wait_until(times(reader[i].tid) > 0);
	for (int i = 0; i < NR_READERS; i++) {
		assert_true(named_of(reader[i].tid).first_waited_ns >= 1000000);
		held_end(&reader[i]);
	}
	pthread_join(waiter, NULL);
	names_end();
	assert_int_equal(nr_named, NR_READERS);
}

static sem_t registered, may_end;
static pid_t idle_tid;

static void *stays_outside(void *unused)
{
	idle_tid = my_tid();
	rcu_read_lock();
	rcu_read_unlock();
	sem_post(&registered);
	wait_for(&may_end);
	return unused;
}

/* One thread is outside, and one began its section after the wait. */
static void readers_that_delay_no_wait_are_not_named(void **state)
{
	struct held reader, later;
	pthread_t waiter, idle;
	int before;

	(void)state;
	sem_init(&registered, 0, 0);
	sem_init(&may_end, 0, 0);
	thread_must(pthread_create(&idle, NULL, stays_outside, NULL));
	wait_for(&registered);
	names_begin();
	held_begin(&reader, NULL);
	waiter = waiter_begin(NULL);
	wait_until(times(reader.tid) > 0);
	held_begin(&later, NULL);
	before = times(reader.tid);
	wait_until(times(reader.tid) > before + 2);
	assert_int_equal(times(later.tid), 0);
	assert_int_equal(times(idle_tid), 0);
	held_end(&reader);
	pthread_join(waiter, NULL);
	rest_ms(30);
	assert_int_equal(times(later.tid), 0); /* no updater waits for it */
	held_end(&later);
	names_end();
	sem_post(&may_end);
	pthread_join(idle, NULL);
}

static void a_reader_is_named_once_in_ten_milliseconds(void **state)
{
	struct held reader;
	struct named n;
	pthread_t waiter;

	(void)state;
	names_begin();
	held_begin(&reader, NULL);
	waiter = waiter_begin(NULL);
	wait_until(times(reader.tid) >= 5);
	held_end(&reader);
	pthread_join(waiter, NULL);
	names_end();
	n = named_of(reader.tid);
	/* A call may come late, the first one too; the next search comes after it. */
	assert_true((uint64_t)(n.times - 2) * NAME_AGAIN_NS <= n.last_at - n.first_at);
}

static void do_nothing(struct rcu_head *unused)
{
	(void)unused;
}

/* Only the library's thread waits for these readers. */
static void readers_in_the_way_of_callbacks_are_named(void **state)
{
	static struct rcu_head head;
	struct held reader;

	(void)state;
	names_begin();
	held_begin(&reader, NULL);
	call_rcu(&head, do_nothing);
	wait_until(times(reader.tid) > 0);
	held_end(&reader);
	names_end();
	rcu_barrier();
}

/* ---- a hook that makes the reader leave ---- */

static int hook_calls;

static void be_kicked(int sig)
{
	(void)sig;
	count_up(&hook_calls);
}

static void end_section(int tid, uint64_t waited_ns, void *arg)
{
	(void)waited_ns;
	if (tid == flag_get((int *)arg))
		syscall(SYS_tgkill, getpid(), tid, SIGUSR1);
}

/* The reader acts as a virtual CPU: it is inside until it is kicked, and then inside again. */
static void *runs_until_kicked(void *tid)
{
	int before;

	for (int i = 0; i < 3; i++) {
		rcu_read_lock();
		before = flag_get(&hook_calls);
		quiesce_store_relaxed((int *)tid, my_tid()); /* Relaxed: a flag of the test. */
		wait_until(flag_get(&hook_calls) != before);
		rcu_read_unlock();
	}
	return NULL;
}

static void a_kicked_reader_ends_the_wait(void **state)
{
	struct sigaction action = { .sa_handler = be_kicked, .sa_flags = SA_RESTART };
	pthread_t reader;
	int tid = 0;

	(void)state;
	quiesce_store_relaxed(&hook_calls, 0); /* Relaxed: a flag of the test. */
	sigaction(SIGUSR1, &action, NULL);
	assert_int_equal(quiesce_set_holdout_hook(end_section, &tid), 0);
	thread_must(pthread_create(&reader, NULL, runs_until_kicked, &tid));
	wait_until(flag_get(&tid));
	while (flag_get(&hook_calls) < 3)
		synchronize_rcu();
	pthread_join(reader, NULL);
	names_end();
	signal(SIGUSR1, SIG_DFL);
}

/* ---- a hook that goes ---- */

static sem_t hook_entered, hook_may_end;
static int removed;

static void block(int tid, uint64_t waited_ns, void *arg)
{
	(void)tid, (void)waited_ns;
	count_up((int *)arg);
	sem_post(&hook_entered);
	wait_for(&hook_may_end);
	must(!flag_get(&removed));
}

static void *removes(void *unused)
{
	must(!quiesce_set_holdout_hook(NULL, NULL));
	flag_set(&removed);
	return unused;
}

static void a_hook_has_returned_when_it_is_removed(void **state)
{
	struct held reader;
	pthread_t waiter, remover;
	int calls = 0;

	(void)state;
	sem_init(&hook_entered, 0, 0);
	sem_init(&hook_may_end, 0, 0);
	quiesce_store_relaxed(&removed, 0); /* Relaxed: a flag of the test. */
	assert_int_equal(quiesce_set_holdout_hook(block, &calls), 0);
	held_begin(&reader, NULL);
	waiter = waiter_begin(NULL);
	wait_for(&hook_entered);
	thread_must(pthread_create(&remover, NULL, removes, NULL));
	rest_ms(20);
	sem_post(&hook_may_end);
	pthread_join(remover, NULL);
	rest_ms(30);
	assert_int_equal(flag_get(&calls), 1);
	held_end(&reader);
	pthread_join(waiter, NULL);
}

static void remove_itself(int tid, uint64_t waited_ns, void *arg)
{
	(void)tid, (void)waited_ns;
	must(!quiesce_set_holdout_hook(NULL, NULL));
	count_up((int *)arg);
}

static void a_hook_may_remove_itself(void **state)
{
	struct held reader[2];
	pthread_t waiter;
	int calls = 0;

	(void)state;
	assert_int_equal(quiesce_set_holdout_hook(remove_itself, &calls), 0);
	held_begin(&reader[0], NULL);
	held_begin(&reader[1], NULL);
	waiter = waiter_begin(NULL);
	wait_until(flag_get(&calls));
	rest_ms(30);
	assert_int_equal(flag_get(&calls), 1);
	held_end(&reader[0]);
	held_end(&reader[1]);
	pthread_join(waiter, NULL);
}

static void forget_misuse(enum quiesce_misuse kind, const char *text)
{
	must(kind == QUIESCE_MISUSE_EXIT_IN_CALLBACK);
	must(strstr(text, "quiesce_set_holdout_hook()") != NULL);
}

static void end_once(int tid, uint64_t waited_ns, void *arg)
{
	(void)waited_ns;
	if (!quiesce_fetch_add_relaxed((int *)arg, 1)) /* Relaxed: a count. */
		pthread_exit(NULL);
	keep_name(tid, waited_ns, &lock);
}

static void other_readers_are_named_after_the_hook_has_ended_its_thread(void **state)
{
	struct held reader[2];
	pthread_t waiter;
	int calls = 0;

	(void)state;
	quiesce_set_misuse_hook(forget_misuse);
	names_begin();
	assert_int_equal(quiesce_set_holdout_hook(end_once, &calls), 0);
	held_begin(&reader[0], NULL);
	held_begin(&reader[1], NULL);
	waiter = waiter_begin(NULL);
	wait_until(times(reader[0].tid) && times(reader[1].tid));
	held_end(&reader[0]);
	held_end(&reader[1]);
	pthread_join(waiter, NULL);
	names_end();
	quiesce_set_misuse_hook(NULL);
}

/* ---- threads that are gone, and children ---- */

static sem_t inside;
static pid_t vanished_tid;

static void *vanish_inside(void *unused)
{
	(void)unused;
	pthread_detach(pthread_self());
	vanished_tid = my_tid();
	rcu_read_lock();
	sem_post(&inside);
	syscall(SYS_exit, 0);
	return NULL;
}

static void wait_for_vanished(void)
{
	struct held reader;
	pthread_t thread;

	sem_init(&inside, 0, 0);
	names_begin();
	thread_must(pthread_create(&thread, NULL, vanish_inside, NULL));
	wait_for(&inside);
	held_begin(&reader, NULL);
	thread = waiter_begin(NULL);
	wait_until(times(reader.tid) > 2);
	must(times(vanished_tid) == 0);
	held_end(&reader);
	pthread_join(thread, NULL);
	must(times(vanished_tid) == 0);
}

static void dead_threads_are_not_named(void **state)
{
	(void)state;
	succeeds(wait_for_vanished);
}

static void name_in_child(void)
{
	struct held reader;
	pthread_t waiter;

	held_begin(&reader, NULL);
	waiter = waiter_begin(NULL);
	wait_until(times(reader.tid) > 0);
	held_end(&reader);
	pthread_join(waiter, NULL);
}

/* A child has the hook also while the parent waits. */
static void a_child_has_the_hook(void **state)
{
	struct held reader;
	pthread_t waiter;

	(void)state;
	names_begin();
	held_begin(&reader, NULL);
	waiter = waiter_begin(NULL);
	wait_until(times(reader.tid) > 0);
	succeeds(name_in_child);
	held_end(&reader);
	pthread_join(waiter, NULL);
	names_end();
}

static void fork_in_hook(int tid, uint64_t waited_ns, void *arg)
{
	int status = -1;
	pid_t pid;

	(void)tid, (void)waited_ns;
	if (flag_get((int *)arg))
		return;
	pid = fork();
	if (pid == 0) {
		synchronize_rcu();
		_exit(quiesce_set_holdout_hook(NULL, NULL));
	}
	waitpid(pid, &status, 0);
	quiesce_store_relaxed((int *)arg, exited_with(status, 0) ? 1 : 2); /* Relaxed: a flag of the test. */
}

static void a_hook_may_fork(void **state)
{
	struct held reader;
	pthread_t waiter;
	int result = 0;

	(void)state;
	assert_int_equal(quiesce_set_holdout_hook(fork_in_hook, &result), 0);
	held_begin(&reader, NULL);
	waiter = waiter_begin(NULL);
	wait_until(flag_get(&result));
	held_end(&reader);
	pthread_join(waiter, NULL);
	names_end();
	assert_int_equal(flag_get(&result), 1);
}

static void after_a_shutdown_the_hook_is_called_again(void **state)
{
	struct held reader;
	pthread_t waiter;

	(void)state;
	names_begin();
	assert_int_equal(quiesce_shutdown(0), 0);
	held_begin(&reader, NULL);
	waiter = waiter_begin(NULL);
	wait_until(times(reader.tid) > 0);
	held_end(&reader);
	pthread_join(waiter, NULL);
	names_end();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(all_readers_in_the_way_are_named),
		TEST(readers_that_delay_no_wait_are_not_named),
		TEST(a_reader_is_named_once_in_ten_milliseconds),
		TEST(readers_in_the_way_of_callbacks_are_named),
		TEST(a_kicked_reader_ends_the_wait),
		TEST(a_hook_has_returned_when_it_is_removed),
		TEST(a_hook_may_remove_itself),
		TEST(other_readers_are_named_after_the_hook_has_ended_its_thread),
		TEST(dead_threads_are_not_named),
		TEST(a_child_has_the_hook),
		TEST(a_hook_may_fork),
		TEST(after_a_shutdown_the_hook_is_called_again),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
