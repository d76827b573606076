#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Run every mutant of tests/mutants.list on its killer; last line: N mutants, N killed.

Each line: mutant<TAB>stage<TAB>command, run in the build directory, with {src} for
the source directory.  Two kinds of command:
  - one that gets the mutant as an argument (--mutant NAME).  It must exit 1
    (found wrong) with the mutant, or 0 with --expect-fail; the same command
    without the mutant must exit 0, or it would fail on anything.
  - stage "litmus" or "model": a negative control, which lacks the order; it exits 0 when the
    tool finds the outcome that the order forbids.
A crash under the mutant is a failure found, too.  A usage error or a timeout kills
nothing.  A killer that cannot run here (exit 77: no herd7) leaves its mutants "not
run", and then the exit status is 77.  "equivalent" lines carry a reason instead of
a command and are counted apart.
"""
import argparse
import concurrent.futures
import pathlib
import shlex
import signal
import subprocess
import sys
import time

TIMEOUT = 120
CRASHES = (-signal.SIGSEGV, -signal.SIGBUS, -signal.SIGABRT, -signal.SIGILL, -signal.SIGFPE)
KILLED, SURVIVED, NOT_RUN = "killed", "SURVIVED", "not run"


class Runner:
    def __init__(self, build, root):
        self.build, self.root, self.controls = build, root, {}

    def run(self, argv):
        try:
            done = subprocess.run(argv, cwd=self.build, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  errors="replace", timeout=TIMEOUT)
            return done.returncode, done.stdout
        except subprocess.TimeoutExpired:
            return "timeout", ""
        except OSError as error:
            return str(error), ""

    def control(self, argv):
        """The command without its mutant must pass; run once per command."""
        plain, skip = [], False
        for word in argv:
            if not skip and word not in ("--mutant", "--expect-fail") and not word.startswith("--mutant="):
                plain.append(word)
            skip = word == "--mutant"
        if tuple(plain) not in self.controls:
            self.controls[tuple(plain)] = self.run(plain)
        return self.controls[tuple(plain)][0]

    def judge(self, mutant, stage, command):
        """(verdict, seconds, why)"""
        argv = shlex.split(command.replace("{src}", str(self.root)))
        negative = stage in ("litmus", "model")
        if not any(word in (mutant, "--mutant=" + mutant) for word in argv):
            return SURVIVED, 0, "the command does not name the mutant"
        start = time.monotonic()
        status, out = self.run(argv)
        seconds = time.monotonic() - start
        if status == 77:
            return NOT_RUN, seconds, out.strip()[-100:]
        wanted = 0 if negative or "--expect-fail" in argv else 1
        crashed = not negative and status in CRASHES
        if status != wanted and not crashed:
            return SURVIVED, seconds, f"exit {status}, want {wanted}: {out.strip()[-200:]}"
        if not negative and self.control(argv) != 0:
            return SURVIVED, seconds, f"the command fails without the mutant too (exit {self.control(argv)})"
        return KILLED, seconds, "by a crash" if crashed else ""


def read_list(path):
    rows = []
    for number, line in enumerate(path.read_text().split("\n"), 1):
        if line.strip() and not line.startswith("#"):
            fields = line.split("\t")
            if len(fields) != 3:
                sys.exit(f"{path}:{number}: want mutant<TAB>stage<TAB>command")
            rows.append(fields)
    return rows


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    args = argparse.ArgumentParser(description="run every mutant on its killer")
    args.add_argument("--build", type=pathlib.Path, default=root / "build")
    args.add_argument("--list", type=pathlib.Path, default=root / "tests/mutants.list")
    args.add_argument("--only", help="mutants whose name contains this")
    args.add_argument("--jobs", type=int, default=2)
    opt = args.parse_args()
    rows = [r for r in read_list(opt.list) if not opt.only or opt.only in r[0]]
    equivalent = [r for r in rows if r[1] == "equivalent"]
    rows = [r for r in rows if r[1] != "equivalent"]
    runner = Runner(opt.build.resolve(), root)
    counts = {KILLED: 0, SURVIVED: 0, NOT_RUN: 0}
    with concurrent.futures.ThreadPoolExecutor(opt.jobs) as pool:
        for row, (verdict, seconds, why) in zip(rows, pool.map(lambda r: runner.judge(*r), rows)):
            counts[verdict] += 1
            print(f"{verdict:8} {row[0]:24} {row[1]:8} {seconds:6.2f} s {why}".rstrip(), flush=True)
    for mutant, _, reason in equivalent:
        print(f"equivalent {mutant}: {reason}")
    left = f", {counts[NOT_RUN]} not run" if counts[NOT_RUN] else ""
    print(f"{len(rows)} mutants, {counts[KILLED]} killed{left}")
    if not rows or counts[SURVIVED]:
        return 1
    return 77 if counts[NOT_RUN] else 0


if __name__ == "__main__":
    sys.exit(main())
