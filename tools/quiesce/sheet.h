/* SPDX-License-Identifier: MIT */
/* sheet.h - a table for people: columns on a terminal, or Markdown. */
#ifndef QUIESCE_TOOL_SHEET_H
#define QUIESCE_TOOL_SHEET_H

#include <stdbool.h>
#include <stdio.h>

struct sheet {
	FILE *out;
	bool markdown;
	int cells;   /* of the row that is being written */
};

/* A table begins. */
void sheet_title(struct sheet *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The next cell of a row; @width: of the column, negative: to the left. */
void sheet_cell(struct sheet *s, int width, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* What comes now is set off on a terminal. */
void sheet_bar(struct sheet *s);
void sheet_end_head(struct sheet *s);
void sheet_end_row(struct sheet *s);
/* A paragraph; in @text, single line feeds are for the terminal. */
void sheet_note(struct sheet *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A paragraph of any length: on a terminal it is broken into lines, with @indent blanks in front of all but the first. */
void sheet_text(struct sheet *s, int indent, const char *text);

#endif
