/* SPDX-License-Identifier: MIT */
/* test_unordered_map.cpp - rcu_unordered_map of strings against std::map: contents, results, iteration while it changes, and failed
 * allocations, of nodes as of the table. */
#include "container.hpp"

#include <quiesce/ds/unordered_map.hpp>

#include <map>
#include <new>

namespace {

using properties::reached;

enum verbs { INSERT = properties::NR_COMMON, ASSIGN, UPDATE, ERASE, LOOKUP, FILL, DRAIN, RESERVE, ERASE_IF, CLEAR };
const std::vector<properties::verb> map_verbs = {
	{ "insert", 8 }, { "assign", 5 }, { "update", 5 },  { "erase", 7 },    { "lookup", 4 },
	{ "fill", 2 },   { "drain", 1 },  { "reserve", 1 }, { "erase_if", 2 }, { "clear", 1 },
};

struct good : quiesce::rcu_hash {
	static constexpr bool forgets = false;
};
/* One bucket for all keys. */
struct constant {
	static constexpr bool forgets = false;
	std::uint64_t operator()(std::string_view, std::uint64_t) const noexcept { return 0; }
};
/* A fault: the erasure of one key removes another one, too. */
struct forgetful : quiesce::rcu_hash {
	static constexpr bool forgets = true;
};

/* Keys are short, and so in the string itself, or long. */
std::string key_of(std::uint32_t n)
{
	return n % 3 ? std::to_string(n) : "a key that has memory of its own: " + std::to_string(n);
}

template<class Hash, std::uint32_t keys> class pair : public properties::container<std::string> {
	using map_type = quiesce::rcu_unordered_map<std::string, std::string, Hash>;

public:
	~pair() override { reader.end(); }

private:
	void perform(unsigned verb, std::uint32_t a, std::uint32_t b) override
	{
		std::string key = key_of(a % keys);

		switch (verb) {
		case INSERT:
			insert(key, b);
			break;
		case ASSIGN:
			assign(key, b);
			break;
		case UPDATE:
			update(key, b);
			break;
		case ERASE:
			erase(key);
			break;
		case LOOKUP:
			lookup(key);
			break;
		case FILL:
			for (std::uint32_t i = 0; i <= b % 512; i++)
				insert(key_of((a + i) % keys), b);
			break;
		case DRAIN:
			for (std::uint32_t i = 0; i <= b % keys; i++)
				erase(key_of((a + i) % keys));
			break;
		case RESERVE:
			answer(-static_cast<int>(map.try_reserve(a % 4096)), 0);
			break;
		case ERASE_IF:
			erase_if(b);
			break;
		case CLEAR:
			if (b % 4 == 0)
				clear();
			break;
		}
	}

	std::size_t size() const override { return model.size(); }

	void compare_all(bool last) override
	{
		std::map<std::string, std::string> found;

		map.for_each([&](const std::string &key, const std::string &value) { SAME(found.emplace(key, value).second); });
		SAME(found == model);
		SAME(properties::comes_to([this] { return map.size(); }, model.size()));
		if (last) {
			struct quiesce_table_stats stats;

			hashtable_stats(map.native_handle(), &stats);
			reached.resizes += stats.resizes;
		}
	}

	/* Call @change, which returns whether it succeeded; none if memory was short. */
	template<class F> std::optional<bool> attempt(F change)
	{
		try {
			return change();
		} catch (const std::bad_alloc &) {
			answer(-ENOMEM, 0);
			return std::nullopt;
		}
	}

	void insert(const std::string &key, std::uint32_t n)
	{
		bool is_there = model.count(key) > 0;
		std::string value = std::to_string(n);
		auto done = attempt([&] { return n % 2 ? map.insert(key, value) : map.try_emplace(key, value); });

		if (!done)
			return;
		SAME(*done == !is_there);
		if (*done) {
			reader.added(key);
			model.emplace(key, value);
		}
	}

	void assign(const std::string &key, std::uint32_t n)
	{
		bool is_there = model.count(key) > 0;
		std::string value = std::to_string(n);
		auto done = attempt([&] { return map.insert_or_assign(key, value); });

		if (!done)
			return;
		SAME(*done == !is_there);
		if (*done)
			reader.added(key);
		model[key] = value;
	}

	void update(const std::string &key, std::uint32_t n)
	{
		auto there = model.find(key);
		auto done = attempt([&] {
			try {
				return map.update(std::string_view(key), [&](std::string &value) {
					value = std::to_string(n);
					if (n % 8 == 0)
						throw n;
				});
			} catch (std::uint32_t) {
				SAME(n % 8 == 0 && there != model.end());
				return false;
			}
		});

		if (!done || (n % 8 == 0 && there != model.end()))
			return;
		SAME(*done == (there != model.end()));
		if (*done)
			there->second = std::to_string(n);
	}

	void erase(const std::string &key)
	{
		bool is_there = model.count(key) > 0;

		if (Hash::forgets && key == key_of(7))
			map.erase(key_of(5));
		SAME(map.erase(key.c_str()) == is_there);
		reader.gone(key);
		model.erase(key);
	}

	void erase_if(std::uint32_t n)
	{
		auto chosen = [n](const std::string &key, const std::string &) { return (key.back() + n) % 4 == 0; };
		std::size_t before = model.size(), nr = map.erase_if(chosen);

		for (auto entry = model.begin(); entry != model.end();)
			if (chosen(entry->first, entry->second)) {
				reader.gone(entry->first);
				entry = model.erase(entry);
			} else {
				++entry;
			}
		SAME(nr == before - model.size());
	}

	void clear()
	{
		map.clear();
		for (const auto &[key, value] : model)
			reader.gone(key);
		model.clear();
	}

	void lookup(const std::string &key)
	{
		auto there = model.find(key);
		std::optional<std::string> copy = map.get(key), seen;

		SAME(map.visit(key.c_str(), [&](const std::string &value) { seen = value; }) == (there != model.end()));
		SAME(copy == seen && (there == model.end() ? !copy : copy == there->second));
		rcu_read_lock();
		const std::string *value = map.find(std::string_view(key));
		SAME(there == model.end() ? !value : value && *value == there->second);
		rcu_read_unlock();
	}

	std::vector<std::string> begin_walk() override
	{
		std::vector<std::string> there;

		for (const auto &[key, value] : model)
			there.push_back(key);
		at = {};
		return there;
	}

	std::optional<std::string> next() override
	{
		void *node = quiesce_hashtable_next(map.native_handle(), &at);

		return node ? std::optional(quiesce::detail::map_node<std::string, std::string>::in(node)->first) : std::nullopt;
	}

	map_type map;
	std::map<std::string, std::string> model;
	struct hashtable_iter at;
};

template<class Hash, std::uint32_t keys> properties::property of(const char *name, std::string (*lacking)())
{
	auto p = properties::property_of<pair<Hash, keys>>(name, map_verbs, lacking);

	p.nr_cases = 50;
	return p;
}

} // namespace

int main()
{
	return properties::run({ of<good, 1024>("strings", properties::hardly_grew),
			       of<constant, 48>("strings with one hash", [] { return std::string(); }),
			       properties::planted(of<forgetful, 64>("a map that forgets a key is found out, by two operations",
								     properties::hardly_grew), 2) });
}
