/* SPDX-License-Identifier: MIT */
/* test_xarray.cpp - xarray against std::map: entries, marks, neighbours, ranges, readers that go on while it changes, failed allocations;
 * half of the updates by the C++ face. */
#include "container.hpp"

#include <quiesce/ds/xarray.hpp>

#include <algorithm>
#include <climits>
#include <map>

namespace {

using properties::reached;

enum verbs {
	STORE = properties::NR_COMMON, INSERT, ERASE, RESERVE, RELEASE, CMPXCHG, ALLOC, CYCLIC, MARK, UNMARK, FIND, FIND_DOWN, EXTRACT,
	FILL, DRAIN, DESTROY
};
const std::vector<properties::verb> xarray_verbs = {
	{ "store", 8 },    { "insert", 4 },     { "erase", 8 }, { "reserve", 2 },      { "release", 2 }, { "cmpxchg", 4 },
	{ "alloc", 3 },    { "cyclic", 3 },     { "set_mark", 6 }, { "clear_mark", 4 }, { "find", 4 },
	{ "find_reverse", 4 }, { "extract", 2 }, { "fill", 2 }, { "drain", 2 },        { "destroy", 1 },
};

/* ---- which indices ---- */

struct from_zero {
	static unsigned long index(std::uint32_t n) { return n; }
};
struct to_the_end {
	static unsigned long index(std::uint32_t n) { return ULONG_MAX - n; }
};
struct far_apart {
	static unsigned long index(std::uint32_t n) { return static_cast<unsigned long>(n) << 52; }
};
/* Four on either side of where a level begins, and of where the numbers end. */
struct about_levels {
	static unsigned long index(std::uint32_t n) { return (1ul << n % 11 * 6) - 1 + n / 11 % 8 - 4; }
};

/* ---- xarrays that are wrong ---- */

struct right {
	static void *find(const struct xarray *xa, unsigned long *index, unsigned long max, xa_mark_t filter)
	{
		return xa_find(xa, index, max, filter);
	}
	static void *find_before(const struct xarray *xa, unsigned long *index) { return xa_find_before(xa, index, 0, XA_PRESENT); }
	static bool get_mark(const struct xarray *xa, unsigned long index, xa_mark_t mark) { return xa_get_mark(xa, index, mark); }
	static int cmpxchg(struct xarray *xa, unsigned long index, void *old, void *entry, void **ret_old)
	{
		return xa_cmpxchg(xa, index, old, entry, ret_old);
	}
	static void *erase(struct xarray *xa, unsigned long index) { return xa_erase(xa, index); }
};
/* A fault: the search goes behind the end of a range. */
struct one_more : right {
	static void *find(const struct xarray *xa, unsigned long *index, unsigned long max, xa_mark_t filter)
	{
		return xa_find(xa, index, max + (max < ULONG_MAX), filter);
	}
};
/* A fault: the search downwards never reaches 0. */
struct not_down : right {
	static void *find_before(const struct xarray *xa, unsigned long *index) { return xa_find_before(xa, index, 1, XA_PRESENT); }
};
/* A fault: confuses marks of nodes. */
struct mixed_up : right {
	static bool get_mark(const struct xarray *xa, unsigned long index, xa_mark_t mark)
	{
		return xa_get_mark(xa, index, mark) || xa_get_mark(xa, index - 64, mark);
	}
};
/* A fault: the exchange does not compare. */
struct uncompared : right {
	static int cmpxchg(struct xarray *xa, unsigned long index, void *, void *entry, void **ret_old)
	{
		return xa_store(xa, index, entry, ret_old);
	}
};
/* A fault: marks stay when an entry is erased. */
struct sticky : right {
	static void *erase(struct xarray *xa, unsigned long index)
	{
		void *old = nullptr;

		if (xa_get_mark(xa, index, XA_MARK_1)) {
			xa_store(xa, index, &old, &old);
			return old;
		}
		return xa_erase(xa, index);
	}
};

/* ---- the xarray and its model ---- */

template<class Indices, class Xarray> class pair : public properties::container<unsigned long> {
public:
	~pair() override { reader.end(); }

private:
	struct place {
		void *entry;
		unsigned marks;
	};
	using map = std::map<unsigned long, place>;

	void perform(unsigned verb, std::uint32_t a, std::uint32_t b) override
	{
		unsigned long index = Indices::index(a);

		if (verb >= MARK && verb <= EXTRACT)
			perform_no_update(verb, index, a, b);
		else
			perform_update(verb, index, a, b);
		SAME(xa_count(xa()) == model.size());
		SAME(xa_empty(xa()) == model.empty());
	}

	void perform_update(unsigned verb, unsigned long index, std::uint32_t a, std::uint32_t b)
	{
		switch (verb) {
		case STORE:
			store(b % 2 ? pick(a) : index, b % 8 ? fresh() : nullptr, b & 2);
			break;
		case INSERT:
			insert(index, b % 8 ? fresh() : nullptr, b & 2);
			break;
		case ERASE:
			erase(pick(b % 4 ? a : b));
			break;
		case RESERVE:
			if (answer(xa_reserve(xa(), index), 0))
				model.try_emplace(index, place{ nullptr, 0 });
			break;
		case RELEASE:
			release(pick(a));
			break;
		case CMPXCHG:
			cmpxchg(b % 2 ? pick(a) : index, b);
			break;
		case ALLOC:
			alloc(a, b % 4 ? a + b : UINT32_MAX);
			break;
		case CYCLIC:
			alloc_cyclic(a, a + b % 64);
			break;
		case FILL:
			for (std::uint32_t n = 0; n <= b % 300; n++)
				store(Indices::index(a + n), fresh(), false);
			break;
		case DRAIN:
			for (std::uint32_t n = 0; n <= b && !model.empty(); n++)
				erase(pick(a + n));
			break;
		case DESTROY:
			reader.end(); /* the reader must not see a partly destroyed xarray */
			entries.clear();
			model.clear();
			break;
		}
	}

	void perform_no_update(unsigned verb, unsigned long index, std::uint32_t a, std::uint32_t b)
	{
		xa_mark_t mark = b % 3, filter = b % 4;

		switch (verb) {
		case MARK:
			index = pick(a);
			xa_set_mark(xa(), index, mark);
			if (has(model.find(index), XA_PRESENT))
				model[index].marks |= 1u << mark;
			break;
		case UNMARK:
			index = pick(a);
			xa_clear_mark(xa(), index, mark);
			if (model.count(index))
				model[index].marks &= ~(1u << mark);
			if (walk_filter == mark)
				reader.gone(index);
			break;
		case FIND:
			find_up(index, b % 8 < 4 ? index + b : ULONG_MAX, filter);
			break;
		case FIND_DOWN:
			find_down(index, b % 8 < 4 ? index - b : 0, filter);
			break;
		case EXTRACT:
			extract(index, b % 2 ? index + b * 16 : ULONG_MAX, a % 100, filter);
			break;
		}
	}

	std::size_t size() const override { return model.size(); }

	/* ---- the model ---- */

	bool has(typename map::const_iterator at, xa_mark_t filter) const
	{
		return at != model.end() && at->second.entry && (filter == XA_PRESENT || at->second.marks >> filter & 1);
	}
	void *entry_of(unsigned long index) const
	{
		auto at = model.find(index);

		return at == model.end() ? nullptr : at->second.entry;
	}
	typename map::const_iterator first_from(unsigned long index, unsigned long max, xa_mark_t filter) const
	{
		auto at = model.lower_bound(index);

		while (at != model.end() && !has(at, filter))
			++at;
		return at != model.end() && at->first <= max ? at : model.end();
	}
	typename map::const_iterator last_to(unsigned long index, unsigned long min, xa_mark_t filter) const
	{
		auto at = model.upper_bound(index);

		while (at != model.begin())
			if (has(--at, filter))
				return at->first >= min ? at : model.end();
		return model.end();
	}
	void put(unsigned long index, void *entry)
	{
		if (entry) {
			model[index].entry = entry;
			return;
		}
		model.erase(index);
		reader.gone(index);
	}

	unsigned long pick(std::uint32_t n) const
	{
		auto there = model.lower_bound(Indices::index(n));

		if (there == model.end())
			there = model.begin();
		return there == model.end() ? Indices::index(n) : there->first;
	}
	void *fresh() { return reinterpret_cast<void *>(next_value += 2); }

	/* ---- updates, by either face ---- */

	struct xarray *xa() { return entries.native_handle(); }

	template<class Call> static int caught(Call call)
	{
		try {
			return call();
		} catch (const std::bad_alloc &) {
			return -ENOMEM;
		}
	}

	/* Where an index is taken no memory is needed, nor to free it. */
	bool done(unsigned long index, const void *entry, int said, int expected)
	{
		SAME(said != -ENOMEM || (entry && !model.count(index)));
		return answer(said, expected);
	}

	void store(unsigned long index, void *entry, bool face)
	{
		void *old = this, *expected = entry_of(index);
		int said = face ? caught([&] { return old = entries.store(index, static_cast<char *>(entry)), 0; })
				: xa_store(xa(), index, entry, &old);

		if (done(index, entry, said, 0)) {
			SAME(old == expected);
			put(index, entry);
		} else {
			SAME(old == this);
		}
	}

	void insert(unsigned long index, void *entry, bool face)
	{
		int expected = model.count(index) ? -EBUSY : 0;
		int said = face ? caught([&] { return entries.insert(index, static_cast<char *>(entry)) ? 0 : -EBUSY; })
				: xa_insert(xa(), index, entry);

		if (answer(said, expected))
			model[index] = place{ entry, 0 };
	}

	void cmpxchg(unsigned long index, std::uint32_t b)
	{
		void *there = entry_of(index), *expected = b & 4 ? there : b & 8 ? nullptr : this, *entry = b % 16 < 12 ? fresh() : nullptr;
		char *face_expected = static_cast<char *>(expected);
		void *old = nullptr;
		int said;

		if (b & 2) {
			said = caught([&] {
				return entries.compare_exchange(index, face_expected, static_cast<char *>(entry)) ? 0 : -EBUSY;
			});
			old = face_expected;
		} else {
			said = Xarray::cmpxchg(xa(), index, expected, entry, &old);
		}
		if (said != -ENOMEM)
			SAME(old == there);
		if (done(index, entry, said, there == expected ? 0 : -EBUSY))
			put(index, entry);
	}

	void erase(unsigned long index)
	{
		SAME(Xarray::erase(xa(), index) == entry_of(index));
		put(index, nullptr);
	}

	void release(unsigned long index)
	{
		xa_release(xa(), index);
		if (!entry_of(index))
			model.erase(index);
	}

	/* Return the lowest free index from @min to @max; more than @max if there is none. */
	unsigned long lowest(unsigned long min, unsigned long max) const
	{
		for (auto at = model.lower_bound(min); min <= max; ++at, min++)
			if (at == model.end() || at->first != min)
				break;
		return min;
	}

	void given(std::uint32_t id, unsigned long expected, unsigned long max, int said, void *entry)
	{
		if (answer(said, expected > max ? -EBUSY : 0)) {
			SAME(id == expected);
			model[id] = place{ entry, 0 };
		} else {
			SAME(id == UINT32_MAX / 3);
			reached.full += said == -EBUSY;
		}
	}

	void alloc(std::uint32_t min, std::uint32_t max)
	{
		std::uint32_t id = UINT32_MAX / 3;
		void *entry = fresh();
		int said = xa_alloc(xa(), &id, entry, XA_LIMIT(min, max));

		given(id, lowest(min, max), max, said, entry);
	}

	void alloc_cyclic(std::uint32_t min, std::uint32_t max)
	{
		std::uint32_t id = UINT32_MAX / 3, before = cursor;
		unsigned long expected = lowest(cursor > min ? cursor : min, max);
		void *entry = fresh();
		int said = xa_alloc_cyclic(xa(), &id, entry, XA_LIMIT(min, max), &cursor);

		given(id, expected > max ? lowest(min, max) : expected, max, said, entry);
		SAME(cursor == (said ? before : id + 1));
	}

	/* ---- in order ---- */

	void find_up(unsigned long from, unsigned long max, xa_mark_t filter)
	{
		unsigned long index = from, behind = from;
		auto here = first_from(from, max, filter), next = from < ULONG_MAX ? first_from(from + 1, max, filter) : model.end();

		rcu_read_lock();
		void *found = Xarray::find(xa(), &index, max, filter), *after = xa_find_after(xa(), &behind, max, filter);
		rcu_read_unlock();
		SAME(found == (here == model.end() ? nullptr : here->second.entry));
		SAME(index == (here == model.end() ? from : here->first));
		SAME(after == (next == model.end() ? nullptr : next->second.entry));
		SAME(behind == (next == model.end() ? from : next->first));
	}

	void find_down(unsigned long from, unsigned long min, xa_mark_t filter)
	{
		unsigned long index = from, before = from;
		auto here = last_to(from, min, filter), previous = from ? last_to(from - 1, min, filter) : model.end();

		rcu_read_lock();
		void *found = xa_find_reverse(xa(), &index, min, filter), *back = xa_find_before(xa(), &before, min, filter);
		rcu_read_unlock();
		SAME(found == (here == model.end() ? nullptr : here->second.entry));
		SAME(index == (here == model.end() ? from : here->first));
		SAME(back == (previous == model.end() ? nullptr : previous->second.entry));
		SAME(before == (previous == model.end() ? from : previous->first));
	}

	void extract(unsigned long from, unsigned long max, unsigned n, xa_mark_t filter)
	{
		std::vector<void *> found(n + 1, this);
		unsigned nr = 0;

		rcu_read_lock();
		unsigned said = xa_extract(xa(), found.data(), from, max, n, filter);
		rcu_read_unlock();
		SAME(said <= n && found[said] == this);
		for (auto at = first_from(from, max, filter); at != model.end() && nr < n; nr++) {
			SAME(nr < said && found[nr] == at->second.entry);
			at = at->first < ULONG_MAX ? first_from(at->first + 1, max, filter) : model.end();
		}
		SAME(nr == said);
	}

	void compare_all(bool) override
	{
		std::vector<std::pair<unsigned long, void *>> up, down, there;
		unsigned long index;
		void *entry;

		rcu_read_lock();
		xa_for_each(xa(), index, entry)
			up.emplace_back(index, entry);
		index = ULONG_MAX;
		for (entry = xa_find_reverse(xa(), &index, 0, XA_PRESENT); entry; entry = Xarray::find_before(xa(), &index))
			down.emplace_back(index, entry);
		rcu_read_unlock();
		for (const auto &[at, what] : model) {
			compare_place(at, what);
			if (what.entry)
				there.emplace_back(at, what.entry);
		}
		SAME(up == there);
		SAME(std::equal(down.rbegin(), down.rend(), there.begin(), there.end()));
		for (xa_mark_t filter = 0; filter <= XA_PRESENT; filter++) {
			bool any = first_from(0, ULONG_MAX, filter) != model.end();

			rcu_read_lock();
			bool said = xa_marked(xa(), filter);
			rcu_read_unlock();
			SAME(said == any);
		}
	}

	void compare_place(unsigned long at, const place &what)
	{
		auto other = model.find(at + 64);
		unsigned marks = 0, marks_there = 0;

		rcu_read_lock();
		void *found = xa_load(xa(), at), *there = xa_load(xa(), at + 64);
		for (xa_mark_t mark = 0; mark <= XA_MARK_MAX; mark++) {
			marks |= static_cast<unsigned>(Xarray::get_mark(xa(), at, mark)) << mark;
			marks_there |= static_cast<unsigned>(Xarray::get_mark(xa(), at + 64, mark)) << mark;
		}
		rcu_read_unlock();
		SAME(found == what.entry && marks == what.marks);
		SAME(there == entry_of(at + 64) && marks_there == (other == model.end() ? 0 : other->second.marks));
	}

	/* ---- a reader: up and down in turn, over all and over those with a mark ---- */

	std::vector<unsigned long> begin_walk() override
	{
		std::vector<unsigned long> there;

		nr_walks++;
		walk_filter = nr_walks % 4 < 2 ? XA_PRESENT : XA_MARK_0;
		begun = false;
		for (auto at = model.begin(); at != model.end(); ++at)
			if (has(at, walk_filter))
				there.push_back(at->first);
		return there;
	}

	std::optional<unsigned long> next() override
	{
		bool down = nr_walks % 2;
		unsigned long index = begun ? at_index : down ? ULONG_MAX : 0;
		void *found = down ? (begun ? xa_find_before : xa_find_reverse)(xa(), &index, 0, walk_filter)
				   : (begun ? xa_find_after : xa_find)(xa(), &index, ULONG_MAX, walk_filter);

		if (!found)
			return std::nullopt;
		SAME(!begun || (down ? index < at_index : index > at_index));
		begun = true;
		return at_index = index;
	}

	quiesce::xarray<char> entries;
	map model;
	std::uintptr_t next_value = 0;
	std::uint32_t cursor = 0;
	unsigned nr_walks = 0;
	xa_mark_t walk_filter = XA_PRESENT;
	bool begun = false;
	unsigned long at_index = 0;
};

template<class Indices, class Xarray = right> properties::property of(const char *name)
{
	return properties::property_of<pair<Indices, Xarray>>(name, xarray_verbs,
							      [] { return std::string(reached.full ? "" : "no range was full"); });
}

} // namespace

int main()
{
	using properties::planted;

	return properties::run({ of<from_zero>("indices from 0"), of<to_the_end>("the last indices"), of<far_apart>("indices far apart"),
			       of<about_levels>("indices about the ends of levels"),
			       planted(of<from_zero, one_more>("an xarray that searches behind the end is found, by two operations"), 2),
			       planted(of<from_zero, not_down>("one that never comes down to 0 is found out, by one operation"), 1),
			       planted(of<from_zero, mixed_up>("one that mixes up marks is found out, by two operations"), 2),
			       planted(of<from_zero, uncompared>("one that does not compare is found out, by one operation"), 1),
			       planted(of<from_zero, sticky>("one that keeps what is marked is found out, by three operations"), 3) });
}
