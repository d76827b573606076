/* SPDX-License-Identifier: MIT */
/* heavy.c - heavy fences of many callers at once.
 *
 * A membarrier interrupts each CPU that runs a thread of the process, and kernels let one of a process run at a time.  So many
 * callers share one in batches: a leader waits until others have come and executes the membarrier; whoever came before it began
 * needs none.  A few callers share too if a membarrier interrupts nobody while they sleep, which makes it twenty times cheaper;
 * where others run anyway they execute one each, because to sleep and be woken takes longer.
 *
 *   caller                              who runs a batch
 *   stores                              number = ++started            HF1
 *   needed = started + 1          HF1   membarrier
 *   completed not older?          HF1   completed = number, unless it is newer
 *
 * I1. A number newer than what a caller read was taken after that, so the membarrier is as good as the caller's own.
 * I2. Batches may overlap: completed is a maximum.
 * I3. A batch is a membarrier.  Light readers have no other mode: where the system call is taken away from a process that has
 *     some, a fence is made by turns on the CPUs of the other threads (platform/linux/turns.c), for plain fences and for those
 *     that restart sequences alike; and where that cannot be, the process ends.
 * I4. Nobody depends on a thread that does not run.  Of those who find the batch late, one runs another beside it; who finds it
 *     late twice does in any case.  Sleeps are timed, so wake-ups may get lost.
 *
 * HF1  caller's stores, then started read; number taken, then the membarrier; that over, then completed | completed
 *      read, then what follows the fence
 */
#include "core.h"

#include <errno.h>
#include <string.h>

#define CONTENDED_CALLERS 8u              /* callers, divided by CPUs */
#define CONTENDED_NS 1000000u   /* they share for so long at least: those who have been served are about to come again */
#define CHEAP_NS 3000u         /* a membarrier that interrupts nobody takes less */
#define PERIOD_NS (1u << 24)  /* how often a few callers find out whether it does, */
#define TRIAL_NS (1u << 20)   /* by sharing for so long */
#define GATHER_NS 50000u      /* who leads sleeps so long for others to come, at the most */
#define LATE_MIN_NS 100000u   /* two membarriers take longer where CPUs are many; then so much is late */
#define LATE_MAX_NS 2000000u

/* Handed: to somebody who has slept.  Else whoever has just been served would lead, with nobody behind it. */
enum { FREE, LED, HANDED };

/* Those who need an odd number, or an even one. */
struct side {
	uint32_t asleep; /* somebody may be */
	uint32_t word;   /* futex that changes when they are to look */
};

struct heavy {
	void (*membarrier)(void);
	uint32_t inside;    /* callers */
	uint32_t started;   /* the newest number taken */
	uint32_t completed; /* the newest whose membarrier is over */
	uint32_t led;       /* FREE, LED, HANDED */
	uint32_t arrived;   /* callers since the last batch began */
	uint32_t gathering; /* futex: 1: who leads waits for others */
	uint32_t claims;    /* of those who found it late */
	uint32_t cost_ns;   /* of the last batch */
	uint32_t cheapest_ns; /* of this period */
	uint32_t period;      /* its number */
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
		quiesce__say("membarrier worked at start-up and now fails (%s): instead, who waits takes a turn on the CPU of each "
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
static uint32_t contended_callers; /* so many share; fixed at initialisation */

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

/* Relaxed throughout: who misses it looks again in time. */
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

/* To one of those who came while @number ran; of a few, to whoever comes first.  Relaxed throughout: two who lead do no harm. */
static void hand_over(struct heavy *h, uint32_t number)
{
	struct side *side = &h->side[~number & 1];

	if (!quiesce_load_relaxed(&h->contended_until)) {
		quiesce_store_relaxed(&h->led, FREE);
		wake_all(side);
		return;
	}
	quiesce_store_relaxed(&h->led, HANDED);
	if (!wake_one(side))
		quiesce_store_relaxed(&h->led, FREE);
}

/* Relaxed throughout: a measure. */
static void note_cost(struct heavy *h, uint64_t begin, uint64_t end)
{
	uint32_t cost = (uint32_t)(end - begin), period = (uint32_t)(end / PERIOD_NS);

	quiesce_store_relaxed(&h->cost_ns, cost);
	if (quiesce_load_relaxed(&h->period) != period)
		quiesce_store_relaxed(&h->period, period);
	else if (quiesce_load_relaxed(&h->cheapest_ns) <= cost)
		return;
	quiesce_store_relaxed(&h->cheapest_ns, cost);
}

/* Those who needed it are done; one of those who came meanwhile may lead. */
static void run_batch(struct heavy *h, bool leads)
{
	/* HF1: full, pairs with HF1 in share() */
	uint32_t number = quiesce_fetch_add(HF1, &h->started, 1u) + 1;
	uint64_t begin = platform_now_ns();

	quiesce_store_relaxed(&h->arrived, 0); /* Relaxed: a policy. */
	h->membarrier();
	note_cost(h, begin, platform_now_ns());
	complete(h, number);
	if (leads)
		hand_over(h, number);
	wake_all(&h->side[number & 1]);
}

static uint64_t late_ns(const struct heavy *h)
{
	uint64_t ns = 2 * (uint64_t)quiesce_load_relaxed(&h->cost_ns); /* Relaxed: a measure. */

	return ns < LATE_MIN_NS ? LATE_MIN_NS : ns < LATE_MAX_NS ? ns : LATE_MAX_NS;
}

static bool take_lead(struct heavy *h, bool slept)
{
	uint32_t led = quiesce_load_relaxed(&h->led); /* Relaxed: two who lead do no harm. */

	if (led == LED || (led == HANDED && !slept))
		return false;
	quiesce_store_relaxed(&h->led, LED); /* Relaxed: as above. */
	return true;
}

/* Sleep; true: it is late, and up to the caller. */
static bool sleep_or_claim(struct heavy *h, uint32_t needed, uint64_t begin)
{
	struct side *side = &h->side[needed & 1];
	uint32_t word = quiesce_load_relaxed(&side->word), claims = quiesce_load_relaxed(&h->claims); /* Relaxed: hints. */
	uint64_t ns = late_ns(h), waited = platform_now_ns() - begin;

	if (QUIESCE_MUTANT(heavy_trusts_leader))
		waited = 0;
	if (waited >= 2 * ns)
		return true;
	/* Relaxed: as above. */
	if (waited >= ns && quiesce_fetch_add_relaxed(&h->claims, 1u) == claims)
		return true;
	quiesce_store_relaxed(&side->asleep, 1); /* Relaxed: as above. */
	if (is_over(h, needed) || quiesce_load_relaxed(&h->led) == FREE) /* Relaxed: as in take_lead(). */
		return false;
	platform_futex_wait(&side->word, word, waited < ns ? ns - waited : ns);
	return false;
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
	if (!quiesce_load_relaxed(&h->contended_until))
		return;
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
static QUIESCE_COLD void share(struct heavy *h)
{
	uint64_t begin = platform_now_ns();
	uint32_t needed;
	bool leads = false, slept = false;

	/* HF1: full, pairs with HF1 in run_batch() */
	quiesce_fence_full(HF1);
	/* Relaxed: the fence. */
	needed = quiesce_load_relaxed(&h->started) + !QUIESCE_MUTANT(heavy_shares_running);
	arrive(h);
	while (!is_over(h, needed)) {
		leads = take_lead(h, slept);
		if (leads || sleep_or_claim(h, needed, begin)) {
			if (leads)
				gather(h);
			run_batch(h, leads);
			break;
		}
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

/* Would the membarrier of a batch of few callers interrupt others?  Relaxed: a policy. */
static bool interrupts_others(const struct heavy *h, uint64_t now)
{
	return now % PERIOD_NS >= TRIAL_NS && quiesce_load_relaxed(&h->cheapest_ns) > CHEAP_NS;
}

/* Whoever comes meanwhile takes it for a batch.  Relaxed throughout: a policy, and sleeps are timed. */
static void unshared(struct heavy *h)
{
	quiesce_store_relaxed(&h->led, LED);
	h->membarrier();
	quiesce_store_relaxed(&h->led, FREE);
	if (quiesce_likely(quiesce_load_relaxed(&h->inside) == 1))
		return;
	wake_all(&h->side[0]);
	wake_all(&h->side[1]);
}

static void beside_others(struct heavy *h, uint32_t callers)
{
	uint64_t now = platform_now_ns();

	if (is_contended(h, callers, now) || !interrupts_others(h, now))
		share(h);
	else
		h->membarrier();
}

static void fence(struct heavy *h)
{
	/* Relaxed: a policy. */
	uint32_t callers = quiesce_fetch_add_relaxed(&h->inside, 1u);

	if (quiesce_likely(!callers && !quiesce_load_relaxed(&h->contended_until))) /* Relaxed: as above. */
		unshared(h);
	else
		beside_others(h, callers);
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
	h->inside = h->led = 0;
	h->side[0] = h->side[1] = (struct side){ .asleep = 0 };
}

void quiesce__heavy_fork_child(void)
{
	forget_callers(&plain);
	forget_callers(&restart);
}
