/* SPDX-License-Identifier: MIT */
/* test_percpu_steps.c - a signal after each single instruction of both sides of a percpu_rwsem and of SRCU's readers.
 *
 * The CPU traps after every instruction; at the one that is tried the handler uses the same lock and the same domain.
 * Traps are expensive: of many instructions only one in 3 to 32 is tried, others in each run; STEPS_STRIDE=1 tries all.
 * A trap restarts a restartable sequence, so a thread that traps all the time never gets out of one: there the traps end
 * with the one that is tried, and what follows the sequence is left to signals at random times.
 */
#include "../unit/rwsems.h"
#include "steps.h"

#include <quiesce/srcu.h>

#include <sys/rseq.h>

#include <ucontext.h>

#define TRAP_FLAG 0x100

static struct percpu_rw_semaphore sem;
static struct srcu_struct domain;

/* ---- what the handler does ---- */

static int nr_got, nr_handled;

static void use_all(void)
{
	int first = srcu_read_lock(&domain), second;

	if (percpu_down_read_trylock(&sem)) {
		count_up(&nr_got);
		second = srcu_read_lock(&domain);
		percpu_up_read(&sem);
		srcu_read_unlock(&domain, second);
	}
	srcu_read_unlock(&domain, first);
	count_up(&nr_handled);
}

static __thread int steps_left;

static void on_trap(int sig, siginfo_t *info, void *context)
{
	ucontext_t *at = context;

	(void)sig, (void)info;
	if (blocked || steps_left < 0 || steps_left-- > 0)
		return;
	use_all();
	at->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
}

/* ---- what is interrupted ---- */

static int idx;

static __attribute__((noinline)) void read_lock(void)
{
	percpu_down_read(&sem);
	percpu_up_read(&sem);
}

static __attribute__((noinline)) void try_lock(void)
{
	if (percpu_down_read_trylock(&sem))
		percpu_up_read(&sem);
}

static __attribute__((noinline)) void wait_for_lock(void)
{
	if (percpu_down_read_timeout(&sem, 1))
		percpu_up_read(&sem);
}

static __attribute__((noinline)) void write_lock(void)
{
	percpu_down_write(&sem);
	percpu_up_write(&sem);
}

static __attribute__((noinline)) void try_write_lock(void)
{
	if (percpu_down_write_trylock(&sem))
		percpu_up_write(&sem);
}

static __attribute__((noinline)) void section(void)
{
	int own = srcu_read_lock(&domain);

	srcu_read_unlock(&domain, own);
}

static __attribute__((noinline)) void ask(void)
{
	if (percpu_is_write_locked_by_me(&sem) && percpu_is_read_locked(&sem))
		abort();
}

static __attribute__((noinline)) void update(void)
{
	synchronize_srcu(&domain);
}

/* ---- are the counts exact? ---- */

static int nr_reported_in_handler;

static void note(enum quiesce_misuse kind, const char *text)
{
	(void)kind, (void)text;
	count_up(&nr_reported_in_handler);
}

/* One reader too many or too few would be inside for ever: the lock and the domain end, which fails then, and new ones begin. */
static void counts_are_exact(void)
{
	assert_false(percpu_is_read_locked(&sem));
	assert_false(percpu_is_write_locked(&sem));
	percpu_down_read(&sem);
	assert_true(percpu_is_read_locked(&sem));
	percpu_up_read(&sem);
	quiesce_set_misuse_hook(note);
	percpu_free_rwsem(&sem);
	cleanup_srcu_struct(&domain);
	quiesce_set_misuse_hook(NULL);
	assert_int_equal(flag_get(&nr_reported_in_handler), 0);
}

static void fresh(void)
{
	assert_int_equal(percpu_init_rwsem(&sem), 0);
	assert_int_equal(init_srcu_struct(&domain), 0);
}

/* ---- steps ---- */

/* True if the kernel restarts sequences.  With full fences, too, readers enter one, and find there that they may not count. */
static bool sequences(void)
{
	return __rseq_size != 0;
}

/* Readers are slow while an updater is inside rcu_sync and none in the lock. */
enum place { FAST, SLOW, READ_LOCKED, WRITE_LOCKED, ATTENDED };

static void enter_place(enum place place)
{
	if (place == SLOW)
		rcu_sync_enter(&sem.rss);
	if (place == READ_LOCKED)
		percpu_down_read(&sem);
	if (place == WRITE_LOCKED)
		percpu_down_write(&sem);
	if (place == ATTENDED) /* the state while a writer sleeps until readers leave */
		domain.requests[0] = domain.requests[1] = 1, domain.leave[0] = domain.leave[1] = 0;
	idx = srcu_read_lock(&domain);
}

static void leave_place(enum place place)
{
	srcu_read_unlock(&domain, idx);
	if (place == SLOW)
		rcu_sync_exit(&sem.rss);
	if (place == READ_LOCKED)
		percpu_up_read(&sem);
	if (place == WRITE_LOCKED)
		percpu_up_write(&sem);
	if (place == ATTENDED)
		domain.requests[0] = domain.requests[1] = 0;
}

/* Run with a handler after every @stride-th number of instructions, up to @most; return the number of instructions. */
static int stepped(void (*fn)(void), enum place place, int most, int stride)
{
	int before = flag_get(&nr_handled), on = 1, first = getpid() % stride, steps;

	for (steps = first; on && steps < most; steps += stride) {
		enter_place(place);
		steps_left = steps;
		trap_on();
		fn();
		trap_off();
		on = steps_left < 0; /* otherwise the code ended before the step */
		steps_left = -1;
		leave_place(place);
	}
	assert_int_equal(flag_get(&nr_handled), before + (steps - first) / stride - !on);
	return steps;
}

struct interrupted {
	void (*fn)(void);
	enum place place;
	int least; /* least number of instructions where there are no sequences */
};

static const struct interrupted cases[] = {
	{ read_lock, FAST, 10 },     { read_lock, SLOW, 20 },     { read_lock, READ_LOCKED, 10 }, { try_lock, FAST, 10 },
	{ try_lock, SLOW, 20 },      { try_lock, WRITE_LOCKED, 5 }, { wait_for_lock, SLOW, 20 },  { wait_for_lock, WRITE_LOCKED, 20 },
	{ write_lock, SLOW, 50 },    { try_write_lock, SLOW, 50 }, { try_write_lock, READ_LOCKED, 10 }, { section, FAST, 10 },
	{ section, ATTENDED, 15 },   { ask, FAST, 2 },            { ask, WRITE_LOCKED, 2 },
};

static void a_handler_after_each_instruction(void **state)
{
	const char *text = getenv("STEPS_STRIDE");
	int total = 0;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct interrupted *c = &cases[i];
		int nr, stride = sequences() ? 1 : text ? atoi(text) : c->least < 10 ? 1 : c->least < 20 ? 3 : c->least < 50 ? 8 : 32;

		fresh();
		nr = stepped(c->fn, c->place, sequences() ? 60 : 3000, stride);
		if (!sequences())
			assert_in_range(nr, c->least, 2999);
		total += nr;
		counts_are_exact();
		alarm(watchdog_seconds());
	}
	assert_true(flag_get(&nr_got) > 0);
	print_message("# %d instructions, %d times the handler got the lock\n", total, nr_got);
}

/* ---- at random times ---- */

static int stop;

static void on_signal(int sig)
{
	(void)sig;
	use_all();
}

static void *kill_it(void *thread)
{
	while (!flag_get(&stop)) {
		pthread_kill(*(pthread_t *)thread, SIGUSR1);
		sched_yield();
	}
	return NULL;
}

/* Another writer makes readers fast, slow and queued alternately. */
static void *write_at_times(void *unused)
{
	while (!flag_get(&stop)) {
		for (int i = 0; i < 3; i++)
			write_lock();
		update();
		wait_until(flag_get(&stop) || rcu_sync_is_idle(&sem.rss));
	}
	return unused;
}

static void signals_at_random(void **state)
{
	static void (*const what[])(void) = { read_lock, section, try_lock, read_lock, section, wait_for_lock, write_lock, ask };
	pthread_t me = pthread_self(), killer, writer;

	(void)state;
	for (int beside = 0; beside < 2; beside++) {
		int before = flag_get(&nr_handled);

		fresh();
		quiesce_store_relaxed(&stop, 0);
		signal(SIGUSR1, on_signal);
		thread_must(pthread_create(&killer, NULL, kill_it, &me));
		if (beside)
			thread_must(pthread_create(&writer, NULL, write_at_times, NULL));
		for (unsigned int i = 0; i < 4000 || flag_get(&nr_handled) < before + 200; i++)
			what[i % 64 ? i % 6 : i / 64 % 8]();
		flag_set(&stop);
		pthread_join(killer, NULL);
		if (beside)
			pthread_join(writer, NULL);
		signal(SIGUSR1, SIG_DFL);
		counts_are_exact();
	}
}

/* Make each call once, so that the library's threads have started, and all memory is allocated: see on_trap(). */
static void warm_up(void)
{
	struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_NODEFER }; /* pthread_sigmask() keeps account */

	sigaction(SIGTRAP, &action, NULL);
	steps_left = -1;
	if (percpu_init_rwsem(&sem) || init_srcu_struct(&domain))
		abort();
	use_all();
	write_lock();
	update();
	percpu_free_rwsem(&sem);
	cleanup_srcu_struct(&domain);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(a_handler_after_each_instruction),
		TEST(signals_at_random),
	};

	warm_up();
	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
