/* SPDX-License-Identifier: MIT */
/* quiesce/detail/urcu_words.h - grace periods over words that programs write by code of liburcu's that was inlined into them; private, for
 * the objects with liburcu's names.
 *
 * The words of a reader and of the domain are where that code expects them; how it writes them is fixed (src/rcu/urcu_words.c).
 */
#ifndef QUIESCE_DETAIL_URCU_WORDS_H
#define QUIESCE_DETAIL_URCU_WORDS_H

#include <quiesce/atomic.h>

QUIESCE_BEGIN_DECLS

enum quiesce_urcu_kind {
	QUIESCE_URCU_LIGHT,   /* readers nest; their fences are light where the library's are: memb, bp */
	QUIESCE_URCU_FENCED,  /* readers nest, and have full fences: mb */
	QUIESCE_URCU_QUIET,   /* readers say when they read nothing, with full fences: qsbr */
};

/* One registered thread; in memory that stays until it is taken out. */
struct quiesce_urcu_record {
	struct quiesce_urcu_record *next, **at;
	uint64_t *word;
	uint32_t *waiting; /* qsbr: set by who sleeps for it; else NULL */
	uint64_t passed;   /* the newest grace period for which it was seen not to be in the way */
	const void *owner; /* whose thread it is */
	uint32_t tid;      /* for reports */
};

struct quiesce_urcu_domain {
	const char *call; /* for reports */
	enum quiesce_urcu_kind kind;
	uint64_t *gp;
	uint32_t *futex; /* on which who waits sleeps, all ones then; NULL: readers wake nobody */
	struct quiesce__lock driving;  /* one grace period at a time */
	struct quiesce__lock lock;     /* of the records; not held over a sleep */
	struct quiesce_urcu_record *records;
	uint64_t started, completed;
	struct quiesce_urcu_domain *next;
};

/* Once, before any reader.  Returns whether readers of LIGHT may leave their fences out. */
QUIESCE_API int quiesce_urcu_domain_add(struct quiesce_urcu_domain *domain);
QUIESCE_API void quiesce_urcu_record_add(struct quiesce_urcu_domain *domain, struct quiesce_urcu_record *record);
QUIESCE_API void quiesce_urcu_record_remove(struct quiesce_urcu_domain *domain, struct quiesce_urcu_record *record);
/* Wait until every section that is open has ended; the caller is in none.  Full fence before and after. */
QUIESCE_API void quiesce_urcu_wait(struct quiesce_urcu_domain *domain);
/* A cookie for a grace period that begins now or later, and: is it over?  Neither sleeps. */
QUIESCE_API uint64_t quiesce_urcu_cookie(struct quiesce_urcu_domain *domain);
QUIESCE_API int quiesce_urcu_poll(struct quiesce_urcu_domain *domain, uint64_t cookie);

QUIESCE_END_DECLS

#endif
