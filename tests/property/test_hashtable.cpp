/* SPDX-License-Identifier: MIT */
/* test_hashtable.cpp - hashtable against std::multimap: contents, results, iteration while it changes, and failed allocations;
 * with the worst possible hashes. */
#include "container.hpp"

#include <quiesce/ds/hash.h>
#include <quiesce/ds/hashtable.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <unordered_set>

namespace {

using properties::reached;

enum verbs {
	INSERT = properties::NR_COMMON, UNIQUE, SET, REPLACE, REMOVE, REMOVE_KEY, ABSENT, LOOKUP, FILL, DRAIN, RESERVE, UPDATE, CLEAR,
	REMOVE_ALL, REMOVE_IF
};
const std::vector<properties::verb> table_verbs = {
	{ "insert", 6 }, { "insert_unique", 5 }, { "set", 5 },  { "replace", 4 }, { "remove", 5 },  { "remove_key", 4 },
	{ "absent", 2 }, { "lookup", 4 },        { "fill", 2 }, { "drain", 1 },   { "reserve", 1 },
	{ "update", 5 }, { "clear", 1 },         { "remove_all", 3 }, { "remove_if", 2 },
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
std::uint64_t four_hash(const void *key, std::uint64_t) { return (*static_cast<const std::uint64_t *>(key) & 3) * 0x4000000040000040u; }

const void *key_of(const void *o) { return &static_cast<const object *>(o)->key; }
bool equal(const void *o, const void *key) { return static_cast<const object *>(o)->key == *static_cast<const std::uint64_t *>(key); }

template<hash_fn hash> constexpr struct hashtable_type type = { hash, key_of, equal };

/* The planted fault is a type that takes different keys for equal. */
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

template<const struct hashtable_type &table_type, std::uint32_t keys> class pair : public properties::container<object *> {
public:
	pair() { SAME(hashtable_init(&table, &table_type) == 0); }
	~pair() override
	{
		reader.end();
		if (!destroyed) /* a difference was found before the table was destroyed */
			hashtable_destroy(&table, nullptr, nullptr);
		for (object *o : all)
			kfree_rcu(o, rcu);
	}

private:
	void perform(unsigned verb, std::uint32_t a, std::uint32_t b) override
	{
		std::uint64_t key = a % keys;

		switch (verb) {
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
			replace(key, b % keys);
			break;
		case REMOVE:
			remove(key, b);
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
			for (std::uint32_t i = 0; i <= b % 1024; i++)
				insert_unique((a + i) % keys);
			break;
		case DRAIN:
			for (std::uint32_t i = 0; i <= b % keys; i++)
				remove_key((a + i) % keys);
			break;
		case RESERVE:
			answer(hashtable_reserve(&table, a * 4), 0); /* large ones are mapped */
			break;
		case UPDATE:
			update(key, b);
			break;
		case CLEAR:
			if (b % 4 == 0)
				clear();
			break;
		case REMOVE_ALL:
			remove_all(key);
			break;
		case REMOVE_IF:
			remove_if(b);
			break;
		}
	}

	std::size_t size() const override { return model.size(); }

	void compare_all(bool last) override
	{
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
		SAME(properties::comes_to([this] { return hashtable_count(&table); }, model.size()));
		if (last)
			SAME(destroy() == expected);
	}

	/* Destroy the table, and return the objects that it drops. */
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

	/* Forget an object that was never published. */
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

	/* Remove an object from the model; readers may see it until they end. */
	void leave(object *gone)
	{
		auto [from, to] = model.equal_range(gone->key);
		auto there = std::find_if(from, to, [&](const auto &entry) { return entry.second == gone; });

		SAME(there != to);
		model.erase(there);
		reader.gone(gone);
		drop(gone);
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

	/* Update to another object, the same one, none, or one that has another key. */
	void update(std::uint64_t key, std::uint32_t how)
	{
		struct step {
			object *to, *before;
			bool same;
		};
		bool wrong = how % 8 == 0;
		object *fresh = how % 4 == 1 ? nullptr : make(wrong ? key + keys : key);
		step s{ fresh, nullptr, how % 4 == 2 };
		void *old = fresh;
		int said = hashtable_update(&table, &key, [](void *o, void *arg) -> void * {
			auto *to = static_cast<step *>(arg);

			to->before = static_cast<object *>(o);
			return to->same && o ? o : to->to;
		}, &s, &old);
		bool kept = s.same && s.before;

		SAME(s.before ? has(key, s.before) : model.count(key) == 0);
		if (wrong && !kept) {
			SAME(!old && (said == -EINVAL || !answer(said, 0)));
			forget(fresh);
			return;
		}
		if (!answer(said, 0)) {
			SAME(!s.before); /* only a new object, or the first array, needs memory */
			if (fresh)
				forget(fresh);
			return;
		}
		SAME(old == (kept ? nullptr : s.before));
		if (kept) {
			forget(fresh);
			return;
		}
		if (old)
			leave(s.before);
		if (fresh)
			model.emplace(key, fresh);
	}

	void clear()
	{
		std::vector<object *> dropped;

		hashtable_clear(&table, [](void *o, void *to) {
			static_cast<std::vector<object *> *>(to)->push_back(static_cast<object *>(o));
		}, &dropped);
		SAME(dropped.size() == model.size());
		for (object *o : dropped)
			leave(o);
		SAME(model.empty());
	}

	void remove_all(std::uint64_t key)
	{
		std::vector<object *> dropped;
		std::size_t nr = hashtable_remove_all(&table, &key, [](void *o, void *to) {
			static_cast<std::vector<object *> *>(to)->push_back(static_cast<object *>(o));
		}, &dropped);

		SAME(nr == dropped.size() && nr == model.count(key));
		for (object *o : dropped) {
			SAME(has(key, o));
			leave(o);
		}
	}

	/* Remove the objects of some keys. */
	void remove_if(std::uint32_t how)
	{
		struct choice {
			std::uint64_t factor;
			std::vector<object *> dropped;
			bool chooses(const object *o) const { return (o->key * factor >> 32 & 3) == 0; }
		} c{ how | 1u | std::uint64_t{ how } << 32, {} };
		std::size_t before = model.size(), stay = 0;
		std::size_t nr = hashtable_remove_if(&table, [](void *o, void *arg) {
			return static_cast<choice *>(arg)->chooses(static_cast<object *>(o));
		}, [](void *o, void *arg) { static_cast<choice *>(arg)->dropped.push_back(static_cast<object *>(o)); }, &c);

		for (object *o : c.dropped) {
			SAME(c.chooses(o));
			leave(o);
		}
		for (const auto &[key, o] : model)
			stay += !c.chooses(o);
		SAME(nr == c.dropped.size() && nr == before - model.size() && stay == model.size());
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

	/* Return an object that is not in the table, with a key that may be. */
	void absent(std::uint64_t key)
	{
		object *none = make(key);

		SAME(hashtable_remove(&table, none) == -ENOENT);
		forget(none);
	}

	/* Look up @key and those that follow at once; in a section. */
	void many(std::uint64_t key)
	{
		std::uint64_t wanted[40];
		const void *at_keys[40];
		void *found[40];
		std::size_t nr = 0;

		for (std::uint32_t i = 0; i < 40; i++) {
			wanted[i] = (key + i) % keys;
			at_keys[i] = &wanted[i];
		}
		std::size_t result = hashtable_lookup_many(&table, &table_type, at_keys, 40, found);
		for (std::uint32_t i = 0; i < 40; i++) {
			SAME(found[i] ? has(wanted[i], found[i]) : model.count(wanted[i]) == 0);
			nr += found[i] != nullptr;
		}
		SAME(result == nr);
	}

	void lookup(std::uint64_t key)
	{
		std::vector<const void *> found;
		struct hashtable_iter iter;
		void *each;

		rcu_read_lock();
		void *one = hashtable_lookup(&table, &table_type, &key);
		many(key);
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

	std::vector<object *> begin_walk() override
	{
		std::vector<object *> there;

		for (const auto &[key, o] : model)
			there.push_back(o);
		at = {};
		return there;
	}

	std::optional<object *> next() override
	{
		auto *o = static_cast<object *>(quiesce_hashtable_next(&table, &at));

		return o ? std::optional(o) : std::nullopt;
	}

	struct hashtable table;
	std::multimap<std::uint64_t, object *> model;
	std::unordered_set<object *> all; /* that are not free */
	bool destroyed = false;
	struct hashtable_iter at;
};

template<const struct hashtable_type &table_type, std::uint32_t keys> properties::property of(const char *name)
{
	auto p = properties::property_of<pair<table_type, keys>>(name, table_verbs, properties::hardly_grew);

	p.nr_cases = 25;
	return p;
}

} // namespace

int main()
{
	return properties::run({ of<type<good_hash>, 4096>("a good hash"), of<type<no_hash>, 4096>("no hash at all"),
			       of<type<constant_hash>, 64>("one hash for all"), of<type<four_hash>, 256>("four hashes"),
			       of<type<low_hash>, 1024>("hashes of 32 low bits"), of<type<high_hash>, 256>("hashes of 32 high bits"),
			       properties::planted(of<nearly, 64>("a table that mixes up keys is found out, by two operations"), 2) });
}
