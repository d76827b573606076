/* SPDX-License-Identifier: MIT */
/* quiesce-urcu/cast.h - conversions inside macros; private.
 *
 *   quiesce_urcu__cast(type, value)    what "(type)(value)" is in C, also where a program is built with -Wold-style-cast
 *   quiesce_urcu__typeof(lvalue)       its type; in C++ without qualifiers
 *   quiesce_urcu__long(value)          a number or pointer as an unsigned long, with its sign extended
 */
#ifndef QUIESCE_URCU_CAST_H
#define QUIESCE_URCU_CAST_H

#include <quiesce/base.h>

#ifdef __cplusplus
extern "C++" { /* a program may include this header inside of extern "C" */
template <typename T> struct quiesce_urcu__plain { typedef T type; };
template <typename T> struct quiesce_urcu__plain<const T> { typedef T type; };
template <typename T> struct quiesce_urcu__plain<volatile T> { typedef T type; };
template <typename T> struct quiesce_urcu__plain<const volatile T> { typedef T type; };

template <typename T, typename V> QUIESCE_LOCAL typename quiesce_urcu__plain<T>::type quiesce_urcu__cast_to(V value)
{
	typedef typename quiesce_urcu__plain<T>::type plain;

	return plain(value);
}
}
#define quiesce_urcu__cast(type, value) quiesce_urcu__cast_to<type>(value)
#define quiesce_urcu__typeof(lvalue) typename quiesce_urcu__plain<__typeof__(lvalue)>::type
#else
#define quiesce_urcu__typeof(lvalue) __typeof__(lvalue)
#define quiesce_urcu__cast(type, value) ((type)(value))
#endif

#define quiesce_urcu__long(value) quiesce_urcu__cast(unsigned long, value)

#endif
