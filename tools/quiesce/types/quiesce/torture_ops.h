/* SPDX-License-Identifier: MIT */
/* torture_ops.h - calls of the library that torture makes through tables, so that broken variants have the same form. */
#ifndef QUIESCE_TOOL_TORTURE_OPS_H
#define QUIESCE_TOOL_TORTURE_OPS_H

#include <quiesce/percpu_ref.h>
#include <quiesce/percpu_rwsem.h>
#include <quiesce/slab.h>
#include <quiesce/srcu.h>

#include "op.h"

/* @timeout_ns: 0 tries once, UINT64_MAX waits without a limit. */
struct torture_rwsem_ops {
	bool (*read)(struct percpu_rw_semaphore *sem, uint64_t timeout_ns);
	void (*read_end)(struct percpu_rw_semaphore *sem);
	bool (*write)(struct percpu_rw_semaphore *sem, uint64_t timeout_ns);
	void (*write_end)(struct percpu_rw_semaphore *sem);
};
extern const struct torture_rwsem_ops torture_rwsem_ops, torture_busted_rwsem_ops;

struct torture_ref_ops {
	void (*get)(struct percpu_ref *ref, unsigned long nr);
	void (*put)(struct percpu_ref *ref, unsigned long nr);
	bool (*tryget)(struct percpu_ref *ref, bool live);
};
extern const struct torture_ref_ops torture_ref_ops, torture_busted_ref_ops;

/* @create makes a cache whose objects readers may load while they are freed. */
struct torture_slab_ops {
	struct kmem_cache *(*create)(size_t bytes, void (*construct)(void *object));
};
extern const struct torture_slab_ops torture_slab_ops, torture_busted_slab_ops;

/* The domain whose sections protect torture's elements. */
extern struct srcu_struct torture_domain;

/* torture/: the tortures of the types of torture_ops.c; other types with the same names are measured. */
extern const struct torture_kind torture_srcu, torture_rwsem, torture_busted_rwsem, torture_ref, torture_busted_ref, torture_slab,
	torture_busted_slab;

#endif
