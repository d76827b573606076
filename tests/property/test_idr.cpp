/* SPDX-License-Identifier: MIT */
/* test_idr.cpp - idr against std::map: which id is given out, what is found, iteration while ids change, want of memory. */
#include "property.hpp"
#include "refuse.hpp"
#include "walk.hpp"

#include <quiesce/ds/idr.h>
#include <quiesce/rcu.h>

#include <cerrno>
#include <climits>
#include <map>

namespace {

enum verbs { ALLOC, ALLOC_BELOW, ALLOC_U32, CYCLIC, RESERVED, PRELOADED, REMOVE, REPLACE, FIND, FILL, DRAIN, DESTROY, REFUSE, WALK, STEP };
const std::vector<properties::verb> idr_verbs = {
	{ "alloc", 8 },   { "alloc_below", 5 }, { "alloc_u32", 4 }, { "alloc_cyclic", 4 }, { "reserve", 2 },
	{ "preloaded", 2 }, { "remove", 8 },    { "replace", 4 },   { "find", 3 },         { "fill", 2 },
	{ "drain", 2 },   { "destroy", 1 },     { "refuse", 4 },    { "walk", 2 },         { "step", 6 },
};

/* ---- idrs that are wrong ---- */

struct right {
	static int alloc(struct idr *idr, void *ptr, int start, int end) { return idr_alloc(idr, ptr, start, end); }
	static void *find(const struct idr *idr, unsigned long id) { return idr_find(idr, id); }
};
/* Includes the end. */
struct one_more : right {
	static int alloc(struct idr *idr, void *ptr, int start, int end) { return idr_alloc(idr, ptr, start, end > 0 ? end + 1 : end); }
};
/* Mixes up ids that are far apart. */
struct narrow : right {
	static void *find(const struct idr *idr, unsigned long id)
	{
		void *found = idr_find(idr, id);

		return found || id < 64 ? found : idr_find(idr, id - 64);
	}
};

/* ---- the idr and its model ---- */

struct {
	int refused, full, steps;
} reached;

/* Ids from @base on, @stride apart; @limit is the largest there can be. */
template<unsigned base, unsigned stride, class Idr> class pair : public properties::subject {
public:
	pair() { idr_init(&idr); }
	~pair() override
	{
		reader.end();
		idr_destroy(&idr);
	}

	void apply(const properties::op &o) override
	{
		int id = static_cast<int>(base + o.a * stride);

		switch (o.verb) {
		case ALLOC:
			alloc(o.b % 32 ? id : -id - 1, o.b % 2 ? 0 : -7);
			break;
		case ALLOC_BELOW:
			alloc(id, id + static_cast<int>(o.b % 8));
			break;
		case ALLOC_U32:
			alloc_u32(static_cast<unsigned>(id), o.b % 4 ? static_cast<unsigned>(id) + o.b : UINT_MAX + (o.b & 4ul));
			break;
		case CYCLIC:
			alloc_cyclic(id, o.b % 2 ? 0 : id + static_cast<int>(o.b % 64));
			break;
		case RESERVED:
			reserve(id);
			break;
		case PRELOADED:
			alloc_preloaded(id);
			break;
		case REMOVE:
			remove(pick(o.b % 4 ? o.a : o.b, id));
			break;
		case REPLACE:
			replace(pick(o.a, id), o.b);
			break;
		case FIND:
			find(static_cast<unsigned>(id));
			find(static_cast<unsigned>(id) + (1ul << (o.b % 64)));
			break;
		case FILL:
			for (std::uint32_t n = 0; n <= o.b % 300; n++)
				alloc(id, 0);
			break;
		case DRAIN:
			for (std::uint32_t n = 0; n <= o.b && !model.empty(); n++)
				remove(pick(o.a + n, 0));
			break;
		case DESTROY:
			reader.end(); /* so that it is known what it sees */
			idr_destroy(&idr);
			model.clear();
			cursor = idr_get_cursor(&idr);
			SAME(idr_is_empty(&idr));
			break;
		case REFUSE:
			refuse::arm(o.a % 8, o.b & 1);
			break;
		case WALK:
			begin_walk();
			break;
		case STEP:
			for (std::uint32_t n = 0; n <= o.a % 32 && reader.open(); n++)
				step();
			break;
		}
		if (o.verb != REFUSE)
			refuse::disarm();
	}

	void compare(bool last) override
	{
		SAME(idr_count(&idr) == model.size());
		SAME(idr_is_empty(&idr) == model.empty());
		if (!last && model.size() > 40 && nr_compared++ % 16)
			return;
		std::map<unsigned, void *> found;
		unsigned long id, previous = 0;
		void *ptr;

		rcu_read_lock();
		idr_for_each_entry_ul(&idr, ptr, id) {
			SAME(found.empty() || id > previous);
			found[static_cast<unsigned>(previous = id)] = ptr;
		}
		rcu_read_unlock();
		for (const auto &[at, value] : model) {
			SAME(value ? found.count(at) && found[at] == value : !found.count(at));
			find(at);
			find(at + 64ul);
			found.erase(at);
		}
		SAME(found.empty());
	}

private:
	void *fresh() { return reinterpret_cast<void *>(++next_value); }

	unsigned pick(std::uint32_t n, int otherwise) const
	{
		auto there = model.lower_bound(base + n * stride);

		if (there == model.end())
			there = model.begin();
		return there == model.end() ? static_cast<unsigned>(otherwise) : there->first;
	}

	/* The lowest that is free from @start to @last; more than that if there is none. */
	unsigned long lowest(unsigned long start, unsigned long last) const
	{
		for (auto at = model.lower_bound(static_cast<unsigned>(start)); start <= last; ++at, start++)
			if (at == model.end() || at->first != start)
				break;
		return start;
	}

	/* Was it done?  It may have failed for want of memory, but only if some was refused. */
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

	static unsigned long last_of(int end) { return end > 0 ? static_cast<unsigned long>(end) - 1 : INT_MAX; }
	int expected_of(int start, int end) const
	{
		if (start < 0)
			return -EINVAL;
		unsigned long id = lowest(static_cast<unsigned long>(start), last_of(end));

		return id > last_of(end) ? -ENOSPC : static_cast<int>(id);
	}

	void alloc(int start, int end)
	{
		int expected = expected_of(start, end);
		void *ptr = fresh();
		int said = Idr::alloc(&idr, ptr, start, end);

		if (answer(said, expected))
			model[static_cast<unsigned>(said)] = ptr;
	}

	void alloc_preloaded(int start)
	{
		struct idr_nodes nodes = IDR_NODES_INIT;
		void *ptr = fresh();

		if (answer(idr_preload(&nodes), 0)) {
			refuse::arm(0, true);
			int said = idr_alloc_preloaded(&idr, &nodes, ptr, start, 0);
			bool asked = refuse::count() > 0;

			refuse::disarm();
			SAME(!asked && said == expected_of(start, 0));
			if (said >= 0)
				model[static_cast<unsigned>(said)] = ptr;
		}
		idr_preload_end(&nodes);
	}

	void alloc_u32(unsigned start, unsigned long max)
	{
		unsigned long last = max > UINT_MAX ? UINT_MAX : max, id = lowest(start, last);
		std::uint32_t next = start;
		void *ptr = fresh();

		if (answer(idr_alloc_u32(&idr, ptr, &next, max), id > last ? -ENOSPC : 0)) {
			SAME(next == id);
			model[next] = ptr;
		} else {
			SAME(next == start);
		}
	}

	void alloc_cyclic(int start, int end)
	{
		int from = static_cast<int>(cursor) > start ? static_cast<int>(cursor) : start;
		int expected = expected_of(from, end);
		void *ptr = fresh();

		if (expected == -ENOSPC)
			expected = expected_of(start, end);
		int said = idr_alloc_cyclic(&idr, ptr, start, end);

		if (answer(said, expected)) {
			model[static_cast<unsigned>(said)] = ptr;
			cursor = static_cast<unsigned>(said) + 1;
		}
		SAME(idr_get_cursor(&idr) == cursor);
	}

	void reserve(int start)
	{
		int said = idr_alloc(&idr, nullptr, start, 0);

		if (answer(said, expected_of(start, 0)))
			model[static_cast<unsigned>(said)] = nullptr;
	}

	void remove(unsigned id)
	{
		auto there = model.find(id);

		SAME(idr_remove(&idr, id) == (there == model.end() ? nullptr : there->second));
		if (there != model.end())
			model.erase(there);
		reader.gone(id);
	}

	void replace(unsigned id, std::uint32_t how)
	{
		void *ptr = how % 8 ? fresh() : nullptr, *old = this;
		auto there = model.find(id);
		int said = idr_replace(&idr, ptr, id, &old);

		SAME(said == (there == model.end() ? -ENOENT : 0));
		SAME(old == (there == model.end() ? this : there->second));
		if (there != model.end())
			there->second = ptr;
		if (!ptr)
			reader.gone(id);
	}

	void find(unsigned long id)
	{
		auto there = id > UINT_MAX ? model.end() : model.find(static_cast<unsigned>(id));

		rcu_read_lock();
		void *found = Idr::find(&idr, id);
		rcu_read_unlock();
		SAME(found == (there == model.end() ? nullptr : there->second));
	}

	void begin_walk()
	{
		std::vector<unsigned> there;

		for (const auto &[id, ptr] : model)
			if (ptr)
				there.push_back(id);
		reader.begin(there);
		next_id = 0;
	}

	void step()
	{
		unsigned long id = next_id;
		void *ptr = idr_get_next_ul(&idr, &id);

		reached.steps++;
		if (!ptr) {
			reader.reached_end();
			return;
		}
		SAME(id >= next_id);
		reader.see(static_cast<unsigned>(id));
		next_id = id + 1;
	}

	struct idr idr;
	std::map<unsigned, void *> model;
	std::uintptr_t next_value = 0;
	unsigned cursor = 0, nr_compared = 0;
	unsigned long next_id = 0;
	properties::walk<unsigned> reader;
};

template<unsigned base, unsigned stride, class Idr = right> properties::property of(const char *name)
{
	properties::property p{ name, idr_verbs, [] { return std::make_unique<pair<base, stride, Idr>>(); } };

	p.unreached = [] {
		std::string why;

		if (!reached.refused || !reached.full || !reached.steps)
			why = "no allocation was refused, no range was full, or no reader moved";
		if (why.empty())
			reached = {};
		return why;
	};
	return p;
}

} // namespace

int main()
{
	properties::property wide = of<0, 1, one_more>("an idr that gives out the end is found out, by one operation"),
			   mixed = of<0, 1, narrow>("an idr that mixes up ids is found out, by two operations");

	wide.planted = 1;
	mixed.planted = 2;
	return properties::run({ of<0, 1>("ids from 0"), of<0, 0x40000>("ids far apart"), of<INT_MAX - 4095, 1>("the last ids of int"),
			       of<4000, 1>("ids about a power of two"), wide, mixed });
}
