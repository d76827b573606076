#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The limits of CONTRIBUTING.md: lengths of functions and files, SPDX lines, no notes about work to do.

The files that a design document names as its source are there, too.
"""
import pathlib
import re
import statistics
import sys

import csource

MEDIAN, P90, LONGEST = 10, 40, 100
FILE, HEADER = 600, 400
WIDTH = 140  # most lines end before column 100; longer ones than this do not fit on a screen
KERNEL_WIDTH = 100
TEXT = (".c", ".h", ".hpp", ".cpp", ".S", ".py", ".sh", ".build", ".map", ".in", ".litmus", ".pml", ".txt", ".list",
        ".args", ".ini", "Makefile", ".ci/run", ".gitignore")
QUOTED = re.compile(r'"[^"]{20,}"')  # kernel style does not break messages
SOURCES = re.compile(r"^[^\n]*\bThe sources? .*?\n\n|^The source:\n\n(?:\|[^\n]*\n)+", re.M | re.S)
PATH = re.compile(r"`([\w./-]+(?:/|\.(?:c|h|hpp)))`")
LATER = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")


def file_problems(root, name):
    try:
        lines = (root / name).read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError:
        return
    licence = "SPDX-License-Identifier: " + ("GPL-2.0 OR MIT" if name.startswith("kernel/") else "MIT")
    if name.endswith(TEXT) and not any(licence in line for line in lines[:5]):
        yield f"{name}:1: no SPDX line"
    for i, line in enumerate(lines, 1):
        if LATER.search(line):
            yield f"{name}:{i}: {LATER.search(line).group()}"
        if line != line.rstrip() and not name.endswith(".patch"):
            yield f"{name}:{i}: blanks at the end of the line"
    if name.endswith(csource.SUFFIXES + (".py", ".sh")):
        limit = HEADER if name.endswith((".h", ".hpp")) else FILE
        if len(lines) - 1 > limit:
            yield f"{name}: {len(lines) - 1} lines, at most {limit}"
        width = KERNEL_WIDTH if name.startswith("kernel/") else WIDTH
        for i, line in enumerate(lines if name.endswith(csource.SUFFIXES) else (), 1):
            if len(line.expandtabs(8)) > width and not (name.startswith("kernel/") and QUOTED.search(line)):
                yield f"{name}:{i}: {len(line.expandtabs(8))} columns, at most {width}"


def lengths(root):
    for name in csource.c_files(str(root)):
        _, code = csource.read(root, name)
        for function, first, last in csource.functions(code):
            yield last - first + 1, f"{name}:{first + 1}: {function}()"


def source_problems(root):
    """A name without a directory is in the directory of the name before it."""
    for document in sorted((root / "docs/design").glob("*.md")):
        text = document.read_text(encoding="utf-8")
        for named in SOURCES.findall(text):
            folder = root
            for name in PATH.findall(named):
                path = (root if "/" in name else folder) / name
                folder = path if name.endswith("/") else path.parent
                if not path.exists():
                    yield f"{document.relative_to(root)}: its source {name} is not in {folder.relative_to(root)}/"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    bad = [p for name in csource.tracked(str(root)) for p in file_problems(root, name)]
    bad += source_problems(root)
    found = sorted(lengths(root))
    bad += [f"{where} {n} lines, at most {LONGEST}" for n, where in found if n > LONGEST]
    n = [length for length, _ in found]
    median = statistics.median(n) if n else 0
    p90 = n[len(n) * 9 // 10] if n else 0
    if median > MEDIAN or p90 > P90:
        bad.append(f"functions: median {median} (at most {MEDIAN}), p90 {p90} (at most {P90})")
    print("\n".join(bad), end="\n" if bad else "")
    longest = max(n, default=0)
    print(f"check-style: {len(bad)} problems; {len(n)} functions, median {median}, p90 {p90}, longest {longest}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
