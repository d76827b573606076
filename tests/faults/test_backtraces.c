/* SPDX-License-Identifier: MIT */
/* test_backtraces.c - a signal at each instruction finds all callers of the code that it interrupts, also inside a restartable sequence.
 *
 * The CPU traps after every instruction.  Where it has just announced a sequence the kernel has sent the thread back already, so the
 * handler of the trap puts it at the beginning of the sequence, unprotected: what follows is single steps without the kernel's help.
 * At each instruction of the sequence that handler announces the sequence again and leaves a second signal pending.  The kernel delivers
 * that one there: it restarts the sequence, and the handler of that signal has the backtrace that a profiler would have.
 */
#include "../unit/rwsems.h"

#include <quiesce/hazptr.h>
#include <quiesce/percpu_ref.h>
#include <quiesce/slab.h>
#include <quiesce/shazptr.h>
#include <quiesce/srcu.h>

#include <execinfo.h>
#include <sys/rseq.h>
#include <ucontext.h>
#include <unwind.h>

#if !defined(__x86_64__)
#error "knows the trap flag of x86 only"
#endif

#define TRAP_FLAG 0x100
#define MAX_FRAMES 64
#define STORE_BYTES 8 /* The instruction that announces a sequence is at most so long. */

static struct percpu_rw_semaphore sem;
static struct srcu_struct domain;
static struct percpu_ref ref;
static hazptr_t *slot;
static struct kmem_cache *cache;
static int object, other;

/* ---- the sequences of this program ---- */

struct sequence {
	uint32_t version, flags;
	uint64_t start, bytes, restart;
};
extern const struct sequence __start___rseq_cs[], __stop___rseq_cs[];

static bool inside(const struct sequence *s, uint64_t pc)
{
	return pc - s->start < s->bytes;
}

static const struct sequence *sequence_around(uint64_t pc)
{
	for (const struct sequence *s = __start___rseq_cs; s < __stop___rseq_cs; s++)
		if (inside(s, pc))
			return s;
	return NULL;
}

/* Return the sequence that was restarted before its first instruction: the thread is where that ends, and came from its announcement. */
static const struct sequence *sequence_restarted(uint64_t pc, uint64_t before)
{
	for (const struct sequence *s = __start___rseq_cs; s < __stop___rseq_cs; s++)
		if (pc == s->restart && before < s->start && s->start - before <= STORE_BYTES)
			return s;
	return NULL;
}

/* The word in which a thread announces its sequence to the kernel. */
static uint64_t *announced(void)
{
	return (uint64_t *)(void *)((char *)__builtin_thread_pointer() + __rseq_offset + offsetof(struct rseq, rseq_cs));
}

/* ---- backtraces ---- */

static void *function_of_middle, *function_of_outer;
static int nr_callers; /* frames from middle() on */
static int nr_wrong;   /* backtraces without all of them */
static uint64_t wrong_at;

static void *function_at(void *pc)
{
	return _Unwind_FindEnclosingFunction((char *)pc - 1);
}

static void check_backtrace(uint64_t pc)
{
	void *frames[MAX_FRAMES];
	int nr = backtrace(frames, MAX_FRAMES), at = nr - nr_callers;

	if (at > 0 && function_at(frames[at]) == function_of_middle && function_at(frames[at + 1]) == function_of_outer)
		return;
	if (!nr_wrong++)
		wrong_at = pc;
}

/* ---- what the handlers do ---- */

static int nr_steps, nr_inside;
static uint64_t last_pc, signalled;

/* Once at each instruction of a sequence. */
static void signal_inside(const struct sequence *s, uint64_t pc)
{
	if (!s || pc <= signalled)
		return;
	signalled = pc;
	*announced() = (uint64_t)(uintptr_t)s;
	raise(SIGUSR1); /* pending until the handler returns */
}

static void on_trap(int sig, siginfo_t *info, void *context)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
	uint64_t pc = (uint64_t)registers[REG_RIP];
	const struct sequence *s;

	(void)sig, (void)info;
	nr_steps++;
	check_backtrace(pc);
	s = sequence_restarted(pc, last_pc);
	if (s)
		registers[REG_RIP] = (greg_t)(pc = s->start);
	else
		s = sequence_around(pc);
	if (!s && !sequence_restarted(pc, pc)) /* somewhere else: the next time is another one */
		signalled = sequence_around(last_pc) ? 0 : signalled;
	signal_inside(s, pc);
	last_pc = pc;
}

static void on_signal(int sig, siginfo_t *info, void *context)
{
	uint64_t pc = (uint64_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];

	(void)sig, (void)info;
	nr_inside += sequence_around(signalled)->restart == pc;
	last_pc = pc;
	check_backtrace(pc);
}

/* The steps begin and end with this signal. */
static void on_switch(int sig, siginfo_t *info, void *context)
{
	(void)sig, (void)info;
	((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] ^= TRAP_FLAG;
}

static sigjmp_buf after_fault;

static void on_fault(int sig, siginfo_t *info, void *context)
{
	(void)sig, (void)info;
	check_backtrace((uint64_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP]);
	siglongjmp(after_fault, 1);
}

/* The library blocks signals in some places; a blocked trap would end the process. */
int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	sigset_t most = *set;

	sigdelset(&most, SIGTRAP);
	return sigprocmask(how, &most, old);
}

static void handle(int sig, void (*handler)(int, siginfo_t *, void *))
{
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };

	sigaddset(&action.sa_mask, SIGUSR1);
	sigaction(sig, &action, NULL);
}

/* ---- what is interrupted ---- */

static __attribute__((noinline)) void section(void)
{
	int idx = srcu_read_lock(&domain);

	srcu_read_unlock(&domain, idx);
}

static __attribute__((noinline)) void read_lock(void)
{
	percpu_down_read(&sem);
	percpu_up_read(&sem);
}

/* Readers count by a call. */
static __attribute__((noinline)) void read_lock_slow(void)
{
	rcu_sync_enter(&sem.rss);
	read_lock();
	rcu_sync_exit(&sem.rss);
}

static __attribute__((noinline)) void count(void)
{
	percpu_ref_get(&ref);
	percpu_ref_put(&ref);
}

static __attribute__((noinline)) void allocation(void)
{
	kmem_cache_free(cache, kmem_cache_alloc(cache));
}

static __attribute__((noinline)) void allocations(void)
{
	void *row[3];

	kmem_cache_free_bulk(cache, kmem_cache_alloc_bulk(cache, 3, row), row);
}

/* The second guard finds the thread's first slot taken, and the third one the slot that the second one has. */
static __attribute__((noinline)) void guards(void)
{
	struct shazptr_guard first = shazptr_acquire(&object), second = shazptr_acquire(&other), third = shazptr_acquire(&object);

	shazptr_clear(third);
	shazptr_clear(second);
	shazptr_clear(first);
}

static __attribute__((noinline)) void detached(void)
{
	shazptr_clear(shazptr_acquire_detached(&object));
}

/* As while a waiter waits: the call for it is a jump to a function that saves all registers. */
static __attribute__((noinline)) void protection(void)
{
	quiesce_fetch_add_relaxed(&quiesce_shazptr_v1.hazptr_slow, QUIESCE_SLOTS_WAIT); /* Relaxed: this thread's. */
	hazptr_set(slot, &object);
	quiesce_fetch_add_relaxed(&quiesce_shazptr_v1.hazptr_slow, -QUIESCE_SLOTS_WAIT); /* Relaxed: this thread's. */
	hazptr_clear(slot);
}

static __attribute__((noinline)) void bad_lock(void)
{
	percpu_down_read((struct percpu_rw_semaphore *)(uintptr_t)4096);
}

static __attribute__((noinline)) void middle(void (*fn)(void), bool step)
{
	void *frames[MAX_FRAMES];

	nr_callers = backtrace(frames, MAX_FRAMES);
	function_of_middle = function_at(frames[0]);
	function_of_outer = function_at(frames[1]);
	if (step)
		raise(SIGUSR2);
	fn();
	if (step)
		raise(SIGUSR2);
}

static __attribute__((noinline)) void outer(void (*fn)(void), bool step)
{
	middle(fn, step);
	quiesce_store_relaxed(&object, 0); /* so that the call above is no jump.  Relaxed: no thread loads it. */
}

/* ---- the tests ---- */

/* Without optimisation there are none inline, and the library claims in the thread's own line. */
#define GUARDS (QUIESCE_SEQUENCES_INLINE ? 4 : 0)

/* Are there sequences to interrupt?  With full fences guards are claimed by locked instructions. */
static bool sequences(void)
{
	return __rseq_size && quiesce_fence() == QUIESCE_FENCE_LIGHT;
}

static void *with_guard(void *unused)
{
	outer(guards, true);
	return unused;
}

struct interrupted {
	void (*fn)(void);
	const char *name;
	int least; /* instructions in sequences */
};

static void handlers_find_all_callers(void **state)
{
	static const struct interrupted cases[] = {
		{ section, "section", 8 },    { read_lock, "read_lock", 8 },  { read_lock_slow, "read_lock_slow", 8 },
		{ count, "count", 8 },        { guards, "guards", GUARDS },   { detached, "detached", 4 },
		{ allocation, "allocation", 8 }, { allocations, "allocations", 20 },
	};
	struct kmem_cache_stats stats;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		cases[i].fn(); /* the first use allocates */
		nr_steps = nr_inside = nr_wrong = 0;
		last_pc = signalled = 0;
		outer(cases[i].fn, true);
		print_message("# %s: a signal at each of %d instructions, and in a sequence at %d\n", cases[i].name, nr_steps, nr_inside);
		if (nr_wrong)
			print_message("# %d backtraces without all callers, first at %#lx\n", nr_wrong, wrong_at);
		assert_int_equal(nr_wrong, 0);
		assert_true(nr_steps > 10);
		assert_true(nr_inside >= cases[i].least || !sequences());
		alarm(watchdog_seconds());
	}
	assert_false(percpu_is_read_locked(&sem));
	kmem_cache_get_stats(cache, &stats);
	assert_int_equal(stats.objects, 0);
}

/* The library assigns slots to the thread meanwhile. */
static void first_guards_of_a_thread_show_all_callers(void **state)
{
	pthread_t thread;

	(void)state;
	nr_steps = nr_inside = nr_wrong = 0;
	thread_must(pthread_create(&thread, NULL, with_guard, NULL));
	pthread_join(thread, NULL);
	print_message("# a signal at each of %d instructions, and in a sequence at %d\n", nr_steps, nr_inside);
	assert_int_equal(nr_wrong, 0);
	assert_true(nr_inside >= GUARDS || !sequences());
}

/* The jump is no call, and the code to which it leads saves all registers. */
static void a_set_that_saves_registers_shows_all_callers(void **state)
{
	(void)state;
	protection();
	nr_steps = nr_wrong = 0;
	outer(protection, true);
	print_message("# a signal at each of %d instructions\n", nr_steps);
	if (nr_wrong)
		print_message("# %d backtraces without all callers, first at %#lx\n", nr_wrong, wrong_at);
	assert_int_equal(nr_wrong, 0);
	assert_true(nr_steps > (QUIESCE__SET_SAVES ? 140 : 10));
}

static void faults_show_all_callers(void **state)
{
	(void)state;
	nr_wrong = 0;
	handle(SIGSEGV, on_fault); /* here, as cmocka has one of its own */
	if (!sigsetjmp(after_fault, 1)) {
		outer(bad_lock, false);
		fail_msg("a lock at an address without memory has no effect");
	}
	assert_int_equal(nr_wrong, 0);
}

static void released(struct percpu_ref *unused)
{
	(void)unused;
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(handlers_find_all_callers),
		TEST(first_guards_of_a_thread_show_all_callers),
		TEST(a_set_that_saves_registers_shows_all_callers),
		TEST(faults_show_all_callers),
	};

	handle(SIGTRAP, on_trap);
	handle(SIGUSR1, on_signal);
	handle(SIGUSR2, on_switch);
	slot = hazptr_alloc(NULL);
	cache = kmem_cache_create("interrupted", 64, 0, 0, NULL);
	if (!slot || !cache || percpu_init_rwsem(&sem) || init_srcu_struct(&domain) || percpu_ref_init(&ref, released, 0))
		abort();
	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
