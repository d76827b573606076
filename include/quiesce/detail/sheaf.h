/* SPDX-License-Identifier: MIT */
/* quiesce/detail/sheaf.h - sheaves: the free objects of a cache that a CPU has at hand; private, for
 * slab.h.
 *
 * A cache has a sheaf for each concurrency id: an array of pointers with their number, 4096 bytes
 * that no other id uses.  A thread pops the last one, or pushes one, in a restartable sequence on the sheaf of
 * its id, whose only store that counts is the last one, to the number: no fence, no locked
 * instruction, no line that another CPU writes.  So a signal handler, a child of fork() and a
 * thread that dies find every sheaf whole.
 *
 * The sequence loads the word "open" of the cache, as counts do (percpu.h): minus the address of
 * the sheaf of id 0, or 0 while no thread may use the sheaves inline.
 */
#ifndef QUIESCE_DETAIL_SHEAF_H
#define QUIESCE_DETAIL_SHEAF_H

#include <quiesce/detail/percpu.h>

QUIESCE_BEGIN_DECLS

#define QUIESCE_SHEAF_OBJECTS ((((size_t)1 << QUIESCE_PERCPU_SHIFT) - 16) / sizeof(void *))

struct quiesce__sheaf {
	uint64_t nr;
	struct quiesce__lock lock; /* guards the sheaf where there are no sequences */
	uint32_t reserved;
	void *object[QUIESCE_SHEAF_OBJECTS];
};

/* Pop the last object of this id's sheaf to *@ret_object; false: it is empty, or *@open is 0.  Push
 * @object to it; false: it has *@limit objects, or *@open is 0.  The check of *@open and the rest
 * are one step.  Both are acquires of *@open; a pop is an acquire of the number, too, and a push is
 * a release. */
#define quiesce_sheaf_pop(label, open, ret_object) quiesce__sheaf_pop((open), (ret_object))
#define quiesce_sheaf_push(label, open, limit, object) quiesce__sheaf_push((open), (limit), (object))

#if defined(QUIESCE_SIM)

#undef quiesce_sheaf_pop
#undef quiesce_sheaf_push
bool quiesce__sheaf_pop_sim(const uint64_t *open, void **ret_object, bool acquire, const char *label);
bool quiesce__sheaf_push_sim(const uint64_t *open, const uint64_t *limit, void *object, bool acquire, bool release,
			     const char *label);
#define quiesce_sheaf_pop(label, open, ret_object) \
	quiesce__sheaf_pop_sim((open), (ret_object), !quiesce_weakened(label, ACQUIRE), #label)
#define quiesce_sheaf_push(label, open, limit, object) \
	quiesce__sheaf_push_sim((open), (limit), (object), !quiesce_weakened(label, ACQUIRE), !quiesce_weakened(label, RELEASE), #label)

#elif defined(QUIESCE_COUNTS_INLINE)

QUIESCE_FAST bool quiesce__sheaf_pop(const uint64_t *open, void **ret_object)
{
	void *object;
	bool done;

	QUIESCE_SHEAF_POP(open, object, done);
	if (quiesce_unlikely(!done))
		quiesce__pin(); /* here, as it would lose the flags */
	*ret_object = object;
	return done;
}

QUIESCE_FAST bool quiesce__sheaf_push(const uint64_t *open, const uint64_t *limit, void *object)
{
	bool done;

	QUIESCE_SHEAF_PUSH(open, limit, object, done);
	if (quiesce_unlikely(!done))
		quiesce__pin();
	return done;
}

#else

#define quiesce__sheaf_pop(open, ret_object) ((void)(open), (void)(ret_object), false)
#define quiesce__sheaf_push(open, limit, object) ((void)(open), (void)(limit), (void)(object), false)

#endif

QUIESCE_END_DECLS

#endif
