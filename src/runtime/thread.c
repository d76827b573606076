/* SPDX-License-Identifier: MIT */
/* thread.c - the library's own threads: how they are started, and where and how they run.
 *
 * I1. They are nobody's heirs.  Whoever comes first starts them, pinned and with a real-time priority perhaps; they run
 *     with the normal policy, on the CPUs that the process had when the library was loaded, less those that are isolated
 *     or run without a tick.  Their starter gives them policy and CPUs before they run, so none waits for its starter's CPU.
 * I2. A starter does not wait for its thread to run: it may have a higher priority, and hold locks.  So what a thread has to
 *     know is static.
 * I3. A change is applied to a thread that runs; it is kept only if the kernel takes it.
 * I4. No failed start is the last: callers that need the thread try again, all of them together once in RETRY_NS, and each
 *     time later, up to RETRY_MAX_NS.  Those that need it later come back by themselves (see reclaim.c), because nobody else would.
 */
#include "thread.h"

#include "pace.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#if defined(QUIESCE_SIM)
#define RETRY_NS 100000u
#define RETRY_MAX_NS 400000u
#else
#define RETRY_NS 1000000u
#define RETRY_MAX_NS 16000000u
#endif

#define NR_OF_A_KIND 40u /* there may be several helpers, and one that ends beside its successor */

struct kind {
	const char *default_name;
	uint32_t retry_ns; /* 0: the last start has not failed */
	uint64_t retry_at; /* else the next attempt */
	uint32_t tid[NR_OF_A_KIND]; /* those that run; else 0 */
	void (*main)(void *unused);
	struct platform_start start;
	struct platform_thread how;
	char name[16];
	bool chosen; /* by the program: not the defaults */
};

static struct {
	struct quiesce__lock lock; /* guards what was chosen */
	bool cpus_known;
	struct platform_cpus cpus; /* of the process, when the library was loaded; then less those that are not for us */
	struct kind kind[QUIESCE_NR_THREADS];
} threads = {
	.kind = {
		[QUIESCE_THREAD_WORKER] = { .default_name = "quiesce" },
		[QUIESCE_THREAD_HELPER] = { .default_name = "quiesce-helper" },
		[QUIESCE_THREAD_SCAN] = { .default_name = "quiesce-scan" },
	},
};

void quiesce__threads_init(void)
{
	platform_cpus_of_process(&threads.cpus);
}

/* ---- sets of CPUs ---- */

static bool no_cpu(const struct platform_cpus *cpus)
{
	for (size_t i = 0; i < PLATFORM_CPU_WORDS; i++)
		if (cpus->bits[i])
			return false;
	return true;
}

static void only(struct platform_cpus *cpus, const struct platform_cpus *mask)
{
	for (size_t i = 0; i < PLATFORM_CPU_WORDS; i++)
		cpus->bits[i] &= mask->bits[i];
}

static void without(struct platform_cpus *cpus, const char *list)
{
	struct platform_cpus others;

	if (!platform_cpus_of_list(list, &others))
		return;
	for (size_t i = 0; i < PLATFORM_CPU_WORDS; i++)
		cpus->bits[i] &= ~others.bits[i];
}

/* Under the lock.  Files are read before the first start, not when the library is loaded. */
static const struct platform_cpus *default_cpus(void)
{
	struct platform_cpus ours = threads.cpus;

	if (threads.cpus_known)
		return &threads.cpus;
	without(&ours, "cpu/isolated");
	without(&ours, "cpu/nohz_full");
	if (!no_cpu(&ours))
		threads.cpus = ours;
	threads.cpus_known = true;
	return &threads.cpus;
}

/* ---- starting ---- */

bool quiesce__thread_failed(enum quiesce_thread which)
{
	return quiesce_load_relaxed(&threads.kind[which].retry_ns) != 0; /* Relaxed: a hint. */
}

void quiesce__thread_set_failed(enum quiesce_thread which, bool failed)
{
	struct kind *kind = &threads.kind[which];
	uint32_t ns = 2 * quiesce_load_relaxed(&kind->retry_ns); /* Relaxed: a rate limit. */

	ns = ns < RETRY_NS ? RETRY_NS : ns < RETRY_MAX_NS ? ns : RETRY_MAX_NS;
	if (failed)
		quiesce__pace_begin(&kind->retry_at, ns);
	quiesce_store_relaxed(&kind->retry_ns, failed ? ns : 0); /* Relaxed: as above. */
}

bool quiesce__thread_may_start(enum quiesce_thread which)
{
	struct kind *kind = &threads.kind[which];
	uint32_t ns = quiesce_load_relaxed(&kind->retry_ns); /* Relaxed: a rate limit. */

	return !ns || QUIESCE_MUTANT(thread_storm) || (quiesce__pace(&kind->retry_at, ns) && !QUIESCE_MUTANT(thread_once));
}

void quiesce__thread_defaults(struct platform_thread *ret)
{
	quiesce__lock(&threads.lock);
	*ret = (struct platform_thread){ .cpus = *default_cpus() };
	quiesce__unlock(&threads.lock);
}

/* Under the lock. */
static void choose_defaults(struct kind *kind)
{
	if (kind->chosen)
		return;
	kind->how = (struct platform_thread){ .cpus = *default_cpus() };
	memcpy(kind->name, kind->default_name, strlen(kind->default_name) + 1);
}

/* Under the lock. */
static void replace_tid(struct kind *kind, uint32_t old, uint32_t tid)
{
	for (uint32_t i = 0; i < NR_OF_A_KIND; i++)
		if (kind->tid[i] == old) {
			kind->tid[i] = tid;
			return;
		}
}

/* In the new thread. */
static void thread_main(void *arg)
{
	struct kind *kind = arg;

	quiesce__lock(&threads.lock);
	replace_tid(kind, 0, platform_tid());
	platform_thread_begin(kind->name, &kind->how);
	quiesce__unlock(&threads.lock);
	kind->main(NULL);
	quiesce__lock(&threads.lock);
	replace_tid(kind, platform_tid(), 0);
	quiesce__unlock(&threads.lock);
}

bool quiesce__thread_start(enum quiesce_thread which, void (*main)(void *unused))
{
	struct kind *kind = &threads.kind[which];
	struct platform_thread how;
	bool started;

	quiesce__lock(&threads.lock);
	choose_defaults(kind);
	how = kind->how;
	kind->main = main;
	kind->start = (struct platform_start){ thread_main, kind };
	quiesce__unlock(&threads.lock);
	started = platform_thread_start(&kind->start, &how) == 0;
	quiesce__thread_set_failed(which, !started);
	return started;
}

/* ---- what the program chooses ---- */

static bool valid(enum quiesce_thread which, const struct quiesce_thread_attr *attr)
{
	return (unsigned int)which < QUIESCE_NR_THREADS &&
	       (!attr || (attr->size >= sizeof *attr && attr->nice >= -20 && attr->nice <= 19 && attr->node >= -1 &&
			  (!attr->name || (attr->name[0] && strlen(attr->name) < sizeof threads.kind[0].name)) &&
			  attr->cpus_size % sizeof(unsigned long) == 0 && attr->cpus_size <= sizeof(struct platform_cpus) &&
			  (!attr->cpus_size || attr->cpus)));
}

/* -ENODEV: no such node; -EINVAL: no CPU is left. */
static int choose_cpus(struct platform_cpus *cpus, const struct quiesce_thread_attr *attr)
{
	struct platform_cpus node;
	char list[40];

	*cpus = *default_cpus();
	if (attr->cpus_size) {
		memset(cpus, 0, sizeof *cpus);
		memcpy(cpus, attr->cpus, attr->cpus_size);
	}
	if (attr->node >= 0) {
		snprintf(list, sizeof list, "node/node%d/cpulist", attr->node);
		if (!platform_cpus_of_list(list, &node))
			return -ENODEV;
		only(cpus, &node);
	}
	return no_cpu(cpus) ? -EINVAL : 0;
}

static int choose(struct kind *kind, const struct quiesce_thread_attr *attr)
{
	int err = 0;

	kind->chosen = attr != NULL;
	choose_defaults(kind);
	if (attr) {
		const char *name = attr->name ? attr->name : kind->default_name;

		kind->how.policy = attr->policy;
		kind->how.priority = attr->priority;
		kind->how.nice = attr->nice;
		memcpy(kind->name, name, strlen(name) + 1);
		err = choose_cpus(&kind->how.cpus, attr);
	}
	return err;
}

int quiesce_set_thread_attr(enum quiesce_thread which, const struct quiesce_thread_attr *attr)
{
	struct kind *kind, next;
	int err;

	quiesce__init();
	quiesce__fork_check();
	if (!valid(which, attr))
		return -EINVAL;
	kind = &threads.kind[which];
	quiesce__lock(&threads.lock);
	next = (struct kind){ .how = kind->how, .default_name = kind->default_name };
	memcpy(next.name, kind->name, sizeof next.name);
	err = choose(&next, attr);
	for (uint32_t i = 0; i < NR_OF_A_KIND && !err; i++)
		if (kind->tid[i] || !i) /* if none runs, it is looked whether it can be */
			err = platform_thread_change(kind->tid[i], &next.how, next.name);
	if (!err) {
		kind->how = next.how;
		kind->chosen = next.chosen;
		memcpy(kind->name, next.name, sizeof kind->name);
	}
	quiesce__unlock(&threads.lock);
	return err;
}

int quiesce_set_worker_cpu(int cpu)
{
	struct quiesce_thread_attr attr = QUIESCE_THREAD_ATTR_INIT;
	struct platform_cpus cpus = { .bits = { 0 } };

	if (cpu == -1)
		return quiesce_set_thread_attr(QUIESCE_THREAD_WORKER, NULL);
	if (cpu < 0 || cpu >= platform_nr_possible_cpus() || (size_t)cpu >= 8 * sizeof cpus)
		return -EINVAL;
	cpus.bits[(size_t)cpu / PLATFORM_CPUS_PER_WORD] = 1ul << (size_t)cpu % PLATFORM_CPUS_PER_WORD;
	attr.cpus = &cpus;
	attr.cpus_size = sizeof cpus;
	return quiesce_set_thread_attr(QUIESCE_THREAD_WORKER, &attr);
}

void quiesce__threads_fork_child(void)
{
	quiesce__lock_reset(&threads.lock, false);
	for (uint32_t i = 0; i < QUIESCE_NR_THREADS; i++) {
		memset(threads.kind[i].tid, 0, sizeof threads.kind[i].tid);
		threads.kind[i].retry_ns = 0;
	}
}
