/* SPDX-License-Identifier: MIT */
/* torture_watch.h - decides whether a thread of a torture run waits for ever.
 *
 * A busy machine may let a thread wait for minutes, above all an emulator with more CPUs than its host.  So time is counted in turns:
 * one has passed when more than half of the active readers have finished a section.  A wait that lasts for WATCH_TURNS of them is a
 * hang.  Where half of the readers or more hang too, there are no turns.  If all hang, a wait is a hang after WATCH_TURNS polls in
 * which no reader finished a section.  If some go on, they cannot be told from those of a machine on which few threads run at a time:
 * a wait is a hang after WATCH_MAX_S, as it is in any case.  Seconds are counted from poll to poll, and at most WATCH_STEP_NS for one:
 * a process or a machine that was stopped for minutes has let no thread wait for so long.
 */
#ifndef QUIESCE_TOOL_TORTURE_WATCH_H
#define QUIESCE_TOOL_TORTURE_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#define WATCH_POLL_NS 20000000
#define WATCH_TURNS 500 /* a turn takes a poll at least, so that this is 10 s where every thread has a CPU */
#define WATCH_MAX_S 120
#define WATCH_STEP_NS 1000000000

struct torture_watch {
	uint64_t *reads;  /* number of sections of each reader when the last turn ended */
	uint64_t total;   /* sum of all readers at the last poll */
	uint64_t turns, polls;
	uint64_t silent;  /* number of polls since a reader finished a section */
	uint64_t now;     /* time of the last poll */
	uint64_t ns;      /* time of all polls, at most WATCH_STEP_NS for each */
};

/* A thread that has to make progress. */
struct torture_watched {
	bool known;
	uint64_t progress;
	uint64_t turn, poll, ns; /* those of the watch when its progress changed last */
};

/* Notes the sections that each of @nr readers has finished; the first @active of them are active.  watch->reads has @nr entries. */
void torture_watch_poll(struct torture_watch *watch, const uint64_t *reads, uint32_t nr, uint32_t active, uint64_t now_ns);

/* Returns true if a thread whose progress is now @progress hangs.  A thread that @rests need not make progress. */
bool torture_watch_hangs(const struct torture_watch *watch, struct torture_watched *one, uint64_t progress, bool rests);

/* Polls a watch without readers, whose reads has one entry; @activity changes as long as a thread does something.  Returns true if
 * none has for WATCH_TURNS polls or WATCH_MAX_S: an end that takes longer, but goes on, is not a hang. */
bool torture_watch_is_still(struct torture_watch *watch, struct torture_watched *one, uint64_t activity, uint64_t now_ns);

#endif
