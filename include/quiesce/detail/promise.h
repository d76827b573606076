/* SPDX-License-Identifier: MIT */
/* quiesce/detail/promise.h - private: the promise of light fences, QUIESCE_LIGHT_FENCES_ONLY, which
 * control.h describes. */
#ifndef QUIESCE_DETAIL_PROMISE_H
#define QUIESCE_DETAIL_PROMISE_H

#include <quiesce/base.h>

QUIESCE_BEGIN_DECLS

#if defined(QUIESCE_LIGHT_FENCES_ONLY)
#define QUIESCE__LIGHT_PROMISED 1
#else
#define QUIESCE__LIGHT_PROMISED 0
#endif
QUIESCE_API void quiesce__promise_light_fences(void);
#if QUIESCE__LIGHT_PROMISED
__attribute__((__constructor__)) static void quiesce__promise(void) { quiesce__promise_light_fences(); }
#endif

QUIESCE_END_DECLS

#endif
