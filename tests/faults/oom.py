#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Run a program once for each of its allocations, and let that one fail.

usage: oom.py PRELOAD PROGRAM [ARG...]

For N = 0, 1, 2, ... until the program makes no N-th allocation: once with only the
N-th failing, once with all from the N-th on.  The program must end by itself with
status 0: it tolerates its own failed allocations, and the library must too.
"""
import os
import subprocess
import sys
import tempfile

LIMIT = 3000
SECONDS = 30


def run(preload, command, report, at, from_there):
    env = dict(os.environ, LD_PRELOAD=preload, FAIL_AT=str(at), FAIL_FROM_THERE=from_there, FAIL_REPORT=report)
    if os.path.exists(report):
        os.unlink(report)
    try:
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return 0, "hangs"
    if done.returncode:
        return 0, f"status {done.returncode}: {done.stdout[-300:]}{done.stderr[-300:]}"
    with open(report, encoding="utf-8") as file:
        return int(file.read()), ""


def main():
    preload, command = os.path.abspath(sys.argv[1]), sys.argv[2:]
    bad = runs = 0
    with tempfile.TemporaryDirectory() as directory:
        for at in range(LIMIT):
            totals = []
            for from_there in "01":
                total, problem = run(preload, command, directory + "/count", at, from_there)
                runs += 1
                totals.append(total)
                if problem:
                    bad += 1
                    print(f"allocation {at}{' and all after it' if from_there == '1' else ''}: {problem}")
            if 0 < totals[0] <= at and totals[1] <= at:
                break
    print(f"{at} allocations, {runs} runs, {bad} bad")
    if at == 0:
        print("the program made no allocation: nothing was tested")
    return 1 if bad or at == 0 or at == LIMIT - 1 else 0


if __name__ == "__main__":
    sys.exit(main())
