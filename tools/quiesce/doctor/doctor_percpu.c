/* SPDX-License-Identifier: MIT */
/* doctor_percpu.c - trials of the counters that count readers per CPU, and of the helper thread. */
#include <errno.h>
#include <linux/membarrier.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <quiesce/control.h>
#include <quiesce/percpu_rwsem.h>
#include <quiesce/rcu.h>
#include <quiesce/srcu.h>

#include "doctor.h"

#define THREADS 4
#define SECTIONS 50000 /* read sections of each thread */
#define BACK_LATE_NS 2000000000u
#define POLL_NS 200000

DEFINE_STATIC_PERCPU_RWSEM(rwsem);
DEFINE_STATIC_SRCU(domain);

/* True if the kernel has a heavy fence that also restarts interrupted sequences (5.10). */
static bool find_restart(struct findings *f)
{
	const char *topic = "membarrier restarts sequences", *otherwise = "counters per CPU go by locked instructions";

	if (membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ) || membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ)) {
		finding(f, topic, otherwise, "refused: %s", strerror(errno));
		return false;
	}
	finding(f, topic, NULL, "yes");
	return true;
}

static void find_counters(struct findings *f, bool restarts)
{
	bool full = quiesce_fence() == QUIESCE_FENCE_FULL, none = percpu_init_rwsem(&rwsem) != 0;

	finding_of(f, "counters per CPU", (const struct choice[]){
		{ none, "locked instruction, one word for all: no memory", "readers of srcu, percpu_rwsem and percpu_ref share a line" },
		{ rwsem.open, "restartable sequence, in the set of the thread's concurrency id", NULL },
		{ !full && quiesce_slots() == QUIESCE_SLOTS_CPU_ID && restarts, "restartable sequence, in the set of the thread's CPU",
		  "a call for each count: kernels have concurrency ids since 6.3" },
		{ full, "locked instruction", "full fences: the locked instruction is the fence as well" },
		{ true, "locked instruction", "no restartable sequences, or membarrier cannot restart them" },
	});
}

static void count(struct member *m)
{
	(void)m;
	for (int i = 0; i < SECTIONS && !interrupted(); i++) {
		percpu_down_read(&rwsem);
		percpu_up_read(&rwsem);
	}
}

/* Threads are not bound, so that the scheduler preempts and migrates some of them. */
static void try_counters(struct findings *f)
{
	struct team team = { .nr = THREADS, .body = count };
	const char *topic = "counters, tried by 4 threads";

	if (!try_team(f, topic, &team))
		return;
	if (percpu_is_read_locked(&rwsem))
		finding(f, topic, "restarts are lost here: set QUIESCE_FENCE=full", "WRONG after %d sections of each", SECTIONS);
	else
		finding(f, topic, NULL, "right after %d sections of each", SECTIONS);
}

static long callback_tid;

static void note_thread(struct rcu_head *head)
{
	(void)head;
	callback_tid = syscall(SYS_gettid);
}

static void find_helper(struct findings *f)
{
	static struct rcu_head head;

	call_srcu(&domain, &head, note_thread);
	srcu_barrier(&domain);
	finding_of(f, "helper thread", (const struct choice[]){
		{ callback_tid == syscall(SYS_gettid), "cannot be had: no thread",
		  "callbacks of call_srcu() wait for srcu_barrier() or synchronize_srcu(), and a burst of writers is slower" },
		{ true, "runs callbacks of call_srcu()", NULL },
	});
}

/* Measures how long readers stay slow after a burst of two writes. */
static void find_back(struct findings *f)
{
	const char *topic = "after a burst of writes";
	uint64_t begin;

	for (int i = 0; i < 2; i++) {
		percpu_down_write(&rwsem);
		percpu_up_write(&rwsem);
	}
	begin = now_ns();
	while (!rcu_sync_is_idle(&rwsem.rss) && now_ns() - begin < BACK_LATE_NS && !interrupted())
		sleep_ns(POLL_NS);
	if (rcu_sync_is_idle(&rwsem.rss))
		finding(f, topic, NULL, "readers of a percpu_rwsem are fast again within %.0f ms", (double)(now_ns() - begin) / 1e6);
	else
		finding(f, topic, NULL, "readers of a percpu_rwsem are STILL SLOW after %.0f ms", BACK_LATE_NS / 1e6);
}

void doctor_percpu(struct findings *f)
{
	find_counters(f, find_restart(f));
	try_counters(f);
	find_helper(f);
	find_back(f);
	percpu_free_rwsem(&rwsem);
	cleanup_srcu_struct(&domain);
}
