#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Figures in prose are those of one run: each is in docs/performance.md, which the tool wrote.

	figures.py --root DIR

A figure of the prose may have fewer digits than the table's.  Pages and the parts of them that hold such figures stand in PARTS.
"""
import argparse
import pathlib
import re
import sys

# Each page has (the part's first line, the line before which it ends), and an expression that finds its figures.
PARTS = [
    ("README.md", ("# quiesce", "## Two commands"), re.compile(r"(?<![\w.-])(\d+(?:\.\d+)?)(?=[^\d.\w]|\.(?:\s|$)| ?(?:ns|us|ms)\b)")),
    ("docs/primitives.md", ("## All of them", "## Readers counted"), re.compile(r"(?<=[|/;: ])(\d+\.\d+)(?=[ ;,.])")),
]
# These numbers are counts or names, not measurements.
NOT_MEASURED = re.compile(r"\b64(?: busy)?(?: readers|$)|two CPUs|p99|2 cores|C\+\+\d+|Debian \d+|with 1 and|\d+ seconds|\d+-CPU")


def part(text, bounds):
    begin = text.index(bounds[0])
    return text[begin:text.index(bounds[1], begin)]


def table_figures(text):
    return re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?![\d.]*x)", text)  # ratios are not figures


def is_rounded(figure, values):
    digits = len(figure.partition(".")[2])
    return any(f"{value:.{digits}f}" == figure for value in values)


def wrong_of(root, page, bounds, pattern, values):
    text = part((root / page).read_text(encoding="utf-8"), bounds)
    text = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    text = re.sub(r"!?\[[^\]]*\]\([^)]*\)", "", text)
    for line in text.split("\n"):
        for figure in pattern.findall(NOT_MEASURED.sub("", line)):
            if not is_rounded(figure, values):
                yield f"{page}: {figure} is not a figure of docs/performance.md: {line.strip()[:90]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, required=True)
    root = parser.parse_args().root
    values = [float(x) for x in table_figures((root / "docs/performance.md").read_text(encoding="utf-8"))]
    found = [(page, list(wrong_of(root, page, bounds, pattern, values))) for page, bounds, pattern in PARTS]
    print(f"1..{len(found)}")
    for number, (page, wrong) in enumerate(found, 1):
        print("\n".join("# " + line for line in wrong))
        print(f"{'not ' if wrong else ''}ok {number} - figures of {page}")
    return 1 if any(wrong for _, wrong in found) else 0


if __name__ == "__main__":
    sys.exit(main())
