/* SPDX-License-Identifier: MIT */
/* quiesce-urcu/name.h - the linker names of the functions that these headers declare; private.
 *
 * A process may also hold liburcu itself, loaded by a library that was not rebuilt.  If both exported the same names,
 * that library's calls would reach this library while its inlined readers write liburcu's words: objects would be
 * freed while it reads them.
 */
#ifndef QUIESCE_URCU_NAME_H
#define QUIESCE_URCU_NAME_H

#include <quiesce/base.h>

/* Put after a declaration: the linker name becomes quiesce_@name; in the objects that replace liburcu's own
 * (liburcu/abi) it is @name. */
#ifdef QUIESCE_URCU_ABI
#define QUIESCE_URCU_NAME(name) QUIESCE_DATA
#else
#define QUIESCE_URCU_NAME(name) __asm__("quiesce_" #name) QUIESCE_DATA /* raw: a name, no code */
#endif

#define QUIESCE_URCU_BEGIN QUIESCE_BEGIN_DECLS
#define QUIESCE_URCU_END QUIESCE_END_DECLS

#endif
