/* SPDX-License-Identifier: MIT */
/* property.hpp - random sequences of operations on a structure and on a plain model of it, shrunk when they differ.
 *
 * A subject holds both.  Every operation is valid in every state (it takes its arguments modulo the present size),
 * so that any part of a sequence is a sequence, which makes shrinking work.  RapidCheck generates and shrinks;
 * only property.cpp uses it.
 *
 * QUIESCE_PROPERTY=N runs N times as many sequences, 30 times where CI_LONG is set.  RC_PARAMS="seed=S" repeats those of the seed S,
 * which is printed.
 */
#ifndef QUIESCE_TESTS_PROPERTY_HPP
#define QUIESCE_TESTS_PROPERTY_HPP

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace properties {

struct op {
	unsigned verb; /* index of the subject's verbs */
	std::uint32_t a, b;
};

struct verb {
	const char *name;
	int weight; /* how often, against the others */
};

class subject {
public:
	subject() = default;
	subject(const subject &) = delete;
	subject &operator=(const subject &) = delete;
	virtual ~subject() = default;

	/* Both functions throw difference. */
	virtual void apply(const op &o) = 0;
	virtual void compare(bool last) = 0; /* called after every operation, and once more at the end */
};

struct difference : std::runtime_error {
	using std::runtime_error::runtime_error;
};

#define SAME(condition)                                                                                            \
	do {                                                                                                       \
		if (!(condition))                                                                                  \
			throw properties::difference(std::string(__FILE__ ":") + std::to_string(__LINE__) + ": " #condition); \
	} while (0)

struct property {
	std::string name;
	std::vector<verb> verbs;
	std::function<std::unique_ptr<subject>()> make;
	int nr_cases = 100;
	/* 0: the property must hold.  Else the subject has a planted fault, and the sequence that shows it has to shrink to this length. */
	std::size_t planted = 0;
	/* Called after the sequences have passed; returns required states that have not been reached. */
	std::function<std::string()> unreached = {};
};

/* Return the property of a subject with a planted fault. */
inline property planted(property p, std::size_t operations)
{
	p.planted = operations;
	return p;
}

/* Print TAP, and return the exit status. */
int run(const std::vector<property> &properties);

} // namespace properties

#endif
