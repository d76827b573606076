/* SPDX-License-Identifier: MIT */
/* test_idr.cpp - idr against std::map: ids given out, results of lookups, iteration while ids change, failed allocations. */
#include "container.hpp"

#include <quiesce/ds/idr.h>

#include <climits>
#include <map>

namespace {

using properties::reached;

enum verbs {
	ALLOC = properties::NR_COMMON, ALLOC_BELOW, ALLOC_U32, CYCLIC, RESERVED, PRELOADED, REMOVE, REPLACE, FIND, FILL, DRAIN, DESTROY
};
const std::vector<properties::verb> idr_verbs = {
	{ "alloc", 8 },  { "alloc_below", 5 }, { "alloc_u32", 4 }, { "alloc_cyclic", 4 }, { "reserve", 2 }, { "preloaded", 2 },
	{ "remove", 8 }, { "replace", 4 },     { "find", 3 },      { "fill", 2 },         { "drain", 2 },   { "destroy", 1 },
};

/* ---- idrs that are wrong ---- */

struct right {
	static int alloc(struct idr *idr, void *ptr, int start, int end) { return idr_alloc(idr, ptr, start, end); }
	static void *find(const struct idr *idr, unsigned long id) { return idr_find(idr, id); }
};
/* A fault: the range includes its end. */
struct one_more : right {
	static int alloc(struct idr *idr, void *ptr, int start, int end) { return idr_alloc(idr, ptr, start, end > 0 ? end + 1 : end); }
};
/* A fault: confuses ids that are far apart. */
struct narrow : right {
	static void *find(const struct idr *idr, unsigned long id)
	{
		void *found = idr_find(idr, id);

		return found || id < 64 ? found : idr_find(idr, id - 64);
	}
};

/* ---- the idr and its model ---- */

/* Ids from @base on, @stride apart; @limit is the largest there can be. */
template<unsigned base, unsigned stride, class Idr> class pair : public properties::container<unsigned> {
public:
	pair() { idr_init(&idr); }
	~pair() override
	{
		reader.end();
		idr_destroy(&idr);
	}

private:
	void perform(unsigned verb, std::uint32_t a, std::uint32_t b) override
	{
		int id = static_cast<int>(base + a * stride);

		switch (verb) {
		case ALLOC:
			alloc(b % 32 ? id : -id - 1, b % 2 ? 0 : -7);
			break;
		case ALLOC_BELOW:
			alloc(id, id + static_cast<int>(b % 8));
			break;
		case ALLOC_U32:
			alloc_u32(static_cast<unsigned>(id), b % 4 ? static_cast<unsigned>(id) + b : UINT_MAX + (b & 4ul));
			break;
		case CYCLIC:
			alloc_cyclic(id, b % 2 ? 0 : id + static_cast<int>(b % 64));
			break;
		case RESERVED:
			reserve(id);
			break;
		case PRELOADED:
			alloc_preloaded(id);
			break;
		case REMOVE:
			remove(pick(b % 4 ? a : b, id));
			break;
		case REPLACE:
			replace(pick(a, id), b);
			break;
		case FIND:
			find(static_cast<unsigned>(id));
			find(static_cast<unsigned>(id) + (1ul << (b % 64)));
			break;
		case FILL:
			for (std::uint32_t n = 0; n <= b % 300; n++)
				alloc(id, 0);
			break;
		case DRAIN:
			for (std::uint32_t n = 0; n <= b && !model.empty(); n++)
				remove(pick(a + n, 0));
			break;
		case DESTROY:
			reader.end(); /* the reader must not see a partly destroyed idr */
			idr_destroy(&idr);
			model.clear();
			cursor = idr_get_cursor(&idr);
			SAME(idr_is_empty(&idr));
			break;
		}
		SAME(idr_count(&idr) == model.size());
		SAME(idr_is_empty(&idr) == model.empty());
	}

	std::size_t size() const override { return model.size(); }

	void compare_all(bool) override
	{
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

	void *fresh() { return reinterpret_cast<void *>(++next_value); }

	unsigned pick(std::uint32_t n, int otherwise) const
	{
		auto there = model.lower_bound(base + n * stride);

		if (there == model.end())
			there = model.begin();
		return there == model.end() ? static_cast<unsigned>(otherwise) : there->first;
	}

	/* Return the lowest free id from @start to @last; more than @last if there is none. */
	unsigned long lowest(unsigned long start, unsigned long last) const
	{
		for (auto at = model.lower_bound(static_cast<unsigned>(start)); start <= last; ++at, start++)
			if (at == model.end() || at->first != start)
				break;
		return start;
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

	std::vector<unsigned> begin_walk() override
	{
		std::vector<unsigned> there;

		for (const auto &[id, ptr] : model)
			if (ptr)
				there.push_back(id);
		next_id = 0;
		return there;
	}

	std::optional<unsigned> next() override
	{
		unsigned long id = next_id;

		if (!idr_get_next_ul(&idr, &id))
			return std::nullopt;
		SAME(id >= next_id);
		next_id = id + 1;
		return static_cast<unsigned>(id);
	}

	struct idr idr;
	std::map<unsigned, void *> model;
	std::uintptr_t next_value = 0;
	unsigned cursor = 0;
	unsigned long next_id = 0;
};

template<unsigned base, unsigned stride, class Idr = right> properties::property of(const char *name)
{
	return properties::property_of<pair<base, stride, Idr>>(name, idr_verbs,
							       [] { return std::string(reached.full ? "" : "no range was full"); });
}

} // namespace

int main()
{
	using properties::planted;

	return properties::run({ of<0, 1>("ids from 0"), of<0, 0x40000>("ids far apart"), of<INT_MAX - 4095, 1>("the last ids of int"),
			       of<4000, 1>("ids about a power of two"),
			       planted(of<0, 1, one_more>("an idr that gives out the end is found out, by one operation"), 1),
			       planted(of<0, 1, narrow>("an idr that mixes up ids is found out, by two operations"), 2) });
}
