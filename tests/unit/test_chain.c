/* SPDX-License-Identifier: MIT */
/* test_chain.c - objects that are retired by RCU and by hazard pointers in turn, several times, until they are freed.
 *
 * An object is unlinked from the first place; a callback after the first wait unlinks it from the second
 * place; one after the second wait from the third; one after the third frees it.  The waits are
 * call_rcu() and call_hazptr() in turn, beginning with either, and the readers of each place are of the kind
 * that is waited for.  So a reader in place k sees stages up to k, never k + 1.
 *
 * To drain a chain of waits by hand takes one barrier for each, in the order of the waits; quiesce_shutdown()
 * does it whatever the order.
 */
#include <quiesce/hazptr.h>

#include "testing.h"

enum { WAITS = 3, FREED = WAITS };

struct object {
	struct rcu_head rcu;
	struct hazptr_head hazptr;
	int first_is_hazptr; /* wait 0 is call_hazptr() */
	int stage;           /* waits that are over */
	struct object **place; /* one pointer for each of the WAITS places; NULL: not in that place */
};

static int nr_freed;

static void next_wait(struct object *o);

/* Count a wait that has ended, and begin the object's next one. */
static void passed(struct object *o)
{
	quiesce_fetch_add_relaxed(&o->stage, 1); /* Relaxed: its readers are ordered by the wait. */
	if (o->stage == FREED)
		count_up(&nr_freed);
	else
		next_wait(o);
}

static void passed_rcu(struct rcu_head *head)
{
	passed((struct object *)(void *)((char *)head - offsetof(struct object, rcu)));
}

static void passed_hazptr(struct hazptr_head *head)
{
	passed((struct object *)(void *)((char *)head - offsetof(struct object, hazptr)));
}

static int is_hazptr(const struct object *o, int stage)
{
	return (stage + o->first_is_hazptr) % 2;
}

/* Unlink from the place of this stage, then wait. */
static void next_wait(struct object *o)
{
	struct object *expected = o;

	if (o->place)
		(void)rcu_try_cmpxchg_pointer(&o->place[o->stage], &expected, NULL); /* another may be there by now */
	if (is_hazptr(o, o->stage))
		call_hazptr(&o->hazptr, passed_hazptr);
	else
		call_rcu(&o->rcu, passed_rcu);
}

static void object_init(struct object *o, int first_is_hazptr, struct object **place)
{
	*o = (struct object){ .first_is_hazptr = first_is_hazptr, .place = place };
}

static int stage_of(struct object *o)
{
	return flag_get(&o->stage);
}

/* ---- one object, one barrier after another ---- */

static void barrier_of(struct object *o, int stage)
{
	if (is_hazptr(o, stage))
		hazptr_barrier();
	else
		rcu_barrier();
}

static void drained_by_barriers(int first_is_hazptr)
{
	struct object o;

	object_init(&o, first_is_hazptr, NULL);
	next_wait(&o);
	for (int stage = 0; stage < WAITS; stage++) {
		barrier_of(&o, stage);
		assert_true(stage_of(&o) > stage);
	}
	assert_int_equal(stage_of(&o), FREED);
}

static void a_barrier_for_each_wait_drains(void **state)
{
	(void)state;
	drained_by_barriers(0);
	drained_by_barriers(1);
}

static void shutdown_drains_in_one_call(void **state)
{
	struct object o[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		object_init(&o[i], i, NULL);
		next_wait(&o[i]);
	}
	assert_int_equal(quiesce_shutdown(0), 0);
	assert_int_equal(stage_of(&o[0]), FREED);
	assert_int_equal(stage_of(&o[1]), FREED);
}

/* ---- readers that stay ---- */

/* The reader delays wait @stage: all stages before it are drained, none from it on. */
static void stopped_at(struct object *o, int stage)
{
	do
		assert_int_equal(quiesce_shutdown(20000000), -ETIMEDOUT);
	while (stage_of(o) < stage);
	assert_int_equal(quiesce_shutdown(20000000), -ETIMEDOUT);
	assert_int_equal(stage_of(o), stage);
}

static void a_slot_stops_the_chain(int first_is_hazptr, int stage)
{
	struct object o, *place[WAITS] = { &o, &o, &o };
	hazptr_t *slot = hazptr_alloc(NULL);

	object_init(&o, first_is_hazptr, place);
	assert_ptr_equal(hazptr_protect(slot, &place[stage], hazptr), &o);
	next_wait(&o);
	stopped_at(&o, stage);
	hazptr_free(NULL, slot);
	assert_int_equal(quiesce_shutdown(0), 0);
	assert_int_equal(stage_of(&o), FREED);
}

static void a_section_stops_the_chain(int first_is_hazptr, int stage)
{
	struct object o;
	struct held h;

	object_init(&o, first_is_hazptr, NULL);
	held_begin(&h, &o.stage);
	next_wait(&o);
	stopped_at(&o, stage);
	held_end(&h);
	assert_int_equal(h.seen, stage);
	assert_int_equal(quiesce_shutdown(0), 0);
	assert_int_equal(stage_of(&o), FREED);
}

/* A slot that is set before the chain begins protects it at its first call_hazptr(), wherever that is. */
static void readers_stop_the_chain_at_their_wait(void **state)
{
	(void)state;
	a_slot_stops_the_chain(1, 0);
	a_slot_stops_the_chain(0, 1);
	a_section_stops_the_chain(0, 0);
	a_section_stops_the_chain(1, 1);
}

/* The reader delays the last wait of hazptr, rcu, hazptr: its slot is set when the first has ended. */
static void a_slot_in_the_last_place_stops_the_last_wait(void **state)
{
	struct object o, *place[WAITS] = { &o, &o, &o };
	hazptr_t *slot = hazptr_alloc(NULL);
	struct held h;

	(void)state;
	object_init(&o, 1, place);
	held_begin(&h, &o.stage);
	next_wait(&o);
	stopped_at(&o, 1);
	assert_null(hazptr_protect(slot, &place[0], hazptr));
	assert_ptr_equal(hazptr_protect(slot, &place[2], hazptr), &o);
	held_end(&h);
	stopped_at(&o, 2);
	hazptr_free(NULL, slot);
	assert_int_equal(quiesce_shutdown(0), 0);
	assert_int_equal(stage_of(&o), FREED);
}

/* ---- callbacks that are under way ---- */

static sem_t inside_callback;
static int shutdown_begins;
static struct object slow_object;

static void slow_callback(struct hazptr_head *head)
{
	sem_post(&inside_callback);
	wait_until(flag_get(&shutdown_begins));
	for (int i = 0; i < 100; i++)
		short_rest(); /* this gives a shutdown that misses the object time to return */
	passed_hazptr(head);
}

static void *retire_slow(void *unused)
{
	call_hazptr(&slow_object.hazptr, slow_callback);
	return unused;
}

/* The worker is in a callback of call_hazptr(), and nothing else is queued; then the callback queues more. */
static void shutdown_waits_for_callbacks_under_way(void **state)
{
	pthread_t thread;

	(void)state;
	sem_init(&inside_callback, 0, 0);
	object_init(&slow_object, 1, NULL);
	thread_must(pthread_create(&thread, NULL, retire_slow, NULL));
	pthread_join(thread, NULL);
	wait_for(&inside_callback);
	flag_set(&shutdown_begins);
	assert_int_equal(quiesce_shutdown(0), 0);
	assert_int_equal(stage_of(&slow_object), FREED);
}

/* ---- all at once ---- */

enum { NR_OBJECTS = 20000, NR_CHAINS = 4, NR_READERS = 3, NR_UPDATERS = 2, ENOUGH = 1000 };
static struct object pool[NR_OBJECTS];
static struct object *chain[NR_CHAINS][WAITS]; /* odd ones begin with call_hazptr() */
static uint32_t nr_used;
static uint64_t nr_wrong, nr_seen[WAITS];

static int check_stage(struct object *o, int stage)
{
	if (!o)
		return 0;
	if (stage_of(o) > stage)
		count_up(&nr_wrong);
	return 1;
}

static int read_place(hazptr_t *slot, int c, int stage)
{
	struct object **where = &chain[c][stage], *o;
	int seen;

	if ((stage + c) % 2) {
		o = hazptr_protect(slot, where, hazptr);
		seen = check_stage(o, stage);
		check_stage(o, stage);
		hazptr_clear(slot);
		return seen;
	}
	rcu_read_lock();
	o = rcu_dereference(*where);
	seen = check_stage(o, stage);
	check_stage(o, stage);
	rcu_read_unlock();
	return seen;
}

static void *reader_main(void *unused)
{
	hazptr_t *slot = hazptr_alloc(NULL);
	uint32_t seen[WAITS] = { 0 };

	for (uint32_t i = 0; seen[0] < ENOUGH || quiesce_load_relaxed(&nr_used) < NR_OBJECTS; i++) {
		int stage = (int)(i % WAITS);

		seen[stage] += (uint32_t)read_place(slot, (int)(i / WAITS % NR_CHAINS), stage);
	}
	for (int stage = 0; stage < WAITS; stage++)
		quiesce_fetch_add_relaxed(&nr_seen[stage], seen[stage]);
	hazptr_free(NULL, slot);
	return unused;
}

/* Link the object into all places; the one that was in the first begins its waits. */
static void link_new(struct object *o, int c)
{
	struct object *old;

	object_init(o, c % 2, chain[c]);
	for (int stage = WAITS - 1; stage > 0; stage--)
		(void)rcu_xchg_pointer(&chain[c][stage], o);
	old = rcu_xchg_pointer(&chain[c][0], o);
	if (old)
		next_wait(old);
}

static void *updater_main(void *unused)
{
	uint32_t i;

	while ((i = quiesce_fetch_add_relaxed(&nr_used, 1u)) < NR_OBJECTS) {
		link_new(&pool[i], (int)(i % NR_CHAINS));
		if (i % 64 == 0)
			short_rest();
	}
	return unused;
}

static void readers_see_no_stage_but_theirs(void **state)
{
	pthread_t thread[NR_READERS + NR_UPDATERS];

	(void)state;
	nr_freed = 0;
	for (int i = 0; i < NR_READERS + NR_UPDATERS; i++)
		thread_must(pthread_create(&thread[i], NULL, i < NR_READERS ? reader_main : updater_main, NULL));
	threads_end(thread, NR_READERS + NR_UPDATERS);
	for (int c = 0; c < NR_CHAINS; c++)
		next_wait(chain[c][0]);
	assert_int_equal(quiesce_shutdown(0), 0);
	assert_int_equal(nr_wrong, 0);
	assert_int_equal(nr_freed, NR_OBJECTS);
	for (int i = 0; i < NR_OBJECTS; i++)
		assert_int_equal(stage_of(&pool[i]), FREED);
	for (int stage = 0; stage < WAITS; stage++)
		assert_true(nr_seen[stage] > 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(a_barrier_for_each_wait_drains),
		TEST(shutdown_drains_in_one_call),
		TEST(readers_stop_the_chain_at_their_wait),
		TEST(a_slot_in_the_last_place_stops_the_last_wait),
		TEST(shutdown_waits_for_callbacks_under_way),
		TEST(readers_see_no_stage_but_theirs),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
