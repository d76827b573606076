/* SPDX-License-Identifier: MIT */
/* test_restarts.c - the releases of kernels that restart every sequence that they interrupt, on arm64. */
#include <stddef.h>
#include <stdio.h>

#include "platform/linux/restarts.h"

static const struct {
	const char *release;
	bool restarts;
} releases[] = {
	{ "4.18.0", true },      { "5.10.0-30-arm64", true }, { "6.1.0-56-cloud-arm64", true }, { "6.12.117+deb12-cloud-arm64", true },
	{ "6.18.9", true },      { "6.19.0", false },         { "6.19-rc1", false },            { "6.20.1", false },
	{ "7.0.0", false },      { "7.0.13", false },         { "7.0", false },                 { "7.1.0-rc2", true },
	{ "7.10.3", true },      { "8.0.1", true },           { "16.19.0", true },              { "17.0.2", true },
	{ "2.6.79", false },     { "4.17.19", false },        { "", false },                    { "unknown", false },
};

int main(void)
{
	int bad = 0;

	for (size_t i = 0; i < sizeof releases / sizeof *releases; i++)
		if (release_restarts_on_arm64(releases[i].release) != releases[i].restarts) {
			printf("%s: not %d\n", releases[i].release, releases[i].restarts);
			bad = 1;
		}
	return bad;
}
