/* SPDX-License-Identifier: MIT */
/* marks.pml - the kernel's shazptr: guards nest in the slot of a CPU, and the scan tells one guard from the next.
 *
 * As in kernel/shazptr.c: the scan flips a bit of the slot of a guard that delays a waiter, by compare-and-exchange.
 * A slot without the mark holds another guard; but a nested guard stores the wildcard over a marked address.
 * One CPU, guards nested to three levels (task, softirq, hard interrupt: an interrupt runs until it has ended), one
 * waiter.  Memory ordering is left to the litmus files (kernel/litmus/); here every step is atomic.
 *
 * Oracle: the object is not freed while a guard that found it goes on.
 * Settings: LIVE: guards begin again and again, an accepting cycle is a waiter that never returns (weak fairness).
 *   BOUND=N: as many guards as they like, to two levels; the waiter outlasts at most N outermost guards.
 * Wrong forms, of safety (of kernel/mutants.h where they have a name):
 *   STORES       a nested guard stores the wildcard, although it may be there by now, and marked
 *   LOST_MARK    lost_mark
 *   LOST_UPGRADE lost_upgrade
 *   INNER_CLEAR  inner_clear
 *   NO_WILDCARD  no_wildcard
 *   LOST_PTR     lost_ptr
 * and of progress, with LIVE:
 *   NO_MARKS     equal values are taken for the same guard
 *   ALWAYS       a wildcard is always the same guard
 * and of the number of guards, with BOUND=4:
 *   LESS         the bound is three
 *
 * Source: kernel/include/linux/shazptr.h shazptr_acquire held = READ_ONCE(*slot) ; !held ; smp_store_release(slot, (unsigned long)ptr) ; SHAZPTR_GUARD_NESTED ; __shazptr_is_wildcard(held) ; try_cmpxchg(slot, &held, (unsigned long)SHAZPTR_WILDCARD)
 * Source: kernel/include/linux/shazptr.h shazptr_clear !(guard.slot & SHAZPTR_GUARD_NESTED) ; smp_store_release((unsigned long *)guard.slot, 0UL)
 * Source: kernel/shazptr.c same_guard view->value == value ; !view->value ; __shazptr_is_wildcard(value) && !__shazptr_is_wildcard(view->value)
 * Source: kernel/shazptr.c scan_slot shazptr_slot_read(cpu) ; !same_guard(view, value) ; view->since = scan.nr ; view->marked &= view->value == value ; view->value = value
 * Source: kernel/shazptr.c mark seen ^ SHAZPTR_MARK ; now == seen ; view->value = marked ; view->marked = true ; view->value = same_guard(view, now) ? now : 0
 * Source: kernel/shazptr.c blocked_by blocker->since > waiter->since
 */
#define LEVELS 3
#ifndef GUARDS
#define GUARDS 2 /* outermost ones */
#endif
#define MINE 1 /* what the waiter waits for */
#define OTHER 2
#define WILDCARD 3
#define MARK 8

#define unmarked(v) ((v) & 7)
#define is_wildcard(v) (unmarked(v) == WILDCARD)
#ifdef LOST_PTR
#define is_mine(v) false
#else
#define is_mine(v) (unmarked(v) == MINE)
#endif
#ifdef NO_WILDCARD
#define blocks(v) is_mine(v)
#else
#define blocks(v) (is_mine(v) || is_wildcard(v))
#endif

byte slot, level; /* level: guards that have begun */
mtype = { READ, STORE, FIND, HOLD };
mtype step[LEVELS];
byte address[LEVELS], held[LEVELS];
bool nested[LEVELS], uses[LEVELS];
bool unlinked, freed, queued, joined;

#ifdef BOUND
/* Outermost guards that the waiter was delayed by: a scan found them in its way, or a mark hit them. */
bool fresh; /* the present one is not counted */
byte outlasted;
#ifdef LESS
#define bound (BOUND - 1)
#else
#define bound BOUND
#endif
#define count_guard() outlasted = outlasted + fresh; fresh = false; assert(outlasted <= bound)
#else
#define count_guard() skip
#endif

byte view; /* what the slot held, with our mark */
bool marked, since; /* since: its guard counts for the waiter */

#define top (level - 1)

inline free_it()
{
	assert(!uses[0] && !uses[1] && !uses[2]);
	freed = true
}

/* One step of the innermost guard. */
inline store()
{
	if
	:: !nested[top] -> slot = address[top]; step[top] = FIND
	:: nested[top] && is_wildcard(held[top]) -> step[top] = FIND
#ifdef STORES
	:: nested[top] && !is_wildcard(held[top]) -> slot = WILDCARD; step[top] = FIND
#else
	:: nested[top] && !is_wildcard(held[top]) && slot == held[top] -> slot = WILDCARD; step[top] = FIND
	:: nested[top] && !is_wildcard(held[top]) && slot != held[top] -> held[top] = slot
#endif
	fi
}

inline clear()
{
	uses[top] = false;
	if
#ifdef INNER_CLEAR
	:: true -> slot = 0
#else
	:: !nested[top] -> slot = 0
	:: nested[top] -> skip
#endif
	fi;
	held[top] = 0;
	nested[top] = false;
	address[top] = 0;
	step[top] = READ;
	level--
}

active proctype cpu()
{
	byte begun, inner;

	do
#ifdef LIVE
	:: atomic { level == 0 -> inner = 0; level++; address[top] = MINE; step[top] = READ }
	:: atomic { level == 1 && inner == 0 -> inner++; level++; address[top] = OTHER; step[top] = READ }
#else
#ifdef BOUND
	:: atomic { level < 2 ->
		fresh = fresh || level == 0;
#else
	:: atomic { level < LEVELS && (level > 0 || begun < GUARDS) ->
		begun = begun + (level == 0);
#endif
		level++;
		step[top] = READ;
		if
		:: address[top] = MINE
		:: address[top] = OTHER
		fi }
#ifndef BOUND
	:: level == 0 && begun == GUARDS -> break
#endif
#endif
	:: atomic { level > 0 && step[top] == READ -> held[top] = slot; nested[top] = (slot != 0); step[top] = STORE }
	:: atomic { level > 0 && step[top] == STORE -> store() }
	:: atomic { level > 0 && step[top] == FIND -> uses[top] = (address[top] == MINE && !unlinked); step[top] = HOLD }
	:: atomic { level > 0 && step[top] == HOLD -> clear() }
	od
}

/* An expression that is true if same_guard() is. */
#ifdef LOST_MARK
#define same_value(now) false
#else
#define same_value(now) (view == (now))
#endif
#ifdef LOST_UPGRADE
#define upgraded(now) false
#elif defined(ALWAYS)
#define upgraded(now) (view && is_wildcard(now))
#else
#define upgraded(now) (view && is_wildcard(now) && !is_wildcard(view))
#endif
#define same_guard(now) (same_value(now) || upgraded(now))

inline scan_slot()
{
	since = since && same_guard(slot);
	marked = marked && view == slot;
	view = slot;
	if
	:: queued && !joined -> joined = true; since = true
	:: else
	fi;
	if
	:: joined && !(blocks(slot) && since) -> free_it()
	:: joined && blocks(slot) && since -> count_guard()
	:: else
	fi
}

inline mark()
{
	if
#ifdef NO_MARKS
	:: true -> skip
#endif
	:: view == 0 || marked -> skip
	:: view && !marked && slot == view -> slot = slot ^ MARK; view = slot; marked = true;
		if
		:: joined -> count_guard()
		:: else
		fi
	:: view && !marked && slot != view -> view = (same_guard(slot) -> slot : 0)
	fi
}

/* Others wait too: it scans and marks whether ours is there or not. */
active proctype scan()
{
end_idle:
	do
	:: freed -> break
#ifdef LIVE
	:: atomic { !freed && queued -> scan_slot() };
#else
	:: atomic { !freed -> scan_slot() };
#endif
		if
		:: freed -> skip
		:: atomic { !freed -> mark() }
#ifndef LIVE
		:: !freed && !joined -> skip
#endif
		fi
	od
}

active proctype waiter()
{
	unlinked = true;
	if
	:: atomic { !blocks(slot) && !freed -> free_it() }
	:: queued = true
	fi;
#ifdef LIVE
accept_wait:
	do
	:: freed -> break
	:: else -> skip
	od
#else
	freed
#endif
}
