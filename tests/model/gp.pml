/* SPDX-License-Identifier: MIT */
/* gp.pml - grace periods by number: are they long enough, do they end?
 *
 * Readers have a store buffer of two entries for their mark, and may take an
 * early look at a pointer (a load before an earlier load).  A membarrier drains
 * the buffers and forgets the early looks one reader after the other, not all
 * at once.  Updaters share grace periods by the queue of src/rcu.c; the last
 * reader registers while grace periods run.  -DPOLL: updater 1 takes a cookie
 * and polls instead of waiting in the queue.
 *
 * Oracle: a reader inside a section never holds a generation of an object that has
 * been freed.  spin also reports a grace period that does not end (invalid end state).
 *
 * Wrong forms, each of which must fail (label or guard of src/mutants.h):
 *   NO_HEAVY         RU1:heavy
 *   ADVANCE_FIRST    gp_advance_before_fence
 *   SHARES_RUNNING   gp_shares_running
 *   SKIPS_LAST       gp_skips_last_reader
 *   NO_WAIT          gp_no_wait
 *   REG_LATE         reg_late
 *   COMPLETED_EARLY  gp_completed_early (with POLL)
 *   COOKIE_NOW       cookie_now (with POLL)
 *   LOSES_HEAD       hand_over() forgets who queued meanwhile (never ends)
 */
#ifndef NR
#define NR 2 /* readers */
#endif
#ifndef NLOOP
#define NLOOP 2 /* sections of each */
#endif
#ifndef NUPD
#define NUPD 1 /* replacements by each updater */
#endif
#ifndef NU
#define NU 2 /* updaters */
#endif

/* Memory.  word: 0 outside, else the number. */
byte word[NR], nr_entries, gp = 1, started = 1, completed = 1;
bool registered[NR];
byte pointer[NU]; /* the current generation of each updater's object */
byte freed[NU];   /* generations below this one are gone */

/* Of each reader: stores not yet visible, oldest first, and the early look. */
byte sb0[NR], sb1[NR], sbn[NR];
byte early[NR];
bool looked[NR];

inline drain_one(i) { word[i] = sb0[i]; sb0[i] = sb1[i]; sb1[i] = 0; sbn[i]-- }
inline drain(i)
{
	if
	:: sbn[i] == 2 -> word[i] = sb1[i]
	:: sbn[i] == 1 -> word[i] = sb0[i]
	:: else
	fi;
	sb0[i] = 0; sb1[i] = 0; sbn[i] = 0
}
inline put(i, v)
{
	d_step {
		if
		:: sbn[i] == 2 -> drain_one(i)
		:: else
		fi;
		if
		:: sbn[i] == 0 -> sb0[i] = v
		:: else -> sb1[i] = v
		fi;
		sbn[i]++
	}
}

/* A CPU drains its buffer whenever it likes. */
active proctype cpus()
{
end:
	do
	:: atomic { sbn[0] > 0 -> drain_one(0) }
	:: atomic { sbn[1] > 0 -> drain_one(1) }
#if NR > 2
	:: atomic { sbn[2] > 0 -> drain_one(2) }
#endif
	od
}

inline enroll(i)
{
	/* Two read-modify-writes: RG2, then RG1. */
	if
	:: !registered[i] -> atomic { drain(i); nr_entries = nr_entries + 1 }; atomic { drain(i); registered[i] = true }
	:: else
	fi
}

proctype reader(byte i; byte u)
{
	byte number, held, n = 0;

	do
	:: n < NLOOP ->
#ifndef REG_LATE
		enroll(i);
#endif
		/* The CPU may load the pointer before the number, or when it is its turn. */
		if
		:: d_step { early[i] = pointer[u]; looked[i] = true }
		:: skip
		fi;
		number = gp;
		atomic { put(i, number); number = 0 };
		d_step {
			if
			:: looked[i] -> held = early[i]
			:: else -> held = pointer[u]
			fi;
			looked[i] = false; early[i] = 0
		}
#ifdef REG_LATE
		enroll(i);
#endif
		assert(held >= freed[u]); /* an access at any later time */
		atomic { put(i, 0); held = 0; n++ }
	:: else -> break
	od
}

bool led;
bool queued[NU];
mtype = { waiting, lead, done };
mtype state[NU];

#ifdef NO_HEAVY
#define FENCED 0
#else
#define FENCED NR
#endif
#ifdef NO_WAIT
#define blocks(i) false
#else
/* NULL in an entry: nobody there yet. */
#define blocks(i) (registered[i] && word[i] != 0 && word[i] < number)
#endif

inline heavy()
{
	do
	:: atomic { k < FENCED -> drain(k); looked[k] = false; early[k] = 0; k++ }
	:: k == FENCED -> break
	od;
	k = 0
}

inline scan()
{
	do
	:: atomic { k < top && !blocks(k) -> k++ }
	:: k == top -> break
	od;
	atomic { k = 0; top = 0 }
}

inline count_entries()
{
	d_step {
		top = nr_entries;
#ifdef SKIPS_LAST
		top--
#endif
	}
}

inline run_gp()
{
	d_step { number = started + 1; started = number };
#ifdef ADVANCE_FIRST
	gp = number;
#endif
	heavy();
#ifndef ADVANCE_FIRST
	gp = number;
#endif
#ifdef COMPLETED_EARLY
	completed = number;
#endif
	count_entries();
	scan();
	d_step { completed = number; number = 0 }
}

/* gp.lock is held within an atomic block. */
inline hand_over()
{
	atomic {
#ifdef LOSES_HEAD
		led = false
#else
		if
		:: queued[0] -> state[0] = lead
		:: !queued[0] && queued[NU - 1] -> state[NU - 1] = lead
		:: else -> led = false
		fi
#endif
	}
}

inline take_queue() { d_step { batch0 = queued[0]; batch1 = queued[NU - 1]; queued[0] = false; queued[NU - 1] = false } }

inline tell_batch()
{
	atomic {
		if
		:: batch0 -> state[0] = done
		:: else
		fi;
		if
		:: batch1 -> state[NU - 1] = done
		:: else
		fi;
		batch0 = false; batch1 = false
	}
}

inline synchronize(u)
{
	atomic {
		state[u] = waiting;
#ifdef SHARES_RUNNING
		if
		:: led -> number = started
		:: else -> queued[u] = true
		fi;
		if
		:: number != 0 -> skip
		:: number == 0 && !led -> led = true; state[u] = lead
		fi
#else
		queued[u] = true;
		if
		:: !led -> led = true; state[u] = lead
		:: else
		fi
#endif
	}
#ifdef SHARES_RUNNING
	if
	:: number != 0 -> completed >= number; number = 0; state[u] = done
	:: else
	fi;
#endif
	if
	:: state[u] == lead ->
		take_queue();
		run_gp();
		hand_over();
		tell_batch()
	:: state[u] == done -> skip
	fi
}

/* A cookie, and whoever polls it tries a grace period itself when nobody leads. */
inline poll_cookie()
{
	cookie = started;
#ifndef COOKIE_NOW
	cookie++;
#endif
	do
	:: completed >= cookie -> break
	:: atomic { completed < cookie && !led -> led = true }; run_gp(); hand_over()
	od;
	cookie = 0
}

proctype updater(byte u)
{
	byte k, top, number, cookie, n = 0;
	bool batch0, batch1;

	do
	:: n < NUPD ->
		pointer[u] = pointer[u] + 1; /* unlink: the lock, or the cookie's fence, drains it */
#ifdef POLL
		if
		:: u == 1 -> poll_cookie()
		:: else -> synchronize(u)
		fi;
#else
		synchronize(u);
#endif
		d_step { freed[u] = pointer[u]; n++ }
	:: else -> break
	od
}

init
{
	byte i = 0;

	atomic {
		/* All but the last reader are registered from the start. */
		do
		:: i < NR - 1 -> registered[i] = true; nr_entries++; i++
		:: else -> break
		od;
		i = 0;
		do
		:: i < NR -> run reader(i, i % NU); i++
		:: else -> break
		od;
		i = 0;
		do
		:: i < NU -> run updater(i); i++
		:: else -> break
		od
	}
}
