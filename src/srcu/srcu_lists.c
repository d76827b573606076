/* SPDX-License-Identifier: MIT */
/* srcu_lists.c - the lists to which threads push callbacks of a domain, and takes of them.
 *
 * At first a domain has one list (@own).  Where pushes of several threads meet there, the next step allocates shards: a list
 * for each possible CPU, in a cache line of its own, to which threads push by their number.
 *
 * I1. A thread pushes to @own, and to the shard of its number from the first push that finds shards until it ends.  So the
 *     callbacks of a thread are in at most two lists, the older ones in @own.
 * I2. The holder of @step_lock takes the shards before @own, and a taken callback of @own runs before the taken ones of
 *     shards.  Let a thread push A to @own and B to its shard.  A take that finds B comes to @own later, when A has been pushed:
 *     it takes A too, unless an earlier take has.  So A runs first.
 * I3. Without memory for shards @own serves on, and the next take at which pushes have met tries again.
 * I4. The child of a fork without handlers may find a thread's take half done: each object is in a list, or is reached from
 *     @rest, or from @reversed.  @rest_next is @rest, and the links are as they were, or it is the successor of @rest, whose
 *     own link may have been reversed already.  @taking is the number of the list that is being taken, plus one; 0 once @own,
 *     the last one, is in @rest.  The child completes the take, for order, and appends what is still in lists, because the
 *     numbers of threads, and so their shards, are new in the child.
 * I5. The first thread that pushes to a shard owns it, and adds to the sums @own without locked instructions; other threads
 *     of the same shard add to those of its list.  The owner is known by its block, which no two threads have at a time; a
 *     thread that has the block after the owner's end owns the shard in its place.
 *
 * SR7  object written, then pushed                    | list taken, then read
 * SL1  a callback pushed, then takes or starting read | takes raised and starting cleared, then lists read
 * SL2  shards zeroed, then published                  | shards found, then used
 * SR8  see srcu_callbacks.c
 */
#include "srcu.h"

#include "rcu/heads.h"

#if defined(QUIESCE_SIM)
#define MEETS 1u
#else
#define MEETS 64u /* so many meetings between two takes: a call now and then by another thread is no reason for shards */
#endif

struct shard {
	struct quiesce__srcu_list list;
	const struct quiesce_tls_v1 *owner; /* the thread that adds to @own (I5) */
	uint64_t nr_claims;                 /* threads that have tried to become it */
	struct quiesce__srcu_sums own;
} __attribute__((aligned(QUIESCE_CACHELINE)));

/* The head has a line of its own. */
struct quiesce__srcu_shards {
	size_t bytes;
	uint32_t nr; /* a power of two */
	struct shard shard[];
};

static struct quiesce__srcu_shards *find_shards(const struct quiesce__srcu_usage *u)
{
	/* SL2: acquire, pairs with SL2 in quiesce__srcu_shards_open() */
	return quiesce_load_acquire(SL2, &u->shards);
}

/* Relaxed throughout: I5. */
static bool is_owner(struct shard *shard)
{
	const struct quiesce_tls_v1 *self = quiesce__self(), *owner = quiesce_load_relaxed(&shard->owner);

	if (quiesce_unlikely(!owner) && !quiesce_load_relaxed(&shard->nr_claims) &&
	    !quiesce_fetch_add_relaxed(&shard->nr_claims, (uint64_t)1)) {
		quiesce_store_relaxed(&shard->owner, self);
		owner = self;
	}
	return owner == self || QUIESCE_MUTANT(srcu_owner_any);
}

struct quiesce__srcu_place quiesce__srcu_place_of_thread(struct quiesce__srcu_usage *u)
{
	struct quiesce__srcu_shards *shards = find_shards(u);
	struct shard *shard;
	bool mine;

	if (!shards)
		return (struct quiesce__srcu_place){ &u->own, &u->own.sums, false };
	shard = &shards->shard[quiesce__tid() & (shards->nr - 1)];
	mine = is_owner(shard);
	return (struct quiesce__srcu_place){ &shard->list, mine ? &shard->own : &shard->list.sums, mine };
}

uint32_t quiesce__srcu_nr_lists(const struct quiesce__srcu_usage *u)
{
	const struct quiesce__srcu_shards *shards = find_shards(u);

	return shards ? shards->nr + 1 : 1;
}

struct quiesce__srcu_list *quiesce__srcu_list_at(struct quiesce__srcu_usage *u, uint32_t i)
{
	return i ? &find_shards(u)->shard[i - 1].list : &u->own;
}

/* Relaxed throughout: callbacks that the caller knows of are included. */
uint64_t quiesce__srcu_queued(const struct quiesce__srcu_usage *u)
{
	const struct quiesce__srcu_shards *shards = find_shards(u);
	uint64_t nr = quiesce_load_relaxed(&u->own.sums.queued);

	for (const struct shard *s = shards ? shards->shard : NULL; s && s < shards->shard + shards->nr; s++)
		nr += quiesce_load_relaxed(&s->list.sums.queued) + quiesce_load_relaxed(&s->own.queued);
	return nr;
}

/* Relaxed throughout: sums. */
static uint64_t bytes_of(const struct shard *s)
{
	return quiesce_load_relaxed(&s->list.sums.bytes_in) + quiesce_load_relaxed(&s->own.bytes_in);
}

/* The bytes of list @i.  Relaxed: a sum. */
static uint64_t bytes_at(const struct quiesce__srcu_usage *u, uint32_t i)
{
	return i ? bytes_of(&find_shards(u)->shard[i - 1]) : quiesce_load_relaxed(&u->own.sums.bytes_in);
}

uint64_t quiesce__srcu_bytes_in(const struct quiesce__srcu_usage *u)
{
	uint64_t bytes = 0;

	for (uint32_t i = quiesce__srcu_nr_lists(u); i--;)
		bytes += bytes_at(u, i);
	return bytes;
}

/* A step may call the heap; call_srcu(), whose caller may be inside it, does not. */
static struct quiesce__srcu_shards *allocate(uint32_t nr)
{
	size_t bytes = sizeof(struct quiesce__srcu_shards) + nr * sizeof(struct shard);
	struct quiesce_tls_v1 *self = quiesce__self();
	struct quiesce__srcu_shards *shards;

	if (!quiesce__heap_begin(self))
		return NULL;
	shards = platform_lines_get(bytes);
	quiesce__heap_end(self);
	if (!shards)
		return NULL;
	shards->bytes = bytes;
	shards->nr = nr;
	return shards;
}

void quiesce__srcu_shards_open(struct quiesce__srcu_usage *u)
{
	uint64_t nr_ids = quiesce__percpu_nr_sets(&quiesce__srcu_domain(u)->percpu);
	struct quiesce__srcu_shards *shards;
	uint32_t nr = 2;

	/* Relaxed: @meets is a hint, @shards is written under the lock. */
	if (quiesce_load_relaxed(&u->meets) < MEETS || quiesce_load_relaxed(&u->shards) || nr_ids < 2)
		return;
	while (nr < nr_ids)
		nr *= 2;
	shards = allocate(nr);
	if (shards)
		/* SL2: release, pairs with SL2 in find_shards() */
		quiesce_store_release(SL2, &u->shards, shards);
}

void quiesce__srcu_shards_close(struct quiesce__srcu_usage *u)
{
	struct quiesce__srcu_shards *shards = find_shards(u);
	struct quiesce_tls_v1 *self = quiesce__self();
	bool first;

	if (!shards)
		return;
	first = quiesce__heap_begin(self);
	platform_lines_put(shards, shards->bytes);
	if (first)
		quiesce__heap_end(self);
}

/* ---- takes; under the lock @step_lock ---- */

/* Reverse the chain in @rest (newest first) into @reversed (oldest first); returns its length.  I4 needs this order. */
static uint64_t reverse(struct quiesce__srcu_usage *u)
{
	struct rcu_head *head;
	uint64_t nr = 0;

	/* Relaxed throughout: under the lock; atomic for the child of a fork. */
	for (; (head = quiesce_load_relaxed(&u->rest)); nr++) {
		quiesce_store_relaxed(&u->rest_next, head->next);
		quiesce_fence_compiler();
		quiesce_store_relaxed(&head->next, u->reversed);
		quiesce_fence_compiler();
		quiesce_store_relaxed(&u->reversed, head);
		quiesce_fence_compiler();
		quiesce_store_relaxed(&u->rest, u->rest_next);
		quiesce_fence_compiler();
	}
	return nr;
}

static void take_reversed(struct quiesce__srcu_usage *u)
{
	quiesce_store_relaxed(&u->taken, u->reversed); /* Relaxed: atomic for the child of a fork. */
	quiesce_fence_compiler();
	quiesce_store_relaxed(&u->reversed, NULL);     /* Relaxed: atomic for the child of a fork. */
}

/* Take list @i to the front of @reversed; returns the number of its callbacks. */
static uint64_t take_list(struct quiesce__srcu_usage *u, uint32_t i)
{
	struct quiesce__srcu_list *list = quiesce__srcu_list_at(u, i);
	/* Relaxed throughout: under the lock; atomic for the child of a fork. */
	struct rcu_head *first = quiesce_load_relaxed(&list->first);

	quiesce_store_relaxed(&u->taking, i + 1);
	while (first) {
		quiesce_store_relaxed(&u->rest_next, first); /* the links stay as I4 describes */
		quiesce_fence_compiler();
		quiesce_store_relaxed(&u->rest, first);
		/* SR7: full, pairs with SR7 in push() */
		if (quiesce_cmpxchg(SR7, &list->first, &first, NULL))
			break;
	}
	if (!i)
		quiesce_store_relaxed(&u->taking, 0);
	return reverse(u);
}

static void begin_take(struct quiesce__srcu_usage *u)
{
	quiesce__srcu_shards_open(u);
	/* Relaxed throughout: hints, and the fence follows. */
	quiesce_store_relaxed(&u->meets, 0);
	if (!QUIESCE_MUTANT(srcu_start_kept))
		quiesce_store_relaxed(&u->starting, 0);
	quiesce_store_relaxed(&u->takes, quiesce_load_relaxed(&u->takes) + 1);
	/* SL1: full, pairs with SL1 in quiesce_srcu_barrier(), and with the exchange in push() */
	quiesce_fence_full(SL1);
}

void quiesce__srcu_end_take(struct quiesce__srcu_usage *u)
{
	/* SR8: release, pairs with SR8 in all_run() */
	quiesce_store_release(SR8, &u->done, quiesce_load_relaxed(&u->takes)); /* Relaxed: written under the lock. */
}

/* @own is taken last (I2). */
bool quiesce__srcu_take(struct quiesce__srcu_usage *u)
{
	uint64_t nr = 0, bytes = 0;

	if (u->taken)
		return false;
	begin_take(u);
	for (uint32_t n = quiesce__srcu_nr_lists(u), i = n; i--;) {
		uint32_t at = QUIESCE_MUTANT(srcu_own_first) ? n - 1 - i : i;

		nr += take_list(u, at);
		bytes += bytes_at(u, at); /* the list was taken before, so at least its bytes are included */
	}
	if (!nr) {
		quiesce__srcu_end_take(u);
		return true;
	}
	u->cookie = quiesce__srcu_cookie(u);
	take_reversed(u);
	quiesce__srcu_bytes_taken(u, nr, bytes);
	return true;
}

/* ---- in the child of a fork ---- */

/* Relaxed throughout: only this thread knows the domain. */
static bool is_pushed(struct quiesce__srcu_usage *u, const struct rcu_head *head)
{
	for (uint32_t i = quiesce__srcu_nr_lists(u); i--;)
		if (quiesce__heads_have(quiesce_load_relaxed(&quiesce__srcu_list_at(u, i)->first), head))
			return true;
	return false;
}

/* Complete the take that the fork interrupted (I4). */
static void complete_take(struct quiesce__srcu_usage *u)
{
	struct rcu_head *head = u->rest;
	bool left;

	if (QUIESCE_MUTANT(srcu_reversal_lost)) {
		u->rest = u->reversed = NULL;
		return;
	}
	if (head && is_pushed(u, head))
		head = u->rest = NULL;
	left = u->taking > 1 || (u->taking && !head);
	if (u->rest && u->rest_next != head) {
		if (u->reversed != head) {
			head->next = u->reversed;
			u->reversed = head;
		}
		u->rest = u->rest_next;
	}
	reverse(u);
	if (left && !QUIESCE_MUTANT(srcu_take_partial))
		take_list(u, 0);
	quiesce_store_relaxed(&u->taking, 0); /* Relaxed: only this thread knows the domain. */
	if (u->reversed)
		take_reversed(u);
}

/* Append the callbacks in lists to those that have been taken: those of @own first. */
static void append_lists(struct quiesce__srcu_usage *u)
{
	struct rcu_head **end = &u->taken;

	for (uint32_t i = quiesce__srcu_nr_lists(u); i--;)
		take_list(u, i);
	while (*end)
		end = &(*end)->next;
	/* Relaxed: only this thread knows the domain. */
	quiesce_store_relaxed(end, u->reversed);
	quiesce_store_relaxed(&u->reversed, NULL);
}

void quiesce__srcu_take_inherited(struct quiesce__srcu_usage *u)
{
	complete_take(u);
	append_lists(u);
}
