/* SPDX-License-Identifier: MIT */
/* test_hazptr_fork.c - hazard pointers across forks: which slots protect, which objects are reclaimed, and none twice. */
#include "children.h"
#include "hazptr_holders.h"

#define MANY 3000
static struct thing object[MANY];

static void all_works(void)
{
	must(hazptrs_work());
	must(quiesce_shutdown(0) == 0);
	must(stats_now().hazptr_retired == stats_now().hazptr_reclaimed);
	must(!stats_now().worker_running && !stats_now().scan_thread_running);
}

static void all_works_then_forks(void)
{
	all_works();
	must(worker_works());
	in_good_child(all_works);
	all_works();
}

static void a_child_and_its_child(void **state)
{
	(void)state;
	in_good_child(all_works_then_forks);
	assert_true(hazptrs_work());
	in_good_child(all_works_then_forks);
	assert_true(hazptrs_work());
}

/* ---- whose slots protect ---- */

enum { KEEPERS = 20 };

/* Callbacks of all objects retired in the parent run here, though the objects are protected there. */
static void slots_of_others_protect_nothing(void)
{
	synchronize_hazptr(SHAZPTR_WILDCARD);
	hazptr_barrier();
	must(things_run(object, MANY) == 2 * KEEPERS);
	all_works();
	must(things_run(object, MANY) == 2 * KEEPERS);
}

static void slots_of_others_stay_in_the_parent(void **state)
{
	static struct keeper k[KEEPERS];
	struct waiter w[2];

	(void)state;
	memset(object, 0, sizeof object);
	for (int i = 0; i < KEEPERS; i++)
		keeper_begin(&k[i], &object[2 * i], &object[2 * i + 1]);
	for (int i = 0; i < 2 * KEEPERS; i++)
		thing_retire(&object[i]);
	for (int i = 0; i < 2; i++)
		waiter_begin(&w[i], &object[i]);
	assert_true(waiter_is_blocked(&w[0]) && waiter_is_blocked(&w[1]));
	in_good_child(slots_of_others_protect_nothing);
	retire_plenty();
	assert_true(waiter_is_blocked(&w[0]) && waiter_is_blocked(&w[1]));
	assert_int_equal(things_run(object, MANY), 0);
	for (int i = 0; i < KEEPERS; i++)
		keeper_end(&k[i]);
	waiter_end(&w[0]);
	waiter_end(&w[1]);
	hazptr_barrier();
	assert_int_equal(things_run(object, MANY), 2 * KEEPERS);
}

enum { OWN = HAZPTR_SLOT_PER_CTX, POOL = 10, CONTEXTS = 3, IN_CTX = 4, HELD = OWN + POOL + CONTEXTS * IN_CTX };

static hazptr_t *held[HELD];
static struct hazptr_context contexts[CONTEXTS];

/* The held slots are the thread's own, some of the pool, some of contexts. */
static void hold(void)
{
	for (int i = 0; i < OWN + POOL; i++)
		held[i] = slot_with(NULL, &object[i]);
	for (int i = 0; i < CONTEXTS; i++) {
		must(init_hazptr_context(&contexts[i]) == 0);
		for (int k = OWN + POOL + i * IN_CTX; k < OWN + POOL + (i + 1) * IN_CTX; k++)
			held[k] = slot_with(&contexts[i], &object[k]);
	}
}

/* Each held slot protects its own object until it is cleared. */
static void let_go(void)
{
	for (int i = 0; i < HELD; i++)
		must(slot_value(held[i]) == (uintptr_t)&object[i]);
	for (int i = 0; i < HELD; i += 3)
		must(keeps(held[i], &object[i]));
	for (int i = 0; i < HELD; i++)
		hazptr_free(NULL, held[i]);
	for (int i = 0; i < HELD; i++)
		must(lets_go(&object[i]));
	for (int i = 0; i < CONTEXTS; i++)
		cleanup_hazptr_context(&contexts[i]);
	all_works();
}

static void take_more_then_let_go(void)
{
	hazptr_t *more[2 * HELD];

	for (int i = 0; i < 2 * HELD; i++) {
		more[i] = slot_with(NULL, &object[HELD + i]);
		for (int k = 0; k < HELD; k++)
			must(more[i] != held[k]);
	}
	all_works();
	for (int i = 0; i < 2 * HELD; i++)
		hazptr_free(NULL, more[i]);
	let_go();
}

static void each_generation_keeps(void)
{
	for (int i = 0; i < HELD; i += 5)
		must(keeps(held[i], &object[i]));
	for (int i = 0; i < HELD; i += 5)
		protect_in(held[i], &object[i]);
	in_good_child(take_more_then_let_go);
	let_go();
}

static void slots_of_the_forking_thread_protect_in_both(void **state)
{
	struct waiter w;

	(void)state;
	memset(object, 0, sizeof object);
	hold();
	in_good_child(let_go);
	in_good_child(take_more_then_let_go);
	in_good_child(each_generation_keeps);
	waiter_begin(&w, &object[0]); /* tagged slots, and requests of the parent */
	assert_true(waiter_is_blocked(&w));
	in_good_child(let_go);
	in_good_child(each_generation_keeps);
	assert_true(waiter_is_blocked(&w));
	hazptr_clear(held[0]);
	waiter_end(&w);
	protect_in(held[0], &object[0]);
	let_go();
}

/* ---- what is reclaimed ---- */

static int nr_retired, nr_cut; /* callbacks that are running when the process forks */

static void child_runs_the_rest(void)
{
	hazptr_barrier();
	must(things_run(object, MANY) == flag_get(&nr_retired) - nr_cut);
	all_works();
	must(things_run(object, MANY) == flag_get(&nr_retired) - nr_cut);
}

static void *retire_third(void *first)
{
	struct thing *t = first;

	for (int i = 0; i < MANY / 3; i++)
		thing_retire(&t[i]);
	return NULL;
}

static void *retire_third_and_stay(void *first)
{
	retire_third(first);
	sem_post(&((sem_t *)object[0].other.next)[0]);
	wait_for(&((sem_t *)object[0].other.next)[1]);
	return NULL;
}

/* Objects are in the queues of this thread, of one that has ended, and of one that the child does not have. */
static void retired_objects_run_in_parent_and_child(void **state)
{
	hazptr_t *slot = slot_with(NULL, &object[1]);
	pthread_t thread;
	sem_t sem[2];

	(void)state;
	memset(object, 0, sizeof object);
	sem_init(&sem[0], 0, 0);
	sem_init(&sem[1], 0, 0);
	object[0].other.next = (void *)sem;
	retire_third(object);
	in_thread(retire_third, object + MANY / 3);
	thread_must(pthread_create(&thread, NULL, retire_third_and_stay, object + MANY / 3 * 2));
	wait_for(&sem[0]);
	hazptr_clear(slot);
	nr_retired = MANY;
	nr_cut = 0;
	in_good_child(child_runs_the_rest);
	hazptr_barrier();
	assert_int_equal(things_run(object, MANY), MANY);
	sem_post(&sem[1]);
	pthread_join(thread, NULL);
	hazptr_free(NULL, slot);
}

/* The child has no worker yet: the next retirement starts one. */
static void one_more_is_enough(void)
{
	thing_retire(&object[MANY - 1]);
	wait_until(things_run(object, MANY) == MANY);
}

static void *one_more_in_a_thread(void *unused)
{
	thing_retire(&object[MANY - 1]);
	return unused;
}

static void one_more_of_a_new_thread_is_enough(void)
{
	pthread_t thread;

	thread_must(pthread_create(&thread, NULL, one_more_in_a_thread, NULL));
	pthread_join(thread, NULL);
	wait_until(things_run(object, MANY) == MANY);
}

static void the_child_has_a_worker_when_it_needs_one(void **state)
{
	hazptr_t *slot = slot_with(NULL, &object[1]);

	(void)state;
	memset(object, 0, sizeof object);
	for (int i = 0; i < MANY - 1; i++)
		thing_retire(&object[i]);
	hazptr_clear(slot);
	in_good_child(one_more_is_enough);
	in_good_child(one_more_of_a_new_thread_is_enough);
	hazptr_barrier();
	assert_int_equal(things_run(object, MANY), MANY - 1);
	hazptr_free(NULL, slot);
}

/* ---- a fork while a callback runs ---- */

static int slow_at = -1;
static sem_t slow_reached, slow_go;

static void run_or_wait(struct hazptr_head *head)
{
	if ((struct thing *)(void *)head - object == slow_at) {
		sem_post(&slow_reached);
		wait_for(&slow_go);
	}
	thing_run(head);
}

static void *retire_all(void *unused)
{
	for (int i = 0; i < MANY; i++) {
		count_up(&nr_retired);
		call_hazptr(&object[i].hazptr, run_or_wait);
	}
	return unused;
}

static void *retire_all_here(void *unused)
{
	for (int i = 0; i < MANY; i++) {
		count_up(&nr_retired);
		call_hazptr_inline(&object[i].hazptr, run_or_wait);
	}
	return unused;
}

static void *retire_all_and_wait(void *unused)
{
	retire_all(NULL);
	hazptr_barrier();
	return unused;
}

/* The callback that never ends counts as run in the child. */
static void forked_at(int i, void *(*fn)(void *))
{
	pthread_t thread;

	memset(object, 0, sizeof object);
	sem_init(&slow_reached, 0, 0);
	sem_init(&slow_go, 0, 0);
	slow_at = i;
	nr_cut = 1;
	quiesce_store_relaxed(&nr_retired, 0);
	thread_must(pthread_create(&thread, NULL, fn, NULL));
	wait_for(&slow_reached);
	in_good_child(child_runs_the_rest);
	sem_post(&slow_go);
	pthread_join(thread, NULL);
	hazptr_barrier();
	assert_int_equal(things_run(object, MANY), MANY);
	slow_at = -1;
}

static void fork_during_a_callback(void **state)
{
	(void)state;
	hazptr_barrier();
	forked_at(100, retire_all_here);           /* fork in a callback run by the retirer */
	forked_at(100, retire_all);                /* fork in one run by the helper or worker */
	forked_at(MANY - 1, retire_all);
	forked_at(MANY - 1, retire_all_and_wait);  /* fork in one run by a barrier */
	forked_at(MANY - 70, retire_all_and_wait);
}

/* ---- a reclaimer without callbacks delays no fork ---- */

enum { PROTECTED = 16 };

/* Return the shortest time of several forks, because the machine may be busy. */
static uint64_t fork_takes(void)
{
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < 5; i++) {
		uint64_t begun = now_ns();
		pid_t pid = fork();

		if (!pid)
			_exit(0);
		least = now_ns() - begun < least ? now_ns() - begun : least;
		waitpid(pid, NULL, 0);
	}
	return least;
}

static void forks_are_quick_while_objects_stay_protected(void **state)
{
	hazptr_t *slot[PROTECTED];

	(void)state;
	hazptr_barrier();
	for (int i = 0; i < PROTECTED; i++) {
		struct thing *t = malloc(sizeof *t);

		assert_non_null(t);
		slot[i] = slot_with(NULL, t);
		kfree_hazptr(t, hazptr); /* freed in the retiring thread; a callback would run in the helper */
	}
	retire_plenty();
	assert_true(stats_now().hazptr_retired >= stats_now().hazptr_reclaimed + PROTECTED);
	assert_true(fork_takes() < FORK_WAIT_MAX_NS);
	for (int i = 0; i < PROTECTED; i++)
		hazptr_free(NULL, slot[i]);
	hazptr_barrier();
	assert_int_equal(stats_now().hazptr_retired, stats_now().hazptr_reclaimed);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(a_child_and_its_child),
		TEST(slots_of_others_stay_in_the_parent),
		TEST(slots_of_the_forking_thread_protect_in_both),
		TEST(retired_objects_run_in_parent_and_child),
		TEST(the_child_has_a_worker_when_it_needs_one),
		TEST(fork_during_a_callback),
		TEST(forks_are_quick_while_objects_stay_protected),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
