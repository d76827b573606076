/* SPDX-License-Identifier: MIT */
/* test_hazptr_regress.c - general hazard pointers: what was found by reading and is to stay found. */
#include "hazptrs.h"

static int runs(struct thing *t)
{
	return flag_get(&t->runs);
}

/* ---- objects that retire themselves again ---- */

#define NR_AGAIN (2 * HAZPTR_BATCH_MAX)
static struct thing again[NR_AGAIN];
static int no_more;

static void run_again(struct hazptr_head *head)
{
	thing_run(head);
	if (!flag_get(&no_more))
		call_hazptr(head, run_again);
}

static void objects_that_retire_themselves_again_let_go(void **state)
{
	(void)state;
	for (int i = 0; i < NR_AGAIN; i++)
		call_hazptr(&again[i].hazptr, run_again);
	hazptr_barrier();
	for (int i = 0; i < NR_AGAIN; i++)
		assert_true(runs(&again[i]) >= 1);
	flag_set(&no_more);
	assert_int_equal(quiesce_shutdown(0), 0);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(objects_that_retire_themselves_again_let_go),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
