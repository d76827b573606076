#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Run every mutant of tests/mutants.list on its killer; last line: N mutants, N killed.
With --random N: N random changes of the sources instead, see below.

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

--random N --seed S: N times one statement of src/ or include/ is deleted, one condition
negated or one bound changed, in copies below BUILD/mutants, and the tests of the directory, then
all tests that run the line, and then the killers of the list without their mutants are made
to notice, until one fails.  A test has 3 seconds, or 5 times what it takes otherwise.  The same seed draws the same changes, whatever else has
changed in the sources; one that does not compile, or makes no difference to the object code,
is replaced by the next.  Survivors are printed with their line for tests/survivors.list,
where those that no test has to notice stand with the argument.  The exit status is 1 if
there are others; last line: N random mutants, N killed, N listed.  When the first one
survives the tests of its directory, the script finds out, in some minutes, which tests run which
lines, and keeps that below BUILD/mutants until the sources change.
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


def plain(argv):
    """Return the command of a killer without its mutant."""
    command, skip = [], False
    for word in argv:
        if not skip and word not in ("--mutant", "--expect-fail") and not word.startswith("--mutant="):
            command.append(word)
        skip = word == "--mutant"
    return tuple(command)


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
        command = plain(argv)
        if command not in self.controls:
            self.controls[command] = self.run(command)
        return self.controls[command][0]

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
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--build", type=pathlib.Path, default=root / "build")
    args.add_argument("--list", type=pathlib.Path, default=root / "tests/mutants.list")
    args.add_argument("--only", help="mutants whose name contains this; with --random: files")
    args.add_argument("--jobs", type=int, help="at a time; with --random: workers, by default one for each CPU")
    args.add_argument("--random", type=int, metavar="N", help="so many random changes instead")
    args.add_argument("--minutes", type=float, help="with --random: those that take longer are left out")
    args.add_argument("--seed", type=int, default=1, help="which ones")
    args.add_argument("--again", metavar="FILE", help="those that FILE names, in the form of tests/survivors.list, instead of random ones")
    args.add_argument("--verbose", action="store_true", help="with --random: show all of them")
    opt = args.parse_args()
    if opt.random is not None or opt.again:
        import random_mutants # here, because it imports this file for the killers
        return random_mutants.run(opt, root)
    rows = [r for r in read_list(opt.list) if not opt.only or opt.only in r[0]]
    equivalent = [r for r in rows if r[1] == "equivalent"]
    rows = [r for r in rows if r[1] != "equivalent"]
    runner = Runner(opt.build.resolve(), root)
    counts = {KILLED: 0, SURVIVED: 0, NOT_RUN: 0}
    with concurrent.futures.ThreadPoolExecutor(opt.jobs or 2) as pool:
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
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
