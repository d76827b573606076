/* SPDX-License-Identifier: MIT */
/* label.c - every open of a web server's workers asks one security label: the cost of a label that can be replaced.
 *
 * AppArmor took and dropped a reference of the task's label at each open; all workers have the same label, so they wrote
 * one word from all CPUs.  Here a server of files does the same in user space, under load by wrk, while an administrator
 * replaces the label over HTTP; and a loop does it without HTTP, where the difference can be seen on two CPUs, too.
 * policy.c has the label and its variants, server.c the server, load.c what talks to it.
 */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <quiesce/atomic.h>

#include "case.h"
#include "load.h"
#include "policy.h"
#include "server.h"

#define WORKERS 8    /* threads of the server, and clients of wrk */
#define LOOP_SHARE 4 /* a measurement has two loops, and each takes 1 / LOOP_SHARE of its seconds */
#define CHECK_WORKERS 3
#define MAX_LOOPERS 1024
#define SLICE 1000 /* turns */
#define CHECK_SLICE 16
#define CHECK_S 0.15 /* seconds of one loop */
#define MAX_SLICES 128
#define PASSES 500 /* passes of the ball in a try */
#define PASS_TRIES 10
#define BALL_NS 100000000u
#define FAR_NS 60 /* cores with one cache: 20 to 40; without: 100 and more */
#define LABEL "deny /secret\nallow /f\n"
#define OTHER_LABEL "deny /secret\ndeny /label\nallow /f\n"

static uint32_t stop;

static bool stopped(void)
{
	return quiesce_load_relaxed(&stop); /* Relaxed: it publishes nothing. */
}

static void set_stop(uint32_t on)
{
	quiesce_store_relaxed(&stop, on); /* Relaxed: it publishes nothing. */
}

static const char *label(uint64_t i)
{
	return i % 2 ? OTHER_LABEL : LABEL;
}

static void replace_label(uint64_t i)
{
	if (policy_replace(label(i))) {
		case_note("no memory for a label");
		exit(CASE_FAILED);
	}
}

/* ---- the loop ---- */

/* The work of a worker beside the check, about a microsecond: it hashes its own line.  It has four chains, because with a single
 * one the CPU hides much of a wait for the label's line: it continues the hash of the turn before, for a hundred ns and more. */
static __attribute__((noinline)) uint64_t work(uint64_t *line)
{
	uint64_t a = 1, b = 2, c = 3, d = 4;

	for (int round = 0; round < 460; round++)
		for (int i = 0; i < 8; i += 4) {
			a = (a ^ line[i]) * 0x100000001b3;
			b = (b ^ line[i + 1]) * 0x100000001b3;
			c = (c ^ line[i + 2]) * 0x100000001b3;
			d = (d ^ line[i + 3]) * 0x100000001b3;
		}
	return line[7] = a ^ b ^ c ^ d;
}

static struct looper {
	uint64_t line[8];
	uint64_t checks, refused, slices;
	char path[16];
	double slice[MAX_SLICES]; /* ns of CPU time for a turn, the last ones */
} __attribute__((aligned(128))) loopers[MAX_LOOPERS];
static enum loop_kind { LOOP_ALONE, LOOP_BALL, LOOP_CHECK } kind;
static struct spin_barrier barrier;
static uint32_t ball __attribute__((aligned(128)));
static double line_ns;

static bool catch_ball(uint32_t turn, uint64_t end)
{
	/* Relaxed: the ball is all there is. */
	for (uint32_t spins = 1; quiesce_load_relaxed(&ball) != turn; spins++)
		if (spins % 1024 == 0 && now_ns() > end)
			return false;
	return true;
}

/* How long a line takes from the first thread to the last: what a shared count costs depends on that, and a host moves its
 * virtual CPUs about, so that it is one thing now and six times as much a few seconds later.  The best of some tries; none,
 * where others use the CPUs and the two threads hardly ever run at the same time. */
static void pass_ball(uint32_t side)
{
	uint64_t now = now_ns(), begin = 0, end = now + BALL_NS;

	for (uint32_t turn = side; turn < PASSES * PASS_TRIES; turn += 2) {
		if (turn % PASSES == 0) {
			now = now_ns();
			line_ns = turn ? fmin(line_ns, (double)(now - begin) / PASSES) : INFINITY;
			begin = now;
		}
		if (!catch_ball(turn, end))
			break;
		quiesce_store_relaxed(&ball, turn + 1); /* Relaxed: the ball is all there is. */
	}
}

static uint64_t turns(struct looper *l, int nr)
{
	uint64_t refused = 0;

	for (int i = 0; i < nr; i++) {
		refused += !policy_check(l->path);
		work(l->line);
	}
	return refused;
}

static void looper_body(struct member *m)
{
	struct looper *l = &loopers[m->index];
	int nr = kind == LOOP_CHECK ? CHECK_SLICE : SLICE;
	uint64_t slices = 0, refused, then, now;

	snprintf(l->path, sizeof(l->path), "/f%d", m->index);
	refused = !policy_check(l->path);
	if (kind == LOOP_BALL && (m->index == 0 || m->index == m->team->nr - 1))
		pass_ball(m->index != 0);
	spin_barrier_wait(&barrier);
	for (now = thread_cpu_ns(); !stopped(); slices++) {
		refused += turns(l, nr);
		if (kind == LOOP_CHECK && m->index == 0) /* on a full machine the main thread hardly comes to it */
			replace_label(slices);
		then = now;
		now = thread_cpu_ns();
		l->slice[slices % MAX_SLICES] = (double)(now - then) / nr;
	}
	l->slices = slices < MAX_SLICES ? slices : MAX_SLICES;
	l->checks = slices * (uint64_t)nr;
	l->refused = refused;
}

static void sleep_until(uint64_t ns)
{
	uint64_t now = now_ns();

	sleep_ns(ns > now ? ns - now : 0);
}

/* Replace the label each @period seconds for @seconds, the first time after half of it. */
static void replace(double seconds, double period)
{
	uint64_t begin = now_ns();

	for (uint64_t i = 0; ((double)i + 0.5) * period < seconds && (double)(now_ns() - begin) < seconds * 1e9 && !canary_dead(); i++) {
		sleep_until(begin + (uint64_t)(((double)i + 0.5) * period * 1e9));
		replace_label(i);
	}
	case_wait(seconds - (double)(now_ns() - begin) / 1e9);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Return the median of all slices, which stands for the majority that no other process on the machine disturbs. */
static double median_slice(int threads)
{
	double *all = malloc((size_t)threads * MAX_SLICES * sizeof(*all)), median;
	size_t nr = 0;

	for (int i = 0; all && i < threads; i++)
		for (uint64_t j = 0; j < loopers[i].slices; j++)
			all[nr++] = loopers[i].slice[j];
	if (nr)
		qsort(all, nr, sizeof(*all), compare);
	median = nr ? all[nr / 2] : NAN;
	free(all);
	return median;
}

struct sums {
	uint64_t checks, refused;
	double s, ns;
};

/* LOOP_BALL: the first and the last thread measure line_ns before; LOOP_CHECK: the first one replaces labels, too. */
static void loop(int threads, enum loop_kind which, double seconds, double period, struct sums *ret)
{
	struct team team = { .nr = threads, .pinned = true, .body = looper_body };
	uint64_t begin;

	*ret = (struct sums){ 0 };
	kind = which;
	set_stop(0);
	quiesce_store_relaxed(&ball, 0u); /* Relaxed: no thread plays yet. */
	spin_barrier_init(&barrier, (uint32_t)threads + 1);
	if (!team_start(&team))
		exit(CASE_FAILED);
	spin_barrier_wait(&barrier);
	begin = now_ns();
	replace(seconds, period);
	set_stop(1);
	ret->s = (double)(now_ns() - begin) / 1e9;
	team_join(&team);
	for (int i = 0; i < threads; i++) {
		ret->checks += loopers[i].checks;
		ret->refused += loopers[i].refused;
	}
	ret->ns = median_slice(threads);
}

/* One replacement in each sample, which is a few each second. */
static int measure_loop(const struct case_run *run, const char *scenario, int threads)
{
	double seconds = run->seconds / LOOP_SHARE;
	struct sums sums;
	char name[64];

	line_ns = NAN;
	loop(threads, threads > 1 ? LOOP_BALL : LOOP_ALONE, seconds, seconds, &sums);
	if (sums.refused) {
		case_note("%s: a path was refused that the label allows", scenario);
		return CASE_FAILED;
	}
	if (threads > 1 && !isfinite(line_ns)) {
		case_note("%s: its threads did not run at the same time, which is no sample", scenario);
		return 0;
	}
	snprintf(name, sizeof(name), "%s%s", scenario, threads != 2 ? "" : line_ns < FAR_NS ? ", near" : ", far");
	CASE_RESULT(run, name, { "checks_M", (double)sums.checks / sums.s / 1e6 }, { "ns_check", sums.ns }, { "line_ns", line_ns });
	return 0;
}

/* ---- HTTP ---- */

static struct {
	pthread_t thread;
	double period;
	uint64_t replacements, errors;
} admin;

static void *administrate(void *unused)
{
	uint64_t begin = now_ns();
	struct client client;
	int err = client_open(&client, server_port());

	/* Replace the label at least once, however short the time is. */
	for (double due = admin.period / 2; !err && (!stopped() || !(admin.replacements + admin.errors)); sleep_ns(100000)) {
		if ((double)(now_ns() - begin) < due * 1e9)
			continue;
		due += admin.period;
		if (client_request(&client, "PUT", "/label", label(admin.replacements)) == 200)
			admin.replacements++;
		else
			admin.errors++;
	}
	admin.errors += err != 0;
	client_close(&client);
	return unused;
}

/* Start the server with room for the administrator, and for the connection by which wrk checks that it answers. */
static int start_server(int workers, double period)
{
	int err = server_start(workers + 2, workers);

	set_stop(0);
	admin.period = period;
	admin.replacements = admin.errors = 0;
	if (err)
		case_note("the server cannot start: %s", strerror(-err));
	else if (period > 0 && pthread_create(&admin.thread, NULL, administrate, NULL))
		server_stop();
	else
		return 0;
	return CASE_FAILED;
}

static void stop_server(void)
{
	set_stop(1);
	if (admin.period > 0)
		pthread_join(admin.thread, NULL);
	server_stop();
}

static int wrk_failed(int err)
{
	if (err != -ENOENT)
		return CASE_FAILED;
	case_note("wrk is not installed (the package wrk of Debian): the scenarios with HTTP cannot be measured");
	return CASE_UNAVAILABLE;
}

/* Requests for the time that wrk lives: its own figure leaves out the time in which it starts, not the requests of that time. */
static int measure_http(const struct case_run *run, const char *scenario, double period)
{
	int threads = run->threads ? run->threads : WORKERS;
	struct wrk_result r;
	struct case_meter m;
	double errors;
	int err;

	if (start_server(threads, period))
		return CASE_FAILED;
	case_meter_begin(&m);
	err = wrk_run(server_port(), threads, (int)fmax(1, round(run->seconds)), &r);
	case_meter_end(&m);
	stop_server();
	if (err)
		return wrk_failed(err);
	errors = r.errors + (double)admin.errors;
	CASE_RESULT(run, scenario, { "requests_s", r.requests / m.s }, { "p50_us", r.p50_us }, { "p99_us", r.p99_us },
		    { "cpu_us", m.cpu_s * 1e6 / r.requests }, { "replacements", (double)admin.replacements }, { "errors", errors });
	if (errors > 0)
		case_note("%s: %g requests failed, so its figures mean nothing", scenario, errors);
	return errors > 0 ? CASE_FAILED : 0;
}

/* ---- --check ---- */

static uint64_t requests[CHECK_WORKERS], wrong[CHECK_WORKERS];

/* Return whether the error of a busted variant has been detected, so that its check may end. */
static bool found(const struct case_run *run)
{
	return run->variant->busted && canary_dead();
}

/* Ask for the client's file, which is allowed, and for a secret, which is not. */
static void check_client(struct member *m)
{
	struct client client;
	char path[16];
	bool good = !client_open(&client, server_port());

	snprintf(path, sizeof(path), "/f%d", m->index);
	for (uint64_t i = 1; good && (!stopped() || i == 1); i++) {
		bool secret = i % 16 == 0;
		int status = client_request(&client, "GET", secret ? "/secret" : path, NULL);

		good = status == (secret && strcmp("unchecked", m->team->arg) ? 403 : secret ? 404 : 200);
		requests[m->index]++;
	}
	wrong[m->index] = !good;
	client_close(&client);
}

static int check_http(const struct case_run *run, double seconds, uint64_t *reads)
{
	struct team clients = { .nr = CHECK_WORKERS, .body = check_client, .arg = (void *)(uintptr_t)run->variant->name };
	uint64_t errors;

	if (start_server(CHECK_WORKERS, 1e-4) || !team_start(&clients))
		return CASE_FAILED;
	case_wait(seconds);
	set_stop(1);
	team_join(&clients);
	stop_server();
	errors = admin.errors;
	for (int i = 0; i < CHECK_WORKERS; i++) {
		*reads += requests[i];
		errors += wrong[i];
	}
	if (errors)
		printf("label: %s: the server gave wrong answers, or none\n", run->variant->name);
	return errors ? CASE_FAILED : 0;
}

static int check(struct case_run *run)
{
	uint64_t reads = 0, refused = 0, end;
	int failed = check_http(run, run->seconds / 2, &reads);

	end = now_ns() + (uint64_t)(run->seconds / 2 * 1e9);
	do {
		struct sums sums;

		loop(CHECK_WORKERS, LOOP_CHECK, fmin(run->seconds / 2, CHECK_S), 100e-6, &sums);
		reads += sums.checks;
		refused += sums.refused;
	} while (now_ns() < end && !found(run));
	policy_exit();
	if (refused)
		printf("label: %s: a path was refused that the label allows\n", run->variant->name);
	return case_verdict(run, reads, policy_freed()) || failed || refused ? CASE_FAILED : 0;
}

/* ---- the program ---- */

static const struct case_choice scenarios[] = {
	{ "http", "wrk gets files; a replacement each second", false },
	{ "http, 100 replacements/s", "wrk gets files; a hundred replacements each second", false },
	{ "loop, 1 thread", "a check and about a microsecond of work of its own", false },
	{ "loop, 2 threads", "such a loop on two CPUs, called near or far", false },
	{ "loop, all CPUs", "such a loop on all CPUs, if there are more than two", false },
	{ NULL, NULL, false },
};

static int measure_loops(const struct case_run *run)
{
	int cpus = cpus_online() > MAX_LOOPERS ? MAX_LOOPERS : cpus_online(), threads[] = { 1, 2, cpus }, err = 0;

	for (int i = 0; i < 3 && !err; i++)
		if (case_wants(run, scenarios[2 + i].name) && (i < 2 || cpus > 2))
			err = measure_loop(run, scenarios[2 + i].name, threads[i]);
	return err;
}

/* Loops after each: a host moves its virtual CPUs every few seconds, and two samples shall not be of one place only. */
static int measure(const struct case_run *run)
{
	static const double period[] = { 1, 0.01 };
	int err = 0;

	for (int i = 0; i < 2 && !err; i++) {
		if (case_wants(run, scenarios[i].name))
			err = measure_http(run, scenarios[i].name, period[i]);
		err = err ? err : measure_loops(run);
	}
	return err;
}

static int serve(const struct case_run *run)
{
	if (start_server(run->threads ? run->threads : WORKERS, 0))
		return CASE_FAILED;
	case_note("until Ctrl-C: curl http://127.0.0.1:%d/f0; curl -T FILE http://127.0.0.1:%d/label", server_port(), server_port());
	for (;;)
		pause();
}

static void take_serve(struct case_run *run, const char *unused)
{
	static bool yes = true;

	(void)unused;
	run->own = &yes;
}

static int run_case(struct case_run *run)
{
	int err;

	if (run->threads > SERVER_MAX_FILES)
		case_usage("--threads=%d: at most %d", run->threads, SERVER_MAX_FILES);
	err = policy_init(run->variant, LABEL, run->check);
	if (err) {
		case_note("no first label: %s", strerror(-err));
		return CASE_FAILED;
	}
	prctl(PR_SET_PDEATHSIG, SIGTERM); /* end with the parent, but remove the directory first */
	server_catch_signals();
	if (run->check)
		return check(run);
	err = run->own ? serve(run) : measure(run);
	policy_exit();
	return err;
}

static const struct case_option options[] = {
	{ "serve", NULL, "measure nothing: serve until Ctrl-C, and say where, for curl", take_serve },
	{ NULL, NULL, NULL, NULL },
};

int main(int argc, char **argv)
{
	static const struct case_program program = {
		.name = "label",
		.what = "A server of files asks one security label at each open, while the label is replaced: references, counts per CPU, "
			"hazard pointers, RCU, or none at all.",
		.variants = policy_variants,
		.scenarios = scenarios,
		.options = options,
		.seconds = 1,
		.run = run_case,
	};

	return case_main(&program, argc, argv);
}
