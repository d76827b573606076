/* SPDX-License-Identifier: MIT */
/* sheet.h - tables and paragraphs for people: no wider than the terminal, elsewhere 80 columns; or Markdown. */
#ifndef QUIESCE_TOOL_SHEET_H
#define QUIESCE_TOOL_SHEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The user sets @out and @markdown first. */
struct sheet {
	FILE *out;
	bool markdown;
	int width;   /* width of a line; 0: not known yet */
	/* The table that is being written. */
	char **cell; /* row by row, the head first */
	size_t nr, room;
	int columns; /* number of columns; 0: the head is not complete */
	int keys;    /* number of the first columns, names, with which each part of a table that is too wide begins */
	uint64_t bars, left; /* bits of columns: with a bar in front; aligned to the left */
};

/* Ends the last table and prints a title. */
void sheet_title(struct sheet *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Adds the next cell of a row; @width: least width of the column, negative: aligned to the left. */
void sheet_cell(struct sheet *s, int width, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* In a head: puts a bar before the next column.  A table that is too wide is
 * split at its bars, or anywhere if it has none. */
void sheet_bar(struct sheet *s);
void sheet_end_head(struct sheet *s);
void sheet_end_row(struct sheet *s);
/* Prints the table; titles, notes and texts do that, too. */
void sheet_end_table(struct sheet *s);
/* Prints a paragraph; its line feeds are for the terminal. */
void sheet_note(struct sheet *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints a paragraph of any length: on a terminal it is broken into lines,
 * with @indent blanks before all but the first. */
void sheet_text(struct sheet *s, int indent, const char *text);

#endif
