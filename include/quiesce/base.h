/* SPDX-License-Identifier: MIT */
/* quiesce/base.h - definitions that every other header needs: compiler spellings, the layout stamp.
 *
 * Only QUIESCE_VERSION is part of the programming interface.
 */
#ifndef QUIESCE_BASE_H
#define QUIESCE_BASE_H

#include <stddef.h>
#include <stdint.h>

#define QUIESCE_VERSION_MAJOR 0
#define QUIESCE_VERSION_MINOR 2
#define QUIESCE_VERSION "0.2.0"

/* The number that headers pass to the library when a thread registers, and when the counters of an
 * object are opened.  It changes with every change of a structure that inline code accesses; if
 * that is an exported object, its name changes, too: then an old program does not even load. */
#define QUIESCE_LAYOUT 0x51000004u

#if !defined(__SIZEOF_POINTER__) || __SIZEOF_POINTER__ != 8
#error "quiesce needs a 64-bit CPU: the reader's state is one 64-bit word that must not tear"
#endif

/* Inside extern "C" clang++ warns of casts in the style of C, and g++ does not. */
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

/* Casts for macros, which are expanded in programs that are built with -Wold-style-cast and
 * -Wcast-qual. CAST: a conversion, also from void *.  AS_POINTER: a number or address as a pointer.
 * NULL: a null pointer of a type; NO_POINTER: of no type.  UNTYPED: a pointer as void *, without
 * qualifiers. */
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

/* The value that a macro stores into a variable of @type: converted as by an assignment, with its
 * warnings and errors.  The compiler's atomic builtins do not convert: g++ would store the address
 * of an object where that of its base belongs, and gcc accepts any pointer for any other.  @value
 * is evaluated once; there is no variable, so that such macros may be nested. */
#ifdef __cplusplus
extern "C++" { /* a program may include this header inside extern "C" */
template <typename quiesce__T> __attribute__((__always_inline__)) inline quiesce__T quiesce__converted(quiesce__T value) noexcept
{
	return value;
}
}
#define QUIESCE_CONVERT(type, value) quiesce__converted<type>(value)
#else
#define QUIESCE_CONVERT(type, value) ((type){ (value) })
#endif

/* A small lock of the library; private.  0: free; else the holder's thread id, and a bit if a
 * thread may sleep. */
struct quiesce__lock {
	uint32_t word;
};

/* A function that is always inlined: programs depend on the speed of the fast paths. */
#define QUIESCE_FAST static inline __attribute__((__always_inline__, __unused__))

/* Callbacks do not throw, so no function of the library does. */
#ifdef __cplusplus
#define QUIESCE_NOTHROW __attribute__((__nothrow__))
#else
#define QUIESCE_NOTHROW
#endif
/* QUIESCE_API marks an exported function, which is called without the PLT where possible. */
#define QUIESCE_API __attribute__((__visibility__("default"))) QUIESCE_NOPLT QUIESCE_NOTHROW
#define QUIESCE_DATA __attribute__((__visibility__("default")))
#define QUIESCE_COLD __attribute__((__cold__, __noinline__))

#include <quiesce/arch/arch.h>

#endif
