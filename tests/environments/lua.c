/* SPDX-License-Identifier: MIT */
/* lua.c - a module of Lua. */
#include <lauxlib.h>
#include <lua.h>

#include "plug.h"

static int try_quiesce(lua_State *state)
{
	lua_pushinteger(state, quiesce_try());
	return 1;
}

int luaopen_plug(lua_State *state)
{
	lua_pushcfunction(state, try_quiesce);
	return 1;
}
