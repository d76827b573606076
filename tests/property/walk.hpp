/* SPDX-License-Identifier: MIT */
/* walk.hpp - the guarantee for a reader that walks through a structure while it changes: it sees each element that stays exactly once.
 * An element that is inserted or removed meanwhile may be seen or not, but not twice unless it was inserted twice: the walk may hold a
 * copy of a line, and find in it what has been removed from the line and inserted elsewhere. */
#ifndef QUIESCE_TESTS_WALK_HPP
#define QUIESCE_TESTS_WALK_HPP

#include "property.hpp"

#include <quiesce/rcu.h>

#include <algorithm>
#include <map>
#include <set>

namespace properties {

template<class Id> class walk {
public:
	walk() = default;
	walk(const walk &) = delete;
	walk &operator=(const walk &) = delete;
	~walk() { end(); }

	template<class Ids> void begin(const Ids &there)
	{
		end();
		rcu_read_lock();
		open_ = true;
		to_come.insert(there.begin(), there.end());
		for (const Id &id : there)
			added(id);
	}

	void see(Id id)
	{
		SAME(++seen[id] <= std::max(1, inserted[id]));
		to_come.erase(id);
	}
	/* An updater removed it; or put it in, maybe once more: then it may be seen once more, in either order. */
	void gone(Id id) { to_come.erase(id); }
	void added(Id id) { inserted[id] += open_; }

	void reached_end()
	{
		bool missed = !to_come.empty();

		end();
		SAME(!missed);
	}

	void end()
	{
		if (open_)
			rcu_read_unlock();
		open_ = false;
		to_come.clear();
		seen.clear();
		inserted.clear();
	}

	bool open() const { return open_; }

private:
	bool open_ = false;
	std::set<Id> to_come;
	std::map<Id, int> seen, inserted; /* since the beginning, at which it may have been there */
};

} // namespace properties

#endif
