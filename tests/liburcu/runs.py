# SPDX-License-Identifier: MIT
"""The arguments with which each of liburcu's programs is run, and the runs that test grace periods."""
import collections
import os

# A run with claims has readers that check memory which is overwritten or freed a grace period later, and report what they find.
Run = collections.namedtuple("Run", "name key arguments claims most timeout script", defaults=(None,))

NOT_THE_LIBRARY = {"test_rwlock", "test_rwlock_timing", "test_perthreadlock", "test_perthreadlock_timing", "test_mutex", "test_looplen",
                   "test_cycles_per_loop", "test_barrier"}
QUEUES = {"test_urcu_wfcq": (["-q"], ["-s"], ["-q", "-s", "-w"]), "test_urcu_wfs": (["-p"], ["-P"], ["-p", "-P", "-w"]),
          "test_urcu_lfs": (["-p"], ["-P"], ["-R"]), "test_urcu_lfs_rcu": ([],), "test_urcu_lfq": ([],), "test_urcu_wfq": ([],)}
HASH = {  # name: (readers, writers, options), as liburcu's script for the hash table has them, of 4 CPUs
    "one key, replace": (0, 4, "-A -s -M 1 -N 1 -O 1"), "one key, unique": (0, 4, "-A -u -M 1 -N 1 -O 1"),
    "one key, replace, readers": (2, 2, "-A -s -M 1 -N 1 -O 1"), "one key, add, readers": (2, 2, "-A -M 1 -N 1 -O 1"),
    "add": (2, 2, "-A"), "replace": (2, 2, "-A -s"), "unique": (2, 2, "-A -u"),
    "order": (2, 2, "-A -m 1 -n 1048576 -i -M 100000000 -N 100000000 -O 100000000 -B order"),
    "chunk": (2, 2, "-A -m 1 -n 1048576 -i -M 100000000 -N 100000000 -O 100000000 -B chunk"),
    "mmap": (2, 2, "-A -m 1 -n 1048576 -i -M 100000000 -N 100000000 -O 100000000 -B mmap"),
    "other keys": (2, 2, "-A -R 1000000"), "ten keys": (2, 2, "-A -M 10 -N 10 -O 10"), "ten keys, unique": (2, 2, "-A -M 10 -N 10 -O 10 -u"),
    "ten keys, replace": (2, 2, "-A -M 10 -N 10 -O 10 -s"), "known keys": (2, 2, "-A -M 10 -N 10 -O 10 -R 0 -T 0 -S 10 -k 10 -s"),
    "no duplicates": (2, 2, "-A -U"), "no duplicates, long chains": (2, 2, "-A -U -C 4")}
# Runs that do not detect broken grace periods within a second: objects are not reused, or are read too rarely.  The queues and stacks
# do not, either, nor do programs that collect objects before they retire them.
BLIND = {"order", "chunk", "mmap", "no duplicates, long chains"}
CALLBACKS = ("perthread", "percpu", "global")


def torture(program, short, cpus):
    """Yield runs: liburcu's own have every mode with every kind of callback thread, in C and C++; short is stress of each in C only."""
    cpus = str(cpus or os.cpu_count() or 1)
    for mode in ("perf", "rperf", "uperf", "stress"):
        for callbacks in CALLBACKS:
            if short and mode != "stress" and (program.cxx or callbacks != "perthread"):
                continue
            if short and mode == "stress" and program.cxx and callbacks != "percpu":
                continue
            yield Run(f"{program.name} {mode} {callbacks}", (program.directory, program.name), [cpus, mode, "1", f"callrcu_{callbacks}"],
                      mode == "stress", 2 if short and mode == "stress" else None, 60)


def benchmark(program, short):
    key = (program.directory, program.name)
    stem = program.name.replace("_dynlink", "").replace("_dynamic_link", "")
    seconds = "1" if short else "3"

    def run(name, arguments, claims=False):
        return Run(f"{program.name}{name and ' '}{name}", key, [str(a) for a in arguments], claims, None, 120)

    if stem in NOT_THE_LIBRARY or stem.endswith("_timing") and short:
        return
    if stem in QUEUES:
        for options in QUEUES[stem]:
            yield run(" ".join(options), [2, 2, seconds, *options])
    elif stem == "test_urcu_hash":
        for name, (readers, writers, options) in HASH.items():
            yield run(name, [readers, writers, seconds, *options.split()], readers > 0 and name not in BLIND)
    elif stem.endswith("_timing") or stem == "test_uatomic":
        yield run("", [])
    elif stem.endswith(("_gc", "_lgc")):
        for batch in (1, 4096):
            yield run(f"batch {batch}", [2, 2, seconds, "-b", batch])
    elif stem.endswith("_yield"):
        yield run("", [2, 2, seconds, "-r", "-w"], True)
    else:
        yield run("", [2, 2, seconds], True)


def of(program, short, cpus=None):
    """Return the runs of a program.  cpus: of the machine that it will run on, if not of this one."""
    if program.name.startswith("rcutorture"):
        yield from torture(program, short, cpus)
    elif program.directory == "benchmark":
        yield from benchmark(program, short)
    elif program.name.startswith("get_"):
        yield Run(f"test_{program.name}", (program.directory, program.name), [], False, None, 60, f"unit/test_{program.name}")
    else:
        yield Run(program.name, (program.directory, program.name), [], False, None, 120)
