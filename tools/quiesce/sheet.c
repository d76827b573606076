/* SPDX-License-Identifier: MIT */
/* sheet.c - a table for people. */
#include "sheet.h"

#include <stdarg.h>
#include <string.h>

#define LINE 100

/* Markdown has a paragraph in one line. */
static void paragraph(struct sheet *s, const char *before, const char *format, va_list args)
{
	char text[2000];

	vsnprintf(text, sizeof(text), format, args);
	for (char *c = text; s->markdown && *c; c++)
		*c = *c == '\n' ? ' ' : *c;
	fprintf(s->out, "%s%s\n", before, text);
}

void sheet_title(struct sheet *s, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	paragraph(s, s->markdown ? "\n## " : "\n", format, args);
	va_end(args);
	if (s->markdown)
		fputc('\n', s->out);
	s->cells = 0;
}

void sheet_cell(struct sheet *s, int width, const char *format, ...)
{
	char text[200];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (s->markdown)
		fprintf(s->out, "%s%s", s->cells ? " | " : "| ", text);
	else
		fprintf(s->out, "%s%*s", s->cells ? " " : "", width, text);
	s->cells++;
}

void sheet_bar(struct sheet *s)
{
	if (!s->markdown)
		fputs(" |", s->out);
}

void sheet_end_row(struct sheet *s)
{
	fputs(s->markdown ? " |\n" : "\n", s->out);
	s->cells = 0;
}

void sheet_end_head(struct sheet *s)
{
	int nr = s->cells;

	sheet_end_row(s);
	for (int i = 0; s->markdown && i < nr; i++)
		fprintf(s->out, "|%s%s", i ? "---:" : "---", i == nr - 1 ? "|\n" : "");
}

void sheet_note(struct sheet *s, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	paragraph(s, s->markdown ? "\n" : "", format, args);
	va_end(args);
}

void sheet_text(struct sheet *s, int indent, const char *text)
{
	int column = 0;

	if (s->markdown) {
		fprintf(s->out, "\n%s\n", text);
		return;
	}
	while (*text) {
		int word = (int)strcspn(text, " ");

		if (column && column + 1 + word > LINE)
			column = fprintf(s->out, "\n%*s", indent, "") - 1;
		else if (column)
			column += fprintf(s->out, " ");
		column += fprintf(s->out, "%.*s", word, text);
		text += word + (text[word] != '\0');
	}
	fputc('\n', s->out);
}
