/* SPDX-License-Identifier: MIT */
/* machine.h - a modelled machine of up to 256 CPUs that counts what the library costs on it.
 *
 * The library's own sources run on it, with the constants and the layout of production.  The compiler calls a function of
 * hooks.c before each access of memory.  lines.c keeps for each cache line which CPUs have a copy, and counts what moves.
 * machine.c runs the threads one at a time: always the CPU whose clock is the earliest, so that a run is the same each time.
 * platform-scale.c is the system: sleeping, membarrier, memory, threads.
 *
 * Memory is sequentially consistent: the machine counts, and the simulator of tests/sim/ proves.
 */
#ifndef SCALE_MACHINE_H
#define SCALE_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SCALE_CPUS 256
#define SCALE_THREADS 10600

/* The machine counts these.  A line is transferred when a CPU misses a line that another CPU has written since; it is filled when
 * no other CPU has.  Each copy that a write removes from another CPU is one copy dropped. */
#define SCALE_COUNTS(X)                                                                                      \
	X(ACCESSES, "accesses") X(LOCKED, "locked") X(FENCES, "fences") X(TRANSFERS, "transfers") X(REMOTE, "remote") \
	X(FILLS, "fills") X(DROPPED, "dropped") X(LINES, "lines") X(MEMBARRIERS, "membarriers")              \
	X(INTERRUPTS, "interrupts") X(WAITS, "waits") X(WAKES, "wakes") X(SWITCHES, "switches") X(YIELDS, "yields") \
	X(STARTS, "starts") X(KERNEL, "kernel") X(HEAP, "heap") X(FREED, "freed")
#define SCALE_COUNT_ENUM(name, text) SCALE_##name,
enum scale_count { SCALE_COUNTS(SCALE_COUNT_ENUM) SCALE_NR_COUNTS };
extern const char *const scale_count_names[SCALE_NR_COUNTS];

/* Whose costs they are. */
enum scale_group { SCALE_SETUP, SCALE_MEASURED, SCALE_OTHERS, SCALE_LIBRARY, SCALE_NR_GROUPS };
extern uint64_t scale_counts[SCALE_NR_GROUPS][SCALE_NR_COUNTS];

/* ---- machine.c ---- */

/* Run @main as the first thread of a machine, until it returns.  @seed moves the clocks of the CPUs at the start. */
void scale_machine(int nr_cpus, int cpus_of_socket, uint64_t seed, void (*main)(void *arg), void *arg);
/* Start a thread of the program, on @cpu always, or anywhere if @cpu is negative. */
void scale_spawn(void (*func)(void *arg), void *arg, int cpu, enum scale_group group);
/* The calling thread sleeps until all other threads of the program have ended. */
void scale_join(void);
/* Wait for @nr threads; the last one calls @func, which may be NULL, before they continue, at the same time. */
struct scale_barrier { int arrived; };
void scale_barrier(struct scale_barrier *b, int nr, void (*func)(void));
/* Time passes, in ns; other CPUs run meanwhile, and of this one's threads only with sleep. */
void scale_work(uint64_t ns);
void scale_sleep(uint64_t ns);
uint64_t scale_now_ps(void);
int scale_cpu(void);
int scale_nr_cpus(void);
void scale_set_group(enum scale_group group);
/* An operation begins: lines that it touches are counted once. */
void scale_op(void);
/* Between these the thread keeps its CPU, as in a restartable sequence that is not interrupted. */
void scale_sequence_begin(void);
void scale_sequence_end(void);
char *scale_thread_pointer(void);
_Noreturn void scale_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- accesses: lines.c; the hooks call these ---- */

enum scale_kind { SCALE_READ, SCALE_WRITE, SCALE_LOCKED_WRITE };
void scale_access(uintptr_t at, size_t size, enum scale_kind kind);
void scale_fence(void);
void scale_relax(void);
/* An access of a line of the kernel, which is reported apart. */
void scale_kernel(uintptr_t at, enum scale_kind kind);
/* The kernel writes to a line of the program; that is reported there, too. */
void scale_kernel_writes(const void *at);
/* Lines whose addresses differ only below 2^@shift bytes are one, as if they were packed: 6 is the truth. */
extern unsigned int scale_line_shift;
/* A line that has arrived stays for so long, in ps, so that its CPU can use it. */
#define SCALE_STAY_PS 20000u
extern uint64_t scale_stay_ps;

/* ---- between the files ---- */

/* Costs in ps.  They are those of a server of two sockets; only their ratios matter, and only to the order in which CPUs run. */
#define PS_HIT 400u
#define PS_LOCKED 5000u
#define PS_FENCE 6000u
#define PS_PAUSE 12000u
#define PS_FILL 20000u
#define PS_SHARED 30000u
#define PS_DIRTY 60000u
#define PS_SOCKET 70000u
#define PS_UPGRADE 40000u
#define PS_SYSCALL 200000u
#define PS_SWITCH 1000000u
#define PS_WAKE 1500000u
#define PS_INTERRUPT 800000u
#define PS_INTERRUPT_SEND 60000u
#define PS_MEMBARRIER 700000u
#define PS_HEAP 20000u
#define PS_SLICE 100000000u

struct scale_thread;
extern struct scale_state {
	uint64_t now;   /* the clock of the CPU that runs */
	uint64_t limit; /* if it is later than this, another CPU or thread may be next */
	int cpu, nr_cpus, cpus_of_socket;
	uint64_t *counts; /* they belong to the thread that runs; NULL before the machine does */
	uint32_t op;      /* number of its operation */
	unsigned int sequence;
} scale;
/* CPUs whose clocks are earlier run first.  The caller may be on another CPU afterwards. */
void scale__order(void);
void scale__order_slow(void);
void scale__switch(void **from, void *to);
int scale__sleep_on(uint32_t *word, uint64_t timeout_ns);
uint32_t scale__wake(uint32_t *word, uint32_t nr);
void scale__yield(void);
int scale__interrupt_others(void);
int scale__thread_start(void (*func)(void *arg), void *arg);
uint32_t scale__tid(void);
bool scale__alive(uint32_t tid, char *ret_state);
bool scale__arm_exit(void);
int scale__cpu_of(const char *tls);
extern void (*scale__exit_hook)(void);

/* A thread has this memory at its thread pointer, as the C library and the kernel lay it out. */
struct scale_rseq { uint32_t cpu_id_start, cpu_id; uint64_t sequence; uint32_t flags, node_id, mm_cid, pad; };
#define SCALE_RSEQ_OFFSET 512
#define SCALE_TLS_BYTES 1024

#endif
