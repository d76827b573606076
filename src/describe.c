/* SPDX-License-Identifier: MIT */
/* describe.c - format the settings in force of every subsystem as one line of text. */
#include <quiesce/shazptr.h>

#include "runtime/settings.h"

#include <stdio.h>

size_t quiesce_describe_settings(char *text, size_t size)
{
	static const char *const slots[] = { "thread", "cpu_id", "mm_cid" };
	int length;

	quiesce__init();
	length = snprintf(text, size, "version " QUIESCE_VERSION ", QUIESCE_FENCE=%s QUIESCE_SLOTS=%s ",
			  quiesce_fence() == QUIESCE_FENCE_LIGHT ? "light" : "full", slots[quiesce_slots()]);
	if ((size_t)length >= size)
		return (size_t)length + quiesce__settings_describe(NULL, 0);
	return (size_t)length + quiesce__settings_describe(text + length, size - (size_t)length);
}

#if !defined(QUIESCE_SIM)
__attribute__((constructor)) static void say_settings(void)
{
	char text[400];

	quiesce__init();
	if (!quiesce__settings.verbose)
		return;
	quiesce_describe_settings(text, sizeof text);
	quiesce__say("%s", text);
}
#endif
