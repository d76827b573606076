// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Tests of shazptr.ko, run when the module is loaded; KTAP in the kernel's log.
 *
 * Usage in a guest:
 *	insmod shazptr.ko; insmod shazptr_test.ko; dmesg
 *	insmod shazptr_test.ko stall=1
 *		A guard is held for 3 s: with shazptr.stall_timeout=1 the log has
 *		"synchronize_shazptr(...) by shazptr_wait/... waits for" and "for a guard on CPU 1".
 *	insmod shazptr_test.ko misuse=1
 *		In a build with QUIESCE_DEBUG=1 the log has "a guard with preemption enabled"
 *		and, in any build, "a wait where sleeping is forbidden".
 *	insmod shazptr.ko early=1; insmod shazptr_test.ko early=1
 *		In a build with QUIESCE_DEBUG=1: waits as before the module is initialised.
 *	echo freezer > /sys/power/pm_test; insmod shazptr_test.ko frozen=1
 *	echo mem > /sys/power/state; rmmod shazptr_test
 *		A thread waits all the time, also while the scan thread is frozen; KTAP at removal.
 *		Boot with preempt=full, since the debug suspend keeps a CPU busy for 5 s.
 */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/smp.h>

#include "later_cleanup.h"

#include <linux/shazptr.h>

#include "ktap.h"
#include "shazptr_readers.h"

static bool early, stall, misuse, frozen;
module_param(early, bool, 0444);
module_param(stall, bool, 0444);
module_param(misuse, bool, 0444);
module_param(frozen, bool, 0444);

static char object, third;

/* True if a wait for @ptr lasts as long as the guards of @holder, and ends then. */
static bool blocks_until_cleared(struct holder *holder, const void *ptr)
{
	struct wait wait;
	bool blocked;

	if (!start_holder(holder))
		return false;
	if (!start_wait(&wait, ptr)) {
		stop_holder(holder);
		return false;
	}
	blocked = waits(&wait);
	stop_holder(holder);
	if (!blocked)
		return false;
	return ends(&wait);
}

static bool test_guard_blocks(void)
{
	struct holder holder = { .outer = &object };

	return blocks_until_cleared(&holder, &object);
}

/*
 * A waiter that the scan of the thread finds blocked by an address must not
 * return; the posted version released it early.
 */
static bool test_scan_knows_address(void)
{
	struct shazptr_stats before, after;
	bool good;

	shazptr_get_stats(&before);
	good = test_guard_blocks();
	shazptr_get_stats(&after);
	return good && after.waits > before.waits && after.scans > before.scans + 1;
}

static bool test_others_pass(void)
{
	struct holder holder = { .outer = &object };
	struct shazptr_stats before, after;

	if (!start_holder(&holder))
		return false;
	shazptr_get_stats(&before);
	synchronize_shazptr(&other);
	shazptr_get_stats(&after);
	stop_holder(&holder);
	return after.calls == before.calls + 1;
}

static bool test_wildcard_blocks_all(void)
{
	struct holder whole = { .outer = SHAZPTR_WILDCARD };
	struct holder nested = { .outer = &object, .inner = &other };

	return blocks_until_cleared(&whole, &third) && blocks_until_cleared(&nested, &third);
}

/* Both the outer address and the wildcard that stays behind block a wait. */
static bool test_inner_clear(void)
{
	struct holder first = { .outer = &object, .inner = &other, .drop_inner = true };
	struct holder second = { .outer = &object, .inner = &other, .drop_inner = true };

	return blocks_until_cleared(&first, &object) && blocks_until_cleared(&second, &other);
}

static unsigned long slot_value(void)
{
	return READ_ONCE(raw_cpu_ptr(&shazptr_slots)->value);
}

static bool test_slot_states(void)
{
	struct shazptr_guard a, b, c;
	bool good;

	preempt_disable();
	a = shazptr_acquire(&object);
	good = slot_value() == (unsigned long)&object;
	b = shazptr_acquire(&other);
	c = shazptr_acquire(&third);
	good &= slot_value() == ~0UL;
	shazptr_clear(c);
	shazptr_clear(b);
	good &= slot_value() == ~0UL;
	shazptr_clear(a);
	good &= slot_value() == 0;
	preempt_enable();
	return good;
}

static bool test_null(void)
{
	struct shazptr_guard guard;

	preempt_disable();
	guard = shazptr_acquire(NULL);
	shazptr_clear(guard);
	preempt_enable();
	synchronize_shazptr(NULL);
	return true;
}

static bool test_protect(void)
{
	char *gp = &object;
	char *none = NULL;
	struct shazptr_guard guard;
	bool good;

	preempt_disable();
	good = shazptr_protect(&guard, &gp) == &object && slot_value() == (unsigned long)&object;
	shazptr_clear(guard);
	good &= slot_value() == 0;
	good &= shazptr_tryprotect(&guard, &gp) == &object;
	shazptr_clear(guard);
	good &= !shazptr_tryprotect(&guard, &none);
	shazptr_clear(guard);
	good &= !shazptr_protect(&guard, &none);
	shazptr_clear(guard);
	good &= slot_value() == 0;
	preempt_enable();
	return good;
}

/* A pointer that changes all the time: no attempt succeeds, and the wildcard protects. */
static bool test_protect_changing(void)
{
	char *gp = &object, *none = NULL;
	struct shazptr_guard guard;
	bool good;

	preempt_disable();
	good = __shazptr_protect(&guard, &gp, 0) == &object && slot_value() == ~0UL;
	shazptr_clear(guard);
	good &= slot_value() == 0;
	good &= !__shazptr_protect(&guard, &none, 0) && slot_value() == 0;
	shazptr_clear(guard);
	/* An attempt that succeeds does not take the wildcard. */
	good &= __shazptr_protect(&guard, &gp, 1) == &object;
	good &= slot_value() == (unsigned long)&object;
	shazptr_clear(guard);
	preempt_enable();
	return good;
}

#ifdef DEFINE_CLASS
static bool test_scopes(void)
{
	bool good;

	preempt_disable();
	{
		guard(shazptr)(&object);

		good = slot_value() == (unsigned long)&object;
		scoped_guard(shazptr, &other)
			good &= slot_value() == ~0UL;
	}
	good &= slot_value() == 0;
	preempt_enable();
	return good;
}

/* The body runs, and its end clears the slot, whatever @ptr looks like. */
static bool scope_clears(const void *ptr)
{
	int bodies = 0;
	bool good;

	OPTIMIZER_HIDE_VAR(ptr);
	preempt_disable();
	{
		guard(shazptr)(ptr);

		good = slot_value() == (unsigned long)ptr;
	}
	good &= slot_value() == 0;
	scoped_guard(shazptr, ptr)
		bodies++;
	good &= slot_value() == 0;
	/* A value that is left would make every later wait hang. */
	WRITE_ONCE(raw_cpu_ptr(&shazptr_slots)->value, 0);
	preempt_enable();
	return good && bodies == 1;
}

static bool test_scope_of_wildcard(void)
{
	return scope_clears(SHAZPTR_WILDCARD);
}

static bool test_scope_of_null(void)
{
	return scope_clears(NULL);
}
#endif

/* A section in a hard interrupt: on the CPU of the holder, and on an idle CPU. */
static void section_in_interrupt(void *seen)
{
	struct shazptr_guard guard = shazptr_acquire(&other);

	*(unsigned long *)seen = slot_value();
	shazptr_clear(guard);
}

static bool test_interrupt_in_section(void)
{
	struct holder holder = { .outer = &object };
	unsigned long seen = 0;
	struct wait wait;
	bool blocked;

	if (!start_holder(&holder))
		return false;
	smp_call_function_single(second_cpu(), section_in_interrupt, &seen, true);
	/* The wildcard stays, and blocks a wait for an address that no guard protects. */
	if (!start_wait(&wait, &third)) {
		stop_holder(&holder);
		return false;
	}
	blocked = waits(&wait);
	stop_holder(&holder);
	return seen == ~0UL && blocked && ends(&wait);
}

/* The interrupt comes when the slot is marked, and turns it into the wildcard. */
static bool test_interrupt_in_marked(void)
{
	struct holder holder = { .outer = &object };
	unsigned long seen = 0;
	struct wait wait;
	bool blocked;

	if (!start_holder(&holder))
		return false;
	if (!start_wait(&wait, &object)) {
		stop_holder(&holder);
		return false;
	}
	blocked = waits(&wait);
	smp_call_function_single(second_cpu(), section_in_interrupt, &seen, true);
	blocked &= waits(&wait);
	smp_call_function_single(second_cpu(), section_in_interrupt, &seen, true);
	blocked &= waits(&wait);
	stop_holder(&holder);
	return blocked && ends(&wait);
}

static void read_slot(void *seen)
{
	*(unsigned long *)seen = slot_value();
}

static bool test_interrupt_alone(void)
{
	unsigned long during = 0, after = 1;

	smp_call_function_single(second_cpu(), section_in_interrupt, &during, true);
	smp_call_function_single(second_cpu(), read_slot, &after, true);
	return during == (unsigned long)&other && after == 0;
}

static bool waits_end_under(struct hammer *hammer)
{
	bool good = true;
	int i;

	if (!start_hammer(hammer))
		return false;
	for (i = 0; i < 50 && good; i++) {
		struct wait wait;

		good = start_wait(&wait, &object);
		if (good && !wait_for_completion_timeout(&wait.done, msecs_to_jiffies(LONG_MS))) {
			good = false;
			WRITE_ONCE(hammer->stop, true);
			wait_for_completion(&wait.done);
		}
	}
	WRITE_ONCE(hammer->stop, true);
	wait_for_completion(&hammer->done);
	return good;
}

static bool test_address_again(void)
{
	struct hammer hammer = { .ptr = &object };

	return waits_end_under(&hammer);
}

static bool test_wildcard_again_and_again(void)
{
	struct hammer hammer = { .ptr = SHAZPTR_WILDCARD };

	return waits_end_under(&hammer);
}

static bool test_nested_again_and_again(void)
{
	struct hammer hammer = { .ptr = &object, .nested = true };

	return waits_end_under(&hammer);
}

#define NR_WAITS 64

static bool test_many_wait(void)
{
	struct holder holder = { .outer = &object };
	struct wait *wait = kcalloc(NR_WAITS, sizeof(*wait), GFP_KERNEL);
	bool good = true;
	int i, started;

	if (!wait || !start_holder(&holder)) {
		kfree(wait);
		return false;
	}
	for (started = 0; started < NR_WAITS; started++)
		if (!start_wait(&wait[started], started % 2 ? (void *)&object : (void *)&other))
			break;
	good &= started == NR_WAITS;
	for (i = 0; i < started; i += 2)
		good &= ends(&wait[i]);
	for (i = 1; i < started; i += 2)
		good &= !completion_done(&wait[i].done);
	stop_holder(&holder);
	for (i = 1; i < started; i += 2)
		good &= ends(&wait[i]);
	kfree(wait);
	return good;
}

/* Few scans during a long guard: the pauses of the scan thread grow. */
static bool test_scan_thread_sleeps(void)
{
	struct holder holder = { .outer = &object };
	struct shazptr_stats before, after;
	struct wait wait;

	if (!start_holder(&holder))
		return false;
	shazptr_get_stats(&before);
	if (!start_wait(&wait, &object)) {
		stop_holder(&holder);
		return false;
	}
	msleep(400);
	shazptr_get_stats(&after);
	stop_holder(&holder);
	/* log(10 ms / 20 us) / log(1.25) scans until pauses are 10 ms, then 100 in each second. */
	return ends(&wait) && after.scans > before.scans && after.scans - before.scans < 100;
}

static bool test_marks(void)
{
	struct holder holder = { .outer = &object };
	struct shazptr_stats before, after;

	shazptr_get_stats(&before);
	if (!blocks_until_cleared(&holder, &object))
		return false;
	shazptr_get_stats(&after);
	/* One mark for the guard, however many scans there were, and no other write. */
	return after.marks == before.marks + 1 && after.waiting == 0;
}

static const struct {
	const char *name;
	bool (*run)(void);
	bool second_cpu;
} tests[] = {
	{ "slots go from empty to address to wildcard and back", test_slot_states },
	{ "NULL protects nothing and is not waited for", test_null },
	{ "protect and tryprotect", test_protect },
	{ "protect takes the wildcard when its attempts are used up", test_protect_changing },
#ifdef DEFINE_CLASS
	{ "guard and scoped_guard", test_scopes },
	{ "guard and scoped_guard of the wildcard", test_scope_of_wildcard },
	{ "guard and scoped_guard of NULL", test_scope_of_null },
#endif
	{ "a guard blocks its updater until it is cleared", test_guard_blocks, true },
	{ "the scan thread knows what is waited for", test_scan_knows_address, true },
	{ "a guard does not block other updaters", test_others_pass, true },
	{ "the wildcard and nested guards block every updater", test_wildcard_blocks_all, true },
	{ "an inner guard's end leaves the outer one", test_inner_clear, true },
	{ "a section in an interrupt in a section", test_interrupt_in_section, true },
	{ "a section in an interrupt while a caller waits", test_interrupt_in_marked, true },
	{ "a section in an interrupt outside of sections", test_interrupt_alone, true },
	{ "a reader that comes back at once delays no waiter for ever", test_address_again, true },
	{ "nor does one with the wildcard", test_wildcard_again_and_again, true },
	{ "nor does one with nested guards", test_nested_again_and_again, true },
	{ "many wait, for two objects", test_many_wait, true },
	{ "the scan thread sleeps", test_scan_thread_sleeps, true },
	{ "a slot that is waited for is marked once", test_marks, true },
};

static bool run_test(bool (*run)(void))
{
	int tries;

	for (tries = 0; tries < 3; tries++) {
		WRITE_ONCE(expired, false);
		if (run())
			return true;
		if (!READ_ONCE(expired))
			return false;
	}
	return false;
}

static void run_tests(void)
{
	bool alone = num_online_cpus() < 2;
	int i;

	/* This thread must not run on the CPU that holders occupy. */
	set_cpus_allowed_ptr(current, cpumask_of(cpumask_first(cpu_online_mask)));
	ktap_start(ARRAY_SIZE(tests));
	for (i = 0; i < ARRAY_SIZE(tests); i++) {
		if (alone && tests[i].second_cpu)
			ktap_skip(tests[i].name, "needs two CPUs");
		else
			ktap_case(run_test(tests[i].run), tests[i].name);
	}
	set_cpus_allowed_ptr(current, cpu_possible_mask);
}

static void hold_long(void)
{
	struct holder holder = { .outer = &object };
	struct wait wait;

	hold_ms = 10000;
	/* This thread must avoid the holder's CPU: preempt-rt runs its timers in a thread there. */
	set_cpus_allowed_ptr(current, cpumask_of(cpumask_first(cpu_online_mask)));
	if (!start_holder(&holder))
		return;
	if (start_wait(&wait, &object)) {
		msleep(3000);
		stop_holder(&holder);
		ends(&wait);
	} else {
		stop_holder(&holder);
	}
	set_cpus_allowed_ptr(current, cpu_possible_mask);
}

static void do_wrong(void)
{
	struct shazptr_guard guard = shazptr_acquire(&object);

	shazptr_clear(guard);
	preempt_disable();
	synchronize_shazptr(&other);
	preempt_enable();
}

static struct task_struct *freeze_task;
static bool frozen_good = true;

/* A thread that is not frozen, and waits for one guard after the other. */
static int wait_all_the_time(void *unused)
{
	while (!kthread_should_stop()) {
		struct holder holder = { .outer = &object };

		if (!blocks_until_cleared(&holder, &object) && !READ_ONCE(expired))
			frozen_good = false;
		WRITE_ONCE(expired, false);
	}
	return 0;
}

static int start_waiting(void)
{
	freeze_task = kthread_run(wait_all_the_time, NULL, "shazptr_freeze");
	return PTR_ERR_OR_ZERO(freeze_task);
}

static void stop_waiting(void)
{
	struct shazptr_stats stats;

	kthread_stop(freeze_task);
	shazptr_get_stats(&stats);
	ktap_start(2);
	ktap_case(frozen_good, "waits lasted as long as their guards");
	ktap_case(stats.helped > 0, "waiters scanned while the scan thread was frozen");
}

/* There is no scan thread: the waiter polls by itself. */
static void run_early(void)
{
	set_cpus_allowed_ptr(current, cpumask_of(cpumask_first(cpu_online_mask)));
	ktap_start(3);
	ktap_case(run_test(test_guard_blocks), "before init a guard blocks its updater");
	ktap_case(run_test(test_wildcard_blocks_all),
		  "before init the wildcard blocks every updater");
	ktap_case(run_test(test_others_pass),
		  "before init a guard does not block other updaters");
	set_cpus_allowed_ptr(current, cpu_possible_mask);
}

static int __init shazptr_test_init(void)
{
	if (frozen)
		return start_waiting();
	if (early)
		run_early();
	else if (stall)
		hold_long();
	else if (misuse)
		do_wrong();
	else
		run_tests();
	return 0;
}

static void __exit shazptr_test_exit(void)
{
	if (frozen)
		stop_waiting();
}

module_init(shazptr_test_init);
module_exit(shazptr_test_exit);
MODULE_DESCRIPTION("Tests of shazptr.ko");
MODULE_AUTHOR("The quiesce authors");
MODULE_LICENSE("Dual MIT/GPL");
