# SPDX-License-Identifier: MIT
"""The figures that stand in pages: each names the cell of docs/figures/*.json that it is the figure of.

Pages are read by people, so their text stands in them, and only the numbers are here, in the order in which the page has them.
"""
import hashlib
import json
import pathlib
import re

RUN, WALKS = "docs/figures/run.json", "docs/figures/walks.json"


def load(root, name):
    return json.loads((root / name).read_text(encoding="utf-8"))


def digest(data):
    return hashlib.sha256(data).hexdigest()


def plain(value):
    return f"{value:.2f}" if value < 9.995 else f"{value:.1f}" if value < 99.95 else f"{value:.0f}"


# ---- figures: each is a function of the rows of `quiesce run` that returns the text ----


def cell(rows, subcommand, scenario, name, threads, fence="light"):
    for row in rows:
        if (row["subcommand"], row["scenario"], row["type"], row["threads"]) == (subcommand, scenario, name, threads) and row.get("fence", fence) == fence:
            return row
    raise KeyError(f"{RUN} has no {subcommand} {scenario} of {name}, {threads}, {fence}")


def read(name, readers, fence="light"):
    """Return a figure in CPU nanoseconds of a section."""
    return lambda rows: plain(cell(rows, "refscale", "read", name, readers, fence)["p50"])


def spread_of_reads(*names):
    """Return by how many percent rounds of one of these types differ from their median at most."""
    return lambda rows: f"{max(50 * cell(rows, 'refscale', 'read', name, readers)['spread'] for name in names for readers in (1, 2, 64)):.0f}"


def wait(name, readers, percentile="p50", fence="light", scenario="others", unit_us=1):
    """Return a figure in microseconds, or in others of @unit_us, of a wait."""
    return lambda rows: plain(cell(rows, "rcuscale", scenario, name, readers, fence)[percentile] / unit_us)


def burst(name, field="p50"):
    return lambda rows: plain(cell(rows, "rwscale", "sparse", name, 2)[field]) if field == "p50" else \
        f"{cell(rows, 'rwscale', 'sparse', name, 2)[field]:.0f}"


def guards_per_wait(rows):
    """Return the number of guards whose fences cost as much as the membarrier of a wait does, rounded to thousands."""
    guard = cell(rows, "refscale", "read", "shazptr", 1, "full")["p50"] - cell(rows, "refscale", "read", "shazptr", 1)["p50"]
    longer = cell(rows, "rcuscale", "others", "shazptr", 1)["p50"] - cell(rows, "rcuscale", "others", "shazptr", 1, "full")["p50"]
    return f"{max(round(longer / guard), 1)}000"  # us to ns, and to thousands


DECIMAL = re.compile(r"(?<=[|/;:( ])(\d+\.\d+|\d+)(?= ?[|/;,.)]|\.?\s|$)", re.M)
NUMBER = re.compile(r"(?<![\w.-])(\d+(?:\.\d+)?)(?=[^\d.\w]|\.(?:\s|$)| ?(?:ns|us|ms)\b)")
CELL = re.compile(r"(?<=[|,] )(\d+(?:\.\d+)?)(?= \||, )")
# These numbers are counts or names, not measurements.
NOT_MEASURED = re.compile(r"\b64(?: busy)?(?: readers|$)|two CPUs|p99|2 cores|C\+\+\d+|Debian \d+|with \d+ reader|with \d+\b(?! ns)|\d+ seconds|\d+-CPU|1/1000", re.M)

# Each has the page, the line with which the part begins, that before which it ends, the form of its figures, and the figures.
PARTS = [
    ("README.md", "# quiesce", "## Build", NUMBER, [
        spread_of_reads("rcu", "ck_epoch", "liburcu_memb", "liburcu_qsbr", "refcnt"),
        *(read("rcu", readers, fence) for fence in ("light", "full") for readers in (1, 2, 64)),
        *(read(name, readers) for name in ("ck_epoch", "liburcu_memb", "liburcu_qsbr", "refcnt", "percpu_rwsem", "ck_brlock", "pthread_rwlock")
          for readers in (1, 2, 64)),
        wait("shazptr", 64), wait("shazptr", 64, "p99"), wait("shazptr", 64, fence="full"),
        wait("rcu", 64), wait("rcu", 64, "p99", unit_us=1000), wait("rcu", 64, fence="full"),
        wait("liburcu_memb", 64, unit_us=1000), wait("liburcu_memb", 64, "p99", unit_us=1000)]),
    ("docs/primitives.md", "| | a reader's section, ns |", "| `rcu_sync`", NUMBER, [f for name in ("rcu", "srcu", "shazptr", "hazptr", "counted_ptr", "percpu_ref")
                                                                for f in (read(name, 1), read(name, 64))]),
    ("docs/primitives.md", "\n| `percpu_rwsem` |", "## Readers counted", NUMBER, [
        read("percpu_rwsem", 1), read("percpu_rwsem", 64), read("pthread_rwlock", 1), read("pthread_rwlock", 64), read("pthread_rwlock", 2),
        read("percpu_rwsem", 1, "full"), read("srcu", 1, "full"), read("percpu_ref", 1, "full"), read("pthread_rwlock", 1),
        read("pthread_rwlock", 2)]),
    ("docs/primitives.md", "| `gp`: a grace", "<!-- Figures:", CELL, [
        f for name in ("gp", "expedited", "rcu_sync") for f in (burst(name), burst(name, "grace_periods"), burst(name, "burst_membarriers"))] +
     [burst("pthread_rwlock")]),
    ("docs/primitives.md", "| `synchronize_shazptr()`, no reader", "| cost of updates for readers", NUMBER, [
        wait("shazptr", 1, scenario="idle"), wait("shazptr", 1), wait("shazptr", 1, fence="full")]),
    ("docs/primitives.md", "A guard takes ", "Read-mostly programs", NUMBER, [
        read("shazptr", 1, "full"), read("shazptr", 1), wait("shazptr", 1, fence="full"), wait("shazptr", 1), guards_per_wait]),
]


# ---- what the text says of the figures ----


def median(rows, subcommand, scenario, name, threads, fence="light"):
    return cell(rows, subcommand, scenario, name, threads, fence)["p50"]


def reading(rows, name, readers=1, fence="light"):
    return median(rows, "refscale", "read", name, readers, fence)


def waiting(rows, name, readers=64, field="p50"):
    return cell(rows, "rcuscale", "others", name, readers)[field]


# A run in which one of these is wrong needs other words in the page, not only other numbers.
CLAIMS = [
    ("README.md: sections of RCU cost the same with 64 readers", lambda r: reading(r, "rcu", 64) < 1.3 * reading(r, "rcu")),
    ("README.md: full fences make sections slower, and waits shorter",
     lambda r: reading(r, "rcu", 1, "full") > 2 * reading(r, "rcu") and cell(r, "rcuscale", "others", "rcu", 64, "full")["p50"] < waiting(r, "rcu")),
    ("README.md: ck's epochs and liburcu's memb cost more than RCU", lambda r: min(reading(r, "ck_epoch"), reading(r, "liburcu_memb")) > reading(r, "rcu")),
    ("README.md: medians of both waits are alike", lambda r: waiting(r, "rcu") < 4 * waiting(r, "shazptr")),
    ("README.md: RCU's wait has the longer tail", lambda r: waiting(r, "rcu", field="p99") > waiting(r, "shazptr", field="p99")),
    ("README.md: liburcu's memb waits longest", lambda r: waiting(r, "liburcu_memb") > 10 * waiting(r, "rcu")),
    ("README.md: a read lock costs the same by two", lambda r: reading(r, "percpu_rwsem", 2) < 1.3 * reading(r, "percpu_rwsem")),
    ("README.md: other read locks cost more", lambda r: min(reading(r, "ck_brlock"), reading(r, "pthread_rwlock")) > reading(r, "percpu_rwsem")),
    ("README.md: others retire faster", lambda r: median(r, "retirescale", "idle", "ck_hp", 1) > median(r, "retirescale", "idle", "hazptr_free", 1)),
    ("README.md: a wait of ck's epochs beside one reader is shorter", lambda r: waiting(r, "ck_epoch", 1) < waiting(r, "rcu", 1)),
    ("docs/primitives.md: with full fences counted readers gain little over a lock by one",
     lambda r: reading(r, "percpu_rwsem", 1, "full") > 0.5 * reading(r, "pthread_rwlock")),
    ("docs/primitives.md: a counted section takes at most twice as long as one of RCU, a tenth of a lock, a fiftieth of a contended one",
     lambda r: max(reading(r, "srcu"), reading(r, "percpu_rwsem")) < min(2.05 * reading(r, "rcu"), 0.1 * reading(r, "pthread_rwlock"),
                                                                        reading(r, "pthread_rwlock", 2) / 50)),
    ("docs/primitives.md: by two they gain much", lambda r: reading(r, "percpu_rwsem", 2, "full") < 0.5 * reading(r, "pthread_rwlock", 2)),
]


def masked(text):
    """Return @text with code, links and what is no measurement blotted out, character by character."""
    for pattern in (re.compile(r"^```.*?^```", re.S | re.M), re.compile(r"!?\[[^\]]*\]\([^)]*\)"), re.compile(r"`[^`\n]*`"), NOT_MEASURED):
        text = pattern.sub(lambda m: re.sub(r"[^\n]", "x", m[0]), text)
    return text


class Wrong(Exception):
    """A page and the list of its figures do not fit together."""


def rewritten(text, part, rows):
    """Return @text with the figures of @part taken from @rows."""
    page, begin, end, pattern, figures = part
    if text.count(begin) != 1 or end not in text[text.index(begin):]:
        raise Wrong(f"{page}: no part from '{begin}' to '{end}'")
    first = text.index(begin)
    last = text.index(end, first)
    found = list(pattern.finditer(masked(text[first:last])))
    if len(found) != len(figures):
        raise Wrong(f"{page}, from '{begin}' on: {len(figures)} figures are listed, the page has {len(found)}: {', '.join(m[1] for m in found)}")
    for match, figure in reversed(list(zip(found, figures))):
        text = text[:first + match.start(1)] + figure(rows) + text[first + match.end(1):]
    return text


# ---- docs/performance.md, which the tool writes ----


def is_rounded(figure, values):
    scale = 1e6 if figure.endswith("M") else 1
    digits = len(figure.rstrip("M").partition(".")[2])
    wanted = float(figure.rstrip("M"))
    return any(abs(value / scale - wanted) <= 0.51 * 10 ** -digits for value in values)


def foreign_figures(text, rows):
    """Yield the figures in tables of the page that are not in @rows; ratios and published figures are left out."""
    values = sorted({v for row in rows for v in row.values() if isinstance(v, (int, float))})
    columns = []
    for line in text.split("\n"):
        cells = [c.strip() for c in line.split("|")[1:-1]]
        if cells[1:2] == ["fence"]:
            columns = cells
        if len(cells) < 3 or cells[1] not in ("light", "full", "-"):
            continue
        for name, figure in ((n, f) for n, c in zip(columns[2:], cells[2:]) for f in re.sub(r"[()]|p99", "", c).split()):
            if name not in ("rcu/mean", "document") and re.fullmatch(r"\d+(\.\d+)?M?", figure) and not is_rounded(figure, values):
                yield figure, line


FASTER_ROW = re.compile(r"^\| (\w.*?: .*?) \| (\w+) \| ([\d.]+M?) \| (\w+) \| ([\d.]+M?) \| (\d\.\d+)x \|$", re.M)


def faster_rows(text):
    """The rows of the tables of cells in which others are faster."""
    return FASTER_ROW.findall(text)


def is_faster_row(row, cell):
    """True if @row of a table is that of @cell in a record's list `faster`."""
    what, ours, here, peer, there, ratio = row
    return (what, ours, peer) == (cell["what"], cell["type"], cell["peer"]) and \
        is_rounded(here, [cell["value"]]) and is_rounded(there, [cell["peer_value"]]) and is_rounded(ratio, [cell["ratio"]])


# ---- docs/walks.md ----

STRUCTURES = {"list": "uniform:500", "map": "uniform:100000", "tree": "uniform:100000", "skip": "uniform:100000"}
SCHEMES = ("none", "rcu", "hazptr", "exchange", "asymmetric", "liburcu", "ck_hp", "ck_epoch", "libcds_hp", "libcds_dhp")
MIXES = (0, 10, 50)


def walks(document):
    """{(scheme, structure, updates, threads): row} of the keys above."""
    return {(r["type"].rsplit("_", 1)[0], r["structure"], r["updates"], r["threads"]): r
            for r in document["rows"] if r["keys"] == STRUCTURES[r["structure"]]}


def walk_table(cells, threads):
    places = [(s, u) for s in STRUCTURES for u in MIXES]
    lines = [f"| ratio to `exchange`, {threads} thread{'s' if threads > 1 else ''} | " + " | ".join(f"{s} {100 - u:g}/{u:g}" for s, u in places) + " |",
             "|---|" + "---|" * len(places)]
    for scheme in SCHEMES:
        here = [cells.get((scheme, s, u, threads)) for s, u in places]
        lines.append(f"| `{scheme}` | " + " | ".join("-" if not c else f"{c['to_exchange']:.2f}" for c in here) + " |")
    return "\n".join(lines) + "\n"


def with_walks(text, document):
    cells = walks(document)
    for threads in sorted({t for *_, t in cells}):
        table = walk_table(cells, threads)
        text, found = re.subn(rf"^\| ratio to `exchange`, {threads} threads? \|.*\n(\|.*\n)*", lambda _, table=table: table, text, flags=re.M)
        if found != 1:
            raise Wrong(f"docs/walks.md: {found} tables of {threads} threads")
    return text


# ---- all ----


def written(root):
    """{page: its text with the figures of docs/figures}"""
    rows, pages = load(root, RUN)["rows"], {}
    for part in PARTS:
        page = part[0]
        pages[page] = rewritten(pages.get(page) or (root / page).read_text(encoding="utf-8"), part, rows)
    pages["docs/walks.md"] = with_walks((root / "docs/walks.md").read_text(encoding="utf-8"), load(root, WALKS))
    return pages


def lockdep_table(root):
    """The table of docs/kernel.md, which the kernels' tests have printed."""
    text = pathlib.Path(root / "docs/kernel.md").read_text(encoding="utf-8")
    return re.search(r"^\| guest \| wait \|.*\n(?:\|.*\n)*", text, re.M)[0]


def pictures(root):
    """{picture: digest of what it shows}, which the file has as a text of the name Source"""
    return {"docs/pictures/wait.png": digest((root / RUN).read_bytes()), "docs/pictures/walks.png": digest((root / WALKS).read_bytes()),
            "docs/pictures/lockdep.png": digest(lockdep_table(root).encode())}
