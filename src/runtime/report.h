/* SPDX-License-Identifier: MIT */
/* report.h - one line of text about a wait that lasts, or garbage that grows: the waiter, what it waits for, what is
 * queued behind it.
 *
 * A reporting thread holds no lock that running threads may need: the hook is code of the program.
 */
#ifndef QUIESCE_REPORT_H
#define QUIESCE_REPORT_H

#include "core.h"
#include "held.h"

struct quiesce__report {
	struct quiesce_report reported;
	size_t length;
	char text[600];
};

/* Begin a report of a wait of @call that has lasted for @ns, for @object, or for RCU if @object is NULL. */
void quiesce__report_stall(struct quiesce__report *r, const char *call, const void *object, uint64_t ns);
/* Begin a report of garbage: @bytes in @objects of @what wait for their callbacks. */
void quiesce__report_garbage(struct quiesce__report *r, const char *what, uint64_t bytes, uint64_t objects);
void quiesce__report_add(struct quiesce__report *r, const char *format, ...) __attribute__((format(printf, 2, 3), cold));
/* Add a thread by id and name, and whether it sleeps or has ended.  @waiter: id of the waiter. */
void quiesce__report_thread(struct quiesce__report *r, uint32_t tid, uint32_t waiter);
/* Add how long the thread has been inside, and the code that entered; 0 or NULL if unknown. */
void quiesce__report_since(struct quiesce__report *r, uint64_t since, const void *site);
/* Add @before and the object file and offset of @code. */
void quiesce__report_code(struct quiesce__report *r, const char *before, const void *code);
/* Add the holder of @object that took it first; without a debug build, how to learn it. */
void quiesce__report_held(struct quiesce__report *r, const void *object, enum quiesce__held_kind kind);
/* Add @inside, a difference of two sums: "3 readers", or the number of unlocks that exceed the locks. */
void quiesce__report_count(struct quiesce__report *r, uint64_t inside, const char *what);
/* Deliver the report to the program's hook, else to stderr. */
void quiesce__report_end(struct quiesce__report *r);

/* Garbage of each kind is reported when it reaches the threshold, twice the threshold, and so on. */
enum quiesce__garbage_kind { QUIESCE_GARBAGE_RCU, QUIESCE_GARBAGE_SRCU, QUIESCE_GARBAGE_HAZPTR, QUIESCE_NR_GARBAGE_KINDS };
/* Take the report of @bytes, if one is due: true for one caller.  Cheap enough to call often. */
bool quiesce__garbage_take_report(enum quiesce__garbage_kind kind, uint64_t bytes);
void quiesce__reports_fork_child(void);

#endif
