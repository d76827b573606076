/* SPDX-License-Identifier: MIT */
/* slice.c - measures whether time-slice extensions of rseq shorten grace periods, and their cost for readers.
 *
 *	GLIBC_TUNABLES=glibc.pthread.rseq=0 slice rounds READERS SECONDS NS
 *		for guests of kernels since 7.0: readers in RCU sections on fewer CPUs, an updater that waits.
 *		Prints a line for each way, length of section and round; NS is the extension that the kernel is set to grant.
 *	slice cost
 *		any kernel: time, or in an emulator that counts instructions as nanoseconds instructions, of an empty section.
 *
 * Ways
 * none  the reader requests nothing
 *	request		lock sets the request; unlock withdraws it, and gives a grant back
 *	standing	the request always stands; unlock compares one word, and gives a grant back or requests anew
 *	outline		for the cost only: as standing, in a function, as the library could do it for programs that opt in
 *
 * A preempted section is detected as follows: the reader sets rseq_cs to a sequence that it is not in, and the kernel sets it to
 * NULL when the thread was preempted meanwhile.  A grace period met a preempted reader if such a section ended before it.
 *
 * raw, whole file: it shares words with the kernel that no other thread reads
 */
#include <errno.h>
#include <linux/rseq.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <quiesce/rcu.h>

#define SLICE_PRCTL 79
#define SLICE_SET 2
#define SLICE_ENABLE 1
#define SLICE_YIELD 471
#define SLICE_OFFSET 28
#define REQUESTED 1u
#define GRANTED 0x100u
#define AT_FEATURE_SIZE 27
#define SIGNATURE 0x53053053

typedef unsigned long long ull;

enum way { NONE, REQUEST, STANDING };
static const char *const names[] = {"none", "request", "standing"};

#define RSEQ_CS_OFFSET 8

static __thread struct { char bytes[128]; } area __attribute__((aligned(128)));

struct reader {
	pthread_t thread;
	enum way way;
	unsigned work;
	_Atomic ull preempted; /* number of preempted sections; written before the unlock, so that a waiter for the section sees it */
	ull sections, grants, yields;
	char line[64];
};

static _Atomic int stopped;

static ull now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (ull)t.tv_sec * 1000000000 + (ull)t.tv_nsec;
}

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "slice: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void *xcalloc(size_t nr, size_t size)
{
	void *p = aligned_alloc(64, nr * ((size + 63) / 64 * 64));

	if (!p)
		die("memory");
	return memset(p, 0, nr * size);
}

static volatile uint32_t *slice_ctrl(void)
{
	return (volatile uint32_t *)(void *)(area.bytes + SLICE_OFFSET);
}

static volatile ull *rseq_cs(void)
{
	return (volatile ull *)(void *)(area.bytes + RSEQ_CS_OFFSET);
}

/* The longer area, which slices need. */
static void register_rseq(int slices)
{
	if (syscall(SYS_rseq, &area, sizeof(area), 0, SIGNATURE))
		die("rseq (is GLIBC_TUNABLES=glibc.pthread.rseq=0 set?)");
	if (slices && prctl(SLICE_PRCTL, SLICE_SET, SLICE_ENABLE, 0, 0))
		die("prctl(PR_RSEQ_SLICE_EXTENSION)");
}

static void elsewhere(void)
{
	__asm__ volatile("nop");
}

static void work(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		__asm__ volatile("" ::: "memory");
}

/* slice_rest: what an unlock does when the word is not what it expects. */
static __attribute__((noinline)) void slice_rest(struct reader *self, enum way way, uint32_t word)
{
	if (word & GRANTED) {
		self->grants++;
		self->yields += (ull)syscall(SLICE_YIELD);
	}
	*slice_ctrl() = way == STANDING ? REQUESTED : 0;
}

static inline __attribute__((always_inline)) void lock(enum way way)
{
	if (way == REQUEST)
		*slice_ctrl() = REQUESTED;
	rcu_read_lock();
}

static inline __attribute__((always_inline)) void unlock(struct reader *self, enum way way)
{
	uint32_t word;

	rcu_read_unlock();
	if (way == NONE)
		return;
	word = *slice_ctrl();
	if (__builtin_expect(word != REQUESTED, 0))
		slice_rest(self, way, word);
	else if (way == REQUEST)
		*slice_ctrl() = 0;
}

static inline __attribute__((always_inline)) void read_sections(struct reader *self, enum way way)
{
	struct rseq_cs cs = {.start_ip = (uintptr_t)elsewhere, .post_commit_offset = 1};

	while (!stopped) {
		lock(way);
		*rseq_cs() = (uintptr_t)&cs;
		work(self->work);
		if (!*rseq_cs())
			self->preempted++;
		unlock(self, way);
		*rseq_cs() = 0;
		self->sections++;
		work(self->work);
	}
}

static void *read_thread(void *arg)
{
	struct reader *self = arg;

	register_rseq(self->way != NONE);
	if (self->way == STANDING)
		*slice_ctrl() = REQUESTED;
	switch (self->way) {
	case NONE: read_sections(self, NONE); break;
	case REQUEST: read_sections(self, REQUEST); break;
	case STANDING: read_sections(self, STANDING); break;
	}
	/* No grant may be left when the area goes. */
	*slice_ctrl() = 0;
	syscall(SYS_rseq, &area, sizeof(area), RSEQ_FLAG_UNREGISTER, SIGNATURE);
	return NULL;
}

static ull sum_preempted(const struct reader *readers, int nr)
{
	ull sum = 0;

	for (int i = 0; i < nr; i++)
		sum += readers[i].preempted;
	return sum;
}

static int compare(const void *a, const void *b)
{
	ull x = *(const ull *)a, y = *(const ull *)b;

	return x < y ? -1 : x > y;
}

static void one_round(enum way way, unsigned length, int nr, double seconds, unsigned ns)
{
	enum { MOST = 100000 };
	struct reader *readers = xcalloc((size_t)nr, sizeof(*readers));
	ull *waits = xcalloc(MOST, sizeof(*waits)), met = 0, until, sections = 0, grants = 0, yields = 0;
	size_t periods = 0;

	stopped = 0;
	for (int i = 0; i < nr; i++) {
		readers[i].way = way;
		readers[i].work = length;
		if (pthread_create(&readers[i].thread, NULL, read_thread, &readers[i]))
			die("threads");
	}
	usleep(20000);
	until = now_ns() + (ull)(seconds * 1e9);
	while (now_ns() < until && periods < MOST) {
		ull before = sum_preempted(readers, nr), start = now_ns();

		synchronize_rcu();
		waits[periods++] = now_ns() - start;
		met += sum_preempted(readers, nr) != before;
		usleep(500);
	}
	stopped = 1;
	for (int i = 0; i < nr; i++) {
		pthread_join(readers[i].thread, NULL);
		sections += readers[i].sections;
		grants += readers[i].grants;
		yields += readers[i].yields;
	}
	qsort(waits, periods, sizeof(*waits), compare);
	printf("SLICE %s work %u ext %u periods %zu met %llu preempted %llu grants %llu yields %llu sections %llu ", names[way], length, ns,
	       periods, met, sum_preempted(readers, nr), grants, yields, sections);
	printf("p50 %llu p90 %llu max %llu\n", waits[periods / 2], waits[periods * 9 / 10], waits[periods - 1]);
	fflush(stdout);
	free(waits);
	free(readers);
}

static void all_rounds(int nr, double seconds, unsigned ns)
{
	static const unsigned lengths[] = {100, 2000, 40000};

	for (int round = 0; round < 3; round++)
		for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
			for (enum way way = NONE; way <= STANDING; way++)
				one_round(way, lengths[i], nr, seconds, ns);
}

static __attribute__((noinline)) void unlock_outline(struct reader *self)
{
	unlock(self, STANDING);
}

static inline __attribute__((always_inline)) double cost(enum way way, int outline)
{
	enum { LOOPS = 1000000 };
	struct reader self = {.way = way};
	ull start;

	*slice_ctrl() = way == STANDING ? REQUESTED : 0;
	start = now_ns();
	for (int i = 0; i < LOOPS; i++) {
		lock(way);
		__asm__ volatile("" ::: "memory");
		if (outline)
			unlock_outline(&self);
		else
			unlock(&self, way);
	}
	return (double)(now_ns() - start) / LOOPS;
}

static void all_costs(void)
{
	for (int round = 0; round < 15; round++)
		printf("COST none %.3f request %.3f standing %.3f outline %.3f\n", cost(NONE, 0), cost(REQUEST, 0),
		       cost(STANDING, 0), cost(STANDING, 1));
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "cost") == 0) {
		all_costs();
		return 0;
	}
	if (argc != 5 || strcmp(argv[1], "rounds") != 0 || atoi(argv[2]) < 1 || atof(argv[3]) <= 0) {
		fprintf(stderr, "usage: slice rounds READERS SECONDS NS | slice cost\n");
		return 2;
	}
	if (getauxval(AT_FEATURE_SIZE) <= SLICE_OFFSET) {
		fprintf(stderr, "slice: this kernel has no time-slice extensions\n");
		return 77;
	}
	all_rounds(atoi(argv[2]), atof(argv[3]), (unsigned)atoi(argv[4]));
	return 0;
}
