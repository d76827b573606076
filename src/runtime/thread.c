/* SPDX-License-Identifier: MIT */
/* thread.c - the library's own threads: their start, and the policy and CPUs with which they run.
 *
 * I1. The first caller that needs a thread starts it, and may be pinned and have a real-time priority; the library's threads run with
 *     the normal policy, on the CPUs of the process, less those that are isolated or run without a tick, and with the timer slack that
 *     the process had when the library was loaded.  The CPUs of the process are those of its first thread at the time of the start:
 *     taskset, cpusets and servers that place their processes change the first thread's, and a thread that pins itself changes only its
 *     own.  The starter gives a thread its policy before it runs, and its CPUs at once, so it does not wait for its starter's CPU.
 *     A thread keeps the other attributes that the kernel copies from its starter, because no call resets them, or only with rights: an
 *     unshared file table, seccomp filters, namespaces, credentials, control group, I/O priority; and the memory policy, because seccomp
 *     filters kill for the call that resets it.  docs/realtime.md documents that for users.
 * I2. A starter does not wait for its thread to run: it may have a higher priority, and hold locks.  So the data that a new thread
 *     reads is static.
 * I3. A change is applied to threads that run; it is kept only if the kernel accepts it.
 *     So a starter gives a thread, under the lock, the CPUs that are chosen then, not those that were when the start began; the
 *     thread takes those that are chosen when it is listed; and no thread ends before its starter has done that.
 * I4. A thread is counted as coming from before its start until it is listed, and is listed until the kernel has forgotten it: after the
 *     library's last instruction it ends in C library and kernel, which takes a while.  Only then do unshare(), setns() and readers of
 *     /proc/self/task see a thread less.
 * I5. No failed start is the last: callers that need the thread try again, all of them together once in RETRY_NS, and after each
 *     failure less often, up to RETRY_MAX_NS.  Callers that need it later retry by themselves (see reclaim.c), because no other thread
 *     would.
 */
#include "thread.h"

#include "pace.h"
#include "run.h"

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

#define NR_OF_A_KIND 40u /* there may be several helpers, and a thread that ends beside its successor */
#define GONE_MIN_NS 20000u
#define GONE_MAX_NS 1000000u
#define LATE_NS 1000000000u   /* a thread with the number of one that ended so long ago is another thread */
#define NO_THREAD 0x7ffffffeu /* a number that no thread has */

/* A thread of the library that is listed. */
struct listed_thread {
	uint32_t tid;  /* 0: none */
	uint64_t ends; /* time since which it only has to end; 0: it runs */
};

struct kind {
	const char *default_name;
	struct kind *follows; /* as long as nothing is chosen for this one; NULL: none */
	uint32_t retry_ns; /* 0: the last start has not failed */
	uint64_t retry_at; /* time of the next attempt after a failure */
	uint32_t coming;   /* I4 */
	uint32_t starters; /* I3; futex of threads that are to end */
	struct listed_thread listed[NR_OF_A_KIND];
	void (*main)(void), (*over)(void);
	struct platform_start start;
	struct platform_thread how;
	char name[16];
	bool chosen;      /* the program has chosen the attributes */
	bool chosen_cpus; /* the program has chosen the CPUs, too */
};

static struct {
	struct quiesce__lock lock; /* guards what was chosen */
	bool avoided_known;
	struct platform_cpus avoided; /* CPUs that the library's threads avoid */
	struct kind kind[QUIESCE_NR_THREADS];
} threads = {
	.kind = {
		[QUIESCE_THREAD_WORKER] = { .default_name = "quiesce" },
		[QUIESCE_THREAD_HELPER] = { .default_name = "quiesce-helper" },
		[QUIESCE_THREAD_SCAN] = { .default_name = "quiesce-scan" },
		[QUIESCE_THREAD_RECLAIMER] = { .default_name = "quiesce-reclaim", .follows = &threads.kind[QUIESCE_THREAD_WORKER] },
	},
};

/* ---- sets of CPUs ---- */

static bool has_no_cpu(const struct platform_cpus *cpus)
{
	for (size_t i = 0; i < PLATFORM_CPU_WORDS; i++)
		if (cpus->bits[i])
			return false;
	return true;
}

static void intersect(struct platform_cpus *cpus, const struct platform_cpus *mask)
{
	for (size_t i = 0; i < PLATFORM_CPU_WORDS; i++)
		cpus->bits[i] &= mask->bits[i];
}

static void subtract(struct platform_cpus *cpus, const struct platform_cpus *others)
{
	for (size_t i = 0; i < PLATFORM_CPU_WORDS; i++)
		cpus->bits[i] &= ~others->bits[i];
}

static void add_avoided(const char *list)
{
	struct platform_cpus others;

	if (platform_cpus_of_list(list, &others))
		for (size_t i = 0; i < PLATFORM_CPU_WORDS; i++)
			threads.avoided.bits[i] |= others.bits[i];
}

/* Return the default CPUs; the caller holds the lock.  Files are read before the first start, not when the library is loaded. */
static void default_cpus(struct platform_cpus *ret)
{
	struct platform_cpus all;

	platform_cpus_of_process(&all);
	if (!threads.avoided_known) {
		add_avoided("cpu/isolated");
		add_avoided("cpu/nohz_full");
		threads.avoided_known = true;
	}
	*ret = all;
	subtract(ret, &threads.avoided);
	if (has_no_cpu(ret))
		*ret = all;
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
	quiesce_store_relaxed(&kind->retry_ns, failed ? ns : 0); /* Relaxed: a rate limit. */
}

bool quiesce__thread_claim_start(enum quiesce_thread which)
{
	struct kind *kind = &threads.kind[which];
	uint32_t ns = quiesce_load_relaxed(&kind->retry_ns); /* Relaxed: a rate limit. */

	return !ns || QUIESCE_MUTANT(thread_storm) || (quiesce__pace_claim(&kind->retry_at, ns) && !QUIESCE_MUTANT(thread_once));
}

void quiesce__thread_defaults(struct platform_thread *ret)
{
	quiesce__lock(&threads.lock);
	*ret = (struct platform_thread){ .policy = 0 };
	default_cpus(&ret->cpus);
	quiesce__unlock(&threads.lock);
}

/* Fill in defaults for attributes that the program has not chosen; the caller holds the lock. */
static void choose_defaults(struct kind *kind)
{
	if (!kind->chosen) {
		kind->how = (struct platform_thread){ .policy = 0 };
		memcpy(kind->name, kind->default_name, strlen(kind->default_name) + 1);
	}
	if (!kind->chosen && kind->follows) {
		choose_defaults(kind->follows);
		kind->how = kind->follows->how;
	} else if (!kind->chosen_cpus) {
		default_cpus(&kind->how.cpus);
	}
}

/* ---- the list of threads, under the lock ---- */

static struct listed_thread *find_listed(struct kind *kind, uint32_t tid)
{
	for (uint32_t i = 0; i < NR_OF_A_KIND; i++)
		if (kind->listed[i].tid == tid)
			return &kind->listed[i];
	return NULL;
}

/* True if a thread outside the library has the number of @entry, which may be reused.  The thread with this number is taken for the
 * library's if that ended just now, or if it has the library's name. */
static bool is_another(const struct kind *kind, const struct listed_thread *entry)
{
	char name[16];

	if (platform_now_ns() - entry->ends < LATE_NS)
		return false;
	platform_thread_name(entry->tid, name);
	return strcmp(name, kind->name) != 0;
}

/* True if the kernel has forgotten the thread.  Where the kernel does not report that, a thread that ends is taken to have ended. */
static bool is_gone(const struct kind *kind, const struct listed_thread *entry)
{
	if (!entry->ends)
		return QUIESCE_MUTANT(shutdown_counts_running);
	return !platform_thread_alive(entry->tid) || is_another(kind, entry) || platform_thread_alive(NO_THREAD) ||
	       QUIESCE_MUTANT(shutdown_counts_ending);
}

static bool any_left(struct kind *kind)
{
	bool left = kind->coming != 0;

	for (uint32_t i = 0; i < NR_OF_A_KIND; i++) {
		if (kind->listed[i].tid && is_gone(kind, &kind->listed[i]))
			kind->listed[i].tid = 0;
		left |= kind->listed[i].tid != 0;
	}
	return left;
}

/* List the calling thread, in the place of an earlier thread with its number if there is one.  NULL: there is no place, and the thread is
 * counted as coming until it ends. */
static struct listed_thread *list_self(struct kind *kind)
{
	uint32_t tid = quiesce__tid();
	struct listed_thread *entry = find_listed(kind, tid);

	if (!entry)
		entry = find_listed(kind, 0);
	if (!entry && any_left(kind))
		entry = find_listed(kind, 0);
	if (!entry)
		return NULL;
	*entry = (struct listed_thread){ .tid = tid };
	kind->coming--;
	return entry;
}

/* Wait until no starter has to settle the thread (I3).  The caller holds the lock, which is released during each sleep. */
static void wait_for_starters(struct kind *kind)
{
	uint32_t nr;

	while ((nr = kind->starters) && !QUIESCE_MUTANT(thread_ends_unsettled)) {
		quiesce__unlock(&threads.lock);
		platform_futex_wait(&kind->starters, nr, PLATFORM_FOREVER);
		quiesce__lock(&threads.lock);
	}
}

/* A thread keeps this state on its stack from its begin to its end. */
struct life {
	struct quiesce__run run;
	struct kind *kind;
	struct listed_thread *entry; /* NULL: it is not listed */
	void (*main)(void), (*over)(void);
	uint32_t generation; /* number of forks; the list of a later generation has none of the earlier threads */
};

static void run_main(struct quiesce__run *run)
{
	((struct life *)run)->main();
}

static void end_life(struct quiesce__run *run)
{
	struct life *life = (struct life *)run;
	struct kind *kind = life->kind;

	life->over();
	quiesce__lock(&threads.lock);
	wait_for_starters(kind);
	if (life->generation != quiesce__generation())
		life->entry = NULL; /* another thread may have this place now */
	else if (life->entry)
		life->entry->ends = platform_now_ns();
	else
		kind->coming--;
	quiesce__unlock(&threads.lock);
}

/* The new thread begins and ends here. */
static void thread_main(void *arg)
{
	struct life life = { .kind = arg, .generation = quiesce__generation() };
	struct kind *kind = arg;

	quiesce__lock(&threads.lock);
	life.entry = list_self(kind);
	life.main = kind->main; /* copied, because the next starter writes it again */
	life.over = kind->over;
	platform_thread_begin(kind->name, &kind->how);
	quiesce__unlock(&threads.lock);
	quiesce__run(&life.run, run_main, end_life);
	end_life(&life.run);
}

bool quiesce__thread_start(enum quiesce_thread which, void (*main)(void), void (*over)(void))
{
	struct kind *kind = &threads.kind[which];
	struct platform_thread how;
	pthread_t thread;
	bool started;

	quiesce__lock(&threads.lock);
	choose_defaults(kind);
	how = kind->how;
	kind->main = main;
	kind->over = over;
	kind->start = (struct platform_start){ thread_main, kind };
	kind->coming++;
	kind->starters++;
	quiesce__unlock(&threads.lock);
	started = platform_thread_start(&kind->start, &how, &thread) == 0;
	quiesce__thread_set_failed(which, !started);
	quiesce__lock(&threads.lock);
	kind->starters--;
	if (started)
		platform_thread_settle(thread, &kind->how);
	else
		kind->coming--;
	quiesce__unlock(&threads.lock);
	platform_futex_wake(&kind->starters, INT32_MAX);
	return started;
}

static bool any_left_of_all(void)
{
	bool left = false;

	quiesce__lock(&threads.lock);
	for (uint32_t i = 0; i < QUIESCE_NR_THREADS; i++)
		left |= any_left(&threads.kind[i]);
	quiesce__unlock(&threads.lock);
	return left;
}

bool quiesce__threads_await_end(void)
{
	uint32_t never = 0;

	/* The kernel takes some tens of microseconds to end a thread. */
	for (uint64_t ns = GONE_MIN_NS; any_left_of_all(); ns *= 2) {
		if (ns > GONE_MAX_NS)
			return false;
		platform_futex_wait(&never, 0, ns);
	}
	return true;
}

/* ---- choices of the program ---- */

static bool is_valid(enum quiesce_thread which, const struct quiesce_thread_attr *attr)
{
	return (unsigned int)which < QUIESCE_NR_THREADS &&
	       (!attr || (attr->size >= sizeof *attr && attr->nice >= -20 && attr->nice <= 19 && attr->node >= -1 &&
			  (!attr->name || (attr->name[0] && strlen(attr->name) < sizeof threads.kind[0].name)) &&
			  attr->cpus_size % sizeof(unsigned long) == 0 && attr->cpus_size <= sizeof(struct platform_cpus) &&
			  (!attr->cpus_size || attr->cpus)));
}

/* Compute the CPUs that @attr chooses; -ENODEV: no such node; -EINVAL: no CPU is left. */
static int choose_cpus(struct platform_cpus *cpus, const struct quiesce_thread_attr *attr)
{
	struct platform_cpus node;
	char list[40];

	default_cpus(cpus);
	if (attr->cpus_size) {
		memset(cpus, 0, sizeof *cpus);
		memcpy(cpus, attr->cpus, attr->cpus_size);
	}
	if (attr->node >= 0) {
		snprintf(list, sizeof list, "node/node%d/cpulist", attr->node);
		if (!platform_cpus_of_list(list, &node))
			return -ENODEV;
		intersect(cpus, &node);
	}
	return has_no_cpu(cpus) ? -EINVAL : 0;
}

static int choose(struct kind *kind, const struct quiesce_thread_attr *attr)
{
	int err = 0;

	kind->chosen = attr != NULL;
	kind->chosen_cpus = attr && (attr->cpus_size || attr->node >= 0);
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

/* Those of @kind; one that is coming is listed later, and takes what is chosen then. */
static int change_running(struct kind *kind, const struct platform_thread *how, const char *name)
{
	int err = 0;

	for (uint32_t i = 0; i < NR_OF_A_KIND && !err; i++)
		if (kind->listed[i].tid && !kind->listed[i].ends)
			err = platform_thread_change(kind->listed[i].tid, how, name);
	return err;
}

int quiesce_set_thread_attr(enum quiesce_thread which, const struct quiesce_thread_attr *attr)
{
	struct kind *kind, next;
	int err;

	quiesce__init();
	if (!is_valid(which, attr))
		return -EINVAL;
	kind = &threads.kind[which];
	quiesce__lock(&threads.lock);
	next = (struct kind){ .how = kind->how, .default_name = kind->default_name, .follows = kind->follows };
	memcpy(next.name, kind->name, sizeof next.name);
	err = choose(&next, attr);
	if (!err)
		err = platform_thread_change(0, &next.how, next.name); /* check whether the kernel accepts it */
	if (!err)
		err = change_running(kind, &next.how, next.name);
	for (uint32_t i = 0; i < QUIESCE_NR_THREADS && !err; i++)
		if (threads.kind[i].follows == kind && !threads.kind[i].chosen)
			err = change_running(&threads.kind[i], &next.how, threads.kind[i].default_name);
	if (!err) {
		kind->how = next.how;
		kind->chosen = next.chosen;
		kind->chosen_cpus = next.chosen_cpus;
		memcpy(kind->name, next.name, sizeof kind->name);
		for (uint32_t i = 0; i < QUIESCE_NR_THREADS; i++)
			if (threads.kind[i].follows == kind && !threads.kind[i].chosen)
				threads.kind[i].how = next.how; /* for one that is coming */
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
		memset(threads.kind[i].listed, 0, sizeof threads.kind[i].listed);
		threads.kind[i].retry_ns = threads.kind[i].coming = threads.kind[i].starters = 0;
	}
}
