/* SPDX-License-Identifier: MIT */
/* many_threads.c - ten thousand threads that are alive at once.
 *
 * Each thread is new to the library.  It reads and retires by each primitive, and holds sections, a guard, a slot and a reference
 * until all threads do.  Meanwhile other threads wait for readers again and again, and what the held protections protect is
 * replaced and retired: it must be alive until the last one has ended.  Then one wait of each kind is timed while all threads are idle.
 * Every callback runs once.  Threads of the second round get what those of the first have left.
 * With --busted what is retired is reclaimed at once, which has to be an error.
 * Exit status: 0; 1 an error; 2 usage; 77 the system does not allow so many threads.
 */
#include <quiesce/control.h>
#include <quiesce/hazptr.h>
#include <quiesce/percpu_ref.h>
#include <quiesce/percpu_rwsem.h>
#include <quiesce/rcu.h>
#include <quiesce/shazptr.h>
#include <quiesce/srcu.h>

#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS 2
#define STACK_BYTES (64u << 10)
#define ALIVE 0x616c697665ull
#define DEAD 0x64656164ull

/* Ways to protect an object. */
enum kind { BY_RCU, BY_SRCU, BY_SHAZPTR, BY_HAZPTR, NR_KINDS };

struct object {
	uint64_t state; /* ALIVE, or DEAD once it could be freed */
	struct object *next; /* among those that are dead */
	union {
		struct rcu_head rcu;
		struct hazptr_head hazptr;
	};
};

static struct object *shared[NR_KINDS];
static struct object *dead;
static pthread_mutex_t dead_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t retired, reclaimed, errors;

DEFINE_STATIC_SRCU(domain);
DEFINE_STATIC_PERCPU_RWSEM(rwsem);
static struct percpu_ref ref;
static uint64_t ref_ends;

/* All threads of a round hold their protections from their arrival until it opens. */
static struct gate {
	pthread_mutex_t lock;
	pthread_cond_t arrival, opening;
	uint32_t arrived, wanted, round; /* @lock guards these */
} gate = { .lock = PTHREAD_MUTEX_INITIALIZER, .arrival = PTHREAD_COND_INITIALIZER, .opening = PTHREAD_COND_INITIALIZER };

static uint32_t stop;
static bool busted;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Relaxed: counters that are read when their threads have been joined, and flags that order nothing. */
#define COUNT(counter) ((void)quiesce_fetch_add_relaxed(&(counter), (uint64_t)1))

static struct object *new_object(void)
{
	struct object *o = calloc(1, sizeof(*o));

	if (!o)
		abort();
	o->state = ALIVE;
	return o;
}

static void check(const struct object *o)
{
	/* Relaxed: the protection under test is what keeps the object alive. */
	if (quiesce_load_relaxed(&o->state) != ALIVE)
		COUNT(errors);
}

/* The memory stays, so that an error is found and not a crash. */
static void reclaim(struct object *o)
{
	/* Relaxed: a reader that loads this has found an error. */
	quiesce_store_relaxed(&o->state, DEAD);
	pthread_mutex_lock(&dead_lock);
	o->next = dead;
	dead = o;
	pthread_mutex_unlock(&dead_lock);
	COUNT(reclaimed);
}

static void reclaim_rcu(struct rcu_head *head)
{
	reclaim((struct object *)((char *)head - offsetof(struct object, rcu)));
}

static void reclaim_hazptr(struct hazptr_head *head)
{
	reclaim((struct object *)((char *)head - offsetof(struct object, hazptr)));
}

static void retire(struct object *o, enum kind kind)
{
	COUNT(retired);
	if (busted) {
		reclaim(o);
		return;
	}
	switch (kind) {
	case BY_RCU: call_rcu(&o->rcu, reclaim_rcu); break;
	case BY_SRCU: call_srcu(&domain, &o->rcu, reclaim_rcu); break;
	case BY_HAZPTR: call_hazptr(&o->hazptr, reclaim_hazptr); break;
	default:
		synchronize_shazptr(o);
		reclaim(o);
	}
}

static void replace(enum kind kind)
{
	struct object *old = shared[kind];

	rcu_assign_pointer(shared[kind], new_object());
	retire(old, kind);
}

static void ref_unused(struct percpu_ref *unused)
{
	(void)unused;
	COUNT(ref_ends);
}

/* ---- the threads ---- */

static void arrive_and_wait(void)
{
	uint32_t round;

	pthread_mutex_lock(&gate.lock);
	round = gate.round;
	if (++gate.arrived == gate.wanted)
		pthread_cond_signal(&gate.arrival);
	while (gate.round == round)
		pthread_cond_wait(&gate.opening, &gate.lock);
	pthread_mutex_unlock(&gate.lock);
}

static void *member(void *unused)
{
	struct hazptr_context context;
	struct object *held[NR_KINDS];
	struct shazptr_guard guard;
	hazptr_t *slot;
	int index;

	if (init_hazptr_context(&context))
		abort();
	percpu_down_read(&rwsem); /* not held at the gate: a writer that waits would keep the next thread from there */
	percpu_up_read(&rwsem);
	rcu_read_lock();
	held[BY_RCU] = rcu_dereference(shared[BY_RCU]);
	index = srcu_read_lock(&domain);
	held[BY_SRCU] = srcu_dereference(shared[BY_SRCU], &domain);
	guard = shazptr_protect(&shared[BY_SHAZPTR]);
	held[BY_SHAZPTR] = guard.ptr;
	slot = hazptr_alloc(&context);
	held[BY_HAZPTR] = hazptr_protect(slot, &shared[BY_HAZPTR], hazptr);
	percpu_ref_get(&ref);
	retire(new_object(), BY_RCU);
	retire(new_object(), BY_HAZPTR);
	retire(new_object(), BY_SRCU);
	arrive_and_wait();
	for (int i = 0; i < NR_KINDS; i++)
		check(held[i]);
	percpu_ref_put(&ref);
	hazptr_clear(slot);
	hazptr_free(&context, slot);
	shazptr_clear(guard);
	srcu_read_unlock(&domain, index);
	rcu_read_unlock();
	arrive_and_wait();
	cleanup_hazptr_context(&context);
	return unused;
}

/* ---- threads that wait for it ---- */

enum way { SYNCHRONIZE, EXPEDITED, BARRIER, SRCU, SHAZPTR, HAZPTR, WRITE, NR_WAYS };
static const char *const name[NR_WAYS] = { "synchronize_rcu", "_expedited", "rcu_barrier", "synchronize_srcu", "synchronize_shazptr",
					   "hazptr_barrier", "percpu_down_write" };
static uint64_t waits[NR_WAYS];

static void wait_once(enum way way)
{
	switch (way) {
	case SYNCHRONIZE: synchronize_rcu(); break;
	case EXPEDITED: synchronize_rcu_expedited(); break;
	case BARRIER: rcu_barrier(); break;
	case SRCU: synchronize_srcu(&domain); break;
	case SHAZPTR: synchronize_shazptr(name); break;
	case HAZPTR: hazptr_barrier(); break;
	default:
		percpu_down_write(&rwsem);
		percpu_up_write(&rwsem);
	}
}

/* Prints the time of each wait while no thread holds anything. */
static void time_waits(void)
{
	for (int way = 0; way < NR_WAYS; way++) {
		double begin = now();

		wait_once((enum way)way);
		printf("%s%s %.2f ms", way ? ", " : "  idle: ", name[way], (now() - begin) * 1e3);
	}
	printf("\n");
}

static void *waiter(void *arg)
{
	uint64_t *count = arg;

	/* Relaxed: a flag that has to be seen some time. */
	while (!quiesce_load_relaxed(&stop)) {
		wait_once((enum way)(count - waits));
		COUNT(*count);
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	return NULL;
}

/* ---- rounds ---- */

static void *replace_guarded(void *unused)
{
	replace(BY_SHAZPTR);
	return unused;
}

static void wait_for_arrival(uint32_t nr)
{
	pthread_mutex_lock(&gate.lock);
	gate.wanted = nr;
	while (gate.arrived < nr)
		pthread_cond_wait(&gate.arrival, &gate.lock);
	pthread_mutex_unlock(&gate.lock);
}

static void open_gate(void)
{
	pthread_mutex_lock(&gate.lock);
	gate.arrived = 0;
	gate.round++;
	pthread_cond_broadcast(&gate.opening);
	pthread_mutex_unlock(&gate.lock);
}

/* Replaces what all threads hold. */
static void replace_all(void)
{
	pthread_t replacer;

	if (pthread_create(&replacer, NULL, replace_guarded, NULL))
		abort();
	replace(BY_RCU);
	replace(BY_SRCU);
	replace(BY_HAZPTR);
	nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL); /* scans and grace periods meet the threads */
	open_gate();
	pthread_join(replacer, NULL);
}

/* Returns false if the system has not so many threads. */
static bool round_of(uint32_t nr, pthread_t *thread)
{
	pthread_attr_t attr;
	uint32_t started = 0;
	double begin = now(), full, idle, end;
	int err = 0;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	while (started < nr && !(err = pthread_create(&thread[started], &attr, member, NULL)))
		started++;
	pthread_attr_destroy(&attr);
	wait_for_arrival(started);
	full = now();
	replace_all();
	wait_for_arrival(started);
	idle = now();
	time_waits();
	end = now();
	open_gate();
	for (uint32_t i = 0; i < started; i++)
		pthread_join(thread[i], NULL);
	printf("%u threads: all hold after %.2f s, are idle after %.2f s, end in %.2f s\n", started, full - begin, idle - full,
	       now() - end);
	if (err)
		fprintf(stderr, "thread %u: %s\n", started, strerror(err));
	return !err;
}

static void print_memory(void)
{
	char line[128];
	FILE *f = fopen("/proc/self/status", "r");

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "VmHWM", 5) || !strncmp(line, "VmRSS", 5))
			printf("%s", line);
	if (f)
		fclose(f);
}

static int verdict(void)
{
	double begin = now();

	percpu_ref_kill(&ref);
	rcu_barrier();
	srcu_barrier(&domain);
	hazptr_barrier();
	while (quiesce_load_relaxed(&ref_ends) == 0) /* Relaxed: the barriers of the counts below order */
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	printf("retired %llu, reclaimed %llu, errors %llu; the last barriers took %.2f ms\n", (unsigned long long)retired,
	       (unsigned long long)reclaimed, (unsigned long long)errors, (now() - begin) * 1e3);
	for (int way = 0; way < NR_WAYS; way++)
		printf("%s%s %llu", way ? ", " : "  waits: ", name[way], (unsigned long long)waits[way]);
	printf("\n");
	print_memory();
	return errors || retired != reclaimed || ref_ends != 1;
}

static int run(uint32_t nr)
{
	pthread_t *thread = calloc(nr, sizeof(*thread)), waiting[NR_WAYS];
	bool all = true;

	if (!thread || percpu_ref_init(&ref, ref_unused, 0))
		abort();
	for (int i = 0; i < NR_KINDS; i++)
		shared[i] = new_object();
	for (int i = 0; i < NR_WAYS; i++)
		if (pthread_create(&waiting[i], NULL, waiter, &waits[i]))
			abort();
	for (int i = 0; i < ROUNDS && all; i++)
		all = round_of(nr, thread);
	quiesce_store_relaxed(&stop, 1); /* Relaxed: a flag that has to be seen some time. */
	for (int i = 0; i < NR_WAYS; i++)
		pthread_join(waiting[i], NULL);
	free(thread);
	if (verdict())
		return 1;
	return all ? 0 : 77;
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "threads", required_argument, NULL, 't' },
						 { "busted", no_argument, NULL, 'b' },
						 { NULL, 0, NULL, 0 } };
	uint32_t nr = 10000;

	for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		switch (c) {
		case 't': nr = (uint32_t)atoi(optarg); break;
		case 'b': busted = true; break;
		default: return 2;
		}
	}
	return nr ? run(nr) : 2;
}
