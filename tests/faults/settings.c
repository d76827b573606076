/* SPDX-License-Identifier: MIT */
/* settings.c - print the settings in force; settings.py compares them with the environment. */
#include <quiesce/control.h>

#include <stdio.h>
#include <string.h>

int main(void)
{
	char text[600], start[20], none[1];
	size_t length = quiesce_describe_settings(text, sizeof text);

	/* Check that the whole length is returned, as by snprintf(), whatever the size of the buffer. */
	if (length != strlen(text) || quiesce_describe_settings(start, sizeof start) != length ||
	    quiesce_describe_settings(none, sizeof none) != length || strncmp(text, start, sizeof start - 1) ||
	    strlen(start) != sizeof start - 1 || none[0])
		return 2;
	puts(text);
	return 0;
}
