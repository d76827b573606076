/* SPDX-License-Identifier: MIT */
/* test_restore.c - a process is restored from a checkpoint, by a program that restores its memory, but not the kernel's state of it.
 *
 * The library's calls of the C library are interposed, and a restore is simulated: from then on the kernel does not know the process's
 * registrations, threads have other numbers, the clock is another machine's, and there are more CPUs.
 */
#include "../unit/testing.h"
#include "use.h"

#include <quiesce/percpu_ref.h>
#include <quiesce/percpu_rwsem.h>
#include <quiesce/slab.h>
#include <quiesce/srcu.h>

#include <dlfcn.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>

#define OLD_NUMBERS 0x1000000     /* offset of thread ids before the restore */
#define OLD_SECONDS (10 * 86400)  /* time for which the old machine had been running longer */
#define EXPEDITED_RSEQ (1 << 7)
#define REGISTER_EXPEDITED_RSEQ (1 << 8)

static int restored;
static int forgotten = 1, refused, no_turns, rseq_lost; /* effects of a restore */
static int known; /* the new kernel knows these registrations */
static int nr_registered;

/* ---- the kernel ---- */

typedef long (*syscall_fn)(long nr, ...);

static syscall_fn real_syscall(void)
{
	static syscall_fn real;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "syscall");
	return real;
}

static pid_t old_number(pid_t number)
{
	return flag_get(&restored) ? number : number + OLD_NUMBERS;
}

static long fails(int err)
{
	errno = err;
	return -1;
}

/* Simulate a membarrier call; return 0 if done, 1 if the real kernel is to execute it. */
static long membarrier_of_restored(int cmd, long *ret)
{
	int registration = cmd == EXPEDITED_RSEQ ? REGISTER_EXPEDITED_RSEQ : MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED;

	if (!flag_get(&restored) || !forgotten)
		return 1;
	if (cmd == MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED || cmd == REGISTER_EXPEDITED_RSEQ) {
		if (refused) {
			*ret = fails(EPERM);
			return 0;
		}
		known |= cmd;
		count_up(&nr_registered);
		return 1;
	}
	if (known & registration)
		return 1;
	*ret = fails(EPERM);
	return 0;
}

static long to_thread(pid_t process, pid_t thread, int sig)
{
	pid_t offset = old_number(0);

	if (process - offset != (pid_t)real_syscall()(SYS_getpid))
		return fails(ESRCH);
	return real_syscall()(SYS_tgkill, process - offset, thread - offset, sig);
}

/* Simulate the unlock of a word with a thread id that the kernel does not know; return 0 if done, else 1. */
static long unlock_pi(uint32_t *word)
{
	if ((quiesce_load_relaxed(word) & FUTEX_TID_MASK) != (uint32_t)real_syscall()(SYS_gettid) + OLD_NUMBERS)
		return 1;
	quiesce_store_relaxed(word, 0);
	return 0;
}

static pid_t of_kernel(pid_t number)
{
	return number >= OLD_NUMBERS ? number - OLD_NUMBERS : number;
}

long syscall(long nr, ...)
{
	long a[6], ret = 0;
	va_list args;

	va_start(args, nr);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if (nr == SYS_membarrier && !membarrier_of_restored((int)a[0], &ret))
		return ret;
	if (nr == SYS_gettid)
		return old_number((pid_t)real_syscall()(SYS_gettid));
	if (nr == SYS_tgkill)
		return to_thread((pid_t)a[0], (pid_t)a[1], (int)a[2]);
	if (nr == SYS_futex && (a[1] & FUTEX_CMD_MASK) == FUTEX_UNLOCK_PI && !unlock_pi((uint32_t *)a[0]))
		return 0;
	if (nr == SYS_sched_setaffinity && no_turns)
		return fails(EPERM);
	if (nr == SYS_sched_getaffinity || nr == SYS_sched_setaffinity)
		a[0] = of_kernel((pid_t)a[0]);
	if (nr == SYS_rseq && rseq_lost)
		return 0;
	return real_syscall()(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

pid_t getpid(void)
{
	return old_number((pid_t)real_syscall()(SYS_getpid));
}

int clock_gettime(clockid_t clock, struct timespec *ret)
{
	long err = real_syscall()(SYS_clock_gettime, (long)clock, ret);

	if (!err && clock == CLOCK_MONOTONIC && !flag_get(&restored))
		ret->tv_sec += OLD_SECONDS;
	return (int)err;
}

/* The old machine had one CPU. */
long sysconf(int name)
{
	static long (*real)(int name);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "sysconf");
	return name == _SC_NPROCESSORS_CONF && !flag_get(&restored) ? 1 : real(name);
}

static void restore(void)
{
	flag_set(&restored);
}

static int is_light(void)
{
	return quiesce_fence() == QUIESCE_FENCE_LIGHT;
}

/* ---- registrations ---- */

DEFINE_STATIC_SRCU(domain);
static struct percpu_rw_semaphore sem;
static struct percpu_ref ref;
static struct kmem_cache *cache;
static int released;

static void release(struct percpu_ref *unused)
{
	(void)unused;
	released = 1;
}

/* Free objects to the sheaf of each CPU on which the thread may run, of which the old machine had one. */
static void free_everywhere(void)
{
	cpu_set_t allowed, one;

	must(sched_getaffinity(0, sizeof allowed, &allowed) == 0);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &allowed))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		must(sched_setaffinity(0, sizeof one, &one) == 0);
		kmem_cache_free(cache, kmem_cache_zalloc(cache));
	}
	must(sched_setaffinity(0, sizeof allowed, &allowed) == 0);
}

static uint64_t sheaved(void)
{
	struct kmem_cache_stats stats;

	kmem_cache_get_stats(cache, &stats);
	must(!stats.objects);
	return stats.sheaved;
}

static void prepare(void)
{
	must(use_everything());
	cache = kmem_cache_create("restored", 64, 0, SLAB_TYPESAFE_BY_RCU, NULL);
	must(cache);
	kmem_cache_free(cache, kmem_cache_alloc(cache));
	must(percpu_init_rwsem(&sem) == 0);
	must(percpu_ref_init(&ref, release, 0) == 0);
	percpu_down_read(&sem);
	percpu_up_read(&sem);
	srcu_read_unlock(&domain, srcu_read_lock(&domain));
}

static void first_rcu(void)
{
	synchronize_rcu();
}

static void first_srcu(void)
{
	synchronize_srcu(&domain);
}

static void first_guards(void)
{
	synchronize_shazptr(&domain);
}

static void first_slots(void)
{
	use_retire(0);
	hazptr_barrier();
}

static void first_writer(void)
{
	percpu_down_write(&sem);
	percpu_up_write(&sem);
}

static void first_kill(void)
{
	percpu_ref_kill(&ref);
	must(released);
}

/* Shrinking a cache restarts the sequences of all CPUs. */
static void first_shrink(void)
{
	free_everywhere();
	must(sheaved());
	must(kmem_cache_shrink(cache) == 0);
	must(!sheaved());
	free_everywhere();
}

static void first_callbacks(void)
{
	use_replace(0);
	rcu_barrier();
}

static void first_in_a_child(void)
{
	struct outcome o;

	in_child(first_rcu, &o);
	must(exited_with(o.status, 0) && !o.length);
}

static void (*first)(void);

static void restore_and_wait(void)
{
	prepare();
	restore();
	first();
	must(use_everything());
	must(use_with_threads(2, 5));
	must(!!nr_registered == is_light());
	must(quiesce_shutdown(0) == 0);
}

static void registrations_are_made_again(void **state)
{
	static void (*const each[])(void) = { first_rcu,    first_srcu, first_guards,    first_slots,
					      first_writer, first_kill, first_shrink,    first_callbacks,
					      first_in_a_child };
	struct outcome o;

	(void)state;
	for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
		first = each[i];
		in_child(restore_and_wait, &o);
		expect_success(&o);
		assert_int_equal(o.length, 0);
	}
}

/* ---- no registration any more ---- */

static int updater_done;

/* Sleep longer than the interval between probes for threads that died. */
static void rest_long(void)
{
	struct timespec rest = { .tv_nsec = 200000000 };

	nanosleep(&rest, NULL);
}

static void *update(void *unused)
{
	(void)unused;
	synchronize_rcu();
	flag_set(&updater_done);
	return NULL;
}

static void holds_up_the_updater(struct held *h)
{
	pthread_t updater;

	thread_must(pthread_create(&updater, NULL, update, NULL));
	rest_long();
	must(!flag_get(&updater_done));
	held_end(h);
	pthread_join(updater, NULL);
	must(!h->seen);
}

static void restore_and_take_turns(void)
{
	struct held h;

	prepare();
	held_begin(&h, &updater_done);
	refused = 1;
	restore();
	holds_up_the_updater(&h);
	for (int i = 0; i < 3; i++) {
		must(use_everything());
		must(use_with_threads(3, 5));
	}
	first_srcu();
	first_writer();
	first_kill();
	first_shrink();
	first_in_a_child();
	must(quiesce_shutdown(0) == 0);
}

static void without_registrations_updaters_take_turns(void **state)
{
	struct outcome o;

	(void)state;
	in_child(restore_and_take_turns, &o);
	expect_success(&o);
	assert_int_equal(count_lines(o.text), is_light());
	if (is_light())
		assert_non_null(strstr(o.text, "each waiter takes a turn on the CPU of each other thread"));
}

/* A reader runs all the time, and its stores stay in the CPU for long, because they are many and to many places. */
enum { FILL = 1 << 24, FILL_STORES = 40 };
static int fill[FILL], reader_stops;

static void *run_all_the_time(void *unused)
{
	struct use_object *o;
	uint32_t at = 1;

	(void)unused;
	while (!flag_get(&reader_stops)) {
		for (int i = 0; i < FILL_STORES; i++) {
			at = at * 1664525 + 1013904223;
			quiesce_store_relaxed(&fill[at % FILL], i);
		}
		rcu_read_lock();
		o = rcu_dereference(use_shared);
		for (int i = 0; i < 200; i++)
			must(quiesce_load_relaxed(&o->value) == 42);
		rcu_read_unlock();
	}
	return NULL;
}

static void turn_by_turn(void)
{
	struct use_object *object[2] = { use_new(), use_new() };
	uint64_t end;
	pthread_t reader;

	refused = 1;
	use_shared = object[0];
	restore();
	thread_must(pthread_create(&reader, NULL, run_all_the_time, NULL));
	end = now_ns() + 2000000000;
	for (int i = 1; now_ns() < end; i++) {
		quiesce_store_relaxed(&object[i % 2]->value, 42);
		rcu_assign_pointer(use_shared, object[i % 2]);
		synchronize_rcu();
		quiesce_store_relaxed(&object[(i + 1) % 2]->value, -1);
	}
	flag_set(&reader_stops);
	pthread_join(reader, NULL);
}

static void a_turn_is_a_fence(void **state)
{
	(void)state;
	succeeds(turn_by_turn);
}

static void restore_and_give_up(void)
{
	refused = no_turns = 1;
	restore();
	synchronize_rcu();
}

static void aborts_with(void (*fn)(void), const char *text)
{
	struct outcome o;

	in_child(fn, &o);
	assert_true(WIFSIGNALED(o.status));
	assert_int_equal(WTERMSIG(o.status), SIGABRT);
	assert_int_equal(count_lines(o.text), 1);
	assert_non_null(strstr(o.text, text));
}

static void without_turns_too_it_ends(void **state)
{
	(void)state;
	if (is_light())
		aborts_with(restore_and_give_up, "and so do turns on the CPUs of the other threads (Operation not permitted)");
	else
		succeeds(restore_and_give_up);
}

static void restore_without_rseq(void)
{
	rseq_lost = 1;
	restore();
	synchronize_rcu();
}

static void lost_sequences_end_it(void **state)
{
	(void)state;
#if defined(__x86_64__)
	if (is_light() && quiesce_slots() != QUIESCE_SLOTS_THREAD) {
		aborts_with(restore_without_rseq, "without the restartable sequences of its threads");
		return;
	}
#endif
	succeeds(restore_without_rseq);
}

/* ---- numbers of threads ---- */

static void restore_with_a_reader(void)
{
	struct held h;

	held_begin(&h, &updater_done);
	restore();
	holds_up_the_updater(&h);
	must(use_everything());
}

static void readers_are_not_taken_for_dead(void **state)
{
	(void)state;
	succeeds(restore_with_a_reader);
}

enum { OWNERS = 80 }; /* more than the number after which slot lines are probed for dead owners */
static struct owner {
	pthread_t thread;
	sem_t had, go, has;
	hazptr_t *slot;
} owner[2 * OWNERS];

static void *own(void *arg)
{
	struct owner *o = arg;

	hazptr_free(NULL, hazptr_alloc(NULL));
	sem_post(&o->had);
	wait_for(&o->go);
	o->slot = hazptr_alloc(NULL);
	sem_post(&o->has);
	wait_for(&o->go);
	hazptr_free(NULL, o->slot);
	return NULL;
}

static void start_owners(struct owner *from)
{
	for (struct owner *o = from; o < from + OWNERS; o++) {
		sem_init(&o->had, 0, 0);
		sem_init(&o->go, 0, 0);
		sem_init(&o->has, 0, 0);
		thread_must(pthread_create(&o->thread, NULL, own, o));
		wait_for(&o->had);
	}
}

/* Return the line of the owner's slot, in which no other thread claims. */
static uintptr_t line_of(const struct owner *o)
{
	return (uintptr_t)o->slot / 128;
}

static void restore_owners(void)
{
	start_owners(owner);
	restore();
	synchronize_rcu();
	start_owners(owner + OWNERS);
	for (int i = 0; i < 2 * OWNERS; i++) {
		sem_post(&owner[i].go);
		wait_for(&owner[i].has);
	}
	for (int i = 0; i < 2 * OWNERS; i++)
		for (int k = 0; k < i; k++)
			must(line_of(&owner[i]) != line_of(&owner[k]));
	for (int i = 0; i < 2 * OWNERS; i++) {
		sem_post(&owner[i].go);
		pthread_join(owner[i].thread, NULL);
	}
}

static void owners_are_not_taken_for_dead(void **state)
{
	(void)state;
	succeeds(restore_owners);
}

/* ---- the clock ---- */

static void *lock_for_a_second(void *unused)
{
	(void)unused;
	must(!percpu_down_read_timeout(&sem, 1000000000));
	return NULL;
}

static void restore_while_it_waits(void)
{
	pthread_t reader;

	prepare();
	percpu_down_write(&sem);
	thread_must(pthread_create(&reader, NULL, lock_for_a_second, NULL));
	rest_long();
	restore();
	pthread_join(reader, NULL);
	percpu_up_write(&sem);
}

static void a_wait_ends_in_time(void **state)
{
	(void)state;
	succeeds(restore_while_it_waits);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(registrations_are_made_again),
		TEST(without_registrations_updaters_take_turns),
		TEST(a_turn_is_a_fence),
		TEST(without_turns_too_it_ends),
		TEST(lost_sequences_end_it),
		TEST(readers_are_not_taken_for_dead),
		TEST(owners_are_not_taken_for_dead),
		TEST(a_wait_ends_in_time),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
