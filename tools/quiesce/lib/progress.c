/* SPDX-License-Identifier: MIT */
/* progress.c - a bar on a terminal for long runs, and Ctrl-C. */
#include <signal.h>
#include <stdarg.h>
#include <time.h>
#include <unistd.h>

#include "tool.h"

#define BAR 24
#define SHORT_S 2 /* a run shorter than this shows no bar */
#define STEP_S 10  /* assumed duration of a step before the first one has ended */

static volatile sig_atomic_t stopped;

static struct {
	size_t steps, done;
	time_t began, step_began, drawn;
	double expected_s; /* 0: only the number of steps is known */
	bool shown;
	char label[64];
} bar;

static void on_interrupt(int sig)
{
	(void)sig;
	stopped = stopped ? 2 : 1;
}

void interrupt_catch(void)
{
	struct sigaction action = { .sa_handler = on_interrupt };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

void interrupt_hand_over(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
}

bool interrupted(void)
{
	return stopped != 0;
}

bool interrupted_again(void)
{
	return stopped > 1;
}

static time_t seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

void progress_expect(double total_s)
{
	bar.expected_s = total_s;
}

void progress_begin(size_t steps)
{
	bar.steps = steps;
	bar.done = 0;
	bar.began = bar.step_began = seconds();
}

/* The part of the current step that is over, if it takes as long as those before
 * it; a longer step comes ever closer to its end. */
static double within_step(time_t now)
{
	double usual_s = bar.done > 1 ? (double)(bar.step_began - bar.began) / (double)(bar.done - 1) : STEP_S;
	double part = (double)(now - bar.step_began) / (usual_s > 1 ? usual_s : 1);

	return part < 0.5 ? part : 1 - 0.25 / part;
}

static void draw(time_t now)
{
	double by_steps = bar.steps ? ((double)bar.done - 1 + within_step(now)) / (double)bar.steps : 0;
	double by_time = bar.expected_s > 0 ? (double)(now - bar.began) / bar.expected_s : by_steps;
	size_t filled = by_time < 1 ? (size_t)(by_time * BAR) : BAR;

	fprintf(stderr, "\r\033[K[");
	for (size_t i = 0; i < BAR; i++)
		fputc(i < filled ? '#' : '.', stderr);
	fprintf(stderr, "] %zu/%zu %s, %ld s", bar.done, bar.steps, bar.label, (long)(now - bar.began));
	fflush(stderr);
	bar.shown = true;
	bar.drawn = now;
}

void progress_tick(void)
{
	time_t now = seconds();

	if (isatty(STDERR_FILENO) && now - bar.began >= SHORT_S && (!bar.shown || now != bar.drawn))
		draw(now);
}

void progress_step(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(bar.label, sizeof(bar.label), format, args);
	va_end(args);
	bar.done++;
	bar.drawn = 0;
	bar.step_began = seconds();
	progress_tick();
}

void progress_end(void)
{
	if (bar.shown)
		fprintf(stderr, "\r\033[K");
	bar.shown = false;
}
