/* SPDX-License-Identifier: MIT */
/* quiesce/ds/hashtable_erase.h - removal of several objects of a hashtable by one call; hashtable.h
 * includes it, and is the manual of tables.
 *
 *	nr = hashtable_remove_all(&flows, &id, retire, NULL);            // all objects with a key
 *	nr = hashtable_remove_if(&flows, is_idle, retire, &now);         // all that are idle
 *
 * Order: as for hashtable.h; each removal is an update of its own, so a lookup may find some of the
 * objects when others are gone.
 * Fork, worker, memory: as for hashtable.h.  Both calls succeed without memory.
 */
#ifndef QUIESCE_DS_HASHTABLE_ERASE_H
#define QUIESCE_DS_HASHTABLE_ERASE_H

#include <quiesce/detail/tagged.h>

QUIESCE_BEGIN_DECLS

/* ---- private: the code that the calls below inline ---- */

QUIESCE_API size_t quiesce_hashtable_remove_all(struct hashtable *ht, const void *key, void (*drop)(void *object, void *arg), void *arg);
QUIESCE_API size_t quiesce_hashtable_remove_if(struct hashtable *ht, bool (*match)(void *object, void *arg),
					       void (*drop)(void *object, void *arg), void *arg);

/* ---- removals ---- */

/** hashtable_remove_all - remove all objects with @key, which may be in one of them.
 * @drop: called for each, with @arg, in a section, without the bucket's lock; NULL: none.  It
 *   retires, as readers may use the object.
 *
 * At one moment of the call no object has the key; objects that are inserted meanwhile may be
 * removed, too.
 * Context: any thread, also in a section; not in signal handlers.
 * Cost: one pass over the bucket, two if it has more than 64 objects with the key.
 * Return: the number of removed objects. */
QUIESCE_PLAIN size_t hashtable_remove_all(struct hashtable *ht, const void *key, void (*drop)(void *object, void *arg), void *arg)
{
	return quiesce_hashtable_remove_all(ht, key, drop, arg);
}

/** hashtable_remove_if - remove the objects that @match chooses.
 * @match: called with each object and @arg, under the bucket's lock: no other update of the object's
 *   key comes between its answer and the removal.  It may be called again with an object that it
 *   has kept.  It must not use the table, sleep, wait for readers, throw, jump out, or end the
 *   thread.
 * @drop: as that of hashtable_remove_all(), with the same @arg.
 *
 * Objects that are in the table throughout the call are judged; objects that are inserted meanwhile
 * may be judged or not.
 * Context: any thread, also in a section; enters a section for each bucket, so no grace period
 *   waits for the whole; not in signal handlers.
 * Cost: as an iteration, and a lock for each bucket that was ever used; the table shrinks afterwards,
 *   but not below what was reserved.
 *   Without memory for their addresses, a bucket is walked through once for each 64 objects that
 *   it has, and @match is called each time.
 * Return: the number of removed objects. */
QUIESCE_PLAIN size_t hashtable_remove_if(struct hashtable *ht, bool (*match)(void *object, void *arg),
					 void (*drop)(void *object, void *arg), void *arg)
{
	return quiesce_hashtable_remove_if(ht, match, drop, arg);
}

QUIESCE_END_DECLS

#endif
