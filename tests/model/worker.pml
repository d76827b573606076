/* SPDX-License-Identifier: MIT */
/* worker.pml - queues are listed when they have objects, and the worker sleeps without a time limit: every object must be taken.
 *
 * CB3, CB9 and CB6, as in src/rcu/reclaim.c, src/rcu/pass.c and src/rcu/worker.c.  A producer appends to its queue (its store goes
 * through a store buffer), executes a compiler barrier only, and reads whether its queue is listed.  If not it lists it
 * (read-modify-writes), and wakes the worker if that sleeps.  The worker takes the lists; it marks each queue as not
 * listed, takes a snapshot, executes the heavy fence of a grace period, takes the objects that the snapshot covers, and lists the
 * queue again if there is more.  With nothing listed it stores "asleep" (through a buffer, too), executes a fence of its
 * own, checks the lists again and sleeps by futex.  An object that is never taken is an invalid end state.
 *
 * -DFULL: full-fence mode.  -DSTOP: the worker is asked to stop while producers still queue; a producer that lists a queue after
 * that starts a new one.
 *
 * Wrong forms, each of which must fail:
 *   NO_HEAVY       RU1:heavy
 *   NO_LIGHT       CB3:full on the producer's side (with FULL)
 *   UNLISTED_UNCHECKED  cb_unlisted_unchecked
 *   SNAPSHOT_FIRST the snapshot before the queue is marked as not listed, and no check after the fence
 *   UNCHECKED      cb_sleep_unchecked
 *   NO_FENCE       CB9:full
 *   FENCE_FIRST    the fence before the store of "asleep"
 *   NO_WAKE        the producer does not wake
 *   WAKE_QUIET     the producer stores "awake" but does not wake
 *   STOP_UNCHECKED the stopped worker does not check again (with STOP)
 *
 * Source: src/rcu/reclaim.c finish_append quiesce_fence_mode(CB3) ; must_list(queue, callback) ; finish_slowly(
 * Source: src/rcu/reclaim.c finish_slowly list(queue, callback)
 * Source: src/rcu/reclaim.c wake_if_asleep quiesce_fence_full(CB9) ; quiesce_load_relaxed(&quiesce__worker.sleep) ; quiesce__worker_wake()
 * Source: src/rcu/pass.c take_queue quiesce_xchg(CB3, &queue->listed, QUIESCE_UNLISTED)
 * Source: src/rcu/worker.c worker_sleep quiesce_store_relaxed(&quiesce__worker.sleep, how) ; quiesce_fence_full(CB9) ; quiesce__queues_listed() ; platform_futex_wait(
 * Source: src/rcu/worker.c worker_exit quiesce_xchg(CB4, &quiesce__worker.running, QUIESCE_WORKER_NONE) ; quiesce_fence_full(CB9) ; quiesce__queues_listed() ; worker_start()
 */
#define NP 2
#ifndef NLOOP
#define NLOOP 2
#endif

byte queued[NP]; /* memory */
byte taken[NP];  /* the worker's own */
byte pending[NP]; /* in each producer's store buffer: the value of queued, 0 none */
bool listed[NP];
bool in_list[NP];
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

/* Wake the worker, after full fences: the exchange that listed the queue, and the fence before the check. */
inline wake_if_asleep()
{
#ifdef STOP
	none = !running;
	if
	:: none -> atomic { start() }
	:: else
	fi;
#endif
#ifndef NO_WAKE
	if
	:: asleep ->
		d_step { seen = asleep; asleep = false };
#ifndef WAKE_QUIET
		if
		:: seen -> in_futex = false
		:: else
		fi
#endif
	:: else
	fi;
#endif
	skip
}

proctype producer(byte i)
{
	byte n = 0;
	bool seen, none, mine;

	do
	:: n < NLOOP ->
		n++;
		d_step { drain(i); pending[i] = n };
#ifdef FULL
#ifndef NO_LIGHT
		d_step { drain(i) };
#endif
#endif
		seen = listed[i];
		if
		:: !seen ->
			d_step { drain(i); mine = !listed[i]; listed[i] = true };
			if
			:: mine -> in_list[i] = true; wake_if_asleep()
			:: else
			fi
		:: else
		fi;
		atomic { seen = false; none = false; mine = false }
	:: else -> break
	od
}

#define work (in_list[0] || in_list[1])
#define all_taken (taken[0] == NLOOP && taken[1] == NLOOP)

inline own_fence()
{
	d_step {
		if
		:: asleep_held -> asleep = true; asleep_held = false
		:: else
		fi
	}
}

/* The heavy fence of the grace period drains all buffers. */
inline heavy()
{
	own_fence();
#ifndef FULL
#ifndef NO_HEAVY
	d_step { drain(0) };
	d_step { drain(1) };
#endif
#endif
	skip
}

inline take(i)
{
	if
	:: in_list[i] ->
		in_list[i] = false;
#ifdef SNAPSHOT_FIRST
		snap[i] = queued[i];
		listed[i] = false;
#else
		listed[i] = false;
		snap[i] = queued[i];
#endif
		in_pass[i] = true
	:: else
	fi
}

inline settle(i)
{
	if
	:: in_pass[i] ->
		d_step { taken[i] = snap[i]; in_pass[i] = false };
#if !defined(UNLISTED_UNCHECKED) && !defined(SNAPSHOT_FIRST)
		if
		:: queued[i] != taken[i] ->
			d_step { again = !listed[i]; listed[i] = true };
			if
			:: again -> in_list[i] = true
			:: else
			fi;
			again = false
		:: else
		fi;
#endif
		snap[i] = 0
	:: else
	fi
}

inline pass()
{
	take(0);
	take(1);
	heavy();
	settle(0);
	settle(1)
}

#ifdef NO_FENCE
#define fence() skip
#else
#define fence() own_fence()
#endif

inline sleep()
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
		/* The system call is a full fence; it sleeps only while the word has its value. */
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
	byte snap[NP];
	bool in_pass[NP];

	do
	:: stop -> break
	:: else ->
		if
		:: work -> pass()
		:: !work -> sleep()
		fi
	od;
#ifdef STOP
	running = false;
	own_fence();
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

/* When no process can take a step any more, every queued object must have been taken. */
init
{
	atomic { run producer(0); run producer(1); run worker() };
	(all_taken)
}
