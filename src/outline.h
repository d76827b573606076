/* SPDX-License-Identifier: MIT */
/* outline.h - a function of quiesce/calls.h or quiesce/ds/calls.h that only makes the inline call is one line: its type, the name of the
 * call, and the parameters and arguments in parentheses. */
#ifndef QUIESCE_OUTLINE_H
#define QUIESCE_OUTLINE_H

#define CALL(type, name, parameters, arguments) \
	type quiesce_##name parameters              \
	{                                           \
		return name arguments;              \
	}

#define VOID_CALL(name, parameters, arguments) \
	void quiesce_##name parameters             \
	{                                          \
		name arguments;                    \
	}

#endif
