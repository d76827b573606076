#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Run `meson test` with these arguments; tests that pass share one line that changes, and the summary is one line at the end.

The line before the summary lists packages that more tests would use: such tests print "PACKAGE is not installed" when they skip.

    run-tests.py BUILD [meson test's arguments]
"""
import json
import os
import re
import shutil
import subprocess
import sys

TEST = re.compile(r"^\s*(\d+/\d+) (.*)")
SUMMARY = re.compile(r"^(Ok|Expected Fail|Fail|Unexpected Pass|Skipped|Timeout): +(\d+)\s*$")
ABSENT = re.compile(r"(?:# SKIP|^)(?:.*:)? *([a-z0-9.+-]+) is not installed$", re.M)
GOOD = re.compile(r" (OK|EXPECTEDFAIL|SKIP) ")


def show(line, passing):
    """On a terminal a test that passes takes the place of the one before."""
    if not sys.stdout.isatty():
        print(line, flush=True)
        return
    width = shutil.get_terminal_size().columns - 1
    print("\r\033[K" + (line[:width] if passing else line + "\n"), end="", flush=True)


def absent(build):
    """The packages that skipped tests of the last run need."""
    log = os.path.join(build, "meson-logs", "testlog.json")
    with open(log, encoding="utf-8") if os.path.exists(log) else open(os.devnull, encoding="utf-8") as lines:
        said = [json.loads(line).get("stdout") or "" for line in lines]
    return sorted({package for text in said for package in ABSENT.findall(text)})


def main():
    if len(sys.argv) < 2:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    counts = dict.fromkeys(("Ok", "Expected Fail", "Fail", "Unexpected Pass", "Skipped", "Timeout"), 0)
    command = [os.environ.get("MESON", "meson"), "test", "-C", *sys.argv[1:]]
    os.environ.setdefault("MESON_TESTTHREADS", str(2 * len(os.sched_getaffinity(0))))  # tests sleep half of the time
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace") as run:
        for line in map(str.rstrip, run.stdout):
            total = SUMMARY.match(line)
            if total:
                counts[total[1]] += int(total[2])
            elif line and not line.startswith("Full log written"):
                show(line, TEST.match(line) and GOOD.search(line))
    packages = absent(sys.argv[1])
    if packages:
        show(f"not installed, and of use to tests: {' '.join(packages)}", False)
    failed = counts["Fail"] + counts["Unexpected Pass"] + counts["Timeout"]
    show(f"{counts['Ok'] + counts['Expected Fail']} passed, {failed} failed, {counts['Skipped']} skipped", False)
    return run.returncode


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
