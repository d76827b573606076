/* SPDX-License-Identifier: MIT */
/* test_shazptr_short.c - guards when slots run short, and the first ones of a thread or process.
 *
 * This program has its own mprotect(), which can fail for lack of memory, and its own
 * pthread_sigmask(), which can let a signal come in while all are blocked; the library calls both.
 */
#include "guards.h"

#include <sched.h>
#include <sys/mman.h>

static int p_object, q_object, r_object;
static void *const p = &p_object, *const q = &q_object;

/* ---- denied memory ---- */

static int no_memory;

int mprotect(void *start, size_t length, int protection)
{
	if (flag_get(&no_memory) && protection != PROT_NONE) {
		errno = ENOMEM;
		return -1;
	}
	return (int)syscall(SYS_mprotect, start, length, protection);
}

static __thread int signal_when_blocked; /* the number of calls until the signal */

int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	int err = syscall(SYS_rt_sigprocmask, how, set, old, 8) ? errno : 0;

	if (signal_when_blocked && set && how == SIG_SETMASK && sigismember(set, SIGUSR1) && --signal_when_blocked == 0)
		raise(SIGUSR1);
	return err;
}

/* ---- fallback guards ---- */

#define MAX_GUARDS 20000

static struct shazptr_guard filler[MAX_GUARDS];
static int nr_fillers;
static uintptr_t *fallback_slot; /* all fallback guards are in this slot or in the one beside it */

static int is_fallback(struct shazptr_guard guard)
{
	return guard.slot - fallback_slot <= 1 && fallback_slot - guard.slot <= 1;
}

/* Hold guards of unused addresses until there are no free slots. */
static void run_short(void)
{
	uint64_t fallback = stats_now().fallback_guards;

	flag_set(&no_memory);
	for (nr_fillers = 0; nr_fillers < MAX_GUARDS; nr_fillers++) {
		filler[nr_fillers] = shazptr_acquire(&r_object);
		if (stats_now().fallback_guards > fallback)
			break;
	}
	assert_true(nr_fillers < MAX_GUARDS);
	fallback_slot = filler[nr_fillers].slot;
	shazptr_clear(filler[nr_fillers]);
}

/* Take a guard without a slot: a thread that has been migrated meanwhile finds free slots, and fills them first. */
static struct shazptr_guard acquire_short(const void *ptr)
{
	struct shazptr_guard guard;

	while (!is_fallback(guard = shazptr_acquire(ptr))) {
		shazptr_clear(guard);
		assert_true(nr_fillers < MAX_GUARDS);
		guard = shazptr_acquire(&r_object);
		if (is_fallback(guard))
			shazptr_clear(guard);
		else
			filler[nr_fillers++] = guard;
	}
	return guard;
}

static void have_enough(void)
{
	quiesce_store_relaxed(&no_memory, 0);
	while (nr_fillers--)
		shazptr_clear(filler[nr_fillers]);
}

static void a_fallback_guard_blocks_all_waits(void **state)
{
	struct shazptr_guard guard;
	struct waiter w[3];
	int flag = 0;

	(void)state;
	run_short();
	synchronize_shazptr(q); /* all slots hold another address */
	for (int wild = 0; wild < 2; wild++) {
		guard = acquire_short(wild ? SHAZPTR_WILDCARD : p);
		assert_ptr_equal(shazptr_ptr(guard), wild ? SHAZPTR_WILDCARD : p);
		waiter_begin(&w[0], p, &flag);
		waiter_begin(&w[1], q, &flag);
		waiter_begin(&w[2], q, &flag);
		assert_all_wait(w);
		flag_set(&flag);
		shazptr_clear(guard);
		for (int i = 0; i < 3; i++) {
			waiter_end(&w[i]);
			assert_int_equal(w[i].seen, 1);
		}
	}
	have_enough();
	synchronize_shazptr(SHAZPTR_WILDCARD);
}

static void fallback_guards_may_be_cleared_in_any_order_by_any_thread(void **state)
{
	struct take t[3] = { { .ptr = p }, { .ptr = p }, { .ptr = q } };
	struct actor actor;
	struct waiter w;

	(void)state;
	actor_begin(&actor);
	run_short();
	for (int i = 0; i < 3; i++)
		t[i].guard = acquire_short(t[i].ptr);
	waiter_begin(&w, q, NULL);
	for (int i = 0; i < 3; i++) {
		assert_waits(&w);
		actor_do(&actor, do_clear, &t[(i + 1) % 3]);
	}
	waiter_end(&w);
	have_enough();
	actor_end(&actor);
}

/* Empty guards protect nothing, so they must leave no count behind. */
static void empty_guards_are_not_counted(void **state)
{
	void *null = NULL;

	(void)state;
	run_short();
	for (int i = 0; i < 10; i++) {
		shazptr_clear(shazptr_acquire(NULL));
		shazptr_clear(shazptr_acquire_detached(NULL));
		shazptr_clear(shazptr_protect(&null));
		shazptr_clear(shazptr_tryprotect(&null));
	}
	synchronize_shazptr(q);
	have_enough();
	synchronize_shazptr(SHAZPTR_WILDCARD);
}

static int stop;
static uint64_t nr_protected;

#define NR_OWN 4096 /* more than the blocks of many ids and a line have */

/* Take a fallback guard; guards in free slots that it finds before, in the blocks of other ids, are kept. */
static struct shazptr_guard acquire_fallback(struct shazptr_guard own[NR_OWN], int *nr_own)
{
	struct shazptr_guard guard;

	while (!is_fallback(guard = shazptr_acquire(p)) && *nr_own < NR_OWN)
		own[(*nr_own)++] = guard;
	return guard;
}

/* Hold a fallback guard all the time: take the next one before the last one is cleared. */
static void *protect_for_ever(void *unused)
{
	struct shazptr_guard own[NR_OWN], guard, next;
	int nr_own = 0;

	(void)unused;
	guard = acquire_fallback(own, &nr_own);
	count_up(&nr_protected);
	while (!flag_get(&stop)) {
		next = acquire_fallback(own, &nr_own);
		shazptr_clear(guard);
		guard = next;
	}
	shazptr_clear(guard);
	while (nr_own--)
		shazptr_clear(own[nr_own]);
	return NULL;
}

static void endless_fallback_guards_starve_no_waiter(void **state)
{
	pthread_t reader[2];
	uint64_t blocked;

	(void)state;
	run_short();
	threads_begin(reader, 2, protect_for_ever, NULL);
	wait_until(flag_get(&nr_protected) == 2);
	blocked = stats_now().shazptr_blocked;
	for (int i = 0; i < 10; i++)
		synchronize_shazptr(q);
	flag_set(&stop);
	threads_end(reader, 2);
	have_enough();
	assert_int_equal(stats_now().shazptr_blocked, blocked + 10);
}

static void slots_are_used_again_when_they_are_free(void **state)
{
	struct shazptr_guard guard;
	uint64_t fallback;

	(void)state;
	run_short();
	fallback = stats_now().fallback_guards;
	shazptr_clear(filler[--nr_fillers]);
	guard = shazptr_acquire(p);
	assert_int_equal(stats_now().fallback_guards, fallback);
	synchronize_shazptr(q);
	shazptr_clear(guard);
	have_enough();
	guard = shazptr_acquire(p);
	assert_int_equal(stats_now().fallback_guards, fallback);
	shazptr_clear(guard);
	synchronize_shazptr(SHAZPTR_WILDCARD);
}

/* ---- first guards ---- */

static sem_t inside, leave, stay;
static struct shazptr_guard first;

static void on_signal(int sig)
{
	(void)sig;
	first = shazptr_acquire(q);
	sem_post(&inside);
	wait_for(&leave);
	shazptr_clear(first);
}

static void *first_use(void *times)
{
	struct shazptr_guard guard;

	signal_when_blocked = *(const int *)times;
	guard = shazptr_acquire(p);
	if (signal_when_blocked) /* signals were not blocked often enough */
		raise(SIGUSR1);
	signal_when_blocked = 0;
	shazptr_clear(guard);
	wait_for(&stay); /* the next thread gets a line that never had an owner */
	return NULL;
}

#define NR_FIRST 8

/* The signal comes while the thread is registered or gets its line, with all of them blocked. */
static void a_guard_of_a_handler_counts_even_before_the_first_of_its_thread(void **state)
{
	static const int times[NR_FIRST] = { 1, 2, 3, 4, 1, 2, 3, 4 };
	pthread_t thread[NR_FIRST];
	struct waiter w;

	(void)state;
	signal(SIGUSR1, on_signal);
	sem_init(&inside, 0, 0);
	sem_init(&leave, 0, 0);
	sem_init(&stay, 0, 0);
	for (int i = 0; i < NR_FIRST; i++) {
		thread_must(pthread_create(&thread[i], NULL, first_use, (void *)(uintptr_t)&times[i]));
		wait_for(&inside);
		waiter_begin(&w, q, NULL);
		assert_waits(&w);
		sem_post(&leave);
		waiter_end(&w);
	}
	for (int i = 0; i < NR_FIRST; i++)
		sem_post(&stay);
	threads_end(thread, NR_FIRST);
}

static void *hold_first(void *arg)
{
	struct take *t = arg;

	do_acquire(t);
	sem_post(&inside);
	wait_for(&leave);
	do_clear(t);
	return NULL;
}

/* Hold guards in a child, in the thread that forked and in a new one. */
static void hold_in_child(void)
{
	struct take mine = { .ptr = p }, its = { .ptr = q };
	pthread_t thread;
	struct waiter w[3];

	sem_init(&inside, 0, 0);
	sem_init(&leave, 0, 0);
	do_acquire(&mine);
	thread_must(pthread_create(&thread, NULL, hold_first, &its));
	wait_for(&inside);
	synchronize_shazptr(&r_object);
	waiter_begin(&w[0], p, NULL);
	waiter_begin(&w[1], q, NULL);
	waiter_begin(&w[2], SHAZPTR_WILDCARD, NULL);
	if (!waiters_wait(w, 3))
		_exit(1);
	do_clear(&mine);
	sem_post(&leave);
	for (int i = 0; i < 3; i++)
		waiter_end(&w[i]);
	pthread_join(thread, NULL);
	synchronize_shazptr(SHAZPTR_WILDCARD);
}

static void a_child_waits_for_its_own_guards(void **state)
{
	struct shazptr_guard guard = shazptr_acquire(q), more = shazptr_acquire(q);
	struct outcome o;
	struct waiter w;

	(void)state;
	shazptr_clear(more);
	in_child(hold_in_child, &o);
	assert_true(exited_with(o.status, 0));
	waiter_begin(&w, q, NULL); /* the parent waits for the guards that it had before the fork */
	assert_waits(&w);
	shazptr_clear(guard);
	waiter_end(&w);
	in_child(hold_in_child, &o);
	assert_true(exited_with(o.status, 0));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(a_guard_of_a_handler_counts_even_before_the_first_of_its_thread),
		TEST(a_child_waits_for_its_own_guards),
		TEST(a_fallback_guard_blocks_all_waits),
		TEST(fallback_guards_may_be_cleared_in_any_order_by_any_thread),
		TEST(empty_guards_are_not_counted),
		TEST(endless_fallback_guards_starve_no_waiter),
		TEST(slots_are_used_again_when_they_are_free),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
