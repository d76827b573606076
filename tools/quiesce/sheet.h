/* SPDX-License-Identifier: MIT */
/* sheet.h - tables and paragraphs for people: on a terminal no wider than it is, elsewhere 80 columns; or Markdown. */
#ifndef QUIESCE_TOOL_SHEET_H
#define QUIESCE_TOOL_SHEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Begins with @out and @markdown set. */
struct sheet {
	FILE *out;
	bool markdown;
	int width;   /* of a line; 0: not known yet */
	/* The table that is being written. */
	char **cell; /* row by row, the head first */
	size_t nr, room;
	int columns; /* 0: the head is not over */
	int keys;    /* the first columns, names: each part of a table that is too wide begins with them */
	uint64_t bars, left; /* bits of columns: with a bar in front; flush left */
};

/* What a table is about; the one before it is over. */
void sheet_title(struct sheet *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The next cell of a row; @width: of the column at least, negative: to the left. */
void sheet_cell(struct sheet *s, int width, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* In a head: what comes now is set off.  A table that is too wide is torn where there are bars, or anywhere if there are none. */
void sheet_bar(struct sheet *s);
void sheet_end_head(struct sheet *s);
void sheet_end_row(struct sheet *s);
/* Print it; titles, notes and texts do that, too. */
void sheet_end_table(struct sheet *s);
/* A paragraph; line feeds in it are for the terminal. */
void sheet_note(struct sheet *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A paragraph of any length: on a terminal it is broken into lines, with @indent blanks in front of all but the first. */
void sheet_text(struct sheet *s, int indent, const char *text);

#endif
