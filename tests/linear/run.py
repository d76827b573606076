#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Check that the containers are linearizable: record histories of real threads and judge them.

The recorder (record, and record-perturbed with delays inside the library) is built by
Meson, the judge (check/, in Go, with porcupine) here.  Then
  - each type's histories have to be linearizable, with and without delays;
  - each wrong reply that the judge plants into them has to be detected;
  - a table with a bug has to be detected: by the judge and, iterating, by the recorder.
Last line: linear: P passed, F failed.  Exit status 77, with the reason, where Go or its
module cannot be obtained.

With --mutant, of one type: 1 if a history with that mutant is wrong, 0 if none is.
"""
import argparse
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent
PLANTS = {"map": ("stale", "missed", "twice", "both", "denied", "reported", "spared"), "cleared": ("kept",), "ids": ("stale", "missed", "twice", "denied"),
          "queue": ("twice",)}
PLANT_OPERATIONS, BROKEN_OPERATIONS = 20000, 400000
BROKEN_TRIES = 20  # on a busy machine threads seldom meet
# Bugs in the source that more than half of the histories show.
MUTANTS = {"hashmap": ("map_unchecked", "table_merge_unlocked"), "hashtable": ("table_switch_early", "table_walk_wide", "table_update_blind"),
           "hashmap_cleared": ("table_walk_wide", "table_update_blind"), "hashtable_cleared": ("table_walk_wide",),
           "idr": ("radix_two_loads", "radix_shrink_clears", "radix_free_now"),
           "xarray": ("radix_two_loads", "radix_shrink_clears", "radix_free_now"),
           "lfqueue": ("lfq_tail_first",), "walk_tree": ("hazptr_no_scan",)}
REFERENCES = ("reference", "reference_cleared")  # the recorder's own tables, which are right
HANG = 60  # seconds; without a mutant the recorder has an alarm of its own
RIGHT, WRONG = 0, 1


class Unavailable(Exception):
    pass


def run(argv, **more):
    argv = [str(a) for a in argv]
    try:
        return subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", **more)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(argv, -signal.SIGALRM, "it hangs")


class Linear:
    def __init__(self, build, operations, seed):
        self.build, self.operations, self.seed = build, operations, seed
        self.check = self.build / "tests/linear/check"
        self.passed = self.failed = 0
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="linear-"))

    def report(self, name, good, start, out):
        self.passed, self.failed = self.passed + bool(good), self.failed + (not good)
        last = out.strip().split("\n")
        print(f"{'ok    ' if good else 'FAILED'} {name} ({time.monotonic() - start:.1f} s)", flush=True)
        print("\n".join("       " + line for line in (last[-1:] if good else last[-30:])), flush=True)

    def go(self, *argv):
        env = dict(os.environ, GOTOOLCHAIN="local", GOFLAGS=os.environ.get("GOFLAGS", "") + " -mod=readonly", CGO_ENABLED="0")
        return run(("go",) + argv, cwd=ROOT / "check", env=env)

    def build_judge(self):
        """Build the judge, or raise Unavailable."""
        if not shutil.which("go"):
            raise Unavailable("Go is not installed (Debian: golang-go)")
        if not (self.build / "tests/linear/record").exists():
            raise Unavailable(f"there is no recorder in {self.build}")
        start = time.monotonic()
        got = self.go("mod", "download")
        if got.returncode:
            raise Unavailable("Go's module porcupine cannot be had: " + got.stdout.strip()[-200:])
        built = self.go("build", "-buildvcs=false", "-o", self.check, ".")
        self.report("the judge is built", built.returncode == 0, start, built.stdout + self.go("version").stdout)
        return built.returncode == 0

    def test_judge(self):
        start = time.monotonic()
        tested = self.go("test", "-count=1", ".")
        self.report("the judge's own tests", tested.returncode == 0, start, tested.stdout)

    def types(self):
        """Return the types that the recorder was built with, but for its own tables."""
        names = run([self.recorder(False)]).stdout.partition("\ntypes:")[2].split()
        return [name for name in names if name not in REFERENCES + ("broken",)]

    def recorder(self, perturb):
        return self.build / ("tests/linear/record-perturbed" if perturb else "tests/linear/record")

    def record(self, kind, operations, perturb=0, mutant=None, more=(), seed=0):
        """Return the file, and the recorder's exit status and output."""
        path = self.directory / f"{kind}.history"
        argv = [self.recorder(perturb or mutant), f"--type={kind}", f"--output={path}", f"--operations={operations}",
                f"--seed={seed or self.seed}", *more]
        if perturb:
            argv += [f"--perturb={perturb}"]
        if mutant:
            argv += ["--mutant", mutant]
        done = run(argv, timeout=HANG if mutant else None)
        return path, done.returncode, done.stdout

    def judge(self, path, *more):
        done = run([self.check, *more, path])
        return done.returncode, done.stdout

    def right(self, kind, operations, perturb):
        start = time.monotonic()
        path, status, out = self.record(kind, operations, perturb)
        verdict = status
        if status == 0:
            # Without delays nothing may overlap where the machine has other things to do.
            verdict, judged = self.judge(path, f"-operations={operations}", f"-overlaps={operations // 100 if perturb else 0}")
            out = (out if verdict else out.strip() + ": ") + judged
        delays = f", {perturb} of 65536 accesses held up" if perturb else ""
        self.report(f"{kind}{delays}", verdict == RIGHT, start, out)

    def planted(self, kind):
        """Plant a wrong reply into a history that is correct without it."""
        path, status, out = self.record(kind, PLANT_OPERATIONS, more=["--no-iteration"])
        for plant in PLANTS[{"idr": "ids", "lfqueue": "queue", "value_queue": "queue", "lfstack": "queue", "reference_cleared": "cleared"}.get(kind, "map")]:
            start = time.monotonic()
            verdict, judged = self.judge(path, f"-plant={plant}") if status == 0 else (status, out)
            self.report(f"the judge notices a reply of {kind} that is wrong: {plant}", verdict == WRONG, start, judged.split("\n")[0])

    def broken(self):
        start = time.monotonic()
        for _ in range(BROKEN_TRIES):
            path, status, out = self.record("broken", BROKEN_OPERATIONS, more=["--no-iteration"])
            # Keys with one owner show the recorder the bug, too: here the judge has to see it.
            verdict, judged = self.judge(path) if status in (RIGHT, WRONG) else (status, out)
            if verdict != RIGHT:
                break
        self.report("the judge notices a table that others use while it is resized", verdict == WRONG, start,
                    judged.split("\n")[0])
        start = time.monotonic()
        for _ in range(BROKEN_TRIES):
            _, status, out = self.record("broken", BROKEN_OPERATIONS)
            if status != RIGHT:
                break
        found = re.search(r"iterations, [1-9]\d* of them wrong", out)
        self.report("iterations over it are wrong", status == WRONG and found, start, out)

    def noticed(self, kind, name):
        start = time.monotonic()
        status, out = self.mutant(kind, name, 50000, 12)
        self.report(f"{kind}: mutant {name} is noticed", status == WRONG, start, out.split("\n")[0])

    def mutant(self, kind, name, operations, tries):
        """Return an exit status and its reason: 1 when one of some histories is wrong."""
        for seed in range(self.seed, self.seed + tries):
            path, status, out = self.record(kind, operations, perturb=1000, mutant=name, seed=seed)
            if status == RIGHT:
                status, out = self.judge(path)
            if status < 0:
                return WRONG, f"seed {seed}: killed by signal {-status}\n{out}"
            if status != RIGHT:
                return status, f"seed {seed}: {out}"
        return RIGHT, f"{tries} histories are right"


def everything(linear, types):
    linear.test_judge()
    for kind in REFERENCES:
        linear.right(kind, linear.operations // 4, 0)
    linear.broken()
    for kind in REFERENCES + tuple(kind for kind in types if kind in ("idr", "lfqueue", "value_queue", "lfstack")):
        linear.planted(kind)
    for kind in types:
        linear.right(kind, linear.operations, 0)
        if linear.recorder(True).exists():
            for rate in (40, 1000):
                linear.right(kind, linear.operations // 2, rate)
        if linear.recorder(True).exists():
            for name in MUTANTS.get(kind, ()):
                linear.noticed(kind, name)


def main():
    args = argparse.ArgumentParser(description="record histories of containers and have them judged")
    args.add_argument("--build", type=pathlib.Path, default=pathlib.Path("."))
    args.add_argument("--operations", type=int, default=100000)
    args.add_argument("--types", help="some of them, with commas between")
    args.add_argument("--seed", type=int, default=1)
    args.add_argument("--mutant")
    args.add_argument("--tries", type=int, default=5)
    opt = args.parse_args()
    linear = Linear(opt.build.resolve(), opt.operations, opt.seed)
    try:
        built = linear.build_judge()
        types = opt.types.split(",") if opt.types else linear.types()
        if opt.mutant and built:
            status, out = linear.mutant(types[0], opt.mutant, opt.operations, opt.tries)
            print(out[:400])
            return status
        if built:
            everything(linear, types)
    except Unavailable as why:
        print(f"linear: {why}")
        return 77
    finally:
        shutil.rmtree(linear.directory, ignore_errors=True)
    print(f"linear: {linear.passed} passed, {linear.failed} failed")
    return 1 if linear.failed else 0


if __name__ == "__main__":
    sys.exit(main())
