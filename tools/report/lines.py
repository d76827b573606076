# SPDX-License-Identifier: MIT
"""lines.py FILE: draw the rows of hashscale or walkscale, JSON on the standard input, over the number of threads.

There are two panels for each configuration: rates, and below them the same relative to the ideal, beside the figures of
2003 at four CPUs.  lines.py --check only tests whether the modules are there.
"""
import json
import sys

import report

if report.find_libraries({"matplotlib": "python3-matplotlib"}):
    sys.exit(1)
from plots import GRID, INK, SMALL, plt  # noqa: E402 - it imports matplotlib

MARKS = "osD^vPX*<>"
DASHES = ("-", "--", ":", "-.")
ARTICLE = (("spinlock", 57), ("refcnt", 54), ("rwlock", 39))


def title(row):
    updates, turnovers = row["updates"], row.get("turnovers")
    return (f"{row['keys']}, {row['distribution']}" + (f", {updates:g}% updates" if updates else "") +
            (f", after {turnovers} turnover{'s' if turnovers > 1 else ''}" if turnovers else ""))


def grouped(rows, key):
    groups = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def draw_lines(axes, rows, value):
    lines = grouped(rows, lambda row: row["type"] + (", full fences" if row["fence"] == "full" else ""))
    for i, (label, line) in enumerate(lines.items()):
        points = sorted((row["threads"], value(row)) for row in line if value(row) is not None)
        axes.plot(*zip(*points), DASHES[i // 8 % 4] if points else "", marker=MARKS[i % 10], color=f"C{i % 8}", markersize=5, label=label)


def rates(axes, rows):
    most, alone = max(r["threads"] for r in rows), [r["p50"] / 1e6 for r in rows if r["threads"] == 1]
    axes.set_title(title(rows[0]))
    if alone:
        axes.plot([0, most], [0, most * max(alone)], ":", color=INK, linewidth=1, label="ideal for the best")
    draw_lines(axes, rows, lambda r: r["p50"] / 1e6)
    axes.set_ylabel("million operations/s")
    axes.set_xlim(0.8, most + 0.2)


def shares(axes, rows, cores):
    one = {(r["type"], r["fence"]): r["p50"] for r in rows if r["threads"] == 1}

    def efficiency(row):
        alone = one.get((row["type"], row["fence"]))
        return 100 * row["p50"] / (min(row["threads"], cores) * alone) if alone else None
    axes.set_title("of ideal: the rate of n threads over n times that of one")
    axes.axhline(100, linestyle=":", color=INK, linewidth=1, label="ideal")
    axes.plot([4] * len(ARTICLE), [y for _, y in ARTICLE], "kx", label="2003, four CPUs of 700 MHz")
    for name, y in ARTICLE:
        axes.text(3.9, y, name, ha="right", va="center", fontsize=SMALL)
    draw_lines(axes, rows, efficiency)
    axes.set_ylabel("percent")
    axes.set_xlim(0.8, max(4, *(r["threads"] for r in rows)) + 0.4)


def main():
    if sys.argv[1] == "--check":
        return
    document = json.load(sys.stdin)
    panels = grouped([r for r in document["rows"] if r["subcommand"] in ("hashscale", "walkscale")], title)
    figure, axes = plt.subplots(2, len(panels), figsize=(8 * len(panels), 10), squeeze=False)
    for column, rows in zip(axes.T, panels.values()):
        rates(column[0], rows)
        shares(column[1], rows, document["host"]["cores"])
        for panel in column:
            panel.set_ylim(0)
            panel.grid(color=GRID)
            panel.xaxis.get_major_locator().set_params(integer=True)
            panel.set_xlabel("threads")
            panel.legend(loc="upper left", bbox_to_anchor=(1, 1))
    figure.savefig(sys.argv[1], facecolor="white")


if __name__ == "__main__":
    main()
