/* SPDX-License-Identifier: MIT */
/* xxhash.h - what the library uses of the C library xxHash, by the Rust crate xxhash-rust: so the package needs no header of the system. */
#ifndef QUIESCE_SYS_XXHASH_H
#define QUIESCE_SYS_XXHASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t quiesce_sys_xxh3(const void *start, size_t length, uint64_t seed); /* quiesce-sys/src/lib.rs */

#define XXH3_64bits_withSeed(start, length, seed) quiesce_sys_xxh3(start, length, seed)

#endif
