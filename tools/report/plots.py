# SPDX-License-Identifier: MIT
"""The pictures of a report, by matplotlib: small ones, so that a phone shows them without scaling text away."""
import io
import math
import re
import statistics

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt  # noqa: E402  the back end first
from matplotlib.ticker import FuncFormatter, NullFormatter  # noqa: E402

OURS, PEER, RAW, WARN = "#0b7285", "#c2571a", "#5f676f", "#b02a37"
INK, GRID = "#212529", "#ced4da"
WIDTH = 5.4  # inches; 390 points: the width of a phone
PEERS = ("liburcu", "ck_", "libcds", "tbb", "std_", "pthread", "libcuckoo", "refcnt", "spinlock", "rwlock", "brlock", "mutex", "refcount",
         "seqlock", "global_", "bucket_lock", "shared_ptr", "rwlock_whole", "kernel", "gp", "expedited")
FLOORS = ("raw_", "noop", "unchecked")
plt.rcParams.update({
    "svg.fonttype": "none", "svg.hashsalt": "quiesce", "font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans"], "font.size": 9.5,
    "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": INK, "axes.labelcolor": INK, "text.color": INK,
    "xtick.color": INK, "ytick.color": INK, "axes.grid": True, "axes.axisbelow": True, "grid.color": GRID, "grid.linewidth": 0.6,
    "legend.frameon": False, "legend.fontsize": 8.5, "figure.constrained_layout.use": True, "axes.titlesize": 9.5, "axes.titlelocation": "left"})


def colour(name):
    if name.startswith(FLOORS):
        return RAW
    return PEER if name.startswith(PEERS) else OURS


def short(value):
    """Return a number with three significant figures."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else "-"
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= limit:
            return f"{value / limit:.3g}{unit}"
    return f"{value:.3g}"


def logarithmic(axis, values):
    """Powers of ten as numbers, if there is more than a factor of twenty between the values."""
    values = [v for v in values if v and v > 0]
    if not values or max(values) < 20 * min(values):
        return False
    axis.axes.set_xscale("log") if axis.axis_name == "x" else axis.axes.set_yscale("log")
    axis.set_major_formatter(FuncFormatter(lambda v, _: short(v)))
    axis.set_minor_formatter(NullFormatter())
    return True


def bars(rows, unit, title, spread=None, marks=None):
    """A bar for each of @rows, [(name, value)], with the value at its end; @marks: {name: value of a dot on the bar}."""
    rows = [(n, v) for n, v in rows if v is not None and math.isfinite(v)]
    if not rows:
        return None
    figure, axes = plt.subplots(figsize=(WIDTH, 0.55 + 0.26 * len(rows) + (0.22 if title else 0)))
    names, values = [n for n, _ in rows], [v for _, v in rows]
    log = logarithmic(axes.xaxis, values)
    least = min([v for v in values if v > 0], default=1)
    left = least / 2 if log else 0
    axes.barh(range(len(rows)), [max(v - left, 0) for v in values], left=left, color=[colour(n) for n in names], height=0.62)
    if spread:
        for i, (low, high) in enumerate(spread):
            axes.plot([low, high], [i, i], color=INK, linewidth=1)
    for i, value in enumerate(values):
        end = max(value, spread[i][1] if spread else 0) or least / 2
        axes.annotate(short(value), (end, i), xytext=(4, 0), textcoords="offset points", va="center", fontsize=8.5)
    dots = [(marks[name], i) for i, name in enumerate(names) if marks and name in marks]
    if dots:
        axes.plot(*zip(*dots), "o", color=INK, markersize=4.5)
    axes.set_yticks(range(len(rows)), names)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.margins(x=0.14)
    if log:
        axes.set_xlim(left=left)
    axes.set_xlabel(unit)
    axes.set_title(title)
    return figure


# ---- the families of primitives ----

FAMILIES = [
    ("Readers of everything: RCU and its like", ["raw_load", "rcu", "srcu", "liburcu_memb", "ck_epoch", "seqlock"]),
    ("Readers of one object: hazard pointers and counts", ["shazptr", "hazptr", "counted_ptr", "percpu_ref", "ck_hp", "libcds_hp", "refcnt",
                                                           "std_atomic_shared_ptr"]),
    ("Read locks", ["percpu_rwsem", "pthread_rwlock", "std_shared_mutex", "tbb_rw_mutex"]),
]


def reads(rows):
    """Cost over threads, a picture for each family."""
    for title, types in FAMILIES:
        cells = {(r["type"], r["threads"]): r for r in rows if r["type"] in types}
        threads = sorted({t for _, t in cells})
        if not cells:
            continue
        figure, axes = plt.subplots(figsize=(WIDTH, 3.4))
        logarithmic(axes.yaxis, [r["p50"] for r in cells.values()])
        markers = iter("os^Dv<>Pp*")
        for name in (t for t in types if any(c[0] == t for c in cells)):
            points = [(threads.index(t), cells[name, t]["p50"]) for t in threads if (name, t) in cells]
            axes.plot(*zip(*points), marker=next(markers), color=colour(name), label=f"{name}  {short(points[-1][1])}",
                      linestyle="--" if colour(name) == PEER else "-", linewidth=1.4, markersize=5)
        axes.set_xticks(range(len(threads)), threads)
        axes.set_xlabel("threads")
        axes.set_ylabel("CPU ns for a section with two loads")
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1), title="ns, most threads", title_fontsize=8.5, alignment="left")
        yield title, "lower is better", figure


WAIT_SCENARIOS = {"others": "readers are busy with other objects", "same": "readers are busy with what is waited for",
                  "long": "readers sleep 1 ms inside", "idle": "readers are asleep outside"}


def waits(rows):
    """Make pictures of minimum, median, 99th percentile and maximum of each type."""
    for scenario in WAIT_SCENARIOS:
        here = [r for r in rows if r["scenario"] == scenario]
        threads = max((r["threads"] for r in here), default=0)
        here = [r for r in here if r["threads"] == threads]
        if not here:
            continue
        figure, axes = plt.subplots(figsize=(WIDTH, 0.75 + 0.33 * len(here)))
        logarithmic(axes.xaxis, [v for r in here for v in (r["min"], r["max"])])
        for i, r in enumerate(here):
            paint = colour(r["type"])
            axes.plot([max(r["min"], 1e-3), r["max"]], [i, i], color=paint, linewidth=1)
            axes.plot([r["p50"], r["p99"]], [i, i], color=paint, linewidth=6, alpha=0.35, solid_capstyle="butt")
            axes.plot(r["p50"], i, "o", color=paint)
            axes.annotate(short(r["p50"]), (r["p50"], i), xytext=(0, 6), textcoords="offset points", ha="center", fontsize=8.5)
        axes.set_yticks(range(len(here)), [r["type"] for r in here])
        axes.set_ylim(len(here) - 0.5, -0.7)
        axes.grid(axis="y", visible=False)
        axes.set_xlabel("us; dot: median, band: to the 99th percentile, line: least to most")
        yield f"One wait, {threads} threads: {WAIT_SCENARIOS[scenario]}", "further left is better", figure


def retires(rows):
    """Make pictures of objects per second over garbage."""
    for scenario, title in (("published", "Deferred frees, no readers"), ("stalled", "Deferred frees while one reader stays")):
        here = [r for r in rows if r["scenario"] == scenario and r.get("garbage") is not None]
        if not here:
            continue
        figure, axes = plt.subplots(figsize=(WIDTH, 3.5))
        logarithmic(axes.xaxis, [r["garbage"] + 1 for r in here])
        for i, r in enumerate(sorted(here, key=lambda r: r["p50"])):
            axes.plot(r["garbage"] + 1, r["p50"] / 1e6, "o", color=colour(r["type"]))
            axes.annotate(r["type"], (r["garbage"] + 1, r["p50"] / 1e6), xytext=(5, 4 if i % 2 else -9),
                          textcoords="offset points", fontsize=8.5, color=colour(r["type"]))
        axes.margins(x=0.3, y=0.14)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("objects that wait to be freed, most")
        axes.set_ylabel("million objects a second")
        yield title, "further up and further left is better", figure


def tables(rows):
    """Make pictures of the rates for each set of keys; then the rate relative to the ideal, beside the figures of 2003."""
    for keys in dict.fromkeys(r["keys"] for r in rows):
        here = [r for r in rows if r["keys"] == keys and not r["updates"]]
        most = max(r["threads"] for r in here)
        last = sorted(((r["type"], r["p50"] / 1e6) for r in here if r["threads"] == most), key=lambda x: -x[1])
        alone = {r["type"]: r["p50"] / 1e6 for r in here if r["threads"] == 1 < most}
        figure = bars(last, f"million lookups a second; bar: {most} threads, dot: 1", "", marks=alone)
        if figure:
            yield f"Hash tables, {here[0]['nr_keys']:,} keys".replace(",", " "), "higher is better", figure
    small = [r for r in rows if r["threads"] > 1 and not r["updates"] and r["efficiency"] is not None]
    small = [r for r in small if r["keys"] == small[0]["keys"]]
    if small:
        figure, axes = plt.subplots(figsize=(WIDTH, 0.75 + 0.26 * len(small)))
        axes.barh(range(len(small)), [100 * r["efficiency"] for r in small], color=[colour(r["type"]) for r in small], height=0.62)
        then = [(100 * r["article_efficiency"], i) for i, r in enumerate(small) if r["article_efficiency"] is not None]
        if then:
            axes.plot(*zip(*then), "D", color=INK, markersize=5, label="2003, four CPUs")
            axes.legend(loc="lower left", bbox_to_anchor=(0, 1))
        axes.axvline(100, color=INK, linewidth=0.8)
        axes.set_yticks(range(len(small)), [r["type"] for r in small])
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)
        axes.set_xlabel(f"% of ideal, {small[0]['threads']} threads: rate over threads times that of one")
        yield "Hash lookups: what more threads bring, beside the figure of 2003", "100 is ideal", figure


def bursts(rows):
    for scenario, title in (("sparse", "A burst of 2000 writes; 2 readers read once in a millisecond"),
                            ("dense", "A burst of 2000 writes; 2 readers read back to back")):
        here = [(r["type"], r["section_us"]) for r in rows if r["scenario"] == scenario]
        figure = bars(here, "us for one write section, of which 1.5 are its work", "")
        if figure:
            yield title, "lower is better", figure


# ---- case studies ----

# Each case has the metric, its unit, a regular expression for its scenarios (at most three are drawn), and which values are better.
CASES = {
    "lockdep-keys": ("ms", "ms to replace a device's 64 keys", r"(others|held|same), Q=64", "lower"),
    "label": ("requests_s", "requests a second", r"^http$", "higher"),
    "hash2003": ("Mops", "million lookups a second", r"^lookups, 4", "higher"),
    "timers": ("Mops", "million lookups a second", r"^(0|1|10) % updates", "higher"),
    "toggle": ("ms", "ms for 1000 probes on and off", r"fork-like", "lower"),
    "reload": ("p999_ns", "ns for a lookup, 99.9th percentile", r"^(quiet|reloads), CPU spare", "lower"),
}
EXTRA = {"label": ("checks_M", "million checks a second", r"loop, 2", "higher")}


def case_plots(name, rows):
    for metric, unit, pattern, better in filter(None, (CASES.get(name), EXTRA.get(name))):
        mine = [r for r in rows if r["case"] == name and r["metric"] == metric]
        scenarios = [s for s in dict.fromkeys(r["scenario"] for r in mine) if re.search(pattern, s)][:3]
        for scenario in scenarios:
            here = [r for r in mine if r["scenario"] == scenario]
            if len(here) < 2:
                continue  # a change of the machine may put one variant alone under a scenario: there is nothing to compare
            full = {r["variant"] for r in here if r["fence"] == "light"} & {r["variant"] for r in here if r["fence"] == "full"}
            labels = [(r["variant"] + (" (full fences)" if r["variant"] in full and r["fence"] == "full" else ""), r) for r in here]
            figure = bars([(label, r["median"]) for label, r in labels], unit, "", [(r["min"], r["max"]) for _, r in labels])
            rounds = statistics.median(r["n"] for r in here)
            if figure:
                yield scenario, f"{better} is better" + (f"; thin lines: least to most of {rounds:.0f}" if rounds > 1 else ""), figure


def svg_of(figure):
    """Return the picture as SVG text without a background."""
    out = io.StringIO()
    figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    return text[text.index("<svg"):]


def themed(svg, prefix):
    """Return the SVG text for use inside a page: scalable, in the colours of the page, with unique ids."""
    svg = re.sub(r'<svg ([^>]*?)width="[^"]*"', r"<svg \1", re.sub(r'height="[^"]*pt"', "", svg, count=1), count=1)
    for ink, name in ((INK, "--ink"), (GRID, "--grid"), (OURS, "--ours"), (PEER, "--peer"), (RAW, "--raw")):
        svg = svg.replace(ink, f"var({name})")
    svg = re.sub(r'id="([^"]+)"', rf'id="{prefix}-\1"', svg)
    svg = re.sub(r'(url\(#|href="#)', rf"\1{prefix}-", svg)
    return re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)


def all_plots(document):
    """(section, title, caption, figure) of each, in the order of the page."""
    parts = document["parts"]
    for name, make in (("reads", reads), ("waits", waits), ("retires", retires), ("tables", tables), ("bursts", bursts)):
        if parts.get(name, {}).get("rows"):
            for title, caption, figure in make(parts[name]["rows"]):
                yield name, title, caption, figure
    rows = parts.get("study", {}).get("rows", [])
    for case in dict.fromkeys(r["case"] for r in rows):
        for title, caption, figure in case_plots(case, rows):
            yield case, title, caption, figure
