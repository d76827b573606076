/* SPDX-License-Identifier: MIT */
/* urcu/compiler.h - the interface of the other headers to the compiler.
 *
 * In C++ no macro here has a cast of C's, and none needs a header of the standard library.
 */
#ifndef QUIESCE_URCU_COMPILER_H
#define QUIESCE_URCU_COMPILER_H

#include <quiesce/detail/entry.h>
#include <quiesce-urcu/cast.h>
#include <urcu/config.h>

#include <stddef.h>

#if defined(__GNUC__) && !defined(__clang__)
#define URCU_GCC_VERSION (__GNUC__ * 10000 + __GNUC_MINOR__ * 100 + __GNUC_PATCHLEVEL__)
#endif

#if !defined(CMM_SANITIZE_THREAD) && defined(__SANITIZE_THREAD__)
#define CMM_SANITIZE_THREAD
#elif !defined(CMM_SANITIZE_THREAD) && defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define CMM_SANITIZE_THREAD
#endif
#endif

#define caa_likely(x) quiesce_likely(x)
#define caa_unlikely(x) quiesce_unlikely(x)

/* ---- accesses ---- */

/* The compiler moves no access across it. */
#define cmm_barrier() __asm__ __volatile__("" : : : "memory")

/* The lvalue @x; each access to it is one access of the program. */
#ifdef __cplusplus
#define CMM_ACCESS_ONCE(x) (*const_cast<volatile __typeof__(x) *>(&(x)))
#else
#define CMM_ACCESS_ONCE(x) (*QUIESCE_CONVERT(volatile __typeof__(x) *, &(x)))
#endif

/* The pointer @ptr, accessed as a volatile one. */
#ifdef __cplusplus
extern "C++" {
template <typename T> QUIESCE_LOCAL T cmm_cast_volatile(T ptr) { return ptr; }
}
#else
#define cmm_cast_volatile(ptr) ((volatile __typeof__(ptr))(ptr))
#endif

/* Makes the compiler forget what it knows about the value of @var. */
#define _CMM_OPTIMIZER_HIDE_VAR(var) __asm__("" : "+r"(var))

#define __rcu /* marks pointers for human readers */

/* ---- numbers and types ---- */

#ifndef caa_max
#define caa_max(a, b) ((a) > (b) ? (a) : (b))
#endif
#ifndef caa_min
#define caa_min(a, b) ((b) > (a) ? (a) : (b))
#endif

#define CAA_BITS_PER_LONG (__SIZEOF_LONG__ * 8)
#define CAA_ARRAY_SIZE(x) (sizeof(x) / sizeof(*(x)))
#define caa_is_signed_type(type) (QUIESCE_CAST(type, -1) < QUIESCE_CAST(type, 1)) /* a comparison with 0 would cause a warning */
#define caa_cast_long_keep_sign(v) quiesce_urcu__long(v)
#define URCU_FORCE_CAST(type, arg) quiesce_urcu__cast(type, arg)

#define __CAA_COMBINE_TOKENS(prefix, counter) prefix##counter
#define CAA_COMBINE_TOKENS(prefix, counter) __CAA_COMBINE_TOKENS(prefix, counter)

/* ---- from a field to its object ---- */

/* @ptr, which must be a pointer to @member of @type. */
#define quiesce_urcu__field(ptr, type, member) QUIESCE_CONVERT(const __typeof__(QUIESCE_NULL(type)->member) *, ptr)

QUIESCE_BEGIN_DECLS
/* Computes with pointers, unlike quiesce__entry_at(): the compiler knows that the result is not NULL, which saves
 * loops a comparison. */
QUIESCE_FAST void *quiesce_urcu__entry(const void *field, size_t offset)
{
	return (char *)(uintptr_t)field - offset;
}

QUIESCE_FAST void *quiesce_urcu__entry_or_null(const void *field, size_t offset)
{
	return field ? quiesce_urcu__entry(field, offset) : NULL;
}
QUIESCE_END_DECLS

/* The object of @type whose @member is at @ptr. */
#define caa_container_of(ptr, type, member)                                                                            \
	QUIESCE_CAST(type *, quiesce_urcu__entry(quiesce_urcu__field(ptr, type, member), offsetof(type, member)))

/* The object of @type whose @member is at @ptr; NULL if @ptr is NULL. */
#define caa_container_of_check_null(ptr, type, member)                                                                 \
	QUIESCE_CAST(type *, quiesce_urcu__entry_or_null(quiesce_urcu__field(ptr, type, member), offsetof(type, member)))

/* ---- refusals ---- */

/* An expression of value 0 that does not compile where @cond is true. */
#ifdef __cplusplus
#define CAA_BUILD_BUG_ON_ZERO(cond) (0 * sizeof(char[(cond) ? -1 : 1]))
#else
#define CAA_BUILD_BUG_ON_ZERO(cond) (0 * sizeof(struct { int refused : (cond) ? -1 : 1; }))
#endif
#define CAA_BUILD_BUG_ON(cond) QUIESCE_CAST(void, CAA_BUILD_BUG_ON_ZERO(cond))

/* A declaration that does not compile where @cond is false.  @identifier is not used, because every supported
 * compiler shows @msg. */
#ifdef __cplusplus
#define urcu_static_assert(predicate, msg, identifier) static_assert(predicate, msg)
#else
#define urcu_static_assert(predicate, msg, identifier) __extension__ _Static_assert(predicate, msg)
#endif

#define CDS_DEPRECATED(msg) __attribute__((__deprecated__(msg)))

#endif
