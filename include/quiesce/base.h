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
#define QUIESCE_VERSION_MINOR 3
#define QUIESCE_VERSION "0.3.0"

/* The number that headers pass to the library when a thread registers, and when the counters of an
 * object are opened.  It changes with every change of a structure that inline code accesses; if
 * that is an exported object, its name changes, too: then an old program does not even load. */
#define QUIESCE_LAYOUT 0x51000005u

#if !defined(__SIZEOF_POINTER__) || __SIZEOF_POINTER__ != 8
#error "quiesce needs a 64-bit CPU: the reader's state is one 64-bit word that must not tear"
#endif

/* The bodies are C's, with its casts. */
#if defined(__cplusplus)
#define QUIESCE_BEGIN_DECLS \
	extern "C" { _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wold-style-cast\"")
#define QUIESCE_END_DECLS _Pragma("GCC diagnostic pop") }
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

/* 1: this file is compiled for ThreadSanitizer. */
#if defined(__has_feature)
#define QUIESCE_TSAN __has_feature(thread_sanitizer)
#elif defined(__SANITIZE_THREAD__)
#define QUIESCE_TSAN 1
#else
#define QUIESCE_TSAN 0
#endif

/* Functions of the headers.  FAST: always inlined, since programs depend on the speed of the fast
 * paths; PLAIN: inlined where the compiler chooses to, but always in the debug build, so that the
 * location of a call, which a report names, is in the program's function; SLOW: never inlined;
 * LOCAL: as FAST, and each file has its own, also in C++.
 * In C all are static.  In C++ a template that a module exports can call functions with external
 * linkage alone, so there they are inline.  The tag keeps them apart from functions of the program's
 * with the same name, and from those of files that are compiled with other settings or another
 * version; hidden, they stay apart from those of other shared objects. */
#define QUIESCE_LOCAL static inline __attribute__((__always_inline__, __unused__))
#ifdef __cplusplus
#ifdef QUIESCE_DEBUG
#define QUIESCE__TAG_DEBUG "_debug"
#else
#define QUIESCE__TAG_DEBUG ""
#endif
#ifdef QUIESCE_FIBERS
#define QUIESCE__TAG_FIBERS "_fibers"
#else
#define QUIESCE__TAG_FIBERS ""
#endif
/* A file that is compiled for newer CPUs (arch.h), or for ThreadSanitizer, has functions of its own,
 * too. */
#if QUIESCE_TSAN
#define QUIESCE__TAG_TSAN "_tsan"
#else
#define QUIESCE__TAG_TSAN ""
#endif
#define QUIESCE__TAG(major, minor) QUIESCE__TAG_OF(major, minor)
#define QUIESCE__TAG_OF(major, minor) \
	"quiesce_" #major "_" #minor QUIESCE__TAG_DEBUG QUIESCE__TAG_FIBERS QUIESCE_ARCH_TAG QUIESCE__TAG_TSAN
#define QUIESCE__INLINE(...) \
	extern "C++" inline __attribute__((__visibility__("hidden"), __VA_ARGS__, \
					   __abi_tag__(QUIESCE__TAG(QUIESCE_VERSION_MAJOR, QUIESCE_VERSION_MINOR))))
#define QUIESCE_FAST QUIESCE__INLINE(__always_inline__)
#define QUIESCE_SLOW QUIESCE__INLINE(__noinline__)
#else
#define QUIESCE_FAST QUIESCE_LOCAL
#define QUIESCE_SLOW static __attribute__((__noinline__, __unused__))
#endif
#if defined(QUIESCE_DEBUG)
#define QUIESCE_PLAIN QUIESCE_FAST
#elif defined(__cplusplus)
#define QUIESCE_PLAIN QUIESCE__INLINE(__unused__)
#else
#define QUIESCE_PLAIN static inline
#endif

/* Callbacks do not throw, so no function of the library does. */
#ifdef __cplusplus
#define QUIESCE_NOTHROW __attribute__((__nothrow__))
#define QUIESCE_NOEXCEPT noexcept /* for functions of headers whose C++ name promises it */
#else
#define QUIESCE_NOTHROW
#define QUIESCE_NOEXCEPT
#endif
/* QUIESCE_API marks an exported function, which is called without the PLT where possible. */
#define QUIESCE_API __attribute__((__visibility__("default"))) QUIESCE_NOPLT QUIESCE_NOTHROW
#define QUIESCE_DATA __attribute__((__visibility__("default")))
#define QUIESCE_COLD __attribute__((__cold__, __noinline__))

#include <quiesce/arch/arch.h>

#endif
