/* SPDX-License-Identifier: MIT */
/* walk.hpp - the guarantee for a reader that walks through a structure while it changes: it sees each element that stays exactly once.
 * An element that is inserted or removed meanwhile may be seen or not, but not twice unless it was inserted twice. */
#ifndef QUIESCE_TESTS_WALK_HPP
#define QUIESCE_TESTS_WALK_HPP

#include "property.hpp"

#include <quiesce/rcu.h>

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
	}

	void see(Id id)
	{
		SAME(seen.insert(id).second);
		to_come.erase(id);
	}
	/* An updater removed it; or put it in, maybe once more: then it may be seen once more. */
	void gone(Id id) { to_come.erase(id); }
	void added(Id id) { seen.erase(id); }

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
	}

	bool open() const { return open_; }

private:
	bool open_ = false;
	std::set<Id> to_come, seen;
};

} // namespace properties

#endif
