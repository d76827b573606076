/* SPDX-License-Identifier: MIT */
/* lead.pml - the leader that scans for waiters for hazard pointers: no waiter may be forgotten.
 *
 * As in src/shazptr/shazptr_wait.c: a caller queues and leads if there is no leader; a leader that stops while
 * a waiter is left passes leading on, under the lock, to the scan thread or, if there is none, to
 * a waiter.  The thread sleeps while there is nothing to lead; it may fail to start, and it
 * is asked to end at any time.  The result of a scan is left open: each waiter is completed or not.
 * Sleeps of a leader have a limit, so they are not modelled.  Those of the others have one too, after which they scan in place
 * of the leader: with LATE that happens once, at any time, and each caller must end without a second timeout.
 * A caller that never returns is an invalid end state.
 *
 * Settings: NW callers; SKIP: callers that leave the first scan to the thread; FAILS: the thread
 * may fail to start; STOP: it is asked to end once; LATE: see above.
 * Wrong forms, each of which must fail:
 *   TRUSTS      a leader that passes leading on to the thread does not check that it is still running (with STOP)
 *   LEAVES      the thread does not check for waiters after it has announced its end (with STOP)
 *   SKIP_TRUSTS a caller that queues without leading does not check that the thread is still running (with SKIP, STOP)
 *   NO_WAKE    a leader that passes on to the thread does not wake it
 *   IDLE_LATE   the thread announces that it is idle after it has released the lock
 *   COMPLETED_LEADS  a waiter that is made the leader, and completed before it leads, still counts as the leader (with LATE)
 *   KEEPS       a leader that stops checks for waiters before it takes the lock
 *
 * Source: src/shazptr/shazptr_wait.c join_queue quiesce__lock( ; quiesce__shazptr_scan.queue = me ; leads = may_lead && !quiesce__shazptr_scan.leading ; quiesce__unlock(
 * Source: src/shazptr/shazptr_wait.c stop_leading keep_or_drop_lead() ; pass_lead() ; !quiesce__shazptr_thread_running() && take_lead_if_needed()
 * Source: src/shazptr/shazptr_wait.c pass_lead ensure_thread() ; quiesce__lock( ; quiesce__shazptr_complete(next, QUIESCE_LEADS ; quiesce__unlock( ; wake_thread()
 * Source: src/shazptr/shazptr_wait.c thread_exit quiesce_store_relaxed(&quiesce__shazptr_scan.running, 0) ; take_lead_if_needed() ; stop_leading()
 * Source: src/shazptr/shazptr_wait.c wait_for_completion quiesce_cmpxchg(SH5 ; QUIESCE_COMPLETED ; QUIESCE_LEADS ; scan_for_leader( ; platform_futex_wait(&me->state, QUIESCE_WAITS_ASLEEP
 */
#ifndef NW
#define NW 2
#endif
#define WAITS 0
#define ASLEEP 1
#define LEADS 2
#define COMPLETED 3

bool queued[NW], listed[NW];
byte state[NW];
bool leading, idle, running, stop;
#ifdef LATE
bool scanned_instead;
#else
bool scanned_instead = true;
#endif

#if NW == 2
#define any_left (queued[0] || queued[1] || listed[0] || listed[1])
#else
#define any_left (queued[0] || queued[1] || queued[2] || listed[0] || listed[1] || listed[2])
#endif

#ifdef COMPLETED_LEADS
#define stays_leading(w) leading
#else
#define stays_leading(w) (leading && state[w] != LEADS)
#endif

/* One scan, under the lock: the queue joins the list, then each waiter is completed or not. */
inline scan()
{
	atomic {
		k = 0;
		do
		:: k < NW ->
			listed[k] = listed[k] || queued[k];
			queued[k] = false;
			if
			:: listed[k] ->
				listed[k] = false;
				leading = stays_leading(k);
				state[k] = COMPLETED
			:: skip
			fi;
			k++
		:: else -> break
		od;
		k = 0
	}
}

inline wake_thread()
{
#ifdef NO_WAKE
	skip
#else
	idle = false
#endif
}

inline ensure_thread(r)
{
	if
	:: running -> r = true
#ifdef FAILS
	:: !running -> r = false /* the start is not retried so soon */
#endif
	:: !running ->
		if
		:: atomic { running -> r = true }
		:: atomic { !running -> running = true; r = false };
			stop = false;
			if
			:: atomic { r = true; run thread() }
#ifdef FAILS
			:: running = false
#endif
			fi
		fi
	fi
}

inline take_lead_if_needed(r)
{
	atomic { r = !leading && any_left; leading = leading || r }
}

inline pass_lead(r)
{
	ensure_thread(r);
	atomic {
		next = NW;
		if
		:: !r ->
			if
			:: queued[0] || listed[0] -> next = 0
			:: queued[1] || listed[1] -> next = 1
#if NW > 2
			:: queued[2] || listed[2] -> next = 2
#endif
			:: else /* all have been completed meanwhile */
			fi
		:: else
		fi;
		leading = (next < NW);
		if
		:: leading -> state[next] = LEADS
		:: else
		fi
	};
	if
	:: next < NW
	:: else -> wake_thread()
	fi;
	next = 0
}

inline stop_leading(r)
{
	do
	::
#ifdef KEEPS
		r = any_left;
		leading = r;
#else
		atomic { r = any_left; leading = r };
#endif
		if
		:: r ->
			pass_lead(r);
#ifdef TRUSTS
			r = false
#else
			if
			:: running -> r = false
			:: else -> take_lead_if_needed(r)
			fi
#endif
		:: else
		fi;
		if
		:: r
		:: else -> break
		fi
	od
}

/* The leader may stop after any number of scans, unless there is no thread to take over. */
proctype caller(byte me; bool skips)
{
	byte k = 0, next = 0;
	bool r = false;

	if
	:: skips -> ensure_thread(r)
	:: else
	fi;
	atomic {
		queued[me] = true;
		r = !r && !leading;
		leading = leading || r
	};
	if
	:: r ->
		do
		:: scan()
		:: break
		od;
		stop_leading(r)
	:: else ->
		wake_thread();
#ifndef SKIP_TRUSTS
		if
		:: running
		:: else ->
			take_lead_if_needed(r);
			if
			:: r -> stop_leading(r)
			:: else
			fi
		fi
#endif
	fi;
	do
	:: atomic {
			if
			:: state[me] == WAITS -> state[me] = ASLEEP
			:: else
			fi
		};
		if
		:: state[me] == COMPLETED -> break
		:: atomic { state[me] == LEADS -> state[me] = WAITS }; r = true
		:: atomic { !scanned_instead && state[me] == ASLEEP -> scanned_instead = true };
			scan();
			take_lead_if_needed(r)
		fi;
		if
		:: r ->
			do
			:: scan();
				if
				:: state[me] == COMPLETED || !any_left -> break
				:: else
				fi
			od;
			stop_leading(r)
		:: else
		fi
	od
}

proctype thread()
{
	byte k = 0, next = 0;
	bool r;

	do
	:: stop -> break
	:: else ->
#ifdef IDLE_LATE
		atomic { r = !leading && any_left; leading = leading || r };
		idle = !r;
#else
		atomic { r = !leading && any_left; leading = leading || r; idle = !r };
#endif
		if
		:: r ->
			do
			:: any_left -> scan()
			:: else ->
				atomic { r = any_left; leading = r };
				if
				:: r
				:: else -> break
				fi
			od
		:: else ->
endidle:		!idle
		fi
	od;
	running = false;
#ifndef LEAVES
	take_lead_if_needed(r);
	if
	:: r -> stop_leading(r)
	:: else
	fi
#endif
	skip
}

#ifdef STOP
proctype stopper()
{
	stop = true;
	do
	:: running && stop -> idle = false
	:: else -> break
	od
}
#endif

init
{
	atomic {
#ifdef SKIP
		run caller(0, true); run caller(1, true);
#else
		run caller(0, false); run caller(1, false);
#endif
#if NW > 2
		run caller(2, false);
#endif
#ifdef STOP
		run stopper()
#endif
	}
}
