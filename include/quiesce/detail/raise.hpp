/* SPDX-License-Identifier: MIT */
/* quiesce/detail/raise.hpp - private: errors of the containers as exceptions. */
#ifndef QUIESCE_DS_RAISE_HPP
#define QUIESCE_DS_RAISE_HPP

#if !defined(__cplusplus) || __cplusplus < 201703L
#error "the C++ faces need C++17; the headers of C are for C and for C++11"
#endif

#include <quiesce/base.h>

#include <cstdlib>
#include <new>
#include <stdexcept>
#include <system_error>

namespace quiesce::detail {

[[__noreturn__, gnu::__cold__, gnu::__noinline__]] inline void throw_error(std::errc error)
{
#if defined(__cpp_exceptions)
	if (error == std::errc::invalid_argument)
		throw std::invalid_argument("quiesce: a value or key that this container cannot hold");
	throw std::bad_alloc();
#else
	static_cast<void>(error);
	std::abort();
#endif
}

/* "It is there" and "it is not there" are results, not errors. */
inline std::errc raise(std::errc result)
{
	if (quiesce_unlikely(result == std::errc::not_enough_memory || result == std::errc::invalid_argument))
		throw_error(result);
	return result;
}

} // namespace quiesce::detail

#endif
