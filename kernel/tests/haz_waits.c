// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Number and duration of waits: calls of the functions that `functions` names,
 * counted and timed by kretprobes.  A call inside another one counts as well.
 *
 *	insmod haz_waits.ko functions=synchronize_rcu,synchronize_net
 *	cat /sys/module/haz_waits/parameters/counts
 *		now NS, and for each function: its name, calls, ns
 */
#define pr_fmt(fmt) "haz-waits: " fmt

#include <linux/atomic.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/sysfs.h>
#include <linux/timekeeping.h>

#define MAX_FUNCTIONS 8

static char *functions[MAX_FUNCTIONS];
static unsigned int nr_functions;
module_param_array(functions, charp, &nr_functions, 0444);
MODULE_PARM_DESC(functions, "Functions to count, at most eight names separated by commas");

static struct counter {
	struct kretprobe probe;
	atomic64_t calls;
	atomic64_t ns;
} counters[MAX_FUNCTIONS];

static int enter(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	*(u64 *)instance->data = ktime_get_mono_fast_ns();
	return 0;
}

static int leave(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	struct counter *counter = container_of(get_kretprobe(instance), struct counter, probe);

	atomic64_inc(&counter->calls);
	atomic64_add(ktime_get_mono_fast_ns() - *(u64 *)instance->data, &counter->ns);
	return 0;
}

static int counts_get(char *buffer, const struct kernel_param *unused)
{
	int length = sysfs_emit(buffer, "now %llu\n", ktime_get_mono_fast_ns());
	unsigned int i;

	for (i = 0; i < nr_functions; i++) {
		struct counter *counter = &counters[i];

		length += sysfs_emit_at(buffer, length, "%s %lld %lld\n", functions[i],
					atomic64_read(&counter->calls),
					atomic64_read(&counter->ns));
	}
	return length;
}

static const struct kernel_param_ops counts_ops = { .get = counts_get };
module_param_cb(counts, &counts_ops, NULL, 0444);
MODULE_PARM_DESC(counts, "The time, and of each function the calls that ended and their ns");

static void remove(unsigned int nr)
{
	while (nr--) {
		unregister_kretprobe(&counters[nr].probe);
		/* Calls that the probe could not count. */
		if (counters[nr].probe.nmissed)
			pr_warn("%s: missed %d\n", functions[nr], counters[nr].probe.nmissed);
	}
}

static int __init haz_waits_init(void)
{
	unsigned int i;

	for (i = 0; i < nr_functions; i++) {
		int err;

		counters[i].probe = (struct kretprobe) {
			.kp.symbol_name = functions[i],
			.entry_handler = enter, .handler = leave,
			.data_size = sizeof(u64), .maxactive = 64,
		};
		err = register_kretprobe(&counters[i].probe);
		if (err) {
			pr_err("%s: no probe: %d\n", functions[i], err);
			remove(i);
			return err;
		}
	}
	return 0;
}

static void __exit haz_waits_exit(void)
{
	remove(nr_functions);
}

module_init(haz_waits_init);
module_exit(haz_waits_exit);
MODULE_DESCRIPTION("Counts and times calls of kernel functions");
MODULE_AUTHOR("The quiesce authors");
MODULE_LICENSE("Dual MIT/GPL");
