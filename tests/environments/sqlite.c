/* SPDX-License-Identifier: MIT */
/* sqlite.c - an extension of SQLite with a function try_quiesce(). */
#include <sqlite3ext.h>
#include <stddef.h>

#include "plug.h"

SQLITE_EXTENSION_INIT1

static void try_quiesce(sqlite3_context *context, int nr, sqlite3_value **values)
{
	(void)nr;
	(void)values;
	sqlite3_result_int(context, quiesce_try());
}

int sqlite3_extension_init(sqlite3 *db, char **message, const sqlite3_api_routines *api)
{
	(void)message;
	SQLITE_EXTENSION_INIT2(api);
	return sqlite3_create_function(db, "try_quiesce", 0, SQLITE_UTF8, NULL, try_quiesce, NULL, NULL);
}
