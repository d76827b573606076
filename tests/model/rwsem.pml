/* SPDX-License-Identifier: MIT */
/* rwsem.pml - a reader-writer lock whose readers count on their own CPU: exclusion, wake-ups, turns.
 *
 * As in src/percpu/percpu_rwsem.c.  A reader's count stays in the store buffer of its CPU until it drains by itself, or a
 * fence drains it; a heavy fence drains one CPU after the other.  A sum reads the counts of leaves, and
 * then those of entries.  Each critical section of the queue's lock is one step.  rcu_sync is taken as rcu_sync.pml
 * shows it to be: the first writer makes readers slow and fences, others wait for that, and some time after
 * the last one readers are fast again.  Sleeps without a deadline have no limit here, those of the writer that
 * drains included, so a lost wake-up is an invalid end state.
 *
 * Oracle: a writer is inside alone.  A thread that arrives while a writer waits in the queue does not enter before it.  The queue is
 * empty while no thread has block.  Every call returns.
 *
 * Settings: NR readers and NW writers, NLOOP times each; TIMEOUT: the waits of
 * the first reader and of the first writer may end without the lock.
 * Wrong forms, each of which must fail (label or guard of src/platform/mutants.h):
 *   NO_HEAVY         PW1:heavy
 *   NO_FENCE         PW1:full, the reader's
 *   LOOKS_FIRST      count_looks_first, of an entering reader
 *   PLAIN_FENCE      rwsem_plain_fence
 *   NO_DRAIN         rwsem_no_drain
 *   WAKE_LOST        rwsem_wake_lost
 *   BACKS_OUT        a reader that backs out does not wake the writer
 *   SLEEPS           the writer announces that it sleeps, and does so without another sum
 *   CLEARS_BLOCK     block is cleared although a writer is queued, and given to it
 *   UNCOUNTED        rwsem_grant_uncounted
 *   KEEPS_BLOCK      rwsem_keeps_block (with TIMEOUT)
 *   GIVES_UP         a waiter that gives up does not check whether it was just given the lock (with TIMEOUT)
 *
 * Source: src/percpu/percpu_rwsem.c quiesce__percpu_down_read_until quiesce_load_relaxed(&sem->block) ; quiesce__percpu_add( ; quiesce_fence_full(PW1) ; may_enter(sem) ; leave(sem) ; queue_reader(
 * Source: src/percpu/percpu_rwsem.c drain quiesce__waitq_prepare(word) ; inside(sem) ; platform_futex_wait(word, value
 * Source: src/percpu/percpu_rwsem.c admit_readers quiesce__percpu_add( ; grant(w) ; quiesce_store_release(PW3, &sem->wake_seq
 * Source: src/percpu/percpu.c quiesce__percpu_inside left ; entered
 */
#ifndef NR
#define NR 2
#endif
#ifndef NW
#define NW 2
#endif
#ifndef NLOOP
#define NLOOP 1
#endif
#define NP (NR + NW)
#define impatient(i) (i == 0 || i == NR)

/* Counts, and the store buffers before them. */
mtype = { NONE, ENTERED, LEFT };
byte entered, left;
mtype buffer[NR] = NONE;

/* rcu_sync */
mtype = { IDLE, ENTER, PASSED };
mtype state = IDLE;
byte updaters;

bool block, drain;
chan queue = [NP] of { byte };
bool given[NP];

/* The oracle alone uses these. */
byte reading, writing;
byte waits[NW], attempts[NW]; /* number of the attempt for which a writer is in the queue; 0: not in the queue */

inline drive_out(i)
{
	d_step {
		if
		:: buffer[i] == ENTERED -> entered++
		:: buffer[i] == LEFT -> left++
		:: else
		fi;
		buffer[i] = NONE
	}
}

inline put(i, what) { d_step { drive_out(i); buffer[i] = what } }

/* A CPU may empty its buffer at any time. */
active proctype cpus()
{
end:
	do
	:: atomic { buffer[0] != NONE -> drive_out(0) }
#if NR > 1
	:: atomic { buffer[1] != NONE -> drive_out(1) }
#endif
	od
}

/* The callback runs some time after the last writer. */
active proctype callbacks()
{
end:
	do
	:: atomic { state == PASSED && updaters == 0 -> state = IDLE }
	od
}

inline no_longer(i)
{
	if
	:: i >= NR -> waits[i - NR] = 0
	:: else
	fi
}

/* Wait until the lock is granted; or give up, if the caller may. */
inline wait_in_queue(me, got)
{
	if
	:: given[me] -> got = true
#ifdef TIMEOUT
	:: impatient(me) ->
#ifdef GIVES_UP
		atomic {
			if
			:: queue??[eval(me)] -> queue??eval(me)
			:: else
			fi;
			no_longer(me);
			got = false
		}
#else
		atomic {
			if
			:: queue??[eval(me)] -> queue??eval(me); no_longer(me); got = false
			:: else -> got = true
			fi
		};
		if
		:: got -> given[me]
		:: else
		fi
#endif
#endif
	fi;
	given[me] = false
}

/* ---- readers ---- */

inline wake_drainer()
{
#ifndef WAKE_LOST
	d_step {
		if
		:: drain -> drain = false
		:: else
		fi
	}
#else
	skip
#endif
}

/* Count a leave by a locked instruction. */
inline leave(i)
{
	d_step { drive_out(i); left++ };
#ifndef BACKS_OUT
	wake_drainer()
#endif
}

inline queue_reader(i, got)
{
	atomic {
		if
		:: !block -> assert(empty(queue)); entered++; got = true
		:: else -> queue!i; got = false
		fi
	};
	if
	:: !got -> wait_in_queue(i, got)
	:: else
	fi
}

inline down_read(i, got)
{
	got = false;
#if defined(LOOKS_FIRST) || defined(PLAIN_FENCE)
	got = (state == IDLE);
	if
	:: got -> put(i, ENTERED)
	:: else
	fi;
#else
	/* The state is loaded and the entry counted in one restartable sequence. */
	atomic { got = (state == IDLE); if :: got -> put(i, ENTERED) :: else fi };
#endif
	if
	:: got
	:: else ->
		put(i, ENTERED);
#ifndef NO_FENCE
		drive_out(i);
#endif
		if
		:: state == IDLE -> got = true
		:: !block -> got = true
		:: state != IDLE && block ->
			leave(i);
			queue_reader(i, got)
		fi
	fi
}

inline up_read(i)
{
#ifdef PLAIN_FENCE
	fast = (state == IDLE);
	if
	:: fast -> put(i, LEFT)
#else
	/* The state is loaded and the leave counted in one restartable sequence. */
	atomic { fast = (state == IDLE); if :: fast -> put(i, LEFT) :: else fi };
	if
	:: fast
#endif
	:: else ->
		put(i, LEFT);
		drive_out(i);
		wake_drainer()
	fi;
	fast = false
}

proctype reader(byte me)
{
	byte n = 0;
	bool got, fast;
	byte before[NW]; /* writers that waited when this reader came */

	do
	:: n < NLOOP ->
		d_step {
			before[0] = waits[0];
			before[NW - 1] = waits[NW - 1]
		};
		down_read(me, got);
		if
		:: got ->
			d_step {
				reading++;
				assert(writing == 0);
				assert(!before[0] || before[0] != waits[0]);
				assert(!before[NW - 1] || before[NW - 1] != waits[NW - 1]);
				before[0] = 0;
				before[NW - 1] = 0
			};
			reading--;
			up_read(me)
		:: else
		fi;
		n++
	:: else -> break
	od
}

/* ---- writers ---- */

inline heavy()
{
#ifndef NO_HEAVY
	drive_out(0);
#if NR > 1
	drive_out(1)
#endif
#else
	skip
#endif
}

inline sync_enter()
{
	atomic {
		updaters++;
		first = (state == IDLE);
		if
		:: first -> state = ENTER
		:: else
		fi
	};
	if
	:: first -> heavy(); atomic { state = PASSED; first = false }
	:: else -> state != ENTER
	fi
}

inline begin_write(me, got)
{
	atomic {
		if
		:: !block -> assert(empty(queue)); block = true; got = true
		:: else -> queue!me; attempts[me - NR]++; waits[me - NR] = attempts[me - NR]; got = false
		fi
	};
	if
	:: !got -> wait_in_queue(me, got)
	:: else
	fi
}

/* Sum the counts: leaves are read first. */
inline sum_counts(seen)
{
	sum = left;
	atomic { seen = (entered == sum); sum = 0 }
}

inline drain_readers(me, got)
{
#ifdef NO_DRAIN
	got = true;
#else
	sum_counts(got);
#endif
	do
	:: got -> break
	:: else ->
		drain = true;
#ifndef SLEEPS
		sum_counts(got);
		if
		:: got -> break
		:: else
		fi;
#endif
		if
		:: !drain
#ifdef TIMEOUT
		:: impatient(me) -> break
#endif
		fi;
#ifdef SLEEPS
		sum_counts(got)
#endif
	od;
	drain = false
}

/* Grant the lock to all readers at the head of the queue, and block to the writer behind them. */
inline end_write()
{
	updaters--;
	atomic {
		do
		:: nempty(queue) ->
			queue?<next>;
			if
			:: next < NR ->
				queue?next;
				given[next] = true;
#ifndef UNCOUNTED
				entered++
#endif
			:: else -> break
			fi
		:: empty(queue) -> break
		od;
		if
		:: nempty(queue) ->
			queue?next;
			waits[next - NR] = 0;
#ifdef CLEARS_BLOCK
			block = false
#endif
		:: empty(queue) -> next = NP; block = false
		fi
	};
	if
	:: next < NP -> given[next] = true
	:: else
	fi;
	next = 0
}

proctype writer(byte me)
{
	byte n = 0, next, sum;
	bool got, first;

	do
	:: n < NLOOP ->
		sync_enter();
		begin_write(me, got);
		if
		:: !got -> updaters--
		:: else ->
			drain_readers(me, got);
			if
			:: got ->
				atomic { writing++; assert(writing == 1 && reading == 0) };
				atomic { writing--; got = false };
				end_write()
			:: else ->
#ifdef KEEPS_BLOCK
				updaters--
#else
				end_write()
#endif
			fi
		fi;
		n++
	:: else -> break
	od
}

init
{
	atomic {
		run reader(0);
#if NR > 1
		run reader(1);
#endif
		run writer(NR);
#if NW > 1
		run writer(NR + 1)
#endif
	}
}
