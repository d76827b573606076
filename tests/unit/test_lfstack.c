/* SPDX-License-Identifier: MIT */
/* test_lfstack.c - lfstack: order, loops; many threads that pop in sections and push again after a grace period; signal handlers. */
#include "stacks.h"

static DEFINE_LFS_STACK(shared);

static struct item *item_of(struct lfs_node *node)
{
	return node ? lfs_entry(node, struct item, node.lfs) : NULL;
}

/* ---- one thread ---- */

static void newest_first(void **state)
{
	struct lfs_stack s = { (struct lfs_head *)state }; /* initialisation overwrites any content */
	struct lfs_node n[3];

	lfs_init(&s);
	assert_true(lfs_empty(&s));
	assert_null(lfs_pop(&s));
	assert_null(lfs_pop_all(&s));
	assert_false(lfs_push(&s, &n[0]));
	assert_true(lfs_push(&s, &n[1]));
	assert_false(lfs_empty(&s));
	assert_ptr_equal(lfs_pop(&s), &n[1]);
	assert_true(lfs_push(&s, &n[2]));
	assert_true(lfs_push(&s, &n[1]));
	assert_ptr_equal(lfs_pop(&s), &n[1]);
	assert_ptr_equal(lfs_pop(&s), &n[2]);
	assert_ptr_equal(lfs_pop(&s), &n[0]);
	assert_null(lfs_pop(&s));
	assert_true(lfs_empty(&s));
	lfs_destroy(&s);
}

static void zeroed_memory_is_a_stack(void **state)
{
	static struct lfs_stack s;
	struct lfs_node n;

	(void)state;
	assert_true(lfs_empty(&s));
	assert_false(lfs_push(&s, &n));
	assert_ptr_equal(lfs_pop_all(&s), &n);
}

static void loops(void **state)
{
	struct lfs_node *node, *next;
	struct lfs_head *all;
	struct item *i, *n;
	uint32_t want = 5;

	(void)state;
	lfs_for_each(lfs_pop_all(&shared), node)
		fail();
	for (uint32_t k = 0; k < 5; k++)
		lfs_push(&shared, &item_new(0, k)->node.lfs);
	all = lfs_pop_all(&shared);
	assert_true(lfs_empty(&shared));
	lfs_for_each(all, node)
		assert_int_equal(item_of(node)->number, --want);
	assert_int_equal(want, 0);
	assert_null(node);
	want = 5;
	lfs_for_each_entry(i, all, node.lfs)
		assert_int_equal(i->number, --want);
	assert_int_equal(want, 0);
	lfs_for_each_safe(all, node, next)
		lfs_push(&shared, node); /* this reverses the order */
	lfs_for_each_entry_safe(i, n, lfs_pop_all(&shared), node.lfs) {
		assert_int_equal(i->number, want++);
		free(i);
	}
	assert_int_equal(want, 5);
}

static void one_step(struct lfs_stack *s, struct model *m, struct lfs_node *node)
{
	struct lfs_head *all;
	struct lfs_node *each;
	int k;

	switch (model_draw(m, 16)) {
	case 0:
		all = lfs_pop_all(s);
		lfs_for_each(all, each)
			assert_int_equal(each - node, model_pop(m));
		break;
	case 1: case 2: case 3: case 4: case 5: case 6:
		each = lfs_pop(s);
		k = model_pop(m);
		assert_ptr_equal(each, k < 0 ? NULL : &node[k]);
		break;
	default:
		k = model_out(m);
		if (k < 0)
			break;
		assert_int_equal(lfs_push(s, &node[k]), m->n > 0);
		model_push(m, k);
	}
	assert_int_equal(lfs_empty(s), m->n == 0);
}

static void as_the_model(void **state)
{
	struct lfs_node node[MODEL_NODES];
	DEFINE_LFS_STACK(s);
	struct model m = { .seed = 7 };

	(void)state;
	for (int i = 0; i < 100000; i++)
		one_step(&s, &m, node);
}

/* ---- many threads ---- */

static void *push_fresh(void *me)
{
	for (uint32_t k = 0; k < NR_EACH; k++) {
		struct item *i = item_new((uint32_t)(uintptr_t)me, k);

		item_goes_in(i);
		lfs_push(&shared, &i->node.lfs);
	}
	return NULL;
}

static struct item *pop_one(void)
{
	struct item *i;

	rcu_read_lock();
	i = item_of(lfs_pop(&shared));
	rcu_read_unlock();
	return i;
}

static void *pop_in_sections(void *unused)
{
	struct item *i;
	int left;

	(void)unused;
	do {
		left = pushers_left();
		while ((i = pop_one())) {
			item_came_out(i);
			kfree_rcu(i, rcu);
		}
	} while (left);
	return NULL;
}

static void pops_in_sections(void **state)
{
	(void)state;
	load_run(NR_PUSHERS, push_fresh, NR_POPPERS, pop_in_sections);
	rcu_barrier();
}

static void *take_all(void *unused)
{
	struct item *i, *n;
	struct batch_order order;
	int left;

	(void)unused;
	do {
		left = pushers_left();
		batch_begin(&order);
		lfs_for_each_entry_safe(i, n, lfs_pop_all(&shared), node.lfs) {
			batch_next(&order, i);
			item_came_out(i);
			kfree_rcu(i, rcu);
		}
		if ((i = pop_one())) {
			item_came_out(i);
			kfree_rcu(i, rcu);
		}
	} while (left);
	return NULL;
}

static void pops_beside_pop_all(void **state)
{
	(void)state;
	load_run(NR_PUSHERS, push_fresh, NR_POPPERS, take_all);
	rcu_barrier();
}

/* A few objects go round: a callback pushes each again after a grace period. */
#define NR_ROUND 40

static struct item around[NR_ROUND];

static void comes_back(struct rcu_head *head)
{
	struct item *i = (struct item *)((char *)head - offsetof(struct item, rcu));

	item_goes_in(i);
	lfs_push(&shared, &i->node.lfs);
}

static void *pop_and_return(void *unused)
{
	struct item *i;

	(void)unused;
	for (uint32_t k = 0; k < NR_EACH / 10;) {
		i = pop_one();
		if (!i)
			continue;
		item_came_out(i);
		call_rcu(&i->rcu, comes_back);
		k++;
	}
	return NULL;
}

static void *wait_for_all(void *arg)
{
	struct item *i;

	if (arg)
		return NULL; /* a popper's place; this thread makes the last pop */
	rcu_barrier();
	while ((i = pop_one()))
		item_came_out(i);
	return NULL;
}

static void nodes_come_back(void **state)
{
	(void)state;
	memset(&totals, 0, sizeof totals);
	for (uint32_t k = 0; k < NR_ROUND; k++) {
		pthread_t thread;

		around[k] = (struct item){ .number = k + 1 };
		item_goes_in(&around[k]);
		lfs_push(&shared, &around[k].node.lfs);
		if (k == NR_ROUND - 1) {
			thread_must(pthread_create(&thread, NULL, pop_and_return, NULL));
			pop_and_return(NULL);
			pthread_join(thread, NULL);
		}
	}
	wait_for_all(NULL);
	assert_int_equal(totals.wrong, 0);
	assert_int_equal(totals.popped, 2 * (NR_EACH / 10) + NR_ROUND);
	assert_int_equal(totals.pushed, totals.popped);
	assert_int_equal(totals.sum_pushed, totals.sum_popped);
}

/* ---- signal handlers ---- */

static uint32_t nr_handled;

static void push_and_pop_in_handler(int sig)
{
	static struct item mine[2000];
	uint32_t k = quiesce_load_relaxed(&nr_handled); /* one thread */
	struct item *i;

	(void)sig;
	if (k == 2000)
		return;
	mine[k] = (struct item){ .pusher = NR_PUSHERS, .number = k };
	item_goes_in(&mine[k]);
	lfs_push(&shared, &mine[k].node.lfs);
	if (k % 2 && (i = pop_one())) /* the item stays in the stack, whichever thread pushed it */
		item_came_out(i);
	quiesce_store_relaxed(&nr_handled, k + 1);
}

static void *interrupter(void *thread)
{
	while (quiesce_load_relaxed(&nr_handled) < 2000)
		pthread_kill(*(pthread_t *)thread, SIGUSR1);
	return NULL;
}

static void handlers_push_and_pop(void **state)
{
	static struct item mine[64];
	pthread_t self = pthread_self(), other;
	struct item *i;

	(void)state;
	memset(&totals, 0, sizeof totals);
	signal(SIGUSR1, push_and_pop_in_handler);
	thread_must(pthread_create(&other, NULL, interrupter, &self));
	for (uint32_t k = 0; quiesce_load_relaxed(&nr_handled) < 2000; k++) {
		struct item *one = &mine[k % 64];

		if (quiesce_load_relaxed(&one->pushes) % 2 == 0) {
			synchronize_rcu();
			item_goes_in(one);
			lfs_push(&shared, &one->node.lfs);
		}
		if ((i = pop_one()))
			item_came_out(i);
	}
	pthread_join(other, NULL);
	signal(SIGUSR1, SIG_DFL);
	while ((i = pop_one()))
		item_came_out(i);
	assert_int_equal(totals.wrong, 0);
	assert_int_equal(totals.pushed, totals.popped);
	assert_int_equal(totals.sum_pushed, totals.sum_popped);
}

/* ---- fork ---- */

#if !defined(__SANITIZE_THREAD__) /* ThreadSanitizer does not survive a fork of a process that had threads */

/* Other threads push and pop at the fork, and do not exist in the child, which can pop all items of the stack. */
static void child_empties_it(void)
{
	struct item *i;
	uint32_t nr = 0;

	while ((i = pop_one())) {
		must(nr++ < 2 * NR_PUSHERS * NR_EACH);
		must(i->twice == 2ull * i->number);
	}
	must(lfs_empty(&shared));
	must(!lfs_push(&shared, &item_new(0, 1)->node.lfs));
	must(pop_one()->number == 1);
}

static void children_have_the_stack(void **state)
{
	pthread_t pusher[NR_PUSHERS];
	struct item *i;

	(void)state;
	memset(&totals, 0, sizeof totals);
	for (intptr_t k = 0; k < NR_PUSHERS; k++)
		thread_must(pthread_create(&pusher[k], NULL, push_fresh, (void *)k));
	for (int k = 0; k < 5; k++) {
		succeeds(child_empties_it);
		if ((i = pop_one()))
			kfree_rcu(i, rcu);
	}
	for (int k = 0; k < NR_PUSHERS; k++)
		pthread_join(pusher[k], NULL);
	while ((i = pop_one()))
		kfree_rcu(i, rcu);
	rcu_barrier();
}
#endif

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(newest_first), TEST(zeroed_memory_is_a_stack), TEST(loops), TEST(as_the_model),
		TEST(pops_in_sections), TEST(pops_beside_pop_all),
		TEST(nodes_come_back), TEST(handlers_push_and_pop),
#if !defined(__SANITIZE_THREAD__)
		TEST(children_have_the_stack),
#endif

	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
