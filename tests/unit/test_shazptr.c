/* SPDX-License-Identifier: MIT */
/* test_shazptr.c - guards: which guards a waiter waits for, wherever their slots are. */
#include "guards.h"

static int p_object, q_object, r_object;
static void *const p = &p_object, *const q = &q_object, *const r = &r_object;

/* Leave everything to the scan thread; then each wait counts as blocked. */
static int skips;

static void skip_self_scan(int on)
{
	skips = on;
	quiesce_set_skip_self_scan(on);
}

/* ---- one guard, one waiter ---- */

/* Hold @guarded, wait for @address, and check that the wait ends after the clear and not before. */
static void held_wait(const void *guarded, const void *address)
{
	struct shazptr_guard guard = shazptr_acquire(guarded);
	struct waiter w;
	int flag = 0;

	waiter_begin(&w, address, &flag);
	assert_waits(&w);
	flag_set(&flag);
	shazptr_clear(guard);
	waiter_end(&w);
	assert_int_equal(w.seen, 1);
}

static void a_wait_ends_after_the_clear(void **state)
{
	(void)state;
	held_wait(p, p);
}

/* There is no wildcard, and the scan thread makes all scans. */
static void a_specific_address_blocks_in_the_scan_thread_too(void **state)
{
	(void)state;
	skip_self_scan(1);
	held_wait(p, p);
	assert_int_equal(stats_now().scan_thread_running, 1);
	skip_self_scan(0);
}

static void a_wildcard_blocks_any_wait(void **state)
{
	(void)state;
	held_wait(SHAZPTR_WILDCARD, p);
	held_wait(SHAZPTR_WILDCARD, SHAZPTR_WILDCARD);
}

static void a_wait_for_the_wildcard_waits_for_any_guard(void **state)
{
	(void)state;
	held_wait(p, SHAZPTR_WILDCARD);
}

/* Programs use such addresses as marks of errors and ends of lists. */
static void no_number_near_zero_is_a_wildcard(void **state)
{
	uint64_t blocked = stats_now().shazptr_blocked;

	(void)state;
	for (intptr_t number = 1; number <= 4096; number *= 2) {
		struct shazptr_guard above = shazptr_acquire((void *)number), below = shazptr_acquire((void *)-number);

		synchronize_shazptr(q);
		shazptr_clear(below);
		shazptr_clear(above);
	}
	assert_int_equal(stats_now().shazptr_blocked, blocked);
}

static void other_addresses_are_not_waited_for(void **state)
{
	struct shazptr_guard guard = shazptr_acquire(p);
	uint64_t blocked = stats_now().shazptr_blocked;

	(void)state;
	synchronize_shazptr(q);
	synchronize_shazptr((char *)p + 1);
	synchronize_shazptr((char *)p + 3);
	assert_int_equal(stats_now().shazptr_blocked, blocked);
	skip_self_scan(1);
	synchronize_shazptr(q);
	synchronize_shazptr((char *)p + 1);
	skip_self_scan(0);
	shazptr_clear(guard);
}

static void waits_without_guards_return_at_once(void **state)
{
	uint64_t waits = stats_now().shazptr_waits, blocked = stats_now().shazptr_blocked;

	(void)state;
	synchronize_shazptr(p);
	synchronize_shazptr(SHAZPTR_WILDCARD);
	synchronize_shazptr(NULL); /* a wait for NULL is not even counted */
	assert_int_equal(stats_now().shazptr_waits, waits + 2);
	assert_int_equal(stats_now().shazptr_blocked, blocked);
}

static void an_empty_guard_protects_nothing(void **state)
{
	struct shazptr_guard guard = shazptr_acquire(NULL), none = { NULL, NULL };

	(void)state;
	assert_null(shazptr_ptr(guard));
	synchronize_shazptr(NULL);
	synchronize_shazptr(SHAZPTR_WILDCARD);
	shazptr_clear(guard);
	shazptr_clear(guard);
	shazptr_clear(none);
}

static void a_guard_knows_its_address(void **state)
{
	struct shazptr_guard guard = shazptr_acquire(p), copy = guard;

	(void)state;
	assert_ptr_equal(shazptr_ptr(guard), p);
	shazptr_clear(copy);
	synchronize_shazptr(p);
}

/* ---- nesting ---- */

static void nested_guards_block_their_own_address_only(void **state)
{
	struct shazptr_guard outer = shazptr_acquire(p), inner = shazptr_acquire(q);
	struct waiter w[2];

	(void)state;
	synchronize_shazptr(r);
	waiter_begin(&w[0], p, NULL);
	waiter_begin(&w[1], q, NULL);
	assert_all_wait(w);
	synchronize_shazptr(r);
	shazptr_clear(inner);
	waiter_end(&w[1]);
	assert_waits(&w[0]);
	inner = shazptr_acquire(q); /* takes the slot of the other guard */
	shazptr_clear(outer);
	waiter_end(&w[0]);
	waiter_begin(&w[1], q, NULL);
	assert_waits(&w[1]);
	shazptr_clear(inner);
	waiter_end(&w[1]);
}

static void two_guards_of_one_address_are_two(void **state)
{
	struct shazptr_guard first = shazptr_acquire(p), second = shazptr_acquire(p);
	struct waiter w;

	(void)state;
	assert_ptr_not_equal(first.slot, second.slot);
	waiter_begin(&w, p, NULL);
	shazptr_clear(first);
	assert_waits(&w);
	shazptr_clear(second);
	waiter_end(&w);
}

/* Three guards are cleared in the order @order: each clear completes its own waiter. */
static void clear_in_order(const int order[3])
{
	void *const object[3] = { p, q, r };
	struct shazptr_guard guard[3];
	struct waiter w[3];

	for (int i = 0; i < 3; i++)
		guard[i] = shazptr_acquire(object[i]);
	for (int i = 0; i < 3; i++)
		waiter_begin(&w[i], object[i], NULL);
	for (int i = 0; i < 3; i++) {
		assert_waits(&w[order[i]]);
		shazptr_clear(guard[order[i]]);
		waiter_end(&w[order[i]]);
	}
}

static void guards_are_cleared_in_any_order(void **state)
{
	static const int orders[6][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 }, { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };

	(void)state;
	for (int i = 0; i < 6; i++)
		clear_in_order(orders[i]);
}

static void a_wildcard_may_be_nested(void **state)
{
	struct shazptr_guard guard = shazptr_acquire(p), wild;
	struct waiter w;

	(void)state;
	wild = shazptr_acquire(SHAZPTR_WILDCARD);
	waiter_begin(&w, q, NULL);
	assert_waits(&w);
	shazptr_clear(wild);
	waiter_end(&w);
	shazptr_clear(guard);
	synchronize_shazptr(p);
}

/* ---- where slots live ---- */

/* Check that the scan finds the guard that @actor has at @place. */
static void check_placed(struct actor *actor, struct placement *at)
{
	uint64_t blocked;
	struct waiter w[2];

	actor_do(actor, do_place, at);
	assert_true(at->nr_fillers < MAX_FILLERS);
	waiter_begin(&w[0], p, NULL);
	waiter_begin(&w[1], SHAZPTR_WILDCARD, NULL);
	assert_all_wait(w);
	blocked = stats_now().shazptr_blocked;
	if (at->ptr == p) {
		synchronize_shazptr(q);
		assert_int_equal(stats_now().shazptr_blocked, blocked + skips);
	}
	actor_do(actor, do_clear_placed, at);
	waiter_end(&w[0]);
	waiter_end(&w[1]);
}

static void in_every_place(const void *ptr)
{
	struct actor settler[MAX_SETTLERS], actor;
	int nr_settlers;
	static struct placement at;
	enum quiesce_slots places[3];
	int nr = kinds_of_places(places);

	nr_settlers = settlers_begin(settler);
	actor_begin(&actor);
	for (int i = 0; i < nr; i++)
		for (at.skip = 0; at.skip < 2; at.skip++) {
			at.ptr = ptr;
			at.place = places[i];
			check_placed(&actor, &at);
		}
	actor_end(&actor);
	settlers_end(settler, nr_settlers);
}

static void a_guard_blocks_wherever_its_slot_is(void **state)
{
	(void)state;
	in_every_place(p);
}

static void a_wildcard_blocks_wherever_its_slot_is(void **state)
{
	(void)state;
	in_every_place(SHAZPTR_WILDCARD);
}

/* The scan thread alone finds guards in each kind of slot, too. */
static void the_scan_thread_finds_guards_wherever_they_are(void **state)
{
	(void)state;
	skip_self_scan(1);
	in_every_place(p);
	in_every_place(SHAZPTR_WILDCARD);
	skip_self_scan(0);
}

/* ---- many at once ---- */

#define NR_ACTORS 12
#define NR_GUARDS 70 /* more guards than the block of an id has slots */
#define NR_PROBES 6

static char objects[NR_ACTORS * NR_GUARDS];
static struct shazptr_guard guards[NR_ACTORS * NR_GUARDS];

/* Guard the objects from the one at @arg on. */
static void do_guard_many(void *arg)
{
	char *first = arg;
	struct shazptr_guard *guard = guards + (first - objects);

	for (int i = 0; i < NR_GUARDS; i++)
		guard[i] = shazptr_acquire(first + i);
}

/* All of @objects are guarded.  Clear all but some, then those: each clear completes its own waiter. */
static void each_blocks_its_own(void)
{
	const int nr = NR_ACTORS * NR_GUARDS, step = nr / NR_PROBES;
	struct waiter w[NR_PROBES];

	for (int i = 0; i < NR_PROBES; i++)
		waiter_begin(&w[i], objects + i * step + i, NULL);
	synchronize_shazptr(p);
	assert_all_wait(w);
	for (int i = 0; i < nr; i++)
		if (i % step != i / step)
			shazptr_clear(guards[i]);
	assert_all_wait(w);
	for (int i = 0; i < NR_PROBES; i++) {
		synchronize_shazptr(objects + i * step + i + 1);
		assert_int_equal(flag_get(&w[i].returned), 0);
		shazptr_clear(guards[i * step + i]);
		waiter_end(&w[i]);
	}
	synchronize_shazptr(SHAZPTR_WILDCARD);
}

static void all_have_slots_of_their_own(void)
{
	const int nr = NR_ACTORS * NR_GUARDS;

	for (int i = 0; i < nr; i++)
		for (int k = 0; k < i; k++)
			if (guards[i].slot == guards[k].slot)
				fail_msg("guards %d and %d are in one slot", k, i);
}

static void many_guards_of_one_thread(void **state)
{
	struct actor settler[MAX_SETTLERS], actor;
	int nr_settlers;

	(void)state;
	nr_settlers = settlers_begin(settler);
	actor_begin(&actor);
	for (int i = 0; i < NR_ACTORS; i++)
		actor_do(&actor, do_guard_many, objects + i * NR_GUARDS);
	all_have_slots_of_their_own();
	each_blocks_its_own();
	actor_end(&actor);
	settlers_end(settler, nr_settlers);
	assert_int_equal(stats_now().fallback_guards, 0);
}

static void many_guards_of_many_threads(void **state)
{
	struct actor actor[NR_ACTORS];

	(void)state;
	for (int i = 0; i < NR_ACTORS; i++) {
		actor_begin(&actor[i]);
		actor_do(&actor[i], do_guard_many, objects + i * NR_GUARDS);
	}
	all_have_slots_of_their_own();
	each_blocks_its_own();
	for (int i = 0; i < NR_ACTORS; i++)
		actor_end(&actor[i]);
	assert_int_equal(stats_now().fallback_guards, 0);
}

/* ---- hand-over ---- */

static void another_thread_may_clear(void **state)
{
	struct take t = { .ptr = p };
	struct actor a, b;
	struct waiter w;

	(void)state;
	actor_begin(&a);
	actor_begin(&b);
	actor_do(&a, do_acquire, &t);
	waiter_begin(&w, p, NULL);
	assert_waits(&w);
	actor_do(&b, do_clear, &t);
	waiter_end(&w);
	actor_end(&a);
	actor_end(&b);
}

/* The next thread gets the line of slots, with a guard that is still held in it. */
static void a_guard_outlives_its_thread(void **state)
{
	struct take t = { .ptr = p }, next = { .ptr = q };
	struct waiter w, wq;
	struct actor a;

	(void)state;
	actor_begin(&a);
	actor_do(&a, do_acquire, &t);
	actor_end(&a);
	waiter_begin(&w, p, NULL);
	assert_waits(&w);
	for (int i = 0; i < 10; i++) {
		actor_begin(&a);
		actor_do(&a, do_acquire, &next);
		assert_ptr_not_equal(next.guard.slot, t.guard.slot);
		waiter_begin(&wq, q, NULL);
		actor_do(&a, do_clear, &next);
		waiter_end(&wq);
		actor_end(&a);
	}
	assert_waits(&w);
	shazptr_clear(t.guard);
	waiter_end(&w);
}

static struct shazptr_guard from_handler;
static struct waiter from_handler_waiter;
static int waited_in_handler;

static void on_signal_keep(int sig)
{
	(void)sig;
	from_handler = shazptr_acquire_detached(q);
}

static void on_signal_clear(int sig)
{
	struct shazptr_guard guard = shazptr_acquire(q);

	(void)sig;
	waiter_begin(&from_handler_waiter, q, NULL);
	waited_in_handler = waiters_wait(&from_handler_waiter, 1);
	shazptr_clear(guard);
}

static void a_signal_handler_may_keep_a_detached_guard(void **state)
{
	struct shazptr_guard guard = shazptr_acquire(p);
	struct waiter w;

	(void)state;
	signal(SIGUSR1, on_signal_keep);
	raise(SIGUSR1);
	shazptr_clear(guard);
	waiter_begin(&w, q, NULL);
	assert_waits(&w);
	synchronize_shazptr(p);
	shazptr_clear(from_handler);
	waiter_end(&w);
}

static void a_signal_handler_may_have_a_guard(void **state)
{
	struct shazptr_guard guard = shazptr_acquire(p);
	struct waiter w;

	(void)state;
	signal(SIGUSR1, on_signal_clear);
	raise(SIGUSR1);
	waiter_end(&from_handler_waiter);
	assert_true(waited_in_handler);
	waiter_begin(&w, p, NULL);
	assert_waits(&w);
	shazptr_clear(guard);
	waiter_end(&w);
}

/* ---- scopes ---- */

static void leave_early(int how, struct waiter *w)
{
	shazptr_scoped struct shazptr_guard guard = shazptr_acquire(p);

	waiter_begin(w, p, NULL);
	if (how == 0)
		return;
	assert_waits(w);
}

static void a_scoped_guard_ends_with_its_scope(void **state)
{
	struct waiter w;

	(void)state;
	for (int how = 0; how < 2; how++) {
		leave_early(how, &w);
		waiter_end(&w);
	}
	for (int i = 0; i < 3; i++) {
		shazptr_scoped struct shazptr_guard none = shazptr_acquire(i == 1 ? p : NULL);

		assert_int_equal(!shazptr_ptr(none), i != 1);
	}
	synchronize_shazptr(p);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(a_wait_ends_after_the_clear),
		TEST(a_specific_address_blocks_in_the_scan_thread_too),
		TEST(a_wildcard_blocks_any_wait),
		TEST(a_wait_for_the_wildcard_waits_for_any_guard),
		TEST(no_number_near_zero_is_a_wildcard),
		TEST(other_addresses_are_not_waited_for),
		TEST(waits_without_guards_return_at_once),
		TEST(an_empty_guard_protects_nothing),
		TEST(a_guard_knows_its_address),
		TEST(nested_guards_block_their_own_address_only),
		TEST(two_guards_of_one_address_are_two),
		TEST(guards_are_cleared_in_any_order),
		TEST(a_wildcard_may_be_nested),
		TEST(a_guard_blocks_wherever_its_slot_is),
		TEST(a_wildcard_blocks_wherever_its_slot_is),
		TEST(the_scan_thread_finds_guards_wherever_they_are),
		TEST(many_guards_of_one_thread),
		TEST(many_guards_of_many_threads),
		TEST(another_thread_may_clear),
		TEST(a_guard_outlives_its_thread),
		TEST(a_signal_handler_may_have_a_guard),
		TEST(a_signal_handler_may_keep_a_detached_guard),
		TEST(a_scoped_guard_ends_with_its_scope),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
