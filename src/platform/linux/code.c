/* SPDX-License-Identifier: MIT */
/* code.c - find the file that contains a code address.
 *
 * Reads /proc/self/maps and does not call dladdr(), which waits for the loader's lock: a thread that runs a
 * constructor may hold it while it waits for the very thread that reports.
 */
#include "../platform.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct maps {
	int fd;
	size_t at, length;
	char buffer[512];
};

static int next_char(struct maps *m)
{
	if (m->at == m->length) {
		long n = syscall(SYS_read, m->fd, m->buffer, sizeof m->buffer);

		if (n <= 0)
			return -1;
		m->at = 0;
		m->length = (size_t)n;
	}
	return (unsigned char)m->buffer[m->at++];
}

/* Read the next line, as much as fits; false: there is none. */
static int next_line(struct maps *m, char *line, size_t size)
{
	size_t length = 0;
	int c;

	while ((c = next_char(m)) >= 0 && c != '\n')
		if (length < size - 1)
			line[length++] = (char)c;
	line[length] = '\0';
	return c >= 0;
}

/* A line of the file is "start-end perms offset device inode path".  @start: where the file that contains @at begins;
 * @name: its name. */
struct location {
	uintptr_t at, start;
	char name[96];
};

static int is_here(struct location *p, const char *line)
{
	char *rest;
	uintptr_t from = (uintptr_t)strtoull(line, &rest, 16), to;
	const char *slash = strrchr(line, '/');

	if (*rest != '-')
		return 0;
	to = (uintptr_t)strtoull(rest + 1, &rest, 16);
	if (strlen(rest) < 6)
		return 0;
	if (!strtoull(rest + 6, NULL, 16)) /* offset 0: the file begins here */
		p->start = from;
	if (p->at < from || p->at >= to || !slash)
		return 0;
	snprintf(p->name, sizeof p->name, "%.95s", slash + 1);
	return 1;
}

static int find(struct location *p)
{
	struct maps m = { .fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC) };
	char line[256];
	int found = 0;

	if (m.fd < 0)
		return 0;
	while (!found && next_line(&m, line, sizeof line))
		found = is_here(p, line);
	syscall(SYS_close, m.fd);
	return found;
}

/* Format a code address as "libx.so+0x123"; false: it is in no file. */
static bool name_code(const void *at, char *text, size_t size)
{
	struct location p = { .at = (uintptr_t)at };
	int saved = errno, found = find(&p);

	if (found)
		snprintf(text, size, "%s+%#llx", p.name, (unsigned long long)(p.at - p.start));
	errno = saved;
	return found;
}

const char *platform_location(const void *address, struct platform_location *ret)
{
	if (!name_code(address, ret->text, sizeof ret->text))
		snprintf(ret->text, sizeof ret->text, "%p", address);
	return ret->text;
}

void platform_describe_code(const void *at, char *text, size_t size)
{
	struct platform_location location;

	if (name_code(at, location.text, sizeof location.text))
		snprintf(text, size, "%p (%s)", at, location.text);
	else
		snprintf(text, size, "%p", at);
}
