/* SPDX-License-Identifier: MIT */
/* srcu.pml - grace periods of a domain: they must be long enough, and end.
 *
 * As in src/srcu/srcu.c.  Counts of a reader go through a store buffer of two entries; a heavy fence drains the
 * buffers, one CPU after the other.  A sum reads the counts of leaves, and then those of entries, in two steps.  Counts are kept
 * modulo 4: no more sections are open at once.  Updaters share grace periods: one leads, others wait until they are completed.
 *
 * Oracle: a section never holds a generation of an object that has been freed.  Every call returns (invalid end
 * state).  LIVE: also where a reader begins its next section before its last one ends, for ever.
 *
 * Wrong forms, each of which must fail (label or guard of src/platform/mutants.h):
 *   NO_HEAVY        SR1:heavy
 *   ONE_INDEX       srcu_one_index
 *   ENTERED_FIRST   srcu_one_pass
 *   SHARES_RUNNING  srcu_shares_running
 *   FENCE_FIRST     the number is taken after the fence
 *   LOSES_HEAD      a leader that stops forgets the waiters
 *   NO_FLIP         srcu_no_flip (with LIVE)
 *   FLIPS_EARLY     sections are turned to an index that has not been seen empty (with LIVE)
 *
 * Source: src/srcu/srcu.c begin u->begun + 1 ; quiesce_store_relaxed(&u->begun ; u->seen = 0 ; quiesce_fence_heavy_shared(SR1)
 * Source: src/srcu/srcu.c check_readers quiesce__srcu_check(ssp, u->seen, u->left) ; quiesce_store_relaxed(&ssp->idx, !active_index(ssp))
 * Source: src/srcu/srcu_check.c quiesce__srcu_check pass(ssp, left, &balanced) ; sum_entered(ssp, i) == left[i]
 * Source: src/srcu/srcu.c lead begin(u) ; quiesce__wait_spin_for(is_over, ssp ; wait_for_readers( ; complete(ssp, u)
 */
#ifndef NR
#define NR 2
#endif
#ifndef NU
#define NU 2
#endif
#ifndef NLOOP
#define NLOOP 1
#endif

/* A store in the buffer adds to one count: 1, 2 entered in index 0, 1; 3, 4 left. */
#define ENTER(i) (1 + (i))
#define LEAVE(i) (3 + (i))

unsigned entered0 : 2, entered1 : 2, left0 : 2, left1 : 2;
byte old[NR], young[NR]; /* entries of the store buffers; 0: none */
bit idx;
byte pointer[NU], freed[NU];

byte begun, completed;
bool led, fenced, seen0, seen1;
bool waits[NU], leads[NU], completed_for[NU];
byte needed[NU];

inline count(what)
{
	if
	:: what == ENTER(0) -> entered0 = (entered0 + 1) % 4
	:: what == ENTER(1) -> entered1 = (entered1 + 1) % 4
	:: what == LEAVE(0) -> left0 = (left0 + 1) % 4
	:: what == LEAVE(1) -> left1 = (left1 + 1) % 4
	:: else
	fi
}

inline drive_one_out(i) { count(old[i]); old[i] = young[i]; young[i] = 0 }

inline put(i, what)
{
	d_step {
		if
		:: old[i] && young[i] -> drive_one_out(i)
		:: else
		fi;
		if
		:: old[i] == 0 -> old[i] = what
		:: else -> young[i] = what
		fi
	}
}

/* A CPU may empty its buffer at any time. */
active proctype cpus()
{
end:
	do
	:: atomic { old[0] -> drive_one_out(0) }
#if NR > 1
	:: atomic { old[1] -> drive_one_out(1) }
#endif
	od
}

#ifdef LIVE
/* A reader whose sections overlap, for ever. */
proctype reader(byte me; byte u)
{
	bit now, last;

	last = idx;
	put(me, ENTER(last));
end:
	do
	:: now = idx;
		put(me, ENTER(now));
		atomic { put(me, LEAVE(last)); last = now; now = 0 }
	od
}
#else
proctype reader(byte me; byte u)
{
	bit i;
	byte held, n = 0;

	do
	:: n < NLOOP ->
		i = idx;
		put(me, ENTER(i));
		held = pointer[u];
		assert(held >= freed[u]); /* an access at any later time */
		atomic { assert(held >= freed[u]); held = 0; put(me, LEAVE(i)); i = 0; n++ }
	:: else -> break
	od
}
#endif

inline heavy()
{
#ifndef NO_HEAVY
	d_step { drive_one_out(0); drive_one_out(0) };
#if NR > 1
	d_step { drive_one_out(1); drive_one_out(1) }
#endif
#else
	skip
#endif
}

inline begin()
{
#ifdef FENCE_FIRST
	heavy();
#endif
	atomic {
		if
		:: begun == completed -> begun++; fenced = false; seen0 = false; seen1 = false
		:: else
		fi
	};
	if
	:: !fenced ->
#ifndef FENCE_FIRST
		heavy();
#endif
		fenced = true
	:: else
	fi
}

#ifdef ENTERED_FIRST
#define first0 entered0
#define first1 entered1
#define second0 left0
#define second1 left1
#else
#define first0 left0
#define first1 left1
#define second0 entered0
#define second1 entered1
#endif

inline sum_counts(over)
{
	if
	:: !seen0 -> sum = first0; atomic { seen0 = (sum == second0); sum = 0 }
	:: else
	fi;
	if
	:: !seen1 -> sum = first1; atomic { seen1 = (sum == second1); sum = 0 }
	:: else
	fi;
	atomic {
#ifdef ONE_INDEX
		over = seen0 || seen1;
#else
		over = seen0 && seen1;
#endif
		if
#ifdef FLIPS_EARLY
		:: !over -> idx = !idx
#elif !defined(NO_FLIP)
		:: !over && idx == 0 && seen1 -> idx = 1
		:: !over && idx == 1 && seen0 -> idx = 0
#endif
		:: else
		fi
	}
}

inline complete()
{
	atomic {
		completed = begun;
		completed_for[0] = completed_for[0] || (waits[0] && needed[0] <= completed);
		waits[0] = waits[0] && !completed_for[0];
#if NU > 1
		completed_for[1] = completed_for[1] || (waits[1] && needed[1] <= completed);
		waits[1] = waits[1] && !completed_for[1]
#endif
	}
}

inline hand_over()
{
	atomic {
#ifdef LOSES_HEAD
		led = false
#else
		if
		:: waits[0] -> waits[0] = false; leads[0] = true
#if NU > 1
		:: !waits[0] && waits[1] -> waits[1] = false; leads[1] = true
#endif
		:: else -> led = false
		fi
#endif
	}
}

inline synchronize(u)
{
	atomic {
		needed[u] = begun + 1;
#ifdef SHARES_RUNNING
		if
		:: begun != completed -> needed[u]--
		:: else
		fi;
#endif
		if
		:: !led -> led = true; leads[u] = true
		:: else -> waits[u] = true
		fi
	};
	if
	:: leads[u] ->
		leads[u] = false;
		do
		:: completed >= needed[u] -> break
		:: else ->
			begin();
accept_wait:
			do
			:: sum_counts(over);
				if
				:: over -> break
				:: else
				fi
			od;
			over = false;
			complete()
		od;
		hand_over()
	:: completed_for[u] -> completed_for[u] = false
	fi;
	needed[u] = 0
}

proctype updater(byte u)
{
	byte sum;
	bool over;

	pointer[u] = 1;
	synchronize(u);
	freed[u] = 1
}

init
{
	atomic {
		run reader(0, 0);
#if NR > 1
		run reader(1, NU - 1);
#endif
		run updater(0);
#if NU > 1
		run updater(1)
#endif
	}
}
