/* SPDX-License-Identifier: MIT */
/* mb.c - liburcu-mb.so.8. */
#include "words.h"

#include <errno.h>

QUIESCE_URCU_CALLS(mb)

#define F(name) urcu_mb_##name
#define FLAVOR_NAME "mb"
#define KIND QUIESCE_URCU_FENCED
#define LIGHT false
#include "nesting.h"

static bool added;

__attribute__((constructor)) static void begin(void)
{
	if (added)
		return;
	added = true;
	(void)quiesce_urcu_domain_add(&domain);
}

/* Programs' constructors may come first. */
void urcu_mb_init(void) { begin(); }
