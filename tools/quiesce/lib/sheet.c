/* SPDX-License-Identifier: MIT */
/* sheet.c - tables and paragraphs for people.
 *
 * A table is kept until it is complete: only then the widths of its columns are known.  A table that does not fit
 * into a line is printed in parts of about the same width, each with all rows that have a value in it.
 */
#include "sheet.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#define PLAIN 80 /* columns, where there is no terminal */
#define LEAST 40
#define TEXT 100 /* longest line of a paragraph, for the reader's sake */

static int line_width(struct sheet *s)
{
	struct winsize size;

	if (!s->width)
		s->width = ioctl(fileno(s->out), TIOCGWINSZ, &size) || !size.ws_col ? PLAIN : size.ws_col;
	return s->width < LEAST ? LEAST : s->width;
}

/* ---- paragraphs ---- */

/* Prints one line of the text, which ends at @end, broken into lines of @width. */
static void flow(FILE *out, int width, int indent, const char *text, const char *end)
{
	int column = 0;

	while (text < end) {
		int word = (int)strcspn(text, " \n");

		if (column && column + 1 + word > width)
			column = fprintf(out, "\n%*s", indent, "") - 1;
		else if (column)
			column += fprintf(out, " ");
		column += fprintf(out, "%.*s", word, text);
		text += word + 1;
	}
	fputc('\n', out);
}

/* In Markdown a paragraph is one line. */
static void paragraph(struct sheet *s, int indent, const char *text)
{
	int width = line_width(s) < TEXT ? line_width(s) : TEXT;
	const char *end;

	text += s->markdown ? strspn(text, "\n") : 0;
	for (;; text = end + 1) {
		end = text + strcspn(text, "\n");
		if (s->markdown)
			fprintf(s->out, "%.*s%c", (int)(end - text), text, *end ? ' ' : '\n');
		else
			flow(s->out, width, indent, text, end);
		if (!*end)
			return;
	}
}

static void print(struct sheet *s, const char *before, const char *format, va_list args)
{
	char text[2000];

	sheet_end_table(s);
	vsnprintf(text, sizeof(text), format, args);
	fputs(before, s->out);
	paragraph(s, 0, text);
}

void sheet_title(struct sheet *s, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print(s, s->markdown ? "\n## " : "\n", format, args);
	va_end(args);
}

void sheet_note(struct sheet *s, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print(s, s->markdown ? "\n" : "", format, args);
	va_end(args);
}

void sheet_text(struct sheet *s, int indent, const char *text)
{
	sheet_end_table(s);
	if (s->markdown)
		fputc('\n', s->out);
	paragraph(s, indent, text);
}

/* ---- building a table ---- */

static void keep(struct sheet *s, char *text)
{
	if (s->nr == s->room) {
		s->room = s->room ? 2 * s->room : 64;
		s->cell = reallocarray(s->cell, s->room, sizeof(*s->cell));
	}
	if (!s->cell || !text)
		abort();
	s->cell[s->nr++] = text;
}

void sheet_cell(struct sheet *s, int width, const char *format, ...)
{
	char text[200], *padded;
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (!s->columns && width < 0)
		s->left |= UINT64_C(1) << s->nr;
	if (asprintf(&padded, "%*s", s->markdown ? 0 : width, text) < 0)
		padded = NULL;
	keep(s, padded);
}

void sheet_bar(struct sheet *s)
{
	if (!s->columns)
		s->bars |= UINT64_C(1) << s->nr;
}

void sheet_end_head(struct sheet *s)
{
	s->columns = (int)s->nr;
	while (s->keys < s->columns - 1 && s->left & (UINT64_C(1) << s->keys))
		s->keys++;
}

void sheet_end_row(struct sheet *s)
{
	while (s->nr % (size_t)s->columns)
		keep(s, strdup(""));
}

/* ---- printing a table ---- */

static bool has_bar(const struct sheet *s, int column)
{
	return s->bars & (UINT64_C(1) << column);
}

static int column_width(const struct sheet *s, int column)
{
	size_t width = 0;

	for (size_t i = (size_t)column; i < s->nr; i += (size_t)s->columns)
		width = strlen(s->cell[i]) > width ? strlen(s->cell[i]) : width;
	return (int)width;
}

/* Width of the columns from @first to before @end, with their separators. */
static int width_of(const struct sheet *s, int first, int end)
{
	int width = 0;

	for (int c = first; c < end; c++)
		width += (has_bar(s, c) ? 2 : 0) + (c > 0) + column_width(s, c);
	return width;
}

/* The end of a group: columns between two bars stay together. */
static int group_end(const struct sheet *s, int column)
{
	do
		column++;
	while (column < s->columns && s->bars && !has_bar(s, column));
	return column;
}

/* The end of the groups from @first on that fit into @width; at least one group, even if it is too wide. */
static int part_end(const struct sheet *s, int first, int width)
{
	int end = group_end(s, first), next;

	while (end < s->columns) {
		next = group_end(s, end);
		if (width_of(s, 0, s->keys) + width_of(s, first, next) > width)
			break;
		end = next;
	}
	return end;
}

static int nr_parts(const struct sheet *s, int width)
{
	int nr = 0;

	for (int first = s->keys; first < s->columns; first = part_end(s, first, width))
		nr++;
	return nr;
}

static bool has_something(char *const *row, int first, int end)
{
	for (int c = first; c < end; c++)
		if (row[c][strspn(row[c], " -")])
			return true;
	return false;
}

static void print_columns(const struct sheet *s, char *const *row, int first, int end)
{
	for (int c = first; c < end; c++) {
		int width = s->left & (UINT64_C(1) << c) ? -column_width(s, c) : column_width(s, c);

		fprintf(s->out, "%s%s%*s", has_bar(s, c) ? " |" : "", c ? " " : "", c == s->columns - 1 && width < 0 ? 0 : width, row[c]);
	}
}

static void print_part(const struct sheet *s, int first, int end)
{
	bool whole = first == s->keys && end == s->columns;

	for (size_t i = 0; i < s->nr; i += (size_t)s->columns) {
		if (!whole && !has_something(s->cell + i, first, end))
			continue;
		print_columns(s, s->cell + i, 0, s->keys);
		print_columns(s, s->cell + i, first, end);
		fputc('\n', s->out);
	}
}

static void print_markdown(const struct sheet *s)
{
	fputc('\n', s->out);
	for (size_t i = 0; i < s->nr; i++) {
		bool last = (int)(i % (size_t)s->columns) == s->columns - 1;

		fprintf(s->out, "%s%s%s", i % (size_t)s->columns ? " | " : "| ", s->cell[i], last ? " |\n" : "");
		for (int c = 0; last && i < (size_t)s->columns && c < s->columns; c++)
			fprintf(s->out, "%s%s", c < s->keys ? "|---" : "|---:", c == s->columns - 1 ? "|\n" : "");
	}
}

static void print_parts(struct sheet *s)
{
	int width = line_width(s), nr = nr_parts(s, width);

	while (width > 0 && nr_parts(s, width - 1) == nr)
		width--;
	for (int first = s->keys, end; first < s->columns; first = end) {
		end = part_end(s, first, width);
		if (first > s->keys)
			fputc('\n', s->out);
		print_part(s, first, end);
	}
}

void sheet_end_table(struct sheet *s)
{
	if (s->columns && s->markdown)
		print_markdown(s);
	else if (s->columns)
		print_parts(s);
	for (size_t i = 0; i < s->nr; i++)
		free(s->cell[i]);
	free(s->cell);
	*s = (struct sheet){ .out = s->out, .markdown = s->markdown, .width = s->width };
}
