/* SPDX-License-Identifier: MIT */
/* test_hazptr_steps.c - a signal, or another writer, after each single instruction of allocating a slot, protecting, freeing it.
 *
 * The CPU traps after every instruction; at the one that is tried the handler takes slots too, or changes the
 * pointer.  Traps are expensive: one of 64 instructions of a thread's life is tried, others in each run;
 * STEPS_STRIDE=1 tries all.
 */
#include "../unit/hazptrs.h"
#include "steps.h"

#include <quiesce/shazptr.h> /* the wildcard */

static struct thing object[8];
static int nr_bad;

static void check(hazptr_t *slot, const void *of)
{
	if (!slot || slot_value(slot) != (uintptr_t)of)
		count_up(&nr_bad);
}

/* ---- steps ---- */

static __thread int steps_left, keep, nr_steps;
static __thread hazptr_t *kept;
static __thread void (*in_between)(void);

static void on_trap(int sig)
{
	(void)sig;
	nr_steps++;
	if (blocked || steps_left < 0 || steps_left-- > 0)
		return;
	in_between();
}

/* The handler allocates two slots for itself, and maybe one for later. */
static void take_slots(void)
{
	struct thing *current = &object[2], *other = &object[3];
	hazptr_t *a = hazptr_alloc(NULL), *b = hazptr_alloc(NULL);

	if (keep) {
		kept = hazptr_alloc_detached();
		hazptr_protect(kept, &other, other);
	}
	hazptr_protect(a, &current);
	hazptr_protect(b, &other);
	check(a, &object[2]);
	check(b, &object[3]);
	if (a == b || a == kept || b == kept)
		count_up(&nr_bad);
	hazptr_free(NULL, b);
	hazptr_free(NULL, a);
}

struct one {
	int step, keep;
	int nr_steps; /* number of instructions */
};

static int all_differ(hazptr_t *const *slot, int nr)
{
	for (int i = 0; i < nr; i++)
		for (int k = 0; k < i; k++)
			if (slot[i] == slot[k])
				return 0;
	return 1;
}

/* Run the thread's first calls of each kind. */
static void *one_thread(void *arg)
{
	struct thing *current = &object[0], *more = &object[1];
	struct hazptr_context ctx = { NULL };
	struct one *one = arg;
	hazptr_t *slot[4];

	steps_left = one->step;
	keep = one->keep;
	in_between = take_slots;
	wants_traps = 1;
	slot[0] = hazptr_alloc(NULL);
	hazptr_protect(slot[0], &current);
	slot[1] = hazptr_alloc(NULL);
	hazptr_protect(slot[1], &more, other);
	if (init_hazptr_context(&ctx))
		count_up(&nr_bad);
	slot[2] = hazptr_alloc(&ctx);
	hazptr_protect(slot[2], &more);
	wants_traps = 0;
	trap_off();
	slot[3] = kept;
	check(slot[0], &object[0]);
	check(slot[1], &object[1].other);
	check(slot[2], &object[1]);
	if (kept)
		check(kept, &object[3].other);
	if (!all_differ(slot, 4))
		count_up(&nr_bad);
	trap_on();
	hazptr_clear(slot[0]);
	hazptr_free(NULL, slot[1]);
	hazptr_free(&ctx, slot[2]);
	slot[1] = hazptr_alloc(NULL);
	hazptr_tryprotect(slot[1], &current);
	cleanup_hazptr_context(&ctx);
	trap_off();
	check(slot[1], &object[0]);
	check(slot[0], NULL);
	hazptr_free(NULL, slot[0]);
	hazptr_free(NULL, slot[1]);
	hazptr_free(NULL, kept);
	one->nr_steps = nr_steps;
	return NULL;
}

static int all_unprotected(void)
{
	uint64_t blocked_before = stats_now().shazptr_blocked;

	synchronize_hazptr(SHAZPTR_WILDCARD);
	return stats_now().shazptr_blocked == blocked_before;
}

static void a_handler_after_each_instruction(void **state)
{
	const char *text = getenv("STEPS_STRIDE");
	int stride = text ? atoi(text) : 64, first = getpid() % stride;
	struct one one = { .step = 0 };
	uint32_t lines = 0;

	(void)state;
	for (one.step = first, one.nr_steps = first + 1; one.step < one.nr_steps; one.step += stride)
		for (one.keep = 0; one.keep < 2; one.keep++) {
			in_thread(one_thread, &one);
			assert_int_equal(nr_bad, 0);
			assert_true(one.nr_steps > 100); /* otherwise nothing was interrupted */
			if (one.step == first)
				lines = stats_now().slots_lines;
			alarm(watchdog_seconds());
		}
	print_message("# %d of %d instructions, from number %d on\n", one.nr_steps / stride, one.nr_steps, first);
	/* Threads run one after the other, and none leaves a line behind. */
	assert_in_range(stats_now().slots_lines, 1, lines + 3);
	assert_true(all_unprotected());
}

/* ---- how many instructions it takes to find a line that was left ---- */

#define NR_CONTEXTS 20000

static int steps_of_init(struct hazptr_context *context)
{
	int before = nr_steps, err;

	steps_left = -1;
	trap_on();
	err = init_hazptr_context(context);
	trap_off();
	assert_int_equal(err, 0);
	return nr_steps - before;
}

static void a_line_that_was_left_is_found_soon(void **state)
{
	static struct hazptr_context context[NR_CONTEXTS];
	static const int left[] = { 100, 9000, 16000, 4000 }; /* the first one is kept for the thread's next context */
	int worst = 0;

	(void)state;
	for (int i = 0; i < NR_CONTEXTS; i++)
		assert_int_equal(init_hazptr_context(&context[i]), 0);
	for (int i = 0; i < 4; i++)
		cleanup_hazptr_context(&context[left[i]]);
	for (int i = 0; i < 4; i++) {
		int steps = steps_of_init(&context[left[i]]);

		worst = steps > worst ? steps : worst;
	}
	print_message("# %d instructions at the most\n", worst);
	for (int i = 0; i < NR_CONTEXTS; i++)
		cleanup_hazptr_context(&context[i]);
	assert_in_range(worst, 20, 1000); /* a walk of all lines would be 100 times that */
}

/* ---- and for a thread that begins, beside many ---- */

enum { NR_BESIDE = 1500, STACK = 64 * 1024 };

static struct beside {
	pthread_t thread;
	sem_t go;
} beside[NR_BESIDE];
static sem_t begun;

static void *is_there(void *arg)
{
	rcu_read_lock();
	rcu_read_unlock();
	sem_post(&begun);
	wait_for(&((struct beside *)arg)->go);
	return NULL;
}

static void begin_one(struct beside *b)
{
	pthread_attr_t attr;

	sem_init(&b->go, 0, 0);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	thread_must(pthread_create(&b->thread, &attr, is_there, b));
	pthread_attr_destroy(&attr);
	wait_for(&begun);
}

static void end_one(struct beside *b)
{
	sem_post(&b->go);
	pthread_join(b->thread, NULL);
}

static void *count_first_section(void *ret_steps)
{
	steps_left = -1;
	trap_on();
	rcu_read_lock();
	trap_off();
	rcu_read_unlock();
	*(int *)ret_steps = nr_steps;
	return NULL;
}

static int steps_of_a_wait(void)
{
	steps_left = -1;
	trap_on();
	synchronize_rcu();
	trap_off();
	return nr_steps;
}

/* Two threads overlap again and again, and the entry of one is followed by those of threads that stay: the registry, which each wait
 * scans, has entries for these only. */
static void threads_that_come_and_go_need_no_new_entries(void **state)
{
	int before;

	(void)state;
	sem_init(&begun, 0, 0);
	begin_one(&beside[20]);
	for (int i = 0; i < 20; i++)
		begin_one(&beside[i]);
	end_one(&beside[20]);
	before = steps_of_a_wait();
	for (int round = 0; round < 2000; round++) {
		begin_one(&beside[20]);
		begin_one(&beside[21]);
		end_one(&beside[21]);
		end_one(&beside[20]);
	}
	assert_in_range(steps_of_a_wait(), 1, before + 4000);
	for (int i = 0; i < 20; i++)
		end_one(&beside[i]);
}

static void a_thread_that_begins_reads_few_lines(void **state)
{
	static const int ends[] = { 1200, 300, 900 };
	int steps, worst = 0;

	(void)state;
	sem_init(&begun, 0, 0);
	for (int i = 0; i < NR_BESIDE; i++)
		begin_one(&beside[i]);
	for (int i = 0; i < 3; i++)
		end_one(&beside[ends[i]]);
	for (int i = 0; i < 3; i++) {
		in_thread(count_first_section, &steps);
		worst = steps > worst ? steps : worst;
		begin_one(&beside[ends[i]]);
	}
	print_message("# %d instructions at the most\n", worst);
	for (int i = 0; i < NR_BESIDE; i++)
		end_one(&beside[i]);
	assert_in_range(worst, 20, 1000);
}

/* ---- the pointer changes meanwhile ---- */

static struct thing *const p = &object[4], *const q = &object[5];
static struct thing *variable;
static hazptr_t *slots[3];
static void *found[3];

static void write_q(void)
{
	variable = q;
}

static __attribute__((noinline)) void do_tryprotect(void)
{
	found[0] = hazptr_tryprotect(slots[0], &variable);
}

static __attribute__((noinline)) void do_tryprotect_field(void)
{
	found[0] = hazptr_tryprotect(slots[0], &variable, other);
}

static __attribute__((noinline)) void do_protect(void)
{
	found[0] = hazptr_protect(slots[0], &variable);
}

static __attribute__((noinline)) void do_protect_field(void)
{
	found[0] = hazptr_protect(slots[0], &variable, other);
}

static struct thing *constant[2] = { &object[6], NULL };

static __attribute__((noinline)) void do_batch(void)
{
	void **where[3] = { (void **)(void *)&variable, (void **)(void *)&constant[0], (void **)(void *)&constant[1] };

	hazptr_protect_batch(slots, where, found, 3);
}

/* Change the pointer from p to q after each number of instructions, and count the results: none, p, q. */
static void changed_meanwhile(void (*fn)(void), size_t offset, int nr[3])
{
	memset(nr, 0, 3 * sizeof *nr);
	in_between = write_q;
	for (int steps = 0, on = 1; on; steps++) {
		variable = p;
		protect_in(slots[0], &object[7]);
		steps_left = steps;
		trap_on();
		fn();
		trap_off();
		on = steps_left < 0; /* otherwise the code ended before the step */
		steps_left = -1;
		assert_true(found[0] == p || found[0] == q || !found[0]);
		assert_int_equal(slot_value(slots[0]), found[0] ? (uintptr_t)found[0] + offset : 0);
		nr[!found[0] ? 0 : found[0] == p ? 1 : 2]++;
	}
}

static void step_setup(void)
{
	struct sigaction action = { .sa_handler = on_trap };

	sigaction(SIGTRAP, &action, NULL);
	if (!hazptr_alloc_batch(NULL, slots, 3))
		abort();
	steps_left = -1;
}

static void tryprotect_fails_if_the_pointer_changes(void **state)
{
	int nr[3];

	(void)state;
	changed_meanwhile(do_tryprotect, 0, nr);
	assert_true(nr[0] > 0 && nr[1] > 0 && nr[2] > 0);
	changed_meanwhile(do_tryprotect_field, offsetof(struct thing, other), nr);
	assert_true(nr[0] > 0 && nr[1] > 0 && nr[2] > 0);
}

static void protect_returns_the_pointer_that_is_there_now(void **state)
{
	int nr[3];

	(void)state;
	changed_meanwhile(do_protect, 0, nr);
	assert_true(nr[0] == 0 && nr[1] > 0 && nr[2] > 0);
	changed_meanwhile(do_protect_field, offsetof(struct thing, other), nr);
	assert_true(nr[0] == 0 && nr[1] > 0 && nr[2] > 0);
}

static void a_batch_returns_the_pointers_that_are_there_now(void **state)
{
	int nr[3];

	(void)state;
	changed_meanwhile(do_batch, 0, nr);
	assert_true(nr[0] == 0 && nr[1] > 0 && nr[2] > 0);
	check(slots[1], constant[0]);
	check(slots[2], NULL);
	assert_ptr_equal(found[1], constant[0]);
	assert_null(found[2]);
	assert_int_equal(nr_bad, 0);
}

/* ---- a handler at random times, from the first instruction of a thread to its last ---- */

static int stop, nr_handled;
static __thread hazptr_t *from_handler;
static __thread int over;

static void on_signal(int sig)
{
	struct thing *current = &object[2];
	hazptr_t *slot = hazptr_alloc(NULL);

	(void)sig;
	hazptr_protect(slot, &current);
	if (!from_handler && !over) {
		from_handler = hazptr_alloc_detached();
		hazptr_protect(from_handler, &current, other);
	}
	check(slot, &object[2]);
	hazptr_free(NULL, slot);
	count_up(&nr_handled);
}

static void *short_life(void *unused)
{
	struct thing *current = &object[0];
	hazptr_t *slot[9], *left;

	do {
		for (int i = 0; i < 9; i++) {
			slot[i] = hazptr_alloc(NULL);
			hazptr_protect(slot[i], &current);
		}
		for (int i = 0; i < 9; i++) {
			check(slot[i], &object[0]);
			hazptr_free(NULL, slot[i]);
		}
		quiesce_fence_light(none); /* the handler writes it */
		left = from_handler;
		if (left) {
			check(left, &object[2].other);
			over = 1;
			quiesce_fence_light(none); /* from now on it leaves it alone */
			from_handler = NULL;
			hazptr_free(NULL, left);
			quiesce_fence_light(none);
			over = 0;
		}
	} while (!flag_get(&stop));
	over = 1;
	quiesce_fence_light(none);
	hazptr_free(NULL, from_handler);
	return unused;
}

static void *kill_it(void *thread)
{
	while (!flag_get(&stop)) {
		pthread_kill(*(pthread_t *)thread, SIGUSR1);
		short_rest();
	}
	return NULL;
}

static void signals_from_birth_to_death(void **state)
{
	pthread_t thread, killer;

	(void)state;
	signal(SIGUSR1, on_signal);
	for (int i = 0; i < 150; i++) {
		int before = flag_get(&nr_handled);

		quiesce_store_relaxed(&stop, 0);
		thread_must(pthread_create(&thread, NULL, short_life, NULL));
		thread_must(pthread_create(&killer, NULL, kill_it, &thread));
		synchronize_hazptr(&object[2]);
		wait_until(flag_get(&nr_handled) > before);
		flag_set(&stop);
		pthread_join(killer, NULL);
		pthread_join(thread, NULL);
		assert_int_equal(nr_bad, 0);
	}
	hazptr_clear_batch(slots, 3);
	assert_true(all_unprotected());
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(a_handler_after_each_instruction),
		TEST(a_line_that_was_left_is_found_soon),
		TEST(threads_that_come_and_go_need_no_new_entries), /* before the registry is large */
		TEST(a_thread_that_begins_reads_few_lines),
		TEST(tryprotect_fails_if_the_pointer_changes),
		TEST(protect_returns_the_pointer_that_is_there_now),
		TEST(a_batch_returns_the_pointers_that_are_there_now),
		TEST(signals_from_birth_to_death),
	};

	step_setup();
	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
