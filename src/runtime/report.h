/* SPDX-License-Identifier: MIT */
/* report.h - one line about a wait that lasts, or about garbage that grows: who waits, for whom, what waits behind it.
 *
 * Whoever reports holds no lock that anybody takes who runs: the hook is the program's.
 */
#ifndef QUIESCE_REPORT_H
#define QUIESCE_REPORT_H

#include "core.h"
#include "held.h"

struct quiesce__report {
	struct quiesce_report told;
	size_t length;
	char text[600];
};

/* A wait of @call, for @object or for RCU if that is NULL, has lasted for @ns. */
void quiesce__report_stall(struct quiesce__report *r, const char *call, const void *object, uint64_t ns);
/* So much waits of @what. */
void quiesce__report_garbage(struct quiesce__report *r, const char *what, uint64_t bytes, uint64_t objects);
void quiesce__report_add(struct quiesce__report *r, const char *format, ...) __attribute__((format(printf, 2, 3), cold));
/* Which thread, by number and name, and whether it is asleep or has ended; @waiter: the one that waits. */
void quiesce__report_thread(struct quiesce__report *r, uint32_t tid, uint32_t waiter);
/* Since when, and from which code, as far as that is known: 0, NULL: not. */
void quiesce__report_since(struct quiesce__report *r, uint64_t since, const void *site);
/* Where code is from. */
void quiesce__report_code(struct quiesce__report *r, const char *before, const void *code);
/* Of @object, the one of the debug build that holds it longest; if none is known, where that would be. */
void quiesce__report_held(struct quiesce__report *r, const void *object, enum quiesce__held_kind kind);
/* @inside, a difference of two sums: "3 readers", or how many have left that never came. */
void quiesce__report_count(struct quiesce__report *r, uint64_t inside, const char *what);
/* Tell it: the program's hook, or stderr. */
void quiesce__report_end(struct quiesce__report *r);

/* Garbage of each kind is told when it comes to the threshold, to twice as much, and so on. */
enum quiesce__garbage_kind { QUIESCE_GARBAGE_RCU, QUIESCE_GARBAGE_SRCU, QUIESCE_GARBAGE_HAZPTR, QUIESCE_NR_GARBAGE_KINDS };
/* Is it time to tell of @bytes?  Cheap, so it may be asked often. */
bool quiesce__garbage_to_tell(enum quiesce__garbage_kind kind, uint64_t bytes);
void quiesce__reports_fork_child(void);

#endif
