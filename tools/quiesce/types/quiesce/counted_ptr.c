/* SPDX-License-Identifier: MIT */
/* counted_ptr.c - the counted pointer of quiesce, borrowed for a section: a slot for each section, no reference. */
#include <quiesce/counted_ptr.h>

#include "ours.h"
#include "loop.h"
#include "registry.h"

/* The tool's own item has no count.  This one has the layout that
 * make_counted() of C++ makes: the count before the object. */
struct counted_item {
	struct counted counted;
	uint64_t field;
};

static void never(struct counted *counted)
{
	(void)counted; /* the item is static, and keeps its first reference */
}

static struct counted_item item = { { .release = never, .refs = 1 }, 1 };

static struct {
	struct counted_item *ptr;
} __attribute__((aligned(128))) counted_target = { &item };

static __thread hazptr_t *held __attribute__((tls_model("initial-exec")));

OP_SECTION(counted_ptr, (void)t; hazptr_t *slot = hazptr_alloc(NULL), counted_protect(slot, &counted_target.ptr, counted),
	   hazptr_free(NULL, slot))

OP_FUNCTION(section_lock, held = hazptr_alloc(NULL); (void)counted_protect(held, &counted_target.ptr, counted))
OP_FUNCTION(section_unlock, hazptr_free(NULL, held))

OP_READ_OPS(counted_ptr, section_lock, section_unlock);

/* The first slot gives the thread its line. */
OP_FUNCTION(first_section, hazptr_free(NULL, hazptr_alloc(NULL)))

TYPE(counted_ptr, .rank = 560, .groups = RUN_OBJECT | REPORT_READ | FAMILY_OBJECT, .peers = PEER_HAZPTR | PEER_COUNT,
	.what = "a counted pointer of quiesce, read by a hazard pointer that could be promoted to a reference",
	OURS, .read = &counted_ptr_read, .thread_enter = first_section);
