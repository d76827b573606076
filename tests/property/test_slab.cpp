/* SPDX-License-Identifier: MIT */
/* test_slab.cpp - object caches against a map of the objects in use: no two overlap, each is aligned and keeps its contents, free
 * ones keep what the constructor made, and figures agree.
 */
#include "property.hpp"

#include <quiesce/rcu.h>
#include <quiesce/slab.h>

#include <algorithm>
#include <cstring>
#include <map>

namespace {

enum verbs { ALLOC, ZALLOC, ALLOC_ROW, FREE, FREE_ROW, KFREE, RETIRE, FREE_ALL, SHRINK };
const std::vector<properties::verb> slab_verbs = {
	{ "alloc", 8 }, { "zalloc", 2 }, { "alloc_row", 6 }, { "free", 8 },
	{ "free_row", 5 }, { "kfree", 3 }, { "retire", 1 }, { "free_all", 1 }, { "shrink", 2 },
};

struct {
	int returned;
} reached;

constexpr unsigned char made = 0xc5; /* each of the eight bytes that the constructor writes */

void construct(void *object)
{
	std::memset(object, made, 8);
}

/* ---- caches that are wrong ---- */

struct right {
	static constexpr bool is_right = true;
	static void *alloc(kmem_cache *cache) { return kmem_cache_alloc(cache); }
	static void free(kmem_cache *cache, void *object) { kmem_cache_free(cache, object); }
};
/* A fault: two objects are in use for one that is returned. */
struct two : right {
	static constexpr bool is_right = false;
	static void *alloc(kmem_cache *cache) { return kmem_cache_alloc(cache) ? kmem_cache_alloc(cache) : nullptr; }
};
/* A fault: an object is not freed. */
struct forgets : right {
	static constexpr bool is_right = false;
	static void free(kmem_cache *, void *) {}
};

/* ---- the cache and its model ---- */

template<std::size_t size, std::size_t align, unsigned flags, class Cache> class pair : public properties::subject {
	static constexpr bool constructed = flags & SLAB_TYPESAFE_BY_RCU;
	static constexpr std::size_t first = constructed ? 8 : 0; /* these bytes are the constructor's */

public:
	pair() { SAME(cache = kmem_cache_create("property", size, align, flags, constructed ? construct : nullptr)); }
	~pair() override
	{
		if (!Cache::is_right)
			return; /* what is in use is not known */
		for (auto &object : model)
			kmem_cache_free(cache, object.first);
		kmem_cache_destroy(cache);
	}

	void apply(const properties::op &o) override
	{
		switch (o.verb) {
		case ALLOC: added(Cache::alloc(cache)); break;
		case ZALLOC: zalloc(); break;
		case ALLOC_ROW: alloc_row(1 + o.a % (o.b % 4 ? 40 : 1500)); break;
		case FREE: free_one(o.a, Cache::free); break;
		case KFREE: free_one(o.a, [](kmem_cache *, void *object) { kfree(object); }); break;
		case RETIRE: retire(o.a % 20); break;
		case FREE_ROW: free_row(o.a, 1 + o.b % (o.b % 3 ? 40 : 1500), o.b % 5 != 0); break;
		case FREE_ALL: free_row(0, model.size(), true); break;
		case SHRINK: shrink(); break;
		default: break;
		}
	}

	void compare(bool last) override
	{
		kmem_cache_stats s;

		kmem_cache_get_stats(cache, &s);
		SAME(s.objects == model.size());
		SAME(s.bytes == s.slabs << 16 && s.objects + s.sheaved + s.free <= s.bytes / s.size && s.size >= size);
		if (last)
			for (auto &object : model)
				check(object);
	}

private:
	using used = std::pair<char *const, unsigned char>;

	void check(const used &o)
	{
		SAME(std::all_of(o.first + first, o.first + size, [&](char c) { return static_cast<unsigned char>(c) == o.second; }));
		SAME(std::all_of(o.first, o.first + first, [](char c) { return static_cast<unsigned char>(c) == made; }));
	}

	/* An allocation returned @fresh. */
	void added(void *fresh)
	{
		auto *begin = static_cast<char *>(fresh);

		SAME(begin);
		auto after = model.lower_bound(begin);

		SAME(reinterpret_cast<std::uintptr_t>(begin) % (align ? align : 8) == 0);
		SAME(after == model.end() || after->first >= begin + size);
		SAME(after == model.begin() || std::prev(after)->first + size <= begin);
		SAME(std::all_of(begin, begin + first, [](char c) { return static_cast<unsigned char>(c) == made; }));
		std::memset(begin + first, ++stamp, size - first);
		model.emplace(begin, stamp);
	}

	void zalloc()
	{
		if (constructed)
			return;
		auto *object = static_cast<char *>(kmem_cache_zalloc(cache));

		SAME(!object || std::all_of(object, object + size, [](char c) { return !c; }));
		added(object);
	}

	void alloc_row(std::size_t nr)
	{
		std::vector<void *> row(nr);
		std::size_t done = kmem_cache_alloc_bulk(cache, nr, row.data());

		SAME(done == nr);
		for (std::size_t i = 0; i < done; i++)
			added(row[i]);
	}

	/* Remove an object from the model; its contents must be those that were written. */
	char *removed(std::uint32_t n)
	{
		auto at = model.begin();

		std::advance(at, n % model.size());
		check(*at);
		char *object = at->first;
		model.erase(at);
		return object;
	}

	void free_one(std::uint32_t n, void (*release)(kmem_cache *, void *))
	{
		if (!model.empty())
			release(cache, removed(n));
	}

	void free_row(std::uint32_t n, std::size_t nr, bool named)
	{
		std::vector<void *> row;

		while (row.size() < nr && !model.empty())
			row.push_back(removed(n++));
		kmem_cache_free_bulk(named ? cache : nullptr, row.size(), row.data());
	}

	struct node {
		std::uint64_t made;
		rcu_head rcu;
	};

	void retire(std::size_t nr)
	{
		if (size < sizeof(node))
			return;
		for (std::size_t i = 0; i < nr && !model.empty(); i++) {
			auto *n = reinterpret_cast<node *>(removed(static_cast<std::uint32_t>(i * 7)));

			kfree_rcu(n, rcu);
		}
		rcu_barrier();
	}

	/* Memory without objects goes back. */
	void shrink()
	{
		kmem_cache_stats s;

		SAME(!kmem_cache_shrink(cache));
		kmem_cache_get_stats(cache, &s);
		SAME(!s.sheaved && s.slabs <= model.size());
		reached.returned += model.empty();
	}

	kmem_cache *cache;
	std::map<char *, unsigned char> model;
	unsigned char stamp = 0;
};

template<std::size_t size, std::size_t align, unsigned flags = 0, class Cache = right> properties::property of(const char *name)
{
	properties::property p{ name, slab_verbs, [] { return std::make_unique<pair<size, align, flags, Cache>>(); } };

	p.unreached = [] {
		std::string why = !reached.returned ? "no memory was returned" : "";

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

	return properties::run({ of<1, 0>("objects of a byte"), of<24, 0>("small objects"),
			       of<72, 64, SLAB_HWCACHE_ALIGN>("aligned objects"),
			       of<40, 8, SLAB_TYPESAFE_BY_RCU>("type-safe objects"),
			       of<1000, 8, SLAB_TYPESAFE_BY_RCU>("large type-safe objects"), of<9000, 4096>("objects of pages"),
			       planted(of<24, 0, 0, two>("a cache that allocates two is found out, by one operation"), 1),
			       planted(of<24, 0, 0, forgets>("a cache that forgets a free is found out, by two operations"), 2) });
}
