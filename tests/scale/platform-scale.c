/* SPDX-License-Identifier: MIT */
/* platform-scale.c - platform.h on the modelled machine.
 *
 * The heap gives memory by the CPU that frees it, as allocators with caches do, and costs no line; calls of it are counted.
 */
#include "machine.h"
#include "platform/count.h"
#include "platform/platform.h"
#include "platform/sheaf.h"

#include <quiesce/arch/rseq.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

void quiesce__tls_init(struct quiesce_tls_v1 *tls);
void scale__thread_begins(char *block);

void scale__thread_begins(char *block)
{
	_Static_assert(sizeof(struct quiesce_tls_v1) <= SCALE_RSEQ_OFFSET, "the thread's block has the rseq area behind the library's");
	quiesce__tls_init((struct quiesce_tls_v1 *)block);
}

struct quiesce_tls_v1 *quiesce_scale_self(void)
{
	return (struct quiesce_tls_v1 *)scale_thread_pointer();
}

/* ---- fences, sleeping ---- */

int platform_membarrier_init(void)
{
	return 0;
}

int platform_membarrier(void)
{
	if (scale.counts) {
		scale__order();
		scale.counts[SCALE_MEMBARRIERS]++;
		scale.counts[SCALE_INTERRUPTS] += (uint64_t)scale__interrupt_others();
		scale__order();
	}
	return 0;
}

int platform_try_membarrier(void)
{
	return platform_membarrier();
}

int platform_membarrier_restart(void)
{
	return platform_membarrier();
}

int platform_fence_by_turns(void)
{
	return platform_membarrier();
}

static uintptr_t kernel_bucket(const uint32_t *word)
{
	return 0x100000 + ((uintptr_t)word * 0x9e3779b97f4a7c15u >> 52) * 64;
}

int platform_futex_wait(uint32_t *word, uint32_t value, uint64_t timeout_ns)
{
	if (!scale.counts)
		scale_fail("a wait outside of the machine");
	scale.counts[SCALE_WAITS]++;
	scale.now += PS_SYSCALL;
	scale__order();
	scale_kernel(kernel_bucket(word), SCALE_LOCKED_WRITE);
	scale_access((uintptr_t)word, sizeof *word, SCALE_READ);
	if (quiesce_load_relaxed(word) != value) /* Relaxed: one thread runs. */
		return 0;
	return scale__sleep_on(word, timeout_ns) ? -ETIMEDOUT : 0;
}

int platform_futex_wait_shared(uint32_t *word, uint32_t value, uint64_t timeout_ns)
{
	return platform_futex_wait(word, value, timeout_ns);
}

uint32_t platform_futex_wake(uint32_t *word, uint32_t nr_threads)
{
	uint32_t nr;

	if (!scale.counts)
		return 0;
	scale.counts[SCALE_WAKES]++;
	scale.now += PS_SYSCALL;
	scale__order();
	scale_kernel(kernel_bucket(word), SCALE_READ);
	nr = scale__wake(word, nr_threads);
	if (nr)
		scale_kernel(kernel_bucket(word), SCALE_LOCKED_WRITE);
	scale__order();
	return nr;
}

int platform_lock_pi(uint32_t *word, uint32_t tid)
{
	(void)word, (void)tid;
	return -ENOSYS;
}

int platform_unlock_pi(uint32_t *word)
{
	(void)word;
	return -ENOSYS;
}

void platform_yield(void)
{
	if (scale.counts)
		scale__yield();
}

uint64_t platform_now_ns(void)
{
	if (scale.counts)
		scale.now += 20000;
	return scale_now_ps() / 1000;
}

/* ---- threads ---- */

uint32_t platform_tid(void)
{
	return scale__tid();
}

bool platform_in_process(void)
{
	return true;
}

void platform_process_begin(void)
{
}

bool platform_thread_alive(uint32_t tid)
{
	char state;

	return scale__alive(tid, &state);
}

char platform_thread_state(uint32_t tid)
{
	char state;

	return scale__alive(tid, &state) ? state : '?';
}

void platform_thread_name(uint32_t tid, char name[16])
{
	snprintf(name, 16, "%u", tid);
}

void platform_describe_code(const void *at, char *text, size_t size)
{
	snprintf(text, size, "%p", at);
}

void platform_cpus_of_process(struct platform_cpus *ret)
{
	memset(ret, 0, sizeof *ret);
	for (int i = 0; i < scale_nr_cpus(); i++)
		ret->bits[(size_t)i / PLATFORM_CPUS_PER_WORD] |= 1ul << (size_t)i % PLATFORM_CPUS_PER_WORD;
}

bool platform_cpus_of_list(const char *file, struct platform_cpus *ret)
{
	(void)file, (void)ret;
	return false;
}

int platform_thread_start(const struct platform_start *start, const struct platform_thread *how, pthread_t *ret)
{
	(void)how;
	*ret = (pthread_t)scale__thread_start(start->fn, start->arg);
	return 0;
}

void platform_thread_settle(pthread_t thread, const struct platform_thread *how)
{
	(void)thread, (void)how;
}

void platform_thread_begin(const char *name, const struct platform_thread *how)
{
	(void)name, (void)how;
}

int platform_thread_change(uint32_t tid, const struct platform_thread *how, const char *name)
{
	(void)tid, (void)how, (void)name;
	return 0;
}

int platform_arm_thread_exit(void)
{
	return scale__arm_exit() ? 0 : -EAGAIN;
}

void platform_run(void (*code)(void *arg), void (*ended)(void *arg), void *arg)
{
	(void)ended;
	code(arg);
}

bool platform_set_cancelable(bool may)
{
	(void)may;
	return false;
}

void platform_signals_block(struct platform_sigmask *ret_old)
{
	memset(ret_old, 0, sizeof *ret_old);
}

void platform_signals_restore(const struct platform_sigmask *old)
{
	(void)old;
}

/* ---- process ---- */

int platform_init(const struct platform_hooks *hooks)
{
	scale__exit_hook = hooks->thread_exit;
	return 0;
}

struct platform_canary *platform_canary(void)
{
	static struct platform_canary canary;

	return &canary;
}

bool platform_is_first_thread(void)
{
	return scale__tid() == 1000;
}

int platform_count_copies(void)
{
	return 1;
}

const char *platform_location(const void *address, struct platform_location *ret)
{
	snprintf(ret->text, sizeof ret->text, "%p", address);
	return ret->text;
}

const char *platform_getenv(const char *name)
{
	(void)name;
	return NULL;
}

void platform_write_stderr(const char *text, size_t length)
{
	fwrite(text, 1, length, stderr);
}

void platform_die(void)
{
	scale_fail("the library has aborted");
}

void quiesce__keep_loaded(const void *inside)
{
	(void)inside;
}

uint64_t platform_random(void)
{
	static uint64_t number = 0x6a09e667f3bcc908u;

	number = number * 6364136223846793005u + 1442695040888963407u;
	return number ^ number >> 29;
}

/* ---- memory: at the same addresses in each run ---- */

static void *map(size_t bytes, size_t align)
{
	static uintptr_t next = 0x200000000000;
	void *p;

	next = (next + align - 1) & ~(uintptr_t)(align - 1);
	p = mmap((void *)next, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
	if (p != (void *)next)
		scale_fail("no memory for %zu bytes", bytes);
	next += (bytes + 4095) & ~(size_t)4095;
	return p;
}

void *platform_reserve(size_t bytes)
{
	return map(bytes, 4096);
}

int platform_commit(void *start, size_t bytes)
{
	(void)start, (void)bytes;
	return 0;
}

void platform_release(void *start, size_t bytes)
{
	munmap(start, bytes);
}

void *platform_arena_reserve(size_t bytes, size_t max)
{
	return map(max > bytes ? max : bytes, (size_t)1 << 21);
}

int platform_arena_extend(void *start, size_t bytes)
{
	(void)start, (void)bytes;
	return 0;
}

void *platform_pages_get(size_t bytes)
{
	return map(bytes, 4096);
}

void platform_pages_put(void *start, size_t bytes)
{
	munmap(start, bytes);
}

void platform_objects_begin(void *start, size_t bytes)
{
	(void)start, (void)bytes;
}

void platform_objects_end(void *start, size_t bytes)
{
	madvise(start, bytes, MADV_DONTNEED);
}

bool platform_poisons(void)
{
	return false;
}

void platform_poison(const void *start, size_t bytes, bool on)
{
	(void)start, (void)bytes, (void)on;
}

/* A block of the heap: the machine's own word is beside it, as sizes of allocators are. */
struct block { struct block *next; uint64_t pad[7]; };

#define NR_SIZES 32
static struct block *free_blocks[SCALE_CPUS][NR_SIZES];

static unsigned int size_class(size_t bytes)
{
	return bytes <= 64 ? 6 : 64 - (unsigned int)__builtin_clzll(bytes - 1);
}

static void *heap_get(size_t bytes)
{
	static char *at, *end;
	unsigned int class = size_class(bytes);
	size_t size = ((size_t)1 << class) + sizeof(struct block);
	struct block **list = &free_blocks[scale.cpu][class % NR_SIZES], *b = *list;

	if (scale.counts) {
		scale.counts[SCALE_HEAP]++;
		scale.now += PS_HEAP;
	}
	if (b) {
		*list = b->next;
	} else {
		if ((size_t)(end - at) < size) {
			size_t chunk = size > (1u << 22) ? size : 1u << 22;

			at = map(chunk, 4096);
			end = at + chunk;
		}
		b = (struct block *)at;
		at += size;
	}
	b->next = (struct block *)(uintptr_t)class;
	return b + 1;
}

static void heap_put(void *start)
{
	struct block *b = (struct block *)start - 1, **list;

	if (!start)
		return;
	if (scale.counts) {
		scale.counts[SCALE_HEAP]++;
		scale.now += PS_HEAP;
	}
	list = &free_blocks[scale.cpu][(uintptr_t)b->next % NR_SIZES];
	b->next = *list;
	*list = b;
}

/* Blocks are aligned to a line. */
void *__wrap_aligned_alloc(size_t align, size_t bytes);
void *__wrap_aligned_alloc(size_t align, size_t bytes)
{
	if (align > sizeof(struct block))
		scale_fail("no block of the heap is aligned to %zu bytes", align);
	return heap_get(bytes);
}

void *platform_block_get(size_t bytes)
{
	return heap_get(bytes);
}

void platform_block_put(void *start, size_t bytes)
{
	(void)bytes;
	heap_put(start);
}

void *platform_lines_get(size_t bytes)
{
	void *start = heap_get(bytes);

	memset(start, 0, bytes);
	return start;
}

void platform_lines_put(void *start, size_t bytes)
{
	(void)bytes;
	heap_put(start);
}

void platform_free(void *object)
{
	if (scale.counts)
		scale.counts[SCALE_FREED]++;
	heap_put(object);
}

/* ---- topology and sequences ---- */

int platform_nr_possible_cpus(void)
{
	return SCALE_CPUS;
}

size_t platform_nr_ids(size_t *ret_max)
{
	*ret_max = SCALE_CPUS;
	return SCALE_CPUS;
}

uint32_t platform_cpu(void)
{
	return (uint32_t)scale.cpu;
}

uint32_t platform_cpu_of(int64_t distance)
{
	const char *block = scale_thread_pointer() + distance;

	scale_access((uintptr_t)block + SCALE_RSEQ_OFFSET, sizeof(uint32_t), SCALE_READ); /* The kernel and that thread write there. */
	return (uint32_t)scale__cpu_of(block);
}

enum platform_rseq_kind platform_rseq_kind(void)
{
	return PLATFORM_RSEQ_MM_CID;
}

int64_t platform_rseq_area(void)
{
	return SCALE_RSEQ_OFFSET;
}

int64_t platform_rseq_id(bool mm_cid)
{
	return SCALE_RSEQ_OFFSET + (int64_t)(mm_cid ? offsetof(struct scale_rseq, mm_cid) : offsetof(struct scale_rseq, cpu_id));
}
