/* SPDX-License-Identifier: MIT */
/* subsystems.c - the subsystems of the library, in the order in which their locks nest.
 *
 * Order: queues.lock of RCU; the locks of liburcu's domains; the locks of hazard pointers; the helper's lock; the locks of per-CPU
 * primitives; the locks of object caches.
 * The runtime is one of the subsystems because its locks nest between theirs.
 */
#include "runtime/subsystem.h"

extern const struct quiesce__subsystem quiesce__rcu_subsystem, quiesce__urcu_subsystem, quiesce__hazard_subsystem,
	quiesce__runtime_subsystem, quiesce__percpu_subsystem, quiesce__slab_subsystem;

const struct quiesce__subsystem *const quiesce__subsystems[] = {
	&quiesce__rcu_subsystem,
	&quiesce__urcu_subsystem,
	&quiesce__hazard_subsystem,
	&quiesce__runtime_subsystem,
	&quiesce__percpu_subsystem,
	&quiesce__slab_subsystem,
	NULL,
};
