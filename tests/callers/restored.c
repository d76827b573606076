/* SPDX-License-Identifier: MIT */
/* restored.c - each call as the first one after a restore from a checkpoint, by a program that restores the process's memory, but not
 * the kernel's state of it.
 */
#include "kernel.h"
#include "world.h"

#include <sched.h>
#include <signal.h>
#if defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 35)
#include <sys/rseq.h>
#define HAVE_RSEQ 1
#endif
#endif

static const struct {
	const char *name;
	int what;
} restores[] = {
	{ "membarrier is not registered", FORGETS_MEMBARRIER },
	{ "threads have other numbers", RENUMBERS },
	{ "there are more CPUs", MORE_CPUS },
	{ "restartable sequences were registered again, on another CPU", FORGETS_RSEQ },
	{ "all of it", FORGETS_MEMBARRIER | RENUMBERS | MORE_CPUS | FORGETS_RSEQ },
};
enum { NR_RESTORES = sizeof restores / sizeof *restores };

struct restore {
	const struct call *call;
	int what;
};

/* ---- the restoring program registers each thread again ---- */

static int nr_registered;

static void register_again(int sig)
{
	(void)sig;
#ifdef HAVE_RSEQ
	if (__rseq_size) {
		struct rseq *area = (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
		long size = __rseq_size < 32 ? 32 : (long)__rseq_size;

		if (syscall(SYS_rseq, area, size, RSEQ_FLAG_UNREGISTER, RSEQ_SIG) == 0)
			must(syscall(SYS_rseq, area, size, 0, RSEQ_SIG) == 0);
	}
#endif
	count_up(&nr_registered);
}

/* Pin all threads of the test to one of the CPUs that the process may use. */
static void use_one_cpu(const struct world *w)
{
	cpu_set_t all, one;

	CPU_ZERO(&one);
	sched_getaffinity(0, sizeof all, &all);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all)) /* the last one */
			memset(&one, 0, sizeof one), CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof one, &one);
	for (int i = 0; i < w->nr_bystanders; i++)
		pthread_setaffinity_np(w->bystander[i].thread, sizeof one, &one);
}

static void register_all_again(const struct world *w)
{
	struct sigaction action = { .sa_handler = register_again, .sa_flags = SA_RESTART };

	sigaction(SIGUSR1, &action, NULL);
	for (int i = 0; i < w->nr_bystanders; i++)
		pthread_kill(w->bystander[i].thread, SIGUSR1);
	raise(SIGUSR1);
	wait_until(flag_get(&nr_registered) == w->nr_bystanders + 1);
	use_one_cpu(w);
}

static void restore_and_call(void *arg)
{
	const struct restore *r = arg;
	struct world w;

	kernel_before_restore(r->what);
	world_begin(&w, NR_BYSTANDERS);
	must(r->call->fn(&w));
	waits_are_real(&w);
	world_park(&w);
	if (r->what & FORGETS_RSEQ)
		register_all_again(&w);
	kernel_restore();
	world_unpark(&w);
	world_call(&w, r->call);
	world_settle(&w);
}

int situation_restored(void)
{
	const struct call *call;

	for_each_call(call, i)
		for (unsigned int k = 0; k < NR_RESTORES; k++) {
			struct restore r = { .call = call, .what = restores[k].what };

			if (cell_is_drawn(i, k, 2))
				cell(restore_and_call, &r, "%s - %s", restores[k].name, call->name);
		}
	return cells_end();
}
