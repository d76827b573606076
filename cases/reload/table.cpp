/* SPDX-License-Identifier: MIT */
/* table.cpp - tables and queries from texts. */
#include "table.hpp"

#include <bit>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <system_error>
#include <type_traits>

#include <quiesce/atomic.h>

namespace reload {

/* ---- life and death ---- */

static uint64_t nr_alive, nr_most;

uint64_t table::alive() noexcept
{
	return quiesce_load_relaxed(&nr_alive); /* Relaxed: a count, as the others here. */
}

uint64_t table::most_alive() noexcept
{
	return quiesce_load_relaxed(&nr_most);
}

void table::forget_most() noexcept
{
	quiesce_store_relaxed(&nr_most, alive());
}

/* One thread makes tables, any may end them: so only the maker changes the maximum. */
table::table() noexcept
{
	uint64_t now = quiesce_fetch_add_relaxed(&nr_alive, uint64_t(1)) + 1;

	if (now > most_alive())
		quiesce_store_relaxed(&nr_most, now);
	canary_init(&canary);
}

static_assert(std::is_trivially_destructible_v<table>, "free() is all");

void bury::operator()(table *gone) const noexcept
{
	(void)quiesce_fetch_add_relaxed(&nr_alive, uint64_t(-1));
	if (with_canary)
		canary_free(gone, &gone->canary);
	else
		std::free(gone);
}

table *table::create(size_t payload)
{
	size_t size = (sizeof(table) + payload + alignof(table) - 1) / alignof(table) * alignof(table);
	void *block = std::aligned_alloc(alignof(table), size);

	if (!block)
		throw std::bad_alloc();
	return new (block) table;
}

/* ---- suffixes ---- */

void table::add(const rule &r, uint32_t *ret_used) noexcept
{
	uint64_t hash = HASH_OF_NOTHING;

	for (size_t i = r.text.size(); i; i--)
		hash = mix(hash, r.text[i - 1]);

	slot &place = const_cast<slot &>(find_slot(hash, r.text));
	uint8_t *text = texts() + *ret_used;

	if (place.text) { /* "ck" of "*.ck", say, after that of "ck" itself */
		texts()[place.text] |= r.what;
		return;
	}
	place = { tag_of(hash), *ret_used };
	text[0] = r.what;
	text[1] = uint8_t(r.text.size());
	std::memcpy(text + TEXT, r.text.data(), r.text.size());
	*ret_used += TEXT + uint32_t(r.text.size());
	deepest = std::max(deepest, uint32_t(1 + std::count(r.text.begin(), r.text.end(), '.')));
}

table *table::of_rules(const std::vector<rule> &rules)
{
	size_t nr_slots = std::bit_ceil(2 * rules.size() + 1), text = 1;
	uint32_t used = 1; /* 0 says that a slot is free */

	for (const rule &r : rules)
		text += TEXT + r.text.size();

	table *made = create(nr_slots * sizeof(slot) + text);

	made->mask = uint32_t(nr_slots - 1);
	std::memset(made->slots(), 0, nr_slots * sizeof(slot));
	for (const rule &r : rules)
		made->add(r, &used);
	return made;
}

/* ---- ranges ---- */

table *table::of_ranges(const std::vector<range> &ranges)
{
	table *made = create(ranges.size() * (sizeof(uint32_t) + sizeof(end)));
	uint32_t *first = made->at<uint32_t>(0);
	end *to = made->at<end>(ranges.size() * sizeof(uint32_t));

	for (const range &r : ranges) {
		*first++ = r.first;
		*to++ = r.to;
	}
	made->nr_ranges = uint32_t(ranges.size());
	return made;
}

/* "first,last,XY", addresses as numbers; false: it is no such line. */
static bool parse_range(std::string_view line, uint32_t *ret_first, uint32_t *ret_last, uint32_t *ret_country)
{
	const char *end = line.data() + line.size();
	auto first = std::from_chars(line.data(), end, *ret_first);

	if (first.ec != std::errc() || first.ptr == end || *first.ptr != ',')
		return false;
	auto last = std::from_chars(first.ptr + 1, end, *ret_last);

	if (last.ec != std::errc() || end - last.ptr != 3 || *last.ptr != ',' || *ret_last < *ret_first)
		return false;
	*ret_country = uint32_t(uint8_t(last.ptr[1])) << 8 | uint8_t(last.ptr[2]);
	return true;
}

/* ---- texts ---- */

/* Call @each with what is on each line up to the first blank, but for comments. */
template<class Each> static void for_each_line(std::string_view text, Each each)
{
	while (!text.empty()) {
		std::string_view line = text.substr(0, text.find('\n'));

		text.remove_prefix(std::min(line.size() + 1, text.size()));
		line = line.substr(0, line.find_first_of(" \t\r"));
		if (!line.empty() && line[0] != '#' && !line.starts_with("//"))
			each(line);
	}
}

[[noreturn]] static void bad_line(std::string_view line)
{
	throw std::runtime_error("neither a rule of a suffix list nor a range of addresses: '" + std::string(line.substr(0, 80)) + "'");
}

/* "!" and "*." are what it says of the rest.  An asterisk elsewhere is allowed, and does not occur. */
static std::string_view bare(std::string_view line)
{
	std::string_view rest = line.substr(line[0] == '!' ? 1 : line.starts_with("*.") ? 2 : 0);

	if (rest.empty() || rest.size() > UINT8_MAX || rest.find_first_of("*!,") != rest.npos)
		bad_line(line);
	return rest;
}

table *table::parse(std::string_view text)
{
	std::vector<rule> rules;
	std::vector<range> ranges;

	for_each_line(text, [&](std::string_view line) {
		range r;

		if (rules.empty() && parse_range(line, &r.first, &r.to.last, &r.to.country))
			ranges.push_back(r);
		else if (ranges.empty())
			rules.push_back({ bare(line), line[0] == '!' ? EXCEPTION : line[0] == '*' ? WILDCARD : RULE });
		else
			bad_line(line);
	});
	if (rules.empty() && ranges.empty())
		throw std::runtime_error("there is nothing in it");
	if (rules.size() + ranges.size() > 1u << 24)
		throw std::runtime_error("there is too much in it");
	if (!std::ranges::is_sorted(ranges, {}, &range::first))
		std::ranges::sort(ranges, {}, &range::first);
	return ranges.empty() ? of_rules(rules) : of_ranges(ranges);
}

std::string read_file(const char *path)
{
	std::unique_ptr<FILE, int (*)(FILE *)> file(std::fopen(path, "re"), std::fclose);
	std::string text;
	char buffer[65536];
	size_t n;

	if (!file)
		throw std::system_error(errno, std::generic_category(), "cannot be read");
	while ((n = std::fread(buffer, 1, sizeof(buffer), file.get())) > 0)
		text.append(buffer, n);
	if (std::ferror(file.get()))
		throw std::system_error(errno, std::generic_category(), "cannot be read");
	return text;
}

/* ---- queries ---- */

#define MISS_EVERY 8
#define MAX_QUERIES 65536 /* more names than that would be what is measured */

template<class T> static void shuffle(std::vector<T> &list, uint64_t *state)
{
	for (size_t i = list.size(); i > 1; i--)
		std::swap(list[i - 1], list[random_next(state) % i]);
}

static void ask_names(const std::vector<std::string_view> &rules, queries *ret)
{
	std::vector<size_t> begins;

	for (size_t i = 0; i < rules.size() && i < MAX_QUERIES; i++) {
		begins.push_back(ret->names.size());
		ret->names.append(rules[i][0] == '*' ? "www.example.any" : "www.example.");
		ret->names.append(rules[i][0] == '*' ? rules[i].substr(1) : bare(rules[i]));
		if (i % MISS_EVERY)
			continue;
		begins.push_back(ret->names.size());
		ret->names.append("host.example.no-such-suffix-" + std::to_string(i));
	}
	begins.push_back(ret->names.size());
	for (size_t i = 0; i + 1 < begins.size(); i++)
		ret->list.push_back({ std::string_view(ret->names).substr(begins[i], begins[i + 1] - begins[i]), 0 });
}

static void ask_addresses(const std::vector<std::string_view> &lines, uint64_t *state, queries *ret)
{
	for (size_t i = 0; i < lines.size() && i < MAX_QUERIES; i++) {
		uint32_t first = 0, last = 0, country;

		parse_range(lines[i], &first, &last, &country);
		ret->list.push_back({ {}, uint32_t(first + random_next(state) % (uint64_t(last) - first + 1)) });
		if (i % MISS_EVERY == 0)
			ret->list.push_back({ {}, uint32_t(random_next(state) >> 32) });
	}
}

queries make_queries(std::string_view text, uint64_t seed)
{
	std::vector<std::string_view> lines;
	uint64_t state = seed * 2654435761u + 88172645463325252u;
	uint32_t ignored;
	queries made;

	for_each_line(text, [&](std::string_view line) { lines.push_back(line); });
	shuffle(lines, &state);
	if (parse_range(lines.at(0), &ignored, &ignored, &ignored))
		ask_addresses(lines, &state, &made);
	else
		ask_names(lines, &made);
	return made;
}

} // namespace reload
