/* SPDX-License-Identifier: MIT */
/* waitq.h - where to sleep until readers have left an object that they may not touch any more once they have.
 *
 * A hashed table of words that are the library's, as the kernel's bit_waitqueue(): an object's address chooses its word.
 * Objects may share one: all sleepers are woken, and each looks again.
 * The word is odd while somebody sleeps, or is about to, and has another value after every wake-up.
 *
 *   who leaves                          who waits
 *   left counted, full fence            word made odd                    WQ1
 *   word odd?  made even, wake          all left?  else sleep while it is unchanged
 */
#ifndef QUIESCE_WAITQ_H
#define QUIESCE_WAITQ_H

#include "core.h"

/* The word of an object, which need not exist any more. */
uint32_t *quiesce__waitq_of(const void *object);
/* Say that the caller is about to sleep; the value to sleep on, platform_futex_wait().  A full fence. */
uint32_t quiesce__waitq_prepare(uint32_t *word);
/* Wake all who sleep.  The caller has a full fence between what they wait for and this. */
void quiesce__waitq_wake(uint32_t *word);

#endif
