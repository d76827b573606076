/* SPDX-License-Identifier: MIT */
/* mb.c - liburcu-mb.so.8. */
#include "words.h"

#include <errno.h>

QUIESCE_URCU_CALLS(mb)

#define F(name) urcu_mb_##name
#define FLAVOR_NAME "mb"
#define KIND QUIESCE_URCU_FENCED
#define LIGHT false
#define BEGUN(light) ((void)(light))
#include "nesting.h"
