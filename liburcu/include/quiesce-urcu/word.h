/* SPDX-License-Identifier: MIT */
/* quiesce-urcu/word.h - the object that a read-modify-write changes, as a number of its size; private, for urcu/uatomic.h.
 *
 * With it the operations take pointers as well as numbers, and any number for an object of any size, as liburcu's assembly does.
 *
 *   quiesce_urcu__at(addr)               @addr as a pointer to that number; of 1, 2, 4 or 8 bytes
 *   quiesce_urcu__number(addr, value)    @value as such a number, truncated if it does not fit
 *   quiesce_urcu__sized(addr)            @addr, if it has one of these sizes
 *   quiesce_urcu__object(addr, number)   @number as what @addr points to
 *   quiesce_urcu__type(addr)             its type, without qualifiers
 */
#ifndef QUIESCE_URCU_WORD_H
#define QUIESCE_URCU_WORD_H

#include <quiesce-urcu/cast.h>

/* May alias: other accesses to the object have its own type. */
typedef uint8_t __attribute__((__may_alias__)) quiesce_urcu__number_1;
typedef uint16_t __attribute__((__may_alias__)) quiesce_urcu__number_2;
typedef uint32_t __attribute__((__may_alias__)) quiesce_urcu__number_4;
typedef uint64_t __attribute__((__may_alias__)) quiesce_urcu__number_8;

#ifdef __cplusplus
extern "C++" {
template <size_t size> struct quiesce_urcu__there_is_no_atomic_operation_of_this_size;
#define quiesce_urcu__size quiesce_urcu__there_is_no_atomic_operation_of_this_size
template <> struct quiesce_urcu__size<1> { typedef quiesce_urcu__number_1 type; };
template <> struct quiesce_urcu__size<2> { typedef quiesce_urcu__number_2 type; };
template <> struct quiesce_urcu__size<4> { typedef quiesce_urcu__number_4 type; };
template <> struct quiesce_urcu__size<8> { typedef quiesce_urcu__number_8 type; };

template <typename T> QUIESCE_LOCAL volatile typename quiesce_urcu__size<sizeof(T)>::type *quiesce_urcu__at(T *addr)
{
	volatile void *writable = addr;

	return static_cast<volatile typename quiesce_urcu__size<sizeof(T)>::type *>(writable);
}

/* Converts the new value of a pointer to the pointer's type first, if it can be converted: a base of an object may
 * have another address. */
template <typename T> struct quiesce_urcu__value {
	template <typename V> QUIESCE_LOCAL V of(V value, int) { return value; }
};
template <typename T> struct quiesce_urcu__value<T *> {
	template <typename V> QUIESCE_LOCAL auto of(V value, int) -> decltype(quiesce__converted<T *>(value)) { return value; }
	template <typename V> QUIESCE_LOCAL V of(V value, long) { return value; }
};

template <typename T, typename V> QUIESCE_LOCAL typename quiesce_urcu__size<sizeof(T)>::type quiesce_urcu__number_for(T *, V value)
{
	typedef typename quiesce_urcu__size<sizeof(T)>::type to;

	return to(quiesce_urcu__long(quiesce_urcu__value<typename quiesce_urcu__plain<T>::type>::of(value, 0)));
}
#undef quiesce_urcu__size
}
/* Uses only the type of @addr, which is evaluated elsewhere. */
#define quiesce_urcu__number(addr, value) quiesce_urcu__number_for(QUIESCE_NULL(__typeof__(*(addr))), value)
#define quiesce_urcu__size_of(addr) sizeof(quiesce_urcu__number(addr, 0))
#else
/* The compiler rejects a constant here. */
QUIESCE_FAST volatile void *quiesce_urcu__writable(volatile void *addr) { return addr; }

#define quiesce_urcu__if_size(addr, size, otherwise)                                                                   \
	__builtin_choose_expr(sizeof(*(addr)) == (size), (quiesce_urcu__number_##size *)0, otherwise)
#define quiesce_urcu__pointer(addr)                                                                                    \
	__typeof__(quiesce_urcu__if_size(addr, 1, quiesce_urcu__if_size(addr, 2, quiesce_urcu__if_size(addr, 4,        \
		quiesce_urcu__if_size(addr, 8, (struct quiesce_urcu__there_is_no_atomic_operation_of_this_size *)0)))))
#define quiesce_urcu__number_type(addr) __typeof__(*(quiesce_urcu__pointer(addr))0)
#define quiesce_urcu__at(addr) ((volatile quiesce_urcu__number_type(addr) *)quiesce_urcu__writable(addr))
#define quiesce_urcu__number(addr, value) ((quiesce_urcu__number_type(addr))quiesce_urcu__long(value))
#define quiesce_urcu__size_of(addr) sizeof(quiesce_urcu__number_type(addr))
#endif

#define quiesce_urcu__sized(addr) ((addr) + 0 * quiesce_urcu__size_of(addr))
#define quiesce_urcu__object(addr, number) quiesce_urcu__cast(__typeof__(*(addr)), number)
#define quiesce_urcu__type(addr) __typeof__(__atomic_load_n((addr), __ATOMIC_RELAXED))

#endif
