/* SPDX-License-Identifier: MIT */
/* wake.pml - a grace period that sleeps for readers: every sleep must end.
 *
 * As in src/rcu/holdouts.c: the updater counts a request in pending, sets wake_requested, then the
 * SLOW bit in the reader's mark by compare-and-exchange, loads the mark again
 * and sleeps while pending is not zero.  A reader whose outermost unlock sees SLOW
 * clears its mark, reads wake_requested after a fence, takes it, and the reader that lowers pending to zero wakes the updater.
 *
 * The reader's other stores to its mark are plain and go through a store buffer,
 * so a SLOW bit that arrives between its load and its store is lost.  Therefore a
 * sleep is timed and each scan requests again (the default here).  Forms:
 *   (none)      timed sleep, SLOW bits get lost: must end
 *   UNTIMED     untimed sleep, SLOW bits get lost: must hang, which shows why sleeps are timed
 *   UNTIMED, NO_LOSS   unlock in one step: the requests themselves lose nothing
 * Wrong forms, with UNTIMED and NO_LOSS, each of which must fail:
 *   WAKE_LOST      wake_lost
 *   NOTIFY_LAST    RU7: wake_requested set after the last load of the mark
 *   NO_SECOND_CHECK RU7: no load of the mark after the request
 *   PENDING_LATE   RU7: pending raised after wake_requested (goes below zero)
 *   EXIT_SILENT    exit_no_notify
 *
 * Source: src/rcu/holdouts.c request quiesce_fetch_add_relaxed(&pending, 1u) ; quiesce_xchg(RU7, &r->wake_requested, 1) ; quiesce__rcu_request(tls ; withdraw_request(r)
 * Source: src/rcu/rcu_gp.c quiesce__rcu_request quiesce_cmpxchg(RU7, &tls->rcu_word ; quiesce__rcu_blocks(tls, number)
 * Source: src/rcu/holdouts.c quiesce__holdouts_notify quiesce_fence_full(RU7) ; quiesce_load_relaxed(&r->wake_requested) ; quiesce_xchg(RU7, &r->wake_requested, 0) ; quiesce_fetch_add_relaxed(&pending, (uint32_t)-1) ; platform_futex_wake(&pending, 1)
 * Source: src/rcu/holdouts.c sleep_once quiesce_load_relaxed(&pending) ; platform_futex_wait(&pending, left, ns)
 */
#define NR 2
#ifndef NLOOP
#define NLOOP 1
#endif
#define SLOW 2

byte word[NR];   /* memory: 1 inside, SLOW added by the updater */
bool held[NR];   /* a store is in the reader's buffer */
byte stored[NR];
bool wake_requested[NR];
short pending;
bool asleep;

inline drain(i)
{
	if
	:: held[i] -> word[i] = stored[i]; held[i] = false; stored[i] = 0
	:: else
	fi
}
inline put(i, v) { d_step { drain(i); held[i] = true; stored[i] = v } }
#define own(i) (held[i] -> stored[i] : word[i])

active proctype cpus()
{
end:
	do
	:: atomic { held[0] -> drain(0) }
	:: atomic { held[1] -> drain(1) }
	od
}

/* A fence drains the buffer of its CPU; then a load, and an exchange if there is something to take. */
inline scan_notify(i)
{
	d_step { drain(i); mine = wake_requested[i] };
	if
	:: mine -> d_step { mine = wake_requested[i]; wake_requested[i] = false }
	:: else
	fi;
#ifdef WAKE_LOST
	mine = false;
#endif
	if
	:: mine ->
		d_step { pending--; last = (pending == 0); assert(pending >= 0) };
		if
		:: last -> asleep = false
		:: else
		fi
	:: else
	fi;
	d_step { mine = false; last = false }
}

proctype reader(byte i)
{
	byte w, n = 0;
	bool mine, last;

	do
	:: n < NLOOP ->
		atomic { put(i, 1) };
#ifdef NO_LOSS
		atomic { drain(i); w = own(i); word[i] = 0 };
#else
		w = own(i);
#endif
		if
		:: w & SLOW ->
#ifndef NO_LOSS
			put(i, 0);
#endif
			scan_notify(i)
		:: else ->
#ifndef NO_LOSS
			put(i, 0);
#endif
			skip
		fi;
		atomic { w = 0; n++ }
	:: else -> break
	od;
#ifdef EXIT
	/* The thread leaves by exit inside a section instead of unlocking. */
	put(i, 1);
	d_step { drain(i); word[i] = 0 };
#ifndef EXIT_SILENT
	scan_notify(i);
#endif
#endif
	skip
}

#define blocks(i) ((word[i] & 1) && must[i])

inline count_request(i)
{
	/* Asked before: it is counted already. */
	d_step { mine = wake_requested[i]; wake_requested[i] = true };
	if
	:: mine -> pending--
	:: else
	fi
}

inline ask(i)
{
#ifndef PENDING_LATE
	pending++;
#endif
#ifndef NOTIFY_LAST
	count_request(i);
#endif
	/* Compare and exchange, again and again while the mark blocks. */
	do
#ifdef NO_SECOND_CHECK
	:: d_step { word[i] & 1 -> word[i] = word[i] | SLOW }; still = true; break
	:: !(word[i] & 1) -> still = true; break
#else
	:: !blocks(i) -> still = false; break
	:: d_step { blocks(i) -> word[i] = word[i] | SLOW }; still = blocks(i); break
#endif
	od;
#ifdef PENDING_LATE
	pending++;
#endif
#ifdef NOTIFY_LAST
	count_request(i);
#endif
	if
	:: !still -> withdraw_request(i)
	:: else
	fi;
	atomic { mine = false; still = false }
}

inline withdraw_request(i)
{
	d_step { mine = wake_requested[i]; wake_requested[i] = false };
	if
	:: mine -> pending--
	:: else
	fi
}

inline sleep()
{
	left = pending;
	if
	:: left == 0 -> skip
	:: else ->
		/* The futex sleeps only if the word has not changed. */
		atomic {
			if
			:: pending == left -> asleep = true
			:: else
			fi
		};
		if
		:: !asleep
#ifndef UNTIMED
		:: asleep = false
#endif
		fi
	fi;
	left = 0
}

active proctype updater()
{
	byte k = 0;
	bool must[NR], mine, still;
	short left = 0;

	/* The heavy fence: the updater has to wait for each reader that is inside now. */
	atomic {
		drain(0); drain(1);
		must[0] = word[0] & 1; must[1] = word[1] & 1
	};
	do
	:: !blocks(0) && !blocks(1) -> break
	:: else ->
		k = 0;
		do
		:: k < NR && blocks(k) -> ask(k); k++
		:: k < NR && !blocks(k) -> must[k] = false; k++
		:: k == NR -> break
		od;
		if
		:: blocks(0) || blocks(1) -> sleep()
		:: else
		fi
	od;
	k = 0;
	do
	:: k < NR -> withdraw_request(k); k++
	:: else -> break
	od
}

init
{
	atomic { run reader(0); run reader(1) }
}
