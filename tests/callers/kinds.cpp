/* SPDX-License-Identifier: MIT */
/* kinds.cpp - deleters of C++.  Only C's callbacks may be left by an exception: deleters of the headers are noexcept. */
#include <quiesce/hazptr.hpp>
#include <quiesce/rcu.hpp>

#include <stdexcept>

struct world;

extern "C" {
void run_in_rcu_retire(struct world *w, void (*fn)(void *arg), void *arg);
void run_in_hazard_retire(struct world *w, void (*fn)(void *arg), void *arg);
void throw_an_exception(void *unused);
}

namespace {

template<class T> struct runs {
	void (*fn)(void *arg);
	void *arg;

	void operator()(T *object) const
	{
		auto what = *this;

		delete object; /* this may delete the object that contains the deleter */
		what.fn(what.arg);
	}
};

struct thing : quiesce::hazard_pointer_obj_base<thing, runs<thing>> {
};

} // namespace

void run_in_rcu_retire(struct world *, void (*fn)(void *arg), void *arg)
{
	quiesce::rcu_retire(new int(1), runs<int>{ fn, arg });
	quiesce::rcu_barrier();
}

void run_in_hazard_retire(struct world *, void (*fn)(void *arg), void *arg)
{
	(new thing)->retire(runs<thing>{ fn, arg });
	quiesce::hazard_pointer_clean_up();
}

void throw_an_exception(void *)
{
	throw std::runtime_error("thrown in a callback");
}
