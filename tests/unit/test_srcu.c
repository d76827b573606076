/* SPDX-License-Identifier: MIT */
/* test_srcu.c - domains: which readers an updater waits for, in both fence modes. */
#include <quiesce/srcu.h>

#include "testing.h"

DEFINE_STATIC_SRCU(files);
static struct srcu_struct other;

/* ---- an updater in a thread of its own ---- */

struct updater {
	pthread_t thread;
	struct srcu_struct *ssp;
	int expedited;
	int begun, done;
};

static void *updater_main(void *arg)
{
	struct updater *u = arg;

	flag_set(&u->begun);
	if (u->expedited)
		synchronize_srcu_expedited(u->ssp);
	else
		synchronize_srcu(u->ssp);
	flag_set(&u->done);
	return NULL;
}

static void updater_begin(struct updater *u, struct srcu_struct *ssp, int expedited)
{
	*u = (struct updater){ .ssp = ssp, .expedited = expedited };
	thread_must(pthread_create(&u->thread, NULL, updater_main, u));
	wait_until(flag_get(&u->begun));
}

static void updater_end(struct updater *u)
{
	pthread_join(u->thread, NULL);
	assert_true(flag_get(&u->done));
}

/* ---- waits ---- */

static void no_reader_inside(void **state)
{
	unsigned long before = srcu_batches_completed(&files);

	(void)state;
	synchronize_srcu(&files);
	synchronize_srcu_expedited(&files);
	assert_true(srcu_batches_completed(&files) >= before + 2);
	assert_true(stats_now().srcu_grace_periods >= 2);
}

/* The updater must not complete its wait while this thread is inside. */
static void waits_for_reader(void **state)
{
	(void)state;
	for (int expedited = 0; expedited < 2; expedited++) {
		uint64_t sleeps = stats_now().sleeps;
		int idx = srcu_read_lock(&files);
		struct updater u;

		assert_true(srcu_read_lock_held(&files));
		updater_begin(&u, &files, expedited);
		wait_until(stats_now().sleeps > sleeps + 1);
		assert_false(flag_get(&u.done));
		srcu_read_unlock(&files, idx);
		updater_end(&u);
	}
}

static void not_for_other_domains(void **state)
{
	int idx = srcu_read_lock(&files);

	(void)state;
	assert_int_equal(init_srcu_struct(&other), 0);
	synchronize_srcu(&other);
	synchronize_rcu();
	cleanup_srcu_struct(&other);
	srcu_read_unlock(&files, idx);
}

static void sections_overlap(void **state)
{
	int first = srcu_read_lock(&files), second = srcu_read_lock(&files), third;
	uint64_t sleeps = stats_now().sleeps;
	struct updater u;

	(void)state;
	updater_begin(&u, &files, 0);
	srcu_read_unlock(&files, first);
	third = srcu_read_lock(&files);
	wait_until(stats_now().sleeps > sleeps + 1);
	assert_false(flag_get(&u.done));
	srcu_read_unlock(&files, second);
	/* The third section began after the call, as far as the program can observe: it may delay the updater, but need not. */
	srcu_read_unlock(&files, third);
	updater_end(&u);
}

/* Grace periods end although the domain always has a reader: the next section begins before the last one ends. */
static void no_starvation(void **state)
{
	int idx = srcu_read_lock(&files);
	uint64_t rounds = 0;
	struct updater u;

	(void)state;
	updater_begin(&u, &files, 0);
	while (!flag_get(&u.done)) {
		int next = srcu_read_lock(&files);

		srcu_read_unlock(&files, idx);
		idx = next;
		rounds++;
	}
	srcu_read_unlock(&files, idx);
	updater_end(&u);
	assert_true(rounds > 0);
}

static void *leave(void *arg)
{
	srcu_up_read(&files, *(int *)arg);
	return NULL;
}

static void handed_over(void **state)
{
	int idx = srcu_down_read(&files);
	struct updater u;
	pthread_t thread;

	(void)state;
	updater_begin(&u, &files, 0);
	assert_false(flag_get(&u.done));
	thread_must(pthread_create(&thread, NULL, leave, &idx));
	pthread_join(thread, NULL);
	updater_end(&u);
}

static int idx_of_handler;

static void on_signal(int sig)
{
	(void)sig;
	srcu_read_unlock(&files, idx_of_handler);
	idx_of_handler = srcu_read_lock(&files);
	srcu_read_unlock(&files, idx_of_handler);
}

static void in_handlers(void **state)
{
	struct updater u;

	(void)state;
	idx_of_handler = srcu_read_lock(&files);
	updater_begin(&u, &files, 0);
	signal(SIGUSR1, on_signal);
	raise(SIGUSR1);
	signal(SIGUSR1, SIG_DFL);
	updater_end(&u);
}

#define NR_UPDATERS 8

/* Many callers at once share grace periods, and each gets a whole one. */
static void updaters_share(void **state)
{
	int idx = srcu_read_lock(&files);
	struct updater u[NR_UPDATERS];

	(void)state;
	for (int i = 0; i < NR_UPDATERS; i++)
		updater_begin(&u[i], &files, i & 1);
	for (int i = 0; i < NR_UPDATERS; i++)
		assert_false(flag_get(&u[i].done));
	srcu_read_unlock(&files, idx);
	for (int i = 0; i < NR_UPDATERS; i++)
		updater_end(&u[i]);
}

/* ---- cookies ---- */

static void cookies(void **state)
{
	struct rcu_gp_seq none = get_completed_synchronize_srcu(), seq;
	int idx = srcu_read_lock(&files);

	(void)state;
	assert_true(poll_state_synchronize_srcu(&files, none));
	seq = get_state_synchronize_srcu(&files);
	assert_true(same_state_synchronize_srcu(seq, get_state_synchronize_srcu(&files)));
	assert_false(same_state_synchronize_srcu(seq, none));
	assert_false(poll_state_synchronize_srcu(&files, seq));
	seq = start_poll_synchronize_srcu(&files);
	for (int i = 0; i < 100; i++)
		assert_false(poll_state_synchronize_srcu(&files, seq));
	srcu_read_unlock(&files, idx);
	smp_mb__after_srcu_read_unlock();
	wait_until(poll_state_synchronize_srcu(&files, seq));
	seq = get_state_synchronize_srcu(&files);
	synchronize_srcu(&files);
	assert_true(poll_state_synchronize_srcu(&files, seq));
}

/* ---- callbacks ---- */

#define NR_HEADS 200

static struct item {
	struct rcu_head head;
	int number;
} items[NR_HEADS];
static int nr_run, out_of_order;

static void note(struct rcu_head *head)
{
	struct item *item = (struct item *)head;

	if (item->number != nr_run)
		flag_set(&out_of_order);
	count_up(&nr_run);
}

static void queue_items(void)
{
	nr_run = out_of_order = 0;
	for (int i = 0; i < NR_HEADS; i++) {
		items[i].number = i;
		call_srcu(&files, &items[i].head, note);
	}
}

static void callbacks_wait(void **state)
{
	int idx = srcu_read_lock(&files);

	(void)state;
	queue_items();
	for (int i = 0; i < 20; i++) {
		short_rest();
		assert_int_equal(flag_get(&nr_run), 0);
	}
	srcu_read_unlock(&files, idx);
	srcu_barrier(&files);
	assert_int_equal(flag_get(&nr_run), NR_HEADS);
	assert_false(flag_get(&out_of_order));
	srcu_barrier(&files);
}

/* A reader that leaves wakes the thread that runs callbacks: no other call asks for them. */
static void callbacks_run_alone(void **state)
{
	int idx = srcu_read_lock(&files);

	(void)state;
	queue_items();
	short_rest();
	srcu_read_unlock(&files, idx);
	wait_until(flag_get(&nr_run) == NR_HEADS);
}

static struct rcu_head again_head;
static int nr_again;

static void again(struct rcu_head *head)
{
	count_up(&nr_again);
	synchronize_srcu(&files);
	if (flag_get(&nr_again) < 10)
		call_srcu(&files, head, again);
}

static void callbacks_queue_callbacks(void **state)
{
	(void)state;
	call_srcu(&files, &again_head, again);
	wait_until(flag_get(&nr_again) == 10);
	srcu_barrier(&files);
}

/* ---- misuse ---- */

static int nr_reports;
static enum quiesce_misuse reported;
static char report[320];

static void note_misuse(enum quiesce_misuse kind, const char *text)
{
	reported = kind;
	snprintf(report, sizeof report, "%s", text);
	count_up(&nr_reports);
}

static void do_nothing(struct rcu_head *head)
{
	(void)head;
}

static void barrier_inside(struct rcu_head *head)
{
	(void)head;
	srcu_barrier(&files);
}

static void in_use(void **state)
{
	static struct rcu_head head;
	int idx;

	(void)state;
	quiesce_set_misuse_hook(note_misuse);
	assert_int_equal(init_srcu_struct(&other), 0);
	idx = srcu_read_lock(&other);
	cleanup_srcu_struct(&other);
	assert_int_equal(nr_reports, 1);
	assert_int_equal(reported, QUIESCE_MISUSE_IN_USE);
	assert_non_null(strstr(report, "&other"));
	assert_non_null(strstr(report, "readers inside: 1"));
	call_srcu(&other, &head, do_nothing);
	srcu_read_unlock(&other, idx);
	srcu_barrier(&other);
	cleanup_srcu_struct(&other);
	assert_int_equal(nr_reports, 1);
	call_srcu(&files, &head, barrier_inside);
	srcu_barrier(&files);
	assert_int_equal(nr_reports, 2);
	assert_int_equal(reported, QUIESCE_MISUSE_WAIT_IN_CALLBACK);
	quiesce_set_misuse_hook(NULL);
}

#ifdef QUIESCE_DEBUG
static void wait_in_section(void **state)
{
	int idx = srcu_read_lock(&files);

	(void)state;
	nr_reports = 0;
	quiesce_set_misuse_hook(note_misuse);
	synchronize_srcu(&files);
	srcu_barrier(&files);
	assert_int_equal(nr_reports, 2);
	assert_int_equal(reported, QUIESCE_MISUSE_WAIT_IN_READER);
	srcu_read_unlock(&files, 7);
	assert_int_equal(nr_reports, 3);
	assert_int_equal(reported, QUIESCE_MISUSE_UNBALANCED_UNLOCK);
	quiesce_set_misuse_hook(NULL);
	srcu_read_unlock(&files, idx);
	assert_false(srcu_read_lock_held(&files));
	synchronize_srcu(&files);
}
#endif

/* ---- fork ---- */

#if !QUIESCE_TSAN
static int idx_at_fork;

static void in_the_child(void)
{
	srcu_read_unlock(&files, idx_at_fork);
	srcu_barrier(&files);
	if (flag_get(&nr_run) != NR_HEADS || flag_get(&out_of_order))
		_exit(3);
	synchronize_srcu(&files);
	queue_items();
	srcu_barrier(&files);
	if (flag_get(&nr_run) != NR_HEADS)
		_exit(4);
}

/* The fork comes while an updater waits and callbacks are pending. */
static void forks(void **state)
{
	struct outcome o;
	struct updater u;
	uint64_t sleeps = stats_now().sleeps;

	(void)state;
	idx_at_fork = srcu_read_lock(&files);
	queue_items();
	updater_begin(&u, &files, 0);
	wait_until(stats_now().sleeps > sleeps);
	in_child(in_the_child, &o);
	assert_string_equal(o.text, "");
	assert_int_equal(o.status, 0);
	assert_int_equal(flag_get(&nr_run), 0);
	srcu_read_unlock(&files, idx_at_fork);
	updater_end(&u);
	srcu_barrier(&files);
	assert_int_equal(flag_get(&nr_run), NR_HEADS);
}
#endif

/* ---- under load ---- */

#define NR_READERS 3
#define NR_ROUNDS 4000

struct object {
	struct rcu_head head;
	int alive;
};
static struct object *shared;
static int stop, dead_seen;
static int nr_busy; /* readers that have read while objects were replaced */
static uint64_t nr_freed, nr_queued;

static void *reader_main(void *unused)
{
	struct object *first = NULL;
	int busy = 0;

	(void)unused;
	while (!flag_get(&stop)) {
		int idx = srcu_read_lock(&files);
		struct object *o = srcu_dereference(shared, &files);

		if (!flag_get(&o->alive))
			flag_set(&dead_seen);
		srcu_read_unlock(&files, idx);
		if (!first)
			first = o;
		if (o != first && !busy) {
			busy = 1;
			count_up(&nr_busy);
		}
	}
	return NULL;
}

static void bury(struct rcu_head *head)
{
	struct object *o = (struct object *)head;

	quiesce_store_relaxed(&o->alive, 0);
	free(o);
	nr_freed++;
}

static struct object *fresh_object(void)
{
	struct object *o = calloc(1, sizeof *o);

	assert_non_null(o);
	o->alive = 1;
	return o;
}

static void under_load(void **state)
{
	pthread_t reader[NR_READERS];

	(void)state;
	shared = fresh_object();
	threads_begin(reader, NR_READERS, reader_main, NULL);
	for (int i = 0; i < NR_ROUNDS || flag_get(&nr_busy) < NR_READERS; i++) {
		struct object *old = rcu_xchg_pointer(&shared, fresh_object());

		if (i % 64) {
			call_srcu(&files, &old->head, bury);
			nr_queued++;
			continue;
		}
		synchronize_srcu(&files);
		quiesce_store_relaxed(&old->alive, 0);
		free(old);
	}
	srcu_barrier(&files);
	flag_set(&stop);
	threads_end(reader, NR_READERS);
	free(shared);
	assert_false(flag_get(&dead_seen));
	assert_int_equal(nr_freed, nr_queued);
}

/* Threads whose calls meet push to lists of their own: the callbacks of each thread run in the order of its calls, and its
 * barrier waits for them. */
#define NR_QUEUERS 4
#define NR_QUEUED 3000

static struct srcu_struct met;
static int nr_late;

struct queued {
	struct rcu_head head;
	int number;
	int *nr_of_thread;
};

static void run_in_turn(struct rcu_head *head)
{
	struct queued *q = (struct queued *)head;

	if (q->number != flag_get(q->nr_of_thread))
		flag_set(&out_of_order);
	count_up(q->nr_of_thread);
}

static void *queuer_main(void *unused)
{
	struct queued *all = calloc(NR_QUEUED, sizeof *all);
	int nr = 0;

	(void)unused;
	for (int i = 0; all && i < NR_QUEUED; i++) {
		all[i].number = i;
		all[i].nr_of_thread = &nr;
		call_srcu(&met, &all[i].head, run_in_turn);
		if (i % 1000 != 999)
			continue;
		srcu_barrier(&met);
		if (flag_get(&nr) != i + 1)
			flag_set(&nr_late);
	}
	free(all);
	return NULL;
}

static void queuers_meet(void **state)
{
	pthread_t queuer[NR_QUEUERS];

	(void)state;
	out_of_order = 0;
	assert_int_equal(init_srcu_struct(&met), 0);
	threads_begin(queuer, NR_QUEUERS, queuer_main, NULL);
	threads_end(queuer, NR_QUEUERS);
	assert_false(flag_get(&out_of_order));
	assert_false(flag_get(&nr_late));
	cleanup_srcu_struct(&met);
}

/* The domain is freed as soon as the wait is over, while the reader may not have returned yet. */
static void *short_reader(void *arg)
{
	struct srcu_struct *ssp = arg;

	srcu_up_read(ssp, 0);
	return NULL;
}

static void domains_come_and_go(void **state)
{
	(void)state;
	for (int i = 0; i < 200; i++) {
		struct srcu_struct *ssp = malloc(sizeof *ssp);
		pthread_t thread;

		assert_non_null(ssp);
		assert_int_equal(init_srcu_struct(ssp), 0);
		assert_int_equal(srcu_down_read(ssp), 0);
		thread_must(pthread_create(&thread, NULL, short_reader, ssp));
		synchronize_srcu(ssp);
		cleanup_srcu_struct(ssp);
		free(ssp);
		pthread_join(thread, NULL);
	}
}

/* Where readers count in sequences they do so on both sides from the first section on. */
static void readers_count_by_themselves(void **state)
{
	static struct srcu_struct fresh;

	(void)state;
	assert_int_equal(init_srcu_struct(&fresh), 0);
	srcu_read_unlock(&fresh, srcu_read_lock(&fresh));
	for (int i = 0; i < 2; i++)
		assert_true(!quiesce_load_relaxed(&fresh.enter[i]) == !quiesce_load_relaxed(&fresh.leave[i])); /* Relaxed: one thread. */
	cleanup_srcu_struct(&fresh);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(readers_count_by_themselves),
		TEST(no_reader_inside), TEST(waits_for_reader), TEST(not_for_other_domains), TEST(sections_overlap),
		TEST(no_starvation), TEST(handed_over), TEST(in_handlers), TEST(updaters_share), TEST(cookies),
		TEST(callbacks_wait), TEST(callbacks_run_alone), TEST(callbacks_queue_callbacks), TEST(in_use),
#ifdef QUIESCE_DEBUG
		TEST(wait_in_section),
#endif
#if !QUIESCE_TSAN
		TEST(forks),
#endif
		TEST(under_load), TEST(queuers_meet), TEST(domains_come_and_go),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
