/* SPDX-License-Identifier: MIT */
/* test_rcu.c - sections, grace periods and cookies, by handshake and never by timing. */
#include "testing.h"

#include <sys/mman.h>

static void stop_the_worker(void)
{
	assert_int_equal(quiesce_shutdown(0), 0);
	assert_int_equal(stats_now().worker_running, 0);
}

/* ---- readers ---- */

static void sections_nest(void **state)
{
	(void)state;
	assert_false(rcu_read_lock_held());
	for (int i = 0; i < 100; i++) {
		rcu_read_lock();
		assert_true(rcu_read_lock_held());
	}
	for (int i = 0; i < 100; i++) {
		assert_true(rcu_read_lock_held());
		rcu_read_unlock();
	}
	assert_false(rcu_read_lock_held());
}

static void pointers_are_published(void **state)
{
	static int one = 1, two = 2, three = 3;
	int *p, *expected;

	(void)state;
	RCU_INIT_POINTER(p, NULL);
	assert_null(rcu_access_pointer(p));
	rcu_assign_pointer(p, &one);
	assert_ptr_equal(rcu_dereference(p), &one);
	assert_ptr_equal(rcu_xchg_pointer(&p, &two), &one);
	expected = &one;
	assert_false(rcu_try_cmpxchg_pointer(&p, &expected, &three));
	assert_ptr_equal(expected, &two);
	assert_true(rcu_try_cmpxchg_pointer(&p, &expected, &three));
	assert_ptr_equal(rcu_dereference(p), &three);
	assert_ptr_equal(rcu_cmpxchg_pointer(&p, &one, &two), &three);
	assert_ptr_equal(rcu_access_pointer(p), &three);
	assert_ptr_equal(rcu_cmpxchg_pointer(&p, &three, &two), &three);
	assert_ptr_equal(rcu_dereference_protected(p, 1), &two);
	assert_ptr_equal(rcu_replace_pointer(p, &one, 1), &two);
	assert_ptr_equal(rcu_dereference_check(p, 1), &one);
	rcu_read_lock();
	assert_ptr_equal(rcu_dereference_check(p, 0), &one);
	rcu_read_unlock();
}

static void *read_once(void *arg)
{
	(void)arg;
	rcu_read_lock();
	rcu_read_unlock();
	return NULL;
}

static void threads_register_and_leave(void **state)
{
	uint32_t before = stats_now().readers;
	struct held h;
	pthread_t thread;

	(void)state;
	held_begin(&h, NULL);
	assert_int_equal(stats_now().readers, before + 1);
	held_end(&h);
	assert_int_equal(stats_now().readers, before);
	thread_must(pthread_create(&thread, NULL, read_once, NULL));
	pthread_join(thread, NULL);
	assert_int_equal(stats_now().readers, before);
}

/* Registration blocks signals for a moment; the thread must get its own mask back. */
static void *first_read_with_a_mask(void *unused)
{
	sigset_t mine, then;

	(void)unused;
	sigemptyset(&mine);
	sigaddset(&mine, SIGUSR2);
	pthread_sigmask(SIG_SETMASK, &mine, NULL);
	rcu_read_lock();
	rcu_read_unlock();
	pthread_sigmask(SIG_SETMASK, NULL, &then);
	for (int sig = 1; sig < NSIG; sig++)
		if (sigismember(&mine, sig) != sigismember(&then, sig))
			return (void *)1;
	return NULL;
}

static void registration_keeps_the_signal_mask(void **state)
{
	pthread_t thread;
	void *bad;

	(void)state;
	thread_must(pthread_create(&thread, NULL, first_read_with_a_mask, NULL));
	pthread_join(thread, &bad);
	assert_null(bad);
}

/* ---- grace periods ---- */

struct updater {
	pthread_t thread;
	void (*wait)(void);
	uint32_t tid;
	int done;
};

static void *updater_main(void *arg)
{
	struct updater *u = arg;

	quiesce_store_relaxed(&u->tid, (uint32_t)my_tid()); /* Relaxed: the thread publishes its own id. */
	u->wait();
	flag_set(&u->done);
	return NULL;
}

static void updater_begin(struct updater *u, void (*wait)(void))
{
	*u = (struct updater){ .wait = wait };
	thread_must(pthread_create(&u->thread, NULL, updater_main, u));
}

static void wait_plain(void)
{
	synchronize_rcu();
}

static void wait_expedited(void)
{
	synchronize_rcu_expedited();
}

/* Begin a wait and return when it sleeps for a reader. */
static void updater_sleeps(struct updater *u, void (*wait)(void))
{
	uint64_t sleeps = stats_now().sleeps;

	updater_begin(u, wait);
	wait_until(stats_now().sleeps > sleeps);
}

static void waits_for_an_earlier_reader(void (*wait)(void))
{
	struct updater u = { .done = 0 };
	struct held h;

	stop_the_worker();
	held_begin(&h, &u.done);
	updater_sleeps(&u, wait);
	held_end(&h);
	pthread_join(u.thread, NULL);
	assert_int_equal(h.seen, 0);
	assert_int_equal(u.done, 1);
}

static void synchronize_waits_for_an_earlier_reader(void **state)
{
	(void)state;
	waits_for_an_earlier_reader(wait_plain);
}

static void expedited_waits_for_an_earlier_reader(void **state)
{
	(void)state;
	waits_for_an_earlier_reader(wait_expedited);
}

static void waits_for_each_of_many_readers(void **state)
{
	enum { N = 20 };
	static struct held h[N];
	struct updater u = { .done = 0 };

	(void)state;
	for (int i = 0; i < N; i++)
		held_begin(&h[i], &u.done);
	updater_sleeps(&u, wait_plain);
	for (int i = 0; i < N; i++)
		held_end(&h[(i * 7) % N]);
	pthread_join(u.thread, NULL);
	for (int i = 0; i < N; i++)
		assert_int_equal(h[i].seen, 0);
}

/* A hang here would mean that the updater waited for the section that began after its call. */
static void does_not_wait_for_a_later_reader(void **state)
{
	struct held earlier, later;
	struct updater u;

	(void)state;
	held_begin(&earlier, NULL);
	updater_sleeps(&u, wait_plain);
	held_begin(&later, NULL);
	held_end(&earlier);
	pthread_join(u.thread, NULL);
	held_end(&later);
}

static void does_not_wait_for_idle_threads(void **state)
{
	struct held h;
	uint64_t sleeps;

	(void)state;
	held_begin(&h, NULL);
	held_end(&h);
	sleeps = stats_now().sleeps;
	synchronize_rcu();
	synchronize_rcu_expedited();
	assert_int_equal(stats_now().sleeps, sleeps);
}

static void an_inner_unlock_does_not_end_the_section(void **state)
{
	struct updater u;
	uint64_t sleeps;

	(void)state;
	stop_the_worker();
	rcu_read_lock();
	rcu_read_lock();
	updater_sleeps(&u, wait_plain);
	rcu_read_unlock();
	for (int i = 0; i < 100; i++) {
		rcu_read_lock();
		rcu_read_unlock();
	}
	sleeps = stats_now().sleeps; /* let it scan again */
	wait_until(stats_now().sleeps > sleeps + 1 || flag_get(&u.done));
	assert_int_equal(flag_get(&u.done), 0);
	rcu_read_unlock();
	pthread_join(u.thread, NULL);
}

static int asleep(const struct updater *u)
{
	uint32_t tid = quiesce_load_relaxed(&u->tid); /* Relaxed: any time will do. */

	return tid && thread_state((pid_t)tid) == 'S';
}

static int all_asleep(const struct updater *u, int n)
{
	for (int i = 0; i < n; i++)
		if (!asleep(&u[i]))
			return 0;
	return 1;
}

/* One runs while the reader is inside; the others queue up behind it and share the next.  True, if they do: one that finds
 * the leader late goes on alone. */
static int share_round(void)
{
	enum { N = 8 };
	struct updater u[N];
	struct held h;
	uint64_t before, nr;

	held_begin(&h, NULL);
	before = stats_now().grace_periods;
	for (int i = 0; i < N; i++)
		updater_begin(&u[i], i % 2 ? wait_plain : wait_expedited);
	wait_until(all_asleep(u, N) && all_asleep(u, N));
	assert_int_equal(stats_now().grace_periods, before);
	held_end(&h);
	for (int i = 0; i < N; i++)
		pthread_join(u[i].thread, NULL);
	nr = stats_now().grace_periods - before;
	assert_in_range(nr, 1, N);
	return nr <= 2;
}

static void callers_share_grace_periods(void **state)
{
	int shared = 0;

	(void)state;
	stop_the_worker();
	for (int i = 0; i < 100 && !shared; i++) /* in an emulator the leader is late in most rounds */
		shared = share_round();
	assert_true(shared);
}

static void one_membarrier_per_grace_period(void **state)
{
	struct quiesce_stats before, after;
	struct updater u;
	struct held h[3];

	(void)state;
	stop_the_worker();
	before = stats_now();
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < 3; i++)
			held_begin(&h[i], NULL);
		updater_sleeps(&u, wait_plain);
		wait_until(stats_now().sleeps > before.sleeps + 3);
		for (int i = 0; i < 3; i++)
			held_end(&h[i]);
		pthread_join(u.thread, NULL);
		synchronize_rcu();
	}
	after = stats_now();
	assert_int_equal(after.grace_periods - before.grace_periods, 10);
	assert_int_equal(after.membarriers - before.membarriers, quiesce_fence() == QUIESCE_FENCE_LIGHT ? 10 : 0);
}

/* The updater requests a wake-up in each scan, and the reader still wakes it.  The updater may
 * be awake just then and need no wake-up, but not for ever. */
static void a_reader_asked_again_still_wakes(void **state)
{
	uint64_t wakeups = stats_now().wakeups;

	(void)state;
	while (stats_now().wakeups == wakeups) {
		struct updater u;
		struct held h;
		uint64_t sleeps;

		held_begin(&h, NULL);
		updater_sleeps(&u, wait_plain);
		sleeps = stats_now().sleeps;
		wait_until(stats_now().sleeps > sleeps + 2);
		held_end(&h);
		pthread_join(u.thread, NULL);
	}
}

/* While readers are to yield, all take the slow half of their unlock, and entries of others are on the same cache line. */
static void readers_that_are_not_awaited_write_to_no_entry(void **state)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	void *entries;

	(void)state;
	stop_the_worker();
	read_once(NULL);
	entries = (void *)((uintptr_t)quiesce_tls_v1.reader & ~(page - 1));
	assert_non_null(entries);
	assert_int_equal(mprotect(entries, page, PROT_READ), 0);
	quiesce_fetch_add_relaxed(&quiesce_rcu_v1.gp, QUIESCE_RCU_SLOW);
	for (int i = 0; i < 10; i++)
		read_once(NULL);
	quiesce_fetch_add_relaxed(&quiesce_rcu_v1.gp, -QUIESCE_RCU_SLOW);
	assert_int_equal(mprotect(entries, page, PROT_READ | PROT_WRITE), 0);
}

/* ---- cookies ---- */

static void *poll_unregistered(void *arg)
{
	uint32_t readers = stats_now().readers;
	struct rcu_gp_seq seq = get_state_synchronize_rcu();

	while (!poll_state_synchronize_rcu(seq))
		short_rest();
	seq = start_poll_synchronize_rcu();
	while (!poll_state_synchronize_rcu(seq))
		short_rest();
	cond_synchronize_rcu(get_state_synchronize_rcu());
	*(int *)arg = stats_now().readers == readers;
	return NULL;
}

static void cookies_work_in_unregistered_threads(void **state)
{
	int unregistered = 0;
	pthread_t thread;

	(void)state;
	thread_must(pthread_create(&thread, NULL, poll_unregistered, &unregistered));
	pthread_join(thread, NULL);
	assert_true(unregistered);
}

static void completed_and_equal_cookies(void **state)
{
	struct rcu_gp_seq done = get_completed_synchronize_rcu(), a, b;

	(void)state;
	stop_the_worker();
	assert_true(poll_state_synchronize_rcu(done));
	a = get_state_synchronize_rcu();
	b = get_state_synchronize_rcu();
	assert_true(same_state_synchronize_rcu(a, b));
	assert_false(same_state_synchronize_rcu(a, done));
	synchronize_rcu();
	assert_false(same_state_synchronize_rcu(a, get_state_synchronize_rcu()));
	assert_true(poll_state_synchronize_rcu(a));
	assert_true(poll_state_synchronize_rcu(b));
}

static void a_fresh_cookie_has_not_completed(void **state)
{
	struct rcu_gp_seq seq;
	uint64_t before;

	(void)state;
	stop_the_worker();
	before = stats_now().grace_periods;
	rcu_read_lock(); /* inside, a poll runs no grace period */
	seq = get_state_synchronize_rcu();
	assert_false(poll_state_synchronize_rcu(seq));
	rcu_read_unlock();
	assert_int_equal(stats_now().grace_periods, before);
	assert_true(poll_state_synchronize_rcu(seq)); /* the poll itself runs one */
	assert_int_equal(stats_now().grace_periods, before + 1);
}

/* The grace period that ran when the cookie was taken may have missed the caller's update. */
static void a_running_grace_period_does_not_complete_a_cookie(void **state)
{
	struct rcu_gp_seq seq;
	struct updater u;
	struct held h;

	(void)state;
	stop_the_worker();
	held_begin(&h, NULL);
	updater_sleeps(&u, wait_plain);
	seq = get_state_synchronize_rcu();
	held_end(&h);
	pthread_join(u.thread, NULL);
	rcu_read_lock();
	assert_false(poll_state_synchronize_rcu(seq));
	rcu_read_unlock();
	synchronize_rcu();
	assert_true(poll_state_synchronize_rcu(seq));
}

static void a_cookie_does_not_complete_in_its_own_section(void **state)
{
	struct rcu_gp_seq seq;
	uint64_t sleeps = stats_now().sleeps;

	(void)state;
	rcu_read_lock();
	seq = start_poll_synchronize_rcu();
	wait_until(stats_now().sleeps > sleeps); /* the worker waits for this section */
	assert_false(poll_state_synchronize_rcu(seq));
	rcu_read_unlock();
	wait_until(poll_state_synchronize_rcu(seq));
}

/* Without a worker the poll tries a grace period itself, which must not overlook a section. */
static void a_poll_waits_for_readers_of_others(void **state)
{
	struct rcu_gp_seq seq;
	struct held h;

	(void)state;
	stop_the_worker();
	held_begin(&h, NULL);
	seq = get_state_synchronize_rcu();
	for (int i = 0; i < 100; i++)
		assert_false(poll_state_synchronize_rcu(seq));
	held_end(&h);
	assert_true(poll_state_synchronize_rcu(seq));
}

static void cond_synchronize_waits_only_if_needed(void **state)
{
	struct rcu_gp_seq seq;
	uint64_t before;

	(void)state;
	stop_the_worker();
	seq = get_state_synchronize_rcu();
	before = stats_now().grace_periods;
	cond_synchronize_rcu(seq);
	assert_int_equal(stats_now().grace_periods, before + 1);
	cond_synchronize_rcu(seq);
	cond_synchronize_rcu(get_completed_synchronize_rcu());
	assert_int_equal(stats_now().grace_periods, before + 1);
}

static struct rcu_gp_seq wanted;

static void wait_cond(void)
{
	cond_synchronize_rcu(wanted);
}

static void cond_synchronize_waits_for_an_earlier_reader(void **state)
{
	struct updater u = { .done = 0 };
	struct held h;

	(void)state;
	stop_the_worker();
	wanted = get_state_synchronize_rcu();
	held_begin(&h, &u.done);
	updater_sleeps(&u, wait_cond);
	held_end(&h);
	pthread_join(u.thread, NULL);
	assert_int_equal(h.seen, 0);
	assert_true(poll_state_synchronize_rcu(wanted));
}

/* ---- settings ---- */

static void fences_are_fixed_after_first_use(void **state)
{
	(void)state;
	read_once(NULL);
	synchronize_rcu();
	assert_int_not_equal(quiesce_fence(), QUIESCE_FENCE_AUTO);
	assert_int_equal(quiesce_set_fence(QUIESCE_FENCE_FULL), -EBUSY);
	assert_int_equal(quiesce_set_fence((enum quiesce_fence)77), -EINVAL);
	assert_string_equal(quiesce_version(), QUIESCE_VERSION);
}

static void stats_of_an_older_program_are_shorter(void **state)
{
	unsigned char bytes[24];

	(void)state;
	memset(bytes, 0xa5, sizeof bytes);
	quiesce_get_stats((struct quiesce_stats *)(void *)bytes, 8);
	for (size_t i = 8; i < sizeof bytes; i++)
		assert_int_equal(bytes[i], 0xa5);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(sections_nest),
		TEST(pointers_are_published),
		TEST(threads_register_and_leave),
		TEST(synchronize_waits_for_an_earlier_reader),
		TEST(expedited_waits_for_an_earlier_reader),
		TEST(waits_for_each_of_many_readers),
		TEST(does_not_wait_for_a_later_reader),
		TEST(does_not_wait_for_idle_threads),
		TEST(an_inner_unlock_does_not_end_the_section),
		TEST(callers_share_grace_periods),
		TEST(one_membarrier_per_grace_period),
		TEST(registration_keeps_the_signal_mask),
		TEST(a_reader_asked_again_still_wakes),
		TEST(readers_that_are_not_awaited_write_to_no_entry),
		TEST(cookies_work_in_unregistered_threads),
		TEST(completed_and_equal_cookies),
		TEST(a_fresh_cookie_has_not_completed),
		TEST(a_running_grace_period_does_not_complete_a_cookie),
		TEST(a_cookie_does_not_complete_in_its_own_section),
		TEST(a_poll_waits_for_readers_of_others),
		TEST(cond_synchronize_waits_only_if_needed),
		TEST(cond_synchronize_waits_for_an_earlier_reader),
		TEST(fences_are_fixed_after_first_use),
		TEST(stats_of_an_older_program_are_shorter),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
