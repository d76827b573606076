#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Figures in prose, in tables and in pictures are those of one run, docs/figures; `make figures` writes them all.

	figures.py --root DIR
"""
import argparse
import difflib
import pathlib
import re
import sys
from itertools import zip_longest

from tap import Tap

HINT = "`make figures` measures and writes all of them; `python3 tools/report/figures.py --root .` writes them from docs/figures"


def check_pages(tap, pages, root):
    try:
        made = pages.written(root)
    except (pages.Wrong, KeyError, OSError) as error:
        tap.result(False, "pages and lists of their figures fit together", f"{error}\n{HINT}")
        return
    for page, text in made.items():
        now = (root / page).read_text(encoding="utf-8")
        wrong = [line for line in difflib.unified_diff(now.split("\n"), text.split("\n"), page, pages.RUN, n=0, lineterm="")]
        tap.result(not wrong, f"figures of {page}", "\n".join([*wrong, HINT]))


def check_claims(tap, pages, root):
    rows = pages.load(root, pages.RUN)["rows"]
    wrong = [text for text, holds in pages.CLAIMS if not holds(rows)]
    tap.result(not wrong, "what the text says of the figures is true of them", "\n".join([*wrong, "reword the page, or measure again on a quiet machine"]))


def check_noticed(tap, pages, root):
    """A figure of another run, one that is not in the list, and one that is missing are noticed."""
    rows, part = pages.load(root, pages.RUN)["rows"], pages.PARTS[0]
    text = (root / part[0]).read_text(encoding="utf-8")
    figure = next(figure(rows) for figure in part[-1] if f" {figure(rows)} ns" in text)
    tap.result(pages.rewritten(text.replace(f" {figure} ns", " 77.7 ns", 1), part, rows) == text, "a figure of another run is noticed")
    for name, other in (("new", f"{figure} ns and 33.3 ns"), ("missing", "nothing")):
        try:
            pages.rewritten(text.replace(f"{figure} ns", other, 1), part, rows)
            found = False
        except pages.Wrong:
            found = True
        tap.result(found, f"a {name} figure is noticed")


def check_performance(tap, pages, headline, root):
    text = (root / "docs/performance.md").read_text(encoding="utf-8")
    rows = pages.load(root, pages.RUN)["rows"]
    wrong = [f"{figure}: {line}" for figure, line in pages.foreign_figures(text, rows)]
    tap.result(not wrong, "figures of docs/performance.md", "\n".join([*wrong, HINT]))
    tap.result(len(list(pages.foreign_figures(text, rows[:1]))) > 100, "tables of another run are noticed")
    cells = pages.load(root, pages.RUN)["faster"]
    cells = [cell for full in (False, True) for cell in cells if (cell["fence"] == "full") == full]  # in the order of the tables
    wrong = [f"{row}: {cell}" for row, cell in zip_longest(pages.faster_rows(text), cells) if not (row and cell and pages.is_faster_row(row, cell))]
    tap.result(cells and not wrong, "where others are faster", "\n".join([*wrong, HINT]))
    unknown = [cell for cell in cells if not cell["reason"] or f"\n- {cell['peer']}: {cell['reason']}.\n" not in text]
    tap.result(not unknown, "each with the reason: that of the type, `.reason` in its TYPE()", unknown)
    missing = [f"{label}: {words}" for label, words in headline.DEFINITIONS.items() if f"{label}: {words}" not in text]
    tap.result(not missing, "`quiesce run` and `quiesce report` define their lines alike", "\n".join(missing))


def check_pictures(tap, pages, root):
    for name, source in pages.pictures(root).items():
        found = re.search(rb"tEXtSource\0([0-9a-f]{64})", (root / name).read_bytes())
        tap.result(found and found[1].decode() == source, f"{name} is drawn from the same figures", HINT)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, required=True)
    root = parser.parse_args().root
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(root / "tools/report"))
    import headline
    import pages
    tap = Tap()
    check_pages(tap, pages, root)
    check_claims(tap, pages, root)
    check_noticed(tap, pages, root)
    check_performance(tap, pages, headline, root)
    check_pictures(tap, pages, root)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
