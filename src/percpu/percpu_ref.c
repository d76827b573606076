/* SPDX-License-Identifier: MIT */
/* percpu_ref.c - per-CPU reference counts: the shared count, and changes of mode.
 *
 * In per-CPU mode a get or put checks the state (or @open, which is not 0 only while the state is 0) and adds one to a
 * word of the thread's id, both in one restartable sequence.  A change to atomic mode writes the state and @open, then
 * restarts all sequences.  After that each earlier count is visible and each later one finds the new state, so the words
 * stand still and their sum can be moved to the shared count.
 *
 * A process without sequences has one word for each id in their place, which counts up and down by locked instructions
 * and is closed before it is summed: a thread that finds it closed counts in the shared count.  So a change of mode
 * needs no fence.
 *
 *   references = count / 2 - (biased ? BIAS / 2 : 0) + (biased ? (sum - base) / 2 : 0)
 *   sum        = 2 (got - put), or that of the words that close
 *
 * I1. This sum is exact at every moment: each step changes one of its terms, or moves a part from one term to another
 *     in a single addition.  So the count shows zero only if there is no reference.
 * I2. While the state is 0, and until the words stand still, the count has the bias and is never zero.  Words that close
 *     are open only while the count has the bias, or if the state has never been 0, so that no thread has added to them.
 * I3. State, bias and base change under the lock.  A change that a fork interrupts is completed by the child's next
 *     change, which therefore checks the bias and not the state.
 * I4. The count itself shows that it was killed, in the word that tryget_live changes.  If a fork interrupts a kill or a revival, the
 *     state may say dead where the count does not: the child has a live count, whose next change begins there.
 * I5. A count that went below zero stays far below: such an object is leaked, not released while it is in use.
 * I6. Counts that are killed together each keep their first reference until all are dead: none is released while another
 *     one is live, or while the array may name it again.  A count is not locked while this thread waits for another one.
 *
 * PR1  state atomic, then all sequences restarted, then the sum | state read, then counted
 *      accesses before a reinit, then state per-CPU             | state read, then counted, then later accesses
 * PR2  used through a reference, then put                       | the last put, then release
 * PR3  one change of mode                                       | the next
 * PC3  see percpu.c
 */
#include "percpu.h"

#include "platform/probe.h"
#include "runtime/run.h"

#include <quiesce/percpu_ref.h>

#include <errno.h>
#include <string.h>

#define WORDS 2
#define ZONE_BITS 2
#define LOST (7ull << 61) /* middle of the range below zero */

#define FREE 0u
#define HELD 1u
#define CONTENDED 2u

enum zone { EXACT, BIASED, BIASED_ABOVE, BELOW };

static enum zone zone_of(uint64_t count)
{
	return (enum zone)(count >> (64 - ZONE_BITS));
}

static bool is_biased(uint64_t count)
{
	return zone_of(count) == BIASED || zone_of(count) == BIASED_ABOVE;
}

static bool has_none(uint64_t count)
{
	return count < QUIESCE_REF_ONE || zone_of(count) == BELOW;
}

static QUIESCE_COLD void report_misuse(struct percpu_ref *ref, const char *what)
{
	quiesce_store_relaxed(&ref->count, LOST); /* Relaxed: I5, as well as can be. */
	quiesce__misuse(QUIESCE_MISUSE_COUNT, "%s of %p, which has no reference left: it is not released", what, (const void *)ref);
}

/* ---- the shared count ---- */

/* Count one reference in a word of this id: in a sequence by a call, for programs whose inline code cannot read the
 * thread's id, or by a locked instruction. */
static bool count_by_call(const struct percpu_ref *ref, size_t offset, uint64_t nr)
{
	/* A word that has never been closed does not order the count after a reinit: the state does. */
	/* PR1: acquire, pairs with PR1 in to_percpu() */
	if (nr != 1 || quiesce_load_acquire(PR1, &ref->state))
		return false;
	if (!quiesce__percpu_uses_sequences())
		return quiesce__percpu_word_add(&ref->percpu, offset == QUIESCE_REF_GOT ? QUIESCE_REF_ONE : 0 - QUIESCE_REF_ONE);
	/* PR1: acquire, pairs with PR1 in fence_atomic() and to_percpu() */
	return quiesce_count_unless(PR1, &ref->percpu, offset, &ref->state);
}

/* Valid in both modes: in per-CPU mode the bias keeps the count from zero. */
void quiesce__percpu_ref_get_slow(struct percpu_ref *ref, uint64_t nr)
{
	if (count_by_call(ref, QUIESCE_REF_GOT, nr))
		return;
	/* Relaxed: the caller holds a reference, and hands the new ones over itself. */
	if (quiesce_unlikely(has_none(quiesce_fetch_add_relaxed(&ref->count, nr * QUIESCE_REF_ONE))))
		report_misuse(ref, "percpu_ref_get()");
}

static void put_shared(struct percpu_ref *ref, uint64_t nr)
{
	/* PR2: full, pairs with PR2 in put_shared() and end_atomic() and percpu_ref_is_zero() */
	uint64_t before = quiesce_fetch_add(PR2, &ref->count, 0 - nr * QUIESCE_REF_ONE), now = before - nr * QUIESCE_REF_ONE;

	if (quiesce_unlikely(has_none(before) || zone_of(now) == BELOW))
		report_misuse(ref, "percpu_ref_put()");
	else if (now < QUIESCE_REF_ONE)
		ref->release(ref);
}

void quiesce__percpu_ref_put_slow(struct percpu_ref *ref, uint64_t nr)
{
	if (!count_by_call(ref, QUIESCE_REF_PUT, nr))
		put_shared(ref, nr);
}

bool quiesce__percpu_ref_tryget_slow(struct percpu_ref *ref, uint64_t nr, bool live)
{
	uint64_t count;

	if (count_by_call(ref, QUIESCE_REF_GOT, nr))
		return true;
	count = quiesce_load_relaxed(&ref->count); /* Relaxed: the exchange decides. */
	if (QUIESCE_MUTANT(ref_live_apart) && live && percpu_ref_is_dying(ref))
		return false;
	do {
		if (has_none(count) && !QUIESCE_MUTANT(ref_revived))
			return false;
		if (live && (count & QUIESCE_REF_KILLED) && !QUIESCE_MUTANT(ref_live_apart))
			return false;
		/* PR2: full, pairs with PR2 in to_percpu() */
	} while (!quiesce_cmpxchg(PR2, &ref->count, &count, count + nr * QUIESCE_REF_ONE));
	return true;
}

/* ---- the lock for changes of mode ---- */

static uint32_t generation(void)
{
	return quiesce__generation() << 2;
}

/* True if a thread of this process holds the lock; a holder of an earlier generation was left behind by a
 * fork. */
static bool is_held(uint32_t word)
{
	return (word & 3) != FREE && (word & ~3u) == generation();
}

/* Take the lock.  It is not a struct quiesce__lock, because it is held while the confirm function runs, and the
 * child of a fork may find it held by a thread that the child does not have.  Returns false if the calling thread
 * holds it already. */
static bool begin_change(struct percpu_ref *ref, const char *what)
{
	uint32_t word, mine = HELD;

	quiesce__init();
	word = quiesce_load_relaxed(&ref->lock); /* Relaxed: the exchange decides. */
	for (;;) {
		if (!is_held(word)) {
			/* PR3: full, pairs with PR3 in end_change() */
			if (!quiesce_cmpxchg(PR3, &ref->lock, &word, generation() | mine))
				continue;
			quiesce_store_relaxed(&ref->switcher, quiesce__self()); /* Relaxed: for this thread itself. */
			return true;
		}
		/* Relaxed: only its own value matters to a thread. */
		if (quiesce_load_relaxed(&ref->switcher) == quiesce__self()) {
			quiesce__misuse(QUIESCE_MISUSE_WAIT_IN_CALLBACK,
					"%s in a confirm function of the same object waits for itself", what);
			return false;
		}
		mine = CONTENDED;
		/* PR3: full, pairs with PR3 in end_change() */
		if ((word & 3) == HELD && !quiesce_cmpxchg(PR3, &ref->lock, &word, generation() | CONTENDED))
			continue;
		platform_futex_wait(&ref->lock, generation() | CONTENDED, PLATFORM_FOREVER);
		word = quiesce_load_relaxed(&ref->lock); /* Relaxed: the exchange decides. */
	}
}

/* Take the lock if it is free; false if any thread, the calling one included, is changing the mode. */
static bool try_change(struct percpu_ref *ref)
{
	uint32_t word = quiesce_load_relaxed(&ref->lock); /* Relaxed: the exchange decides. */

	/* PR3: full, pairs with PR3 in end_change() */
	if (is_held(word) || !quiesce_cmpxchg(PR3, &ref->lock, &word, generation() | HELD))
		return false;
	quiesce_store_relaxed(&ref->switcher, quiesce__self()); /* Relaxed: for this thread itself. */
	return true;
}

static void end_change(struct percpu_ref *ref)
{
	quiesce_store_relaxed(&ref->switcher, NULL); /* Relaxed: for this thread itself. */
	/* PR3: full, pairs with PR3 in begin_change() */
	if ((quiesce_xchg(PR3, &ref->lock, generation() | FREE) & 3) == CONTENDED)
		platform_futex_wake(&ref->lock, 1);
}

/* ---- the change ---- */

/* The sum over all sets, times two as in the count: exact if the words stand still, else an estimate. */
static uint64_t sum_words(const struct percpu_ref *ref)
{
	static const uint64_t none[WORDS];

	if (!quiesce__percpu_uses_sequences())
		return quiesce__percpu_words_sum(&ref->percpu);
	return quiesce__percpu_inside(&ref->percpu, none, QUIESCE_REF_GOT / 8, QUIESCE_REF_PUT / 8) * QUIESCE_REF_ONE;
}

/* The sum after the fence, when no thread counts in words any more. */
static uint64_t last_sum(const struct percpu_ref *ref)
{
	if (!quiesce__percpu_uses_sequences() && !QUIESCE_MUTANT(ref_words_open))
		return quiesce__percpu_words_close(&ref->percpu);
	return sum_words(ref);
}

/* Once the fence that follows is over, or the words are closed, all threads count in ref->count.  Returns false if they
 * did so before, and no fence is needed. */
static bool begin_atomic(struct percpu_ref *ref, uint64_t state)
{
	/* Relaxed: the fence follows. */
	quiesce_store_relaxed(&ref->state, state | QUIESCE_REF_ATOMIC);
	quiesce_store_relaxed(&ref->open, (uint64_t)0);
	return is_biased(quiesce_load_relaxed(&ref->count));            /* Relaxed: I3. */
}

static void fence_atomic(void)
{
	if (!quiesce__percpu_uses_sequences())
		return; /* closing the words is enough */
	if (QUIESCE_MUTANT(ref_no_restart))
		quiesce__membarrier();
	else
		/* A sequence that missed the new state has counted before the sum; one that has not counted
		 * restarts, and finds it. */
		/* PR1: full, pairs with PR1 in percpu_ref_get(), percpu_ref_put(), percpu_ref_tryget() and
		 * percpu_ref_tryget_live() */
		quiesce_fence_restart(PR1);
}

/* Make the count exact: move the sum to it, and take the bias off.  @more is added in the same step (I1). */
static void end_atomic(struct percpu_ref *ref, uint64_t sum, uint64_t more)
{
	if (is_biased(quiesce_load_relaxed(&ref->count))) { /* Relaxed: I3. */
		more += sum - ref->base;
		if (QUIESCE_MUTANT(ref_two_adds))
			quiesce_fetch_add_relaxed(&ref->count, QUIESCE_REF_BIAS);
		else
			more -= QUIESCE_REF_BIAS;
	}
	/* PR2: full, pairs with PR2 in put_shared() */
	quiesce_fetch_add(PR2, &ref->count, more);
}

static void to_atomic(struct percpu_ref *ref, uint64_t state, uint64_t more)
{
	bool biased = begin_atomic(ref, state);
	uint64_t early = QUIESCE_MUTANT(ref_sum_before_fence) ? sum_words(ref) : 0;

	quiesce_probe(ref_switch, ref, 0, biased);
	if (biased)
		fence_atomic();
	end_atomic(ref, !biased ? 0 : QUIESCE_MUTANT(ref_sum_before_fence) ? early : last_sum(ref), more);
}

/* The part of the state that a change keeps, by the count (I4); by the state itself where the count is lost (I5). */
static uint64_t death_of(const struct percpu_ref *ref)
{
	/* Relaxed: I3. */
	uint64_t count = quiesce_load_relaxed(&ref->count), state = quiesce_load_relaxed(&ref->state) & QUIESCE_REF_DEAD;

	return (count & QUIESCE_REF_KILLED) || zone_of(count) == BELOW || QUIESCE_MUTANT(ref_dead_by_state) ? state : 0;
}

static bool may_be_percpu(const struct percpu_ref *ref)
{
	return !ref->no_percpu && !ref->stays_atomic;
}

/* A change that a fork interrupted may have left some words open, and some closed (I3). */
static void open_words(const struct percpu_ref *ref, uint64_t state)
{
	if (!state && !quiesce__percpu_uses_sequences())
		quiesce__percpu_words_open(&ref->percpu);
}

/* Return a live count to per-CPU mode if that is allowed.  @more is added in the same step (I1). */
static void to_percpu(struct percpu_ref *ref, uint64_t more)
{
	uint64_t state = may_be_percpu(ref) ? 0 : QUIESCE_REF_ATOMIC;

	quiesce_probe(ref_switch, ref, 1, !state);
	if (QUIESCE_MUTANT(ref_words_open_early))
		open_words(ref, state);
	if (!state && !is_biased(quiesce_load_relaxed(&ref->count))) { /* Relaxed: I3. */
		if (!QUIESCE_MUTANT(ref_base_kept))
			ref->base = sum_words(ref);
		if (!QUIESCE_MUTANT(ref_unbiased))
			more += QUIESCE_REF_BIAS;
	}
	/* PR2: full, pairs with PR2 in quiesce__percpu_ref_tryget_slow() */
	quiesce_fetch_add(PR2, &ref->count, more);
	open_words(ref, state);
	/* PR1: release, pairs with PR1 in percpu_ref_get(), percpu_ref_put(), percpu_ref_tryget() and percpu_ref_tryget_live() */
	quiesce_store_release(PR1, &ref->state, state);
	if (!state)
		/* PR1: release, pairs with PR1 in percpu_ref_get(), percpu_ref_put(), percpu_ref_tryget() and percpu_ref_tryget_live() */
		quiesce_store_release(PR1, &ref->open, quiesce__percpu_open_word(&ref->percpu));
}

/* ---- calls ---- */

int quiesce_percpu_ref_init(uint32_t layout, struct percpu_ref *ref, percpu_ref_func_t *release, unsigned int flags)
{
	bool dead = flags & PERCPU_REF_INIT_DEAD, atomic = flags & PERCPU_REF_INIT_ATOMIC;
	int err;

	quiesce__check_layout(layout);
	quiesce__init();
	quiesce__fix_mode();
	*ref = (struct percpu_ref){ .release = release, .stays_atomic = atomic };
	ref->reinit = dead || atomic || (flags & PERCPU_REF_ALLOW_REINIT);
	err = quiesce__percpu_open(&ref->percpu, WORDS);
	ref->no_percpu = err != 0;
	/* Relaxed throughout: no other thread sees the object yet. */
	quiesce_store_relaxed(&ref->count, dead ? QUIESCE_REF_KILLED : QUIESCE_REF_ONE);
	quiesce_store_relaxed(&ref->state, dead ? QUIESCE_REF_DEAD | QUIESCE_REF_ATOMIC : QUIESCE_REF_ATOMIC);
	if (!dead)
		to_percpu(ref, 0);
	return err;
}

/* Number of references that may still be put; a leaked count (I5) has none.
 * Relaxed: no thread uses the count. */
static uint64_t nr_users(const struct percpu_ref *ref)
{
	uint64_t count = quiesce_load_relaxed(&ref->count), nr;

	if (zone_of(count) == BELOW)
		return 0;
	if (is_biased(count))
		count += sum_words(ref) - ref->base - QUIESCE_REF_BIAS;
	nr = count / QUIESCE_REF_ONE;
	return count & QUIESCE_REF_KILLED ? nr : nr - (nr != 0); /* the first reference is the owner's */
}

/* Leave the count killed and without references, so that a later get or put is reported. */
void quiesce_percpu_ref_exit(struct percpu_ref *ref)
{
	uint64_t nr;

	quiesce__init();
	nr = nr_users(ref);
	if (quiesce_unlikely(nr != 0)) {
		quiesce__misuse(QUIESCE_MISUSE_IN_USE, "percpu_ref_exit() of %p with %llu references that have not been put",
				(const void *)ref, (unsigned long long)nr);
		return;
	}
	quiesce_store_relaxed(&ref->open, (uint64_t)0); /* Relaxed: no thread uses the count. */
	/* Relaxed: no thread uses the count. */
	quiesce_store_relaxed(&ref->state, QUIESCE_REF_DEAD | QUIESCE_REF_ATOMIC);
	if (zone_of(quiesce_load_relaxed(&ref->count)) != BELOW)         /* Relaxed: no thread uses the count. */
		quiesce_store_relaxed(&ref->count, QUIESCE_REF_KILLED); /* Relaxed: no thread uses the count. */
	ref->no_percpu = true;
	quiesce__percpu_close(&ref->percpu);
}

/* A confirm function, and the number of references to put after it. */
struct confirm {
	struct quiesce__run run;
	struct percpu_ref *ref;
	percpu_ref_func_t *func;
	uint64_t nr;
};

static void call_confirm(struct quiesce__run *run)
{
	const struct confirm *c = (const struct confirm *)run;

	c->func(c->ref);
}

static void end_confirm(const struct confirm *c)
{
	if (!QUIESCE_MUTANT(ref_confirm_unlocked))
		end_change(c->ref);
	if (c->nr) /* the references keep the lock's memory until here */
		quiesce__percpu_ref_put_slow(c->ref, c->nr);
}

/* The confirm function ended its thread: put the references here, as no other thread would.  The release
 * function may run in the ending thread. */
static void confirm_ended(struct quiesce__run *run)
{
	if (!QUIESCE_MUTANT(ref_ended_lost))
		end_confirm((const struct confirm *)run);
}

/* The next change of mode waits until the confirm function has returned or has ended its thread. */
static void confirm_and_put(struct percpu_ref *ref, const char *call, percpu_ref_func_t *confirm, uint64_t nr)
{
	struct confirm c = { .run = { .call = call, .func = (uintptr_t)confirm }, .ref = ref, .func = confirm, .nr = nr };

	if (QUIESCE_MUTANT(ref_confirm_unlocked))
		end_change(ref);
	if (confirm)
		quiesce__run(&c.run, call_confirm, confirm_ended);
	end_confirm(&c);
}

/* Kill @ref: afterwards percpu_ref_tryget_live() fails.  @nr: 1 to put the first reference, 0 to leave that
 * to the caller.  Returns false, without effect, after a misuse, which is reported. */
static bool kill_one(struct percpu_ref *ref, percpu_ref_func_t *confirm, uint64_t nr)
{
	if (quiesce_unlikely(!ref)) {
		quiesce__misuse(QUIESCE_MISUSE_NULL, "percpu_ref_kill() of NULL");
		return false;
	}
	if (!begin_change(ref, "percpu_ref_kill()"))
		return false;
	if (death_of(ref)) {
		end_change(ref);
		quiesce__misuse(QUIESCE_MISUSE_COUNT, "percpu_ref_kill() of %p, which has been killed", (const void *)ref);
		return false;
	}
	if (QUIESCE_MUTANT(ref_confirm_early) && confirm)
		confirm(ref);
	to_atomic(ref, QUIESCE_REF_DEAD, QUIESCE_REF_KILLED);
	confirm_and_put(ref, "percpu_ref_kill_and_confirm()", QUIESCE_MUTANT(ref_confirm_early) ? NULL : confirm, nr);
	return true;
}

void quiesce_percpu_ref_kill_and_confirm(struct percpu_ref *ref, percpu_ref_func_t *confirm)
{
	kill_one(ref, confirm, 1);
}

/* ---- many at once ---- */

/* The first @nr of @refs have been killed, and now that at @i: swap it to the end of them. */
static void add_killed(struct percpu_ref **refs, size_t *nr, size_t i)
{
	struct percpu_ref *ref = refs[i];

	refs[i] = refs[*nr];
	refs[(*nr)++] = ref;
}

/* Begin to kill every count whose lock is free, and move those to the front of @refs; returns their number.
 * A count that the array names twice is locked already where it is named again, and left to kill_the_rest(). */
static size_t begin_kills(struct percpu_ref **refs, size_t nr, bool *ret_fence)
{
	size_t mine = 0;

	*ret_fence = false;
	for (size_t i = 0; i < nr; i++) {
		struct percpu_ref *ref = refs[i];

		if (!ref || !try_change(ref))
			continue;
		if (death_of(ref)) {
			end_change(ref); /* kill_the_rest() reports the misuse */
			continue;
		}
		*ret_fence |= begin_atomic(ref, QUIESCE_REF_DEAD);
		add_killed(refs, &mine, i);
	}
	return mine;
}

/* Kill the counts whose mode another thread was changing, after that change; report misuse.  Returns how many
 * are dead then. */
static size_t kill_the_rest(struct percpu_ref **refs, size_t nr, size_t killed)
{
	for (size_t i = killed; i < nr; i++)
		if (kill_one(refs[i], NULL, 0))
			add_killed(refs, &killed, i);
	return killed;
}

static void put_first(struct percpu_ref **refs, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		quiesce__percpu_ref_put_slow(refs[i], 1);
}

/* Kill all counts with one fence, and put the first references when all of them are dead (I6). */
void quiesce_percpu_ref_kill_many(struct percpu_ref **refs, size_t nr)
{
	size_t mine, killed;
	bool fence;

	quiesce__init();
	mine = begin_kills(refs, nr, &fence);
	if (fence)
		fence_atomic();
	for (size_t i = 0; i < mine; i++) {
		bool biased = is_biased(quiesce_load_relaxed(&refs[i]->count)); /* Relaxed: I3. */

		end_atomic(refs[i], biased ? last_sum(refs[i]) : 0, QUIESCE_REF_KILLED);
		end_change(refs[i]);
	}
	killed = QUIESCE_MUTANT(ref_many_put_early) ? mine : kill_the_rest(refs, nr, mine);
	put_first(refs, killed);
	if (QUIESCE_MUTANT(ref_many_put_early))
		put_first(refs + mine, kill_the_rest(refs, nr, mine) - mine);
}

void quiesce_percpu_ref_switch_to_atomic(struct percpu_ref *ref, percpu_ref_func_t *confirm)
{
	uint64_t nr;

	if (!begin_change(ref, "percpu_ref_switch_to_atomic()"))
		return;
	ref->stays_atomic = true;
	/* An additional reference keeps the memory of the lock if the owner's has been put.  Relaxed: I3. */
	nr = is_biased(quiesce_load_relaxed(&ref->count));
	to_atomic(ref, death_of(ref), nr * QUIESCE_REF_ONE);
	confirm_and_put(ref, "percpu_ref_switch_to_atomic()", confirm, nr);
}

void quiesce_percpu_ref_switch_to_percpu(struct percpu_ref *ref)
{
	if (!begin_change(ref, "percpu_ref_switch_to_percpu()"))
		return;
	if (!ref->reinit) {
		end_change(ref);
		quiesce__misuse(QUIESCE_MISUSE_COUNT, "percpu_ref_switch_to_percpu() of %p without PERCPU_REF_ALLOW_REINIT",
				(const void *)ref);
		return;
	}
	ref->stays_atomic = false;
	if (!death_of(ref))
		to_percpu(ref, 0);
	end_change(ref);
}

static void revive(struct percpu_ref *ref, bool from_zero, const char *what)
{
	const char *wrong = NULL;

	if (!begin_change(ref, what))
		return;
	if (!(quiesce_load_relaxed(&ref->state) & QUIESCE_REF_DEAD)) /* Relaxed: I3. */
		wrong = "has not been killed";
	else if (!ref->reinit)
		wrong = "was made without PERCPU_REF_ALLOW_REINIT";
	else if (!death_of(ref))
		to_percpu(ref, 0); /* a fork has interrupted the revival, or the kill (I4) */
	else if (from_zero && !percpu_ref_is_zero(ref))
		wrong = "has references";
	else
		to_percpu(ref, QUIESCE_REF_ONE - QUIESCE_REF_KILLED);
	end_change(ref);
	if (wrong)
		quiesce__misuse(QUIESCE_MISUSE_COUNT, "%s of %p, which %s", what, (const void *)ref, wrong);
}

void quiesce_percpu_ref_reinit(struct percpu_ref *ref)
{
	revive(ref, true, "percpu_ref_reinit()");
}

void quiesce_percpu_ref_resurrect(struct percpu_ref *ref)
{
	revive(ref, false, "percpu_ref_resurrect()");
}
