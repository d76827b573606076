/* SPDX-License-Identifier: MIT */
/* doctor_slots.c - the kinds of slots of hazard pointers here, the reasons
 * for them, and a trial of restartable sequences. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <quiesce/detail/claim.h>
#include <quiesce/control.h>

#include "doctor.h"

#define THREADS 16
#define GUARDS 200 /* guards of each thread */

static const char *why_slots(enum quiesce_slots slots)
{
	static const char *const name[] = { "thread", "cpu_id", "mm_cid" };
	const char *asked = getenv("QUIESCE_SLOTS");

	if (asked && !strcmp(asked, name[slots]))
		return "QUIESCE_SLOTS asks for it";
	if (slots == QUIESCE_SLOTS_MM_CID)
		return "rseq is registered, with concurrency ids";
	if (slots == QUIESCE_SLOTS_CPU_ID)
		return "the kernel, before 6.3, gives no concurrency ids";
	return rseq_registered() ? "rseq gives no CPU number here" : "rseq is not registered: an older C library, or switched off";
}

static void find_slots(struct findings *f)
{
	static const char *const what[] = {
		[QUIESCE_SLOTS_THREAD] = "thread: a line of slots for each thread",
		[QUIESCE_SLOTS_CPU_ID] = "cpu_id: a block of slots for each CPU",
		[QUIESCE_SLOTS_MM_CID] = "mm_cid: a block of slots for each concurrency id",
	};
	enum quiesce_slots slots = quiesce_slots();
	const char *asked = getenv("QUIESCE_SLOTS");
	const char *note = slots == QUIESCE_SLOTS_THREAD ? "an updater scans as many lines as there are threads that read" :
			   quiesce_fence() == QUIESCE_FENCE_LIGHT ?
				   "the first threads have a line of their own, for the shortest claim" : NULL;

	finding(f, "slots of hazard pointers", note, "%s (%s)", what[slots], why_slots(slots));
	finding(f, "QUIESCE_SLOTS", NULL, "%s", asked ? asked : "not set");
}

static void find_claims(struct findings *f)
{
	finding_of(f, "claims of hazard pointers", (const struct choice[]){
		{ quiesce_fence() == QUIESCE_FENCE_FULL, "compare-and-exchange",
		  "full fences: the locked instruction is the fence as well" },
		{ quiesce_slots() == QUIESCE_SLOTS_THREAD, "load and store, each thread in its own line", NULL },
		{ QUIESCE_HAVE_RSEQ && !quiesce_shazptr_v1.rseq, "load and store in own lines; compare-and-exchange in blocks",
		  "this kernel is not known to restart all that it interrupts (arm64: 6.19 and 7.0 do not)" },
		{ QUIESCE_HAVE_RSEQ, "load and store in own lines; restartable sequence in blocks", NULL },
		{ true, "load and store in own lines; compare-and-exchange in blocks",
		  "no claim under rseq is written for this architecture" },
	});
}

/* ---- the kinds of slots that threads get ---- */

struct survey {
	const struct op *op;
	struct spin_barrier barrier;
	const char *kind[THREADS]; /* the kind of the slot of each thread's last guard */
};

static void surveyed(struct member *m)
{
	struct survey *s = m->team->arg;

	op_thread_enter(s->op);
	spin_barrier_wait(&s->barrier);
	for (int i = 0; i < GUARDS && !interrupted(); i++) {
		s->kind[m->index] = s->op->slot_kind();
		if (i % 8 == 0)
			sched_yield();
	}
	spin_barrier_wait(&s->barrier);
	op_thread_exit(s->op);
}

static void survey_slots(struct findings *f)
{
	static const char *const kind[] = { "thread", "cpu_id", "mm_cid", "shared" };
	struct survey s = { .op = command_type(&rcuscale_command, "shazptr") };
	struct team team = { .nr = THREADS, .body = surveyed, .arg = &s };
	const char *topic = "slots, tried by 16 threads";
	char text[128] = "";
	size_t n = 0;

	spin_barrier_init(&s.barrier, THREADS);
	if (!try_team(f, topic, &team))
		return;
	for (size_t k = 0; k < sizeof(kind) / sizeof(kind[0]); k++) {
		int nr = 0;

		for (int i = 0; i < THREADS; i++)
			nr += s.kind[i] && !strcmp(s.kind[i], kind[k]);
		if (nr && n < sizeof(text))
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%d %s", n ? ", " : "", nr, kind[k]);
	}
	finding(f, topic, NULL, "%s", text);
}

/* ---- restarts ---- */

/* A clean result is evidence only if claims are lost where no sequence is restarted. */
static void try_rseq(struct findings *f)
{
	struct rseq_result bare, guarded;

	if (!find_threads(f, "rseq in practice", 2))
		return;
	if (!rseq_race(true, &bare) || !rseq_race(false, &guarded)) {
		finding(f, "rseq in practice", NULL, "not tried: needs x86-64 or arm64, and a C library that registers rseq");
		return;
	}
	finding(f, "claims without protection", NULL, "%llu of %llu lost", (unsigned long long)bare.lost,
		(unsigned long long)bare.claims);
	finding(f, "claims under rseq", NULL, "%llu of %llu lost, %llu restarts", (unsigned long long)guarded.lost,
		(unsigned long long)guarded.claims, (unsigned long long)guarded.aborted);
	finding_of(f, "rseq in practice", (const struct choice[]){
		{ guarded.lost, "DOES NOT RESTART what it interrupts", "set QUIESCE_SLOTS=thread" },
		{ !bare.lost || !guarded.aborted, "no verdict: no claim was interrupted at the wrong moment", NULL },
		{ true, "restarts: nothing lost", NULL },
	});
}

void doctor_slots(struct findings *f)
{
	find_slots(f);
	find_claims(f);
	survey_slots(f);
	try_rseq(f);
}
