/* SPDX-License-Identifier: MIT */
/* quiesce-urcu/name.h - under which names the library exports what these headers declare; private.
 *
 * A process may hold liburcu itself too, loaded by a library that was not rebuilt.  If both exported the same names, that
 * library's calls would arrive here while its inlined readers write liburcu's words: objects would be freed under them.
 */
#ifndef QUIESCE_URCU_NAME_H
#define QUIESCE_URCU_NAME_H

#include <quiesce/base.h>

/* After a declaration: the linker calls it quiesce_@name; in the objects that stand for liburcu's own (liburcu/abi), by its name. */
#ifdef QUIESCE_URCU_ABI
#define QUIESCE_URCU_NAME(name) QUIESCE_DATA
#else
#define QUIESCE_URCU_NAME(name) __asm__("quiesce_" #name) QUIESCE_DATA /* raw: a name, no code */
#endif

#define QUIESCE_URCU_BEGIN QUIESCE_BEGIN_DECLS
#define QUIESCE_URCU_END QUIESCE_END_DECLS

#endif
