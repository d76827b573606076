/* SPDX-License-Identifier: MIT */
/* limit.pml - retired objects: each must be reclaimed once no slot protects it, and none before.
 *
 * As in src/hazptr/hazptr_retire.c, src/hazptr/hazptr_sweep.c and src/hazptr/hazptr_helper.c: an owner unlinks objects and pushes them to
 * its queue (its store goes through a store buffer), reads its limit, and at the limit tries the lock.  If it gets it,
 * and there is a batch, it reclaims or hands over; it sets the next limit, 0 if the queue is empty, lists the queue
 * if it is not, and checks whether a sweep is scheduled.  The helper takes objects that were handed over, drains the queue if it
 * is listed, sets its limit to 0, fences, loads the slot, checks the queue once more, reclaims; and schedules no further
 * visit if after a fence it finds nothing left.  A reader protects the current object: load, slot (through a
 * store buffer), load again.  The times of the helper's visits are left open.
 * An object that is never reclaimed is an invalid end state.
 *
 * BARRIER: another thread sweeps too, once, and waits for the slot, which from the start has object 1.
 *
 * Wrong forms, each of which must fail:
 *   UNMARKED     hazptr_drain_unmarked: the sweeper drains and leaves the limit as it is
 *   OWNER_KEEPS  an owner that has emptied its queue leaves its limit at a batch
 *   CHECKS_ONCE   hazptr_check_once: the sweeper does not check the queue once more after it has drained it
 *   TRUSTS_OWNER the second check is left out if the owner has the lock, because it will list the queue (with BARRIER)
 *   UNFENCED     HP5: the helper does not fence between "no further visit" and its last check
 *   UNCHECKED    hazptr_rest_unchecked: the helper makes no last check
 *   NO_HEAVY     HP1: no fence before the slot is read
 *   NO_RECHECK    a barrier that has swept does not check whether an object came meanwhile (with BARRIER)
 *
 * Source: src/hazptr/hazptr_retire.c queue push(r, item) ; quiesce_fence_mode(HP4) ; quiesce_load_relaxed(&r->limit) ; quiesce__retired_visit(r
 * Source: src/hazptr/hazptr_sweep.c drain_to quiesce__retired_nr_waiting(r) ; quiesce_store_relaxed(&r->limit, 0) ; quiesce__retired_drain_one(r)
 * Source: src/hazptr/hazptr_sweep.c recheck_drained quiesce_fence_full(HP6) ; recheck_drained_queue(r
 * Source: src/hazptr/hazptr_helper.c schedule_next_step set_scheduled( ; quiesce_fence_full(HP5) ; anything_left(ns)
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
byte visible, called, done; /* objects: queued, in memory; whose call has returned; reclaimed */
byte p = 1;
#ifdef BARRIER
byte slot = 1, using = 1;
#else
byte slot, using;
#endif
byte stored;          /* in the reader's store buffer */
bool storing;
bool locked, sweeping;
bool listed, inlist;  /* the queue is listed for a visit; it is in the list that its owner pushes to */
byte left;            /* objects handed over */
byte kept;            /* objects in the sweeper's list */
bool visits, undecided; /* state of the sweeper: the queue is to be visited; it is to be checked again */
bool keeps;           /* is anything in these, between sweeps */
bool scheduled, down_held, job; /* the helper will come; its store that says no; it was started */

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
inline drain_helper()
{
	if
	:: down_held -> scheduled = false; down_held = false
	:: else
	fi
}

active proctype cpus()
{
end:
	do
	:: atomic { held -> drain_owner() }
	:: atomic { storing -> drain_reader() }
	:: atomic { down_held -> drain_helper() }
	od
}

inline heavy()
{
	d_step { drain_owner() };
	d_step { drain_reader() }
}

inline fence_before_scan()
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
inline schedule()
{
	if
	:: atomic { !scheduled -> scheduled = true; job = true }
	:: atomic { scheduled -> skip }
	fi
}

inline reclaim_own()
{
	d_step { drain_owner() };
	fence_before_scan();
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

inline hand_over()
{
	d_step {
		nr = len(ring);
		do
		:: nr > 0 -> ring?k; taken++; left = left | bit(k); nr--
		:: else -> break
		od;
		k = 0
	}
}

/* Holds the lock. */
inline visit()
{
	if
	:: len(ring) >= BATCH -> reclaim_own()
	:: len(ring) >= BATCH -> hand_over()
	:: len(ring) < BATCH
	fi;
	d_step {
#ifdef OWNER_KEEPS
		limit = taken + again + BATCH;
#else
		limit = (len(ring) -> taken + again + BATCH : 0);
#endif
		if
		:: len(ring) && !listed -> listed = true; inlist = true
		:: else
		fi;
		locked = false; again = 0; found = 0
	};
	schedule()
}

/* An owner that finds the lock taken, also after a fence, does not wait. */
inline visit_at_limit()
{
	if
	:: atomic { !locked -> locked = true; drain_owner() }; visit()
	:: locked ->
		d_step { drain_owner() };
		if
		:: atomic { !locked -> locked = true }; visit()
		:: locked
		fi
	fi
}

proctype owner()
{
	byte n = 1, k, nr, found, again;

	do
	:: n <= N ->
		d_step { drain_owner(); p = n + 1; held = n; queued++ };
		n++;
		if
		:: queued >= limit -> visit_at_limit()
		:: queued < limit
		fi;
		called = called | bit(n - 1)
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

/* Drain the queue, under the lock. */
inline drain_ring()
{
	listed = false;
	visits = false;
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
	fence_before_scan();
	found = slot;
	k = 1;
	do
	:: k <= N && (kept & bit(k)) && k != found -> atomic { kept = kept & ~bit(k); reclaim(k); k++ }
	:: k <= N && (!(kept & bit(k)) || k == found) -> k++
	:: k > N -> break
	od;
	atomic { k = 0; found = 0 }
}

/* Under the queue's lock, which this gives back. */
inline list_for_visit()
{
	d_step {
		if
		:: len(ring) && !listed -> listed = true; visits = true
		:: else
		fi;
		locked = false; undecided = false
	}
}

/* The scan's heavy fence has drained the owner's buffer; if nothing was kept, a full fence stands for it. */
inline find_again()
{
#ifdef CHECKS_ONCE
	undecided = false;
#else
	if
	:: undecided && len(ring) ->
		if
		:: atomic { !locked -> locked = true }; list_for_visit()
		:: locked
#ifdef TRUSTS_OWNER
			-> undecided = false
#endif
		fi
	:: undecided && !len(ring) -> undecided = false
	:: !undecided
	fi;
#endif
	skip
}

inline take()
{
	d_step {
		kept = kept | left; left = 0;
		if
		:: inlist -> inlist = false; visits = true
		:: else
		fi
	}
}

proctype helper()
{
	byte k, nr, found;
	bool more;

endasleep:
	do
	:: atomic { job -> job = false; scheduled = true };
		do
		:: atomic { !sweeping -> sweeping = true };
			find_again();
			take();
			if
			:: atomic { visits && !locked -> locked = true }; drain_ring(); undecided = true
			:: true /* the owner is busy, or the visit is not due */
			fi;
			if
			:: kept -> part()
			:: !kept
			fi;
			find_again();
			d_step { keeps = (kept != 0 || visits || undecided); more = keeps; sweeping = false };
			if
			:: more -> skip /* the helper visits later by itself */
			:: !more ->
				down_held = true;
#ifndef UNFENCED
				d_step { drain_helper() };
#endif
#ifndef UNCHECKED
				if
				:: left || inlist || keeps -> more = true
				:: !left && !inlist && !keeps
				fi;
#endif
				if
				:: more -> d_step { down_held = false; scheduled = true }
				:: !more -> break
				fi
			fi
		od
	od
}

#ifdef BARRIER
proctype barrier()
{
	byte before, mine, k, nr, found;

	atomic { !sweeping -> sweeping = true; before = visible & called };
	if
	:: undecided -> atomic { !locked -> locked = true }; list_for_visit()
	:: !undecided
	fi;
	/* Queues first: an owner may be about to hand over what is in its own. */
	d_step {
		if
		:: inlist -> inlist = false; visits = true
		:: else
		fi
	};
	if
	:: visits -> atomic { !locked -> locked = true }; drain_ring(); undecided = true
	:: !visits
	fi;
	d_step { kept = kept | left; left = 0 };
	if
	:: kept -> part()
	:: !kept
	fi;
	find_again();
	/* Keep protected objects in the list, and wait for them without a lock. */
	d_step { mine = kept; kept = 0; keeps = (visits || undecided); sweeping = false };
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
#ifndef NO_RECHECK
	if
	:: sweeping || keeps || left || inlist -> schedule()
	:: !sweeping && !keeps && !left && !inlist
	fi
#endif
}
#endif

init
{
	atomic {
		run owner(); run reader(); run helper();
#ifdef BARRIER
		run barrier()
#endif
	};
	(done == ALL)
}
