/* SPDX-License-Identifier: MIT */
/* cpu.c - simulated CPUs: placement of threads, concurrency ids, restartable sequences.
 *
 * With config.nr_cpus set, only a thread on a CPU takes steps.  Placing a thread on a CPU may remove another
 * one (preemption) and may choose a new CPU (migration); both are full fences and abort a critical section,
 * and the next thread of a CPU knows everything that the previous one knew.  The concurrency id is the lowest
 * that no running thread has; its new owner knows everything that its last owner knew, because the kernel
 * passes ids on by atomic operations.
 */
#include "platform/count.h"
#include "machine.h"
#include "platform/platform.h"
#include "platform/sheaf.h"

#include <errno.h>
#include <string.h>

void sim__cpu_reset(void)
{
	for (int i = 0; i < SIM_MAX_THREADS; i++) {
		M->cpus[i].running = -1;
		memset(M->cpus[i].left.clock, 0, sizeof M->cpus[i].left.clock);
		memset(M->cid_left[i].clock, 0, sizeof M->cid_left[i].clock);
	}
}

void sim__cpu_remove(struct thread *t)
{
	struct cpu *cpu;

	if (t->cpu < 0)
		return;
	cpu = &M->cpus[t->cpu];
	/* The store that the compiler holds back stays held: it is later in the program. */
	sim__buffer_drain(t);
	view_fence(t);
	view_copy(&cpu->left, &t->cur);
	view_copy(&M->cid_left[t->cid], &t->cur);
	cpu->running = -1;
	t->cpu = t->cid = -1;
	t->rseq_aborted = true;
}

static int lowest_cid(void)
{
	uint32_t used = 0;

	for (int i = 0; i < M->config.nr_cpus; i++)
		if (M->cpus[i].running >= 0)
			used |= 1u << M->threads[M->cpus[i].running].cid;
	return __builtin_ctz(~used);
}

static int choose_cpu(void)
{
	int first = sim__draw() % M->config.nr_cpus;

	for (int i = 0; i < M->config.nr_cpus; i++)
		if (M->cpus[(first + i) % M->config.nr_cpus].running < 0)
			return (first + i) % M->config.nr_cpus;
	return first;
}

void sim__cpu_place(struct thread *t)
{
	struct cpu *cpu;
	int number;

	if (t->cpu >= 0 && sim__draw() % 64 != 0)
		return;
	sim__cpu_remove(t);
	number = choose_cpu();
	cpu = &M->cpus[number];
	if (cpu->running >= 0)
		sim__cpu_remove(&M->threads[cpu->running]);
	t->cid = lowest_cid();
	t->cpu = number;
	cpu->running = t - M->threads;
	view_join(&t->cur, &cpu->left);
	view_join(&t->cur, &M->cid_left[t->cid]);
}

int platform_nr_possible_cpus(void)
{
	if (M->config.possible_cpus)
		return M->config.possible_cpus;
	return M->config.nr_cpus ? M->config.nr_cpus : SIM_MAX_THREADS;
}

size_t platform_nr_ids(size_t *ret_max)
{
	return *ret_max = (size_t)platform_nr_possible_cpus();
}

enum platform_rseq_kind platform_rseq_kind(void)
{
	return M->config.rseq_kind;
}

/* The library defines its own; the machine's own tests use this one. */
struct quiesce_shazptr_v1 quiesce_shazptr_v1 __attribute__((weak)) = { .nr_ids = SIM_MAX_THREADS };
struct quiesce__sequences quiesce__sequences;

/* Offsets have no meaning here, except that there is an area. */
int64_t platform_rseq_area(void)
{
	return M->config.rseq_kind != PLATFORM_RSEQ_NONE;
}

int64_t platform_rseq_id(bool mm_cid)
{
	(void)mm_cid;
	return M->config.rseq_kind != PLATFORM_RSEQ_NONE;
}

static int64_t id_now(void)
{
	struct thread *t = sim__current();
	int id;

	if (!t || M->config.rseq_kind == PLATFORM_RSEQ_NONE)
		return -1;
	if (!M->config.nr_cpus)
		id = M->cur;
	else
		id = M->config.rseq_kind == PLATFORM_RSEQ_MM_CID ? t->cid : t->cpu;
	return M->config.id_hook ? M->config.id_hook(id) : id;
}

int64_t quiesce__claim_id(void)
{
	sim__point();
	return id_now();
}

static bool aborted(const struct thread *t)
{
	return t->rseq_aborted && !M->config.rseq_never_aborts && !QUIESCE_MUTANT(claim_unprotected);
}

/* The critical section: at every step it may find itself aborted, up to the store that commits.  Its id
 * changes only with an abort, so reading the id is no step of its own.  1: claimed, 0: taken, -EAGAIN:
 * aborted. */
static int critical_section(struct thread *t, const struct quiesce__cached_slot *cached, uintptr_t value, uintptr_t **ret_slot)
{
	static const struct sim_site site = { "quiesce__claim_rseq", "SH2", 0 };
	uintptr_t *slot;
	uint64_t found;
	int64_t id;

	sim__held_release(t); /* the compiler moves no access into the section or across it */
	t->rseq_aborted = false;
	sim__point();
	id = id_now();
	if ((uint64_t)id != cached->id)
		return 0;
	slot = cached->slot;
	if (aborted(t))
		return -EAGAIN;
	found = sim__load(slot, 8, SIM_ORDER(SH2, ACQUIRE, SIM_ACQUIRE), &site);
	if (aborted(t))
		return -EAGAIN;
	if (found)
		return 0;
	sim__point();
	if (aborted(t))
		return -EAGAIN;
	sim__commit_now(t, slot, value, SIM_ORDER(SH2, RELEASE, SIM_RELEASE), &site);
	*ret_slot = slot;
	return 1;
}

uintptr_t *quiesce__claim_rseq(const struct quiesce__cached_slot *cached, uintptr_t value)
{
	struct thread *t = sim__current();
	uintptr_t *slot = NULL;
	int result;

	if (!t)
		return NULL;
	do
		result = critical_section(t, cached, value, &slot);
	while (result == -EAGAIN);
	return slot;
}

/* ---- counters of the id ---- */

struct count {
	const uint64_t *open;                /* word of an inline count; NULL: a count by a call */
	const struct quiesce_percpu *percpu; /* counters of a count by a call */
	const uint64_t *closed;              /* the word that such a count checks; NULL: none */
	size_t offset;
	enum sim_order look, order;
	struct sim_site site;
};

/* Returns the address of the counters of id 0; 0: none. */
static uint64_t base_seen(const struct count *c)
{
	if (c->open)
		return 0 - sim__load(c->open, 8, c->look, &c->site);
	if (c->closed && sim__load(c->closed, 8, c->look, &c->site))
		return 0;
	return (uintptr_t)c->percpu->base;
}

/* Count once.  1: counted, 0: there are no counters for the id, or they are closed; -EAGAIN: aborted. */
static int counting(struct thread *t, const struct count *c)
{
	uint64_t base = 0, *word, found;
	int64_t id;

	sim__held_release(t);
	if (QUIESCE_LOOKS_FIRST) {
		base = base_seen(c);
		sim__point();
	}
	t->rseq_aborted = false;
	sim__point();
	if (!QUIESCE_LOOKS_FIRST)
		base = base_seen(c);
	if (!base)
		return 0;
	if (aborted(t))
		return -EAGAIN;
	id = id_now();
	if ((uint64_t)id >= (uint64_t)platform_nr_possible_cpus()) {
		if (c->open)
			sim_fail("concurrency id %lld has no counters", (long long)id);
		return 0;
	}
	word = (uint64_t *)(uintptr_t)(base + ((size_t)id << QUIESCE_PERCPU_SHIFT) + c->offset);
	found = sim__load(word, 8, SIM_RELAXED, &c->site);
	if (aborted(t))
		return -EAGAIN;
	sim__point();
	if (aborted(t))
		return -EAGAIN;
	sim__commit_now(t, word, found + 1, c->order, &c->site);
	return 1;
}

static bool count(const struct count *c)
{
	struct thread *t = sim__current();
	int result;

	if (!t)
		return false;
	do
		result = counting(t, c);
	while (result == -EAGAIN);
	return result;
}

bool quiesce__count_sim(const uint64_t *open, size_t offset, bool acquire, bool release, const char *label)
{
	struct count c = { .open = open, .offset = offset, .site = { "quiesce_count", label, 0 } };

	c.look = acquire ? SIM_ACQUIRE : SIM_RELAXED;
	c.order = release ? SIM_RELEASE : SIM_RELAXED;
	return count(&c);
}

bool quiesce__count_call_sim(const struct quiesce_percpu *percpu, size_t offset, const uint64_t *closed, bool acquire, bool release,
			     const char *label)
{
	struct count c = { .percpu = percpu, .closed = closed, .offset = offset, .site = { "quiesce_count", label, 0 } };

	/* PC1: acquire, pairs with PC1 in quiesce__percpu_open() */
	if (M->config.rseq_kind == PLATFORM_RSEQ_NONE || !quiesce__sequences.area || !quiesce_load_acquire(PC1, &percpu->base))
		return false;
	c.look = acquire ? SIM_ACQUIRE : SIM_RELAXED;
	c.order = release ? SIM_RELEASE : SIM_RELAXED;
	return count(&c);
}

/* ---- sheaves of the id ---- */

struct move {
	const uint64_t *open;   /* word of an inline move; NULL: a move by a call */
	const uint64_t *closed; /* the word that such a move checks */
	char *base;
	uint64_t limit;
	void **object;
	uint64_t nr;
	bool push;
	enum sim_order look, order;
	struct sim_site site;
};

static struct quiesce__sheaf *sheaf_seen(const struct move *m)
{
	uint64_t base = m->open ? 0 - sim__load(m->open, 8, m->look, &m->site) : (uintptr_t)m->base;
	int64_t id = id_now();

	if (m->closed && sim__load(m->closed, 8, m->look, &m->site))
		return NULL;
	if (!base || (uint64_t)id >= (uint64_t)platform_nr_possible_cpus())
		return NULL;
	return (struct quiesce__sheaf *)(uintptr_t)(base + ((size_t)id << QUIESCE_PERCPU_SHIFT));
}

static uint64_t copy(const struct move *m, struct quiesce__sheaf *sheaf, uint64_t found)
{
	uint64_t room = m->limit > found ? m->limit - found : 0, most = m->push ? room : found, nr = m->nr < most ? m->nr : most;

	for (uint64_t i = 0; i < nr; i++) {
		if (m->push)
			sheaf->object[found + i] = m->object[i];
		else
			m->object[i] = sheaf->object[found - 1 - i];
	}
	return nr;
}

/* Returns the number of moved objects, -EAGAIN: aborted. */
static int64_t moving(struct thread *t, const struct move *m)
{
	struct quiesce__sheaf *sheaf;
	uint64_t found, nr;

	sim__held_release(t);
	t->rseq_aborted = false;
	sim__point();
	sheaf = sheaf_seen(m);
	if (!sheaf)
		return 0;
	if (aborted(t))
		return -EAGAIN;
	found = sim__load(&sheaf->nr, 8, m->push ? SIM_RELAXED : m->look, &m->site);
	if (aborted(t))
		return -EAGAIN;
	nr = copy(m, sheaf, found);
	if (!nr)
		return 0;
	sim__point();
	if (aborted(t))
		return -EAGAIN;
	sim__commit_now(t, &sheaf->nr, m->push ? found + nr : found - nr, m->push ? m->order : SIM_RELAXED, &m->site);
	return (int64_t)nr;
}

static uint64_t move(const struct move *m)
{
	struct thread *t = sim__current();
	int64_t result;

	if (!t || M->config.rseq_kind == PLATFORM_RSEQ_NONE || !quiesce__sequences.area)
		return 0;
	do
		result = moving(t, m);
	while (result == -EAGAIN);
	return (uint64_t)result;
}

static enum sim_order acquire_if(bool acquire)
{
	return acquire ? SIM_ACQUIRE : SIM_RELAXED;
}

static enum sim_order release_if(bool release)
{
	return release ? SIM_RELEASE : SIM_RELAXED;
}

bool quiesce__sheaf_pop_sim(const uint64_t *open, void **ret_object, bool acquire, const char *label)
{
	struct move m = { .open = open, .object = ret_object, .nr = 1, .look = acquire_if(acquire) };

	m.site = (struct sim_site){ "quiesce_sheaf_pop", label, 0 };
	return move(&m);
}

bool quiesce__sheaf_push_sim(const uint64_t *open, const uint64_t *limit, void *object, bool acquire, bool release, const char *label)
{
	struct move m = { .open = open, .limit = *limit, .object = &object, .nr = 1, .push = true, .look = acquire_if(acquire) };

	m.order = release_if(release);
	m.site = (struct sim_site){ "quiesce_sheaf_push", label, 0 };
	return move(&m);
}

static uint64_t move_row(const struct quiesce__sheaf_row *row, bool push, bool acquire, bool release, const char *label)
{
	struct move m = { .closed = row->closed, .base = row->base, .limit = row->limit, .object = row->object, .nr = row->nr };

	m.push = push;
	m.look = acquire_if(acquire);
	m.order = release_if(release);
	m.site = (struct sim_site){ "quiesce_sheaf_row", label, 0 };
	return move(&m);
}

uint64_t quiesce__sheaf_take_sim(const struct quiesce__sheaf_row *row, bool acquire, const char *label)
{
	return move_row(row, false, acquire, false, label);
}

uint64_t quiesce__sheaf_add_sim(const struct quiesce__sheaf_row *row, bool acquire, bool release, const char *label)
{
	return move_row(row, true, acquire, release, label);
}
