/* SPDX-License-Identifier: MIT */
/* file.h - what files of the kernel say; for this directory. */
#ifndef QUIESCE_PLATFORM_LINUX_FILE_H
#define QUIESCE_PLATFORM_LINUX_FILE_H

#include <stddef.h>

/* Read up to @size - 1 bytes, in one step; by syscall(), because none of this may be a cancellation point.  Keeps errno.
 * Returns how many, and ends them with a NUL. */
size_t platform_read_file(const char *path, char *text, size_t size);

#endif
