/* SPDX-License-Identifier: MIT */
/* test_syscalls.c - which system calls the library makes in which call: docs/syscalls.md, under a filter that allows no others.
 *
 * The table below is the one list: `test_syscalls --table` prints it as the document has it, which syscalls.py compares.  Each cell is
 * a process of its own.  Its threads exist before the filter does, and do nothing then but call the library, and sleep on futexes.
 * The calls that a cell names are allowed there, but need not occur: the C library, the kernel and the fences decide.
 */
#include "../unit/testing.h"
#include "caches.h"
#include "filter.h"

#include <quiesce/detail/qsbr.h>
#include <quiesce/hazptr.h>
#include <quiesce/percpu_rwsem.h>
#include <quiesce/shazptr.h>
#include <quiesce/srcu.h>

#include <limits.h>
#include <linux/futex.h>

/* ---- the table ---- */

enum column { STEADY, FIRST, SLOW, DEBUGGING, NR_COLUMNS };

/* Each set names system calls that occur together. */
static const struct set {
	const char *name, *calls;
} sets[] = {
	{ "sleep", "futex" },
	{ "fence", "membarrier" },
	{ "yield", "sched_yield" },
	{ "signals", "rt_sigprocmask" },
	{ "register", "gettid getpid rt_sigprocmask mmap munmap mprotect madvise" },
	{ "memory", "mmap munmap mprotect madvise rt_sigprocmask prlimit64" },
	{ "machine", "openat read close sched_getaffinity prlimit64" },
	{ "thread", "clone3 clone set_robust_list rseq prctl sched_setaffinity sched_setscheduler sched_get_priority_min "
		    "sched_get_priority_max setpriority rt_sigaction" },
	{ "turns", "rt_sigprocmask mmap munmap nanosleep openat getdents64 read close getpid tgkill sched_getaffinity sched_setaffinity "
		   "getcpu write" },
	{ "probe", "tgkill getpid" },
	{ "report", "openat read close tgkill getpid gettid write" },
};

struct group {
	const char *name;
	void (*work)(void);
	const char *sets[NR_COLUMNS]; /* all others include STEADY */
};

/* ---- a reader and a waiter ---- */

DEFINE_STATIC_SRCU(domain);
DEFINE_STATIC_PERCPU_RWSEM(lock);

static struct object {
	struct rcu_head rcu;
	struct hazptr_head hazptr;
} object;
static const struct group *group;
static uint32_t left; /* how often the reader has left, or was about to */
static uint32_t reader_ready, waiter_ready, reader_go, reader_inside, waiter_go, waiter_done;
static uint64_t hold_ns;
static void (*enter)(void), (*leave)(void), (*waits)(void);

static void sleep_ns(uint64_t ns)
{
	struct timespec t = { .tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u) };
	uint32_t never = 0;

	syscall(SYS_futex, &never, FUTEX_WAIT_PRIVATE, 0, &t, NULL, 0);
}

static void await(uint32_t *word, uint32_t value)
{
	uint32_t seen;

	while ((seen = quiesce_load_relaxed(word)) != value) /* Relaxed: a handshake. */
		syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

static void become(uint32_t *word, uint32_t value)
{
	quiesce_store_relaxed(word, value); /* Relaxed: a handshake. */
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static void *reader_main(void *unused)
{
	(void)unused;
	become(&reader_ready, 1);
	for (uint32_t i = 1;; i++) {
		await(&reader_go, 2 * i - 1);
		enter();
		become(&reader_inside, i);
		await(&reader_go, 2 * i);
		quiesce_store_relaxed(&left, i); /* Relaxed: the wait orders it. */
		leave();
	}
	return NULL;
}

static void *waiter_main(void *unused)
{
	(void)unused;
	become(&waiter_ready, 1);
	for (uint32_t i = 1;; i++) {
		await(&waiter_go, i);
		waits();
		if (quiesce_load_relaxed(&left) != i) /* Relaxed: the wait orders it. */
			abort();
		become(&waiter_done, i);
	}
	return NULL;
}

/* Let another thread call @wait beside a reader that stays inside for hold_ns.  A wait that returns too early ends the process. */
static void blocked(void (*in)(void), void (*out)(void), void (*wait)(void))
{
	static uint32_t turn;

	turn++;
	enter = in;
	leave = out;
	waits = wait;
	become(&reader_go, 2 * turn - 1);
	await(&reader_inside, turn);
	become(&waiter_go, turn);
	sleep_ns(hold_ns);
	become(&reader_go, 2 * turn);
	await(&waiter_done, turn);
}

/* ---- what the groups do ---- */

static void do_nothing(struct rcu_head *unused)
{
	(void)unused;
}

static void do_nothing_hazptr(struct hazptr_head *unused)
{
	(void)unused;
}

static void in_rcu(void)
{
	rcu_read_lock();
}

static void out_rcu(void)
{
	rcu_read_unlock();
}

static int idx;

static void in_srcu(void)
{
	idx = srcu_read_lock(&domain);
}

static void out_srcu(void)
{
	srcu_read_unlock(&domain, idx);
}

static struct shazptr_guard guards[100];
static size_t nr_guards = 1;

static void in_shazptr(void)
{
	for (size_t i = 0; i < nr_guards; i++)
		guards[i] = shazptr_acquire(&object);
}

static void out_shazptr(void)
{
	for (size_t i = 0; i < nr_guards; i++)
		shazptr_clear(guards[i]);
}

static void in_lock(void)
{
	percpu_down_read(&lock);
}

static void out_lock(void)
{
	percpu_up_read(&lock);
}

static int registered;

/* Register a QSBR reader, which fails without memory. */
static void in_qsbr(void)
{
	registered = !quiesce_qsbr_register(QUIESCE_LAYOUT);
	if (!registered)
		quiesce_fetch_add_relaxed(&left, 1u); /* Relaxed: no thread waits for it. */
		}

		static void out_qsbr(void)
{
	if (registered)
		quiesce_qsbr_unregister();
}

static void sections(void)
{
	nr_guards = 100; /* more than a line has, so that slots are added */
	for (int i = 0; i < 100; i++) {
		in_rcu();
		out_rcu();
		in_srcu();
		out_srcu();
		in_shazptr();
		out_shazptr();
		in_lock();
		out_lock();
	}
}

static void rcu_polled(void)
{
	struct rcu_gp_seq seq = start_poll_synchronize_rcu();

	while (!poll_state_synchronize_rcu(seq))
		sleep_ns(1000000);
	cond_synchronize_rcu(get_state_synchronize_rcu());
}

static void rcu_waits(void)
{
	blocked(in_rcu, out_rcu, quiesce_synchronize_rcu);
	blocked(in_rcu, out_rcu, quiesce_synchronize_rcu_expedited);
	blocked(in_rcu, out_rcu, rcu_polled);
	synchronize_rcu();
}

static void ignore_holdout(int tid, uint64_t waited_ns, void *unused)
{
	(void)tid, (void)waited_ns, (void)unused;
}

static void rcu_hooked(void)
{
	quiesce_set_holdout_hook(ignore_holdout, NULL);
	rcu_waits();
}

static void rcu_retires(void)
{
	call_rcu(&object.rcu, do_nothing);
	rcu_barrier();
}

static void rcu_callbacks(void)
{
	blocked(in_rcu, out_rcu, rcu_retires);
	rcu_retires();
}

static void srcu_plain(void)
{
	synchronize_srcu(&domain);
}

static void srcu_expedited(void)
{
	synchronize_srcu_expedited(&domain);
}

static void srcu_retires(void)
{
	call_srcu(&domain, &object.rcu, do_nothing);
	srcu_barrier(&domain);
}

static void srcu_all(void)
{
	blocked(in_srcu, out_srcu, srcu_plain);
	blocked(in_srcu, out_srcu, srcu_expedited);
	blocked(in_srcu, out_srcu, srcu_retires);
}

static void shazptr_plain(void)
{
	synchronize_shazptr(&object);
}

static void shazptr_all(void)
{
	blocked(in_shazptr, out_shazptr, shazptr_plain);
	shazptr_plain();
}

static void hazptr_retires(void)
{
	call_hazptr(&object.hazptr, do_nothing_hazptr);
	hazptr_barrier();
	synchronize_hazptr(&object.hazptr);
}

static hazptr_t *slot;

/* Without memory there are no slots. */
static void in_hazptr(void)
{
	static struct object *retired = &object;

	slot = hazptr_alloc(NULL);
	if (!slot || hazptr_protect(slot, &retired, hazptr) != &object)
	quiesce_fetch_add_relaxed(&left, 1u); /* Relaxed: no thread waits for it. */
}

static void out_hazptr(void)
{
	hazptr_free(NULL, slot);
}

static void hazptr_all(void)
{
	blocked(in_hazptr, out_hazptr, hazptr_retires);
	hazptr_retires();
}

static void locks(void)
{
	percpu_down_write(&lock);
	percpu_up_write(&lock);
}

static void rwsem_all(void)
{
	blocked(in_lock, out_lock, locks);
	locks();
}

static void qsbr_all(void)
{
	blocked(in_qsbr, out_qsbr, quiesce_qsbr_synchronize);
}

static const struct group groups[] = {
	{ "sections and guards: `rcu_read_lock()`, `srcu_read_lock()`, `shazptr_acquire()`, `percpu_down_read()` without a writer",
	  sections, { "", "register machine sleep fence probe", "probe", "" } },
	{ "`synchronize_rcu()`, `synchronize_rcu_expedited()`, polls", rcu_waits,
	  { "sleep fence yield", "register machine thread", "probe turns", "report" } },
	{ "waits of RCU with `quiesce_set_holdout_hook()`", rcu_hooked,
	  { "sleep fence yield probe", "register machine thread", "turns", "report" } },
	{ "`call_rcu()`, `rcu_barrier()`", rcu_callbacks,
	  { "sleep fence yield signals", "register machine thread", "probe turns", "report" } },
	{ "`synchronize_srcu()`, `call_srcu()`, `srcu_barrier()`", srcu_all,
	  { "sleep fence yield signals", "register machine thread", "turns", "report" } },
	{ "`synchronize_shazptr()`", shazptr_all, { "sleep fence yield", "register machine thread", "turns", "report" } },
	{ "`call_hazptr()`, `hazptr_barrier()`, `synchronize_hazptr()`", hazptr_all,
	  { "sleep fence yield signals", "register machine thread", "turns", "report" } },
	{ "`percpu_down_write()`", rwsem_all, { "sleep fence", "register machine thread", "turns", "report" } },
	{ "`kmem_cache_alloc()` and the like, nothing retired", caches_use, { "sleep fence memory", "register machine", "turns", "" } },
	{ "`urcu_qsbr_synchronize_rcu()`", qsbr_all, { "sleep", "register", "probe", "report" } },
};
#define NR_GROUPS (sizeof groups / sizeof groups[0])

static const struct name_value calls_by_name[] = {
#define CALL(name) { #name, SYS_##name }
	CALL(futex), CALL(membarrier), CALL(sched_yield), CALL(mmap), CALL(munmap), CALL(mprotect), CALL(madvise),
	CALL(gettid), CALL(getpid), CALL(rt_sigprocmask), CALL(clone3), CALL(clone), CALL(set_robust_list), CALL(rseq), CALL(prctl),
	CALL(sched_getaffinity), CALL(sched_setaffinity), CALL(sched_setscheduler), CALL(setpriority), CALL(rt_sigaction), CALL(nanosleep),
	CALL(openat), CALL(read), CALL(close), CALL(getdents64), CALL(getcpu), CALL(write), CALL(tgkill),
	CALL(exit_group), CALL(clock_gettime), CALL(prlimit64), CALL(sched_get_priority_min), CALL(sched_get_priority_max),
#undef CALL
	{ NULL, 0 },
};

/* ---- the filter ---- */

#define HARNESS "futex exit_group clock_gettime" /* the last one is called where the clock cannot be read without the kernel */

static unsigned short add_calls(struct sock_filter *code, unsigned short n, const char *calls)
{
	for (; *calls; calls += strcspn(calls, " "), calls += *calls == ' ') {
		unsigned int nr;

		if (filter_find(calls_by_name, calls, strcspn(calls, " "), &nr))
			exit(2);
		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1);
		code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	}
	return n;
}

static unsigned short add_sets(struct sock_filter *code, unsigned short n, const char *names)
{
	for (; *names; names += strcspn(names, " "), names += *names == ' ')
		for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++)
			if (strlen(sets[i].name) == strcspn(names, " ") && !strncmp(sets[i].name, names, strlen(sets[i].name)))
				n = add_calls(code, n, sets[i].calls);
	return n;
}

/* Let any other system call return that result from now on.  Return 0 or -errno. */
static int allow_only(const struct group *g, enum column column, unsigned int result)
{
	struct sock_filter code[200];
	struct sock_fprog program = { .filter = code };
	unsigned short n = 0;

	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	n = add_calls(code, n, HARNESS);
	n = add_sets(code, n, g->sets[STEADY]);
	if (column != STEADY)
		n = add_sets(code, n, g->sets[column]);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, result);
	program.len = n;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) ? -errno : 0;
}

/* ---- a cell ---- */

#define NO_FILTERS 77
#define WARM_UP_NS 10000000u
#define HOLD_NS 100000000u /* sections of many programs are as long */
#define SLOW_NS 1300000000u
#define SETTLE_NS 200000000u /* threads of the library have begun, and are asleep */

static bool refuse(const char *rule)
{
	struct filter f = { .length = 0 };

	return !filter_add_rule(&f, rule) && !filter_install(&f);
}

static void work(uint64_t ns)
{
	hold_ns = ns;
	group->work();
}

static void run(enum column column, enum column allowed, unsigned int result)
{
	pthread_t thread;

	thread_must(pthread_create(&thread, NULL, reader_main, NULL));
	thread_must(pthread_create(&thread, NULL, waiter_main, NULL));
	await(&reader_ready, 1);
	await(&waiter_ready, 1);
	if (column != FIRST) {
		work(WARM_UP_NS);
		work(WARM_UP_NS);
		sleep_ns(SETTLE_NS);
	}
	if (column == DEBUGGING)
		quiesce_set_stall_timeout(20000000);
	if ((column == SLOW && quiesce_fence() == QUIESCE_FENCE_LIGHT && !refuse("membarrier=EPERM")) || allow_only(group, allowed, result))
		_exit(NO_FILTERS);
	work(column == SLOW ? SLOW_NS : HOLD_NS);
	_exit(0);
}

static struct {
	enum column column, allowed;
	unsigned int result;
} cell;

static void run_cell(void)
{
	run(cell.column, cell.allowed, cell.result);
}

/* Return 0, or print the fault and return its status. */
static int check_cell(void)
{
	struct outcome o;

	in_child(run_cell, &o);
	if (WIFEXITED(o.status) && WEXITSTATUS(o.status) == NO_FILTERS)
		return NO_FILTERS;
	if (o.status)
		print_message("# %s: status %#x: %s\n", group->name, (unsigned int)o.status, o.text);
	fflush(stdout);
	return o.status ? 1 : 0;
}

/* Run all rows at the same time, because they mostly sleep. */
static void check_column(enum column column, enum column allowed, unsigned int result)
{
	pid_t pid[NR_GROUPS];
	int status, filters = 1, good = 1;

	cell.column = column;
	cell.allowed = allowed;
	cell.result = result;
	fflush(stdout);
	for (size_t i = 0; i < NR_GROUPS; i++) {
		group = &groups[i];
		pid[i] = fork();
		assert_true(pid[i] >= 0);
		if (!pid[i])
			_exit(check_cell());
	}
	for (size_t i = 0; i < NR_GROUPS; i++) {
		assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
		filters &= !(WIFEXITED(status) && WEXITSTATUS(status) == NO_FILTERS);
		good &= !status;
	}
	if (!filters)
		print_message("# skipped: seccomp filters cannot be installed here\n");
	assert_true(good || !filters);
}

static void steady_use_makes_no_other_calls(void **state)
{
	(void)state;
	check_column(STEADY, STEADY, SECCOMP_RET_KILL_PROCESS);
}

static void first_use_makes_no_other_calls(void **state)
{
	(void)state;
	check_column(FIRST, FIRST, SECCOMP_RET_KILL_PROCESS);
}

static void slow_paths_make_no_other_calls(void **state)
{
	(void)state;
	check_column(SLOW, SLOW, SECCOMP_RET_KILL_PROCESS);
}

static void reports_make_no_other_calls(void **state)
{
	(void)state;
	check_column(DEBUGGING, DEBUGGING, SECCOMP_RET_KILL_PROCESS);
}

/* First uses and reports run with the calls of steady use only: waits still wait, callbacks run. */
static void calls_that_are_refused_can_be_done_without(void **state)
{
	(void)state;
	check_column(FIRST, STEADY, SECCOMP_RET_ERRNO | EPERM);
	check_column(FIRST, STEADY, SECCOMP_RET_ERRNO | ENOSYS);
	check_column(DEBUGGING, STEADY, SECCOMP_RET_ERRNO | EPERM);
}

/* Check that a filter that is too narrow is detected. */
static void the_filter_works(void **state)
{
	static const struct group nothing = { "nothing", rcu_waits, { "", "", "", "" } };
	struct outcome o;

	(void)state;
	group = &nothing;
	cell.column = cell.allowed = FIRST;
	cell.result = SECCOMP_RET_KILL_PROCESS;
	in_child(run_cell, &o);
	if (WIFEXITED(o.status) && WEXITSTATUS(o.status) == NO_FILTERS) {
		print_message("# skipped: seccomp filters cannot be installed here\n");
		return;
	}
	assert_true(WIFSIGNALED(o.status));
	assert_int_equal(WTERMSIG(o.status), SIGSYS);
}

static int print_table(void)
{
	puts("| calls | in steady use | at the first use, too | in slow paths, too | in reports, too |\n|---|---|---|---|---|");
	for (size_t i = 0; i < NR_GROUPS; i++) {
		printf("| %s |", groups[i].name);
		for (int c = 0; c < NR_COLUMNS; c++)
			printf(" %s |", groups[i].sets[c][0] ? groups[i].sets[c] : "-");
		putchar('\n');
	}
	puts("\n| word | system calls |\n|---|---|");
	for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++)
		printf("| %s | %s |\n", sets[i].name, sets[i].calls);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(steady_use_makes_no_other_calls),
		TEST(first_use_makes_no_other_calls),
		TEST(slow_paths_make_no_other_calls),
		TEST(reports_make_no_other_calls),
		TEST(calls_that_are_refused_can_be_done_without),
		TEST(the_filter_works),
	};

	if (argc > 1 && !strcmp(argv[1], "--table"))
		return print_table();
	/* The arguments ROW COLUMN, from 0, are for strace -f, whose last line is the call that was not allowed. */
	if (argc > 3 && !strcmp(argv[1], "--cell")) {
		group = &groups[(size_t)atoi(argv[2]) % NR_GROUPS];
		run((enum column)atoi(argv[3]), (enum column)atoi(argv[3]), SECCOMP_RET_KILL_PROCESS);
	}
	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
