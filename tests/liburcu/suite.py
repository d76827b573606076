#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Run liburcu's own tests and benchmarks against liburcu, the face, our objects of its names, or one of them with grace periods that do
not wait.

The sources of the tests come from the distribution's source package and are compiled here.

    --library=liburcu   the control: a failure here is no fault of the face
    --library=face      the headers of this tree and the library in --build
    --library=objects   programs compiled for liburcu, run with the shared objects of its names in --build
    --library=broken    the face, or with --of=liburcu or --of=objects those: a test of grace periods has to fail;
                        "passed" then means that it did

One line for each run, and at the end: N passed, N failed, N skipped.
Exit status: 0 nothing failed; 1 something did; 2 wrong usage; 77 the package cannot be had, or there is no face and no such objects.
"""
import argparse
import concurrent.futures
import fnmatch
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time

import build
import package
import runs

# The number of reads that found an object replaced 0, 1, 2, ... grace periods before.  The program prints it, and never judges it.
STRESS = re.compile(r"rcu_stress_count: \d+ \d+((?: \d+)*)")
WARNED = re.compile(r"WARNING! Discrepancy|nodes were leaked")  # some benchmarks exit with 0 in spite of this
ATTEMPTS = 5  # to notice that readers are not waited for
PASSED, FAILED, SKIPPED = "passed", "FAILED", "skipped"


def judge(code, out):
    """Return None if a run is good, or its fault: its exit status, its TAP, or a discrepancy that it only warns of."""
    if code is None:
        return "it hangs"
    if code < 0:
        return f"killed by {signal.Signals(-code).name}"
    if code:
        return f"exit status {code}"
    lines = out.splitlines()
    bad = next((line for line in lines if line.startswith("not ok") or WARNED.search(line)), None)
    if bad:
        return bad.strip()
    stress = STRESS.search(out)
    if stress and any(int(n) for n in stress.group(1).split()):
        return "readers saw objects that had been reclaimed"
    plan = next((re.match(r"1\.\.(\d+)", line) for line in lines if line.startswith("1..")), None)
    results = sum(line.startswith("ok ") for line in lines)
    if plan and int(plan.group(1)) != results:
        return f"{results} of {plan.group(1)} results"
    return None


def execute(run, path, library, scale=1, suite=None):
    """Return the fault or None, and the output."""
    argv = [str(path), *run.arguments]
    if run.script:
        argv = ["bash", str(library.source.root / "tests" / run.script)]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, errors="replace",
                               env=library.environment(run.most), cwd=library.out, start_new_session=True)
    end = time.monotonic() + run.timeout * scale
    while True:
        try:
            out, _ = process.communicate(timeout=0.5)
            return judge(process.returncode, out), out
        except subprocess.TimeoutExpired:
            if (suite and suite.stopped) or time.monotonic() > end:
                process.kill()
                out, _ = process.communicate()
                return judge(None, out), out


class Suite:
    def __init__(self, library, options):
        self.library, self.options = library, options
        self.counts = dict.fromkeys((PASSED, FAILED, SKIPPED), 0)
        self.blind, self.progress = [], sys.stderr.isatty()
        self.lock, self.stopped = threading.Lock(), False

    def say(self, result, name, seconds, why=""):
        self.counts[result] += 1
        self.status("")
        print(f"{result:7} {seconds:6.1f} s  {name}{': ' if why else ''}{why}", flush=True)

    def status(self, text):
        if self.progress:
            print("\r\033[K" + text, end="", file=sys.stderr, flush=True)

    def one(self, run, path):
        start = time.monotonic()
        wrong, out = execute(run, path, self.library, self.options.jobs, self)
        for _ in range(ATTEMPTS - 1 if self.library.defect else 0):  # a reader that is preempted at the right place is a matter of luck
            if not wrong and not self.stopped:
                wrong, out = execute(run, path, self.library, self.options.jobs, self)
        seconds = time.monotonic() - start
        if not self.stopped:
            with self.lock:
                self.report(run, wrong, out, seconds)

    def report(self, run, wrong, out, seconds):
        if self.library.defect:
            self.say(PASSED if wrong else FAILED, run.name, seconds, f"noticed: {wrong}" if wrong else "did not notice")
            if not wrong:
                self.blind.append(run.name)
            return
        self.say(FAILED if wrong else PASSED, run.name, seconds, wrong or "")
        if wrong:
            print("\n".join("        " + line for line in out.strip().splitlines()[-15:]), flush=True)

    def wanted(self, run):
        if self.library.defect and not run.claims:
            return False
        return not self.options.only or any(fnmatch.fnmatch(run.name, p) for p in self.options.only.split(","))

    def work(self):
        programs = [p for d in ("unit", "regression", "benchmark") for p in self.library.source.programs(d)]
        table = {(p.directory, p.name): [r for r in runs.of(p, self.options.short, self.options.cpus) if self.wanted(r)] for p in programs}
        programs = [self.library.adapt(p) for p in programs if table[p.directory, p.name]]
        start = time.monotonic()
        built = self.library.compile_all(programs, lambda n: self.status(f"compiled {n} of {len(programs)}"))
        self.status("")
        print(f"compiled {len(programs)} programs in {time.monotonic() - start:.0f} s", flush=True)
        if self.options.compile_only:
            table = {key: [runs.Run("/".join(key), key, [], False, None, 0)] for key in built}
        to_run = []
        for key, path in built.items():
            for run in table[key]:
                if isinstance(path, str):
                    self.say(SKIPPED, run.name, 0, path)
                elif isinstance(path, build.Failed):
                    self.refuse(run, path)
                elif self.options.compile_only:
                    self.say(PASSED, run.name, 0)
                else:
                    to_run.append((run, path))
        if self.options.plan:
            self.write_plan(to_run)
        else:
            self.run_all(to_run)

    def write_plan(self, to_run):
        """Another machine is to run them, which has no bash."""
        def environment(run):
            return {k: v for k, v in self.library.environment(run.most).items() if os.environ.get(k) != v and v}
        plan = [{"name": run.name, "argv": [str(path), *run.arguments], "env": environment(run), "timeout": run.timeout}
                for run, path in to_run if not run.script]
        self.options.plan.write_text(json.dumps(plan), encoding="utf-8")
        self.counts[PASSED] = len(plan)

    def run_all(self, to_run):
        """Run some programs at a time, because no speed is measured and more threads than CPUs find more."""
        pool = concurrent.futures.ThreadPoolExecutor(max_workers=self.options.jobs)
        try:
            futures = [pool.submit(self.one, run, path) for run, path in to_run]
            for number, future in enumerate(futures, 1):
                future.result()
                self.status(f"{number} of {len(futures)}: {to_run[number - 1][0].name}")
        finally:
            self.stopped = True
            pool.shutdown(cancel_futures=True)

    def refuse(self, run, failed):
        lines = [line for line in str(failed).splitlines() if "error" in line or "undefined" in line] or str(failed).splitlines()
        self.say(FAILED, run.name, 0, "does not compile")
        print("\n".join("        " + line for line in lines[:6]), flush=True)

    def finish(self):
        if self.blind:
            print("do not notice that no grace period waits for readers: " + ", ".join(self.blind))
        print(", ".join(f"{self.counts[k]} {k.lower()}" for k in (PASSED, FAILED, SKIPPED)))
        return 1 if self.counts[FAILED] or not self.counts[PASSED] else 0


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", choices=("liburcu", "face", "objects", "broken"), default="face")
    parser.add_argument("--of", choices=("liburcu", "face", "objects"), default="face", help="what is broken (default: face)")
    parser.add_argument("--build", type=pathlib.Path, default=build.ROOT / "build", help="Meson's build directory (default: build)")
    parser.add_argument("--source", help="an unpacked source tree of liburcu, instead of the distribution's")
    parser.add_argument("--work", type=pathlib.Path, help="where programs are built (default: in the user's cache)")
    parser.add_argument("--only", metavar="PATTERNS", help="runs whose names match one of these, separated by commas")
    parser.add_argument("--compile-only", action="store_true", help="compile the programs and run none")
    parser.add_argument("--jobs", type=int, default=2 * (os.cpu_count() or 1), help="runs at a time (default: two for each CPU)")
    parser.add_argument("--plan", type=pathlib.Path, metavar="FILE", help="compile the programs and write what would run, as JSON")
    parser.add_argument("--cpus", type=int, help="of the machine that runs the plan (default: of this one)")
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--short", action="store_true", default=True, help="seconds for each run, 4 minutes in all (default)")
    length.add_argument("--long", dest="short", action="store_false", help="liburcu's own lengths, and every mode of its torture")
    return parser.parse_args()


def choose(options, source):
    work = options.work or package.cache() / "-".join(["work", options.library, *([options.of] if options.library == "broken" else []),
                                                       "%d.%d" % source.version()])
    broken = options.library == "broken"
    which = options.of if broken else options.library
    if which == "liburcu":
        return build.Control(source, work.resolve(), broken)
    if which == "objects":
        return build.Objects(source, work.resolve(), options.build.resolve(), broken)
    return build.Face(source, work.resolve(), options.build.resolve(), build.Control(source, work.resolve() / "control"), broken)


def main():
    options = arguments()
    try:
        source = package.Source(options.source)
        library = choose(options, source)
        library.prepare()
    except package.Unavailable as reason:
        print(f"suite: skipped: {reason}")
        return 77
    print(f"liburcu {'%d.%d' % source.version()}'s tests against {library.describe()}{', broken' if library.defect else ''}", flush=True)
    suite = Suite(library, options)
    suite.work()
    return suite.finish()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("\nsuite: interrupted", file=sys.stderr)
        sys.exit(130)
