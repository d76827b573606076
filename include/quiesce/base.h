/* SPDX-License-Identifier: MIT */
/* quiesce/base.h - what every other header needs: compiler spellings and the layout stamp.
 *
 * Nothing here is part of the programming interface except QUIESCE_VERSION.
 */
#ifndef QUIESCE_BASE_H
#define QUIESCE_BASE_H

#include <stddef.h>
#include <stdint.h>

#define QUIESCE_VERSION_MAJOR 0
#define QUIESCE_VERSION_MINOR 2
#define QUIESCE_VERSION "0.2.0"

/* The number that a header shows to the library when a thread registers, and where counters of an object are opened.  It
 * changes with every change of a structure that inline code touches; if that is one of the exported objects, so does
 * its name: an old program does not even load. */
#define QUIESCE_LAYOUT 0x51000004u

#if !defined(__SIZEOF_POINTER__) || __SIZEOF_POINTER__ != 8
#error "quiesce needs a 64-bit CPU: the reader's state is one 64-bit word that must not tear"
#endif

/* g++ does not look for casts in extern "C"; clang++ does. */
#if defined(__cplusplus) && defined(__clang__)
#define QUIESCE_BEGIN_DECLS \
	extern "C" { _Pragma("clang diagnostic push") _Pragma("clang diagnostic ignored \"-Wold-style-cast\"")
#define QUIESCE_END_DECLS _Pragma("clang diagnostic pop") }
#elif defined(__cplusplus)
#define QUIESCE_BEGIN_DECLS extern "C" {
#define QUIESCE_END_DECLS }
#else
#define QUIESCE_BEGIN_DECLS
#define QUIESCE_END_DECLS
#endif

#define quiesce_likely(x) __builtin_expect(!!(x), 1)
#define quiesce_unlikely(x) __builtin_expect(!!(x), 0)

#define QUIESCE_CACHELINE 64

/* Casts for macros, which are expanded in programs that are built with -Wold-style-cast: a conversion, from void * included;
 * a number or address as a pointer; the address of a pointer, of whatever type, as void **; a null pointer. */
#ifdef __cplusplus
#define QUIESCE_CAST(type, value) static_cast<type>(value)
#define QUIESCE_AS_POINTER(type, number) reinterpret_cast<type>(number)
#define QUIESCE_NULL(type) static_cast<type *>(nullptr)
#define quiesce__type_at(where) __typeof__(true ? *(where) : nullptr) /* unqualified */
#define quiesce__untyped(where) \
	(static_cast<void **>(const_cast<void *>(static_cast<const volatile void *>(where))) + 0 * sizeof(*(where) == nullptr))
#else
#define QUIESCE_CAST(type, value) ((type)(value))
#define QUIESCE_AS_POINTER(type, number) ((type)(number))
#define QUIESCE_NULL(type) ((type *)0)
#define quiesce__type_at(where) __typeof__(*(where))
#define quiesce__untyped(where) ((void **)(where) + 0 * sizeof(*(where) == (void *)0))
#endif

/* A small lock of the library, private: 0 free, 1 held, 2 held and somebody may sleep. */
struct quiesce__lock {
	uint32_t word;
};

/* An inline that must stay inline: it is the reason why people use the library. */
#define QUIESCE_FAST static inline __attribute__((always_inline, unused))

/* A callback does not throw, so nothing does. */
#ifdef __cplusplus
#define QUIESCE_NOTHROW __attribute__((nothrow))
#else
#define QUIESCE_NOTHROW
#endif
/* Exported, and called without the detour through the PLT where that can be. */
#define QUIESCE_API __attribute__((visibility("default"))) QUIESCE_NOPLT QUIESCE_NOTHROW
#define QUIESCE_DATA __attribute__((visibility("default")))
#define QUIESCE_COLD __attribute__((cold, noinline))

#include <quiesce/arch/arch.h>

#endif
