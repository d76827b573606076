/* SPDX-License-Identifier: MIT */
/* test_hazptr_walk.c - the calls for walks along structures: arrays of slots, marked pointers, known addresses. */
#include "hazptrs.h"
#include "guards.h"

#define NR_OWN HAZPTR_SLOT_PER_CTX

static struct thing p_object = { .id = 1 }, q_object = { .id = 2 };
static struct thing *const p = &p_object, *const q = &q_object;

static void *marked(void *pointer, uintptr_t marks)
{
	return (void *)((uintptr_t)pointer | marks);
}

static void end_by_set(hazptr_t *slot)
{
	hazptr_set(slot, q);
}

static void end_by_null(hazptr_t *slot)
{
	hazptr_set(slot, NULL);
}

static void an_address_is_protected_until_another_is(void **state)
{
	hazptr_t *slot = hazptr_alloc(NULL);

	(void)state;
	hazptr_set(slot, p);
	assert_int_equal(slot_value(slot), p);
	waits_until(end_by_set, slot, p);
	waits_until(end_by_null, slot, q);
	assert_int_equal(slot_value(slot), 0);
	hazptr_free(NULL, slot);
}

static void marks_are_returned_and_not_protected(void **state)
{
	hazptr_t *slot = hazptr_alloc(NULL);
	struct thing *current = marked(p, 1);

	(void)state;
	assert_ptr_equal(hazptr_protect_masked(slot, &current, 1), marked(p, 1));
	waits_until(hazptr_clear, slot, p);
	current = marked(q, 3);
	assert_ptr_equal(hazptr_protect_masked(slot, &current, 3), marked(q, 3));
	assert_int_equal(slot_value(slot), q);
	current = marked(NULL, 1);
	assert_ptr_equal(hazptr_protect_masked(slot, &current, 1), marked(NULL, 1));
	assert_int_equal(slot_value(slot), 0);
	current = p;
	assert_ptr_equal(hazptr_protect_masked(slot, &current, 3), p);
	assert_int_equal(slot_value(slot), p);
	hazptr_free(NULL, slot);
}

/* As in a list whose links carry marks, and whose nodes have their heads inside. */
static void marked_objects_are_protected_by_a_field(void **state)
{
	hazptr_t *slot = hazptr_alloc(NULL);
	struct thing *current = marked(p, 1);
	uintptr_t word = (uintptr_t)q | 2;
	struct thing **link = (struct thing **)(void *)&word;

	(void)state;
	assert_ptr_equal(hazptr_protect_masked(slot, &current, 1, other), marked(p, 1));
	assert_int_equal(slot_value(slot), &p->other);
	waits_until(hazptr_clear, slot, &p->other);
	assert_ptr_equal(hazptr_protect_masked(slot, link, 3, other), marked(q, 2));
	assert_int_equal(slot_value(slot), &q->other);
	assert_ptr_equal(hazptr_protect_masked(slot, &current, 1, hazptr), marked(p, 1)); /* the first field is the object */
	assert_int_equal(slot_value(slot), p);
	hazptr_free(NULL, slot);
}

static void a_marked_object_stays_while_its_field_is_protected(void **state)
{
	hazptr_t *slot = hazptr_alloc(NULL);
	struct thing *t = test_calloc(1, sizeof *t), *current = marked(t, 1);

	(void)state;
	hazptr_protect_masked(slot, &current, 1, other);
	call_hazptr(&t->other, other_run);
	hazptr_try_barrier();
	assert_int_equal(runs_of(t), 0);
	hazptr_free(NULL, slot);
	hazptr_barrier();
	assert_int_equal(runs_of(t), 1);
	test_free(t);
}

/* While a waiter scans, protections take the slow path. */
static void marks_are_masked_while_a_caller_waits(void **state)
{
	hazptr_t *slot = hazptr_alloc(NULL), *held = slot_with(NULL, q);
	struct thing *current = marked(p, 1);
	struct waiter w;
	int flag = 0;

	(void)state;
	waiter_begin(&w, q, &flag);
	assert_waits(&w);
	assert_ptr_equal(hazptr_protect_masked(slot, &current, 1), marked(p, 1));
	assert_int_equal(slot_value(slot), p);
	assert_ptr_equal(hazptr_protect_masked(slot, &current, 1, other), marked(p, 1));
	assert_int_equal(slot_value(slot), &p->other);
	flag_set(&flag);
	hazptr_clear(held);
	waiter_end(&w);
	hazptr_free(NULL, held);
	hazptr_free(NULL, slot);
}

/* ---- arrays ---- */

static void retired_objects_stay(hazptr_t *slots, int nr)
{
	struct thing *t = test_calloc((size_t)nr, sizeof *t);

	for (int i = 0; i < nr; i++)
		hazptr_set(slots + i, t + i);
	for (int i = 0; i < nr; i++)
		thing_retire(t + i);
	hazptr_try_barrier();
	assert_int_equal(things_run(t, nr), 0);
	for (int i = 0; i < nr; i++)
		hazptr_clear(slots + i);
	hazptr_barrier();
	assert_int_equal(things_run(t, nr), nr);
	test_free(t);
}

static void an_array_is_as_many_slots(void **state)
{
	struct hazptr_context ctx;

	(void)state;
	assert_int_equal(init_hazptr_context(&ctx), 0);
	for (int nr = 1; nr <= NR_OWN; nr++) {
		hazptr_t *own = hazptr_alloc_array(NULL, (size_t)nr), *of_ctx = hazptr_alloc_array(&ctx, (size_t)nr);

		assert_non_null(own);
		assert_non_null(of_ctx);
		retired_objects_stay(own, nr);
		retired_objects_stay(of_ctx, nr);
		hazptr_free_array(NULL, own, (size_t)nr);
		hazptr_free_array(&ctx, of_ctx, (size_t)nr);
	}
	cleanup_hazptr_context(&ctx);
}

static void an_array_leaves_out_slots_in_use(void **state)
{
	struct hazptr_context ctx;
	hazptr_t *slot[NR_OWN], *row;

	(void)state;
	assert_int_equal(init_hazptr_context(&ctx), 0);
	assert_true(hazptr_alloc_batch(&ctx, slot, NR_OWN));
	hazptr_free(&ctx, slot[0]);
	hazptr_free(&ctx, slot[2]);
	hazptr_free(&ctx, slot[3]);
	assert_null(hazptr_alloc_array(&ctx, 3));
	row = hazptr_alloc_array(&ctx, 2);
	assert_true(row == (slot[2] < slot[3] ? slot[2] : slot[3]));
	assert_null(hazptr_alloc_array(&ctx, 2));
	assert_ptr_equal(hazptr_alloc_array(&ctx, 1), slot[0]);
	for (int i = 0; i < NR_OWN; i++)
		hazptr_free(&ctx, slot[i]);
	cleanup_hazptr_context(&ctx);
}

static void no_array_has_more_slots_than_a_context(void **state)
{
	struct hazptr_context ctx;

	(void)state;
	assert_int_equal(init_hazptr_context(&ctx), 0);
	assert_null(hazptr_alloc_array(&ctx, NR_OWN + 1));
	assert_null(hazptr_alloc_array(NULL, NR_OWN + 1));
	assert_null(hazptr_alloc_array(NULL, SIZE_MAX));
	hazptr_free_array(NULL, NULL, 3);
	cleanup_hazptr_context(&ctx);
}

/* The thread's own slots are not enough: the others are borrowed, and returned slots are borrowed again. */
static void arrays_in_arrays_take_no_more_lines_each_time(void **state)
{
	enum { DEPTH = 5, NR = 3, TIMES = 1000 };
	hazptr_t *slots[DEPTH];
	uint32_t lines = 0;

	(void)state;
	for (int k = 0; k < TIMES; k++) {
		for (int i = 0; i < DEPTH; i++) {
			slots[i] = hazptr_alloc_array(NULL, NR);
			assert_non_null(slots[i]);
			for (int j = 0; j < i; j++)
				assert_true(slots[j] + NR <= slots[i] || slots[i] + NR <= slots[j]);
		}
		if (!k || k == TIMES - 1)
			for (int i = 0; i < DEPTH; i++)
				retired_objects_stay(slots[i], NR);
		for (int i = 0; i < DEPTH; i++)
			hazptr_free_array(NULL, slots[i], NR);
		if (k == 1)
			lines = stats_now().slots_lines;
	}
	assert_int_equal(stats_now().slots_lines, lines);
}

/* ---- sets that keep registers ---- */

#if QUIESCE__SET_SAVES

/* The general registers but rsp and r11; each is the first argument once, and the second once. */
enum { RAX, RCX, RDX, RBX, RBP, RSI, RDI, R8, R9, R10, R12, R13, R14, R15, NR_REGISTERS };

#define LOAD(name, i) "movq " #i "*8(%rdi), %" #name "\n"
#define STORE(name, i) "movq %" #name ", " #i "*8(%rdi)\n"
#define MOST(EACH) \
	EACH(rax, 0) EACH(rcx, 1) EACH(rdx, 2) EACH(rbx, 3) EACH(rbp, 4) EACH(rsi, 5) EACH(r8, 7) EACH(r9, 8) EACH(r10, 9) \
	EACH(r12, 10) EACH(r13, 11) EACH(r14, 12) EACH(r15, 13)

/* Loads all registers from @registers, sets the slot in register @first to the value in @second, and stores them there again.
 * raw: what the test is about are registers. */
#define SETTER(first, second)                                                                                       \
	static __attribute__((naked, noinline)) void set_##first##_##second(uintptr_t *registers __attribute__((unused))) \
	{                                                                                                           \
		/* raw: as above. */                                                                                \
		__asm__("pushq %rbx; pushq %rbp; pushq %r12; pushq %r13; pushq %r14; pushq %r15; pushq %rdi\n"      \
			MOST(LOAD) "movq 6*8(%rdi), %rdi\n"                                                         \
			"leaq 2f(%rip), %r11\n"                                                                     \
			"jmp *quiesce__hazptr_set_saving@GOTPCREL(%rip)\n"                                          \
			"cmpxchgq %" #second ", %" #first "\n"                                                      \
			"2: movq %rdi, %r11\n"                                                                      \
			"popq %rdi\n" MOST(STORE) "movq %r11, 6*8(%rdi)\n"                                         \
			"popq %r15; popq %r14; popq %r13; popq %r12; popq %rbp; popq %rbx; ret\n");                 \
	}
SETTER(rax, rcx) SETTER(rcx, rdx) SETTER(rdx, rbx) SETTER(rbx, rbp) SETTER(rbp, rsi) SETTER(rsi, rdi) SETTER(rdi, r8)
SETTER(r8, r9) SETTER(r9, r10) SETTER(r10, r12) SETTER(r12, r13) SETTER(r13, r14) SETTER(r14, r15) SETTER(r15, rax)

static void sets_keep_all_registers_but_one(void **state)
{
	static void (*const setters[])(uintptr_t *registers) = {
		set_rax_rcx, set_rcx_rdx, set_rdx_rbx, set_rbx_rbp, set_rbp_rsi, set_rsi_rdi, set_rdi_r8,
		set_r8_r9,   set_r9_r10,  set_r10_r12, set_r12_r13, set_r13_r14, set_r14_r15, set_r15_rax,
	};
	hazptr_t *slot = hazptr_alloc(NULL);

	(void)state;
	for (size_t first = 0; first < NR_REGISTERS; first++) {
		size_t second = (first + 1) % NR_REGISTERS;
		uintptr_t registers[NR_REGISTERS];

		for (size_t i = 0; i < NR_REGISTERS; i++)
			registers[i] = 1000 + i;
		registers[first] = (uintptr_t)slot;
		registers[second] = (uintptr_t)p + first;
		setters[first](registers);
		assert_int_equal(slot_value(slot), (uintptr_t)p + first);
		for (size_t i = 0; i < NR_REGISTERS; i++)
			assert_int_equal(registers[i], i == first ? (uintptr_t)slot : i == second ? (uintptr_t)p + first : 1000 + i);
	}
	hazptr_free(NULL, slot);
}

#endif

static void *free_array(void *slots)
{
	hazptr_free_array(NULL, slots, NR_OWN);
	return NULL;
}

static void an_array_may_be_freed_by_another_thread(void **state)
{
	hazptr_t *first = hazptr_alloc_array(NULL, NR_OWN), *second = hazptr_alloc_array(NULL, NR_OWN);

	(void)state;
	assert_non_null(first);
	assert_non_null(second);
	in_thread(free_array, first);
	in_thread(free_array, second);
	assert_ptr_equal(hazptr_alloc_array(NULL, NR_OWN), first);
	hazptr_free_array(NULL, first, NR_OWN);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(an_address_is_protected_until_another_is),
		TEST(marks_are_returned_and_not_protected),
		TEST(marked_objects_are_protected_by_a_field),
		TEST(a_marked_object_stays_while_its_field_is_protected),
		TEST(marks_are_masked_while_a_caller_waits),
		TEST(an_array_is_as_many_slots),
		TEST(an_array_leaves_out_slots_in_use),
		TEST(no_array_has_more_slots_than_a_context),
		TEST(arrays_in_arrays_take_no_more_lines_each_time),
		TEST(an_array_may_be_freed_by_another_thread),
#if QUIESCE__SET_SAVES
		TEST(sets_keep_all_registers_but_one),
#endif
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
