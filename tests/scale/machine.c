/* SPDX-License-Identifier: MIT */
/* machine.c - threads, CPUs, and the order in which they run.
 *
 * M1  Of all CPUs that have something to run, the one with the earliest clock runs, until another one's is earlier by more than
 *     a little, or it has a miss or a locked instruction while another one's is earlier at all.
 * M2  Threads of one CPU take turns by slices, and when they sleep.
 */
#include "machine.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define STACK_BYTES 65536u
#define STACKS ((char *)0x300000000000)
#define BLOCKS ((char *)0x2f0000000000) /* the memory at the thread pointers */
#define SLACK_PS 50000u
#define NEVER UINT64_MAX
#define NR_BUCKETS 1024u
#define FIRST_TID 1000u

enum state { RUNNABLE, ASLEEP, DONE };

struct scale_thread {
	void *context;
	void (*func)(void *arg);
	void *arg;
	char *block;
	enum state state;
	enum scale_group group;
	int cpu;
	bool pinned, arm_exit, timed_out;
	uint32_t *word;             /* NULL unless the thread sleeps on it */
	struct scale_thread *next;  /* in the queue of its CPU */
	struct scale_thread *sleeper, **sleeper_at; /* in the bucket of its word */
	uint64_t wake_at;
	uint32_t timer;             /* number of its last timer */
	uint32_t op;
	unsigned int sequence;
};

struct cpu {
	uint64_t clock, slice_end;
	struct scale_thread *current, *first, **last;
};

struct timer { uint64_t at; struct scale_thread *thread; uint32_t number; };

#define NAME(name, text) text,
const char *const scale_count_names[SCALE_NR_COUNTS] = { SCALE_COUNTS(NAME) };
uint64_t scale_counts[SCALE_NR_GROUPS][SCALE_NR_COUNTS];
struct scale_state scale;
void (*scale__exit_hook)(void);

static struct cpu cpus[SCALE_CPUS];
static uint64_t due[SCALE_CPUS]; /* the clock of each CPU that has something to run, else NEVER */
static struct scale_thread threads[SCALE_THREADS];
static int nr_threads, nr_of_program;
static struct scale_thread *buckets[NR_BUCKETS];
static struct timer timers[2 * SCALE_THREADS];
static int nr_timers;
static void *main_context;
static struct scale_thread *self; /* the thread that runs */
static uint32_t nr_ops, all_ended;

void scale_fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	fflush(NULL);
	_Exit(3);
}

/* ---- timers: a heap ---- */

static void timer_add(struct scale_thread *t, uint64_t at)
{
	int i = nr_timers++;

	if (nr_timers > 2 * SCALE_THREADS)
		scale_fail("too many timers");
	for (; i && timers[(i - 1) / 2].at > at; i = (i - 1) / 2)
		timers[i] = timers[(i - 1) / 2];
	timers[i] = (struct timer){ at, t, ++t->timer };
}

static void timer_drop_first(void)
{
	struct timer last = timers[--nr_timers];
	int i = 0;

	for (int child; (child = 2 * i + 1) < nr_timers; i = child) {
		if (child + 1 < nr_timers && timers[child + 1].at < timers[child].at)
			child++;
		if (timers[child].at >= last.at)
			break;
		timers[i] = timers[child];
	}
	timers[i] = last;
}

/* The time of the next one that is still valid. */
static uint64_t timer_next(void)
{
	while (nr_timers && (timers[0].number != timers[0].thread->timer || timers[0].thread->state != ASLEEP))
		timer_drop_first();
	return nr_timers ? timers[0].at : NEVER;
}

/* ---- CPUs ---- */

static bool is_idle(const struct cpu *c)
{
	return !c->current && !c->first;
}

static void set_due(int cpu)
{
	due[cpu] = is_idle(&cpus[cpu]) ? NEVER : cpus[cpu].clock;
}

/* A thread of the library goes where nothing runs, if there is such a CPU. */
static int place(const struct scale_thread *t)
{
	int best = t->cpu;

	if (t->pinned || is_idle(&cpus[best]))
		return best;
	for (int i = 0; i < scale.nr_cpus; i++)
		if (is_idle(&cpus[i]))
			return i;
	return best;
}

static void set_limit(void)
{
	const struct cpu *own = &cpus[scale.cpu];
	uint64_t limit = timer_next();

	due[scale.cpu] = NEVER;
	for (int i = 0; i < scale.nr_cpus; i++)
		limit = due[i] < limit ? due[i] : limit;
	set_due(scale.cpu);
	if (own->first && own->slice_end < limit)
		limit = own->slice_end;
	scale.limit = limit;
}

static void ready(struct scale_thread *t, uint64_t at)
{
	struct cpu *c;

	t->state = RUNNABLE;
	t->timer++;
	t->cpu = place(t);
	c = &cpus[t->cpu];
	if (is_idle(c) && c->clock < at)
		c->clock = at;
	t->next = NULL;
	*(c->first ? c->last : &c->first) = t;
	c->last = &t->next;
	set_due(t->cpu);
	if (scale.counts)
		set_limit();
}

/* Switch from the thread that runs to the loop of the machine, which continues it later. */
static void leave(void)
{
	struct scale_thread *t = self;

	t->op = scale.op;
	t->sequence = scale.sequence;
	cpus[scale.cpu].clock = scale.now;
	scale.counts = NULL;
	scale__switch(&t->context, main_context);
}

static void give_up_cpu(void)
{
	cpus[scale.cpu].current = NULL;
	leave();
}

void scale__yield(void)
{
	struct scale_thread *t = self;

	scale.counts[SCALE_YIELDS]++;
	scale.now += PS_SYSCALL;
	if (cpus[scale.cpu].first) {
		ready(t, scale.now);
		give_up_cpu();
	} else {
		scale__order();
	}
}

/* The next thread of this CPU takes its turn, or a CPU whose clock is earlier. */
static void let_run(void)
{
	struct cpu *c = &cpus[scale.cpu];
	struct scale_thread *t = self;

	if (!c->first || scale.now <= c->slice_end) {
		leave();
		return;
	}
	t->next = NULL;
	*c->last = t;
	c->last = &t->next;
	give_up_cpu();
}

void scale__order_slow(void)
{
	const struct cpu *c = &cpus[scale.cpu];

	if (!scale.sequence && (scale.now > scale.limit + SLACK_PS || (c->first && scale.now > c->slice_end)))
		let_run();
}

void scale__order(void)
{
	while (!scale.sequence && scale.now > scale.limit)
		let_run();
}

static void run_on(int cpu)
{
	struct cpu *c = &cpus[cpu];
	struct scale_thread *t = c->current;
	struct scale_rseq *area = NULL;

	if (!t) {
		t = c->current = c->first;
		c->first = t->next;
		c->clock += PS_SWITCH;
		c->slice_end = c->clock + PS_SLICE;
		t->cpu = cpu;
		area = (struct scale_rseq *)(t->block + SCALE_RSEQ_OFFSET);
		area->cpu_id = area->cpu_id_start = area->mm_cid = (uint32_t)cpu;
		scale_counts[t->group][SCALE_SWITCHES]++;
	}
	self = t;
	scale.cpu = cpu;
	scale.now = c->clock;
	scale.op = t->op;
	scale.sequence = t->sequence;
	scale.counts = scale_counts[t->group];
	if (area)
		scale_kernel_writes(area);
	set_limit();
	scale__switch(&main_context, t->context);
	self = NULL;
	set_due(cpu);
}

/* The first CPU of those with the earliest clock; -1: none has anything to run. */
static int earliest(void)
{
	uint64_t first = NEVER;

	for (int i = 0; i < scale.nr_cpus; i++)
		first = due[i] < first ? due[i] : first;
	for (int i = 0; first != NEVER; i++)
		if (due[i] == first)
			return i;
	return -1;
}

static void wake_up(struct scale_thread *t, uint64_t at)
{
	if (t->word) {
		*t->sleeper_at = t->sleeper;
		if (t->sleeper)
			t->sleeper->sleeper_at = t->sleeper_at;
		t->word = NULL;
	}
	ready(t, at);
}

static void run_until_ended(const struct scale_thread *first)
{
	while (first->state != DONE) {
		int cpu = earliest();
		uint64_t next = timer_next();

		if (next != NEVER && (cpu < 0 || next <= cpus[cpu].clock)) {
			timers[0].thread->timed_out = true;
			wake_up(timers[0].thread, next);
		} else if (cpu >= 0) {
			run_on(cpu);
		} else {
			scale_fail("every thread sleeps for ever");
		}
	}
}

/* ---- threads ---- */

static void thread_main(void)
{
	self->func(self->arg);
	if (self->arm_exit)
		scale__exit_hook();
	self->state = DONE;
	if (self->group != SCALE_LIBRARY && --nr_of_program == 1) {
		all_ended = 1;
		scale__wake(&all_ended, 1);
	}
	give_up_cpu();
}

static void *reserve(char *at, size_t bytes)
{
	void *p = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	if (p != at)
		scale_fail("the addresses of the machine are taken");
	return p;
}

/* From the top: a null return address for the entry function, which puts the stack where the ABI wants it; the entry
 * function; six registers.  Stacks do not begin at the same place in a page, as no threads' do. */
static void *new_context(int number)
{
	uint64_t *top = (uint64_t *)(STACKS + (size_t)(number + 1) * STACK_BYTES - (size_t)(number % 16) * 256);

	*--top = 0;
	*--top = (uint64_t)thread_main;
	return memset(top - 6, 0, 48);
}

extern void scale__thread_begins(char *block);

static struct scale_thread *thread_new(void (*func)(void *arg), void *arg, enum scale_group group)
{
	struct scale_thread *t = &threads[nr_threads];

	if (nr_threads == SCALE_THREADS)
		scale_fail("too many threads");
	*t = (struct scale_thread){ .func = func, .arg = arg, .group = group, .block = BLOCKS + (size_t)nr_threads * SCALE_TLS_BYTES,
				    .context = new_context(nr_threads) };
	nr_threads++;
	nr_of_program += group != SCALE_LIBRARY;
	return t;
}

/* The constructor of the library has run in the first thread. */
char *scale_thread_pointer(void)
{
	static bool reserved;

	if (!reserved) {
		reserved = true;
		reserve(BLOCKS, (size_t)SCALE_THREADS * SCALE_TLS_BYTES);
		scale__thread_begins(BLOCKS);
	}
	return self ? self->block : BLOCKS;
}

void scale_machine(int nr_cpus, int cpus_of_socket, uint64_t seed, void (*main)(void *arg), void *arg)
{
	struct scale_thread *first;

	scale.nr_cpus = nr_cpus;
	scale.cpus_of_socket = cpus_of_socket;
	scale_thread_pointer();
	reserve(STACKS, (size_t)SCALE_THREADS * STACK_BYTES);
	for (int i = 0; i < nr_cpus; i++, seed = seed * 6364136223846793005u + 1442695040888963407u) {
		cpus[i].clock = 1000000000 + (seed >> 44);
		set_due(i);
	}
	first = thread_new(main, arg, SCALE_SETUP);
	first->pinned = true;
	ready(first, 0);
	run_until_ended(first);
}

void scale_spawn(void (*func)(void *arg), void *arg, int cpu, enum scale_group group)
{
	struct scale_thread *t = thread_new(func, arg, group);

	scale__thread_begins(t->block);
	t->pinned = cpu >= 0;
	t->cpu = cpu >= 0 ? cpu % scale.nr_cpus : scale.cpu;
	ready(t, scale.now + PS_WAKE);
}

int scale__thread_start(void (*func)(void *arg), void *arg)
{
	scale.counts[SCALE_STARTS]++;
	scale.now += 10 * PS_SWITCH;
	scale_spawn(func, arg, -1, SCALE_LIBRARY);
	scale__order();
	return nr_threads - 1;
}

void scale_join(void)
{
	while (nr_of_program > 1)
		scale__sleep_on(&all_ended, UINT64_MAX);
}

void scale_barrier(struct scale_barrier *b, int nr, void (*func)(void))
{
	struct scale_thread *t = self;
	uint64_t latest = 0;

	t->state = ASLEEP;
	t->timer++;
	t->wake_at = (uint64_t)(uintptr_t)b;
	if (++b->arrived < nr) {
		give_up_cpu();
		return;
	}
	if (func)
		func();
	for (int i = 0; i < scale.nr_cpus; i++)
		latest = cpus[i].clock > latest ? cpus[i].clock : latest;
	latest = scale.now > latest ? scale.now : latest;
	for (int i = 0; i < nr_threads; i++)
		if (threads[i].state == ASLEEP && threads[i].wake_at == (uint64_t)(uintptr_t)b) {
			threads[i].wake_at = 0;
			ready(&threads[i], latest);
		}
	b->arrived = 0;
	give_up_cpu();
}

/* ---- time ---- */

void scale_work(uint64_t ns)
{
	for (uint64_t left = ns * 1000, step; left; left -= step) {
		step = left < 1000000 ? left : 1000000;
		scale.now += step;
		scale__order();
	}
}

void scale_sleep(uint64_t ns)
{
	uint32_t never = 0;

	scale__sleep_on(&never, ns);
}

uint64_t scale_now_ps(void)
{
	return scale.counts ? scale.now : 1000000;
}

int scale_cpu(void)
{
	return scale.cpu;
}

int scale_nr_cpus(void)
{
	return scale.nr_cpus ? scale.nr_cpus : 1;
}

void scale_set_group(enum scale_group group)
{
	self->group = group;
	scale.counts = scale_counts[group];
}

void scale_op(void)
{
	scale.op = ++nr_ops;
}

void scale_sequence_begin(void)
{
	scale.sequence++;
}

void scale_sequence_end(void)
{
	scale.sequence--;
}

/* ---- the system ---- */

static struct scale_thread **bucket_of(const uint32_t *word)
{
	return &buckets[(uintptr_t)word * 0x9e3779b97f4a7c15u >> 54];
}

/* Sleep until woken; nonzero: the time was over. */
int scale__sleep_on(uint32_t *word, uint64_t timeout_ns)
{
	struct scale_thread *t = self, **at = bucket_of(word);

	while (*at)
		at = &(*at)->sleeper;
	t->sleeper = NULL;
	t->sleeper_at = at;
	*at = t;
	t->word = word;
	t->state = ASLEEP;
	t->timed_out = false;
	t->timer++;
	if (timeout_ns < UINT64_MAX / 2000)
		timer_add(t, scale.now + timeout_ns * 1000);
	give_up_cpu();
	return t->timed_out;
}

uint32_t scale__wake(uint32_t *word, uint32_t nr)
{
	uint32_t woken = 0;

	for (struct scale_thread *t = *bucket_of(word), *next; t && woken < nr; t = next) {
		next = t->sleeper;
		if (t->word != word)
			continue;
		scale.now += PS_WAKE / 3;
		scale_kernel(0x10000 + (uintptr_t)t->cpu * 64, SCALE_LOCKED_WRITE);
		wake_up(t, scale.now + PS_WAKE);
		woken++;
	}
	return woken;
}

/* A membarrier: the kernel reads what each CPU runs, and interrupts those that run another thread of the process. */
int scale__interrupt_others(void)
{
	int nr = 0;

	for (int i = 0; i < scale.nr_cpus; i++) {
		scale_kernel(0x10000 + (uintptr_t)i * 64, SCALE_READ);
		if (i == scale.cpu || !cpus[i].current)
			continue;
		cpus[i].clock += PS_INTERRUPT;
		set_due(i);
		nr++;
	}
	scale.now += PS_MEMBARRIER + (uint64_t)nr * PS_INTERRUPT_SEND + (nr ? PS_INTERRUPT : 0);
	return nr;
}

uint32_t scale__tid(void)
{
	return FIRST_TID + (self ? (uint32_t)(self - threads) : 0);
}

bool scale__alive(uint32_t tid, char *ret_state)
{
	uint32_t number = tid - FIRST_TID;
	const struct scale_thread *t = &threads[number];

	if (number >= (uint32_t)nr_threads || t->state == DONE)
		return false;
	*ret_state = t->state == ASLEEP ? 'S' : 'R';
	return true;
}

bool scale__arm_exit(void)
{
	if (self)
		self->arm_exit = true;
	return self;
}

int scale__cpu_of(const char *block)
{
	return threads[(size_t)(block - BLOCKS) / SCALE_TLS_BYTES].cpu;
}
