/* SPDX-License-Identifier: MIT */
/* test_shazptr_lines.c - the cost of the lines of very many threads: probes of threads, and lines that a scan reads.
 *
 * The test counts instead of timing: its own syscall() counts the probes that ask the kernel whether a thread is alive.
 */
#include "holders.h"

#include <quiesce/hazptr.h>

#include <dlfcn.h>
#include <semaphore.h>
#include <stdarg.h>
#include <sys/syscall.h>

#define NR_THREADS 300
#define PROBES_AT_MOST 16 /* limit for the first claims of a thread: a few probes for each of its lines */

static int object[2];
static __thread int nr_probes;

long syscall(long nr, ...)
{
	static long (*real)(long, ...);
	long a[6];
	va_list args;

	va_start(args, nr);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	nr_probes += nr == SYS_tgkill;
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "syscall");
	return real(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* ---- threads with guards of both kinds ---- */

static sem_t ready, go;
static int worst;

static void take_both(struct shazptr_guard *guard, hazptr_t **slot)
{
	*guard = shazptr_acquire(&object[0]);
	*slot = hazptr_alloc(NULL);
	must(*slot != NULL);
	hazptr_set(*slot, &object[0]);
}

static void *lives(void *unused)
{
	struct shazptr_guard guard;
	hazptr_t *slot;

	(void)unused;
	nr_probes = 0;
	take_both(&guard, &slot);
	if (nr_probes > flag_get(&worst))
		quiesce_store_relaxed(&worst, nr_probes); /* Relaxed: threads begin one after the other. */
	sem_post(&ready);
	sem_wait(&go);
	shazptr_clear(guard);
	hazptr_free(NULL, slot);
	return NULL;
}

static void wait_for_one(sem_t *sem)
{
	while (sem_wait(sem))
		;
}

/* Let many threads live at the same time; return how many lines a scan reads then. */
static uint32_t many_threads_live(void)
{
	static pthread_t thread[NR_THREADS];
	uint32_t lines;

	for (int i = 0; i < NR_THREADS; i++) {
		thread_must(pthread_create(&thread[i], NULL, lives, NULL));
		wait_for_one(&ready);
	}
	lines = stats_now().slots_lines;
	assert_true(lines >= NR_THREADS);
	for (int i = 0; i < NR_THREADS; i++)
		sem_post(&go);
	threads_end(thread, NR_THREADS);
	return lines;
}

static void a_first_claim_probes_few_threads(void **state)
{
	(void)state;
	quiesce_store_relaxed(&worst, 0);
	many_threads_live();
	print_message("# %d probes at the most\n", flag_get(&worst));
	assert_in_range(flag_get(&worst), 1, PROBES_AT_MOST);
}

static void lines_of_threads_that_ended_are_not_scanned(void **state)
{
	(void)state;
	/* The lines that go are those for hazptr.h, one for each thread; blocks of ids stay. */
	for (int round = 0; round < 3; round++) {
		uint32_t lines = many_threads_live();

		assert_in_range(stats_now().slots_lines, 0, lines - NR_THREADS);
	}
	assert_true(is_free(SHAZPTR_WILDCARD));
}

/* ---- what is left in a line ---- */

#define NR_LEFT 24 /* more threads than have a line from the beginning */

static struct shazptr_guard left_guard[NR_LEFT];
static hazptr_t *left_slot[NR_LEFT];
static char left_object[NR_LEFT], other_object;

static void *leaves(void *arg)
{
	size_t i = (size_t)arg;

	left_guard[i] = shazptr_acquire(&left_object[i]);
	left_slot[i] = hazptr_alloc(NULL);
	return NULL;
}

static void guards_left_in_a_line_protect(void **state)
{
	pthread_t thread;
	struct waiter w;

	(void)state;
	for (size_t i = 0; i < NR_LEFT; i++) {
		thread_must(pthread_create(&thread, NULL, leaves, (void *)i));
		pthread_join(thread, NULL);
	}
	for (int i = 0; i < NR_LEFT; i++) {
		assert_true(ends_with(left_guard[i], &left_object[i]));
		/* A slot that is still taken protects other objects after its thread has ended. */
		hazptr_set(left_slot[i], &other_object);
		waiter_begin(&w, &other_object);
		assert_true(waiter_is_blocked(&w));
		hazptr_free(NULL, left_slot[i]);
		waiter_end(&w);
	}
	assert_true(is_free(SHAZPTR_WILDCARD));
}

/* ---- lines that are shared ---- */

enum { NR_NESTED = 2000, NR_FIRST = 15 }; /* guards of the first thread; number of further threads */

static int nr_others;

static void *claims_once(void *all)
{
	struct shazptr_guard guard = shazptr_acquire(&object[0]);

	if (quiesce_shazptr_slot(guard) != QUIESCE_SLOTS_THREAD)
		quiesce_fetch_add_relaxed(&nr_others, 1); /* Relaxed: a count. */
	pthread_barrier_wait(all);
	shazptr_clear(guard);
	return NULL;
}

/* This runs in a process of its own, whose first thread has held more guards at a time than it will again. */
static void hold_many_and_go_on(void)
{
	static struct shazptr_guard guard[NR_NESTED];
	pthread_t thread[NR_FIRST];
	pthread_barrier_t all;

	for (int i = 0; i < NR_NESTED; i++)
		guard[i] = shazptr_acquire(&object[0]);
	for (int i = 0; i < NR_NESTED; i++)
		shazptr_clear(guard[i]);
	pthread_barrier_init(&all, NULL, NR_FIRST);
	threads_begin(thread, NR_FIRST, claims_once, &all);
	threads_end(thread, NR_FIRST);
	if (nr_others)
		fprintf(stderr, "%d of %d threads have no line", nr_others, NR_FIRST);
	must(nr_others == 0);
}

static void the_first_lines_are_not_shared(void **state)
{
	(void)state;
	if (quiesce_fence() != QUIESCE_FENCE_FULL) /* with full fences all claims cost the same */
		succeeds(hold_many_and_go_on);
}

/* ---- threads that end by a system call of their own ---- */

static void *vanishes(void *unused)
{
	struct shazptr_guard guard;
	hazptr_t *slot;

	(void)unused;
	pthread_detach(pthread_self());
	take_both(&guard, &slot);
	shazptr_clear(guard);
	hazptr_free(NULL, slot);
	sem_post(&ready);
	syscall(SYS_exit, 0);
	return NULL;
}

static void lines_of_threads_that_vanished_are_let_again(void **state)
{
	uint32_t before = stats_now().slots_lines, lines;

	(void)state;
	for (int i = 0; i < NR_THREADS; i++) {
		pthread_t thread;

		thread_must(pthread_create(&thread, NULL, vanishes, NULL));
		wait_for_one(&ready);
	}
	lines = stats_now().slots_lines;
	print_message("# %u lines, %u before\n", lines, before);
	assert_in_range(lines, 0, before + 64);
	assert_true(is_free(SHAZPTR_WILDCARD));
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(lines_of_threads_that_vanished_are_let_again), /* first: no thread is probed while lines are free */
		TEST(a_first_claim_probes_few_threads),
		TEST(lines_of_threads_that_ended_are_not_scanned),
		TEST(guards_left_in_a_line_protect),
		TEST(the_first_lines_are_not_shared),
	};

	sem_init(&ready, 0, 0);
	sem_init(&go, 0, 0);
	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
