#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draw the picture of docs/kernel.md: picture.py OUTPUT JSON..., where run.py --lockdep wrote the latter (build-kernel/logs/tc-*.json)."""
import json
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools/report"))
from plots import INK, OURS, PEER, RAW, WIDTH, plt  # noqa: E402  their style

COLOURS = {"synchronize_rcu": PEER, "expedited": "#e0a458", "synchronize_shazptr": OURS, "no wait (a bug)": RAW}


def panel(axes, groups, value, unit, logarithmic):
    """A group of bars for each guest and load, a bar for each way."""
    width = 0.8 / len(COLOURS)
    for i, (way, colour) in enumerate(COLOURS.items()):
        values = [value(rows[way]) for _, rows in groups]
        places = [g + (i - 1.5) * width for g in range(len(groups))]
        axes.bar(places, values, width * 0.92, color=colour, label=way)
        for place, v in zip(places, values):
            axes.annotate(f"{v:.0f}", (place, v), xytext=(0, 2), textcoords="offset points", ha="center", fontsize=7.5)
    if logarithmic:
        axes.set_yscale("log")
        axes.set_ylim(bottom=10)
    axes.set_xticks(range(len(groups)), [name for name, _ in groups])
    axes.grid(axis="x", visible=False)
    axes.set_title(unit)


def main():
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    groups = []
    for name in sys.argv[2:]:
        with open(name, encoding="utf-8") as f:
            guest = json.load(f)
        for load in ("idle", "busy"):
            groups.append((f"{guest['cpus']} CPUs, {load}", {r["way"]: r for r in guest["rows"] if r["load"] == load}))
    figure, (times, calls) = plt.subplots(2, 1, figsize=(WIDTH * 1.25, 5.4))
    panel(times, groups, lambda r: r["median"], f"tc qdisc replace, {guest['queues']} queues: ms, median, logarithmic", True)
    panel(calls, groups, lambda r: r["cal"], "function-call interrupts (CAL) for each", False)
    times.legend(ncols=2, loc="upper left", bbox_to_anchor=(0, 1.42))
    figure.savefig(sys.argv[1], dpi=130, facecolor="white", edgecolor=INK)
    return 0


if __name__ == "__main__":
    sys.exit(main())
