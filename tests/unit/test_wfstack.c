/* SPDX-License-Identifier: MIT */
/* test_wfstack.c - wfstack: order, states, loops; an unfinished push; many threads, and signal handlers. */
#include "stacks.h"

static DEFINE_WFS_STACK(shared);

static struct item *item_of(struct wfs_node *node)
{
	return node ? wfs_entry(node, struct item, node.wfs) : NULL;
}

/* ---- one thread ---- */

static void newest_first(void **state)
{
	struct wfs_stack s = { (struct wfs_head *)state }; /* initialisation overwrites any content */
	struct wfs_node n[3];
	int last = 7;

	wfs_init(&s);
	assert_true(wfs_empty(&s));
	assert_null(wfs_pop_blocking(&s));
	assert_null(wfs_pop_nonblocking(&s));
	assert_null(wfs_pop_with_state_blocking(&s, &last));
	assert_int_equal(last, 0);
	assert_null(wfs_pop_all(&s));
	assert_false(wfs_push(&s, &n[0]));
	assert_true(wfs_push(&s, &n[1]));
	assert_true(wfs_push(&s, &n[2]));
	assert_false(wfs_empty(&s));
	assert_ptr_equal(wfs_pop_with_state_blocking(&s, &last), &n[2]);
	assert_int_equal(last, 0);
	assert_ptr_equal(wfs_pop_nonblocking(&s), &n[1]);
	assert_true(wfs_push(&s, &n[2]));
	assert_ptr_equal(wfs_pop_with_state_nonblocking(&s, &last), &n[2]);
	assert_int_equal(last, 0);
	assert_ptr_equal(wfs_pop_with_state_nonblocking(&s, &last), &n[0]);
	assert_int_equal(last, WFS_STATE_LAST);
	assert_false(wfs_push(&s, &n[0]));
	assert_ptr_equal(wfs_pop_with_state_blocking(&s, &last), &n[0]);
	assert_int_equal(last, WFS_STATE_LAST);
	assert_true(wfs_empty(&s));
	wfs_destroy(&s);
}

static void zeroed_memory_is_a_stack(void **state)
{
	static struct wfs_stack s;
	struct wfs_node n;

	(void)state;
	assert_true(wfs_empty(&s));
	assert_false(wfs_push(&s, &n));
	assert_ptr_equal(wfs_first(wfs_pop_all(&s)), &n);
}

static void fill(unsigned int nr)
{
	for (unsigned int i = 0; i < nr; i++)
		wfs_push(&shared, &item_new(0, i)->node.wfs);
}

static void loops(void **state)
{
	struct wfs_head *all;
	struct wfs_node *node, *next;
	struct item *i, *n;
	uint32_t want = 5;

	(void)state;
	wfs_for_each_blocking(wfs_pop_all(&shared), node)
		fail();
	wfs_for_each_entry_blocking(i, (struct wfs_head *)NULL, node.wfs)
		fail();
	fill(5);
	all = wfs_pop_all(&shared);
	assert_true(wfs_empty(&shared));
	wfs_for_each_blocking(all, node)
		assert_int_equal(item_of(node)->number, --want);
	assert_int_equal(want, 0);
	assert_null(node);
	want = 5;
	wfs_for_each_entry_blocking(i, all, node.wfs)
		assert_int_equal(i->number, --want);
	assert_int_equal(want, 0);
	wfs_for_each_blocking_safe(all, node, next)
		wfs_push(&shared, node); /* this reverses the order */
	wfs_for_each_entry_blocking_safe(i, n, wfs_pop_all(&shared), node.wfs) {
		assert_int_equal(i->number, want++);
		free(i);
	}
	assert_int_equal(want, 5);
	fill(2);
	wfs_for_each_blocking_safe(wfs_pop_all(&shared), node, next)
		free(item_of(node));
	assert_true(wfs_empty(&shared));
}

static void one_step(struct wfs_stack *s, struct model *m, struct wfs_node *node)
{
	struct wfs_head *all;
	struct wfs_node *each;
	int k, last = 7;

	switch (model_draw(m, 16)) {
	case 0:
		all = wfs_pop_all(s);
		wfs_for_each_blocking(all, each)
			assert_int_equal(each - node, model_pop(m));
		break;
	case 1: case 2: case 3: case 4: case 5: case 6:
		each = model_draw(m, 2) ? wfs_pop_with_state_blocking(s, &last) : wfs_pop_with_state_nonblocking(s, &last);
		k = model_pop(m);
		assert_ptr_equal(each, k < 0 ? NULL : &node[k]);
		assert_int_equal(last, k >= 0 && m->n == 0 ? WFS_STATE_LAST : 0);
		break;
	default:
		k = model_out(m);
		if (k < 0)
			break;
		assert_int_equal(wfs_push(s, &node[k]), m->n > 0);
		model_push(m, k);
	}
	assert_int_equal(wfs_empty(s), m->n == 0);
}

static void as_the_model(void **state)
{
	struct wfs_node node[MODEL_NODES];
	DEFINE_WFS_STACK(s);
	struct model m = { .seed = 7 };

	(void)state;
	for (int i = 0; i < 100000; i++)
		one_step(&s, &m, node);
}

/* ---- a push that has made its exchange and not stored its link ---- */

static void begin_push(struct wfs_node *node, struct wfs_head **ret_old)
{
	node->next = (struct wfs_node *)(uintptr_t)1;
	*ret_old = shared.head;
	shared.head = (struct wfs_head *)node;
}

static void end_push(struct wfs_node *node, struct wfs_head *old)
{
	quiesce_store_relaxed(&node->next, (struct wfs_node *)old); /* no order promised: nothing precedes it here */
}

static void nonblocking_calls_do_not_wait(void **state)
{
	struct wfs_node n[3];
	struct wfs_head *old, *all;
	int last = 7;

	(void)state;
	wfs_push(&shared, &n[0]);
	begin_push(&n[1], &old);
	assert_ptr_equal(wfs_pop_nonblocking(&shared), WFS_WOULDBLOCK);
	assert_ptr_equal(wfs_pop_with_state_nonblocking(&shared, &last), WFS_WOULDBLOCK);
	assert_int_equal(last, 0);
	assert_true(wfs_push(&shared, &n[2])); /* a push does not wait */
	assert_ptr_equal(wfs_pop_nonblocking(&shared), &n[2]);
	all = wfs_pop_all(&shared);
	assert_ptr_equal(wfs_next_nonblocking(wfs_first(all)), WFS_WOULDBLOCK);
	end_push(&n[1], old);
	assert_ptr_equal(wfs_next_nonblocking(wfs_first(all)), &n[0]);
	assert_ptr_equal(wfs_next_blocking(wfs_first(all)), &n[0]);
	assert_null(wfs_next_nonblocking(&n[0]));
	assert_null(wfs_next_blocking(&n[0]));
}

struct waiter {
	pthread_t thread;
	sem_t begun;
	pid_t tid;
	struct wfs_node *got;
};

static void *waiter_main(void *arg)
{
	struct waiter *w = arg;

	w->tid = my_tid();
	sem_post(&w->begun);
	w->got = wfs_pop_blocking(&shared);
	return NULL;
}

/* The waiter sleeps repeatedly instead of spinning, so that the pusher gets the CPU whatever their priorities are. */
static void a_waiter_sleeps(void **state)
{
	struct wfs_node n[2];
	struct wfs_head *old;
	struct waiter w;
	long before;

	(void)state;
	sem_init(&w.begun, 0, 0);
	wfs_push(&shared, &n[0]);
	begin_push(&n[1], &old);
	thread_must(pthread_create(&w.thread, NULL, waiter_main, &w));
	wait_for(&w.begun);
	before = voluntary_switches(w.tid);
	wait_until(voluntary_switches(w.tid) >= before + 10);
	end_push(&n[1], old);
	pthread_join(w.thread, NULL);
	assert_ptr_equal(w.got, &n[1]);
	assert_ptr_equal(wfs_pop_blocking(&shared), &n[0]);
}

/* ---- many threads ---- */

static pthread_mutex_t pops = PTHREAD_MUTEX_INITIALIZER;

static void *push_fresh(void *me)
{
	for (uint32_t k = 0; k < NR_EACH; k++) {
		struct item *i = item_new((uint32_t)(uintptr_t)me, k);

		item_goes_in(i);
		wfs_push(&shared, &i->node.wfs);
	}
	return NULL;
}

/* Items of a signal handler, of pusher NR_PUSHERS, are not of the heap. */
static void *take_all(void *unused)
{
	struct item *i, *n;
	struct batch_order order;
	int left;

	(void)unused;
	do {
		left = pushers_left();
		batch_begin(&order);
		wfs_for_each_entry_blocking_safe(i, n, wfs_pop_all(&shared), node.wfs) {
			batch_next(&order, i);
			item_came_out(i);
			if (i->pusher != NR_PUSHERS)
				free(i);
		}
	} while (left);
	return NULL;
}

static void pushers_beside_pop_all(void **state)
{
	(void)state;
	load_run(NR_PUSHERS, push_fresh, NR_POPPERS, take_all);
}

static struct item *pop_somehow(uint32_t round)
{
	struct wfs_node *node;
	int last;

	if (round % 2 == 0)
		return item_of(wfs_pop_with_state_blocking(&shared, &last));
	while ((node = wfs_pop_nonblocking(&shared)) == WFS_WOULDBLOCK)
		;
	return item_of(node);
}

static void *pop_locked(void *unused)
{
	struct item *i;
	uint32_t round = 0;
	int left;

	(void)unused;
	do {
		left = pushers_left();
		do {
			pthread_mutex_lock(&pops);
			i = pop_somehow(round++);
			pthread_mutex_unlock(&pops);
			if (i) {
				item_came_out(i);
				free(i);
			}
		} while (i);
	} while (left);
	return NULL;
}

static void pops_under_a_lock(void **state)
{
	(void)state;
	load_run(NR_PUSHERS, push_fresh, NR_POPPERS, pop_locked);
}

static void *pop_in_sections(void *unused)
{
	struct item *i;
	uint32_t round = 0;
	int left;

	(void)unused;
	do {
		left = pushers_left();
		do {
			rcu_read_lock();
			i = pop_somehow(round++);
			rcu_read_unlock();
			if (i) {
				item_came_out(i);
				kfree_rcu(i, rcu);
			}
		} while (i);
	} while (left);
	return NULL;
}

static void pops_in_sections(void **state)
{
	(void)state;
	load_run(NR_PUSHERS, push_fresh, NR_POPPERS, pop_in_sections);
	rcu_barrier();
}

/* ---- signal handlers ---- */

#define NR_OF_HANDLER 300 /* a shared CPU runs one handler in each time slice */

static struct item of_handler[NR_OF_HANDLER];
static uint32_t nr_of_handler;

/* The handler interrupts pushes of its own thread, at any instruction. */
static void push_in_handler(int sig)
{
	uint32_t k = quiesce_load_relaxed(&nr_of_handler); /* one thread */

	(void)sig;
	if (k == NR_OF_HANDLER)
		return;
	of_handler[k] = (struct item){ .pusher = NR_PUSHERS, .number = k };
	item_goes_in(&of_handler[k]);
	wfs_push(&shared, &of_handler[k].node.wfs);
	quiesce_store_relaxed(&nr_of_handler, k + 1);
}

static void *interrupter(void *thread)
{
	while (quiesce_load_relaxed(&nr_of_handler) < NR_OF_HANDLER)
		pthread_kill(*(pthread_t *)thread, SIGUSR1);
	return NULL;
}

static void *push_interrupted(void *me)
{
	pthread_t self = pthread_self(), other;
	uint32_t k = 0;

	thread_must(pthread_create(&other, NULL, interrupter, &self));
	do {
		struct item *i = item_new((uint32_t)(uintptr_t)me, k++);

		item_goes_in(i);
		wfs_push(&shared, &i->node.wfs);
	} while (k < NR_EACH || quiesce_load_relaxed(&nr_of_handler) < NR_OF_HANDLER);
	pthread_join(other, NULL);
	return NULL;
}

static void handlers_push(void **state)
{
	(void)state;
	signal(SIGUSR1, push_in_handler);
	load_run(1, push_interrupted, 1, take_all);
	signal(SIGUSR1, SIG_DFL);
	assert_int_equal(nr_of_handler, NR_OF_HANDLER);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(newest_first), TEST(zeroed_memory_is_a_stack), TEST(loops), TEST(as_the_model),
		TEST(nonblocking_calls_do_not_wait), TEST(a_waiter_sleeps),
		TEST(pushers_beside_pop_all), TEST(pops_under_a_lock), TEST(pops_in_sections), TEST(handlers_push),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
