/* SPDX-License-Identifier: MIT */
/* file.h - read files of /proc and /sys; for this directory. */
#ifndef QUIESCE_PLATFORM_LINUX_FILE_H
#define QUIESCE_PLATFORM_LINUX_FILE_H

#include <stddef.h>

/* Read up to @size - 1 bytes in one step, by syscall(), because the call must not be a cancellation point.
 * Keeps errno.  Returns the number of bytes read; a NUL follows them. */
size_t platform_read_file(const char *path, char *text, size_t size);

#endif
