/* SPDX-License-Identifier: MIT */
/* study_file.c - the cases, and their descriptions, cases/X/X.json.
 *
 * The description is an object with the members of struct study.  A variant is [name, fence, what], a column [metric, title, total]; of
 * a shape "of", "to" and "base" are places, [variant, fence, scenario, metric], and say by their number what its formula is.  "rounds"
 * and "seconds" have two numbers, the second with --quick.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "place.h"
#include "study.h"

static struct study lockdep_keys = { .name = "lockdep-keys" }, label = { .name = "label" }, timers = { .name = "timers" },
		    reload = { .name = "reload" };
/* In the order of the documents that the cases come from. */
static struct study *const cases[] = { &lockdep_keys, &label, &study_hash2003, &timers, &study_toggle, &reload, NULL };
const struct study *const *const study_table = (const struct study *const *)cases;

static const char *text(const json_t *list, size_t i)
{
	return json_string_value(json_array_get(list, i));
}

static void *list_of(const json_t *rows, size_t size)
{
	void *list = calloc(json_array_size(rows) + 1, size); /* the last one ends the list */

	if (list)
		return list;
	fprintf(stderr, "quiesce: out of memory\n");
	exit(EXIT_FAILED);
}

static struct study_place place(const json_t *shape, const char *name)
{
	const json_t *p = json_object_get(shape, name);

	return (struct study_place){ text(p, 0), text(p, 1), text(p, 2), text(p, 3) };
}

static struct study_shape shape_of(const json_t *row)
{
	return (struct study_shape){
		.what = json_string_value(json_object_get(row, "what")),
		.published = json_string_value(json_object_get(row, "published")),
		.formula = json_object_get(row, "base") ? STUDY_GAP : json_object_get(row, "to") ? STUDY_RATIO : STUDY_VALUE,
		.of = place(row, "of"),
		.to = place(row, "to"),
		.base = place(row, "base"),
	};
}

/* Fills in the lists of @s; they and all strings live as long as the process. */
static void read_lists(struct study *s, const json_t *root)
{
	const json_t *variants = json_object_get(root, "variants"), *columns = json_object_get(root, "columns"),
		     *shapes = json_object_get(root, "shapes"), *row;
	struct study_variant *v = list_of(variants, sizeof(*v));
	struct study_column *c = list_of(columns, sizeof(*c));
	struct study_shape *h = list_of(shapes, sizeof(*h));
	size_t i;

	json_array_foreach(variants, i, row)
		v[i] = (struct study_variant){ text(row, 0), text(row, 1), text(row, 2) };
	json_array_foreach(columns, i, row)
		c[i] = (struct study_column){ text(row, 0), text(row, 1), json_is_true(json_array_get(row, 2)) };
	json_array_foreach(shapes, i, row)
		h[i] = shape_of(row);
	s->variants = v;
	s->columns = c;
	s->shapes = h;
}

static void load(struct study *s)
{
	char in_build[64], installed[64], path[PLACE_MAX];
	json_t *root;

	snprintf(in_build, sizeof(in_build), "../cases/%s.json", s->name);
	snprintf(installed, sizeof(installed), "cases/%s.json", s->name);
	root = place_find(path, sizeof(path), in_build, installed) ? json_load_file(path, 0, NULL) : NULL;
	s->what = "its description is missing";
	if (json_unpack(root, "{ss s?s s?s s?s s[ii] s[FF]}", "what", &s->what, "document", &s->document, "honesty", &s->honesty,
			"missing", &s->missing, "rounds", &s->rounds, &s->quick_rounds, "seconds", &s->seconds, &s->quick_seconds))
		return;
	s->program = s->run ? NULL : s->name;
	read_lists(s, root);
}

void study_load(void)
{
	for (size_t i = 0; cases[i]; i++)
		load(cases[i]);
}
