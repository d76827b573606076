/* SPDX-License-Identifier: MIT */
/* restarts.h - the kernels that restart every sequence that they interrupt. */
#ifndef QUIESCE_RESTARTS_H
#define QUIESCE_RESTARTS_H

#include <stdbool.h>

/* Returns the number at *@at, and leaves *@at behind it and the point that follows; a signal handler may call this. */
static inline unsigned int release_number(const char **at)
{
	unsigned int number = 0;

	while (**at >= '0' && **at <= '9')
		number = number * 10 + (unsigned int)(*(*at)++ - '0');
	if (**at == '.')
		(*at)++;
	return number;
}

/* On arm64 kernels 6.19 and 7.0 do not restart a sequence if its thread is preempted and goes on on the same CPU; 7.0.13 is one of them,
 * 7.1.3 is not.  A later 7.0.x may be right, which its number does not prove; and no kernel with rseq is older than 4.18, so an older
 * number is not the kernel's own (the personality UNAME26 makes it 2.6.x). */
static inline bool release_restarts_on_arm64(const char *release)
{
	unsigned int major = release_number(&release), minor = release_number(&release);

	if (major < 4 || (major == 4 && minor < 18))
		return false;
	return !(major == 6 && minor >= 19) && !(major == 7 && minor == 0);
}

#endif
