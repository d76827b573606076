/* SPDX-License-Identifier: MIT */
/* ways.hpp - the variants: how readers find the table, how the reloader replaces it.
 *
 * A thread creates a reader, and calls it with a function that uses the table.  reload() is called with a function that builds
 * the new table.  A way is destroyed when there are no readers any more, and then it ends the last table.
 */
#ifndef RELOAD_WAYS_HPP
#define RELOAD_WAYS_HPP

#include <atomic>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <utility>

#include <quiesce/hazptr.hpp>
#include <quiesce/percpu_rwsem.hpp>
#include <quiesce/rcu.hpp>
#include <quiesce/shazptr.hpp>

#include "table.hpp"

namespace reload {

/* raw: the type in which C++ programs publish a pointer, and what the C++ headers take. */
using published = std::atomic<table *>;

/* Readers say that they are inside, not of what; a thread of the library ends the table after a grace period. */
class by_rcu {
public:
	explicit by_rcu(table *first) : current(first) {}
	~by_rcu()
	{
		bury()(current.load());
		quiesce::rcu_barrier();
	}

	struct reader {
		by_rcu &way;

		template<class Use> void operator()(Use use)
		{
			quiesce::rcu_reader section;

			use(*way.current.load(std::memory_order_acquire)); /* pairs with the exchange, as in all the others */
		}
	};

	template<class Build> void reload(Build build)
	{
		quiesce::rcu_retire(current.exchange(build()), bury());
		::rcu_throttle(); /* only --check makes tables faster than readers let go of them */
	}

private:
	published current;
};

/* Readers protect the table that they are in; the library ends tables that no reader protects. */
class by_hazptr {
public:
	explicit by_hazptr(table *first) : current(first) {}
	~by_hazptr()
	{
		bury()(current.load());
		quiesce::hazard_pointer_clean_up();
	}

	struct reader {
		by_hazptr &way;
		quiesce::hazard_pointer here = quiesce::make_hazard_pointer(); /* one for all lookups of the thread */

		template<class Use> void operator()(Use use)
		{
			use(*here.protect(way.current));
			here.reset_protection();
		}
	};

	template<class Build> void reload(Build build) { current.exchange(build())->retire(); }

private:
	published current;
};

/* Readers protect the table that they are in; the reloader itself waits for the readers of the old table, and for no others. */
class by_shazptr {
public:
	explicit by_shazptr(table *first) : current(first) {}
	~by_shazptr() { bury()(current.load()); }

	struct reader {
		by_shazptr &way;

		template<class Use> void operator()(Use use)
		{
			quiesce::shazptr guard(way.current);

			use(*guard);
		}
	};

	template<class Build> void reload(Build build)
	{
		table *old = current.exchange(build());

		synchronize_shazptr(old);
		bury()(old);
	}

private:
	published current;
};

/* There is a lock around each lookup, and around the swap; with @Whole around all of the reload. */
template<class Lock, template<class> class Reading, bool Whole = false> class by_lock {
public:
	explicit by_lock(table *first) : current(first) {}
	~by_lock() { bury()(current); }

	struct reader {
		by_lock &way;

		template<class Use> void operator()(Use use)
		{
			Reading<Lock> reading(way.lock);

			use(*way.current);
		}
	};

	template<class Build> void reload(Build build)
	{
		table *fresh = Whole ? nullptr : build(), *old;
		{
			std::unique_lock writing(lock);

			old = std::exchange(current, Whole ? build() : fresh);
		}
		bury()(old);
	}

private:
	Lock lock;
	table *current;
};
using by_percpu_rwsem = by_lock<quiesce::percpu_shared_mutex, std::shared_lock>;
using by_rwlock = by_lock<std::shared_mutex, std::shared_lock>; /* a pthread_rwlock_t, in every C++ library on Linux */
using by_rwlock_whole = by_lock<std::shared_mutex, std::shared_lock, true>;
using by_mutex = by_lock<std::mutex, std::unique_lock>;

#ifdef HAVE_STD_ATOMIC_SHARED_PTR
/* Each lookup takes a counted reference; the thread that gives back the last one, perhaps a reader, ends the table. */
class by_shared_ptr {
public:
	explicit by_shared_ptr(table *first) : current(std::shared_ptr<table>(first, bury())) {}

	struct reader {
		by_shared_ptr &way;

		template<class Use> void operator()(Use use)
		{
			std::shared_ptr<table> here = way.current.load(std::memory_order_acquire);

			use(*here);
		}
	};

	template<class Build> void reload(Build build)
	{
		current.store(std::shared_ptr<table>(build(), bury()), std::memory_order_release);
	}

private:
	std::atomic<std::shared_ptr<table>> current; /* raw: what is measured. */
};
#endif

/* Busted. */
class by_nothing {
public:
	explicit by_nothing(table *first) : current(first) {}
	~by_nothing() { bury()(current.load()); }

	struct reader {
		by_nothing &way;

		template<class Use> void operator()(Use use) { use(*way.current.load(std::memory_order_acquire)); }
	};

	template<class Build> void reload(Build build) { bury()(current.exchange(build())); }

private:
	published current;
};

} // namespace reload

#endif
