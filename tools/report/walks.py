#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The picture and the table of docs/walks.md: walks.py OUTPUT.png JSON, from 'quiesce walkscale --json'; the table goes to stdout."""
import json
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from plots import INK, OURS, PEER, RAW, WIDTH, plt  # noqa: E402  the reports' style

STRUCTURES = {"list": "uniform:500", "map": "uniform:100000", "tree": "uniform:100000", "skip": "uniform:100000"}
COLOURS = {"none": RAW, "rcu": "#7fb3d5", "hazptr": OURS, "exchange": PEER, "asymmetric": "#e0a458", "liburcu": "#b7950b",
           "ck_hp": "#8e44ad", "ck_epoch": "#c39bd3", "libcds_hp": "#2e8b57", "libcds_dhp": "#82c09a"}


def rows_of(path):
    """{(scheme, structure, updates, threads): row} of the keys above."""
    with open(path, encoding="utf-8") as f:
        rows = json.load(f)["rows"]
    return {(r["type"].rsplit("_", 1)[0], r["structure"], r["updates"], r["threads"]): r
            for r in rows if r["keys"] == STRUCTURES[r["structure"]]}


def panel(axes, rows, structure, threads, value, title, logarithmic):
    mixes = sorted({u for _, s, u, t in rows if (s, t) == (structure, threads)})
    width = 0.86 / len(COLOURS)
    for i, (scheme, colour) in enumerate(COLOURS.items()):
        bars = [(m + (i - len(COLOURS) / 2) * width, rows.get((scheme, structure, mix, threads))) for m, mix in enumerate(mixes)]
        axes.bar([place for place, row in bars if row], [value(row) for _, row in bars if row], width * 0.94, color=colour, label=scheme)
    if logarithmic:
        axes.set_yscale("log")
    axes.set_xticks(range(len(mixes)), [f"{100 - mix:g}/{mix:g}" for mix in mixes])
    axes.grid(axis="x", visible=False)
    axes.set_title(title, fontsize=8.5)


def table(rows, threads):
    print(f"\n| ratio to `exchange`, {threads} thread{'s' if threads > 1 else ''} | " +
          " | ".join(f"{s} {100 - u:g}/{u:g}" for s in STRUCTURES for u in (0, 10, 50)) + " |")
    print("|---|" + "---|" * 3 * len(STRUCTURES))
    for scheme in COLOURS:
        cells = [rows.get((scheme, s, u, threads)) for s in STRUCTURES for u in (0, 10, 50)]
        print(f"| `{scheme}` | " + " | ".join("-" if not c else f"{c['to_exchange']:.2f}" for c in cells) + " |")


def main():
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    rows = rows_of(sys.argv[2])
    threads = sorted({t for *_, t in rows})
    figure, axes = plt.subplots(len(threads) + 1, len(STRUCTURES), figsize=(WIDTH * 2, 2.2 * (len(threads) + 1)))
    for y, nr in enumerate(threads):
        for x, structure in enumerate(STRUCTURES):
            panel(axes[y][x], rows, structure, nr, lambda r: r["to_exchange"], f"{structure}, {nr} thread{'s' if nr > 1 else ''}: ratio to exchange",
                  False)
            axes[y][x].axhline(1, color=INK, linewidth=0.6)
        table(rows, nr)
    for x, structure in enumerate(STRUCTURES):
        panel(axes[-1][x], rows, structure, threads[-1], lambda r: max(r["waiting"], 1),
              f"{structure}, {threads[-1]} threads: objects that wait", True)
    figure.legend(*axes[0][0].get_legend_handles_labels(), ncols=5, loc="upper center")
    figure.set_layout_engine("constrained", rect=(0, 0, 1, 0.95))
    figure.savefig(sys.argv[1], dpi=110, facecolor="white", edgecolor=INK)
    return 0


if __name__ == "__main__":
    sys.exit(main())
