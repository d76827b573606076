/* SPDX-License-Identifier: MIT */
/* heavy.c - heavy fences of many callers at once.
 *
 * A membarrier interrupts each CPU that runs a thread of the process, and kernels let one of a process run at a time.  So many
 * callers share one in batches: a leader waits until others have come and executes the membarrier; whoever came before it began
 * needs none.  A few callers share as well, but their leader waits for nobody: a membarrier does not interrupt those that sleep.
 *
 *   caller                              leader of a batch
 *   stores                              number = ++started            HF1
 *   needed = started + 1          HF1   membarrier
 *   completed not older?          HF1   completed = number, unless it is newer
 *
 * I1. A number newer than what a caller read was taken after that, so the membarrier is as good as the caller's own.
 * I2. Batches may overlap: completed is a maximum.
 * I3. A batch is a membarrier.  Light readers have no other mode: where the system call is taken away from a process that has
 *     some, a fence is made by turns on the CPUs of the other threads (platform/linux/turns.c), for plain fences and for those
 *     that restart sequences alike; and where that cannot be, the process ends.
 * I4. Nobody depends on a thread that does not run.  A batch is late when nothing has happened for twice the time of a
 *     membarrier: no lead was taken, no number, none completed.  Then one of the followers takes the lead over; the former leader,
 *     should it run again, hands over nothing.  Time is not counted from a follower's arrival: where a membarrier is dear each
 *     would find its batch late, and execute one more, which makes all of them later.  Sleeps are timed, so wake-ups may get lost.
 *
 * HF1  caller's stores, then started read; number taken, then the membarrier; that over, then completed | completed
 *      read, then what follows the fence
 */
#include "core.h"
#include "late.h"

#include <errno.h>
#include <string.h>

#define CONTENDED_CALLERS 8u  /* beside a caller, divided by CPUs: many */
#define CONTENDED_NS 1000000u /* leaders wait for others for so long at least: callers that have been served are about to come again */
#define GATHER_NS 50000u      /* a leader sleeps so long for others to come, at the most */
#define LATE_MIN_NS 100000u
#define COST_MAX_NS (1u << 25)

/* In place of a leader.  The lead is handed to a follower that has slept: else a caller that has just been served would come back and
 * lead, with nobody behind it. */
#define FREE 0u
#define HANDED UINT32_MAX

/* Those who need an odd number, or an even one. */
struct side {
	uint32_t asleep; /* somebody may be */
	uint32_t word;   /* futex that changes when they are to check */
};

struct heavy {
	void (*membarrier)(void);
	uint32_t inside;    /* callers */
	uint32_t started;   /* the newest number taken */
	uint32_t completed; /* the newest whose membarrier is over */
	uint32_t leader;    /* FREE, HANDED, or its thread id */
	uint32_t claims;    /* of the lead */
	uint32_t arrived;   /* callers since the last batch began */
	uint32_t gathering; /* futex: 1: the leader waits for others */
	uint32_t cost_ns;   /* of a membarrier */
	uint64_t contended_until;
	struct side side[2];
} __attribute__((aligned(QUIESCE_CACHELINE)));

static QUIESCE_COLD void __attribute__((noreturn)) no_fence(int err, int why)
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

/* A sandbox has taken the system call away, or a checkpoint was restored where there is none: readers go on without fences. */
static QUIESCE_COLD void fence_by_turns(int why)
{
	static uint32_t said;
	int err = why == -ESTALE ? why : QUIESCE_MUTANT(heavy_no_turns) ? 0 : platform_fence_by_turns();

	if (err)
		no_fence(err, why);
	/* Relaxed: only how often it is said matters. */
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

static void membarrier_restart(void)
{
	membarrier_or_turns(platform_membarrier_restart);
}

static struct heavy plain = { .membarrier = quiesce__membarrier };
static struct heavy restart = { .membarrier = membarrier_restart };
static uint32_t contended_callers; /* beside so many a leader waits for others; fixed at initialisation */

static bool older(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

static void complete(struct heavy *h, uint32_t number)
{
	uint32_t before = quiesce_load_relaxed(&h->completed); /* Relaxed: the exchange decides. */

	while (older(before, number))
		/* HF1: full, pairs with HF1 in is_over() */
		if (quiesce_cmpxchg(HF1, &h->completed, &before, number))
			break;
}

static bool is_over(const struct heavy *h, uint32_t needed)
{
	/* HF1: acquire, pairs with HF1 in complete() */
	return !older(quiesce_load_acquire(HF1, &h->completed), needed);
}

/* Relaxed throughout: a sleeper that misses it checks again in time. */
static void wake_all(struct side *side)
{
	quiesce_fetch_add_relaxed(&side->word, 1u);
	if (!quiesce_load_relaxed(&side->asleep))
		return;
	quiesce_store_relaxed(&side->asleep, 0);
	platform_futex_wake(&side->word, INT32_MAX);
}

static bool wake_one(struct side *side)
{
	/* Relaxed: as above. */
	quiesce_fetch_add_relaxed(&side->word, 1u);
	return quiesce_load_relaxed(&side->asleep) && platform_futex_wake(&side->word, 1);
}

/* To one of the callers that came while @number ran, unless the lead has been taken over.  Relaxed throughout: two leaders do no harm. */
static void hand_over(struct heavy *h, uint32_t number)
{
	if (quiesce_load_relaxed(&h->leader) != quiesce__tid())
		return;
	quiesce_store_relaxed(&h->leader, HANDED);
	if (!wake_one(&h->side[~number & 1]))
		quiesce_store_relaxed(&h->leader, FREE);
}

/* A leader that did not run for long counts little: the next one is late after some four times as long as usual, no more.
 * Relaxed throughout: a measure. */
static void note_cost(struct heavy *h, uint64_t ns)
{
	uint64_t most = 2 * (uint64_t)quiesce_load_relaxed(&h->cost_ns) + LATE_MIN_NS;

	most = most < COST_MAX_NS ? most : COST_MAX_NS;
	quiesce_store_relaxed(&h->cost_ns, (uint32_t)(ns < most ? ns : most));
}

/* Those who needed it are done; one of those who came meanwhile may lead. */
static void run_batch(struct heavy *h)
{
	/* HF1: full, pairs with HF1 in share() */
	uint32_t number = quiesce_fetch_add(HF1, &h->started, 1u) + 1;
	uint64_t begin = platform_now_ns();

	quiesce_store_relaxed(&h->arrived, 0); /* Relaxed: a policy. */
	h->membarrier();
	note_cost(h, platform_now_ns() - begin);
	complete(h, number);
	hand_over(h, number);
	wake_all(&h->side[number & 1]);
}

/* When a follower finds the batch late.  Relaxed throughout: a guess. */
static uint64_t late_at(const struct heavy *h, struct quiesce__late *late, uint64_t now)
{
	uint64_t progress = (uint64_t)quiesce_load_relaxed(&h->claims) + quiesce_load_relaxed(&h->started) +
			    quiesce_load_relaxed(&h->completed);
	uint64_t ns = 2 * (uint64_t)quiesce_load_relaxed(&h->cost_ns);

	if (QUIESCE_MUTANT(heavy_late_by_arrival))
		progress = 0;
	return quiesce__late_since(late, now, progress) + (ns < LATE_MIN_NS ? LATE_MIN_NS : ns);
}

/* One of the callers that find the lead free, or late, at the same time.  Relaxed throughout: two leaders do no harm. */
static bool take_lead(struct heavy *h, bool slept, bool late)
{
	uint32_t claims = quiesce_load_relaxed(&h->claims), leader = quiesce_load_relaxed(&h->leader);

	if (leader != FREE && !(leader == HANDED && slept) && !(late && !QUIESCE_MUTANT(heavy_trusts_leader)))
		return false;
	if (quiesce_fetch_add_relaxed(&h->claims, 1u) != claims)
		return false;
	quiesce_store_relaxed(&h->leader, quiesce__tid());
	return true;
}

/* Relaxed throughout: as in wake_all(). */
static void sleep_on(struct heavy *h, uint32_t needed, uint64_t ns)
{
	struct side *side = &h->side[needed & 1];
	uint32_t word = quiesce_load_relaxed(&side->word);

	quiesce_store_relaxed(&side->asleep, 1);
	if (!is_over(h, needed) && quiesce_load_relaxed(&h->leader) != FREE)
		platform_futex_wait(&side->word, word, ns);
}

/* Where CPUs are few, those who were served come one by one: wait for some, or each batch would be of one or two. */
static bool are_enough(const struct heavy *h)
{
	/* Relaxed throughout: a policy. */
	uint32_t half = quiesce_load_relaxed(&h->inside) / 2;

	return quiesce_load_relaxed(&h->arrived) >= (half > contended_callers ? half : contended_callers);
}

static void gather(struct heavy *h)
{
	/* Relaxed throughout: a policy, and the sleep is timed. */
	quiesce_store_relaxed(&h->gathering, 1);
	if (!are_enough(h))
		platform_futex_wait(&h->gathering, 1, GATHER_NS);
	quiesce_store_relaxed(&h->gathering, 0);
}

static void arrive(struct heavy *h)
{
	/* Relaxed throughout: as above. */
	quiesce_fetch_add_relaxed(&h->arrived, 1u);
	if (!quiesce_load_relaxed(&h->gathering) || !are_enough(h))
		return;
	quiesce_store_relaxed(&h->gathering, 0);
	platform_futex_wake(&h->gathering, 1);
}

/* Until a batch is over that began after the call. */
static QUIESCE_COLD void share(struct heavy *h, bool contended)
{
	struct quiesce__late late = { .since = 0 };
	bool slept = false;
	uint32_t needed;

	/* HF1: full, pairs with HF1 in run_batch() */
	quiesce_fence_full(HF1);
	/* Relaxed: the fence. */
	needed = quiesce_load_relaxed(&h->started) + !QUIESCE_MUTANT(heavy_shares_running);
	arrive(h);
	while (!is_over(h, needed)) {
		uint64_t now = platform_now_ns(), at = late_at(h, &late, now);

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

/* Whoever comes meanwhile takes it for a batch.  Relaxed throughout: a policy, and sleeps are timed. */
static void unshared(struct heavy *h)
{
	quiesce_store_relaxed(&h->leader, quiesce__tid());
	h->membarrier();
	quiesce_store_relaxed(&h->leader, FREE);
	if (quiesce_likely(quiesce_load_relaxed(&h->inside) == 1))
		return;
	wake_all(&h->side[0]);
	wake_all(&h->side[1]);
}

static void fence(struct heavy *h)
{
	/* Relaxed: a policy. */
	uint32_t callers = quiesce_fetch_add_relaxed(&h->inside, 1u);

	if (quiesce_likely(!callers && !quiesce_load_relaxed(&h->contended_until))) /* Relaxed: as above. */
		unshared(h);
	else
		share(h, is_contended(h, callers, platform_now_ns()));
	quiesce_fetch_add_relaxed(&h->inside, (uint32_t)-1); /* Relaxed: as above. */
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
	h->side[0] = h->side[1] = (struct side){ .asleep = 0 };
}

void quiesce__heavy_fork_child(void)
{
	forget_callers(&plain);
	forget_callers(&restart);
}
