/* SPDX-License-Identifier: MIT */
/* quiesce/detail/thrown.hpp - private: an exception of a function that C code calls, for its C++ caller. */
#ifndef QUIESCE_DETAIL_THROWN_HPP
#define QUIESCE_DETAIL_THROWN_HPP

#include <quiesce/detail/raise.hpp>

#include <exception>
#include <type_traits>

namespace quiesce::detail {

/* Carries an exception past the frames of C code, which hold locks. */
class thrown {
public:
	/* Returns @fn(); or @otherwise, if that throws. */
	template<class R, class F> R call(F fn, R otherwise) noexcept
	{
#if defined(__cpp_exceptions)
		if constexpr (!std::is_nothrow_invocable_v<F &>) {
			try {
				return fn();
			} catch (...) {
				what_ = std::current_exception();
				return otherwise;
			}
		}
#endif
		return static_cast<void>(otherwise), fn();
	}
	bool any() const noexcept { return what_ != nullptr; }
	/* Throws the exception of call() again, if there was one. */
	void rethrow() const
	{
#if defined(__cpp_exceptions)
		if (quiesce_unlikely(any()))
			std::rethrow_exception(what_);
#endif
	}

private:
	std::exception_ptr what_;
};

} // namespace quiesce::detail

#endif
