/* SPDX-License-Identifier: MIT */
/* waitq.h - sleep until the readers have left an object that they may not touch after they have left it.
 *
 * A hashed table of the library's own words, like the kernel's bit_waitqueue(): an object's address selects
 * its word.  Objects may share a word: a wake-up wakes all of its sleepers, and each checks its own condition
 * again.  The word is odd while a waiter sleeps, or is about to, and has another value after every wake-up.
 *
 *   a reader that leaves                a waiter
 *   left counted, full fence            word made odd                    WQ1
 *   word odd?  made even, wake          all left?  else sleep while it is unchanged
 */
#ifndef QUIESCE_WAITQ_H
#define QUIESCE_WAITQ_H

#include "core.h"

/* The word of @object, which need not exist any more. */
uint32_t *quiesce__waitq_of(const void *object);
/* Announce that the caller is about to sleep; returns the value to pass to platform_futex_wait().  A full
 * fence. */
uint32_t quiesce__waitq_prepare(uint32_t *word);
/* Wake all sleepers of @word.  The caller has executed a full fence between what they wait for and this call. */
void quiesce__waitq_wake(uint32_t *word);

#endif
