/* SPDX-License-Identifier: MIT */
/* table.hpp - what the service looks up in: an immutable table, in one block of memory, that is built from the text of a file.
 *
 * Two kinds, told apart by the text:
 *	suffixes	the public suffix list: how much of a host name was registered as one?  An open hash of its rules.
 *	ranges		addresses "first,last,country": an array, to be searched by halves.
 *
 * A table never changes, so readers need nothing but that it stays: how they get that is reload.cpp's subject.  One block means
 * that one free() ends it, that it can be told from a dead one by one canary, and that a lookup follows no pointers.
 */
#ifndef RELOAD_TABLE_HPP
#define RELOAD_TABLE_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <quiesce/hazptr.hpp>

#include "case.h"

namespace reload {

class table;

/* Every variant deletes tables by this. */
struct bury {
	static inline bool with_canary; /* in a --check: the dead stay readable for a while */
	void operator()(table *gone) const noexcept;
};

/* A query is of one kind or the other. */
struct query {
	std::string_view name;
	uint32_t address;
};

/* The base is what hazard pointers ask for, to protect and retire; the other variants have no use for it. */
class alignas(64) table : public quiesce::hazard_pointer_obj_base<table, bury> {
public:
	/* std::runtime_error: @text is neither of both; std::bad_alloc. */
	static table *parse(std::string_view text);

	/* Bytes at the end of the name that are its registrable domain, 0: it has none; or the country, 0: unknown. */
	uint32_t find(const query &q) const noexcept { return nr_ranges ? country(q.address) : registrable(q.name); }

	/* Tables that are there, and the most that were since forget_most(). */
	static uint64_t alive() noexcept;
	static uint64_t most_alive() noexcept;
	static void forget_most() noexcept;

	struct canary canary;

private:
	/* Rules for the names that end in a text are of these kinds. */
	enum kind : uint8_t { RULE = 1, WILDCARD = 2, EXCEPTION = 4 };
	struct slot {
		uint32_t tag;  /* part of the hash */
		uint32_t text; /* where its rule is in texts(): kinds, length, characters; 0: the slot is free */
	};
	struct end {
		uint32_t last;
		uint32_t country;
	};
	/* A rule has this form after it was parsed. */
	struct rule {
		std::string_view text;
		kind what;
	};
	struct range {
		uint32_t first;
		end to;
	};
	static constexpr uint32_t TEXT = 2; /* bytes before the characters */
	static constexpr uint64_t HASH_OF_NOTHING = 0xcbf29ce484222325;

	uint32_t mask = 0;      /* slots - 1 */
	uint32_t deepest = 0;   /* labels of the longest rule */
	uint32_t nr_ranges = 0; /* 0: these are suffixes */

	table() noexcept;

	static table *create(size_t payload);
	static table *of_rules(const std::vector<rule> &rules);
	static table *of_ranges(const std::vector<range> &ranges);
	void add(const rule &r, uint32_t *ret_used) noexcept;

	/* Slots and texts, or first addresses and the rest of the ranges, follow the table in memory. */
	template<class T> T *at(size_t offset) noexcept { return reinterpret_cast<T *>(reinterpret_cast<char *>(this + 1) + offset); }
	template<class T> const T *at(size_t offset) const noexcept { return const_cast<table *>(this)->at<T>(offset); }
	slot *slots() noexcept { return at<slot>(0); }
	const uint8_t *texts() const noexcept { return at<uint8_t>((size_t(mask) + 1) * sizeof(slot)); }
	uint8_t *texts() noexcept { return const_cast<uint8_t *>(std::as_const(*this).texts()); }
	const uint32_t *firsts() const noexcept { return at<uint32_t>(0); }
	const end *ends() const noexcept { return at<end>(nr_ranges * sizeof(uint32_t)); }

	/* FNV-1a from the end of the name, so that the hash of each of its suffixes is met on the way. */
	static uint64_t mix(uint64_t hash, char c) noexcept { return (hash ^ uint8_t(c)) * 0x100000001b3; }
	static uint32_t tag_of(uint64_t hash) noexcept { return uint32_t(hash >> 32); }

	/* The slot of @suffix, or the free one where it belongs: there is one, as half of them are free. */
	const slot &find_slot(uint64_t hash, std::string_view suffix) const noexcept
	{
		const slot *s = at<slot>(0);

		for (uint32_t i = uint32_t(hash) & mask;; i = (i + 1) & mask) {
			const uint8_t *text = texts() + s[i].text;

			if (!s[i].text || (s[i].tag == tag_of(hash) &&
					   suffix == std::string_view(reinterpret_cast<const char *>(text + TEXT), text[1])))
				return s[i];
		}
	}

	/* The bytes of the last @nr labels, 0: it has fewer. */
	static uint32_t last_labels(std::string_view name, unsigned int nr) noexcept
	{
		for (size_t at = name.size(); at; at--)
			if (name[at - 1] == '.' && !--nr)
				return uint32_t(name.size() - at);
		return nr == 1 ? uint32_t(name.size()) : 0;
	}

	/* The list's algorithm: the exception, else the rule of most labels, else "*".  A public suffix is what the rule matches,
	 * of an exception all but its first label; the registrable domain has one label more. */
	uint32_t registrable(std::string_view name) const noexcept
	{
		uint64_t hash = HASH_OF_NOTHING;
		unsigned int best = 1;
		size_t at = name.size();

		for (unsigned int labels = 1; at && labels <= deepest; labels++) {
			for (; at && name[at - 1] != '.'; at--)
				hash = mix(hash, name[at - 1]);

			const slot &found = find_slot(hash, name.substr(at));
			unsigned int kinds = found.text ? texts()[found.text] : 0;

			if (kinds & EXCEPTION)
				return uint32_t(name.size() - at);
			if (kinds & RULE)
				best = labels;
			if (kinds & WILDCARD && at) /* the name has a label for the asterisk */
				best = labels + 1;
			if (at)
				hash = mix(hash, name[--at]);
		}
		return last_labels(name, best + 1);
	}

	uint32_t country(uint32_t address) const noexcept
	{
		const uint32_t *first = firsts(), *after = std::upper_bound(first, first + nr_ranges, address);
		const end *to = ends() + (after - first) - 1;

		return after != first && address <= to->last ? to->country : 0;
	}
};

/* Return the contents of the file; throws std::system_error. */
std::string read_file(const char *path);

/* Return the queries of clients, in another order for each @seed: of suffixes a host below each rule, and some below none; of
 * ranges addresses inside, and some anywhere.  Names are in the text that comes along. */
struct queries {
	std::vector<query> list;
	std::string names;
};
queries make_queries(std::string_view text, uint64_t seed);

} // namespace reload

#endif
