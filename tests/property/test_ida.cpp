/* SPDX-License-Identifier: MIT */
/* test_ida.cpp - ida, by its C++ face, against std::set: the numbers given out, failed allocations. */
#include "property.hpp"
#include "refuse.hpp"

#include <quiesce/ds/ida.hpp>

#include <climits>
#include <set>

namespace {

enum verbs { REFUSE, ALLOC, ALLOC_BELOW, FREE, FIND, FILL, DRAIN, DESTROY };
const std::vector<properties::verb> ida_verbs = {
	{ "refuse", 4 }, { "alloc", 8 }, { "alloc_below", 5 }, { "free", 8 },
	{ "find", 4 },   { "fill", 3 },  { "drain", 2 },       { "destroy", 1 },
};

struct {
	int refused, full;
} reached;

/* ---- idas that are wrong ---- */

struct right {
	static std::optional<int> alloc(quiesce::ida &ida, unsigned min, unsigned max) { return ida.alloc(min, max); }
	static std::optional<int> find(quiesce::ida &ida, unsigned min, unsigned max) { return ida.find_first(min, max); }
};
/* A fault: the number is not the lowest free one, if that is the last of its word. */
struct not_lowest : right {
	static std::optional<int> alloc(quiesce::ida &ida, unsigned min, unsigned max)
	{
		std::optional<int> id = ida.alloc(min, max);

		if (!id || *id % 64 != 63)
			return id;
		ida.free(static_cast<unsigned>(*id));
		return ida.alloc(static_cast<unsigned>(*id) + 1, max);
	}
};
/* A fault: the search goes one number too far. */
struct one_more : right {
	static std::optional<int> find(quiesce::ida &ida, unsigned min, unsigned max) { return ida.find_first(min, max + (max < INT_MAX)); }
};

/* ---- the ida and its model ---- */

/* The subject uses numbers from @base on, @stride apart. */
template<unsigned base, unsigned stride, class Ida> class pair : public properties::subject {
public:
	void apply(const properties::op &o) override
	{
		if (o.verb == REFUSE) {
			refuse::arm(o.a % 8, o.b & 1);
			return;
		}
		perform(o.verb, o.a, o.b);
		refuse::disarm();
	}

	void compare(bool last) override
	{
		SAME(ids.empty() == model.empty());
		if (!last && model.size() > 40 && nr_compared++ % 16)
			return;
		unsigned next = 0;

		for (unsigned id : model) {
			SAME(ids.find_first(next) == static_cast<int>(id));
			next = id + 1;
		}
		SAME(next > INT_MAX || !ids.find_first(next));
	}

private:
	void perform(unsigned verb, std::uint32_t a, std::uint32_t b)
	{
		unsigned id = base + a * stride;

		switch (verb) {
		case ALLOC:
			alloc(id, b % 2 ? INT_MAX : UINT_MAX);
			break;
		case ALLOC_BELOW:
			alloc(id, id + b % 70);
			break;
		case FREE:
			give_back(pick(b % 4 ? a : b));
			break;
		case FIND:
			find(id, b % 2 ? id + b * stride : id + b % 4);
			break;
		case FILL:
			for (std::uint32_t n = 0; n <= b % 1000; n++)
				alloc(id, INT_MAX);
			break;
		case DRAIN:
			for (std::uint32_t n = 0; n <= b && !model.empty(); n++)
				give_back(pick(a + n));
			break;
		case DESTROY:
			ids.clear();
			model.clear();
			break;
		}
	}

	std::set<unsigned>::const_iterator pick(std::uint32_t n) const
	{
		auto there = model.lower_bound(base + n * stride);

		return there == model.end() ? model.begin() : there;
	}

	void alloc(unsigned min, unsigned max)
	{
		unsigned long last = max < INT_MAX ? max : INT_MAX, expected = min;

		for (auto at = model.lower_bound(min); expected <= last && at != model.end() && *at == expected; ++at)
			expected++;
		try {
			std::optional<int> id = Ida::alloc(ids, min, max);

			SAME(id ? expected <= last && *id == static_cast<int>(expected) : expected > last);
			if (id)
				model.insert(static_cast<unsigned>(*id));
			reached.full += !id;
		} catch (const std::bad_alloc &) {
			SAME(refuse::count() > 0);
			reached.refused++;
		}
	}

	void give_back(std::set<unsigned>::const_iterator at)
	{
		if (at == model.end())
			return;
		SAME(ids.exists(*at));
		ids.free(*at);
		SAME(!ids.exists(*at));
		model.erase(at);
	}

	void find(unsigned min, unsigned max)
	{
		auto at = model.lower_bound(min);

		if (min > INT_MAX)
			return;
		std::optional<int> found = Ida::find(ids, min, max);

		SAME(found ? at != model.end() && static_cast<unsigned>(*found) == *at && *at <= max : at == model.end() || *at > max);
		SAME(ids.exists(min) == (model.count(min) != 0));
	}

	quiesce::ida ids;
	std::set<unsigned> model;
	unsigned nr_compared = 0;
};

template<unsigned base, unsigned stride, class Ida = right> properties::property of(const char *name)
{
	properties::property p{ name, ida_verbs, [] { return std::make_unique<pair<base, stride, Ida>>(); } };

	p.unreached = [] {
		std::string why = !reached.refused ? "no allocation was refused" : !reached.full ? "no range was full" : "";

		if (why.empty())
			reached = {};
		return why;
	};
	return p;
}

} // namespace

int main()
{
	using properties::planted;

	return properties::run({ of<0, 1>("numbers from 0"), of<0, 0x40000>("numbers far apart"),
			       of<INT_MAX - 4095, 1>("the last numbers of int"), of<262144 - 2048, 1>("numbers about a level's end"),
			       planted(of<0, 1, not_lowest>("an ida that passes a number over is found out, by one operation"), 1),
			       planted(of<0, 1, one_more>("an ida that searches behind the end is found, by two operations"), 2) });
}
