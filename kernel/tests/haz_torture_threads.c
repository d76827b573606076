// SPDX-License-Identifier: GPL-2.0 OR MIT
/* The torture test's readers and writers. */
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
 * Few stores, so that the buffer has room for the slot's and for those that an
 * emulator adds; to more memory than caches hold, so that each waits.
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

/* What is stored after these waits until memory has answered; loads do not wait. */
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
	/* Approximate: it is the first that counts. */
	WRITE_ONCE(*count, *count + 1);
	if (*count == 1)
		pr_alert("!!! %s, age %d, CPU %d, %s/%d%s\n", what, age, raw_smp_processor_id(),
			 current->comm, task_pid_nr(current),
			 in_hardirq() ? " in an interrupt" : "");
}

/* Whether the element is as it has to be while somebody holds it. */
static void look_at(const struct element *element, unsigned long *ages)
{
	int age = READ_ONCE(element->age);

	if (age >= 2)
		note_error(&early, "an element was released early", age);
	if (READ_ONCE(element->canary) != CANARY_SINGS)
		note_error(&dead, "an element was reused early", age);
	ages[clamp(age, 0, AGES - 1)]++;
}

/* Without cpu_relax(), for which an emulator leaves its loop. */
static void spin(unsigned int rounds)
{
	while (rounds--)
		barrier();
}

static void stay(struct rnd_state *random, bool may_sleep)
{
	u32 dice = tight ? 4000 : below(random, 10000);

	if (dice == 0 && may_sleep)
		msleep(1 + below(random, 20));
	else if (dice < 2)
		mdelay(1);
	else if (dice < 50)
		udelay(20);
	else if (dice < 5000)
		spin(2000);
}

/* Hold some elements of a writer, look at them, stay, look again, let go in the opposite order. */
static bool read_once(struct hazptr_context *ctx, struct rnd_state *random, unsigned long *ages,
		      bool may_sleep)
{
	struct writer *writer = &writers[below(random, nwriters)];
	struct hold holds[MAX_HELD];
	unsigned int i, nr, held = 0, wanted = 1 + below(random, ops->held);
	u32 first = tight ? 0 : below(random, POINTERS);

	for (i = 0; i < wanted; i++) {
		/* Now and then one element twice. */
		u32 which = (first + (i && below(random, 4) ? i : 0)) % POINTERS;

		fill_store_buffer(random);
		if (ops->lock(ctx, &writer->published[which], &holds[held]))
			held++;
	}
	nr = held;
	for (i = 0; i < held; i++)
		look_at(holds[i].element, ages);
	if (held)
		stay(random, may_sleep && ops->sleeps);
	for (i = 0; i < held; i++)
		look_at(holds[i].element, ages);
	while (held--)
		ops->unlock(ctx, &holds[held]);
	return nr;
}

static enum hrtimer_restart read_in_interrupt(struct hrtimer *timer)
{
	struct reader *reader = container_of(timer, struct reader, timer);

	if (READ_ONCE(stopping) || READ_ONCE(pausing))
		return HRTIMER_NORESTART;
	if (read_once(&reader->irq_ctx, &reader->irq_random, reader->irq_ages, false))
		WRITE_ONCE(reader->irq_reads, reader->irq_reads + 1);
	hrtimer_forward_now(timer, ns_to_ktime(200000 + below(&reader->irq_random, 800000)));
	return HRTIMER_RESTART;
}

static void start_timer(struct reader *reader)
{
	if (irqreader && !hrtimer_active(&reader->timer))
		hrtimer_start(&reader->timer, ns_to_ktime(NSEC_PER_MSEC), HRTIMER_MODE_REL_HARD);
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
	unsigned int cpu = below(&reader->random, nr_cpu_ids);

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
			hrtimer_cancel(&reader->timer);
			wait_out_pause(&reader->paused);
			continue;
		}
		start_timer(reader);
		if (read_once(&reader->ctx, &reader->random, reader->ages, true))
			WRITE_ONCE(reader->reads, reader->reads + 1);
		if (shuffle_interval && ops->sleeps && time_after(jiffies, next_shuffle)) {
			shuffle(reader);
			next_shuffle = jiffies + shuffle_interval * HZ;
		}
		if (!below(&reader->random, 4096))
			usleep_range(200, 500);
		cond_resched();
	}
	hrtimer_cancel(&reader->timer);
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

/* The wait for it is over: nobody may look at it any more. */
static void retire(struct element *element)
{
	struct writer *writer = writer_of(element);
	unsigned long flags;

	if (!writer || READ_ONCE(element->age) != 1) {
		note_error(&astray, "an element came back twice", READ_ONCE(element->age));
		return;
	}
	/* Readers use marked accesses, which race with nothing: KCSAN has to be told. */
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
	/* Written before the pointer, so that no store comes between it and the wait's barrier. */
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

static void init_timer(struct reader *reader)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 15, 0)
	hrtimer_setup(&reader->timer, read_in_interrupt, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
#else
	hrtimer_init(&reader->timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
	reader->timer.function = read_in_interrupt;
#endif
}

void init_reader(struct reader *reader)
{
	unsigned int i;

	prandom_seed_state(&reader->random, get_random_u64());
	prandom_seed_state(&reader->irq_random, get_random_u64());
	init_timer(reader);
	if (ops->contexts) {
		init_hazptr_context(&reader->ctx);
		init_hazptr_context(&reader->irq_ctx);
		/* All but a few, so that the last slots are used. */
		for (i = ops->held; i < HAZPTR_SLOT_PER_CTX; i++)
			if (!hazptr_alloc(&reader->ctx) || !hazptr_alloc(&reader->irq_ctx))
				note_error(&astray, "a new context has no slots", 0);
	}
}
