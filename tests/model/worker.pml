/* SPDX-License-Identifier: MIT */
/* worker.pml - the worker sleeps without a time limit: is every queued object taken?
 *
 * CB3, as in src/worker.c and src/reclaim.c.  A producer queues (its store goes
 * through a store buffer), keeps only the compiler in order, reads whether the
 * worker sleeps and kicks it if so.  The worker says "asleep" (also through a
 * buffer), executes a heavy fence, looks at the queues again and sleeps by futex.
 * The producer's look may be early (a load before the store is visible is what the
 * buffer does).  An object that is never taken is an invalid end state.
 *
 * -DFULL: full-fence mode.  -DSTOP: the worker is told to stop while producers
 * still queue; whoever queues after that starts a new one.
 *
 * Wrong forms, each of which must fail:
 *   NO_HEAVY      CB3:heavy (with FULL: CB3:full)
 *   NO_LIGHT      CB3:full on the producer's side (with FULL)
 *   UNCHECKED     cb_sleep_unchecked
 *   FENCE_FIRST   the fence before "asleep" is said
 *   NO_KICK       the producer does not wake
 *   KICK_QUIET    the producer says "awake" but does not wake
 *   STOP_UNCHECKED the stopped worker does not look again (with STOP)
 */
#define NP 2
#ifndef NLOOP
#define NLOOP 2
#endif

byte queued[NP]; /* memory */
byte taken[NP];  /* the worker's own */
byte pending[NP]; /* in each producer's store buffer: the value of queued, 0 none */
bool asleep;      /* worker.sleep == ASLEEP, in memory */
bool asleep_held; /* still in the worker's store buffer */
bool in_futex;
bool running = true, stop;

inline drain(i)
{
	if
	:: pending[i] -> queued[i] = pending[i]; pending[i] = 0
	:: else
	fi
}

active proctype cpus()
{
end:
	do
	:: atomic { pending[0] -> drain(0) }
	:: atomic { pending[1] -> drain(1) }
	:: atomic { asleep_held -> asleep = true; asleep_held = false }
	od
}

inline start()
{
	if
	:: !running -> running = true; stop = false; run worker()
	:: else
	fi
}

proctype producer(byte i)
{
	byte n = 0;
	bool seen, none;

	do
	:: n < NLOOP ->
		n++;
		d_step { drain(i); pending[i] = n };
#ifdef FULL
#ifndef NO_LIGHT
		d_step { drain(i) };
#endif
#endif
		seen = asleep;
#ifdef STOP
		none = !running;
		if
		:: none -> atomic { drain(i); start() }
		:: else
		fi;
#endif
#ifndef NO_KICK
		if
		:: seen ->
			/* The exchange drains this CPU's buffer. */
			d_step { drain(i); seen = asleep; asleep = false };
#ifndef KICK_QUIET
			if
			:: seen -> in_futex = false
			:: else
			fi
#endif
		:: else
		fi;
#endif
		atomic { seen = false; none = false }
	:: else -> break
	od
}

#define work (queued[0] != taken[0] || queued[1] != taken[1])
#define all_taken (taken[0] == NLOOP && taken[1] == NLOOP)

inline heavy()
{
	d_step {
		if
		:: asleep_held -> asleep = true; asleep_held = false
		:: else
		fi
	};
#ifndef FULL
#ifndef NO_HEAVY
	d_step { drain(0) };
	d_step { drain(1) };
#endif
#endif
	skip
}

#if defined(FULL) && defined(NO_HEAVY)
#define fence() skip
#else
#define fence() heavy()
#endif

inline doze()
{
#ifdef UNCHECKED
	rest = !work;
#endif
#ifdef FENCE_FIRST
	fence();
#endif
	asleep_held = true;
#ifdef UNCHECKED
	fence();
#else
#ifndef FENCE_FIRST
	fence();
#endif
	rest = !work;
#endif
	if
	:: rest && !stop ->
		/* The system call is a full fence; it sleeps only while the word says so. */
		atomic {
			if
			:: asleep_held -> asleep = true; asleep_held = false
			:: else
			fi;
			in_futex = asleep
		};
endasleep:
		!in_futex
	:: else
	fi;
	d_step { asleep = false; asleep_held = false; rest = false }
}

proctype worker()
{
	bool rest, again;

	do
	:: stop -> break
	:: else ->
		if
		:: work -> d_step { taken[0] = queued[0]; taken[1] = queued[1] }
		:: !work -> doze()
		fi
	od;
#ifdef STOP
	running = false;
	heavy();
#ifndef STOP_UNCHECKED
	again = work;
	if
	:: again -> atomic { start() }
	:: else
	fi
#endif
#endif
	skip
}

#ifdef STOP
active proctype stopper()
{
	stop = true;
	do
	:: atomic { stop && asleep -> asleep = false; in_futex = false }
	:: !running || !stop -> break
	od
}
#endif

/* Everything that was queued has been taken when nobody can do anything any more. */
init
{
	atomic { run producer(0); run producer(1); run worker() };
	(all_taken)
}
