/* SPDX-License-Identifier: MIT */
/* hooks.c - the functions that code compiled with -fsanitize=thread calls at each access, for the modelled machine.
 *
 * raw, whole file: these are the atomic operations; only one thread of the system runs, so that plain ones do.
 */
#include "machine.h"

#include <string.h>

void __tsan_init(void);
void __tsan_func_entry(void *pc);
void __tsan_func_exit(void);
void __tsan_vptr_update(void **at, void *value);
void __tsan_read_range(void *at, size_t size);
void __tsan_write_range(void *at, size_t size);
void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_signal_fence(int order);

void __tsan_init(void)
{
}

void __tsan_func_entry(void *pc)
{
	(void)pc;
}

void __tsan_func_exit(void)
{
}

void __tsan_read_range(void *at, size_t size)
{
	scale_access((uintptr_t)at, size, SCALE_READ);
}

void __tsan_write_range(void *at, size_t size)
{
	scale_access((uintptr_t)at, size, SCALE_WRITE);
}

#define PLAIN(name, size, kind)                                \
	void __tsan_##name(void *at);                          \
	void __tsan_##name(void *at)                           \
	{                                                      \
		scale_access((uintptr_t)at, size, SCALE_##kind); \
	}
#define PLAIN_OF(size) PLAIN(read##size, size, READ) PLAIN(write##size, size, WRITE)
#define UNALIGNED_OF(size) PLAIN(unaligned_read##size, size, READ) PLAIN(unaligned_write##size, size, WRITE)
PLAIN_OF(1) PLAIN_OF(2) PLAIN_OF(4) PLAIN_OF(8) PLAIN_OF(16)
UNALIGNED_OF(2) UNALIGNED_OF(4) UNALIGNED_OF(8) UNALIGNED_OF(16)

#define RMW(bits, type, name, change)                                          \
	type __tsan_atomic##bits##_##name(type *at, type value, int order);    \
	type __tsan_atomic##bits##_##name(type *at, type value, int order)     \
	{                                                                      \
		type old;                                                      \
									       \
		(void)order;                                                   \
		scale_access((uintptr_t)at, sizeof *at, SCALE_LOCKED_WRITE);   \
		old = *at;                                                     \
		*at = (type)(change);                                          \
		return old;                                                    \
	}
#define COMPARE(bits, type, name)                                                                            \
	int __tsan_atomic##bits##_compare_exchange_##name(type *at, type *expected, type value, int order, int failed); \
	int __tsan_atomic##bits##_compare_exchange_##name(type *at, type *expected, type value, int order, int failed)  \
	{                                                                                                    \
		(void)order, (void)failed;                                                                   \
		scale_access((uintptr_t)at, sizeof *at, SCALE_LOCKED_WRITE);                                 \
		if (*at != *expected) {                                                                      \
			*expected = *at;                                                                     \
			return 0;                                                                            \
		}                                                                                            \
		*at = value;                                                                                 \
		return 1;                                                                                    \
	}
/* A sequentially consistent store is an exchange. */
#define ATOMIC(bits, type)                                                                                   \
	type __tsan_atomic##bits##_load(const type *at, int order);                                          \
	type __tsan_atomic##bits##_load(const type *at, int order)                                           \
	{                                                                                                    \
		(void)order;                                                                                 \
		scale_access((uintptr_t)at, sizeof *at, SCALE_READ);                                         \
		return *at;                                                                                  \
	}                                                                                                    \
	void __tsan_atomic##bits##_store(type *at, type value, int order);                                   \
	void __tsan_atomic##bits##_store(type *at, type value, int order)                                    \
	{                                                                                                    \
		scale_access((uintptr_t)at, sizeof *at, order == __ATOMIC_SEQ_CST ? SCALE_LOCKED_WRITE : SCALE_WRITE); \
		*at = value;                                                                                 \
	}                                                                                                    \
	type __tsan_atomic##bits##_compare_exchange_val(type *at, type expected, type value, int order, int failed); \
	type __tsan_atomic##bits##_compare_exchange_val(type *at, type expected, type value, int order, int failed)  \
	{                                                                                                    \
		type old;                                                                                    \
													     \
		(void)order, (void)failed;                                                                   \
		scale_access((uintptr_t)at, sizeof *at, SCALE_LOCKED_WRITE);                                 \
		old = *at;                                                                                   \
		if (old == expected)                                                                         \
			*at = value;                                                                         \
		return old;                                                                                  \
	}                                                                                                    \
	COMPARE(bits, type, strong) COMPARE(bits, type, weak)                                                \
	RMW(bits, type, exchange, value) RMW(bits, type, fetch_add, old + value) RMW(bits, type, fetch_sub, old - value) \
	RMW(bits, type, fetch_and, old & value) RMW(bits, type, fetch_or, old | value) RMW(bits, type, fetch_xor, old ^ value)

ATOMIC(8, uint8_t)
ATOMIC(16, uint16_t)
ATOMIC(32, uint32_t)
ATOMIC(64, uint64_t)
__extension__ typedef unsigned __int128 twice;
ATOMIC(128, twice)

void __tsan_atomic_thread_fence(int order)
{
	if (order == __ATOMIC_SEQ_CST)
		scale_fence();
}

void __tsan_atomic_signal_fence(int order)
{
	(void)order;
}

/* The linker replaces calls of these (--wrap). */
void *__real_memcpy(void *to, const void *from, size_t size);
void *__real_memmove(void *to, const void *from, size_t size);
void *__real_memset(void *to, int byte, size_t size);
void *__wrap_memcpy(void *to, const void *from, size_t size);
void *__wrap_memmove(void *to, const void *from, size_t size);
void *__wrap_memset(void *to, int byte, size_t size);
int __real_memcmp(const void *one, const void *other, size_t size);
int __real_strcmp(const char *one, const char *other);
size_t __real_strlen(const char *text);
char *__real_strcpy(char *to, const char *from);
char *__real_strncpy(char *to, const char *from, size_t size);
int __wrap_memcmp(const void *one, const void *other, size_t size);
int __wrap_strcmp(const char *one, const char *other);
size_t __wrap_strlen(const char *text);
char *__wrap_strcpy(char *to, const char *from);
char *__wrap_strncpy(char *to, const char *from, size_t size);

static void copied(void *to, const void *from, size_t size)
{
	if (size) {
		scale_access((uintptr_t)from, size, SCALE_READ);
		scale_access((uintptr_t)to, size, SCALE_WRITE);
	}
}

void *__wrap_memcpy(void *to, const void *from, size_t size)
{
	copied(to, from, size);
	return __real_memcpy(to, from, size);
}

void *__wrap_memmove(void *to, const void *from, size_t size)
{
	copied(to, from, size);
	return __real_memmove(to, from, size);
}

void *__wrap_memset(void *to, int byte, size_t size)
{
	if (size)
		scale_access((uintptr_t)to, size, SCALE_WRITE);
	return __real_memset(to, byte, size);
}

/* A comparison counts as a read of both blocks to their ends. */
int __wrap_memcmp(const void *one, const void *other, size_t size)
{
	if (size) {
		scale_access((uintptr_t)one, size, SCALE_READ);
		scale_access((uintptr_t)other, size, SCALE_READ);
	}
	return __real_memcmp(one, other, size);
}

int __wrap_strcmp(const char *one, const char *other)
{
	scale_access((uintptr_t)one, __real_strlen(one) + 1, SCALE_READ);
	scale_access((uintptr_t)other, __real_strlen(other) + 1, SCALE_READ);
	return __real_strcmp(one, other);
}

size_t __wrap_strlen(const char *text)
{
	size_t length = __real_strlen(text);

	scale_access((uintptr_t)text, length + 1, SCALE_READ);
	return length;
}

char *__wrap_strcpy(char *to, const char *from)
{
	copied(to, from, __real_strlen(from) + 1);
	return __real_strcpy(to, from);
}

char *__wrap_strncpy(char *to, const char *from, size_t size)
{
	if (size) {
		scale_access((uintptr_t)from, strnlen(from, size - 1) + 1, SCALE_READ);
		scale_access((uintptr_t)to, size, SCALE_WRITE);
	}
	return __real_strncpy(to, from, size);
}
