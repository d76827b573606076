/* SPDX-License-Identifier: MIT */
/* progress.c - a bar on a terminal for what takes long, and Ctrl-C. */
#include <signal.h>
#include <stdarg.h>
#include <time.h>
#include <unistd.h>

#include "tool.h"

#define BAR 24
#define PATIENCE_S 2 /* a run shorter than this shows no bar */

static volatile sig_atomic_t stopped;

static struct {
	size_t steps, done;
	time_t began;
	bool shown;
} bar;

static void on_interrupt(int sig)
{
	(void)sig;
	stopped = 1;
}

void interrupt_catch(void)
{
	struct sigaction action = { .sa_handler = on_interrupt };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

bool interrupted(void)
{
	return stopped;
}

static time_t seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

void progress_begin(size_t steps)
{
	bar.steps = steps;
	bar.done = 0;
	bar.began = seconds();
}

void progress_step(const char *format, ...)
{
	size_t filled = bar.steps ? bar.done++ * BAR / bar.steps : 0;
	va_list args;

	if (!isatty(STDERR_FILENO) || (!bar.shown && seconds() - bar.began < PATIENCE_S))
		return;
	bar.shown = true;
	fprintf(stderr, "\r\033[K[");
	for (size_t i = 0; i < BAR; i++)
		fputc(i < filled ? '#' : '.', stderr);
	fprintf(stderr, "] %zu/%zu ", bar.done, bar.steps);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fflush(stderr);
}

void progress_end(void)
{
	if (bar.shown)
		fprintf(stderr, "\r\033[K");
	bar.shown = false;
}
