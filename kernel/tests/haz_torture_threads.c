// SPDX-License-Identifier: GPL-2.0 OR MIT
/* haz_torture_threads.c - the torture test's readers and writers. */
#define pr_fmt(fmt) "haz-torture: " fmt

#include <linux/bits.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/kcsan-checks.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/pid.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/version.h>

#include "haz_torture.h"

unsigned long early, dead, astray, stalls;

/*
 * Few stores, so that the buffer has room for the store to the slot and for
 * those that an emulator adds; to more memory than the caches have, so that
 * each store waits.
 */
#define COLD_STORES 8
#define COLD_LINES BIT(20)

static struct cold_line {
	unsigned long value;
} ____cacheline_aligned *cold_lines;

static u32 below(struct rnd_state *random, u32 bound)
{
	return prandom_u32_state(random) % bound;
}

/* Stores after this wait until memory has answered; loads do not wait. */
static __always_inline void fill_store_buffer(struct rnd_state *random)
{
	u32 at;
	int i;

	if (!cold_lines)
		return;
	at = prandom_u32_state(random);
	for (i = 0; i < COLD_STORES; i++) {
		at = at * 1664525 + 1013904223;
		WRITE_ONCE(cold_lines[(at >> 8) % COLD_LINES].value, i);
	}
}

int init_stuffing(void)
{
	if (stuff)
		cold_lines = kvcalloc(COLD_LINES, sizeof(*cold_lines), GFP_KERNEL);
	return stuff && !cold_lines ? -ENOMEM : 0;
}

void free_stuffing(void)
{
	kvfree(cold_lines);
}

void note_error(unsigned long *count, const char *what, int age)
{
	/* Approximate: only the first count matters. */
	WRITE_ONCE(*count, *count + 1);
	if (*count == 1)
		pr_alert("!!! %s, age %d, CPU %d, %s/%d%s\n", what, age, raw_smp_processor_id(),
			 current->comm, task_pid_nr(current),
			 in_hardirq() ? " in an interrupt" :
			 in_serving_softirq() ? " in a softirq" : "");
}

/* Checks that the element is as it has to be while it is protected. */
static void check_hold(const struct hold *hold, unsigned long *ages)
{
	const struct element *element = hold->element;
	int age = READ_ONCE(element->age);

	if (age >= 2)
		note_error(&early, "an element was released early", age);
	if (READ_ONCE(element->canary) != CANARY_SINGS || READ_ONCE(element->use) != hold->use)
		note_error(&dead, "an element was reused early", age);
	ages[clamp(age, 0, AGES - 1)]++;
}

static bool take_hold(struct hazptr_context *ctx, struct element **gp, struct hold *hold,
		      struct rnd_state *random)
{
	fill_store_buffer(random);
	if (!ops->lock(ctx, gp, hold))
		return false;
	hold->use = READ_ONCE(hold->element->use);
	return true;
}

/* No cpu_relax(), for which an emulator leaves its loop. */
static void spin(unsigned int rounds)
{
	while (rounds--)
		barrier();
}

/* Now and then stays for long: a guard for some ms, a slot for a third of a second. */
static void stay_long(struct rnd_state *random, int level)
{
	bool longest = !below(random, 16);

	if (level == IN_TASK && ops->sleeps)
		msleep(1 + below(random, longest ? 300 : 20));
	else
		mdelay(level == IN_TASK && longest ? 5 : 1);
}

static void stay(struct rnd_state *random, int level)
{
	u32 dice = tight ? 4000 : below(random, 10000);

	if (dice < 2)
		stay_long(random, level);
	else if (dice < 50)
		udelay(20);
	else if (dice < 5000)
		spin(2000);
}

/*
 * Protects some elements of a writer, checks them, stays, checks again, and
 * releases them in the opposite order.
 */
static void read_once(struct level *at, int level, struct hazptr_context *ctx)
{
	struct rnd_state *random = &at->random;
	struct writer *writer = &writers[below(random, nwriters)];
	struct hold holds[MAX_HELD];
	unsigned int i, held = 0, wanted = 1 + below(random, ops->held);
	u32 first = tight ? 0 : below(random, POINTERS);

	for (i = 0; i < wanted; i++) {
		/* Now and then the reader takes the same element twice. */
		u32 which = (first + (i && below(random, 4) ? i : 0)) % POINTERS;

		if (take_hold(ctx, &writer->published[which], &holds[held], random))
			held++;
	}
	if (!held)
		return;
	for (i = 0; i < held; i++)
		check_hold(&holds[i], at->ages);
	stay(random, level);
	for (i = 0; i < held; i++)
		check_hold(&holds[i], at->ages);
	while (held--)
		ops->unlock(ctx, &holds[held]);
	WRITE_ONCE(at->reads, at->reads + 1);
}

static enum hrtimer_restart read_in_interrupt(struct level *at, int level)
{
	if (READ_ONCE(stopping) || READ_ONCE(pausing))
		return HRTIMER_NORESTART;
	read_once(at, level, &at->ctx);
	hrtimer_forward_now(&at->timer, ns_to_ktime(200000 + below(&at->random, 800000)));
	return HRTIMER_RESTART;
}

static enum hrtimer_restart read_in_softirq(struct hrtimer *timer)
{
	return read_in_interrupt(container_of(timer, struct level, timer), IN_SOFTIRQ);
}

static enum hrtimer_restart read_in_hardirq(struct hrtimer *timer)
{
	return read_in_interrupt(container_of(timer, struct level, timer), IN_HARDIRQ);
}

static const struct {
	enum hrtimer_restart (*func)(struct hrtimer *timer);
	enum hrtimer_mode mode;
} timers[LEVELS] = {
	[IN_SOFTIRQ] = { read_in_softirq, HRTIMER_MODE_REL_SOFT },
	[IN_HARDIRQ] = { read_in_hardirq, HRTIMER_MODE_REL_HARD },
};

static void start_timers(struct reader *reader)
{
	int i;

	for (i = IN_SOFTIRQ; irqreader && i < LEVELS; i++)
		if (!hrtimer_active(&reader->levels[i].timer))
			hrtimer_start(&reader->levels[i].timer, ns_to_ktime(NSEC_PER_MSEC),
				      timers[i].mode);
}

static void cancel_timers(struct reader *reader)
{
	int i;

	for (i = IN_SOFTIRQ; i < LEVELS; i++)
		hrtimer_cancel(&reader->levels[i].timer);
}

static void comer_goes(struct reader *reader, struct comer *comer)
{
	if (!comer->ctx)
		return;
	if (comer->hold.element) {
		check_hold(&comer->hold, reader->levels[IN_TASK].ages);
		ops->unlock(comer->ctx, &comer->hold);
		comer->hold.element = NULL;
	}
	cleanup_hazptr_context(comer->ctx);
	kfree(comer->ctx);
	comer->ctx = NULL;
}

static void comers_go(struct reader *reader)
{
	int i;

	for (i = 0; i < COMERS; i++)
		comer_goes(reader, &reader->comers[i]);
}

/*
 * A new context in the place of an old one; few keep an element, fewest where
 * writers wait for it.
 */
static void comer_comes(struct reader *reader)
{
	struct rnd_state *random = &reader->levels[IN_TASK].random;
	struct comer *comer = &reader->comers[below(random, COMERS)];
	struct element **gp = &writers[below(random, nwriters)].published[below(random, POINTERS)];

	comer_goes(reader, comer);
	comer->ctx = kmalloc(sizeof(*comer->ctx), GFP_KERNEL);
	if (!comer->ctx)
		return;
	init_hazptr_context(comer->ctx);
	WRITE_ONCE(reader->came, reader->came + 1);
	if (!below(random, ops->sync ? 256 : 16) &&
	    !take_hold(comer->ctx, gp, &comer->hold, random))
		comer->hold.element = NULL;
}

static void read_in_task(struct reader *reader)
{
	struct level *at = &reader->levels[IN_TASK];
	u32 dice = ops->contexts ? below(&at->random, 16) : 1;
	struct hazptr_context ctx;

	if (!dice) {
		comer_comes(reader);
		init_hazptr_context(&ctx);
		read_once(at, IN_TASK, &ctx);
		cleanup_hazptr_context(&ctx);
	} else {
		read_once(at, IN_TASK, &at->ctx);
	}
}

static void wait_out_pause(bool *paused)
{
	WRITE_ONCE(*paused, true);
	while (READ_ONCE(pausing) && !kthread_should_stop())
		msleep(20);
	WRITE_ONCE(*paused, false);
}

static void shuffle(struct reader *reader)
{
	unsigned int cpu = below(&reader->levels[IN_TASK].random, nr_cpu_ids);

	if (cpu_online(cpu))
		set_cpus_allowed_ptr(current, cpumask_of(cpu));
	else
		set_cpus_allowed_ptr(current, cpu_possible_mask);
}

int reader_thread(void *arg)
{
	struct reader *reader = arg;
	unsigned long next_shuffle = jiffies;

	set_user_nice(current, MAX_NICE);
	while (!kthread_should_stop()) {
		if (READ_ONCE(pausing)) {
			cancel_timers(reader);
			comers_go(reader);
			wait_out_pause(&reader->paused);
			continue;
		}
		start_timers(reader);
		read_in_task(reader);
		if (shuffle_interval && ops->sleeps && time_after(jiffies, next_shuffle)) {
			shuffle(reader);
			next_shuffle = jiffies + shuffle_interval * HZ;
		}
		if (!below(&reader->levels[IN_TASK].random, 4096))
			usleep_range(200, 500);
		cond_resched();
	}
	cancel_timers(reader);
	comers_go(reader);
	return 0;
}

static struct writer *writer_of(struct element *element)
{
	int i;

	for (i = 0; i < nwriters; i++)
		if (element >= writers[i].pool && element < writers[i].pool + POOL)
			return &writers[i];
	return NULL;
}

/* The wait for the element is over: no reader may use it any more. */
static void retire(struct element *element)
{
	struct writer *writer = writer_of(element);
	unsigned long flags;

	if (!writer || READ_ONCE(element->age) != 1) {
		note_error(&astray, "an element came back twice", READ_ONCE(element->age));
		return;
	}
	/*
	 * Readers use marked accesses, which KCSAN does not count as races:
	 * assert that they have ended.
	 */
	ASSERT_EXCLUSIVE_ACCESS(element->age);
	ASSERT_EXCLUSIVE_ACCESS(element->canary);
	WRITE_ONCE(element->age, 2);
	WRITE_ONCE(element->canary, CANARY_DEAD);
	spin_lock_irqsave(&writer->lock, flags);
	list_add_tail(&element->node, &writer->free);
	writer->nr_free++;
	spin_unlock_irqrestore(&writer->lock, flags);
}

static void retire_callback(struct callback_head *head)
{
	retire(container_of(head, struct element, head));
}

static struct element *take_free(struct writer *writer)
{
	struct element *element;

	spin_lock_irq(&writer->lock);
	element = list_first_entry_or_null(&writer->free, struct element, node);
	if (element) {
		list_del(&element->node);
		writer->nr_free--;
	}
	spin_unlock_irq(&writer->lock);
	if (!element)
		return NULL;
	WRITE_ONCE(element->use, element->use + 1);
	WRITE_ONCE(element->age, 0);
	WRITE_ONCE(element->canary, CANARY_SINGS);
	return element;
}

static bool replace(struct writer *writer)
{
	struct element **gp = &writer->published[tight ? 0 : below(&writer->random, POINTERS)];
	struct element *element = take_free(writer), *old = *gp;

	if (!element) {
		WRITE_ONCE(writer->empty, writer->empty + 1);
		return false;
	}
	/*
	 * Written before the pointer, so that no store comes between the pointer
	 * and the barrier of the wait.
	 */
	if (old)
		WRITE_ONCE(old->age, 1);
	/* TK2: release, pairs with the caller: the readers' dependent loads */
	smp_store_release(gp, element);
	if (old && ops->sync) {
		ops->sync(old);
		retire(old);
	} else if (old) {
		ops->call(&old->head, retire_callback);
		if (!below(&writer->random, 512)) {
			ops->drain();
			if (READ_ONCE(old->age) < 2)
				note_error(&astray, "hazptr_barrier() returned early", 1);
		}
	}
	WRITE_ONCE(writer->replaced, writer->replaced + 1);
	return true;
}

int writer_thread(void *arg)
{
	struct writer *writer = arg;

	while (!kthread_should_stop()) {
		if (READ_ONCE(pausing)) {
			wait_out_pause(&writer->paused);
			continue;
		}
		if (!replace(writer))
			usleep_range(500, 1000);
		else if (!below(&writer->random, 1024))
			usleep_range(200, 500);
		cond_resched();
	}
	return 0;
}

int init_writer(struct writer *writer)
{
	int i;

	spin_lock_init(&writer->lock);
	INIT_LIST_HEAD(&writer->free);
	prandom_seed_state(&writer->random, get_random_u64());
	writer->pool = kcalloc(POOL, sizeof(*writer->pool), GFP_KERNEL);
	if (!writer->pool)
		return -ENOMEM;
	for (i = 0; i < POOL; i++)
		list_add_tail(&writer->pool[i].node, &writer->free);
	writer->nr_free = POOL;
	for (i = 0; i < POINTERS; i++)
		writer->published[i] = take_free(writer);
	return 0;
}

static void init_timer(struct hrtimer *timer, int level)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 15, 0)
	hrtimer_setup(timer, timers[level].func, CLOCK_MONOTONIC, timers[level].mode);
#else
	hrtimer_init(timer, CLOCK_MONOTONIC, timers[level].mode);
	timer->function = timers[level].func;
#endif
}

static void init_level(struct level *at, int level)
{
	unsigned int i;

	prandom_seed_state(&at->random, get_random_u64());
	if (level != IN_TASK)
		init_timer(&at->timer, level);
	if (!ops->contexts)
		return;
	init_hazptr_context(&at->ctx);
	for (i = ops->held; i < HAZPTR_SLOT_PER_CTX; i++) {
		at->taken[i] = hazptr_alloc(&at->ctx);
		if (!at->taken[i])
			note_error(&astray, "a new context has no slots", 0);
	}
}

void init_reader(struct reader *reader)
{
	int i;

	for (i = 0; i < LEVELS; i++)
		init_level(&reader->levels[i], i);
}

/* The reader's thread has ended. */
void cleanup_reader(struct reader *reader)
{
	int i, j;

	for (i = 0; ops->contexts && i < LEVELS; i++) {
		struct level *at = &reader->levels[i];

		for (j = 0; j < HAZPTR_SLOT_PER_CTX; j++)
			hazptr_free(&at->ctx, at->taken[j]);
		cleanup_hazptr_context(&at->ctx);
	}
}
