/* SPDX-License-Identifier: MIT */
/* callbacks.c - each call inside of each kind of function that the library calls.
 *
 * A call that the manual forbids there must be reported, as docs/misuse.md documents, and must not hang.
 */
#include "kinds.h"

enum expected { WORKS, IS_REPORTED, IS_SKIPPED };

struct job {
	const struct kind *kind;
	const struct call *call;
	struct world *world;
	enum expected expected;
	int ran;
};

/* True for a callback proper, one that barriers wait for. */
static bool is_callback(const struct kind *kind)
{
	return kind->ends;
}

static enum expected expected_in(const struct kind *kind, const struct call *call)
{
	switch (kind->allows) {
	case ALLOWS_ALL:
		return WORKS;
	case ALLOWS_WAITS:
	case ALLOWS_RETIRES:
		if (has(call, FOR_CALLBACKS))
			return is_callback(kind) ? IS_REPORTED : IS_SKIPPED;
		if (kind->allows == ALLOWS_RETIRES && has(call, WAITS))
			return IS_SKIPPED;
		return has(call, IN_CALLBACK) ? WORKS : IS_SKIPPED;
	case ALLOWS_READERS:
		if (has(call, NOT_IN_READER))
			return IS_REPORTED;
		return has(call, IN_READER) ? WORKS : IS_SKIPPED;
	case ALLOWS_REPORTS:
		return has(call, IN_READER) && !has(call, WAITS) ? WORKS : IS_SKIPPED;
	case ALLOWS_LITTLE:
		break;
	}
	return has(call, NEVER_WAITS) ? WORKS : IS_SKIPPED;
}

static int nr_reported;

static void note_report(enum quiesce_misuse kind, const char *text)
{
	if (kind != QUIESCE_MISUSE_WAIT_IN_CALLBACK && kind != QUIESCE_MISUSE_WAIT_IN_READER)
		cell_fails(__FILE__, __LINE__, text);
	count_up(&nr_reported);
}

static void make_call(void *arg)
{
	struct job *job = arg;
	int held = !!rcu_read_lock_held();
	bool ok = job->call->fn(job->world);

	must(ok || job->expected == IS_REPORTED);
	must(held == !!rcu_read_lock_held());
	flag_set(&job->ran);
}

static void call_inside(void *arg)
{
	struct job *job = arg;
	struct world w;

	job->world = &w;
	/* A wait that is reported does not happen, so no other thread may use the object of the wait. */
	world_begin(&w, job->expected == IS_REPORTED ? 0 : NR_BYSTANDERS);
	if (job->expected == IS_REPORTED) {
		w.has_hook = true;
		quiesce_set_misuse_hook(note_report);
	}
	job->kind->run(&w, make_call, job);
	must(flag_get(&job->ran));
	must((job->expected == IS_REPORTED) == (flag_get(&nr_reported) > 0));
	quiesce_set_misuse_hook(NULL);
	world_settle(&w);
}

int situation_callbacks(void)
{
	const struct kind *kind;
	const struct call *call;

	for_each_kind(kind, k) {
		for_each_call(call, i) {
			struct job job = { .kind = kind, .call = call, .expected = expected_in(kind, call) };

			if (job.expected != IS_SKIPPED && cell_is_drawn(i, k, 3))
				cell(call_inside, &job, "in %s: %s%s", kind->name, call->name,
				     job.expected == IS_REPORTED ? ", which is reported" : "");
		}
	}
	return cells_end();
}
