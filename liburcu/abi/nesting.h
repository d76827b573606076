/* SPDX-License-Identifier: MIT */
/* nesting.h - a flavour whose readers nest and are registered, memb and mb.  Included with the macros that
 * ../src/nesting.h needs, except GP, READER and REGISTERED, and with LIGHT: true if readers may leave their fences
 * out.  No guard. */

QUIESCE_DATA struct urcu_gp F(gp) = { .ctr = 1 };
QUIESCE_DATA __thread struct urcu_reader F(reader);

QUIESCE_DATA void F(read_lock)(void);
QUIESCE_DATA void F(read_unlock)(void);
QUIESCE_DATA int F(read_ongoing)(void);

void F(read_lock)(void) { quiesce__urcu_lock(&F(reader).ctr, &F(gp).ctr, LIGHT); }

void F(read_unlock)(void)
{
	if (quiesce__urcu_unlock(&F(reader).ctr, LIGHT))
		urcu_wake(&F(gp).futex);
}

int F(read_ongoing)(void) { return (F(reader).ctr & QUIESCE_URCU_NESTING) != 0; }

/* There is nothing left to do. */
QUIESCE_DATA void F(exit)(void);
void F(exit)(void) {}

#define GP F(gp)
#define READER F(reader)
#define REGISTERED at.nesting.registered
#include "../src/nesting.h"

static void nothing(void) {}

#define F_BEFORE_UPDATE nothing
#define F_QUIESCENT_STATE nothing
#define F_THREAD_OFFLINE nothing
#define F_THREAD_ONLINE nothing
#include "domain.h"
