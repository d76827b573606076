/* SPDX-License-Identifier: MIT */
/* rcu_sync.pml - updaters that make readers slow, and a callback that makes them fast again.
 *
 * As in src/percpu/rcu_sync.c.  Each critical section of the lock is one step.  The reader is one of RCU's: it
 * loads the state in a section, and a grace period is the end of the section that was open when it
 * began.  A callback comes after a grace period.  Updaters enter and exit once or twice.  When all have
 * done so, rcu_sync_dtor() is called, in whatever state the machine is.
 *
 * Oracle: the reader is not in its fast path while an updater is inside (after enter, before exit); one callback
 * at most is under way; readers are fast again only after a grace period during which no updater exited;
 * after dtor nothing is left.  A wait that does not end is an invalid end state.
 * Each row of the table in rcu_sync.h has a row(), which the search must reach.
 *
 * Wrong forms, each of which must fail (label or guard of src/platform/mutants.h):
 *   NO_GP          the first enter does not wait for a grace period
 *   TRUSTS         sync_no_wait
 *   COUNT_IGNORED  sync_count_ignored
 *   NO_REPLAY      sync_no_replay
 *   QUEUES_TWICE   an exit queues the callback although it is under way
 *   QUEUES_NEVER   the last exit does not queue it
 *   TURN_KEPT      sleeping waiters are not woken for "passed"
 *   DTOR_EARLY     dtor does not wait for the callback
 *
 * Source: src/percpu/rcu_sync.c quiesce__rcu_sync_enter_begin quiesce__lock( ; set_state(rss, RCU_SYNC_ENTER) ; rss->gp_count + 1 ; quiesce__unlock(
 * Source: src/percpu/rcu_sync.c quiesce__rcu_sync_enter_end quiesce__rcu_sync_func(&rss->head) ; wait_until_passed(rss)
 * Source: src/percpu/rcu_sync.c quiesce__rcu_sync_func state = RCU_SYNC_PASSED ; state = RCU_SYNC_EXIT ; state = RCU_SYNC_IDLE ; set_state(rss, state) ; queue_callback(
 * Source: src/percpu/rcu_sync.c quiesce_rcu_sync_exit queue = rss->gp_state == RCU_SYNC_PASSED ; set_state(rss, queue ? RCU_SYNC_EXIT : RCU_SYNC_REPLAY) ; queue_callback(
 * Source: src/percpu/rcu_sync.c quiesce_rcu_sync_dtor set_state(rss, RCU_SYNC_EXIT) ; barrier(
 */
#ifndef NU
#define NU 3
#endif
#ifndef NLOOP
#define NLOOP 1 /* sections of all updaters but the first */
#endif
#ifndef NREAD
#define NREAD 1
#endif
mtype = { IDLE, ENTER, PASSED, EXIT, REPLAY };

mtype state = IDLE;
byte count, turn;
byte under_way;         /* callbacks queued, or about to be */
bool queued;            /* one is in the hands of RCU */
bool exited;            /* since it was queued; for the oracle */
byte inside, done;
bool in_section, fast, dead;
bit section;            /* number of the section, modulo 2 */

c_decl { \#include <stdio.h> }
/* Print each row once in the whole search; tests/model/run.py checks that each was printed. */
#define row(what) c_code { static int once; if (!once++) printf("row: %s\n", what); }

inline grace_period()
{
	d_step { was = in_section; number = section };
	!was || !in_section || section != number;
	d_step { was = false; number = 0 }
}

/* rcu_sync_func(), of which the last part is outside the lock */
inline func()
{
	atomic {
		assert(!dead);
		if
#ifdef COUNT_IGNORED
		:: false
#else
		:: count > 0 ->
			if
			:: state == ENTER -> row("callback in ENTER")
			:: state == EXIT -> row("callback in EXIT, updaters inside")
			:: state == REPLAY -> row("callback in REPLAY, updaters inside")
			fi;
			state = PASSED;
			under_way--;
#ifndef TURN_KEPT
			turn = (turn + 1) % 8
#endif
#endif
#ifdef NO_REPLAY
		:: false
#elif defined(COUNT_IGNORED)
		:: state == REPLAY ->
#else
		:: count == 0 && state == REPLAY ->
#endif
#ifndef NO_REPLAY
			row("callback in REPLAY, no updater inside");
			state = EXIT;
			again = true
#endif
#ifdef NO_REPLAY
		:: count == 0 ->
#elif defined(COUNT_IGNORED)
		:: state != REPLAY ->
#else
		:: count == 0 && state != REPLAY ->
#endif
			row("callback in EXIT, no updater inside");
			assert(!exited);
			state = IDLE;
			under_way--
		fi
	};
	if
	:: again -> atomic { queued = true; exited = false; again = false }
	:: else
	fi
}

active proctype callbacks()
{
	bool was, again;
	bit number;

end:
	do
	:: queued ->
		grace_period();
		queued = false;
		func()
	od
}

active proctype reader()
{
	byte n = 0;

	do
	:: n < NREAD ->
		in_section = true;
		atomic {
			if
			:: state == IDLE -> fast = true
			:: else
			fi;
			assert(!fast || inside == 0)
		};
		fast = false;
		atomic { in_section = false; section = !section; n++ }
	:: else -> break
	od
}

inline enter()
{
	atomic {
		if
		:: state == IDLE -> row("enter in IDLE"); state = ENTER; first = true; under_way++
		:: state == ENTER -> row("enter in ENTER")
		:: state == PASSED -> row("enter in PASSED")
		:: state == EXIT -> row("enter in EXIT")
		:: state == REPLAY -> row("enter in REPLAY")
		fi;
		assert(under_way <= 1);
		count++
	};
	if
	:: first ->
#ifndef NO_GP
		grace_period();
#endif
		first = false;
		func()
	:: else ->
#ifdef TRUSTS
		skip
#else
		do
		:: seen = turn;
			if
			:: state != ENTER -> break
			:: else -> turn != seen
			fi
		od;
		seen = 0
#endif
	fi
}

inline leave()
{
	atomic {
		inside--;
		count--;
		exited = true;
		if
		:: count > 0
		:: count == 0 && state == PASSED ->
			row("exit in PASSED");
			state = EXIT;
#ifndef QUEUES_NEVER
			under_way++;
			again = true
#endif
		:: count == 0 && state == EXIT ->
			row("exit in EXIT");
#ifdef QUEUES_TWICE
			under_way++;
			again = true;
#endif
			state = REPLAY
		:: count == 0 && state == REPLAY -> row("exit in REPLAY")
		:: count == 0 && (state == IDLE || state == ENTER) -> state = REPLAY /* in wrong forms */
		fi;
		assert(under_way <= 1)
	};
	if
	:: again -> atomic { assert(!queued); queued = true; exited = false; again = false }
	:: else
	fi
}

proctype updater(byte loops)
{
	bool was, first, again;
	bit number;
	byte seen, n = 0;

	do
	:: n < loops ->
		enter();
		atomic { inside++; assert(!fast) };
		assert(!fast);
		leave();
		n++
	:: else -> break
	od;
	done++
}

active proctype dtor()
{
	bool idle;

	done == NU;
	do
	:: atomic {
			if
			:: state == REPLAY -> row("dtor in REPLAY"); state = EXIT; exited = false
			:: else
			fi;
			idle = (state == IDLE);
			assert(idle || under_way == 1)
		};
		if
		:: idle -> break
		:: else ->
#ifdef DTOR_EARLY
			break
#else
			under_way == 0 || !queued /* the barrier; it does not know of one that is about to be queued */
#endif
		fi
	od;
	atomic { dead = true; assert(under_way == 0 && !queued) }
}

init
{
	atomic {
		run updater(2); run updater(NLOOP);
#if NU > 2
		run updater(NLOOP)
#endif
	}
}
