/* SPDX-License-Identifier: MIT */
/* lines.c - which CPUs have a copy of each cache line, and what an access of it costs.
 *
 * A line is modified or exclusive in one cache, or shared by several (MESI).  Caches have no limit, so that every miss is the
 * first access of a CPU, or due to a write of another.  A line that moves is busy until it arrives and for a moment more, in
 * which the CPU that has it can use it: directories do not take a line away at once.  CPUs that want the same line wait for
 * each other, in an order that is random but the same in each run.
 */
#include "machine.h"

#include <stdlib.h>

struct line {
	uint64_t sharers[SCALE_CPUS / 64];
	uint64_t busy;  /* until when no other CPU gets it than the last one */
	int16_t last;   /* the CPU that got it last; -1: none */
	int16_t owner;  /* the CPU that may write it; -1: none */
	int16_t writer; /* the last CPU that wrote it; -1: none */
	bool dirty;
	uint32_t op;    /* the last operation that touched it */
};

#define PAGE_LINES 64
struct page { uintptr_t number; struct line lines[PAGE_LINES]; };

#define NR_PAGES (1u << 19)
static struct page *pages[NR_PAGES];
static unsigned int nr_pages;
unsigned int scale_line_shift = 6;
uint64_t scale_stay_ps = SCALE_STAY_PS;

static struct page *page_new(uintptr_t number)
{
	struct page *p = malloc(sizeof *p);

	if (!p || ++nr_pages > NR_PAGES / 2)
		scale_fail("the program touches too many pages");
	*p = (struct page){ .number = number };
	for (int i = 0; i < PAGE_LINES; i++)
		p->lines[i].owner = p->lines[i].writer = p->lines[i].last = -1;
	return p;
}

static struct line *line_of(uintptr_t line)
{
	static struct page *last;
	uintptr_t number = line / PAGE_LINES;
	unsigned int i;

	if (last && last->number == number)
		return &last->lines[line % PAGE_LINES];
	for (i = (unsigned int)(number * 0x9e3779b97f4a7c15u >> 45); pages[i] && pages[i]->number != number;)
		i = (i + 1) % NR_PAGES;
	if (!pages[i])
		pages[i] = page_new(number);
	last = pages[i];
	return &last->lines[line % PAGE_LINES];
}

static bool has_copy(const struct line *l, int cpu)
{
	return l->sharers[cpu / 64] >> cpu % 64 & 1;
}

static int socket_of(int cpu)
{
	return cpu / scale.cpus_of_socket;
}

/* The copies that CPUs other than the caller's have. */
static unsigned int nr_others(const struct line *l)
{
	unsigned int nr = 0;

	for (int i = 0; i < SCALE_CPUS / 64; i++)
		nr += (unsigned int)__builtin_popcountll(l->sharers[i]);
	return nr - has_copy(l, scale.cpu);
}

static bool hit(struct line *l, bool write)
{
	if (l->owner == scale.cpu) {
		l->dirty |= write;
		if (write)
			l->writer = l->owner;
		return true;
	}
	return !write && has_copy(l, scale.cpu);
}

static uint64_t cost_of_miss(const struct line *l, unsigned int others, uint64_t *counts)
{
	bool lost = l->writer >= 0 && l->writer != scale.cpu, far = lost && socket_of(l->writer) != socket_of(scale.cpu);

	if (has_copy(l, scale.cpu))
		return PS_UPGRADE;
	counts[lost ? SCALE_TRANSFERS : SCALE_FILLS]++;
	counts[SCALE_REMOTE] += far;
	if (!others && !lost)
		return PS_FILL;
	return (l->dirty && l->owner >= 0 ? PS_DIRTY : PS_SHARED) + (far ? PS_SOCKET : 0);
}

/* A miss: the line moves here, or other CPUs lose their copies.  @counts receives what it costs. */
static void miss(struct line *l, bool write, uint64_t *counts)
{
	unsigned int others = nr_others(l);

	scale.now += cost_of_miss(l, others, counts);
	/* Reads of one line overlap. */
	if (write || l->dirty) {
		l->busy = scale.now + scale_stay_ps;
		l->last = (int16_t)scale.cpu;
	}
	if (write) {
		counts[SCALE_DROPPED] += others;
		for (int i = 0; i < SCALE_CPUS / 64; i++)
			l->sharers[i] = 0;
		l->writer = (int16_t)scale.cpu;
	}
	l->dirty = write;
	l->owner = write || !others ? (int16_t)scale.cpu : -1;
	l->sharers[scale.cpu / 64] |= 1ull << scale.cpu % 64;
}

/* Wait until the line may come here; false: it is here. */
static bool may_come(struct line *l, bool write)
{
	static uint32_t random = 1;

	while (scale__order(), !hit(l, write)) {
		if (l->busy <= scale.now || l->last == scale.cpu || scale.sequence)
			return true;
		random = random * 1664525u + 1013904223u;
		scale.now = l->busy + (random >> 20);
	}
	return false;
}

static void touch(uintptr_t number, enum scale_kind kind)
{
	struct line *l = line_of(number);
	bool write = kind != SCALE_READ;

	if ((kind == SCALE_LOCKED_WRITE || !hit(l, write)) && may_come(l, write))
		miss(l, write, scale.counts);
	scale.now += PS_HIT;
	scale.counts[SCALE_ACCESSES]++;
	scale.counts[SCALE_LINES] += l->op != scale.op;
	l->op = scale.op;
}

void scale_access(uintptr_t at, size_t size, enum scale_kind kind)
{
	if (!scale.counts)
		return;
	for (uintptr_t line = at >> scale_line_shift; line <= (at + size - 1) >> scale_line_shift; line++)
		touch(line, kind);
	if (kind == SCALE_LOCKED_WRITE) {
		scale.counts[SCALE_LOCKED]++;
		scale.now += PS_LOCKED;
	}
	if (scale.now > scale.limit)
		scale__order_slow();
}

static void by_kernel(struct line *l, enum scale_kind kind)
{
	uint64_t counts[SCALE_NR_COUNTS] = { 0 };

	if (!hit(l, kind != SCALE_READ))
		miss(l, kind != SCALE_READ, counts);
	scale.counts[SCALE_KERNEL] += counts[SCALE_TRANSFERS] + counts[SCALE_FILLS];
}

void scale_kernel(uintptr_t at, enum scale_kind kind)
{
	by_kernel(line_of((at ^ (uintptr_t)1 << 63) >> 6), kind);
}

void scale_kernel_writes(const void *at)
{
	by_kernel(line_of((uintptr_t)at >> scale_line_shift), SCALE_WRITE);
}

void scale_fence(void)
{
	if (!scale.counts)
		return;
	scale.counts[SCALE_FENCES]++;
	scale.now += PS_FENCE;
	scale__order();
}

void scale_relax(void)
{
	if (!scale.counts)
		return;
	scale.now += PS_PAUSE;
	scale__order();
}
