#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The conformance suite with further compilers, standard libraries and flags.  Prints TAP.

  --set quick   the builds that "make test" runs
  --set full    every combination, each fault of broken.hpp, each ill-formed program with each compiler
  --suite IMPL  (with --include) an implementation of yours: a header that declares namespace impl; or "std"

A build is one compilation of all.cpp; then the program runs with light and with full fences.
"""
import argparse
import concurrent.futures
import itertools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "build"))
from tap import Tap, execute, not_installed  # noqa: E402

WARN = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wnon-virtual-dtor", "-Werror"]
# Each build has a compiler, a standard and flags.
QUICK = [("clang++-19", "c++26", ["-O0", "-stdlib=libc++"])]
FULL = [
    ("g++", "c++20", ["-O0"]), ("g++", "c++20", ["-O2"]), ("g++", "c++23", ["-O3"]),
    ("g++", "gnu++20", ["-O2", "-flto"]), ("g++", "c++20", ["-O2", "-DQUIESCE_DEBUG"]),
    ("clang++-19", "c++20", ["-O2"]), ("clang++-19", "c++26", ["-O2"]),
    ("clang++-19", "c++20", ["-O0", "-stdlib=libc++"]), ("clang++-19", "c++26", ["-O3", "-stdlib=libc++"]),
    ("clang++-19", "c++20", ["-O1", "-DQUIESCE_DEBUG", "-stdlib=libc++"]),
]
# For each fault of broken.hpp, the title, or a part of it, of the test that must fail.
FAULTS = {
    "retired twice": "every object is reclaimed once",
    "never reclaimed": "and afterwards it is",
    "reclaimed at once": "and afterwards it is",
    "deleter not assigned": "deleters: with state",
    "move resets": "a move keeps the epoch",
    "self move destroys": "a move keeps the epoch",
    "unassociated is empty": "empty() reports ownership",
    "protect does not load again": "made for each read",
    "failure keeps the pointer": "try_protect() with another pointer",
    "failure keeps the protection": "try_protect() with another pointer",
    "null pointer keeps the protection": "that is not yet retired",
    "reset keeps the protection": "and afterwards it is",
    "swap does nothing": "swap() moves ownership",
    "swap resets": "swap() moves ownership",
    "destruction keeps the protection": "the destructor ends the epoch",
    "batch replaces": "keeps what is there",
    "clear leaves the last": "each of a batch",
    "synchronize does not wait": "waits for a region of before",
    "synchronize waits for all readers": "regions of after",
    "evaluated at once": "waits for a region of another thread",
    "barrier does nothing": "waits for what was scheduled before",
    "barrier synchronizes": "is no rcu_synchronize()",
    "evaluated twice": "waits for what was scheduled before",
    "try_lock refuses": "try_lock() and unlock()",
    "inner unlock ends": "regions nest",
    "deleter is not destroyed": "the deleter is destroyed too",
    "scheduled before it throws": "bad_alloc",
}


class Suite:
    def __init__(self, opt, tmp):
        self.opt, self.tmp, self.nr = opt, tmp, itertools.count()

    def implementation(self):
        if self.opt.suite == "std":
            return ["-DCONFORMANCE_STD"]
        if self.opt.suite:
            return [f'-DCONFORMANCE_IMPL="{self.opt.suite}"']
        return []

    def command(self, compiler, std, flags):
        return [compiler, f"-std={std}", *WARN, *flags, f"-I{self.opt.include}"]

    def build(self, compiler, std, flags, source="all.cpp"):
        """Return the program or None, and the compiler's messages."""
        program = self.tmp / f"program{next(self.nr)}"
        link = [self.opt.static] if self.opt.static else []
        run = execute([*self.command(compiler, std, flags), HERE / source, *link, "-lpthread", "-o", program])
        return (program if run.returncode == 0 else None), run.stderr


def installed(compiler, std, flags):
    if not shutil.which(compiler):
        return False
    library = [f for f in flags if f.startswith("-stdlib")]
    run = subprocess.run([compiler, f"-std={std}", *library, "-x", "c++", "-fsyntax-only", "-"], input="#include <version>\n",
                         text=True, capture_output=True)
    return run.returncode == 0


def combination(suite, job):
    """[(title, ok or None, details)]"""
    title = " ".join([job[0], job[1], *job[2]])
    if not installed(*job):
        return [(title, None, not_installed(job[0], " or its library" if "-stdlib=libc++" in job[2] else ""))]
    program, said = suite.build(*job[:2], [*job[2], *suite.implementation()])
    if not program:
        return [(f"{title}: compiles", False, said)]
    results = []
    for fence in ("auto", "full"):
        run = execute([program], {"QUIESCE_FENCE": fence})
        count = re.search(r"^# (\d+ tests, \d+ checks), 0 tests failed$", run.stdout, re.M)
        results.append((f"{title}, {fence} fences: {count.group(1) if count else 'failed'}",
                        run.returncode == 0 and count, f"status {run.returncode}\n{run.stdout}{run.stderr}"))
    return results


def one_fault(program, fault, title):
    """A test fails if it reports a failure, crashes or hangs. Races are tried several times."""
    env = {**os.environ, "BROKEN": fault, "CONFORMANCE_LIMIT_MS": "200"}
    for _ in range(5):
        try:
            run = subprocess.run([program, title], env=env, capture_output=True, text=True, timeout=2)
        except subprocess.TimeoutExpired:
            return True, ""
        if run.returncode:
            return True, ""
    return False, run.stdout


def build_broken(suite):
    return suite.build("g++", "c++20", ["-O0", '-DCONFORMANCE_IMPL="broken.hpp"'])


def faults(pool, program, said):
    if not program:
        return [("broken.hpp compiles", False, said)]
    run = execute([program])
    results = [("an implementation of another kind passes", run.returncode == 0, run.stdout)]
    text = (HERE / "broken.hpp").read_text()
    planted = set(re.findall(r'fault\("([^"]+)"\)', text))
    results.append(("every fault of broken.hpp has a test", planted == set(FAULTS), planted ^ set(FAULTS)))
    tried = pool.map(lambda f: one_fault(program, f, FAULTS[f]), FAULTS)
    return results + [(f"a fault is noticed: {f}", ok, said) for f, (ok, said) in zip(FAULTS, tried)]


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--include", type=pathlib.Path, default=HERE.parents[1] / "include")
    args.add_argument("--static", type=pathlib.Path)
    args.add_argument("--set", choices=("quick", "full"), default="quick")
    args.add_argument("--suite")
    opt, tap = args.parse_args(), Tap()
    full = opt.set == "full"
    with tempfile.TemporaryDirectory() as tmp, concurrent.futures.ThreadPoolExecutor(2) as pool:
        suite = Suite(opt, pathlib.Path(tmp))
        broken = pool.submit(build_broken, suite) if not opt.suite and shutil.which("g++") else None
        pending = [pool.submit(combination, suite, job) for job in (FULL if full else QUICK)]
        for title, ok, details in (each for p in pending for each in p.result()):
            tap.skip(title, details) if ok is None else tap.result(ok, title, details)
        if broken:
            for title, ok, details in faults(pool, *broken.result()):
                tap.result(ok, title, details)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
