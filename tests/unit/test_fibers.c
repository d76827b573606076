/* SPDX-License-Identifier: MIT */
/* test_fibers.c - user contexts that go on in other threads, with guards, slots and counts in hand.
 *
 * test_fibers [SECONDS]     the last test runs that long with many fibers; 0: not at all
 *
 * Needs nothing but the library, so it also runs for other CPUs, where compilers keep more.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define STORY(name) static void name(void)
#define MOVE() move()
#define END() ((void)0)
static void move(void);

#include "../migrate.h"

#define STACK_BYTES 131072

struct fiber {
	ucontext_t context, *back;
	char *stack;
};

static void fiber_init(struct fiber *f, void (*main)(void))
{
	f->stack = malloc(STACK_BYTES);
	if (!f->stack || getcontext(&f->context))
		abort();
	f->context.uc_stack.ss_sp = f->stack;
	f->context.uc_stack.ss_size = STACK_BYTES;
	f->context.uc_link = NULL;
	makecontext(&f->context, main, 0);
}

static void fiber_resume(struct fiber *f)
{
	ucontext_t here_now;

	f->back = &here_now;
	if (swapcontext(&here_now, &f->context))
		abort();
}

/* ---- a story, performed by two threads in turn ---- */

static struct fiber performer;
static void (*story)(void);
static int over;

static void move(void)
{
	if (swapcontext(&performer.context, performer.back))
		abort();
}

static void run_story(void)
{
	story();
	over = 1;
	move();
}

struct worker {
	pthread_t thread;
	sem_t go, done;
	int number, leave;
};

static void wait_for(sem_t *sem)
{
	while (sem_wait(sem))
		;
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;

	migrate_enter(w->number);
	sem_post(&w->done);
	for (;;) {
		wait_for(&w->go);
		if (w->leave)
			return NULL;
		fiber_resume(&performer);
		sem_post(&w->done);
	}
}

static void workers_begin(struct worker *w)
{
	for (int i = 0; i < 2; i++) {
		w[i] = (struct worker){ .number = i };
		sem_init(&w[i].go, 0, 0);
		sem_init(&w[i].done, 0, 0);
		if (pthread_create(&w[i].thread, NULL, worker_main, &w[i]))
			abort();
		wait_for(&w[i].done);
	}
}

static void workers_end(struct worker *w)
{
	for (int i = 0; i < 2; i++) {
		w[i].leave = 1;
		sem_post(&w[i].go);
		pthread_join(w[i].thread, NULL);
	}
}

static void run_all_stories(const char *where)
{
	static const struct {
		const char *name;
		void (*story)(void);
	} stories[] = {
		{ "sections of RCU", story_rcu },       { "guards", story_shazptr },           { "guards of several ways", story_ways },
		{ "slots", story_hazptr },              { "counters per CPU", story_counts },  { "quiescent states", story_qsbr },
	};
	struct worker w[2];

	migrate_begin();
	workers_begin(w);
	for (size_t i = 0; i < sizeof stories / sizeof stories[0]; i++) {
		int before = failures;

		story = stories[i].story;
		over = 0;
		fiber_init(&performer, run_story);
		for (here = 0; !over; here = !here) {
			sem_post(&w[here].go);
			wait_for(&w[here].done);
		}
		free(performer.stack);
		printf("%s - %s, %s\n", failures == before ? "ok" : "not ok", stories[i].name, where);
	}
	workers_end(w);
	percpu_ref_exit(&ref);
}

/* ---- beyond the first threads, which have lines of their own ---- */

#define NR_FIRST 16
static sem_t first_here, first_leave;

static void *one_of_the_first(void *unused)
{
	shazptr_clear(shazptr_acquire(&thing));
	sem_post(&first_here);
	wait_for(&first_leave);
	return unused;
}

static void run_beyond_the_first(void)
{
	pthread_t threads[NR_FIRST];

	sem_init(&first_here, 0, 0);
	sem_init(&first_leave, 0, 0);
	for (int i = 0; i < NR_FIRST; i++) {
		if (pthread_create(&threads[i], NULL, one_of_the_first, NULL))
			abort();
		wait_for(&first_here);
	}
	run_all_stories("beyond the first threads");
	for (int i = 0; i < NR_FIRST; i++)
		sem_post(&first_leave);
	for (int i = 0; i < NR_FIRST; i++)
		pthread_join(threads[i], NULL);
}

/* ---- all fibers at once, each in any free thread, beside an updater that frees ---- */

#define NR_FIBERS 24
#define NR_THREADS 3
#define GOOD 0x600d600d600d600dul

struct object {
	uint64_t value;
};

static struct one {
	struct fiber fiber;
	struct object *object;
	uint64_t turns;
	int finished;
} many[NR_FIBERS];
static struct one *queue[NR_FIBERS];
static int nr_queued;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int stop;
static uint64_t nr_lost, nr_freed_early, nr_updates;

static __thread struct one *running __attribute__((tls_model("initial-exec")));

static __attribute__((noinline)) struct one *running_now(void)
{
	__asm__ __volatile__(""); /* raw: keeps the call where it is */
	return running;
}

static __attribute__((noinline)) void yield_to_others(struct one *one)
{
	if (swapcontext(&one->fiber.context, one->fiber.back))
		abort();
}

/* Only its holder writes a slot. */
static void check_guarded(const uintptr_t *slot, const struct object *object)
{
	if (!holds(slot, object))
		quiesce_fetch_add_relaxed(&nr_lost, 1); /* Relaxed: a count. */
	if (quiesce_load_relaxed(&object->value) != GOOD) /* Relaxed: the guard keeps it. */
		quiesce_fetch_add_relaxed(&nr_freed_early, 1); /* Relaxed: a count. */
}

static void many_main(void)
{
	struct one *one = running_now();

	while (!quiesce_load_relaxed(&stop)) { /* Relaxed: soon enough. */
		struct shazptr_guard guard, further;
		hazptr_t *slot;

		for (int i = 0; i < 50; i++) {
			further = shazptr_protect(&one->object);
			for (int n = 0; n < 20; n++)
				check_guarded(further.slot, (struct object *)shazptr_ptr(further));
			shazptr_clear(further);
		}
		guard = shazptr_protect(&one->object);
		slot = hazptr_alloc(NULL);
		if (!slot)
			abort();
		(void)hazptr_protect(slot, &one->object);
		shazptr_detach(guard);
		yield_to_others(one);
		check_guarded(guard.slot, (struct object *)shazptr_ptr(guard));
		further = shazptr_protect(&one->object);
		rcu_read_lock();
		check_guarded(further.slot, (struct object *)shazptr_ptr(further));
		rcu_read_unlock();
		shazptr_clear(guard);
		shazptr_detach(further);
		yield_to_others(one);
		check_guarded(further.slot, (struct object *)shazptr_ptr(further));
		shazptr_clear(further);
		hazptr_free(NULL, slot);
		one->turns++;
	}
	one->finished = 1;
	for (;;)
		yield_to_others(one);
}

static struct one *next_one(void)
{
	struct one *one = NULL;

	pthread_mutex_lock(&lock);
	if (nr_queued) {
		one = queue[0];
		nr_queued--;
		for (int i = 0; i < nr_queued; i++)
			queue[i] = queue[i + 1];
	}
	pthread_mutex_unlock(&lock);
	return one;
}

static void *many_thread(void *left)
{
	while (quiesce_load_relaxed((int *)left) > 0) { /* Relaxed: soon enough. */
		struct one *one = next_one();

		if (!one) {
			usleep(100);
			continue;
		}
		running = one;
		fiber_resume(&one->fiber);
		if (one->finished) {
			quiesce_fetch_add_relaxed((int *)left, -1); /* Relaxed: a count. */
			continue;
		}
		pthread_mutex_lock(&lock);
		queue[nr_queued++] = one;
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

static struct object *object_new(void)
{
	struct object *object = malloc(sizeof *object);

	if (!object)
		abort();
	object->value = GOOD;
	return object;
}

static void *many_updater(void *unused)
{
	for (uint64_t i = 0; !quiesce_load_relaxed(&stop); i++) { /* Relaxed: soon enough. */
		struct object *old = rcu_xchg_pointer(&many[i % NR_FIBERS].object, object_new());

		synchronize_shazptr(old);
		quiesce_store_relaxed(&old->value, 0); /* Relaxed: no guard protects it. */
		free(old);
		nr_updates++;
	}
	return unused;
}

static void run_many(int seconds)
{
	pthread_t threads[NR_THREADS], updater;
	int left = NR_FIBERS;
	uint64_t turns = 0;

	for (int i = 0; i < NR_FIBERS; i++) {
		many[i].object = object_new();
		fiber_init(&many[i].fiber, many_main);
		queue[nr_queued++] = &many[i];
	}
	for (int i = 0; i < NR_THREADS; i++)
		if (pthread_create(&threads[i], NULL, many_thread, &left))
			abort();
	if (pthread_create(&updater, NULL, many_updater, NULL))
		abort();
	sleep((unsigned int)seconds);
	quiesce_store_relaxed(&stop, 1); /* Relaxed: soon enough. */
	for (int i = 0; i < NR_THREADS; i++)
		pthread_join(threads[i], NULL);
	pthread_join(updater, NULL);
	for (int i = 0; i < NR_FIBERS; i++) {
		turns += many[i].turns;
		free(many[i].object);
		free(many[i].fiber.stack);
	}
	printf("# %llu turns, %llu updates, %llu guards overwritten, %llu objects freed early\n", (unsigned long long)turns,
	       (unsigned long long)nr_updates, (unsigned long long)nr_lost, (unsigned long long)nr_freed_early);
	if (!turns || !nr_updates || nr_lost || nr_freed_early)
		failures++;
	printf("%s - many fibers\n", failures ? "not ok" : "ok");
}

int main(int argc, char **argv)
{
	int seconds = argc > 1 ? atoi(argv[1]) : 2;

	setvbuf(stdout, NULL, _IOLBF, 0);
	alarm(120);
	run_all_stories("of the first threads");
	run_beyond_the_first();
	if (seconds)
		run_many(seconds);
	return failures != 0;
}
