/* SPDX-License-Identifier: MIT */
/* container.hpp - shared by the suites of hashmap, hashtable and idr: a reader that goes on while the container changes,
 * allocations that fail, and the least number of both. */
#ifndef QUIESCE_TESTS_CONTAINER_HPP
#define QUIESCE_TESTS_CONTAINER_HPP

#include "property.hpp"
#include "refuse.hpp"
#include "walk.hpp"

#include <cerrno>
#include <optional>
#include <sched.h>

namespace properties {

/* The first verbs of each container; its own verbs follow. */
enum { REFUSE, SETTLE, WALK, STEP, NR_COMMON };

inline struct {
	int refused, full, steps;
	std::uint64_t resizes;
} reached;

/* A bucket that the library moves just now may be counted twice. */
template<class Count> bool comes_to(Count count, std::size_t expected)
{
	int tries = 100000;

	while (count() != expected && --tries)
		sched_yield();
	return tries > 0;
}

/* @Id: the identity by which a reader distinguishes entries. */
template<class Id> class container : public subject {
public:
	void apply(const op &o) final
	{
		switch (o.verb) {
		case REFUSE:
			refuse::arm(o.a % 8, o.b & 1);
			return;
		case SETTLE: /* takes long */
			if (o.b % 16 == 0) {
				reader.end();
				rcu_barrier();
			}
			break;
		case WALK:
			reader.begin(begin_walk());
			break;
		case STEP:
			for (std::uint32_t n = 0; n <= o.a % 32 && reader.open(); n++)
				step();
			break;
		default:
			perform(o.verb, o.a, o.b);
		}
		refuse::disarm();
	}

	void compare(bool last) final
	{
		if (last || size() <= 40 || nr_compared++ % 16 == 0)
			compare_all(last);
	}

protected:
	virtual void perform(unsigned verb, std::uint32_t a, std::uint32_t b) = 0;
	virtual std::size_t size() const = 0;
	virtual void compare_all(bool last) = 0;
	virtual std::vector<Id> begin_walk() = 0; /* at the first entry; what is there */
	virtual std::optional<Id> next() = 0;     /* none: the walk is over */

	/* Return whether the operation succeeded; it may have failed with -ENOMEM, but only if an allocation was refused. */
	bool answer(int said, int expected)
	{
		if (said == -ENOMEM) {
			SAME(refuse::count() > 0);
			reached.refused++;
			return false;
		}
		SAME(said == expected);
		reached.full += said == -ENOSPC;
		return said >= 0;
	}

	walk<Id> reader;

private:
	void step()
	{
		std::optional<Id> id = next();

		reached.steps++;
		if (id)
			reader.see(*id);
		else
			reader.reached_end();
	}

	unsigned nr_compared = 0;
};

/* @own: its verbs.  @lacking: what has not been reached of what only this container can; may be empty. */
template<class Container> property property_of(const char *name, const std::vector<verb> &own, std::string (*lacking)())
{
	property p{ name, {}, [] { return std::make_unique<Container>(); } };

	p.verbs = { { "refuse", 4 }, { "settle", 2 }, { "walk", 2 }, { "step", 5 } };
	p.verbs.insert(p.verbs.end(), own.begin(), own.end());
	p.unreached = [lacking] {
		std::string why = !reached.refused ? "no allocation was refused" : !reached.steps ? "no reader moved" : lacking();

		if (why.empty())
			reached = {};
		return why;
	};
	return p;
}

inline std::string hardly_grew() { return reached.resizes < 10 ? "tables hardly grew" : ""; }

} // namespace properties

#endif
