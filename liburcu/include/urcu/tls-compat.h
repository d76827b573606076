/* SPDX-License-Identifier: MIT */
/* urcu/tls-compat.h - variables of which each thread has its own.
 *
 *	DEFINE_URCU_TLS_INIT(int, depth, 0);           // in one file; "static" may stand before it
 *	extern DECLARE_URCU_TLS(int, depth);           // in others
 *	URCU_TLS(depth)++;
 *
 * A type that is more than a name needs a typedef.  In C++ too it is __thread: initialised by constants, and the
 * same variable as C's of that name.
 */
#ifndef QUIESCE_URCU_TLS_COMPAT_H
#define QUIESCE_URCU_TLS_COMPAT_H

#include <urcu/arch.h>
#include <urcu/compiler.h>
#include <urcu/config.h>

#include <stdlib.h> /* programs rely on this header to include it */

#define URCU_TLS_STORAGE_CLASS __thread

#define DECLARE_URCU_TLS(type, name) URCU_TLS_STORAGE_CLASS type name
#define DEFINE_URCU_TLS(type, name) URCU_TLS_STORAGE_CLASS type name
#define DEFINE_URCU_TLS_INIT(type, name, init) URCU_TLS_STORAGE_CLASS type name = (init)
#define URCU_TLS(name) (name)

#endif
