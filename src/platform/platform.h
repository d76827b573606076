/* SPDX-License-Identifier: MIT */
/* platform.h - everything the library asks of an operating system and a CPU, on one page.
 *
 * linux/ implements it on Linux (glibc and musl), sim/ inside the simulator.
 * Nothing outside src/platform/ includes an OS header or contains an #ifdef on
 * OS or CPU.  No function here but platform_lines_get() and platform_block_get() allocates from the heap.  Functions return 0 or
 * -errno unless their comment says otherwise.
 */
#ifndef QUIESCE_PLATFORM_H
#define QUIESCE_PLATFORM_H

#include <quiesce/atomic.h>
#include <stdbool.h>
#include <sys/types.h>

/* Is this mutant of src/platform/mutants.h switched on?  Only in simulator and torture builds, which say so themselves. */
#ifndef QUIESCE_MUTANT
#define QUIESCE_MUTANT(name) 0
#endif

/* ---- fences: light on the reader, heavy on the updater ---- */

/* Register for the expedited membarrier and make sure that the kernel does not
 * only say yes: commands that must be refused have to be refused.  Returns 0, or
 * why light readers are impossible here (-ENOSYS, -EPERM, -EINVAL, -EREMOTEIO
 * for a membarrier that accepts nonsense). */
int platform_membarrier_init(void);

/* Every thread of this process executes a full fence between this call's start
 * and its return, and so does the caller.  0 or -errno; -ESTALE: the process was restored from a checkpoint that has lost
 * the threads' restartable sequences, so what they have done since is not to be trusted. */
int platform_membarrier(void);

/* The same, and every thread that is inside a restartable sequence begins it anew.  -ENOSYS where the
 * kernel cannot; asked for the first time, it may fail for want of memory. */
int platform_membarrier_restart(void);

/* The same where the system call has been taken away: the caller takes a turn on each CPU where a thread of the process was.
 * It takes milliseconds, and as long as threads of a higher priority keep such a CPU.  0 or -errno. */
int platform_fence_by_turns(void);

/* ---- sleeping ---- */

#define PLATFORM_FOREVER UINT64_MAX

/* Sleep while *@word == @value, at most @timeout_ns.  0 woken or value differed,
 * -ETIMEDOUT.  May return early for no reason.  Both calls are full fences. */
int platform_futex_wait(uint32_t *word, uint32_t value, uint64_t timeout_ns);
/* The same for a word that is woken by code which does not know that it belongs to one process. */
int platform_futex_wait_shared(uint32_t *word, uint32_t value, uint64_t timeout_ns);
/* Returns how many were woken. */
uint32_t platform_futex_wake(uint32_t *word, uint32_t nr_threads);
/* Take the lock in @word, or give it back, with inheritance of priority: the word is 0, or the number of the thread that
 * holds it, and bit 31 if somebody sleeps.  @tid: the caller's.  0, or -ENOSYS where that cannot be had: always or never. */
int platform_lock_pi(uint32_t *word, uint32_t tid);
int platform_unlock_pi(uint32_t *word);
void platform_yield(void);
/* Monotonic, and not slower than sleeps are, even where the clock stands still. */
uint64_t platform_now_ns(void);

/* ---- threads ---- */

uint32_t platform_tid(void);
/* Is the caller's number one of this process's?  Not in a child that shares our memory (vfork()), where it is nobody's once that
 * child has gone. */
bool platform_in_process(void);
/* In a child of fork(), which has our memory and another number, before it notes a thread. */
void platform_process_begin(void);
/* May thread @tid of this process still run?  False only when it is certainly gone: never where the process has been restored
 * from a checkpoint under another number, as then threads have others, too. */
bool platform_thread_alive(uint32_t tid);
/* The kernel's letter for what thread @tid does: R runs or waits for a CPU, S and D sleep, T and t are stopped; ? is not known. */
char platform_thread_state(uint32_t tid);
/* Copy the name of @tid into @name (16 bytes), "?" when unknown. */
void platform_thread_name(uint32_t tid, char name[16]);
/* Say where in which file the code at @at comes from, "0x7f... (libx.so+0x123)", or only its address. */
void platform_describe_code(const void *at, char *text, size_t size);
/* CPUs as bits, as the kernel's calls take them. */
#define PLATFORM_CPUS_PER_WORD (8 * sizeof(unsigned long))
#define PLATFORM_CPU_WORDS (8192 / PLATFORM_CPUS_PER_WORD)
struct platform_cpus { unsigned long bits[PLATFORM_CPU_WORDS]; };
/* Those that the process, that is its first thread, may run on. */
void platform_cpus_of_process(struct platform_cpus *ret);
/* Those of a list in /sys/devices/system/@file; false if there is none. */
bool platform_cpus_of_list(const char *file, struct platform_cpus *ret);
/* How a thread runs. */
struct platform_thread { int policy, priority, nice; struct platform_cpus cpus; };
/* Start a thread with every signal blocked but those that an instruction of its own raises (SIGSEGV, SIGBUS,
 * SIGFPE, SIGILL, SIGTRAP), because callbacks are the program's code.  It has its policy and priority before it runs; what is
 * refused is left out.  Does not wait for the thread, which reads @start. */
struct platform_start { void (*fn)(void *arg); void *arg; };
int platform_thread_start(const struct platform_start *start, const struct platform_thread *how, pthread_t *ret);
/* The rest of its start: give it its CPUs, without its own doing, and detach it.  The thread has not ended: to the C libraries one that
 * has is the caller. */
void platform_thread_settle(pthread_t thread, const struct platform_thread *how);
/* The same for one that the caller joins or detaches, and which has its faults blocked until it begins. */
int platform_thread_create(pthread_t *ret, void *(*fn)(void *arg), void *arg, const struct platform_thread *how);
/* What only the new thread can do to itself; and its CPUs, in case that others were chosen since its start, unless @how has none. */
void platform_thread_begin(const char *name, const struct platform_thread *how);
/* Let thread @tid, 0: none, run like this from now on.  0 or -errno. */
int platform_thread_change(uint32_t tid, const struct platform_thread *how, const char *name);
/* Call hooks.thread_exit() when the calling thread exits.  Signal-safe.
 * -EAGAIN when that cannot be promised. */
int platform_arm_thread_exit(void);
/* Call @code(@arg).  If the thread ends in it, by pthread_exit() or because it is cancelled, @ended(@arg) is called, and the
 * thread goes on ending; the destructors of its keys are called after that.  An exception that leaves @code ends the process. */
void platform_run(void (*code)(void *arg), void (*ended)(void *arg), void *arg);
/* May the calling thread be cancelled?  Returns what was. */
bool platform_set_cancelable(bool may);
/* Block all signals and return a token for platform_signals_restore(). */
struct platform_sigmask { uint64_t bits[16]; };
void platform_signals_block(struct platform_sigmask *ret_old);
void platform_signals_restore(const struct platform_sigmask *old);

/* ---- process ---- */

/* Install these, of which one is called before fork(), one after it in each of the processes, one when a thread exits that has
 * asked for it (platform_arm_thread_exit()), and one when an exception leaves code that platform_run() has called; once. */
struct platform_hooks { void (*fork_prepare)(void), (*fork_parent)(void), (*fork_child)(void), (*thread_exit)(void), (*exception)(void); };
int platform_init(const struct platform_hooks *hooks);
/* Words that the kernel zeroes in each child that the process forks, by any means, before it runs; NULL: it cannot. */
struct platform_canary { uint32_t whole, repair; const void *by; };
struct platform_canary *platform_canary(void);
/* Is the caller the thread that the process began with? */
bool platform_is_first_thread(void);
/* Reserve @bytes of address space that cost no memory until committed; NULL on failure. */
void *platform_reserve(size_t bytes);
int platform_commit(void *start, size_t bytes);
void platform_release(void *start, size_t bytes);
/* Reserve @bytes, to be committed, of @most, where what follows them is likely to stay free; NULL on failure. */
void *platform_room(size_t bytes, size_t most);
/* Put fresh pages at @start, which follows a room; 0 or -errno: -EEXIST if there is anything. */
int platform_room_extend(void *start, size_t bytes);
/* Fresh zeroed pages, and their return. */
void *platform_pages_get(size_t bytes);
void platform_pages_put(void *start, size_t bytes);
/* Memory from the heap, not cleared, and its return. */
void *platform_block_get(size_t bytes);
void platform_block_put(void *start, size_t bytes);
/* Zeroed memory aligned to a cache line, from the heap unless there is much of it, and its return. */
void *platform_lines_get(size_t bytes);
void platform_lines_put(void *start, size_t bytes);

/* A number that nobody can foresee, as well as this system can. */
uint64_t platform_random(void);

/* More than one copy of the library in this process?  Returns how many. */
int platform_count_copies(void);
const char *platform_getenv(const char *name); /* NULL in setuid programs */
void platform_free(void *object);              /* the process's free() */
/* Where in the code an address is, for a message: "libfoo.so+0x1234", as addr2line takes it.  Returns the text. */
struct platform_place { char text[120]; };
const char *platform_place(const void *address, struct platform_place *ret);
void platform_write_stderr(const char *text, size_t length);
void platform_die(void) __attribute__((noreturn));

/* ---- topology and restartable sequences ---- */

int platform_nr_possible_cpus(void);
/* More than any number that the kernel gives to a CPU, or to a thread as its concurrency id, as it says itself; *@ret_max:
 * than it can possibly give.  Not reentrant. */
size_t platform_nr_ids(size_t *ret_max);

/* The CPU of the caller, 0 when unknown. */
uint32_t platform_cpu(void);
/* The CPU that the thread runs on, or ran on last, whose variables of the thread are @distance bytes from the
 * caller's.  It exists. */
#define PLATFORM_NO_CPU UINT32_MAX
uint32_t platform_cpu_of(int64_t distance);

enum platform_rseq_kind {
	PLATFORM_RSEQ_NONE,   /* no rseq area, or one that somebody else owns */
	PLATFORM_RSEQ_CPU_ID, /* rseq works; it knows CPU numbers */
	PLATFORM_RSEQ_MM_CID, /* and concurrency ids */
};
enum platform_rseq_kind platform_rseq_kind(void);
/* From a thread's pointer to its rseq area, and to the id in it; 0 where there is none. */
int64_t platform_rseq_area(void);
int64_t platform_rseq_id(bool mm_cid);

#endif
