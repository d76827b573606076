/* SPDX-License-Identifier: MIT */
/* test_hashtable.cpp - hashtable against std::multimap: contents, answers, iteration while it changes, and want of memory;
 * with hashes that are as bad as they can be. */
#include "property.hpp"
#include "refuse.hpp"
#include "walk.hpp"

#include <quiesce/ds/hash.h>
#include <quiesce/ds/hashtable.h>
#include <quiesce/rcu.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <sched.h>
#include <unordered_set>

namespace {

enum verbs { INSERT, UNIQUE, SET, REPLACE, REMOVE, REMOVE_KEY, ABSENT, LOOKUP, FILL, DRAIN, RESERVE, REFUSE, SETTLE, WALK, STEP };
const std::vector<properties::verb> table_verbs = {
	{ "insert", 6 }, { "insert_unique", 5 }, { "set", 5 },   { "replace", 4 }, { "remove", 5 },
	{ "remove_key", 4 }, { "absent", 2 },    { "lookup", 4 }, { "fill", 2 },    { "drain", 1 },
	{ "reserve", 1 },    { "refuse", 4 },    { "settle", 2 }, { "walk", 2 },    { "step", 5 },
};

struct object {
	std::uint64_t key;
	struct rcu_head rcu;
};

/* ---- hashes ---- */

using hash_fn = std::uint64_t (*)(const void *key, std::uint64_t seed);

std::uint64_t good_hash(const void *key, std::uint64_t seed) { return quiesce_hash_bytes(key, sizeof(std::uint64_t), seed); }
std::uint64_t constant_hash(const void *, std::uint64_t) { return 0; }
std::uint64_t no_hash(const void *key, std::uint64_t) { return *static_cast<const std::uint64_t *>(key); }
/* One bucket, different tags; and the other way round, whichever half a table takes them from. */
std::uint64_t low_hash(const void *key, std::uint64_t seed) { return good_hash(key, seed) >> 32; }
std::uint64_t high_hash(const void *key, std::uint64_t seed) { return good_hash(key, seed) << 32; }
std::uint64_t four_hash(const void *key, std::uint64_t) { return (*static_cast<const std::uint64_t *>(key) & 3) * 0x4000000040000001u; }

const void *key_of(const void *o) { return &static_cast<const object *>(o)->key; }
bool equal(const void *o, const void *key) { return static_cast<const object *>(o)->key == *static_cast<const std::uint64_t *>(key); }

template<hash_fn hash> constexpr struct hashtable_type type = { hash, key_of, equal };

/* A type that takes keys for equal that are not. */
bool nearly_equal(const void *o, const void *key)
{
	return (static_cast<const object *>(o)->key | 1) == (*static_cast<const std::uint64_t *>(key) | 1);
}
std::uint64_t nearly_hash(const void *key, std::uint64_t seed)
{
	std::uint64_t even = *static_cast<const std::uint64_t *>(key) | 1;

	return good_hash(&even, seed);
}
constexpr struct hashtable_type nearly = { nearly_hash, key_of, nearly_equal };

/* ---- the table and its model ---- */

struct {
	int refused, steps;
	std::uint64_t resizes;
} reached;

template<const struct hashtable_type &table_type, std::uint32_t keys> class pair : public properties::subject {
public:
	pair() { SAME(hashtable_init(&table, &table_type) == 0); }
	~pair() override
	{
		reader.end();
		if (!destroyed) /* it was found to be wrong */
			hashtable_destroy(&table, nullptr, nullptr);
		for (object *o : all)
			kfree_rcu(o, rcu);
	}

	void apply(const properties::op &o) override
	{
		std::uint64_t key = o.a % keys;

		switch (o.verb) {
		case INSERT:
			insert(key);
			break;
		case UNIQUE:
			insert_unique(key);
			break;
		case SET:
			set(key);
			break;
		case REPLACE:
			replace(key, o.b % keys);
			break;
		case REMOVE:
			remove(key, o.b);
			break;
		case REMOVE_KEY:
			remove_key(key);
			break;
		case ABSENT:
			absent(key);
			break;
		case LOOKUP:
			lookup(key);
			break;
		case FILL:
			for (std::uint32_t i = 0; i <= o.b % 1024; i++)
				insert_unique((o.a + i) % keys);
			break;
		case DRAIN:
			for (std::uint32_t i = 0; i <= o.b % keys; i++)
				remove_key((o.a + i) % keys);
			break;
		case RESERVE:
			answer(hashtable_reserve(&table, o.a * 4), 0); /* large ones are mapped */
			break;
		case REFUSE:
			refuse::arm(o.a % 8, o.b & 1);
			break;
		case SETTLE: /* takes long */
			if (o.b % 16 == 0) {
				reader.end();
				rcu_barrier();
			}
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
		if (!last && model.size() > 40 && nr_compared++ % 16)
			return;
		std::vector<object *> found, expected;
		struct hashtable_iter iter;
		void *each;

		rcu_read_lock();
		hashtable_for_each(each, &iter, &table)
			found.push_back(static_cast<object *>(each));
		rcu_read_unlock();
		for (const auto &[key, o] : model)
			expected.push_back(o);
		std::sort(found.begin(), found.end());
		std::sort(expected.begin(), expected.end());
		SAME(found == expected);
		for (auto i = model.begin(); i != model.end(); i = model.upper_bound(i->first))
			lookup(i->first);
		SAME(count_is(model.size()));
		if (last)
			SAME(destroy() == expected);
	}

private:
	/* What is dropped. */
	std::vector<object *> destroy()
	{
		struct quiesce_table_stats stats;
		std::vector<object *> dropped;

		hashtable_stats(&table, &stats);
		reached.resizes += stats.resizes;
		destroyed = true;
		hashtable_destroy(&table, [](void *o, void *to) {
			static_cast<std::vector<object *> *>(to)->push_back(static_cast<object *>(o));
		}, &dropped);
		std::sort(dropped.begin(), dropped.end());
		return dropped;
	}

	/* Readers may be there. */
	void drop(object *gone)
	{
		all.erase(gone);
		kfree_rcu(gone, rcu);
	}

	/* Nobody has seen it. */
	void forget(object *fresh)
	{
		all.erase(fresh);
		std::free(fresh);
	}

	object *make(std::uint64_t key)
	{
		auto *fresh = static_cast<object *>(refuse::allocate(sizeof(object)));

		fresh->key = key;
		all.insert(fresh);
		return fresh;
	}

	/* What is in the model, leaves it; readers may see it until they end. */
	void leave(object *gone)
	{
		auto [from, to] = model.equal_range(gone->key);
		auto there = std::find_if(from, to, [&](const auto &entry) { return entry.second == gone; });

		SAME(there != to);
		model.erase(there);
		reader.gone(gone);
		drop(gone);
	}

	/* A bucket that the library moves just now may be counted twice. */
	bool count_is(std::size_t expected) const
	{
		int tries = 100000;

		while (hashtable_count(&table) != expected && --tries)
			sched_yield();
		return tries > 0;
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
		return said == 0;
	}

	bool added(object *fresh, int said, int expected)
	{
		bool done = answer(said, expected);

		if (done)
			model.emplace(fresh->key, fresh);
		else
			forget(fresh);
		return done;
	}

	void insert(std::uint64_t key)
	{
		object *fresh = make(key);

		added(fresh, hashtable_insert(&table, fresh), 0);
	}

	bool has(std::uint64_t key, const void *o) const
	{
		auto [from, to] = model.equal_range(key);

		return std::any_of(from, to, [&](const auto &entry) { return entry.second == o; });
	}

	void insert_unique(std::uint64_t key)
	{
		object *fresh = make(key);
		void *existing = nullptr;
		bool is_there = model.count(key) > 0;
		int said = hashtable_insert_unique(&table, fresh, &existing);

		if (!added(fresh, said, is_there ? -EEXIST : 0) && said == -EEXIST)
			SAME(has(key, existing));
	}

	void set(std::uint64_t key)
	{
		object *fresh = make(key);
		void *old = nullptr;
		bool is_there = model.count(key) > 0;

		if (!added(fresh, hashtable_set(&table, fresh, &old), 0)) {
			SAME(!is_there); /* to replace needs no memory */
			return;
		}
		SAME(is_there == (old != nullptr));
		if (old) {
			SAME(old != fresh && has(key, old));
			leave(static_cast<object *>(old));
		}
	}

	object *some(std::uint64_t key, std::uint32_t n)
	{
		auto [from, to] = model.equal_range(key);

		if (from != to)
			std::advance(from, n % static_cast<std::uint32_t>(std::distance(from, to)));
		return from == to ? nullptr : from->second;
	}

	void replace(std::uint64_t key, std::uint32_t other)
	{
		object *old = some(key, other), *fresh = make(other % 8 ? key : other);

		if (!old) {
			object *none = make(fresh->key);

			SAME(hashtable_replace(&table, none, fresh) == -ENOENT);
			forget(none);
			forget(fresh);
		} else if (fresh->key != key) {
			SAME(hashtable_replace(&table, old, fresh) == -EINVAL);
			forget(fresh);
		} else {
			SAME(hashtable_replace(&table, old, fresh) == 0);
			leave(old);
			model.emplace(key, fresh);
		}
	}

	void remove(std::uint64_t key, std::uint32_t n)
	{
		if (object *gone = some(key, n)) {
			SAME(hashtable_remove(&table, gone) == 0);
			leave(gone);
		}
	}

	void remove_key(std::uint64_t key)
	{
		void *gone = hashtable_remove_key(&table, &key);

		SAME((gone != nullptr) == (model.count(key) > 0));
		if (gone) {
			SAME(has(key, gone));
			leave(static_cast<object *>(gone));
		}
	}

	/* An object with a key that may be there, but not itself. */
	void absent(std::uint64_t key)
	{
		object *none = make(key);

		SAME(hashtable_remove(&table, none) == -ENOENT);
		forget(none);
	}

	void lookup(std::uint64_t key)
	{
		std::vector<const void *> found;
		struct hashtable_iter iter;
		void *each;

		rcu_read_lock();
		void *one = hashtable_lookup(&table, &table_type, &key);
		hashtable_for_each_match(each, &iter, &table, &key)
			found.push_back(each);
		rcu_read_unlock();
		SAME(one ? has(key, one) : model.count(key) == 0);
		std::sort(found.begin(), found.end());
		SAME(std::unique(found.begin(), found.end()) == found.end());
		SAME(found.size() == model.count(key));
		for (const void *o : found)
			SAME(has(key, o));
	}

	void begin_walk()
	{
		std::vector<object *> there;

		for (const auto &[key, o] : model)
			there.push_back(o);
		reader.begin(there);
		at = {};
	}

	void step()
	{
		auto *o = static_cast<object *>(quiesce_hashtable_next(&table, &at));

		reached.steps++;
		if (o)
			reader.see(o);
		else
			reader.reached_end();
	}

	struct hashtable table;
	std::multimap<std::uint64_t, object *> model;
	std::unordered_set<object *> all; /* that are not free */
	unsigned nr_compared = 0;
	bool destroyed = false;
	properties::walk<object *> reader;
	struct hashtable_iter at;
};

template<const struct hashtable_type &table_type, std::uint32_t keys> properties::property of(const char *name)
{
	properties::property p{ name, table_verbs, [] { return std::make_unique<pair<table_type, keys>>(); } };

	p.nr_cases = 25;
	p.unreached = [] {
		std::string why;

		if (!reached.refused || !reached.steps || reached.resizes < 10)
			why = "no allocation was refused, no reader moved, or tables hardly grew";
		if (why.empty())
			reached = {};
		return why;
	};
	return p;
}

} // namespace

int main()
{
	properties::property wrong = of<nearly, 64>("a table that mixes up keys is found out, by two operations");

	wrong.planted = 2;
	return properties::run({ of<type<good_hash>, 4096>("a good hash"), of<type<no_hash>, 4096>("no hash at all"),
			       of<type<constant_hash>, 64>("one hash for all"), of<type<four_hash>, 256>("four hashes"),
			       of<type<low_hash>, 1024>("hashes of 32 low bits"), of<type<high_hash>, 256>("hashes of 32 high bits"),
			       wrong });
}
