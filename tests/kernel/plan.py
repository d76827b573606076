#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The plan of runs in guests, which has a row for each boot."""
import tc

LOAD = "insmod shazptr.ko {shazptr}&& insmod hazptr.ko {hazptr}|| exit 10\n"
UNLOAD = "rmmod hazptr && rmmod shazptr || exit 12\n"
UNIT = LOAD + """insmod shazptr_test.ko || exit 11
insmod hazptr_test.ko || exit 11
rmmod shazptr_test && rmmod hazptr_test || exit 12
cat /sys/kernel/debug/shazptr/stats /sys/kernel/debug/hazptr/stats
""" + UNLOAD
TYPES = ("shazptr", "shazptr_protect", "shazptr_wildcard", "hazptr", "hazptr_sync")
REFSCALE = "noop,preempt,rcu,srcu,refcnt,percpu_ref,shazptr,shazptr_protect,shazptr_nested,shazptr_wildcard,hazptr,hazptr_alloc"
GATED = REFSCALE.split(",")
UNIT_FILES = ("shazptr.ko", "hazptr.ko", "tests/shazptr_test.ko", "tests/hazptr_test.ko")
TORTURE_FILES = ("shazptr.ko", "hazptr.ko", "tests/haz_torture.ko")
SCALE_FILES = ("shazptr.ko", "hazptr.ko", "tests/haz_refscale.ko", "tests/haz_rcuscale.ko")
# Sanitizers of the allocator: freed memory is poisoned, and some of it guarded.
POISON = "kfence.sample_interval=1 slub_debug=FZP"


def load(shazptr="", hazptr=""):
    return LOAD.format(shazptr=shazptr + " " if shazptr else "", hazptr=hazptr + " " if hazptr else "")


class Row:
    """A boot.  kind: how it is judged: "pass", "says" (the log has to match each of wanted), and others, see run.py."""

    def __init__(self, name, kernel, files, script, **more):
        self.name, self.kernel, self.files, self.script = name, kernel, files, script
        self.kind, self.build, self.smp, self.append, self.seconds = "pass", "normal", 2, "", 60
        self.wanted, self.mutants, self.icount = (), (), False
        self.documents = 1  # number of KTAP documents that the log must have
        self.programs = ()  # programs of this machine
        self.memory = 768
        self.suites = ()  # suites of the library's tests, which form the script
        self.source = ""  # a program here, which the script calls PROGRAM
        self.before, self.cases, self.product = "", (), ()  # see smp.py; files of the library's build
        self.arguments = ""  # the kernel gets these arguments besides append
        self.left_out = ()  # tests of suites that do not run, see userspace.py
        self.liburcu = None  # if liburcu's own programs run besides the suites: those that do not
        self.chosen = ""  # the only tests of suites, in the short run of arm64.py
        for key, value in more.items():
            assert hasattr(self, key), key
            setattr(self, key, value)

    def title(self):
        more = [self.kernel, f"{self.smp} CPU{'s' if self.smp > 1 else ''}"] + ([self.append] if self.append else [])
        more += ["time by instructions"] if self.icount else []
        return f"{self.name} ({', '.join(more)})"


def unit(kernel, **more):
    script = UNIT.format(shazptr="", hazptr="")
    mode = more.get("append", "").partition("preempt=")[2]
    if mode:  # a kernel that does not know it goes on with another
        script = f"grep -q '({mode})' /sys/kernel/debug/sched/preempt || exit 15\n" + script
    # More CPUs than the host has wait for each other.
    return Row(more.pop("name", "unit"), kernel, UNIT_FILES, script, **{"seconds": 120, "documents": 2, **more})


def torture(kernel, kind, seconds, parameters="", seconds_more=90, **more):
    script = load() + f"""insmod haz_torture.ko torture_type={kind} seconds={seconds} {parameters} || exit 11
i=0
until dmesg | grep -q 'End of test'; do
	i=$((i + 1))
	[ $i -lt {seconds + 60} ] || exit 13
	sleep 1
done
rmmod haz_torture || exit 12
""" + UNLOAD
    name = more.pop("name", "torture " + kind + (" " + parameters if parameters else ""))
    return Row(name, kernel, TORTURE_FILES, script, **{"seconds": 2 * seconds + seconds_more, **more})


def by_unit(module):
    return f"insmod {module}_test.ko; rmmod {module}_test"


def by_torture(kind, seconds, parameters=""):
    return (f"insmod haz_torture.ko torture_type={kind} stat_interval=1 {parameters}; i=0; "
            f"until dmesg | grep -q '!!! ' || [ $i -ge {seconds} ]; do sleep 1; i=$((i + 1)); done; rmmod haz_torture")


# Controls run the same builds without a planted bug and must pass, because a build that always fails would detect every bug.
UNIT_CONTROLS = [(module, None, by_unit(module)) for module in ("shazptr", "hazptr")]
TORTURE_CONTROLS = [("shazptr", None, by_torture("shazptr", 8, "tight=1 irqreader=0 stutter=0")),
                    ("hazptr", None, by_torture("hazptr", 8))]
# Module, planted bug, and what has to notice it.  Those of barriers that no test sees are in kernel/litmus alone:
# the scan of hazptr comes so long after the reader's store that its buffer is empty, and an emulator's own stores
# push the updater's store out before the slots are read.
UNIT_MUTANTS = [("shazptr", name, by_unit("shazptr")) for name in
                ("no_wait", "lost_ptr", "no_wildcard", "inner_clear", "lost_group", "lost_upgrade", "lost_mark")]
UNIT_MUTANTS += [("hazptr", name, by_unit("hazptr")) for name in
                 ("no_recheck", "no_scan", "skip_slot", "stale", "early_barrier")]
FENCE_MUTANTS = [("shazptr", "no_reader_fence", by_torture("shazptr", 90, "tight=1 irqreader=0 stutter=0"))]
TORTURE_MUTANTS = [("shazptr", "no_wait", by_torture("shazptr", 20)), ("shazptr", "lost_ptr", by_torture("shazptr", 20)),
                   ("shazptr", "lost_mark", by_torture("shazptr", 20)),
                   ("shazptr", "lost_group", by_torture("shazptr", 40)),
                   ("shazptr", "lost_upgrade", by_torture("shazptr", 40)),
                   ("shazptr", "no_wildcard", by_torture("shazptr_wildcard", 20)),
                   ("shazptr", "inner_clear", by_torture("shazptr_wildcard", 20)),
                   ("hazptr", "no_recheck", by_torture("hazptr_sync", 40)), ("hazptr", "no_scan", by_torture("hazptr", 20)),
                   ("hazptr", "skip_slot", by_torture("hazptr", 20)), ("hazptr", "stale", by_torture("hazptr", 40)),
                   ("hazptr", "early_barrier", by_torture("hazptr", 40)),
                   ("shazptr", "", by_torture("busted", 20))]


def mutants(name, kernel, which):
    return Row(name, kernel, UNIT_FILES + TORTURE_FILES[2:], "", kind="mutants", build="mutants", mutants=which, seconds=900)


# When the kernel has calibrated the TSC, about 2 s after its start, it stops all CPUs to change its clock.  A holder that
# spins with preemption disabled keeps the others waiting for that with interrupts off, for as long as it holds.  And with
# nohz its CPU, the only busy one, would have to run the timers of the others, which preempt-rt does in a thread.
CLOCK_SETTLES = """for try in $(seq 100); do
	[ "$(cat /sys/devices/system/clocksource/clocksource0/current_clocksource)" = tsc ] && break
	sleep 0.1
done
"""


def reports(kernel):
    yield Row("stall reports", kernel, UNIT_FILES, CLOCK_SETTLES + load("stall_timeout=1", "stall_timeout=1") +
              "insmod shazptr_test.ko stall=1; insmod hazptr_test.ko stall=1\n", kind="says", append="nohz=off", wanted=(
                  r"shazptr: synchronize_shazptr\(\w+\) by shazptr_wait/\d+ waits for \d+ ms", r"for a guard on CPU \d",
                  r"shazptr: CPU \d+ runs shazptr_hold/\d+:",
                  r"hazptr: .*callback note_long .*is protected for .*registered by hazptr_hold_long\S* .*in task \d+",
                  r"hazptr: synchronize_hazptr\(\w+\) by hazptr_wait/\d+ .*registered by hazptr_hold_long"))
    early = "insmod shazptr.ko early=1 && insmod shazptr_test.ko early=1 && rmmod shazptr_test && rmmod shazptr || exit 10\n"
    yield Row("misuse reports", kernel, UNIT_FILES, early + load() +
              "insmod shazptr_test.ko misuse=1; insmod hazptr_test.ko misuse=1\n", kind="says", build="debug", wanted=(
                  *(rf"(?<!not )ok {i} before init" for i in (1, 2, 3)),
                  "shazptr: a guard with preemption enabled", "shazptr: a wait where sleeping is forbidden",
                  "hazptr: a callback waits for callbacks", r"hazptr: count_run.* called again for \w+, which is queued",
                  "called twice, run 1 times", "called once more, run 2 times",
                  "hazptr: a slot given back twice", "hazptr: a slot cleared that is not allocated",
                  "hazptr: a context ends with slots taken"))


def suspend(kernel):
    script = load() + """echo freezer > /sys/power/pm_test || exit 14
insmod shazptr_test.ko frozen=1
sleep 1
echo mem > /sys/power/state || exit 14
sleep 1
rmmod shazptr_test
"""
    # The debug suspend keeps a CPU busy for five seconds: it has to be preempted.
    return Row("waits while tasks are frozen", kernel, UNIT_FILES, script, append="preempt=full")


def scale(kernel, runs):
    script = load() + f"""sleep 1
insmod haz_refscale.ko scale_type={REFSCALE} nruns={runs} || exit 11
insmod haz_rcuscale.ko scale_type=rcu,rcu_exp,srcu,shazptr,shazptr_wildcard,hazptr,hazptr_call || exit 11
rmmod haz_rcuscale
insmod haz_rcuscale.ko scale_type=shazptr conflict=1 label=_conflict || exit 11
rmmod haz_rcuscale
echo 1 > /sys/module/shazptr/parameters/skip_synchronize_self_scan
insmod haz_rcuscale.ko scale_type=shazptr,shazptr_wildcard label=_skip_self_scan || exit 11
"""
    return Row("scale", kernel, SCALE_FILES, script, kind="scale", seconds=180, documents=4)


def gate(kernel):
    script = load() + f"insmod haz_refscale.ko scale_type={REFSCALE} loops=1000 nruns=3 || exit 11\n"
    return Row("instructions", kernel, SCALE_FILES, script, kind="gate", smp=1, icount=True)


def short():
    """Return a plan of about five minutes, with downloads."""
    yield unit("standard")
    yield unit("standard", append="preempt=full")
    yield unit("rt")
    yield unit("standard", smp=8, append="preempt=none")
    for kind in ("shazptr", "shazptr_wildcard", "hazptr"):
        yield torture("standard", kind, 8)
    yield mutants("planted bugs, by tests", "standard", UNIT_CONTROLS + UNIT_MUTANTS)
    yield mutants("planted bugs, by torture", "standard", TORTURE_CONTROLS + FENCE_MUTANTS + TORTURE_MUTANTS)
    yield from reports("standard")
    yield suspend("standard")
    yield scale("standard", 5)
    yield gate("standard")


def full(seconds):
    """Return a plan of almost two hours."""
    kernels = ("standard", "cloud", "rt")
    for kernel in kernels:
        for preempt in ("", "preempt=none", "preempt=voluntary", "preempt=full", "preempt=lazy"):
            # A real-time kernel has one way only; lazy is newer than 6.12.
            if preempt == "preempt=lazy" or (kernel == "rt" and preempt):
                continue
            for smp in (1, 2, 8):
                yield unit(kernel, append=preempt, smp=smp)
    for kernel in ("old", "newest"):
        for smp in (2, 8):
            yield unit(kernel, smp=smp)
    yield unit("newest", append="preempt=lazy")
    for kernel in kernels + ("newest",):
        for kind in TYPES:
            yield torture(kernel, kind, seconds)
    for kind in TYPES:
        yield torture("standard", kind, seconds, append=POISON)
        yield torture("standard", kind, seconds, "onoff_interval=2 nwriters=2 nreaders=4", smp=4)
    yield mutants("planted bugs, by tests", "standard", UNIT_CONTROLS + UNIT_MUTANTS)
    yield mutants("planted bugs, by torture", "standard", TORTURE_CONTROLS + FENCE_MUTANTS + TORTURE_MUTANTS)
    for kernel in kernels:
        yield from reports(kernel)
        yield scale(kernel, 15)
    yield scale("newest", 15)
    for kernel in ("old", "newest"):
        yield suites(kernel)
    yield suspend("standard")
    for kernel in kernels:
        yield gate(kernel)


def tc_replace(smp, rounds, replaces):
    return Row("tc qdisc replace", "lockdep", ("tests/haz_waits.ko",), tc.script(rounds, replaces), kind="tc", smp=smp,
               programs=tc.PROGRAMS, seconds=1800, documents=0)


def key_churn(kernel, way, seconds, **more):
    script = f"""echo {way} >/sys/module/lockdep/parameters/key_wait
insmod haz_key_churn.ko || exit 11
sleep {seconds}
rmmod haz_key_churn || exit 12
cat /sys/kernel/debug/lockdep_shazptr/stats
"""
    return Row("lockdep keys come and go, " + tc.WAYS.get(str(way), "no wait"), kernel, ("tests/haz_key_churn.ko",), script,
               **{"seconds": 2 * seconds + 90, **more})


KCSAN = "echo on >/sys/kernel/debug/kcsan || exit 17\n"
KCSAN_STATE = "cat /sys/kernel/debug/kcsan\n"


def sanitized(kernel, seconds, judge="pass", before="", after=""):
    """Return boots under a sanitizer, which makes all runs slower."""
    rows = [unit(kernel, smp=smp, seconds=600) for smp in (2, 8)]
    rows += [torture(kernel, kind, seconds, seconds_more=300) for kind in TYPES]
    for row in rows:
        row.kind, row.script = judge, before + row.script + after
        yield row


def suites(kernel):
    """Return boots that run the userspace library's tests under another kernel than this machine's."""
    return Row("userspace suites", kernel, (), "", suites=("unit", "faults", "torture"), memory=3072, seconds=7200)


SLICE = """export GLIBC_TUNABLES=glibc.pthread.rseq=0
for ns in 5000 50000; do
	echo $ns >/sys/kernel/debug/rseq/slice_ext_nsec || exit 14
	echo "EXT $ns"
	PROGRAM rounds {readers} {seconds} $ns || exit 15
done
cat /sys/kernel/debug/rseq/stats
"""


def slices(smp, readers, seconds, **more):
    return Row(f"time slices, {readers} readers", "slice", (), SLICE.format(readers=readers, seconds=seconds), kind="slices", smp=smp,
               source="slice", seconds=900, documents=0, **more)


def lockdep(seconds):
    """Return a plan of an hour and a half, with builds of four kernels."""
    yield tc_replace(2, 5, 20)
    yield tc_replace(4, 3, 10)
    yield key_churn("lockdep", 3, seconds)
    yield key_churn("lockdep", 1, seconds)
    # No wait: the guest must die, or this test sees nothing.
    yield key_churn("lockdep", 0, 60, kind="dies")
    yield key_churn("lockdep-kasan", 3, seconds)
    yield from sanitized("lockdep-kasan", seconds)
    yield from sanitized("lockdep-kcsan", seconds, judge="races", before=KCSAN, after=KCSAN_STATE)
    yield Row("a race is reported", "lockdep-kcsan", TORTURE_FILES, KCSAN + load(shazptr="mutant=no_wait") +
              "insmod haz_torture.ko torture_type=shazptr || exit 11\nsleep 30\n" + KCSAN_STATE, build="mutants", kind="says",
              wanted=(r"BUG: KCSAN: assert: race in .*\[haz_torture\]",), seconds=200)
    for smp in (1, 2):
        yield slices(smp, 4 * smp, 1)
    # An instruction is a nanosecond: only here are the kernel's microseconds what they are on a processor.
    yield slices(1, 4, 0.3, icount=True)
    yield Row("time slices, instructions", "slice", (), "PROGRAM cost || exit 15\n", kind="costs", smp=1, icount=True,
              source="slice", documents=0)
