#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Sum gcov's counts for src/: percentages by file, and the lines that never ran.

usage: coverage.py BUILD [GCOV]
"""
import collections
import json
import pathlib
import subprocess
import sys


def documents(build, gcov):
    for data in sorted(build.rglob("*.gcda")):
        done = subprocess.run([gcov, "--json-format", "--stdout", "--branch-probabilities", str(data.resolve())],
                              capture_output=True, text=True, check=False, cwd=build)
        for line in done.stdout.splitlines():
            if line.startswith("{"):
                yield json.loads(line)


def source_name(root, build, name):
    path = pathlib.Path(name)
    path = path if path.is_absolute() else build / path
    try:
        return str(path.resolve().relative_to(root))
    except ValueError:
        return ""


def gather(root, build, gcov):
    lines = collections.defaultdict(collections.Counter)
    branches = collections.defaultdict(collections.Counter)
    for document in documents(build, gcov):
        for file in document["files"]:
            name = source_name(root, build, file["file"])
            if not name.startswith("src/"):
                continue
            for line in file["lines"]:
                number = line["line_number"]
                lines[name][number] += line["count"]
                for i, branch in enumerate(line["branches"]):
                    branches[name][number, i] += branch["count"]
    return lines, branches


def ranges(numbers):
    runs = []
    for n in sorted(numbers):
        if runs and n == runs[-1][1] + 1:
            runs[-1][1] = n
        else:
            runs.append([n, n])
    return " ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def share(counts):
    total = len(counts)
    hit = sum(1 for c in counts.values() if c)
    return hit, total, 100.0 * hit / total if total else 100.0


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    build = pathlib.Path(sys.argv[1]).resolve()
    lines, branches = gather(root, build, sys.argv[2] if len(sys.argv) > 2 else "gcov")
    if not lines:
        print("coverage: no counts of src/ found")
        return 1
    print(f"{'file':36} {'lines':>7} {'branches':>9}  never run")
    for name in sorted(lines):
        missed = [n for n, c in lines[name].items() if not c]
        print(f"{name:36} {share(lines[name])[2]:6.1f}% {share(branches[name])[2]:8.1f}%  {ranges(missed)}")
    every_line = {(f, n): c for f in lines for n, c in lines[f].items()}
    every_branch = {(f, n): c for f in branches for n, c in branches[f].items()}
    print("coverage: {} of {} lines ({:.1f}%), ".format(*share(every_line)) +
          "{} of {} branches ({:.1f}%)".format(*share(every_branch)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
