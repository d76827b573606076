/* SPDX-License-Identifier: MIT */
/* gp.pml - grace periods by number: they must be long enough, and end.
 *
 * Readers have a store buffer of two entries for their mark, and may load a
 * pointer early (before an earlier load).  A membarrier drains
 * the buffers and discards the early loads one reader after the other, not all
 * at once.  Updaters share grace periods by their numbers, as in src/rcu/rcu_gp.c:
 * one leads, and each of the others may go on alone; the last reader registers
 * while grace periods run.  -DPOLL: updater 1 takes a cookie and polls instead
 * of waiting.  -DSTOP: another leader, which stops for good.
 *
 * Oracle: a reader inside a section never holds a generation of an object that has
 * been freed.  spin also reports a grace period that does not end (invalid end state).
 *
 * Wrong forms, each of which must fail (label or guard of src/platform/mutants.h):
 *   NO_HEAVY         RU1:heavy
 *   ADVANCE_FIRST    gp_advance_before_fence
 *   SHARES_RUNNING   gp_shares_running
 *   SKIPS_LAST       gp_skips_last_reader
 *   NO_WAIT          gp_no_wait
 *   REG_LATE         reg_late
 *   COMPLETED_EARLY  gp_completed_early (with POLL)
 *   COOKIE_NOW       cookie_now (with POLL)
 *   TRUSTS_LEADER    gp_trusts_leader (with STOP: never ends)
 *
 * Source: src/rcu/rcu_gp.c quiesce__rcu_wait cookie = quiesce__rcu_cookie() ; take_lead() ; gp_lead( ; follow(cookie
 * Source: src/rcu/rcu_gp.c gp_advance quiesce_fetch_add(RU9, &state.started ; quiesce_fence_heavy(RU1) ; publish(number)
 * Source: src/rcu/rcu_gp.c gp_lead gp_advance() ; quiesce__holdouts_wait(number, urgency, call) ; gp_complete(number) ; hand_over(number)
 * Source: src/rcu/rcu_gp.c quiesce__rcu_blocks quiesce_load_acquire(RU2 ; QUIESCE_RCU_DEPTH ; is_older(word >> 16, number)
 * Source: src/rcu/rcu_gp.c quiesce__rcu_cookie quiesce_fence_full(RU6) ; quiesce_load_relaxed(&state.started) ; started + 1
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

/* Shared memory.  word is 0 outside of a section, else the number of the grace period. */
byte word[NR], nr_entries, gp = 1, started = 1, completed = 1;
bool registered[NR];
byte pointer[NU]; /* the current generation of each updater's object */
byte freed[NU];   /* generations below this one are gone */

/* Each reader has stores that are not yet visible, oldest first, and an early load. */
byte sb0[NR], sb1[NR], sbn[NR];
byte early[NR];
bool loaded[NR];

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

/* A CPU may drain its buffer at any time. */
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
		:: d_step { early[i] = pointer[u]; loaded[i] = true }
		:: skip
		fi;
		number = gp;
		atomic { put(i, number); number = 0 };
		d_step {
			if
			:: loaded[i] -> held = early[i]
			:: else -> held = pointer[u]
			fi;
			loaded[i] = false; early[i] = 0
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

#ifdef NO_HEAVY
#define FENCED 0
#else
#define FENCED NR
#endif
#ifdef NO_WAIT
#define blocks(i) false
#else
/* An entry that is NULL has no reader yet, and does not block. */
#define blocks(i) (registered[i] && word[i] != 0 && word[i] < number)
#endif

inline heavy()
{
	do
	:: atomic { k < FENCED -> drain(k); loaded[k] = false; early[k] = 0; k++ }
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

/* A read-modify-write each. */
inline publish()
{
	d_step {
		if
		:: gp < number -> gp = number
		:: else
		fi
	}
}
inline complete()
{
	d_step {
		if
		:: completed < number -> completed = number
		:: else
		fi;
		number = 0
	}
}

inline run_gp()
{
	d_step { number = started + 1; started = number };
#ifdef ADVANCE_FIRST
	publish();
#endif
	heavy();
#ifndef ADVANCE_FIRST
	publish();
#endif
#ifdef COMPLETED_EARLY
	completed = number;
#endif
	count_entries();
	scan();
	complete()
}

inline lead()
{
	run_gp();
	led = false
}

/* A follower, the last updater, goes on alone when it likes: the leader need not be late. */
inline synchronize(u)
{
	cookie = started;
#ifdef SHARES_RUNNING
	if
	:: led -> skip
	:: else -> cookie++
	fi;
#else
	cookie++;
#endif
	do
	:: completed >= cookie -> break
	:: atomic { completed < cookie && !led -> led = true }; lead()
#if !defined(TRUSTS_LEADER) && !defined(POLL)
	:: u == NU - 1 && completed < cookie && led -> run_gp()
#endif
	od;
	cookie = 0
}

/* The updater takes a cookie and polls; a poller tries a grace period itself when there is no leader. */
inline poll_cookie()
{
	cookie = started;
#ifndef COOKIE_NOW
	cookie++;
#endif
	do
	:: completed >= cookie -> break
	:: atomic { completed < cookie && !led -> led = true }; lead()
	od;
	cookie = 0
}

#ifdef STOP
/* A leader stops for good: after it took the lead, after it took a number, or after it published that. */
proctype stopper()
{
	byte k, number;

	atomic { !led -> led = true };
	if
	:: d_step { number = started + 1; started = number };
		heavy();
		if
		:: publish()
		:: skip
		fi
	:: skip
	fi
}
#endif

proctype updater(byte u)
{
	byte k, top, number, cookie, n = 0;

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
		od;
#ifdef STOP
		run stopper()
#endif
	}
}
