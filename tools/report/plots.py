# SPDX-License-Identifier: MIT
"""The pictures of a report, by matplotlib: narrow ones with large text, so that a phone shows them legibly.

Each has a row for each type: its name and its figures above, a dot or a bar below.  Logarithmic axes have dots, because a bar shows its length
from zero; a line is the range of several rounds.
"""
import io
import math
import re

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt  # noqa: E402  the back end first
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter  # noqa: E402

OURS, PEER, RAW = "#0b7285", "#c2571a", "#5f676f"
INK, GRID = "#212529", "#ced4da"
WIDTH = 4.7  # inches; 338 points: 10.8 of them are more than 10 pixels on a page that is 360 wide
SMALL = 10.8
peers = ["liburcu", "ck", "libcds", "tbb"]  # with a module each; those of the document that is drawn are added
PEERS = ("std_", "pthread", "libcuckoo", "refcnt", "spinlock", "rwlock", "brlock", "mutex", "refcount",
         "seqlock", "global_", "bucket_lock", "shared_ptr", "rwlock_whole", "kernel")
FLOORS = ("raw_", "noop", "unchecked")
plt.rcParams.update({
    "svg.fonttype": "none", "svg.hashsalt": "quiesce", "font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans"], "font.size": 11,
    "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": INK, "axes.labelcolor": INK, "text.color": INK,
    "xtick.color": INK, "ytick.color": INK, "axes.grid": True, "axes.axisbelow": True, "grid.color": GRID, "grid.linewidth": 0.6,
    "legend.frameon": False, "legend.fontsize": SMALL, "figure.constrained_layout.use": True, "axes.titlesize": 11, "axes.titlelocation": "left",
    "xtick.labelsize": SMALL, "ytick.labelsize": SMALL})


def colour(name):
    if name.startswith(FLOORS):
        return RAW
    return PEER if name.startswith((*PEERS, *peers)) else OURS


def short(value):
    """Return a number with three significant figures."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else "-"
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= 0.9995 * limit:
            return f"{value / limit:.3g}{unit}"
    return f"{value:.3g}"


def duration(ns):
    for limit, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
        if ns >= 0.9995 * limit:
            return f"{ns / limit:.3g} {unit}"
    return f"{ns:.3g} ns"


def is_wide(values):
    """True if there is more than a factor of twenty between the values, which takes a logarithmic axis."""
    values = [v for v in values if v and v > 0]
    return bool(values) and max(values) > 20 * min(values)


def make_logarithmic(axis, show, values):
    """Ticks are at powers of ten, between less than a factor of two hundred at 2 and 5 as well."""
    axis.axes.set_xscale("log") if axis.axis_name == "x" else axis.axes.set_yscale("log")
    axis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=9) if max(values) < 200 * min(values) else LogLocator(numticks=6))
    axis.set_major_formatter(FuncFormatter(lambda v, _: show(v)))
    axis.set_minor_formatter(NullFormatter())


class Row:
    """A row of a picture: @text stands beside the name, @value is the dot or the end of the bar.

    @low and @high are the range of several rounds, @tail the end of a band, @marks [(value, marker)] are further dots, hollow.
    """

    def __init__(self, name, text, value, low=None, high=None, tail=None, marks=(), ink=None):
        self.name, self.text, self.value, self.low, self.high, self.tail, self.marks = name, text, value, low, high, tail, marks
        self.colour = ink or colour(name.split(",")[0])

    def values(self):
        return [v for v in (self.value, self.low, self.high, self.tail, *(m for m, _ in self.marks)) if v is not None]


def draw_row(axes, y, row, log):
    axes.text(0, y - 0.17, row.name, transform=axes.get_yaxis_transform(), va="bottom")
    axes.text(1, y - 0.17, row.text, transform=axes.get_yaxis_transform(), va="bottom", ha="right", fontsize=SMALL)
    y += 0.08
    if row.tail is not None:
        axes.plot([row.value, row.tail], [y, y], color=row.colour, linewidth=6, alpha=0.35, solid_capstyle="butt")
    if not log:
        axes.barh(y, row.value, color=row.colour, height=0.34)
    if row.low is not None and row.high > row.low:
        axes.plot([row.low, row.high], [y, y], color=row.colour if log else INK, linewidth=1.3)
    if log:
        axes.plot([row.value], [y], "o", color=row.colour, markersize=7)
    for value, marker in row.marks:
        axes.plot([value], [y], marker, color=row.colour if log else INK, markerfacecolor="none" if log else INK, markersize=7 if log else 4.5)


def picture(rows, unit, show=short, more=0):
    """Return a picture of @rows; @unit: text below the axis; @more: inches for what the caller adds; None without rows."""
    rows = [r for r in rows if r.value is not None and math.isfinite(r.value)]
    if not rows:
        return None
    figure, axes = plt.subplots(figsize=(WIDTH, 0.62 + 0.43 * len(rows) + more))
    values = [v for r in rows for v in r.values()]
    log = is_wide(values)
    if log:
        make_logarithmic(axes.xaxis, show, [v for v in values if v > 0])
    for y, row in enumerate(rows):
        draw_row(axes, y, row, log)
    axes.set_ylim(len(rows) - 0.55, -0.62)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.grid(axis="y", visible=False)
    if log:
        least, most = min(v for v in values if v > 0), max(values)
        room = (most / least) ** 0.04
        axes.set_xlim(least / room, most * room)
    else:
        axes.set_xlim(0, 1.04 * max(values) or 1)
        axes.xaxis.set_major_locator(plt.MaxNLocator(5, steps=[1, 2, 5, 10]))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: show(v) if v else "0"))
    axes.set_xlabel(unit, loc="left", fontsize=SMALL)
    return figure


# ---- the families of primitives ----

FAMILIES = {"FAMILY_ALL": "Readers of everything: RCU and its like", "FAMILY_OBJECT": "Readers of one object: hazard pointers and counts",
            "FAMILY_LOCK": "Read locks"}


def reads(rows, all_types):
    """Cost by one thread, two and the most, a picture for each family."""
    for family, title in FAMILIES.items():
        types = [t["type"] for t in all_types if t["subcommand"] == "refscale" and family in t["groups"]]
        cells = {(r["type"], r["threads"]): r["p50"] for r in rows if r["type"] in types}
        threads = sorted({t for _, t in cells})
        made = []
        for name in types:
            alone, *others = [(cells[name, t], "osD"[i % 3]) for i, t in enumerate(threads) if (name, t) in cells] or [None]
            if alone:
                made.append(Row(name, ", ".join(short(v) for v, _ in (alone, *others)) + " ns", alone[0], marks=others))
        figure = picture(made, "CPU ns of a section with two loads")
        if figure:
            counts = [str(t) for t in threads]
            marks = ", ".join(f"{shape}: {n}" for shape, n in zip(("filled circle or bar", "square", "diamond"), counts))
            yield title, f"lower is better; figures for {', '.join(counts)} threads ({marks})", figure


WAIT_SCENARIOS = {"others": "An update beside {} busy readers of other objects", "same": "An update beside {} busy readers of its own object",
                  "long": "An update of what {} readers hold, 1 ms each", "idle": "An update while {} threads that read are asleep"}


def wait_text(row):
    return f"{duration(1e3 * row['p50'])}, p99 {duration(1e3 * row['p99'])}"


def wait_picture(rows):
    """Median, 99th percentile, and the range of all waits of each type."""
    return picture([Row(r["type"], wait_text(r), 1e3 * r["p50"], 1e3 * r["min"], 1e3 * r["max"], 1e3 * r["p99"]) for r in rows],
                   "dot: median; band: to p99; line: least to most", duration)


def waits(rows):
    for scenario, title in WAIT_SCENARIOS.items():
        here = [r for r in rows if r["scenario"] == scenario]
        threads = max((r["threads"] for r in here), default=0)
        here = [r for r in here if r["threads"] == threads]
        figure = wait_picture(here)
        if figure:
            yield title.format(threads), "time of one wait, lower is better", figure


def retires(rows):
    """Make pictures of the rates without readers and with one that stays, and of the garbage behind it."""
    threads = max(r["threads"] for r in rows)
    rows = sorted((r for r in rows if r["threads"] == threads), key=lambda r: -r["p50"])
    for scenario, title in (("idle", f"Deferred frees, {threads} threads, no readers"), ("stalled", f"Deferred frees, {threads} threads, one reader stays")):
        here = [r for r in rows if r["scenario"] == scenario]
        figure = picture([Row(r["type"], f"{short(r['p50'])}/s", r["p50"], r["min"], r["max"]) for r in here], "objects a second")
        if figure:
            yield title, "higher is better; thin line: range of the rounds", figure
    here = sorted((r for r in rows if r["scenario"] == "stalled" and r.get("garbage")), key=lambda r: r["garbage"])
    figure = picture([Row(r["type"], f"{short(r['garbage'])} wait", r["garbage"]) for r in here], "objects that wait to be freed, most")
    if figure:
        yield "Garbage behind a reader that stays", "lower is better", figure


def tables(rows):
    """Make pictures of the rates for each set of keys; then the rate relative to the ideal, beside the figures of 2003."""
    for keys in dict.fromkeys(r["keys"] for r in rows):
        here = [r for r in rows if r["keys"] == keys and not r["updates"]]
        most = max(r["threads"] for r in here)
        alone = {r["type"]: r["p50"] / 1e6 for r in here if r["threads"] == 1 < most}
        last = sorted(((r["type"], r["p50"] / 1e6) for r in here if r["threads"] == most), key=lambda x: -x[1])
        figure = picture([Row(name, f"{short(alone[name])}, {short(v)}" if name in alone else short(v), v,
                              marks=[(alone[name], "o")] if name in alone else ()) for name, v in last], "million lookups a second")
        if figure:
            marks = f"dot: 1 thread, bar: {most}" if alone else f"{most} threads"
            yield f"Hash tables, {here[0]['nr_keys']:,} keys".replace(",", " "), f"higher is better; {marks}", figure
    small = [r for r in rows if r["threads"] > 1 and not r["updates"] and r["efficiency"] is not None]
    small = [r for r in small if r["keys"] == small[0]["keys"]]
    made = []
    for r in small:
        then = r["article_efficiency"]
        made.append(Row(r["type"], f"{100 * r['efficiency']:.0f} %" + (f", 2003: {100 * then:.0f} %" if then is not None else ""), 100 * r["efficiency"],
                        marks=[(100 * then, "D")] if then is not None else ()))
    figure = picture(made, f"% of {small[0]['threads']} times the rate of one thread" if small else "")
    if figure:
        figure.axes[0].axvline(100, color=INK, linewidth=0.8)
        yield "Hash lookups: what more threads bring", "100 is ideal; diamond: the figure of 2003, on four CPUs", figure


def bursts(rows):
    for scenario, title in (("sparse", "Writes in a burst, 2 readers that read once in a millisecond"),
                            ("dense", "Writes in a burst, 2 readers that read back to back")):
        here = [r for r in rows if r["scenario"] == scenario and r["section_us"]]
        figure = picture([Row(r["type"], duration(1e3 * r["section_us"]), 1e3 * r["section_us"]) for r in here],
                         "one write of 2000, of which 1.5 us are its work", duration)
        if figure:
            yield title, "lower is better", figure


# ---- case studies ----

# Each case has the metric, nanoseconds in its unit or None, the text below the axis, which values are better, and scenarios with their titles.
CASES = {
    "lockdep-keys": ("ms", 1e6, "time to replace a device's 64 keys", "lower", {
        r"others, Q=64": "Replace 64 keys while readers stay 1 ms in other buckets",
        r"same, Q=64": "Replace 64 keys while 2 readers are busy in their bucket",
        r"held, Q=64": "Replace 64 keys while readers stay 20 ms in their bucket"}),
    "label": ("requests_s", None, "requests a second", "higher", {r"http": "HTTP requests, a label checked at each open"}),
    "hash2003": ("Mops", None, "million lookups a second", "higher", {r"lookups, (\d+) threads.*": "Lookups of 1000 keys, {} threads"}),
    "timers": ("Mops", None, "million lookups a second", "higher", {r"(\d+) % updates": "Timers found and locked, {} % updates"}),
    "toggle": ("ms", 1e6, "time for 1000 probes on and off", "lower", {r"fork-like readers: .*": "1000 probes on and off, readers as rare as fork()",
        r"fork-like readers, and (\d+) threads .*": "The same beside {} busy readers of RCU"}),
}
EXTRA = {"label": ("checks_M", None, "million checks a second", "higher", {r"loop, 2.*": "Label checks in a loop, 2 threads"})}


def variant(row, both):
    return row["variant"] + (", full fences" if row["variant"] in both and row["fence"] == "full" else "")


def case_picture(rows, ns, unit):
    both = {r["variant"] for r in rows if r["fence"] == "light"} & {r["variant"] for r in rows if r["fence"] == "full"}
    scale, show = (ns, duration) if ns else (1, short)
    made = []
    for r in rows:
        low, high = (scale * r["min"], scale * r["max"]) if r["n"] > 1 else (None, None)
        made.append(Row(variant(r, both), show(scale * r["median"]), scale * r["median"], low, high))
    return picture(made, unit, show)


def case_plots(name, rows):
    for metric, ns, unit, better, titles in filter(None, (CASES.get(name), EXTRA.get(name))):
        mine = [r for r in rows if r["case"] == name and r["metric"] == metric]
        for scenario in dict.fromkeys(r["scenario"] for r in mine):
            found = next(((title, m) for p, title in titles.items() if (m := re.fullmatch(p, scenario))), None)
            here = [r for r in mine if r["scenario"] == scenario and r["median"] is not None]
            if not found or len(here) < 2:
                continue  # a change of the machine may put one variant alone under a scenario: there is nothing to compare
            figure = case_picture(here, ns, unit)
            if figure:
                rounds = "; line: range of the rounds" if any(r["n"] > 1 for r in here) else ""
                yield found[0].format(*found[1].groups()), f"{better} is better{rounds}", figure


TAIL = [("request_p50_us", "|"), ("request_p99_us", "s"), ("request_p999_us", "o"), ("request_max_us", "D")]


def reload_plot(rows):
    """Make the picture of the tail of requests beside reloads: median, two percentiles, and the longest."""
    cells = {(r["variant"], r["fence"], r["metric"]): r["median"] for r in rows if r["case"] == "reload" and r["scenario"] == "reloads, CPU spare"}
    made = []
    for name, fence in dict.fromkeys((v, f) for v, f, _ in cells):
        found = [(1e3 * cells[name, fence, metric], mark) for metric, mark in TAIL if cells.get((name, fence, metric))]
        if fence != "full" and len(found) == len(TAIL):
            p50, p99, p999, most = found
            made.append(Row(name, f"{duration(p50[0])}, {duration(p999[0])}, {duration(most[0])}", p999[0], p50[0], most[0], marks=[p50, p99, most]))
    figure = picture(made, "time of a request from when it was due", duration)
    if figure:
        yield "Requests beside 20 reloads a second", "lower is better; median (tick), p99 (square), p99.9 (dot), longest (diamond); " \
            "figures: median, p99.9, longest; light fences", figure


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
    peers.extend(document["peers"])
    for name, make in (("reads", lambda rows: reads(rows, document["types"])), ("waits", waits), ("retires", retires), ("tables", tables), ("bursts", bursts)):
        if parts.get(name, {}).get("rows"):
            for title, caption, figure in make(parts[name]["rows"]):
                yield name, title, caption, figure
    rows = parts.get("study", {}).get("rows", [])
    for case in dict.fromkeys(r["case"] for r in rows):
        for title, caption, figure in reload_plot(rows) if case == "reload" else case_plots(case, rows):
            yield case, title, caption, figure
