/* SPDX-License-Identifier: MIT */
/* raw, whole file: an implementation of its own, with one lock for everything. */
/* broken.hpp - the plainest possible implementation, with faults: it shows that the suite can fail.
 *
 * BROKEN=name in the environment chooses a fault; without one it is correct, and passes.  Each "fault(...)" below has a
 * line in conformance.py, which runs them all.
 */
#ifndef CONFORMANCE_BROKEN_HPP
#define CONFORMANCE_BROKEN_HPP

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <span>
#include <thread>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <vector>

namespace broken {

/* Inline, in a header: getenv() once for each name and place would be slow in a loop. */
inline bool is_fault(const char *name)
{
	const char *chosen = std::getenv("BROKEN");
	return chosen && !std::strcmp(chosen, name);
}
#define fault(name) ([] { static const bool on = ::broken::is_fault(name); return on; }())

struct record {
	const void *value = nullptr;
};

struct retired {
	const void *address;
	void (*reclaim)(void *);
	void *object;
};

#define BROKEN_DEFAULTS(name)                    \
	name() = default; name(const name &) = default; name(name &&) = default; ~name() = default; \
	name &operator=(const name &) = default; name &operator=(name &&) = default;

/* ---- hazard pointers ---- */

struct hazards {
	std::mutex mutex;
	std::unordered_set<record *> records;
	std::vector<retired> garbage;

	static hazards &all()
	{
		static hazards *one = new hazards; /* never destroyed: threads and static objects end after it */
		return *one;
	}

	void retire(const retired &object)
	{
		std::vector<retired> ready;
		{
			std::lock_guard lock(mutex);
			garbage.push_back(object);
			if (fault("retired twice"))
				garbage.push_back(object);
			if (fault("never reclaimed") || (garbage.size() < limit() && !fault("reclaimed at once")))
				return;
			split(ready);
		}
		for (auto &each : ready)
			each.reclaim(each.object);
	}

private:
	std::size_t limit() const { return 500 + 2 * records.size(); }

	void split(std::vector<retired> &ready)
	{
		std::unordered_set<const void *> held;
		std::vector<retired> kept;

		for (record *each : records)
			held.insert(each->value);
		for (auto &each : garbage)
			(held.count(each.address) && !fault("reclaimed at once") ? kept : ready).push_back(each);
		garbage.swap(kept);
	}
};

template<class T, class D = std::default_delete<T>> class hazard_pointer_obj_base {
public:
	void retire(D d = D()) noexcept
	{
		if (!fault("deleter not assigned"))
			broken_deleter = std::move(d);
		T *whole = static_cast<T *>(this);
		hazards::all().retire({ whole, [](void *object) {
			auto *it = static_cast<T *>(object);
			it->hazard_pointer_obj_base::broken_deleter(it);
		}, whole });
	}

protected:
	BROKEN_DEFAULTS(hazard_pointer_obj_base)

private:
	D broken_deleter{};
};

class hazard_pointer {
public:
	hazard_pointer() noexcept {}
	hazard_pointer(hazard_pointer &&other) noexcept : own(std::exchange(other.own, nullptr))
	{
		if (fault("move resets"))
			set(nullptr);
	}
	hazard_pointer &operator=(hazard_pointer &&other) noexcept
	{
		if (this == &other && !fault("self move destroys"))
			return *this;
		destroy();
		own = std::exchange(other.own, nullptr);
		return *this;
	}
	~hazard_pointer() { destroy(); }

	bool empty() const noexcept
	{
		if (fault("unassociated is empty"))
			return !own || !own->value;
		return !own;
	}

	template<class T> T *protect(const std::atomic<T *> &src) noexcept
	{
		T *ptr = src.load(std::memory_order_relaxed);

		if (fault("protect does not load again")) {
			std::this_thread::yield();
			reset_protection(ptr);
			return ptr;
		}
		while (!try_protect(ptr, src))
			;
		return ptr;
	}

	template<class T> bool try_protect(T *&ptr, const std::atomic<T *> &src) noexcept
	{
		T *old = ptr, *now;

		reset_protection(old);
		now = src.load(std::memory_order_acquire);
		if (!fault("failure keeps the pointer"))
			ptr = now;
		if (old != now && !fault("failure keeps the protection"))
			reset_protection();
		return old == now;
	}

	template<class T> void reset_protection(const T *ptr) noexcept
	{
		if (ptr || !fault("null pointer keeps the protection"))
			set(ptr);
	}

	void reset_protection(std::nullptr_t = nullptr) noexcept
	{
		if (!fault("reset keeps the protection"))
			set(nullptr);
	}

	void swap(hazard_pointer &other) noexcept
	{
		if (fault("swap does nothing"))
			return;
		if (fault("swap resets")) {
			set(nullptr);
			other.set(nullptr);
		}
		std::swap(own, other.own);
	}

private:
	record *own = nullptr;

	void set(const void *value) noexcept
	{
		std::lock_guard lock(hazards::all().mutex);
		if (own)
			own->value = value;
	}

	void destroy() noexcept
	{
		if (!own)
			return;
		std::lock_guard lock(hazards::all().mutex);
		if (!fault("destruction keeps the protection")) {
			hazards::all().records.erase(own);
			delete own;
		}
		own = nullptr;
	}

	friend hazard_pointer make_hazard_pointer();
};

inline hazard_pointer make_hazard_pointer()
{
	hazard_pointer made;
	std::lock_guard lock(hazards::all().mutex);

	made.own = new record;
	hazards::all().records.insert(made.own);
	return made;
}

inline void swap(hazard_pointer &a, hazard_pointer &b) noexcept { a.swap(b); }

inline void make_hazard_pointer_batch(std::span<hazard_pointer> batch)
{
	for (auto &each : batch)
		if (each.empty() || fault("batch replaces"))
			each = make_hazard_pointer();
}

inline void clear_hazard_pointer_batch(std::span<hazard_pointer> batch) noexcept
{
	for (auto &each : fault("clear leaves the last") && !batch.empty() ? batch.first(batch.size() - 1) : batch)
		each = hazard_pointer();
}

/* ---- RCU ---- */

class rcu_domain;
rcu_domain &rcu_default_domain() noexcept;

struct regions {
	std::mutex mutex;
	std::condition_variable changed;
	std::multiset<std::uint64_t> open;
	std::uint64_t now = 0;
	std::vector<retired> scheduled;
	unsigned evaluating = 0;

	static regions &all()
	{
		static regions *one = new regions;
		return *one;
	}

	void synchronize(std::unique_lock<std::mutex> &lock)
	{
		std::uint64_t before = ++now;

		if (fault("synchronize waits for all readers"))
			changed.wait(lock, [&] { return open.empty(); });
		else if (!fault("synchronize does not wait"))
			changed.wait(lock, [&] { return open.empty() || *open.begin() >= before; });
	}

	void schedule(const retired &object)
	{
		if (fault("evaluated at once")) {
			object.reclaim(object.object);
			return;
		}
		std::lock_guard lock(mutex);
		scheduled.push_back(object);
	}

	void barrier()
	{
		std::unique_lock lock(mutex);
		std::vector<retired> mine;

		if (fault("barrier does nothing"))
			return;
		mine.swap(scheduled);
		evaluating++;
		if (!mine.empty() || fault("barrier synchronizes"))
			synchronize(lock);
		lock.unlock();
		for (auto &each : mine)
			each.reclaim(each.object);
		if (fault("evaluated twice"))
			for (auto &each : mine)
				each.reclaim(each.object);
		lock.lock();
		evaluating--;
		changed.notify_all();
		changed.wait(lock, [&] { return !evaluating; });
	}
};

class rcu_domain {
public:
	rcu_domain(const rcu_domain &) = delete;
	rcu_domain &operator=(const rcu_domain &) = delete;

	void lock() noexcept
	{
		auto &all = regions::all();
		std::lock_guard guard(all.mutex);

		if (depth++ == 0)
			all.open.insert(mine = all.now);
	}
	bool try_lock() noexcept
	{
		if (fault("try_lock refuses"))
			return false;
		lock();
		return true;
	}
	void unlock() noexcept
	{
		auto &all = regions::all();
		std::lock_guard guard(all.mutex);

		if (--depth && !fault("inner unlock ends"))
			return;
		if (auto it = all.open.find(mine); it != all.open.end())
			all.open.erase(it);
		all.changed.notify_all();
	}

private:
	rcu_domain() = default;
	static inline thread_local unsigned depth = 0;
	static inline thread_local std::uint64_t mine = 0;
	friend rcu_domain &rcu_default_domain() noexcept;
};

inline rcu_domain &rcu_default_domain() noexcept { static rcu_domain one; return one; }

inline void rcu_synchronize(rcu_domain & = rcu_default_domain()) noexcept
{
	std::unique_lock lock(regions::all().mutex);
	regions::all().synchronize(lock);
}

inline void rcu_barrier(rcu_domain & = rcu_default_domain()) noexcept { regions::all().barrier(); }

template<class T, class D = std::default_delete<T>> class rcu_obj_base {
public:
	void retire(D d = D(), rcu_domain & = rcu_default_domain()) noexcept
	{
		broken_deleter = std::move(d);
		T *whole = static_cast<T *>(this);
		regions::all().schedule({ whole, [](void *object) {
			auto *it = static_cast<T *>(object);
			it->rcu_obj_base::broken_deleter(it);
		}, whole });
	}

protected:
	BROKEN_DEFAULTS(rcu_obj_base)

private:
	D broken_deleter{};
};

template<class T, class D = std::default_delete<T>> void rcu_retire(T *p, D d = D(), rcu_domain & = rcu_default_domain())
{
	struct node {
		T *object;
		D deleter;
		node(T *o, D &&e) : object(o), deleter(std::move(e)) {}
	};
	auto evaluate = [](void *all) {
		auto *it = static_cast<node *>(all);
		it->deleter(it->object);
		if (!fault("deleter is not destroyed") && !fault("evaluated twice"))
			delete it;
	};
	if constexpr (std::is_class_v<D> && std::is_default_constructible_v<D>)
		if (fault("scheduled before it throws"))
			regions::all().schedule({ p, [](void *object) { D()(static_cast<T *>(object)); }, (void *)p });
	auto *made = new node(p, std::move(d));
	regions::all().schedule({ p, evaluate, made });
}

} // namespace broken

namespace impl = broken;

#endif
