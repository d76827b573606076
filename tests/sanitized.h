/* SPDX-License-Identifier: MIT */
/* sanitized.h - SANITIZED is true if this test is built with a sanitizer that has an allocator, or locks, of its own. */
#ifndef QUIESCE_TESTS_SANITIZED_H
#define QUIESCE_TESTS_SANITIZED_H

#include <quiesce/detail/claim.h>

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#define SANITIZED (__has_feature(address_sanitizer) || QUIESCE_TSAN)
#else
#define SANITIZED QUIESCE_TSAN
#endif

#endif
