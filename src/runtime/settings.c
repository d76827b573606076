/* SPDX-License-Identifier: MIT */
/* settings.c - the settings of a process: from the environment, which is read once, then by calls.
 *
 * A value that is silently misread is worse than none: 64M is not 64, and 10s are not 10 ms.  So a value is accepted
 * as a whole or not at all, and a value that is not accepted is reported, with the accepted form.  An empty variable counts as not set.
 */
#include "settings.h"

#include "subsystem.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MS 1000000u
#define DEFAULT_CEILING (64ull << 20)
#define DEFAULT_WARNING (1ull << 30)
#define DEFAULT_STALL_MS 10000u

struct quiesce__settings quiesce__settings = {
	.ceiling = DEFAULT_CEILING,
	.garbage_warning = DEFAULT_WARNING,
	.stall_ns = (uint64_t)DEFAULT_STALL_MS * MS,
	.yield = 1,
	.reclaimers = 1,
};

/* ---- values ---- */

enum kind { FLAG, BYTES, MILLISECONDS, RECLAIMERS };

static const char *const accepted[] = {
	[FLAG] = "neither 0 nor 1",
	[BYTES] = "no number of bytes, such as 67108864, 65536k or 64M (k, M, G: powers of 1024)",
	[MILLISECONDS] = "no number of milliseconds, which has no unit, such as 10000",
	[RECLAIMERS] = "no number of threads from 1 to 16",
};

static const struct setting {
	const char *variable;
	enum kind kind;
	uint64_t *number; /* BYTES; MILLISECONDS, in nanoseconds */
	uint32_t *flag; /* or a small number */
} settings[] = {
	{ "QUIESCE_YIELD", FLAG, NULL, &quiesce__settings.yield },
	{ "QUIESCE_STALL_MS", MILLISECONDS, &quiesce__settings.stall_ns, NULL },
	{ "QUIESCE_CEILING", BYTES, &quiesce__settings.ceiling, NULL },
	{ "QUIESCE_THROTTLE", FLAG, NULL, &quiesce__settings.throttle },
	{ "QUIESCE_RECLAIMERS", RECLAIMERS, NULL, &quiesce__settings.reclaimers },
	{ "QUIESCE_GARBAGE_WARNING", BYTES, &quiesce__settings.garbage_warning, NULL },
	{ "QUIESCE_ALLOW_COPIES", FLAG, NULL, &quiesce__settings.allow_copies },
	{ "QUIESCE_VERBOSE", FLAG, NULL, &quiesce__settings.verbose },
};
#define NR_SETTINGS (sizeof settings / sizeof *settings)

/* Return the power of two that @suffix stands for; 0: it is no suffix. */
static uint32_t shift_of(char suffix)
{
	switch (suffix) {
	case 'k':
	case 'K':
		return 10;
	case 'M':
		return 20;
	case 'G':
		return 30;
	default:
		return 0;
	}
}

/* Parse all of @text as a number not above @max; false: it is none. */
static bool parse(const char *text, bool suffix, uint64_t max, uint64_t *ret)
{
	const char *at = text;
	uint32_t shift = 0;
	uint64_t n = 0;

	for (; *at >= '0' && *at <= '9'; at++) {
		uint64_t digit = (uint64_t)(*at - '0');

		if (n > (max - digit) / 10)
			return false;
		n = 10 * n + digit;
	}
	if (at == text)
		return false;
	if (suffix && (shift = shift_of(*at)))
		at++;
	if (*at || n > max >> shift)
		return false;
	*ret = n << shift;
	return true;
}

/* No more than the process has CPUs. */
static bool set_reclaimers(uint64_t n)
{
	struct platform_cpus cpus;
	uint32_t nr = 0;

	if (!n || n > QUIESCE_RECLAIMERS_MAX)
		return false;
	if (n > 1)
		platform_cpus_of_process(&cpus);
	for (size_t i = 0; n > 1 && i < PLATFORM_CPU_WORDS; i++)
		nr += (uint32_t)__builtin_popcountl(cpus.bits[i]);
	quiesce_store_relaxed(&quiesce__settings.reclaimers, nr && nr < n ? nr : (uint32_t)n); /* Relaxed: a setting. */
	return true;
}

static bool set(const struct setting *s, const char *text)
{
	uint64_t n;

	switch (s->kind) {
	case FLAG:
		if (!parse(text, false, 1, &n))
			return false;
		*s->flag = (uint32_t)n;
		return true;
	case RECLAIMERS:
		return parse(text, false, QUIESCE_RECLAIMERS_MAX, &n) && set_reclaimers(n);
	case MILLISECONDS:
		if (!parse(text, false, INT64_MAX / MS, &n))
			return false;
		*s->number = n * MS;
		return true;
	default:
		return parse(text, true, INT64_MAX, s->number);
	}
}

/* Print @n in the largest unit that leaves a whole number; returns the length. */
static int print_bytes(uint64_t n, char *text, size_t size)
{
	static const char *const unit[] = { "", "k", "M", "G" };
	uint32_t i = 0;

	for (; n && n % 1024 == 0 && i < 3; i++)
		n /= 1024;
	return snprintf(text, size, "%llu%s", (unsigned long long)n, unit[i]);
}

/* Print the value of @s in the form that set() accepts; returns the length. */
static int print(const struct setting *s, char *text, size_t size)
{
	uint64_t n = s->number ? quiesce_load_relaxed(s->number) : quiesce_load_relaxed(s->flag); /* Relaxed: settings. */

	if (s->kind == BYTES)
		return print_bytes(n, text, size);
	return snprintf(text, size, "%llu", (unsigned long long)(s->kind == MILLISECONDS ? n / MS : n));
}

/* ---- the environment ---- */

static const char *environment(const char *variable)
{
	const char *text = platform_getenv(variable);

	return text && *text ? text : NULL;
}

void quiesce__settings_from_environment(void)
{
	char text[32];

	for (size_t i = 0; i < NR_SETTINGS; i++) {
		const char *value = environment(settings[i].variable);

		if (!value || set(&settings[i], value))
			continue;
		print(&settings[i], text, sizeof text);
		quiesce__say("%s=%.64s is %s; using %s", settings[i].variable, value, accepted[settings[i].kind], text);
	}
}

uint32_t quiesce__environment_word(const char *variable, const char *const *words, uint32_t nr)
{
	const char *value = environment(variable);
	char list[128] = "";
	size_t length = 0;

	if (!value)
		return 0;
	for (uint32_t i = 0; i < nr; i++) {
		if (!strcmp(value, words[i]))
			return i;
		length += (size_t)snprintf(list + length, sizeof list - length, "%s%s", i ? ", " : "", words[i]);
	}
	quiesce__say("%s=%.64s is none of %s; using %s", variable, value, list, words[0]);
	return 0;
}

size_t quiesce__settings_describe(char *text, size_t size)
{
	size_t length = 0;

	for (size_t i = 0; i < NR_SETTINGS; i++) {
		char value[32];

		print(&settings[i], value, sizeof value);
		length += (size_t)snprintf(length < size ? text + length : NULL, length < size ? size - length : 0, "%s%s=%s",
					   i ? " " : "", settings[i].variable, value);
	}
	return length;
}

/* ---- calls ---- */

void quiesce_set_yield(int on)
{
	quiesce__init();
	quiesce_store_relaxed(&quiesce__settings.yield, on != 0); /* Relaxed: a setting. */
}

void quiesce_set_skip_self_scan(int on)
{
	quiesce__init();
	quiesce_store_relaxed(&quiesce__settings.skip_self_scan, on != 0); /* Relaxed: a setting. */
}

void quiesce_set_garbage_ceiling(uint64_t bytes)
{
	quiesce__init();
	quiesce_store_relaxed(&quiesce__settings.ceiling, bytes); /* Relaxed: a setting. */
	quiesce__each_subsystem(settings_changed);
}

void quiesce_set_throttle(int on)
{
	quiesce__init();
	quiesce_store_relaxed(&quiesce__settings.throttle, on != 0); /* Relaxed: a setting. */
}

int quiesce_set_reclaimers(unsigned int nr)
{
	quiesce__init();
	if (!set_reclaimers(nr))
		return -EINVAL;
	quiesce__each_subsystem(settings_changed);
	return 0;
}

void quiesce_set_stall_timeout(uint64_t ns)
{
	quiesce__init();
	quiesce_store_relaxed(&quiesce__settings.stall_ns, ns < INT64_MAX ? ns : INT64_MAX); /* Relaxed: a setting. */
}
