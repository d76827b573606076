#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Run every mutant of tests/mutants.list on its killer; last line: N mutants, N killed.

Each line: mutant<TAB>rung<TAB>command, run in the build directory, with {src} for
the source directory.  Two kinds of command:
  - one that gets the mutant as an argument (--mutant NAME).  It must exit 1
    (found wrong) with the mutant, or 0 with --expect-fail; the same command
    without the mutant must exit 0, or it would fail on anything.
  - rung "litmus" or "model": a twin that lacks the order; it exits 0 when the
    tool finds the outcome that the order forbids.
A usage error, a skip, a signal or a timeout kills nothing.  "equivalent" lines
carry a reason instead of a command and are counted apart.
"""
import argparse
import concurrent.futures
import pathlib
import shlex
import subprocess
import sys
import time

TIMEOUT = 120


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

    def judge(self, mutant, rung, command):
        """(killed, seconds, why not)"""
        argv = shlex.split(command.replace("{src}", str(self.root)))
        start = time.monotonic()
        status, out = self.run(argv)
        seconds = time.monotonic() - start
        with_mutant = any(word == mutant or word == "--mutant=" + mutant for word in argv)
        wanted = 0 if rung in ("litmus", "model") or "--expect-fail" in argv else 1
        if rung not in ("litmus", "model") and not with_mutant:
            return False, seconds, "the command does not name the mutant"
        if status != wanted:
            return False, seconds, f"exit {status}, want {wanted}: {out.strip()[-200:]}"
        if rung not in ("litmus", "model") and self.control(argv) != 0:
            return False, seconds, f"the command fails without the mutant too (exit {self.control(argv)})"
        return True, seconds, ""


def read_list(path):
    rows = []
    for number, line in enumerate(path.read_text().split("\n"), 1):
        if line.strip() and not line.startswith("#"):
            fields = line.split("\t")
            if len(fields) != 3:
                sys.exit(f"{path}:{number}: want mutant<TAB>rung<TAB>command")
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
    killed = 0
    with concurrent.futures.ThreadPoolExecutor(opt.jobs) as pool:
        for row, (dead, seconds, why) in zip(rows, pool.map(lambda r: runner.judge(*r), rows)):
            killed += dead
            print(f"{'killed  ' if dead else 'SURVIVED'} {row[0]:24} {row[1]:8} {seconds:6.2f} s {why}", flush=True)
    for mutant, _, reason in equivalent:
        print(f"equivalent {mutant}: {reason}")
    print(f"{len(rows)} mutants, {killed} killed")
    return 0 if rows and killed == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
