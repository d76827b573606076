/* SPDX-License-Identifier: MIT */
/* test_hashmap.cpp - hashmap against std::map: contents, results, iteration while it changes, and failed allocations. */
#include "container.hpp"

#include <quiesce/ds/hash.h>
#include <quiesce/ds/hashmap.h>

#include <map>

namespace {

using properties::reached;

enum verbs { INSERT = properties::NR_COMMON, SET, REPLACE, REMOVE, LOOKUP, FILL, DRAIN, RESERVE, UPDATE, CLEAR, REMOVE_IF };
const std::vector<properties::verb> map_verbs = {
	{ "insert", 8 }, { "set", 5 }, { "replace", 4 }, { "remove", 7 }, { "lookup", 4 }, { "fill", 2 }, { "drain", 1 }, { "reserve", 1 },
	{ "update", 5 }, { "clear", 1 },  { "remove_if", 2 },
};

constexpr std::uint64_t SEED = 42;

/* ---- keys that are hard for the table ---- */

std::uint64_t any_key(std::uint32_t n)
{
	return n == 0 ? 0 : n == 1 ? ~std::uint64_t{ 0 } : n % 2 ? n : n * 0x9e3779b97f4a7c15u;
}

/* Keys whose hashes have the same bits where @mask has ones: one bucket, or one tag, until a table is very large. */
template<std::uint64_t mask> std::uint64_t colliding_key(std::uint32_t n)
{
	static const std::vector<std::uint64_t> keys = [] {
		std::vector<std::uint64_t> found;

		for (std::uint64_t key = 0; found.size() < 512; key++)
			if ((quiesce_hash_u64(key, SEED) & mask) == (0x5555555555555555u & mask))
				found.push_back(key);
		return found;
	}();

	return keys[n % keys.size()];
}
constexpr std::uint64_t LOW = 0xfff << 6, HIGH = std::uint64_t{ 0xfff } << 52;

/* ---- maps that are wrong ---- */

struct right {
	static int insert(struct hashmap *map, std::uint64_t key, std::uint64_t value, std::uint64_t *ret_existing)
	{
		return hashmap_insert(map, key, value, ret_existing);
	}
	static std::uint64_t remove(struct hashmap *map, std::uint64_t key) { return hashmap_remove(map, key); }
};
/* A fault: returns -ENOMEM, and has inserted the key. */
struct lies : right {
	static int insert(struct hashmap *map, std::uint64_t key, std::uint64_t value, std::uint64_t *ret_existing)
	{
		int r = hashmap_insert(map, key, value, ret_existing);

		return r == 0 && key == any_key(3) ? -ENOMEM : r;
	}
};
/* A fault: loses another key when a large one is removed. */
struct forgets : right {
	static std::uint64_t remove(struct hashmap *map, std::uint64_t key)
	{
		if (key == any_key(7))
			hashmap_remove(map, any_key(5));
		return hashmap_remove(map, key);
	}
};

/* ---- the map and its model ---- */

template<std::uint64_t (*key_of)(std::uint32_t), class Map> class pair : public properties::container<std::uint64_t> {
public:
	pair() { hashmap_init_seeded(&map, SEED); }
	~pair() override
	{
		struct quiesce_table_stats stats;

		hashmap_stats(&map, &stats);
		reached.resizes += stats.resizes;
		reader.end();
		hashmap_destroy(&map);
	}

private:
	void perform(unsigned verb, std::uint32_t a, std::uint32_t b) override
	{
		std::uint64_t key = key_of(a);

		switch (verb) {
		case INSERT:
			insert(key);
			break;
		case SET:
			set(key);
			break;
		case REPLACE:
			replace(key, b);
			break;
		case REMOVE:
			remove(key);
			break;
		case LOOKUP:
			lookup(key);
			break;
		case FILL:
			for (std::uint32_t i = 0; i <= b % 1024; i++)
				insert(key_of(a + i));
			break;
		case DRAIN:
			for (std::uint32_t i = 0; i <= b; i++)
				remove(key_of(a + i));
			break;
		case RESERVE:
			answer(hashmap_reserve(&map, a), 0);
			break;
		case UPDATE:
			update(key, b);
			break;
		case CLEAR:
			if (b % 4 == 0)
				clear();
			break;
		case REMOVE_IF:
			remove_if(b);
			break;
		}
	}

	std::size_t size() const override { return model.size(); }

	void compare_all(bool) override
	{
		std::map<std::uint64_t, std::uint64_t> found;
		struct hashmap_iter iter;
		std::uint64_t key, value;
		bool twice = false;

		rcu_read_lock();
		hashmap_for_each(key, value, &iter, &map)
			twice |= !found.emplace(key, value).second;
		rcu_read_unlock();
		SAME(!twice);
		SAME(found == model);
		for (const auto &[k, v] : model)
			lookup(k);
		SAME(properties::comes_to([this] { return hashmap_count(&map); }, model.size()));
	}

	void insert(std::uint64_t key)
	{
		std::uint64_t value = ++next_value, existing = 0;
		auto there = model.find(key);
		int said = Map::insert(&map, key, value, &existing);

		if (answer(said, there == model.end() ? 0 : -EEXIST)) {
			model[key] = value;
			reader.added(key);
		} else if (said == -EEXIST)
			SAME(existing == there->second);
	}

	void set(std::uint64_t key)
	{
		std::uint64_t value = ++next_value, old = 0;
		auto there = model.find(key);

		if (answer(hashmap_set(&map, key, value, &old), 0)) {
			SAME(old == (there == model.end() ? 0 : there->second));
			if (!old)
				reader.added(key);
			model[key] = value;
		} else {
			SAME(there == model.end()); /* to replace needs no memory */
		}
	}

	void replace(std::uint64_t key, std::uint32_t how)
	{
		std::uint64_t value = ++next_value;
		auto there = model.find(key);
		std::uint64_t old = there == model.end() || how % 4 == 0 ? value + 1 : there->second;
		bool is_there = there != model.end() && there->second == old;

		SAME(hashmap_replace(&map, key, old, value) == (is_there ? 0 : -ENOENT));
		if (is_there)
			there->second = value;
	}

	/* Update to another value, or to none. */
	void update(std::uint64_t key, std::uint32_t how)
	{
		auto there = model.find(key);
		std::uint64_t before = there == model.end() ? 0 : there->second, old = 0;
		std::pair<std::uint64_t, std::uint64_t> step(how % 4 ? ++next_value : 0, 0);
		int said = hashmap_update(&map, key, [](std::uint64_t value, void *arg) {
			auto *to = static_cast<std::pair<std::uint64_t, std::uint64_t> *>(arg);

			to->second = value;
			return to->first;
		}, &step, &old);

		SAME(step.second == before);
		if (!answer(said, 0)) {
			SAME(!before); /* only a new key, or the first array, needs memory */
			return;
		}
		SAME(old == before);
		if (step.first && !before)
			reader.added(key);
		if (step.first)
			model[key] = step.first;
		else if (before)
			model.erase(there);
		if (!step.first)
			reader.gone(key);
	}

	void clear()
	{
		hashmap_clear(&map);
		for (const auto &[key, value] : model)
			reader.gone(key);
		model.clear();
	}

	/* Remove some keys. */
	void remove_if(std::uint32_t how)
	{
		struct choice {
			std::uint64_t factor;
			std::size_t judged;
			bool chooses(std::uint64_t key) const { return (key * factor >> 32 & 3) == 0; }
		} c{ how | 1u | std::uint64_t{ how } << 32, 0 };
		std::size_t before = model.size();
		std::size_t nr = hashmap_remove_if(&map, [](std::uint64_t key, std::uint64_t value, void *arg) {
			auto *choice = static_cast<struct choice *>(arg);

			choice->judged++;
			return value && choice->chooses(key);
		}, &c);

		SAME(c.judged == before);
		for (auto entry = model.begin(); entry != model.end();)
			if (c.chooses(entry->first)) {
				reader.gone(entry->first);
				entry = model.erase(entry);
			} else {
				++entry;
			}
		SAME(nr == before - model.size());
	}

	void remove(std::uint64_t key)
	{
		auto there = model.find(key);

		SAME(Map::remove(&map, key) == (there == model.end() ? 0 : there->second));
		if (there != model.end())
			model.erase(there);
		reader.gone(key);
	}

	void lookup(std::uint64_t key)
	{
		auto there = model.find(key);

		rcu_read_lock();
		std::uint64_t found = hashmap_lookup(&map, key);
		rcu_read_unlock();
		SAME(found == (there == model.end() ? 0 : there->second));
		many(key);
	}

	/* Look up @key and those that follow at once. */
	void many(std::uint64_t key)
	{
		std::uint64_t wanted[40], found[40];
		std::size_t nr = 0, result;

		for (std::uint32_t i = 0; i < 40; i++)
			wanted[i] = key + i;
		rcu_read_lock();
		result = hashmap_lookup_many(&map, wanted, 40, found);
		rcu_read_unlock();
		for (std::uint32_t i = 0; i < 40; i++) {
			auto there = model.find(wanted[i]);

			SAME(found[i] == (there == model.end() ? 0 : there->second));
			nr += found[i] != 0;
		}
		SAME(result == nr);
	}

	std::vector<std::uint64_t> begin_walk() override
	{
		std::vector<std::uint64_t> keys;

		for (const auto &[key, value] : model)
			keys.push_back(key);
		at = {};
		return keys;
	}

	std::optional<std::uint64_t> next() override
	{
		std::uint64_t key, value;

		return quiesce_hashmap_next(&map, &at, &key, &value) ? std::optional(key) : std::nullopt;
	}

	struct hashmap map;
	std::map<std::uint64_t, std::uint64_t> model;
	std::uint64_t next_value = 0;
	struct hashmap_iter at;
};

template<std::uint64_t (*key_of)(std::uint32_t), class Map = right> properties::property of(const char *name)
{
	auto p = properties::property_of<pair<key_of, Map>>(name, map_verbs, properties::hardly_grew);

	p.nr_cases = 25;
	return p;
}

} // namespace

int main()
{
	using properties::planted;

	return properties::run({ of<any_key>("any keys"), of<colliding_key<LOW>>("keys whose hashes agree in their low bits"),
			       of<colliding_key<HIGH>>("keys whose hashes agree in their high bits"),
			       planted(of<any_key, lies>("a map that lies about memory is found out, by one operation"), 1),
			       planted(of<any_key, forgets>("a map that forgets a key is found out, by two operations"), 2) });
}
