/* SPDX-License-Identifier: MIT */
/* misuse.c - print what is wrong as one line of text, without allocating.
 *
 * RU3  see rcu_gp.c
 */
#include "core.h"

#include <stdarg.h>
#include <stdio.h>

#define LINE 640

static void (*misuse_hook)(enum quiesce_misuse kind, const char *text);

void quiesce__say(const char *format, ...)
{
	char line[LINE];
	va_list args;
	int n = snprintf(line, sizeof line, "quiesce: "), m;

	va_start(args, format);
	m = vsnprintf(line + n, sizeof line - (size_t)n - 1, format, args);
	va_end(args);
	n += m < 0 ? 0 : m < LINE - n - 2 ? m : LINE - n - 2;
	line[n++] = '\n';
	platform_write_stderr(line, (size_t)n);
}

static bool aborts_always(enum quiesce_misuse kind)
{
	return kind == QUIESCE_MISUSE_LAYOUT || kind == QUIESCE_MISUSE_COPIES || kind == QUIESCE_MISUSE_NESTING;
}

/* Kinds that never abort by default: the thread has ended or is ending, and the library cleans up what it
 * leaves. */
static bool is_reported_only(enum quiesce_misuse kind)
{
	return kind == QUIESCE_MISUSE_EXIT_IN_READER || kind == QUIESCE_MISUSE_EXIT_IN_CALLBACK;
}

/* The hook runs in the middle of an arbitrary call, so the thread must not be cancelled there. */
static void call_hook(void (*hook)(enum quiesce_misuse kind, const char *text), enum quiesce_misuse kind, const char *text)
{
	bool cancelable = platform_set_cancelable(false);

	hook(kind, text);
	if (cancelable)
		platform_set_cancelable(true);
}

void quiesce__misuse(enum quiesce_misuse kind, const char *format, ...)
{
	/* RU3: acquire, pairs with RU3 in quiesce_set_misuse_hook() */
	void (*hook)(enum quiesce_misuse, const char *) = quiesce_load_acquire(RU3, &misuse_hook);
	char text[LINE - 16];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	if (hook)
		call_hook(hook, kind, text);
	else
		quiesce__say("%s", text);
	if (aborts_always(kind) || (!hook && !is_reported_only(kind)))
		platform_die();
}

void quiesce_set_misuse_hook(void (*hook)(enum quiesce_misuse kind, const char *text))
{
	/* RU3: release, pairs with RU3 in quiesce__misuse() */
	quiesce_store_release(RU3, &misuse_hook, hook);
}

void quiesce__check_layout(uint32_t layout)
{
	if (quiesce_unlikely(layout != QUIESCE_LAYOUT))
		quiesce__misuse(QUIESCE_MISUSE_LAYOUT,
				"layout stamp of the program is %#x, of the library %#x: rebuild the program", layout,
				QUIESCE_LAYOUT);
}
