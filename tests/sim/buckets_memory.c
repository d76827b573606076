/* SPDX-License-Identifier: MIT */
/* buckets_memory.c - the library's memory for tables, in this program: each block is a page, which traps on access once it is freed. */
#include "buckets_world.h"

#include "rcu/queue.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096u
#define NR_PAGES 96u

/* The pages are not among the variables that are restored for each run, because a page may be inaccessible then. */
static char *pages SIM_KEEP;
static uint32_t pages_dirty SIM_KEEP;
static uint32_t nr_pages;

int world_successes, world_failures, world_blocks;

/* The linker resolves platform_lines_get() and platform_lines_put() to these. */
void *__wrap_platform_lines_get(size_t bytes);
void __wrap_platform_lines_put(void *start, size_t bytes);
void *__real_platform_lines_get(size_t bytes);
void __real_platform_lines_put(void *start, size_t bytes);

/* Memory of threads' queues of call_rcu() does not count as that of tables. */
static bool of_a_queue(size_t bytes)
{
	return bytes == sizeof(struct quiesce__queue);
}

void world_memory_begin(void)
{
	if (!pages)
		pages = mmap(NULL, (size_t)NR_PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED || mprotect(pages, (size_t)NR_PAGES * PAGE, PROT_READ | PROT_WRITE))
		abort();
	memset(pages, 0, (size_t)pages_dirty * PAGE);
	pages_dirty = 0;
}

void *__wrap_platform_lines_get(size_t bytes)
{
	if (of_a_queue(bytes))
		return __real_platform_lines_get(bytes);
	if (bytes > PAGE || nr_pages == NR_PAGES) {
		sim_fail("scenario: more than %u blocks of memory", NR_PAGES);
		return NULL;
	}
	if (world_successes) {
		world_successes--;
	} else if (world_failures) {
		world_failures--;
		sim_saw();
		return NULL;
	}
	pages_dirty = nr_pages + 1;
	world_blocks++;
	return pages + (size_t)PAGE * nr_pages++;
}

void __wrap_platform_lines_put(void *start, size_t bytes)
{
	if (of_a_queue(bytes)) {
		__real_platform_lines_put(start, bytes);
		return;
	}
	if ((char *)start < pages || (char *)start >= pages + (size_t)NR_PAGES * PAGE || (uintptr_t)start % PAGE)
		sim_fail("what is freed was never allocated");
	world_blocks--;
	memset(start, 0xa5, PAGE); /* traps if the block is freed twice */
	if (mprotect(start, PAGE, PROT_NONE))
		abort();
}
