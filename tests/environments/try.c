/* SPDX-License-Identifier: MIT */
/* try.c - the smallest host: a program; exit status 0 if all went well. */
#include "plug.h"

#include <stdio.h>

int main(void)
{
	int bad = quiesce_try();

	printf("%s\n", bad ? "failed" : "all readers saw live objects");
	return bad != 0;
}
