/* SPDX-License-Identifier: MIT */
/* misuses.h - shared by the tests of debug builds: a hook that keeps its reports, and calls that are or are not reported. */
#ifndef MISUSES_H
#define MISUSES_H

#include "testing.h"

static int nr_reports;
static enum quiesce_misuse last_kind;
static char last_text[400];

static inline void keep_report(enum quiesce_misuse kind, const char *text)
{
	last_kind = kind;
	snprintf(last_text, sizeof last_text, "%s", text);
	count_up(&nr_reports);
}

static inline void last_says(const char *word)
{
	if (!strstr(last_text, word))
		fail_msg("\"%s\" does not say \"%s\"", last_text, word);
}

/* Check that the last report has the name of this program and an offset that many times. */
static inline void last_has_places(int nr)
{
	char module[64];
	int found = 0;

	snprintf(module, sizeof module, " %s+0x", program_invocation_short_name);
	for (const char *at = last_text; (at = strstr(at, module)); at++)
		found++;
	if (found != nr)
		fail_msg("\"%s\" has %d places, not %d", last_text, found, nr);
}

/* Check that @fn is reported once, as @kind, and goes on. */
static inline void reported(void (*fn)(void), enum quiesce_misuse kind, const char *word)
{
	int before = flag_get(&nr_reports);

	quiesce_set_misuse_hook(keep_report);
	fn();
	quiesce_set_misuse_hook(NULL);
	if (flag_get(&nr_reports) != before + 1)
		fail_msg("%d reports instead of \"%s\"", flag_get(&nr_reports) - before, word);
	assert_int_equal(last_kind, kind);
	last_says(word);
	assert_null(strchr(last_text, '\n'));
}

static inline void one_line(const struct outcome *o, const char *word)
{
	assert_int_equal(count_lines(o->text), 1);
	assert_int_equal(o->text[o->length - 1], '\n');
	assert_int_equal(strncmp(o->text, "quiesce: ", 9), 0);
	if (!strstr(o->text, word))
		fail_msg("\"%s\" does not say \"%s\"", o->text, word);
}

/* Check that without a hook @fn prints one line and aborts. */
static inline void fatal(void (*fn)(void), const char *word)
{
	struct outcome o;

	in_child(fn, &o);
	assert_true(WIFSIGNALED(o.status));
	assert_int_equal(WTERMSIG(o.status), SIGABRT);
	one_line(&o, word);
	alarm(watchdog_seconds());
}

static inline void misuse(void (*fn)(void), enum quiesce_misuse kind, const char *word)
{
	reported(fn, kind, word);
	fatal(fn, word);
}

static inline void accepted(void (*fn)(void))
{
	int before = flag_get(&nr_reports);

	quiesce_set_misuse_hook(keep_report);
	fn();
	quiesce_set_misuse_hook(NULL);
	if (flag_get(&nr_reports) != before)
		fail_msg("reported: \"%s\"", last_text);
}

#endif
