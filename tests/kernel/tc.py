# SPDX-License-Identifier: MIT
"""Experiment with `tc qdisc replace`: make the guest's script, read its log, and print the tables."""
import json
import os
import shutil
import statistics

WAYS = {"0": "no wait (a bug)", "1": "synchronize_rcu", "2": "expedited", "3": "synchronize_shazptr"}
LOADS = ("idle", "busy")
QUEUES = 32

# The file counts has the clock, calls and times; CAL of /proc/interrupts counts calls of functions on other CPUs.
SCRIPT = """
%(ip)s link add wide0 numtxqueues %(queues)d type dummy && %(ip)s link set wide0 up || exit 20
insmod haz_waits.ko functions=tc_modify_qdisc,lockdep_unregister_key,synchronize_net,rcu_exp_handler,sched_ttwu_pending || exit 11
counts=/sys/module/haz_waits/parameters/counts
cal() {
	awk '/CAL:/ { for (i = 2; $i ~ /^[0-9]+$/; i++) sum += $i; print sum }' /proc/interrupts
}
report() {
	echo "TC $1 cal $(cal)"
	while read -r name calls ns; do echo "TC $1 $name $calls $ns"; done <$counts
}
replace() { # LOAD WAY
	echo $2 >/sys/module/lockdep/parameters/key_wait
	sleep 0.2
	echo "TC batch $1 $2"
	report before
	i=0
	times=
	while [ $i -lt %(replaces)d ]; do
		read -r _ start <$counts
		%(tc)s qdisc replace dev wide0 root handle 0x$((i %% 2 + 1)): mq || exit 21
		read -r _ end <$counts
		times="$times $((end - start))"
		i=$((i + 1))
	done
	report after
	echo "TC times$times"
}
spin() { # in userspace, on all CPUs but the first
	cpu=1
	while [ $cpu -lt $(nproc) ]; do
		taskset $((1 << cpu)) sh -c 'while :; do :; done' &
		cpu=$((cpu + 1))
	done
}
for load in idle busy; do
	[ $load = idle ] || spin
	[ $load = idle ] || [ "$(ps | grep -c 'while [:]')" = $(($(nproc) - 1)) ] || exit 23
	round=0
	while [ $round -lt %(rounds)d ]; do
		for way in 1 2 3 0; do replace $load $way; done
		round=$((round + 1))
	done
done
cat /sys/kernel/debug/lockdep_shazptr/stats
grep -q '^ *debug_locks: *1$' /proc/lockdep_stats || exit 22
"""


# By path, since busybox has names of its own.
PROGRAMS = tuple(shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin") or name for name in ("tc", "ip"))


def script(rounds, replaces):
    return SCRIPT % {"rounds": rounds, "replaces": replaces, "queues": QUEUES, "tc": PROGRAMS[0], "ip": PROGRAMS[1]}


class Batch:
    """A batch holds the replacements under one load and with one kind of wait."""

    def __init__(self, load, way):
        self.load, self.way, self.times, self.marks = load, way, [], {"before": {}, "after": {}}

    def calls(self, name):
        return self.marks["after"][name][0] - self.marks["before"][name][0]

    def ns(self, name):
        return self.marks["after"][name][1] - self.marks["before"][name][1]


def parse(text):
    batches = []
    for line in text.splitlines():
        words = line.split()
        if words[:2] == ["TC", "batch"]:
            batches.append(Batch(*words[2:4]))
        elif words[:2] == ["TC", "times"]:
            batches[-1].times = [int(w) for w in words[2:]]
        elif words[:1] == ["TC"] and len(words) >= 4:
            batches[-1].marks[words[1]][words[2]] = [int(w) for w in words[3:]]
    return [b for b in batches if b.times]


class Summary:
    """Return figures of all batches of a load and a way; all but wall are per replacement, in ms."""

    def __init__(self, batches):
        times = sorted(t for b in batches for t in b.times)
        self.replaces = len(times)
        self.wall = sum(times) / 1e9
        self.median = statistics.median(times) / 1e6
        self.low, self.high = times[len(times) // 10] / 1e6, times[len(times) * 9 // 10] / 1e6

        def each(value):
            return sum(map(value, batches)) / self.replaces
        self.held = each(lambda b: b.ns("tc_modify_qdisc")) / 1e6
        self.keys = each(lambda b: b.calls("lockdep_unregister_key"))
        self.key_wait = each(lambda b: b.ns("lockdep_unregister_key")) / 1e6
        self.nets = each(lambda b: b.calls("synchronize_net"))
        self.net_wait = each(lambda b: b.ns("synchronize_net")) / 1e6
        self.cal = each(lambda b: b.calls("cal"))
        self.expedited = each(lambda b: b.calls("rcu_exp_handler"))
        self.wakes = each(lambda b: b.calls("sched_ttwu_pending"))

    def row(self):
        return (f"{self.wall:7.2f} {self.median:7.1f} {self.low:6.1f} {self.high:6.1f} {self.held:7.1f} {self.keys:5.1f} "
                f"{self.key_wait:7.2f} {self.nets:5.1f} {self.net_wait:6.2f} {self.cal:6.1f} {self.expedited:6.1f} {self.wakes:6.1f}")


HEAD = (f"{'all, s':>7} {'ms p50':>7} {'p10':>6} {'p90':>6} {'kernel':>7} {'keys':>5} {'wait':>7} {'nets':>5} {'wait':>6} {'CAL':>6} "
        f"{'exp':>6} {'wakes':>6}")


def summarise(text):
    """Return the figures by load and way."""
    batches = parse(text)
    keys = sorted({(b.load, b.way) for b in batches}, key=lambda k: (LOADS.index(k[0]), k[1] == "0", k[1]))
    return {key: Summary([b for b in batches if (b.load, b.way) == key]) for key in keys}


def table(summaries):
    lines = [f"  {'for each replacement':28} {HEAD}"]
    for (load, way), summary in summaries.items():
        lines.append(f"  {load + ', ' + WAYS[way]:28} {summary.row()}")
    return "\n".join(lines)


def ratios(summaries, load):
    """How much longer than with shazptr it takes with plain RCU and the expedited kind, and how many more interrupts the latter sends."""
    plain, expedited, ours = (summaries[load, way] for way in "123")
    return plain.median / ours.median, expedited.median / ours.median, expedited.cal / max(ours.cal, 1 / ours.replaces)


def save(name, row, summaries):
    """Return the data of the picture of docs/kernel.md."""
    os.makedirs(os.path.dirname(name), exist_ok=True)
    with open(name, "w", encoding="utf-8") as f:
        rows = [{"load": load, "way": WAYS[way], **vars(one)} for (load, way), one in summaries.items()]
        json.dump({"cpus": row.smp, "queues": QUEUES, "rows": rows}, f, indent="\t")
        f.write("\n")
