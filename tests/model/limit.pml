/* SPDX-License-Identifier: MIT */
/* limit.pml - retired objects: is each reclaimed once nobody protects it, and none before?
 *
 * As in src/hazptr_retire.c, src/hazptr_sweep.c and src/worker.c: an owner unlinks objects and pushes them to
 * its queue (its store goes through a store buffer), reads its limit, and at the limit takes the
 * lock, reclaims if there is a batch, sets the next limit, 0 if the queue is empty, and looks whether the worker
 * sleeps.  The worker drains the queue into a list, sets the limit to 0, fences, looks at the slot, reclaims; and
 * sleeps without a time limit if after a fence it finds nothing left.  A reader protects the current object:
 * load, slot (through a store buffer), load again.  When an owner is busy, and when the worker looks, is left open.
 * An object that is never reclaimed is an invalid end state.
 *
 * BARRIER: another thread sweeps too, once, and waits for the slot, which from the start has object 1.
 *
 * Wrong forms, each of which must fail:
 *   UNMARKED     hazptr_drain_unmarked: who drains leaves the limit as it is
 *   OWNER_KEEPS  an owner that has emptied its queue leaves its limit at a batch
 *   UNFENCED     CB9: the worker does not fence between "asleep" and its last look
 *   UNCHECKED    the worker does not look after it
 *   NO_HEAVY     HP1: no fence before the slot is read
 *   NO_RELOOK    who waited does not look, when he is through, whether anything came meanwhile (with BARRIER)
 */
#ifndef N
#define N 3
#endif
#ifndef BATCH
#define BATCH 2
#endif
#define bit(k) (1 << (k))
#define ALL (bit(N + 1) - bit(1)) /* objects 1 to N */

chan ring = [6] of { byte };
byte held;            /* object in the owner's store buffer; 0: none */
byte queued, taken, limit;
byte visible, done;   /* objects: queued, in memory; reclaimed */
byte p = 1;
#ifdef BARRIER
byte slot = 1, using = 1;
#else
byte slot, using;
#endif
byte stored;          /* in the reader's store buffer */
bool storing;
bool locked, sweeping, keeps;
byte kept;            /* of who sweeps: objects in the list */
bool asleep, asleep_held, in_futex;

inline drain_owner()
{
	if
	:: held -> ring!held; visible = visible | bit(held); held = 0
	:: else
	fi
}
inline drain_reader()
{
	if
	:: storing -> slot = stored; storing = false; stored = 0
	:: else
	fi
}
inline drain_worker()
{
	if
	:: asleep_held -> asleep = true; asleep_held = false
	:: else
	fi
}

active proctype cpus()
{
end:
	do
	:: atomic { held -> drain_owner() }
	:: atomic { storing -> drain_reader() }
	:: atomic { asleep_held -> drain_worker() }
	od
}

inline heavy()
{
	d_step { drain_owner() };
	d_step { drain_reader() }
}

inline fence_before_look()
{
#ifndef NO_HEAVY
	heavy();
#endif
	skip
}

inline reclaim(k)
{
	assert(using != k && !(done & bit(k)));
	done = done | bit(k)
}

/* The lock that came before is a full fence. */
inline tell_worker()
{
	if
	:: asleep -> d_step { asleep = false; in_futex = false }
	:: else
	fi
}

inline reclaim_own()
{
	d_step { drain_owner() };
	fence_before_look();
	atomic { found = slot; nr = len(ring) };
	do
	:: atomic { nr > 0 -> ring?k; taken++; nr-- };
		if
		:: atomic { k == found -> ring!k; queued++; again++ }
		:: atomic { k != found -> reclaim(k) }
		fi
	:: nr == 0 -> break
	od;
	k = 0
}

inline at_limit()
{
	atomic { !locked -> locked = true; drain_owner() };
	if
	:: len(ring) >= BATCH -> reclaim_own()
	:: len(ring) < BATCH
	fi;
	d_step {
#ifdef OWNER_KEEPS
		limit = taken + again + BATCH;
#else
		limit = (len(ring) -> taken + again + BATCH : 0);
#endif
		locked = false; again = 0; found = 0
	};
	tell_worker()
}

proctype owner()
{
	byte n = 1, k, nr, found, again;

	do
	:: n <= N ->
		d_step { drain_owner(); p = n + 1; held = n; queued++ };
		n++;
		if
		:: queued >= limit -> at_limit()
		:: queued < limit
		fi
	:: n > N -> break
	od
}

proctype reader()
{
	byte first;

#ifndef BARRIER
	first = p;
	d_step { drain_reader(); stored = first; storing = true };
	if
	:: atomic { p == first -> using = first; assert(!(done & bit(first))) }
	:: p != first
	fi;
#endif
	using = 0;
	d_step { drain_reader(); stored = 0; storing = true; first = 0 }
}

/* Under the lock. */
inline drain_ring()
{
	nr = len(ring);
	if
	:: nr > 0 ->
#ifndef UNMARKED
		limit = 0;
#endif
		atomic {
			do
			:: nr > 0 -> ring?k; taken++; kept = kept | bit(k); nr--
			:: else -> break
			od;
			k = 0
		}
	:: nr == 0
	fi;
	locked = false
}

inline part()
{
	fence_before_look();
	found = slot;
	k = 1;
	do
	:: k <= N && (kept & bit(k)) && k != found -> atomic { kept = kept & ~bit(k); reclaim(k); k++ }
	:: k <= N && (!(kept & bit(k)) || k == found) -> k++
	:: k > N -> break
	od;
	atomic { k = 0; found = 0 }
}

/* In the order of the source. */
inline any_left(r)
{
	r = sweeping;
	r = r || keeps;
	r = r || len(ring)
}

proctype worker()
{
	byte k, nr, found;
	bool left;

	do
	:: any_left(left);
		if
		:: left ->
			left = false;
			atomic { !sweeping -> sweeping = true };
			if
			:: atomic { !locked -> locked = true }; drain_ring()
			:: true /* its owner is busy */
			fi;
			if
			:: kept -> part()
			:: !kept
			fi;
			d_step { keeps = (kept != 0); sweeping = false }
		:: !left ->
			asleep_held = true;
#ifndef UNFENCED
			d_step { drain_worker() };
			heavy();
#endif
#ifndef UNCHECKED
			any_left(left);
#endif
			if
			:: !left ->
				/* The system call is a full fence; it sleeps only while the word says so. */
				atomic { drain_worker(); in_futex = asleep };
endasleep:
				!in_futex
			:: left
			fi;
			d_step { asleep = false; asleep_held = false; left = false }
		fi
	od
}

#ifdef BARRIER
proctype barrier()
{
	byte before, mine, k, nr, found;
	bool left;

	atomic { !sweeping -> sweeping = true; before = visible };
	atomic { !locked -> locked = true };
	drain_ring();
	if
	:: kept -> part()
	:: !kept
	fi;
	/* Take along what is protected, and wait for it without a lock. */
	d_step { mine = kept; kept = 0; keeps = false; sweeping = false };
	do
	:: mine ->
		atomic { !(mine & bit(slot)) /* synchronize_hazptr(); one slot, so it is free to go */ };
		k = 1;
		do
		:: k <= N && (mine & bit(k)) -> atomic { mine = mine & ~bit(k); reclaim(k); k++ }
		:: k <= N && !(mine & bit(k)) -> k++
		:: k > N -> break
		od;
		k = 0
	:: !mine -> break
	od;
	assert((done & before) == before);
#ifndef NO_RELOOK
	any_left(left);
	if
	:: left -> tell_worker()
	:: !left
	fi
#endif
}
#endif

init
{
	atomic {
		run owner(); run reader(); run worker();
#ifdef BARRIER
		run barrier()
#endif
	};
	(done == ALL)
}
