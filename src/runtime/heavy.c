/* SPDX-License-Identifier: MIT */
/* heavy.c - heavy fences of many concurrent callers.
 *
 * A membarrier interrupts each CPU that runs a thread of the process, and the kernel executes one at a time
 * per process.  So many callers share one in batches: a leader waits for more callers to arrive, then
 * executes the membarrier, which serves every caller that arrived before it began.  Few callers share too,
 * but their leader does not wait for more: a membarrier does not interrupt sleeping threads.
 *
 *   caller                              leader of a batch
 *   stores                              number = ++started            HF1
 *   needed = started + 1          HF1   membarrier
 *   completed not older?          HF1   completed = number, unless it is newer
 *
 * I1. A batch whose number is newer than the one that a caller read began after that read, so its membarrier
 *     serves the caller as well as its own would.
 * I2. Batches may overlap: completed is a maximum.
 * I3. Each batch executes a membarrier.  Light readers have no other mode: where the kernel refuses the
 *     system call to a process with light readers, the leader fences by running on the CPU of each other
 *     thread in turn (platform/linux/turns.c), for plain fences and for fences that restart sequences alike.
 *     Where that fails too, the process ends.
 * I4. No caller depends on a thread that does not run.  A batch is overdue when there has been no progress
 *     (lead taken, number taken, batch completed) for twice the time of a membarrier.  Then one of the
 *     followers takes over the lead; the former leader, if it runs again, hands over nothing.  The time is
 *     not counted from a follower's arrival: where a membarrier is slow, each follower would find its batch
 *     overdue and execute another one, which delays all of them.  Sleeps are timed, so a lost wake-up does no
 *     lasting harm.
 *
 * HF1  caller's stores, then started read; number taken, then the membarrier; membarrier returned, then completed stored
 *      | completed read, then the accesses after the fence
 */
#include "core.h"
#include "overdue.h"

#include <errno.h>
#include <string.h>

#define CONTENDED_CALLERS 8u  /* with this many others, divided by the number of CPUs, callers are contended */
#define CONTENDED_NS 1000000u /* contention is assumed to last this long: callers that have been served are likely to return */
#define GATHER_NS 50000u      /* longest sleep of a leader that waits for more callers */
#define LATE_MIN_NS 100000u
#define COST_MAX_NS (1u << 25)

/* Values of @leader besides a thread id.  The lead is handed to a follower that has slept: else a caller that
 * has just been served would return and lead a batch with no follower. */
#define FREE 0u
#define HANDED UINT32_MAX

/* Followers by the parity of the batch number that they need: those with an even one, and those with an odd one. */
struct followers {
	uint32_t asleep; /* 1: a follower may sleep */
	uint32_t word;   /* futex; changes when the followers are to check again */
};

struct heavy {
	void (*membarrier)(void);
	uint32_t inside;    /* callers inside the fence */
	uint32_t started;   /* newest number taken by a leader */
	uint32_t completed; /* newest number whose membarrier has returned */
	uint32_t leader;    /* FREE, HANDED, or the leader's thread id */
	uint32_t nr_leads;  /* how often the lead was taken */
	uint32_t arrived;   /* callers that arrived since the last batch began */
	uint32_t gathering; /* futex; 1: the leader waits for more callers */
	uint32_t cost_ns;   /* duration of a membarrier */
	uint64_t contended_until;
	struct followers followers[2];
} __attribute__((aligned(QUIESCE_CACHELINE)));

static QUIESCE_COLD void __attribute__((noreturn)) die_without_fence(int err, int why)
{
	if (why == -ESTALE)
		quiesce__say("this process was restored from a checkpoint without the restartable sequences of its threads: slots and "
			     "counters cannot be trusted; QUIESCE_SLOTS=thread needs none");
	else
		quiesce__say("membarrier worked at start-up and now fails (%s), and so do turns on the CPUs of the other threads (%s): "
			     "readers without fences cannot be waited for; allow the system call in the sandbox or run with "
			     "QUIESCE_FENCE=full",
			     strerror(-why), strerror(-err));
	platform_die();
}

/* The membarrier fails: a sandbox revoked the system call, or the process was restored from a checkpoint on a
 * kernel without it.  Readers continue without fences, so another heavy fence is needed. */
static QUIESCE_COLD void fence_by_turns(int why)
{
	static uint32_t said;
	int err = why == -ESTALE ? why : QUIESCE_MUTANT(heavy_no_turns) ? 0 : platform_fence_by_turns();

	if (err)
		die_without_fence(err, why);
	/* Relaxed: it only limits how often the message is printed. */
	if (!quiesce_load_relaxed(&said) && !quiesce_fetch_add_relaxed(&said, 1u))
		quiesce__say("membarrier worked at start-up and now fails (%s): instead, each waiter takes a turn on the CPU of each "
			     "other thread, which takes milliseconds; allow the system call in the sandbox or run with "
			     "QUIESCE_FENCE=full",
			     strerror(-why));
}

static void membarrier_or_turns(int (*call)(void))
{
	int err = call();

	quiesce__count(membarriers);
	if (quiesce_unlikely(err))
		fence_by_turns(err);
}

void quiesce__membarrier(void)
{
	membarrier_or_turns(platform_membarrier);
}

int quiesce__try_membarrier(void)
{
	quiesce__count(membarriers);
	return platform_try_membarrier();
}

static void membarrier_restart(void)
{
	membarrier_or_turns(platform_membarrier_restart);
}

static struct heavy plain = { .membarrier = quiesce__membarrier };
static struct heavy restart = { .membarrier = membarrier_restart };
static uint32_t contended_callers; /* with this many others a leader waits for more callers; fixed at initialisation */

static bool is_older(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

static void complete(struct heavy *h, uint32_t number)
{
	uint32_t before = quiesce_load_relaxed(&h->completed); /* Relaxed: the exchange decides. */

	while (is_older(before, number))
		/* HF1: full, pairs with HF1 in is_over() */
		if (quiesce_cmpxchg(HF1, &h->completed, &before, number))
			break;
}

static bool is_over(const struct heavy *h, uint32_t needed)
{
	/* HF1: acquire, pairs with HF1 in complete() */
	return !is_older(quiesce_load_acquire(HF1, &h->completed), needed);
}

/* Relaxed throughout: a sleeper that misses it checks again in time. */
static void wake_all(struct followers *f)
{
	quiesce_fetch_add_relaxed(&f->word, 1u);
	if (!quiesce_load_relaxed(&f->asleep))
		return;
	quiesce_store_relaxed(&f->asleep, 0);
	platform_futex_wake(&f->word, INT32_MAX);
}

static bool wake_one(struct followers *f)
{
	/* Relaxed: see wake_all(). */
	quiesce_fetch_add_relaxed(&f->word, 1u);
	return quiesce_load_relaxed(&f->asleep) && platform_futex_wake(&f->word, 1);
}

/* Hand the lead to a caller that arrived while batch @number ran, unless a follower has taken it over.
 * Relaxed throughout: two leaders do no harm. */
static void hand_over(struct heavy *h, uint32_t number)
{
	if (quiesce_load_relaxed(&h->leader) != quiesce__tid())
		return;
	quiesce_store_relaxed(&h->leader, HANDED);
	if (!wake_one(&h->followers[~number & 1]))
		quiesce_store_relaxed(&h->leader, FREE);
}

/* Record the duration of a membarrier.  A leader that was preempted for long must not inflate it: at most it
 * doubles, so the next batch is overdue after about four times the usual time.  Relaxed throughout: an
 * estimate. */
static void record_cost(struct heavy *h, uint64_t ns)
{
	uint64_t max = 2 * (uint64_t)quiesce_load_relaxed(&h->cost_ns) + LATE_MIN_NS;

	max = max < COST_MAX_NS ? max : COST_MAX_NS;
	quiesce_store_relaxed(&h->cost_ns, (uint32_t)(ns < max ? ns : max));
}

/* Execute a membarrier, complete the callers that it serves, and offer the lead to a caller that arrived
 * meanwhile. */
static void run_batch(struct heavy *h)
{
	/* HF1: full, pairs with HF1 in fence_shared() */
	uint32_t number = quiesce_fetch_add(HF1, &h->started, 1u) + 1;
	uint64_t begin = platform_now_ns();

	quiesce_store_relaxed(&h->arrived, 0); /* Relaxed: a policy. */
	h->membarrier();
	record_cost(h, platform_now_ns() - begin);
	complete(h, number);
	hand_over(h, number);
	wake_all(&h->followers[number & 1]);
}

/* Returns the time from which a follower considers the batch overdue.  Relaxed throughout: an estimate. */
static uint64_t overdue_at(const struct heavy *h, struct quiesce__overdue *late, uint64_t now)
{
	uint64_t progress = (uint64_t)quiesce_load_relaxed(&h->nr_leads) + quiesce_load_relaxed(&h->started) +
			    quiesce_load_relaxed(&h->completed);
	uint64_t ns = 2 * (uint64_t)quiesce_load_relaxed(&h->cost_ns);

	if (QUIESCE_MUTANT(heavy_late_by_arrival))
		progress = 0;
	return quiesce__unchanged_since(late, now, progress) + (ns < LATE_MIN_NS ? LATE_MIN_NS : ns);
}

/* True for one of the callers that find the lead free, or overdue, at the same time.  Relaxed throughout: two
 * leaders do no harm. */
static bool take_lead(struct heavy *h, bool slept, bool late)
{
	uint32_t nr_leads = quiesce_load_relaxed(&h->nr_leads), leader = quiesce_load_relaxed(&h->leader);

	if (leader != FREE && !(leader == HANDED && slept) && !(late && !QUIESCE_MUTANT(heavy_trusts_leader)))
		return false;
	if (quiesce_fetch_add_relaxed(&h->nr_leads, 1u) != nr_leads)
		return false;
	quiesce_store_relaxed(&h->leader, quiesce__tid());
	return true;
}

/* Relaxed throughout: the sleep is timed, so a sleeper that misses a wake-up checks again. */
static void sleep_on(struct heavy *h, uint32_t needed, uint64_t ns)
{
	struct followers *f = &h->followers[needed & 1];
	uint32_t word = quiesce_load_relaxed(&f->word);

	quiesce_store_relaxed(&f->asleep, 1);
	if (!is_over(h, needed) && quiesce_load_relaxed(&h->leader) != FREE)
		platform_futex_wait(&f->word, word, ns);
}

/* Where CPUs are few, served callers return one by one: without waiting for some of them, each batch would
 * serve one or two callers. */
static bool enough_arrived(const struct heavy *h)
{
	/* Relaxed throughout: a policy. */
	uint32_t half = quiesce_load_relaxed(&h->inside) / 2;

	return quiesce_load_relaxed(&h->arrived) >= (half > contended_callers ? half : contended_callers);
}

static void gather(struct heavy *h)
{
	/* Relaxed throughout: a policy, and the sleep is timed. */
	quiesce_store_relaxed(&h->gathering, 1);
	if (!enough_arrived(h))
		platform_futex_wait(&h->gathering, 1, GATHER_NS);
	quiesce_store_relaxed(&h->gathering, 0);
}

static void arrive(struct heavy *h)
{
	/* Relaxed throughout: a policy, and the leader's sleep is timed. */
	quiesce_fetch_add_relaxed(&h->arrived, 1u);
	if (!quiesce_load_relaxed(&h->gathering) || !enough_arrived(h))
		return;
	quiesce_store_relaxed(&h->gathering, 0);
	platform_futex_wake(&h->gathering, 1);
}

/* Wait until a batch that began after the call has completed; lead one if needed. */
static QUIESCE_COLD void fence_shared(struct heavy *h, bool contended)
{
	struct quiesce__overdue late = { .since = 0 };
	bool slept = false;
	uint32_t needed;

	/* HF1: full, pairs with HF1 in run_batch() */
	quiesce_fence_full(HF1);
	/* Relaxed: the fence above orders it. */
	needed = quiesce_load_relaxed(&h->started) + !QUIESCE_MUTANT(heavy_shares_running);
	arrive(h);
	while (!is_over(h, needed)) {
		uint64_t now = platform_now_ns(), at = overdue_at(h, &late, now);

		if (take_lead(h, slept, now >= at)) {
			if (contended)
				gather(h);
			run_batch(h);
			break;
		}
		sleep_on(h, needed, at > now ? at - now : LATE_MIN_NS);
		slept = true;
	}
}

/* Relaxed throughout: a policy. */
static bool is_contended(struct heavy *h, uint32_t callers, uint64_t now)
{
	uint64_t until = quiesce_load_relaxed(&h->contended_until);

	if (callers >= contended_callers)
		quiesce_store_relaxed(&h->contended_until, now + CONTENDED_NS);
	else if (until && now >= until)
		quiesce_store_relaxed(&h->contended_until, (uint64_t)0);
	return callers >= contended_callers || now < until;
}

/* Execute a membarrier for this caller alone.  A caller that arrives meanwhile sees a leader and waits.
 * Relaxed throughout: a policy, and sleeps are timed. */
static void fence_unshared(struct heavy *h)
{
	quiesce_store_relaxed(&h->leader, quiesce__tid());
	h->membarrier();
	quiesce_store_relaxed(&h->leader, FREE);
	if (quiesce_likely(quiesce_load_relaxed(&h->inside) == 1))
		return;
	wake_all(&h->followers[0]);
	wake_all(&h->followers[1]);
}

static void fence(struct heavy *h)
{
	/* Relaxed: a policy. */
	uint32_t callers = quiesce_fetch_add_relaxed(&h->inside, 1u);

	if (quiesce_likely(!callers && !quiesce_load_relaxed(&h->contended_until))) /* Relaxed: a policy. */
		fence_unshared(h);
	else
		fence_shared(h, is_contended(h, callers, platform_now_ns()));
	quiesce_fetch_add_relaxed(&h->inside, (uint32_t)-1); /* Relaxed: a policy. */
}

void quiesce__heavy_shared(void)
{
	fence(&plain);
}

void quiesce__heavy_restart(void)
{
	fence(&restart);
}

void quiesce__heavy_init(void)
{
	contended_callers = CONTENDED_CALLERS / (uint32_t)platform_nr_possible_cpus();
	if (!contended_callers)
		contended_callers = 1;
}

static void forget_callers(struct heavy *h)
{
	h->inside = h->leader = 0;
	h->followers[0] = h->followers[1] = (struct followers){ .asleep = 0 };
}

void quiesce__heavy_fork_child(void)
{
	forget_callers(&plain);
	forget_callers(&restart);
}
