/* SPDX-License-Identifier: MIT */
/* hashscale_plan.c - the sets of keys and the distribution that options name. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hash_plan.h"

static const struct {
	const char *name, *path, *package;
} known[] = {
	{ "words", "/usr/share/dict/words", "wamerican" },
	{ "psl", "/usr/share/publicsuffix/public_suffix_list.dat", "publicsuffix" },
};
#define NR_KNOWN (sizeof(known) / sizeof(known[0]))

static const char *const distributions[HASH_NR_DISTRIBUTIONS] = { "uniform", "zipf", "hot" };

const char *hash_distribution_name(enum hash_distribution distribution)
{
	return distributions[distribution];
}

/* Each type reads the file again, in a process of its own, so it must be a
 * regular file: not a pipe or an endless device. */
static void set_file(struct hash_set *set, const char *path, const char *package)
{
	struct stat file;

	if (strlen(path) >= sizeof(set->path))
		usage_error("--keys=%s: the name is too long", path);
	snprintf(set->path, sizeof(set->path), "%s", path);
	if (!stat(path, &file) && !S_ISREG(file.st_mode))
		usage_error("--keys=%s: '%s' is no regular file", set->name, path);
	if (!access(path, R_OK))
		return;
	if (package && errno == ENOENT)
		usage_error("--keys=%s: there is no %s; it comes with Debian's package %s", set->name, path, package);
	usage_error("--keys=%s: cannot read '%s': %s", set->name, path, strerror(errno));
}

static void set_number(struct hash_set *set, const char *number)
{
	char *end;

	errno = 0;
	set->nr = strtoull(number, &end, 10);
	if (errno || *end || *number < '0' || *number > '9' || set->nr < HASH_MIN_KEYS || set->nr > HASH_MAX_KEYS)
		usage_error("--keys=%s: a number of keys from %d to %d is needed", set->name, HASH_MIN_KEYS, HASH_MAX_KEYS);
}

void hash_plan_add_set(struct hash_plan *plan, const char *item)
{
	struct hash_set *set = &plan->set[plan->nr_sets];
	const char *base = strrchr(item, '/');

	if (plan->nr_sets++ == HASH_MAX_SETS)
		usage_error("--keys: at most %d sets", HASH_MAX_SETS);
	snprintf(set->name, sizeof(set->name), "%s", base ? base + 1 : item);
	if (!strncmp(item, "uniform:", 8)) {
		set_number(set, item + 8);
		return;
	}
	if (!strncmp(item, "dense:", 6)) {
		set_number(set, item + 6);
		set->dense = true;
		return;
	}
	for (size_t i = 0; i < NR_KNOWN; i++)
		if (!strcmp(known[i].name, item)) {
			set_file(set, known[i].path, known[i].package);
			return;
		}
	set_file(set, item, NULL);
}

/* ---- the options that hashscale and walkscale share ---- */

static struct hash_plan *plan_of(struct options *o)
{
	return &OWN(struct hash_options, o)->plan;
}

static void add_keys(const char *item, struct options *o)
{
	hash_plan_add_set(plan_of(o), item);
}

static void take_distribution(const char *arg, struct options *o)
{
	for (int i = 0; i < HASH_NR_DISTRIBUTIONS; i++)
		if (!strcmp(distributions[i], arg)) {
			plan_of(o)->distribution = (enum hash_distribution)i;
			return;
		}
	usage_error("unknown distribution '%s'; valid: uniform zipf hot", arg);
}

static void add_updates(const char *item, struct options *o)
{
	struct hash_plan *plan = plan_of(o);

	if (plan->nr_updates == HASH_MAX_UPDATES)
		usage_error("--updates: at most %d numbers", HASH_MAX_UPDATES);
	plan->updates[plan->nr_updates++] = option_number("updates", item, 0, 100);
}

const struct option_row hash_options_keys[] = {
	{ "threads", "N,M", "numbers of threads (default 1,2)", OPTION_NUMBERS, 1, HASH_CELL_THREADS, .take = NULL },
	{ "keys", "A,B", "sets of keys: uniform:N (scattered), dense:N (1 to N), words, psl, or a file of lines",
	  OPTION_ITEMS, .take = add_keys },
	{ "distribution", "NAME", "distribution of lookups: uniform (default), zipf or hot", .take = take_distribution },
	{ "updates", "P,Q", "percent of updates among the operations (default 0)", OPTION_ITEMS, .take = add_updates },
	{ 0 }
};

const struct option_row hash_options_figure[] = {
	{ "figure", "FILE", "draw a figure, .png or .svg, with matplotlib", OPTION_TEXT, OPTION_OWN(struct hash_options, figure),
	  .output = true },
	{ 0 }
};
