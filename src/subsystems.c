/* SPDX-License-Identifier: MIT */
/* subsystems.c - the list of what the library is made of, in the order in which locks nest.
 *
 * Order: queues.lock of RCU; the locks of hazard pointers; the helper's; those of counters per CPU.
 * The runtime stands among the others because its locks do.
 */
#include "runtime/subsystem.h"

extern const struct quiesce__subsystem quiesce__rcu_subsystem, quiesce__hazard_subsystem, quiesce__runtime_subsystem,
	quiesce__percpu_subsystem;

const struct quiesce__subsystem *const quiesce__subsystems[] = {
	&quiesce__rcu_subsystem,
	&quiesce__hazard_subsystem,
	&quiesce__runtime_subsystem,
	&quiesce__percpu_subsystem,
	NULL,
};
