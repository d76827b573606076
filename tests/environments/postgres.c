/* SPDX-License-Identifier: MIT */
/* postgres.c - a function of PostgreSQL, which a backend calls: a process that the postmaster has forked. */
#include <postgres.h>

#include <fmgr.h>

#include "plug.h"

PG_MODULE_MAGIC;
PG_FUNCTION_INFO_V1(try_quiesce);

Datum try_quiesce(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(quiesce_try());
}

void _PG_init(void)
{
	if (quiesce_try())
		elog(ERROR, "quiesce_try() failed when the module was loaded");
}
