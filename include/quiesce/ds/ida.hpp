/* SPDX-License-Identifier: MIT */
/* quiesce/ds/ida.hpp - ida.h as a class, in namespace quiesce; C++17 and later.
 *
 *	quiesce::ida instances;
 *
 *	std::optional<int> id = instances.alloc();      // none: all are taken
 *	instances.free(*id);
 *	id = instances.alloc(1, 100);                   // both included
 *	if (instances.exists(5))
 *		use(5);
 *
 * Context, cost and order are those of ida.h.
 * Exceptions: std::bad_alloc from alloc(), and nothing has changed; std::invalid_argument from
 *   find_first() for a lower limit above INT_MAX.
 * Without exceptions: aborts. */
#ifndef QUIESCE_DS_IDA_HPP
#define QUIESCE_DS_IDA_HPP

#include <quiesce/ds/ida.h>

#if !defined(__cplusplus) || __cplusplus < 201703L
#error "quiesce/ds/ida.hpp needs C++17; ida.h is for C and for C++11"
#endif

#include <quiesce/detail/raise.hpp>

#include <cerrno>
#include <climits>
#include <optional>

namespace quiesce {

/** ida - allocation of small numbers. */
class ida {
public:
	using native_handle_type = struct ::ida *;

	/* Usable before any constructor has run; allocates nothing while it is empty. */
	constexpr ida() noexcept = default;
	ida(const ida &) = delete;
	ida &operator=(const ida &) = delete;
	~ida() { ::ida_destroy(&ida_); }

	/* The lowest free number from @min to @max; none if all are taken. */
	std::optional<int> alloc(unsigned int min = 0, unsigned int max = INT_MAX) { return checked(::ida_alloc_range(&ida_, min, max)); }

	void free(unsigned int id) noexcept { ::ida_free(&ida_, id); }

	bool exists(unsigned int id) noexcept { return ::ida_exists(&ida_, id); }
	/* The lowest number from @min to @max that is taken; none if all are free. */
	std::optional<int> find_first(unsigned int min = 0, unsigned int max = INT_MAX)
	{
		return checked(::ida_find_first_range(&ida_, min, max));
	}

	bool empty() const noexcept { return ::ida_is_empty(&ida_); }
	/* Frees all numbers; no other thread uses the object. */
	void clear() noexcept { ::ida_destroy(&ida_); }

	native_handle_type native_handle() noexcept { return &ida_; }

private:
	static std::optional<int> checked(int result)
	{
		if (result == -ENOMEM)
			detail::throw_error(std::errc::not_enough_memory);
		if (result == -EINVAL)
			detail::throw_error(std::errc::invalid_argument);
		return result < 0 ? std::nullopt : std::optional(result);
	}

	struct ::ida ida_ = IDA_INIT(ida_);
};

} // namespace quiesce

#endif
