/* SPDX-License-Identifier: MIT */
/* platform.h - everything the library needs of an operating system and a CPU, on one page.
 *
 * linux/ implements it on Linux (glibc and musl), sim/ inside the simulator.  Nothing outside src/platform/
 * includes an OS header or contains an #ifdef on OS or CPU.  No function here allocates from the heap, except
 * platform_lines_get() and platform_block_get().  Functions return 0 or -errno unless their comment says
 * otherwise.
 */
#ifndef QUIESCE_PLATFORM_H
#define QUIESCE_PLATFORM_H

#include <quiesce/atomic.h>
#include <stdbool.h>
#include <sys/types.h>

/* True if this mutant of src/platform/mutants.h is switched on.  Simulator and torture builds replace this
 * definition. */
#ifndef QUIESCE_MUTANT
#define QUIESCE_MUTANT(name) 0
#endif

/* ---- fences: light on the reader, heavy on the updater ---- */

/* Register for the expedited membarrier, and check that the kernel does not merely accept every call:
 * commands that must be refused have to be refused.  Returns 0, or the reason why light readers are
 * impossible (-ENOSYS, -EPERM, -EINVAL; -EREMOTEIO for a membarrier that accepts invalid commands). */
int platform_membarrier_init(void);

/* Every thread of this process executes a full fence between this call's start and its return, and so does
 * the caller.  0 or -errno; -ESTALE: the process was restored from a checkpoint that has lost the threads'
 * restartable sequences, so what they have done since cannot be trusted. */
int platform_membarrier(void);
/* The same for a caller that must not wait: one attempt, whose error may be temporary or that of this thread alone. */
int platform_try_membarrier(void);

/* A membarrier that also restarts the restartable sequence of every thread that is inside one.  -ENOSYS where
 * the kernel cannot; the first call may fail for want of memory. */
int platform_membarrier_restart(void);

/* A membarrier without the system call: the caller runs on each CPU in turn where a thread of the process
 * was.  It takes milliseconds, and as long as threads of a higher priority occupy such a CPU.  0 or -errno. */
int platform_fence_by_turns(void);

/* ---- sleeping ---- */

#define PLATFORM_FOREVER UINT64_MAX

/* Sleep while *@word == @value, at most @timeout_ns.  0: woken, or the value differed; -ETIMEDOUT. May return
 * early for no reason.  This call and platform_futex_wake() are full fences. */
int platform_futex_wait(uint32_t *word, uint32_t value, uint64_t timeout_ns);
/* platform_futex_wait() for a word that is woken by code which does not know that it belongs to one process. */
int platform_futex_wait_shared(uint32_t *word, uint32_t value, uint64_t timeout_ns);
/* Returns the number of threads woken. */
uint32_t platform_futex_wake(uint32_t *word, uint32_t nr_threads);
/* Take or release the lock in @word, with priority inheritance: the word is 0, or the holder's thread id, and
 * bit 31 if a thread sleeps.  @tid: the caller's.  0, or -ENOSYS where the kernel has none: always or never. */
int platform_lock_pi(uint32_t *word, uint32_t tid);
int platform_unlock_pi(uint32_t *word);
void platform_yield(void);
/* Monotonic; advances at least as fast as sleeps do, even where the system's clock stands still. */
uint64_t platform_now_ns(void);

/* ---- threads ---- */

uint32_t platform_tid(void);
/* True if the caller's thread id belongs to this process: not in a child that shares memory with it
 * (vfork()), where it belongs to no thread once that child is gone. */
bool platform_in_process(void);
/* In a child of fork(), which has a copy of the memory and another process id: call this before any thread id
 * is recorded. */
void platform_process_begin(void);
/* True if thread @tid of this process may still run.  False only when it is certainly gone: never where the
 * process has been restored from a checkpoint under another id, because then its threads have other ids, too. */
bool platform_thread_alive(uint32_t tid);
/* The kernel's letter for the state of thread @tid: R runs or waits for a CPU, S and D sleep, T and t are
 * stopped; ? is unknown. */
char platform_thread_state(uint32_t tid);
/* Copy the name of @tid into @name (16 bytes), "?" when unknown. */
void platform_thread_name(uint32_t tid, char name[16]);
/* Describe the code at @at by its file and offset, "0x7f... (libx.so+0x123)", or only by its address. */
void platform_describe_code(const void *at, char *text, size_t size);
/* A set of CPUs, as the kernel's calls take it. */
#define PLATFORM_CPUS_PER_WORD (8 * sizeof(unsigned long))
#define PLATFORM_CPU_WORDS (8192 / PLATFORM_CPUS_PER_WORD)
struct platform_cpus { unsigned long bits[PLATFORM_CPU_WORDS]; };
/* The CPUs on which the process, that is its first thread, may run. */
void platform_cpus_of_process(struct platform_cpus *ret);
/* The CPUs of a list in /sys/devices/system/@file; false if there is none. */
bool platform_cpus_of_list(const char *file, struct platform_cpus *ret);
/* This structure has the scheduling parameters of a thread. */
struct platform_thread { int policy, priority, nice; struct platform_cpus cpus; };
/* Start a thread with every signal blocked except those that its own instructions raise (SIGSEGV, SIGBUS,
 * SIGFPE, SIGILL, SIGTRAP), because callbacks are code of the program.  It has its policy and priority before
 * it runs; parameters that are refused are left out.  Does not wait for the thread, which reads @start. */
struct platform_start { void (*fn)(void *arg); void *arg; };
int platform_thread_start(const struct platform_start *start, const struct platform_thread *how, pthread_t *ret);
/* Finish the start of a thread: set its CPUs, without its participation, and detach it.  The thread must not have
 * ended: the C libraries would then set the CPUs of the caller. */
void platform_thread_settle(pthread_t thread, const struct platform_thread *how);
/* Start a thread that the caller joins or detaches; its fault signals stay blocked until
 * platform_thread_begin(). */
int platform_thread_create(pthread_t *ret, void *(*fn)(void *arg), void *arg, const struct platform_thread *how);
/* The part of a start that only the new thread can do; and its CPUs again, in case that others were set since
 * its start, unless @how has none. */
void platform_thread_begin(const char *name, const struct platform_thread *how);
/* Change the scheduling parameters of thread @tid, 0: of none.  0 or -errno. */
int platform_thread_change(uint32_t tid, const struct platform_thread *how, const char *name);
/* Call hooks.thread_exit() when the calling thread exits.  Signal-safe.  -EAGAIN when that cannot be
 * guaranteed. */
int platform_arm_thread_exit(void);
/* Call @code(@arg).  If the thread ends in it, by pthread_exit() or because it is cancelled, @ended(@arg) is
 * called, and the thread continues to end; the destructors of its keys run after that.  An exception that
 * leaves @code ends the process. */
void platform_run(void (*code)(void *arg), void (*ended)(void *arg), void *arg);
/* Set whether the calling thread may be cancelled; returns the former setting. */
bool platform_set_cancelable(bool may);
/* Block all signals; @ret_old is for platform_signals_restore(). */
struct platform_sigmask { uint64_t bits[16]; };
void platform_signals_block(struct platform_sigmask *ret_old);
void platform_signals_restore(const struct platform_sigmask *old);

/* ---- process ---- */

/* Install hooks, once: one is called before fork(), one after it in each of the two processes, one when a
 * thread exits that has requested it (platform_arm_thread_exit()), and one when an exception leaves code that
 * platform_run() has called. */
struct platform_hooks { void (*fork_prepare)(void), (*fork_parent)(void), (*fork_child)(void), (*thread_exit)(void), (*exception)(void); };
int platform_init(const struct platform_hooks *hooks);
/* Words that the kernel zeroes in each child that the process forks, by any means, before the child runs;
 * NULL: not supported. */
struct platform_canary { uint32_t intact, repair; const void *by; };
struct platform_canary *platform_canary(void);
/* True if the caller is the first thread of the process. */
bool platform_is_first_thread(void);
/* Reserve @bytes of address space, which cost no memory until committed; NULL on failure. */
void *platform_reserve(size_t bytes);
int platform_commit(void *start, size_t bytes);
void platform_release(void *start, size_t bytes);
/* Reserve @bytes of address space, to be committed, where the space up to @max is likely to stay free; NULL
 * on failure. */
void *platform_arena_reserve(size_t bytes, size_t max);
/* Map new pages at @start, which follows an arena; 0 or -errno: -EEXIST if another mapping is there. */
int platform_arena_extend(void *start, size_t bytes);
/* Get zeroed pages, and return them. */
void *platform_pages_get(size_t bytes);
void platform_pages_put(void *start, size_t bytes);
/* Pages begin to have objects of the program, which checkers of leaks read; or have none any more: their memory is the
 * system's, and the next access finds zeroed pages. */
void platform_objects_begin(void *start, size_t bytes);
void platform_objects_end(void *start, size_t bytes);
/* True if the program is built with a sanitizer of addresses, which reports accesses of poisoned memory. */
bool platform_poisons(void);
void platform_poison(const void *start, size_t bytes, bool on);
/* Get memory from the heap, not zeroed, and return it. */
void *platform_block_get(size_t bytes);
void platform_block_put(void *start, size_t bytes);
/* Get zeroed memory, aligned to a cache line, from the heap unless it is large, and return it. */
void *platform_lines_get(size_t bytes);
void platform_lines_put(void *start, size_t bytes);

/* A random number, as unpredictable as the system can provide. */
uint64_t platform_random(void);

/* Returns the number of copies of the library in this process. */
int platform_count_copies(void);
const char *platform_getenv(const char *name); /* returns NULL in setuid programs */
void platform_free(void *object);              /* calls the process's free() */
/* Format a code address for a message: "libfoo.so+0x1234", as `addr2line -i` takes it.  Returns the text. */
struct platform_location { char text[120]; };
const char *platform_location(const void *address, struct platform_location *ret);
void platform_write_stderr(const char *text, size_t length);
void platform_die(void) __attribute__((noreturn));

/* ---- topology and restartable sequences ---- */

int platform_nr_possible_cpus(void);
/* An upper bound of the numbers that the kernel gives to CPUs, and to threads as concurrency ids, on this
 * machine; *@ret_max: of those that it can possibly give.  Not reentrant. */
size_t platform_nr_ids(size_t *ret_max);

/* Returns the CPU of the caller; 0 when unknown. */
uint32_t platform_cpu(void);
/* The CPU on which a thread runs, or ran last.  The thread exists, and its thread-local variables are
 * @distance bytes from the caller's. */
#define PLATFORM_NO_CPU UINT32_MAX
uint32_t platform_cpu_of(int64_t distance);

enum platform_rseq_kind {
	PLATFORM_RSEQ_NONE,   /* no rseq area, or one with another owner */
	PLATFORM_RSEQ_CPU_ID, /* rseq works, and has CPU numbers */
	PLATFORM_RSEQ_MM_CID, /* rseq works, and has CPU numbers and concurrency ids */
};
enum platform_rseq_kind platform_rseq_kind(void);
/* Distance from the thread pointer to the rseq area, and to the id in it; 0 where there is none. */
int64_t platform_rseq_area(void);
int64_t platform_rseq_id(bool mm_cid);

#endif
