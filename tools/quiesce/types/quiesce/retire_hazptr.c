/* SPDX-License-Identifier: MIT */
/* retire_hazptr.c - hazard pointers of quiesce: with a callback, freed without one, in a cohort; and broken types. */
#include <time.h>

#include <quiesce/control.h>
#include <quiesce/hazptr.h>

#include "ours.h"
#include "registry.h"
#include "types/retire.h"

_Static_assert(sizeof(struct hazptr_head) <= sizeof(void *[RETIRE_HEAD_WORDS]), "there is room for the library's head");

/* ---- readers of all these types ---- */

static __thread hazptr_t *slot;

static void thread_enter(void)
{
	slot = hazptr_alloc(NULL);
	if (!slot)
		abort();
}

OP_FUNCTION(thread_exit, hazptr_free(NULL, slot))

static void hold(void **where)
{
	retire_use(hazptr_protect(slot, where));
}

OP_FUNCTION(release, hazptr_clear(slot))
RETIRE_READ

/* ---- slots in use, for --scan ---- */

#define MAX_OCCUPIED 4096

static struct hazptr_context context[MAX_OCCUPIED / HAZPTR_SLOT_PER_CTX + 1];
static hazptr_t *occupied[MAX_OCCUPIED];
static struct retire_object shown[MAX_OCCUPIED]; /* objects that those slots protect; they are never retired */
static uint32_t nr_occupied;

static void vacate(void)
{
	for (uint32_t i = 0; i < nr_occupied; i++)
		hazptr_free(&context[i / HAZPTR_SLOT_PER_CTX], occupied[i]);
	for (uint32_t i = 0; i < nr_occupied; i += HAZPTR_SLOT_PER_CTX)
		cleanup_hazptr_context(&context[i / HAZPTR_SLOT_PER_CTX]);
	nr_occupied = 0;
}

static bool occupy(uint32_t nr)
{
	for (nr_occupied = 0; nr_occupied < nr && nr_occupied < MAX_OCCUPIED; nr_occupied++) {
		struct hazptr_context *ctx = &context[nr_occupied / HAZPTR_SLOT_PER_CTX];
		struct retire_object *o = &shown[nr_occupied];

		if (nr_occupied % HAZPTR_SLOT_PER_CTX == 0 && init_hazptr_context(ctx))
			break;
		occupied[nr_occupied] = hazptr_alloc(ctx);
		if (!occupied[nr_occupied])
			break;
		(void)hazptr_protect(occupied[nr_occupied], &o);
	}
	if (nr_occupied == nr)
		return true;
	vacate();
	return false;
}

#define SCAN .occupy = occupy, .vacate = vacate

/* ---- call_hazptr() ---- */

static void end_object(struct hazptr_head *head)
{
	retire_free(head);
}

static void end_given(struct hazptr_head *head)
{
	(void)head;
	retire_count();
}

#define CALL(object) call_hazptr((struct hazptr_head *)(object), end_object)
RETIRE_PRODUCE(hazptr, retire_alloc, CALL)

OP_FUNCTION(barrier, hazptr_barrier())

#define THREADS OURS, .thread_enter = thread_enter, .thread_exit = thread_exit

TYPE(hazptr, .rank = 500, .groups = RUN_TABLE | REPORT, .peers = PEER_HAZPTR,
	.what = "call_hazptr() of quiesce: callbacks run in its helper thread",
	.reclaim = &(const struct op_reclaim){ RETIRE_PRODUCERS(hazptr), RETIRE_READERS, .barrier = barrier }, THREADS);

#define CALL_INLINE(object) call_hazptr_inline((struct hazptr_head *)(object), end_object)
#define CALL_INLINE_GIVEN(object) call_hazptr_inline((struct hazptr_head *)(void *)(object), end_given)
RETIRE_PRODUCE(hazptr_inline, retire_alloc, CALL_INLINE)
RETIRE_GIVE(hazptr_inline, CALL_INLINE_GIVEN)

static const struct op_reclaim hazptr_inline_reclaim = {
	RETIRE_PRODUCERS(hazptr_inline), RETIRE_READERS, .barrier = barrier, .give = hazptr_inline_give, SCAN,
};
TYPE(hazptr_inline, .rank = 510,
	.what = "call_hazptr_inline() of quiesce: callbacks run where objects are retired",
	.reclaim = &hazptr_inline_reclaim, THREADS);

/* ---- kfree_hazptr(): without a callback, only the library counts frees ---- */

struct freed_object {
	struct hazptr_head head;
};

#define FREE(object) kfree_hazptr((struct freed_object *)(object), head)
RETIRE_PRODUCE(hazptr_free, retire_alloc, FREE)

static const struct op_reclaim hazptr_free_reclaim = {
	RETIRE_PRODUCERS(hazptr_free), RETIRE_READERS, .barrier = barrier, .freed = op_hazptr_freed,
};
TYPE(hazptr_free, .rank = 520, .groups = RUN_SIX | RUN_TABLE | REPORT, .peers = PEER_HAZPTR,
	.what = "kfree_hazptr() of quiesce; counted by its statistics",
	.reclaim = &hazptr_free_reclaim, THREADS);

/* ---- a cohort ---- */

static struct hazptr_cohort cohort = HAZPTR_COHORT_INIT;

#define CALL_COHORT(object) call_hazptr_cohort(&cohort, (struct hazptr_head *)(object), end_object)
#define CALL_COHORT_GIVEN(object) call_hazptr_cohort(&cohort, (struct hazptr_head *)(void *)(object), end_given)
RETIRE_PRODUCE(hazptr_cohort, retire_alloc, CALL_COHORT)
RETIRE_GIVE(hazptr_cohort, CALL_COHORT_GIVEN)

OP_FUNCTION(cohort_barrier, synchronize_hazptr_cohort(&cohort))

static const struct op_reclaim hazptr_cohort_reclaim = {
	RETIRE_PRODUCERS(hazptr_cohort), RETIRE_READERS, .barrier = cohort_barrier, .give = hazptr_cohort_give, SCAN,
};
TYPE(hazptr_cohort, .rank = 530,
	.what = "call_hazptr_cohort() of quiesce, one cohort for all threads",
	.reclaim = &hazptr_cohort_reclaim, THREADS);

/* ---- one scan for all objects, for --scan: the waiter of a cohort reclaims what callbacks retire into it ---- */

static struct {
	struct hazptr_head head;
	char *first;
	size_t stride;
	uint64_t nr;
} pile;

static void pile_up(struct hazptr_head *head)
{
	(void)head;
	hazptr_cohort_give(pile.first, pile.stride, pile.nr);
}

static void list_give(char *first, size_t stride, uint64_t nr)
{
	pile.first = first;
	pile.stride = stride;
	pile.nr = nr;
	call_hazptr(&pile.head, pile_up);
	hazptr_barrier();
}

TYPE(hazptr_list, .rank = 540,
	.what = "all objects of a cohort, in one scan; --scan only",
	.reclaim = &(const struct op_reclaim){ .give = list_give, .finish = cohort_barrier, SCAN }, THREADS);

/* ---- busted: objects are forgotten, calls sleep, or nothing is reclaimed before the end ---- */

#define FORGET_EVERY 50 /* less than the smallest window retires */

static void call_or_forget(struct retire_object *o)
{
	static __thread uint32_t n;

	if (++n % FORGET_EVERY == 0)
		free(o);
	else
		CALL(o);
}

RETIRE_PRODUCE(busted, retire_alloc, call_or_forget)

static const struct op_reclaim busted_reclaim = { RETIRE_PRODUCERS(busted), RETIRE_READERS, .barrier = barrier };
TYPE(busted_hazptr, .rank = 560,
	.what = "call_hazptr() that forgets each fiftieth object: must be noticed",
	.broken = true, .reclaim = &busted_reclaim, THREADS);

static __thread struct hazptr_head *hoarded;

static void hoard(struct retire_object *o)
{
	struct hazptr_head *head = (struct hazptr_head *)o;

	head->next = hoarded;
	hoarded = head;
}

RETIRE_PRODUCE(hoard, retire_alloc, hoard)

static void free_hoard(void)
{
	struct hazptr_head *head;

	while ((head = hoarded)) {
		hoarded = head->next;
		retire_free(head);
	}
}

static const struct op_reclaim hoard_reclaim = { RETIRE_PRODUCERS(hoard), RETIRE_READERS, .drain = free_hoard };
TYPE(busted_hoard, .rank = 570,
	.what = "nothing is freed before the end: must be noticed",
	.broken = true, .reclaim = &hoard_reclaim, THREADS);

#define STALL_EVERY 500 /* calls between two stalls: the 99.9th percentile of the calls contains one */
#define STALL_NS 1000000

static void call_or_stall(struct retire_object *o)
{
	static __thread uint32_t n;

	if (++n % STALL_EVERY == 0)
		nanosleep(&(struct timespec){ .tv_nsec = STALL_NS }, NULL);
	CALL(o);
}

RETIRE_PRODUCE(stall, retire_alloc, call_or_stall)

static const struct op_reclaim stall_reclaim = { RETIRE_PRODUCERS(stall), RETIRE_READERS, .barrier = barrier };
TYPE(busted_stall, .rank = 580,
	.what = "call_hazptr() of which each five hundredth sleeps a millisecond: must be noticed",
	.broken = true, .reclaim = &stall_reclaim, THREADS);
