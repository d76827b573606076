// SPDX-License-Identifier: MIT
/* cache.cpp - a cache that evicts its least recently used entry while other threads read it.
 *
 * Problem.  Many threads look values up; a miss makes the value, puts it in, and evicts another one.  Memory is
 *   scarce: an evicted value is to be freed soon, however long a reader of some other value takes.
 * Without it.  A lock makes hits wait for each other, and a std::shared_ptr writes a count that all readers of a
 *   popular value share.  Without either a value is freed while a reader copies it.
 * Primitive.  Hazard pointers: a reader announces the one entry that it uses, in a slot of its own.  A retired entry
 *   is deleted once no slot holds its address, and a bounded number of them waits, whatever readers do.
 *   RCU would do as well where readers are short and memory is plentiful.
 *
 *	c++ -std=c++20 cache.cpp $(pkg-config --cflags --libs quiesce)
 */
#include <quiesce/hazptr.hpp>

#include <array>
#include <atomic>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

struct entry : quiesce::hazard_pointer_obj_base<entry> {
	static inline std::atomic<long> alive{ 0 };

	unsigned key;
	std::string value;
	std::atomic<unsigned long> used; // time of the last hit: a hint, so relaxed

	entry(unsigned k, unsigned long now) : key(k), value("the value of key " + std::to_string(k)), used(now) { ++alive; }
	~entry() { --alive; }
};

// A set-associative cache: a key belongs to one set, and the least recently used way of a set is replaced.
class cache {
public:
	~cache() // no reader and no other thread is left: entries in place are deleted directly
	{
		for (set &s : sets)
			for (auto &way : s.ways)
				delete way.load();
	}

	// True if the value was found.  @h belongs to the reader, which keeps it for many lookups.
	bool find(quiesce::hazard_pointer &h, unsigned key, std::string &ret_value)
	{
		for (auto &way : sets[key % sets.size()].ways)
			if (entry *e = h.protect(way); e && e->key == key) {
				if (auto now = clock.load(std::memory_order_relaxed); e->used.load(std::memory_order_relaxed) != now)
					e->used.store(now, std::memory_order_relaxed); // not at each hit: the entry is shared
				ret_value = e->value;
				h.reset_protection();
				return true;
			}
		h.reset_protection();
		return false;
	}

	void insert(unsigned key)
	{
		auto fresh = std::make_unique<entry>(key, ++clock);
		set &s = sets[key % sets.size()];
		std::lock_guard updates(s.lock); // only its holder retires entries of the set, so they stay
		auto *victim = &s.ways[0];
		for (auto &way : s.ways) {
			const entry *e = way.load(), *v = victim->load();

			if (e && e->key == key)
				return; // another thread was faster
			if (v && (!e || e->used.load(std::memory_order_relaxed) < v->used.load(std::memory_order_relaxed)))
				victim = &way;
		}
		if (entry *old = victim->exchange(fresh.release()))
			old->retire(); // the destructor of an entry takes no lock, so it may run in this call
	}

private:
	struct set {
		std::mutex lock; // of updates; lookups take none
		std::array<std::atomic<entry *>, 4> ways{};
	};
	std::array<set, 16> sets;
	std::atomic<unsigned long> clock{ 0 }; // counts insertions; readers only load it
};

} // namespace

int main()
{
	std::atomic<unsigned long> hits{ 0 }, misses{ 0 }, wrong{ 0 };
	{
		cache values;
		std::vector<std::jthread> threads;
		for (unsigned seed = 1; seed <= 3; seed++)
			threads.emplace_back([&, seed] {
				auto h = quiesce::make_hazard_pointer(); // once for each thread; its destructor frees the slot
				std::string value;
				unsigned random = seed;
				for (int i = 0; i < 100000; i++) {
					random = random * 1664525 + 1013904223;
					unsigned key = (random >> 16) % ((random >> 8) % 4 ? 48 : 256); // some keys are popular
					if (values.find(h, key, value)) {
						++hits;
						wrong += value != "the value of key " + std::to_string(key);
					} else {
						++misses;
						values.insert(key);
					}
				}
			});
		threads.clear(); // joins them
	}
	quiesce::hazard_pointer_clean_up(); // everything that was retired has been deleted
	std::printf("cache: %lu hits, %lu misses, %lu wrong, %ld entries left\n", +hits, +misses, +wrong, +entry::alive);
	return !hits || !misses || wrong || entry::alive;
}
