/* SPDX-License-Identifier: MIT */
/* urcu/config.h - the settings of liburcu's configure script that its headers show, with the values of this library.
 *
 * Other settings are not set.  A program may define CONFIG_RCU_DEBUG itself, as DEBUG_RCU: it turns on
 * urcu_assert_debug().
 */
#ifndef QUIESCE_URCU_CONFIG_H
#define QUIESCE_URCU_CONFIG_H

#define CONFIG_RCU_SMP 1
#define CONFIG_RCU_TLS 1
#define CONFIG_RCU_HAVE_CLOCK_GETTIME 1
#define CONFIG_RCU_USE_ATOMIC_BUILTINS 1
#define CONFIG_RCU_EMIT_LEGACY_MB 1
#define CONFIG_RCU_HAVE_MULTIFLAVOR 1

#endif
