/* SPDX-License-Identifier: MIT */
/* tags.pml - readers protect the same address repeatedly: a waiter completes, and not too early.
 *
 * As in src/shazptr/shazptr_wait.c and src/shazptr/shazptr_scan.c: two objects are found through one address (a bucket).
 * An updater unlinks its object, loads every slot, and queues if one holds the address.  The
 * leader takes the queue, puts a tag into each slot that holds the address in its first scan for
 * a waiter, and remembers for each waiter whether the tag is newer than the waiter
 * (the source compares numbers of scans; here it is a bit, so that there are finitely many
 * states).  A waiter is blocked by tags that are not newer.  Memory ordering is left to the
 * litmus files; here every step is atomic.
 *
 * Settings: SHARED: both readers claim the same slot.  OWN: each has its own, and claims by a load and
 * a store, between which a signal handler may set a guard, and must clear it.  LIVE: readers never end, an accepting cycle
 * is a waiter that never does (weak fairness).  ONE: one updater only.
 * Wrong forms, of safety:
 *   NO_WAIT      scan_no_wait
 *   LATE         unlinked after the first scan
 *   OLD_TAGS     only tags of the waiter's own scan block it
 *   RETAG        a tag counts anew for each new waiter
 *   ANY_CLEAR    without tags: a slot that holds the address in the second scan is taken for cleared
 *   TWO_STEPS    claim_unprotected, with SHARED: a load and a store
 *   KEEPS        the handler's guard is cleared after the handler has returned, with OWN
 * and of progress, with LIVE:
 *   NO_TAGS      a slot that holds the address blocks
 *
 * Source: src/shazptr/shazptr_scan.c scan_slot quiesce__slot_read(at.slot) ; QUIESCE_SLOT_TAG ; for_each_match(address, is_new, at) ; tag(at, value) ; for_each_match(address, block, at)
 * Source: src/shazptr/shazptr_scan.c tag quiesce_cmpxchg(SH7, at.slot, &value, value | QUIESCE_SLOT_TAG) ; quiesce_store_relaxed(at.tagged_in
 * Source: src/shazptr/shazptr_wait.c quiesce_synchronize_shazptr quiesce_fence_heavy_shared(SH1) ; is_held_now(
 */
#define NR 2
#ifndef NLOOP
#define NLOOP 2
#endif
#ifdef SHARED
#define NS 1
#define slot_of(i) 0
#else
#define NS 2
#define slot_of(i) i
#endif
#define HELD 1
#define TAGGED 3

byte slot[NS];
bool unlinked[2], freed[2];
bool queued[2], listed[2], completed[2], fresh[2], blocked[2];

/* newer[w * NS + s]: the tag in slot s came in a scan after the first of waiter w */
bool newer[2 * NS];
#ifdef OLD_TAGS
bool mine[2 * NS]; /* the tag is of the first scan of waiter w */
#endif

/* A holder may use an object that it finds until it clears the slot: the others run between the two steps. */
#define found ((unlinked[0] -> 0 : 1) + (unlinked[1] -> 0 : 2))
#define harmless(use) (!((use & 1) && freed[0]) && !((use & 2) && freed[1]))
inline protected(i)
{
	use = found;
	assert(harmless(use));
	use = 0
}

#ifdef KEEPS
bool kept[NR];

proctype other(byte i, use)
{
	assert(harmless(use));
	slot[i] = 0;
	kept[i] = false
}
#endif

proctype reader(byte i)
{
	byte n = 0, use = 0;

	do
#ifdef LIVE
	:: true ->
#else
	:: n == NLOOP -> break
	:: n < NLOOP -> n++;
#endif
#ifdef TWO_STEPS
		slot[slot_of(i)] == 0;
		slot[slot_of(i)] = HELD;
#elif defined(OWN)
#ifdef KEEPS
		!kept[i];
#endif
		slot[i] == 0;
		if
		:: slot[i] = HELD; /* the handler, to its end */
#ifdef KEEPS
			kept[i] = true;
			use = found;
			run other(i, use);
			use = 0
#else
			protected(i);
			slot[i] = 0
#endif
		:: skip
		fi;
		slot[i] = HELD;
#else
		atomic { slot[slot_of(i)] == 0 -> slot[slot_of(i)] = HELD };
#endif
		protected(i);
		slot[slot_of(i)] = 0
	od
}

inline self_scan()
{
	k = 0;
	do
	:: k < NS && slot[k] == 0 -> k++
	:: k < NS && slot[k] != 0 -> break
	:: k == NS -> break
	od
}

proctype updater(byte w)
{
	byte k;

#ifdef LATE
	self_scan();
	unlinked[w] = true;
#else
	unlinked[w] = true;
	self_scan();
#endif
	if
	:: k == NS -> skip
	:: else ->
		queued[w] = true;
		if
#ifdef LIVE
		:: w == 0 ->
accept_wait:
			do
			:: completed[w] -> break
			:: else -> skip
			od
#endif
		:: completed[w]
		fi;
		completed[w] = false
	fi;
	freed[w] = true
}

#define waits(w) (listed[w] && !fresh[w])

inline take_queue()
{
	atomic {
		w = 0;
		do
		:: w < 2 ->
			blocked[w] = false;
			fresh[w] = queued[w];
			listed[w] = listed[w] || queued[w];
			queued[w] = false;
			w++
		:: else -> break
		od;
		w = 0
	}
}

/* The tag belongs to this scan: it is newer than earlier waiters, and not newer than those that this scan takes. */
inline mark()
{
	newer[k] = waits(0);
	newer[NS + k] = waits(1)
}

inline block()
{
	w = 0;
	do
	:: w < 2 ->
#ifdef OLD_TAGS
		blocked[w] = blocked[w] || (listed[w] && !newer[w * NS + k] && mine[w * NS + k]);
#else
		blocked[w] = blocked[w] || (listed[w] && !newer[w * NS + k]);
#endif
		w++
	:: else -> break
	od;
	w = 0
}

inline scan_slot()
{
	value = slot[k];
	if
#if defined(NO_TAGS)
	:: value != 0 -> d_step { newer[k] = false; newer[NS + k] = false; block() }
#elif defined(ANY_CLEAR)
	:: value != 0 && (fresh[0] || fresh[1]) -> d_step { mark(); block() }
#else
	:: value == TAGGED ->
		d_step {
#ifdef RETAG
			newer[k] = waits(0) && (fresh[0] || fresh[1]) || newer[k];
			newer[NS + k] = waits(1) && (fresh[0] || fresh[1]) || newer[NS + k];
#endif
			/* A new waiter is blocked by every tag */
			newer[k] = newer[k] && !fresh[0];
			newer[NS + k] = newer[NS + k] && !fresh[1];
#ifdef OLD_TAGS
			mine[k] = mine[k] && !fresh[0];
			mine[NS + k] = mine[NS + k] && !fresh[1];
#endif
			block()
		}
	:: value == HELD && (fresh[0] || fresh[1]) ->
		/* This step is a compare-and-exchange. */
		d_step {
			if
			:: slot[k] == value ->
				slot[k] = TAGGED;
				mark();
#ifdef OLD_TAGS
				mine[k] = fresh[0];
				mine[NS + k] = fresh[1];
#endif
				block()
			:: else
			fi
		}
#endif
	:: else
	fi;
	value = 0
}

active proctype leader()
{
	byte k = 0, w = 0, value = 0;

endscan:
	do
	:: queued[0] || queued[1] || listed[0] || listed[1] ->
		take_queue();
		k = 0;
		do
		:: k < NS -> scan_slot(); k++
		:: else -> break
		od;
		k = 0;
		d_step {
			do
			:: w < 2 ->
				if
#ifdef NO_WAIT
				:: listed[w] -> listed[w] = false; completed[w] = true
#else
				:: listed[w] && !blocked[w] -> listed[w] = false; completed[w] = true
#endif
				:: else
				fi;
				fresh[w] = false;
				blocked[w] = false;
				w++
			:: else -> break
			od;
			w = 0
		}
	od
}

init
{
	atomic {
		run reader(0); run reader(1); run updater(0);
#ifndef ONE
		run updater(1)
#endif
	}
}
