# SPDX-License-Identifier: MIT
"""The pictures of the documents, drawn from docs/figures and from the table of docs/kernel.md."""
import math

import pages
import plots
from plots import INK, OURS, PEER, RAW, SMALL, WIDTH, plt

WAITS = ["shazptr", "hazptr", "rcu", "rcu_expedited", "ck_epoch", "liburcu_bp", "liburcu_qsbr", "liburcu_memb"]
WAIT_READERS = 64


def waits(root):
    rows = pages.load(root, pages.RUN)["rows"]
    found = {r["type"]: r for r in rows if (r["subcommand"], r["scenario"], r["threads"]) == ("rcuscale", "others", WAIT_READERS) and
             r.get("fence", "light") == "light"}
    figure = plots.wait_picture([found[t] for t in WAITS if t in found])
    figure.axes[0].set_title(f"Waits beside {WAIT_READERS} readers of other objects", pad=8)
    return figure


def legend_on_top(figure, title, rest):
    """Put the legend of the first axes above them; @rest: part of the height that the axes keep."""
    figure.legend(*figure.axes[0].get_legend_handles_labels(), ncols=2, loc="upper left", bbox_to_anchor=(0, 1), title=title, alignment="left",
                  title_fontsize=SMALL, handletextpad=0.4, columnspacing=1)
    figure.set_layout_engine("constrained", rect=(0, 0, 1, rest))


# ---- walks ----

MARKERS = "os^D"


def best(cells, names, threads):
    """The one of the schemes @names with the highest ratios."""
    def mean(name):
        ratios = [c["to_exchange"] for (scheme, _, _, t), c in cells.items() if (scheme, t) == (name, threads) and c["to_exchange"]]
        return sum(map(math.log, ratios)) / len(ratios) if ratios else -math.inf
    return max(names, key=mean)


def walks(root):
    cells = pages.walks(pages.load(root, pages.WALKS))
    threads = 2
    schemes = [("rcu", OURS, "o"), (best(cells, ("ck_epoch", "liburcu"), threads), PEER, "o"), ("hazptr", OURS, "D"),
               (best(cells, ("ck_hp", "libcds_hp", "libcds_dhp"), threads), PEER, "D")]
    figure = plt.figure(figsize=(WIDTH, 8.2))
    grid = figure.add_gridspec(3, 2, height_ratios=(1, 1, 1.1))
    values = [cells[s, structure, mix, threads]["to_exchange"] for s, *_ in schemes for structure in pages.STRUCTURES for mix in pages.MIXES
              if (s, structure, mix, threads) in cells]
    for i, structure in enumerate(pages.STRUCTURES):
        axes = figure.add_subplot(grid[i // 2, i % 2])
        for name, ink, marker in schemes:
            points = [(x, cells[name, structure, mix, threads]["to_exchange"]) for x, mix in enumerate(pages.MIXES)
                      if (name, structure, mix, threads) in cells]
            axes.plot(*zip(*points), marker=marker, color=ink, markerfacecolor=ink if marker == "o" else "white", linewidth=1.2, markersize=6, label=name)
        axes.axhline(1, color=INK, linewidth=0.8)
        axes.set_ylim(0, 1.08 * max(values))
        axes.set_xlim(-0.25, len(pages.MIXES) - 0.75)
        axes.set_xticks(range(len(pages.MIXES)), [f"{mix} %" for mix in pages.MIXES])
        axes.set_title(structure)
        if i >= 2:
            axes.set_xlabel("updates", fontsize=SMALL)
    legend_on_top(figure, "Rate of 2 threads, over that of hazard pointers\nby hand, with an exchange each (line)", 0.88)
    axes = figure.add_subplot(grid[2, :])
    plots.make_logarithmic(axes.yaxis, plots.short, [1, 1e6])
    for name, ink, marker in schemes:
        points = [(x, max(cells[name, s, 50, threads]["waiting"], 1)) for x, s in enumerate(pages.STRUCTURES) if (name, s, 50, threads) in cells]
        axes.plot(*zip(*points), marker, color=ink, markerfacecolor=ink if marker == "o" else "white", markersize=7)
    axes.set_xticks(range(len(pages.STRUCTURES)), list(pages.STRUCTURES))
    axes.set_xlim(-0.5, len(pages.STRUCTURES) - 0.5)
    axes.set_title("Objects that wait, most, with 50 % updates")
    return figure


# ---- lockdep ----

WAYS = {"synchronize_shazptr": (OURS, "o", True), "no wait (a bug)": (RAW, "|", True), "expedited": (PEER, "o", False), "synchronize_rcu": (PEER, "o", True)}


def lockdep_rows(root):
    """{guest: {way: (ms, interrupts)}}"""
    found = {}
    for line in pages.lockdep_table(root).strip().split("\n")[2:]:
        guest, way, _, ms, _, _, interrupts, _ = [c.strip() for c in line.strip("|").split("|")]
        found.setdefault(guest, {})[way] = float(ms), float(interrupts)
    return found


def lockdep(root):
    guests = lockdep_rows(root)
    figure, both = plt.subplots(2, 1, figsize=(WIDTH, 6.4))
    for column, axes, title in ((0, both[0], "tc qdisc replace, 32 queues: ms, median"), (1, both[1], "Function-call interrupts for each")):
        for y, (guest, ways) in enumerate(guests.items()):
            axes.text(0, y - 0.17, guest, transform=axes.get_yaxis_transform(), va="bottom")
            axes.text(1, y - 0.17, ", ".join(f"{ways[w][column]:.0f}" for w in WAYS), transform=axes.get_yaxis_transform(), va="bottom", ha="right",
                      fontsize=SMALL)
            for way, (ink, marker, full) in WAYS.items():
                axes.plot([ways[way][column]], [y + 0.1], marker, color=ink, markerfacecolor=ink if full else "white", label=way if not y else None,
                          markersize=12 if marker == "|" else 7, markeredgewidth=1.6)
        values = [ways[w][column] for ways in guests.values() for w in WAYS]
        plots.make_logarithmic(axes.xaxis, plots.short, values)
        axes.set_xlim(min(values) / 1.2, max(values) * 1.2)
        axes.set_ylim(len(guests) - 0.5, -0.62)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.grid(axis="y", visible=False)
        axes.set_title(title, pad=8)
    legend_on_top(figure, "Figures in this order:", 0.86)
    return figure


def draw(root):
    made = {"docs/pictures/wait.png": waits, "docs/pictures/walks.png": walks, "docs/pictures/lockdep.png": lockdep}
    for name, source in pages.pictures(root).items():
        figure = made[name](root)
        figure.savefig(root / name, dpi=150, facecolor="white", metadata={"Source": source})
        plt.close(figure)
