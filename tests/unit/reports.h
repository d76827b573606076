/* SPDX-License-Identifier: MIT */
/* reports.h - reports, kept by a hook: the last report of each call, its text and the thread that made it. */
#ifndef REPORTS_H
#define REPORTS_H

#include "testing.h"

#include <quiesce/shazptr.h>

#define STALL_NS 20000000u
#define MAX_KEPT 64

/* A report that the hook has received, with its text. */
struct kept {
	struct quiesce_report report;
	char call[40], text[640];
	pid_t reported_by;
};

static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;
static struct kept kept[MAX_KEPT];
static int nr_kept; /* ever; the last MAX_KEPT are there */

/* Make each use of the library that control.h promises a hook, wherever the hook is called. */
static inline void use_what_a_hook_may(void)
{
	rcu_read_lock();
	(void)stats_now();
	rcu_read_unlock();
	free(malloc(100));
}

static inline void keep_report(const struct quiesce_report *report)
{
	struct kept *k;

	use_what_a_hook_may();
	pthread_mutex_lock(&kept_lock);
	k = &kept[nr_kept++ % MAX_KEPT];
	k->report = *report;
	snprintf(k->call, sizeof k->call, "%s", report->call);
	snprintf(k->text, sizeof k->text, "%s", report->text);
	k->reported_by = my_tid();
	pthread_mutex_unlock(&kept_lock);
}

static inline void reports_begin(void)
{
	pthread_mutex_lock(&kept_lock);
	nr_kept = 0;
	pthread_mutex_unlock(&kept_lock);
	quiesce_set_report_hook(keep_report);
	quiesce_set_stall_timeout(STALL_NS);
}

/* A waiter that has waited longer than this has loaded the new limit. */
static inline void reports_end(void)
{
	quiesce_set_stall_timeout(10000000000u);
	quiesce_set_garbage_warning(1u << 30);
	quiesce_set_report_hook(NULL);
}

/* True if there is a report of @call that contains @text, which is then copied to @ret. */
static inline int find_report(const char *call, const char *text, struct kept *ret)
{
	int found = 0;

	pthread_mutex_lock(&kept_lock);
	for (int i = nr_kept; i-- > (nr_kept > MAX_KEPT ? nr_kept - MAX_KEPT : 0) && !found;) {
		const struct kept *k = &kept[i % MAX_KEPT];

		found = !strcmp(k->call, call) && strstr(k->text, text);
		if (found)
			*ret = *k;
	}
	pthread_mutex_unlock(&kept_lock);
	return found;
}

static inline struct kept wait_for_report(const char *call, const char *text)
{
	struct kept k;

	wait_until(find_report(call, text, &k));
	return k;
}

static inline int nr_of_reports(void)
{
	int nr;

	pthread_mutex_lock(&kept_lock);
	nr = nr_kept;
	pthread_mutex_unlock(&kept_lock);
	return nr;
}

static inline int all_reported_by(pid_t tid)
{
	int all = 1;

	pthread_mutex_lock(&kept_lock);
	for (int i = 0; i < nr_kept && i < MAX_KEPT; i++)
		all = all && kept[i].reported_by == tid;
	pthread_mutex_unlock(&kept_lock);
	return all;
}

static inline void must_say(const struct kept *k, const char *format, ...)
{
	char text[200];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	if (!strstr(k->text, text))
		fail_msg("\"%s\" does not say \"%s\"", k->text, text);
}

/* Check the start and the caller of a section, which only the debug build knows. */
static inline void must_say_since(const struct kept *k)
{
#ifdef QUIESCE_DEBUG
	must_say(k, ", inside for ");
	must_say(k, " ms, from 0x");
	must_say(k, "-debug+0x");
#else
	assert_null(strstr(k->text, ", inside for "));
	assert_null(strstr(k->text, ", from 0x"));
#endif
}

/* ---- a thread that does something, and undoes it when asked ---- */

struct stayer {
	pthread_t thread;
	void (*enter)(struct stayer *s), (*leave)(struct stayer *s);
	void *arg;
	int idx;
	sem_t inside, go;
	pid_t tid;
};

static inline void *stayer_main(void *arg)
{
	struct stayer *s = arg;

	s->tid = my_tid();
	pthread_setname_np(pthread_self(), "stayer");
	s->enter(s);
	sem_post(&s->inside);
	wait_for(&s->go);
	if (s->leave)
		s->leave(s);
	return NULL;
}

static inline void stayer_begin(struct stayer *s, void (*enter)(struct stayer *), void (*leave)(struct stayer *), void *arg)
{
	*s = (struct stayer){ .enter = enter, .leave = leave, .arg = arg };
	sem_init(&s->inside, 0, 0);
	sem_init(&s->go, 0, 0);
	thread_must(pthread_create(&s->thread, NULL, stayer_main, s));
	wait_for(&s->inside);
}

static inline void stayer_end(struct stayer *s)
{
	sem_post(&s->go);
	pthread_join(s->thread, NULL);
}

static inline void rcu_enter(struct stayer *s)
{
	(void)s;
	rcu_read_lock();
}

static inline void rcu_leave(struct stayer *s)
{
	(void)s;
	rcu_read_unlock();
}

static inline void wildcard_enter(struct stayer *s)
{
	static struct shazptr_guard guard;

	guard = shazptr_acquire(SHAZPTR_WILDCARD);
	s->arg = &guard;
}

static inline void wildcard_leave(struct stayer *s)
{
	shazptr_clear(*(struct shazptr_guard *)s->arg);
}

/* ---- a thread that waits in a call ---- */

static inline void *call_main(void *arg)
{
	void (*const *call)(void) = arg;

	(*call)();
	return NULL;
}

static inline void call_begin(pthread_t *thread, void (*const *call)(void))
{
	thread_must(pthread_create(thread, NULL, call_main, (void *)(uintptr_t)call));
}

#endif
