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

/* Casts for macros, which are expanded in programs that are built with -Wold-style-cast and -Wcast-qual: a conversion, from void *
 * included; a number or address as a pointer; a null pointer, of a type and of any; a pointer as one to nothing in particular. */
#ifdef __cplusplus
#define QUIESCE_CAST(type, value) static_cast<type>(value)
#define QUIESCE_AS_POINTER(type, number) reinterpret_cast<type>(number)
#define QUIESCE_NULL(type) static_cast<type *>(nullptr)
#define QUIESCE_NO_POINTER nullptr
#define QUIESCE_UNTYPED(pointer) const_cast<void *>(static_cast<const volatile void *>(pointer))
#else
#define QUIESCE_CAST(type, value) ((type)(value))
#define QUIESCE_AS_POINTER(type, number) ((type)(number))
#define QUIESCE_NULL(type) ((type *)0)
#define QUIESCE_NO_POINTER ((void *)0)
#define QUIESCE_UNTYPED(pointer) ((void *)(uintptr_t)(pointer))
#endif

/* What a macro is given for a variable of @type goes through this: the conversions of an assignment, their warnings and errors, and no
 * others.  The compiler's atomic builtins do not see to that: g++ would store the address of an object where that of its base belongs,
 * and gcc takes any pointer for any other.  @value is evaluated once; no variable, so that such macros may stand in each other. */
#ifdef __cplusplus
extern "C++" { /* a program may include this inside of extern "C" */
template <typename quiesce__T> __attribute__((always_inline)) inline quiesce__T quiesce__converted(quiesce__T value) noexcept
{
	return value;
}
}
#define QUIESCE_CONVERT(type, value) quiesce__converted<type>(value)
#else
#define QUIESCE_CONVERT(type, value) ((type){ (value) })
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
