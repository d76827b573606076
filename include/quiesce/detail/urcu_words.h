/* SPDX-License-Identifier: MIT */
/* quiesce/detail/urcu_words.h - grace periods over words that code of liburcu writes, which was
 * inlined into programs; private, for the objects with liburcu's names.
 *
 * The words of a reader and of the domain are where that code expects them.  src/urcu/urcu_words.c
 * describes how the code writes them, which is fixed.
 */
#ifndef QUIESCE_DETAIL_URCU_WORDS_H
#define QUIESCE_DETAIL_URCU_WORDS_H

#include <quiesce/atomic.h>

QUIESCE_BEGIN_DECLS

enum quiesce_urcu_kind {
	QUIESCE_URCU_LIGHT,   /* memb, bp: readers nest, with light fences where the library has them */
	QUIESCE_URCU_FENCED,  /* mb: readers nest, and execute full fences */
	QUIESCE_URCU_QUIET,   /* qsbr: readers report when they are quiescent, with full fences */
};

/* The record of a registered thread; its memory stays until the record is removed. */
struct quiesce_urcu_record {
	struct quiesce_urcu_record *next, **at;
	uint64_t *word;
	uint32_t *waiting; /* qsbr: set by a waiter that sleeps for the thread; else NULL */
	uint64_t passed;   /* newest grace period for which it was seen to be no holdout */
	const void *owner; /* the library's block of the thread */
	uint32_t tid;      /* thread id, for reports */
};

struct quiesce_urcu_domain {
	const char *call; /* name of the program's call, for reports */
	enum quiesce_urcu_kind kind;
	uint64_t *gp;
	uint32_t *futex; /* waiters sleep on it, all ones then; NULL: readers wake no waiter */
	struct quiesce__lock driving;  /* held during grace periods, so that these do not overlap */
	struct quiesce__lock lock;     /* guards the records; not held during a sleep */
	struct quiesce_urcu_record *records;
	uint64_t started, completed;
	struct quiesce_urcu_domain *next;
};

/* Add a domain, once, before it has readers.  Returns whether readers of a LIGHT domain may omit
 * their fences. */
QUIESCE_API int quiesce_urcu_domain_add(struct quiesce_urcu_domain *domain);
QUIESCE_API void quiesce_urcu_record_add(struct quiesce_urcu_domain *domain, struct quiesce_urcu_record *record);
QUIESCE_API void quiesce_urcu_record_remove(struct quiesce_urcu_domain *domain, struct quiesce_urcu_record *record);
/* Wait until every section that is open has ended; the caller is in none.  Full fence before and
 * after. */
QUIESCE_API void quiesce_urcu_wait(struct quiesce_urcu_domain *domain);
/* Return a cookie for a grace period that begins now or later, and check whether that is over.
 * Neither call sleeps. */
QUIESCE_API uint64_t quiesce_urcu_cookie(struct quiesce_urcu_domain *domain);
QUIESCE_API int quiesce_urcu_poll(struct quiesce_urcu_domain *domain, uint64_t cookie);

QUIESCE_END_DECLS

#endif
