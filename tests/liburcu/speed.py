#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Run liburcu's own benchmarks, and one of ours, with liburcu, and compiled against the face or run with our objects of its names, alternately.

Each round runs both, the first one first in every other round, threads on the same CPUs.  The ratio is the
median of the rounds' ratios, ours by theirs (over 1: ours is faster), with an interval that
holds it with at least 95 % whatever the distribution (order statistics; 6 rounds or more).

Exit status: 0; 1 a benchmark failed; 2 wrong usage; 77 the package cannot be had, or there is no face.
"""
import argparse
import collections
import fnmatch
import json
import math
import os
import pathlib
import re
import signal
import statistics
import sys
import time

import build
import package
import suite

Benchmark = collections.namedtuple("Benchmark", "name program readers writers options counts")
READS, UPDATES, BOTH = {"reads": ("nr_reads",)}, {"updates": ("nr_writes",)}, {"reads": ("nr_reads",), "updates": ("nr_writes",)}
MOVES = {"in and out": ("successful enqueues", "successful dequeues")}
FREED = {"freed": ("nr_freed",)}
OWN = package.Program("freed", "own", [str(build.HERE / "freed.c")], [], ["urcu", "urcu-cds"], False)
RATE = re.compile(r"(nr_\w+|successful \w+)\s+(\d+)")


def benchmarks(cpus):
    """Return a benchmark: readers are dequeuers and writers enqueuers in queues; at most cpus threads of each kind."""
    flavours = (("memb", "test_urcu"), ("memb, called", "test_urcu_dynamic_link"), ("mb", "test_urcu_mb"), ("bp", "test_urcu_bp"),
                ("bp, called", "test_urcu_bp_dynamic_link"), ("qsbr", "test_urcu_qsbr"), ("qsbr, called", "test_urcu_qsbr_dynamic_link"))
    for label, program in flavours:
        for readers in sorted({1, cpus}):
            yield Benchmark(f"read {label}", program, readers, 0, [], READS)
    for label, program in flavours:
        if "called" not in label:
            yield Benchmark(f"update {label}", program, 0, 1, [], UPDATES)
            yield Benchmark(f"update {label}", program, 1, 1, [], BOTH)
            yield Benchmark(f"update {label}", program, cpus, cpus, [], BOTH)
            # At equal rates of updates: how much the readers suffer from one, not how many there are.
            yield Benchmark(f"read {label}, few updates", program, 1, 1, ["-d", "50000"], BOTH)
    for label, program in (("memb", "test_urcu_gc"), ("mb", "test_urcu_mb_gc"), ("qsbr", "test_urcu_qsbr_gc")):
        yield Benchmark(f"batches of 4096 {label}", program, 1, 1, ["-b", "4096"], BOTH)
    yield Benchmark("defer_rcu memb", "test_urcu_defer", 1, 1, [], BOTH)
    yield Benchmark("hash, look up", "test_urcu_hash", cpus, 0, "-h 16384 -k 10000 -M 100000 -N 100000 -O 100000".split(), READS)
    yield Benchmark("hash, add and remove", "test_urcu_hash", 1, 1, "-A -M 100000 -N 100000 -O 100000".split(), BOTH)
    for label, program, options in (("wfcq, dequeue", "test_urcu_wfcq", ["-q"]), ("wfcq, splice", "test_urcu_wfcq", ["-s"]),
                                    ("wfs, pop", "test_urcu_wfs", ["-p"]), ("wfs, pop all", "test_urcu_wfs", ["-P"]),
                                    ("lfs, pop", "test_urcu_lfs", ["-p"]), ("lfs, pop all", "test_urcu_lfs", ["-P"]),
                                    ("lfs, rcu", "test_urcu_lfs", ["-R"]), ("lfq", "test_urcu_lfq", []), ("wfq", "test_urcu_wfq", [])):
        yield Benchmark(label, program, 1, 1, options, MOVES)
    for label in ("lfs", "lfq"):
        yield Benchmark(f"{label}, all freed", OWN.name, 1, 1, [label], FREED)


def interval(values):
    """The narrowest pair of order statistics that holds the median with 95 %; the outermost ones if none does."""
    ordered, n = sorted(values), len(values)
    best, below = 0, 0.0
    for k in range(1, n // 2 + 1):
        below += math.comb(n, k - 1) / 2 ** n
        if 1 - 2 * below < 0.95:
            break
        best = k - 1
    return ordered[best], ordered[n - 1 - best]


class Wrong(Exception):
    """This exception is raised when a benchmark fails."""


class Speed:
    def __init__(self, options, ours, theirs):
        self.options, self.libraries = options, {"ours": ours, "theirs": theirs}
        self.cpus = sorted(os.sched_getaffinity(0))
        self.began, self.done, self.total = time.monotonic(), 0, 0

    def progress(self, text):
        if not sys.stderr.isatty() or time.monotonic() - self.began < 2:
            return
        filled = 24 * self.done // max(self.total, 1)
        left = (time.monotonic() - self.began) / max(self.done, 1) * (self.total - self.done)
        print(f"\r\033[K[{'#' * filled}{' ' * (24 - filled)}] {left:4.0f} s left  {text}", end="", file=sys.stderr, flush=True)

    def clear(self):
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr, flush=True)

    def once(self, side, benchmark, path):
        """{what: operations per second}"""
        threads = benchmark.readers + benchmark.writers
        pinned = [word for i in range(threads) for word in ("-a", str(self.cpus[i % len(self.cpus)]))]
        arguments = [str(n) for n in (benchmark.readers, benchmark.writers, self.options.seconds)] + benchmark.options + pinned
        wrong, out = suite.execute(suite.runs.Run(benchmark.name, None, arguments, False, None, 60 + 4 * self.options.seconds), path,
                                   self.libraries[side])
        if wrong:
            raise Wrong(f"{benchmark.name}, {side}: {wrong}")
        found = {name: int(number) for name, number in RATE.findall(next((x for x in out.splitlines() if x.startswith("SUMMARY")), ""))}
        if any(name not in found for names in benchmark.counts.values() for name in names):
            raise Wrong(f"{benchmark.name}, {side}: no SUMMARY line")
        return {what: sum(found[name] for name in names) / self.options.seconds for what, names in benchmark.counts.items()}

    def compare(self, benchmark, paths):
        """Print the rows of one benchmark."""
        got = {"ours": [], "theirs": []}
        for i in range(self.options.rounds):
            for side in ("ours", "theirs") if i % 2 == 0 else ("theirs", "ours"):
                self.progress(f"{benchmark.name}, {side}")
                got[side].append(self.once(side, benchmark, paths[side]))
                self.done += 1
        for what in benchmark.counts:
            ours, theirs = ([x[what] for x in got[side]] for side in ("ours", "theirs"))
            if not all(theirs):
                continue
            ratios = [a / b for a, b in zip(ours, theirs)]
            low, high = interval(ratios)
            yield {"benchmark": benchmark.name, "what": what, "readers": benchmark.readers, "writers": benchmark.writers,
                   "ours_per_s": statistics.median(ours), "theirs_per_s": statistics.median(theirs),
                   "ratio": statistics.median(ratios), "ratio_low": low, "ratio_high": high, "rounds": self.options.rounds}

    def run(self):
        chosen = [b for b in benchmarks(len(self.cpus)) if not self.options.only or
                  any(fnmatch.fnmatch(b.name, p) for p in self.options.only.split(","))]
        names = {b.program for b in chosen}
        programs = [p for p in [*self.libraries["ours"].source.programs("benchmark"), OWN] if p.name in names]
        built = {side: library.compile_all(programs) for side, library in self.libraries.items()}
        self.total, self.began = 2 * self.options.rounds * len(chosen), time.monotonic()
        for benchmark in chosen:
            directory = OWN.directory if benchmark.program == OWN.name else "benchmark"
            paths = {side: got[(directory, benchmark.program)] for side, got in built.items()}
            broken = next((p for p in paths.values() if not isinstance(p, pathlib.Path)), None)
            if broken:
                raise Wrong(f"{benchmark.program}: {broken}")
            yield from self.compare(benchmark, paths)


HEAD = f"{'benchmark':28} {'threads':>7} {'':10} {'ours/s':>10} {'theirs/s':>10} {'ratio':>6}  interval"


def line(row):
    threads = f"{row['readers']}+{row['writers']}"
    return (f"{row['benchmark']:28} {threads:>7} {row['what']:10} {row['ours_per_s']:10.4g} {row['theirs_per_s']:10.4g} {row['ratio']:6.3f}"
            f"  {row['ratio_low']:.3f} to {row['ratio_high']:.3f}")


def positive(text):
    if not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError("a whole number over 0")
    return int(text)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", choices=("face", "objects"), default="face",
                        help="rebuilt with the face, or the same programs with our objects of liburcu's names (default: face)")
    parser.add_argument("--build", type=pathlib.Path, default=build.ROOT / "build", help="Meson's build directory, optimized (default: build)")
    parser.add_argument("--source", help="an unpacked source tree of liburcu, instead of the distribution's")
    parser.add_argument("--work", type=pathlib.Path, help="where programs are built (default: in the user's cache)")
    parser.add_argument("--rounds", type=positive, default=7, help="of both (default: 7)")
    parser.add_argument("--seconds", type=positive, default=1, help="of each run (default: 1)")
    parser.add_argument("--only", metavar="PATTERNS", help="benchmarks whose names match one of these, separated by commas")
    parser.add_argument("--json", action="store_true", help="a JSON object instead of the table")
    return parser.parse_args()


def main():
    options = arguments()
    try:
        source = package.Source(options.source)
        work = (options.work or package.cache() / ("speed-%d.%d" % source.version())).resolve()
        theirs = build.Control(source, work / "theirs")
        if options.ours == "face":
            ours = build.Face(source, work / "ours", options.build.resolve(), theirs)
        else:
            theirs.prepare()
            ours = build.Objects(source, work / "objects", options.build.resolve())
        ours.prepare()
    except package.Unavailable as reason:
        print(f"speed: skipped: {reason}", file=sys.stderr)
        return 77
    speed, rows, code = Speed(options, ours, theirs), [], 0
    if not options.json:
        print(f"ours: {ours.describe()}; theirs: {theirs.describe()}; {options.rounds} rounds of {options.seconds} s\n{HEAD}", flush=True)
    try:
        for row in speed.run():
            rows.append(row)
            if not options.json:
                speed.clear()
                print(line(row), flush=True)
    except Wrong as why:
        speed.clear()
        print(f"speed: {why}", file=sys.stderr)
        code = 1
    speed.clear()
    if options.json:
        json.dump({"ours": ours.describe(), "theirs": theirs.describe(), "benchmarks": rows}, sys.stdout, indent="\t")
        print()
    return code


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("\nspeed: interrupted", file=sys.stderr)
        sys.exit(130)
