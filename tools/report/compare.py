# SPDX-License-Identifier: MIT
"""Two reports side by side: a change that is within the spread of either is called none."""
import json
import sys

MOST = 64 << 20  # most bytes of a report.json; usual ones have some 100000
SMALL = 0.05  # difference of single runs, where no spread is known
# In these parts and metrics more is better; in all others less.
MORE = ("retires", "tables")
MORE_METRICS = ("Mops", "checks_M", "requests_s", "lookups_M", "Mlookups", "efficiency")


def load(path):
    try:
        with open(path, "rb") as f:
            text = f.read(MOST + 1)  # a device may have no end
        document = json.loads(text) if len(text) <= MOST else None
    except (OSError, ValueError, RecursionError) as error:
        sys.exit(f"quiesce report: {path}: {error}")
    try:
        figures(document), setting(document)
        good = document["report"] == 1
    except (AttributeError, KeyError, TypeError):
        good = False
    if not good:
        sys.exit(f"quiesce report: {path} is not the report.json of a report")
    return document


def figures(document):
    """{(part, what): (value, spread, more is better)}"""
    found = {}
    for name, part in document["parts"].items():
        for r in part["rows"]:
            if name == "study":
                key = (r["case"], r["scenario"], r["variant"], r["fence"], r["metric"])
                found[key] = (r["median"], r["spread"], r["metric"] in MORE_METRICS)
            else:
                key = (name, r["scenario"] + (f" {r['keys']}" if r.get("keys") else ""), r["type"], r["fence"], f"{r['threads']} threads")
                found[key] = (r["p50"], r["spread"], name in MORE)
    return found


def judge(old, new):
    """The verdict on a figure, in a word, and its relative change."""
    (a, spread_a, more), (b, spread_b, _) = old, new
    if not a or not b:
        return "none" if a == b else "?", None
    change = b / a - 1
    noise = max(spread_a or SMALL, spread_b or SMALL)
    if abs(change) <= noise:
        return "none", change
    return "better" if (change > 0) == more else "worse", change


def table(old, new):
    rows = []
    a, b = figures(old), figures(new)
    for key in dict.fromkeys([*a, *b]):
        if key in a and key in b:
            verdict, change = judge(a[key], b[key])
            rows.append({"what": key, "old": a[key][0], "new": b[key][0], "old_spread": a[key][1], "new_spread": b[key][1], "change": change,
                         "verdict": verdict})
        else:
            rows.append({"what": key, "old": a.get(key, (None,))[0], "new": b.get(key, (None,))[0], "old_spread": None, "new_spread": None,
                         "change": None, "verdict": "only old" if key in a else "only new"})
    return rows


def setting(document):
    host = document["host"]
    return (f"{host.get('cpu')}, {host.get('cores')} cores, kernel {host.get('kernel')}, quiesce {document['version']}, {host.get('build')}, "
            f"{document['date']}, {'quick' if document['quick'] else 'full'}")


def number(value):
    return "-" if value is None else f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def percent(value, sign=""):
    return "-" if value is None else f"{100 * value:{sign}.0f}%"


def compare(old_path, new_path, as_json):
    old, new = load(old_path), load(new_path)
    rows = table(old, new)
    if as_json:
        print(json.dumps({"schema": 1, "old": setting(old), "new": setting(new), "rows": [{**r, "what": list(r["what"])} for r in rows]}, indent=1))
        return
    print(f"old: {setting(old)}\nnew: {setting(new)}\n")
    if setting(old).rsplit(", ", 2)[0] != setting(new).rsplit(", ", 2)[0] or old["quick"] != new["quick"]:
        print("The two are of different machines, versions or settings: what differs may be that.\n")
    group = None
    order = list(dict.fromkeys(r["what"][:2] for r in rows))
    for r in sorted(rows, key=lambda r: order.index(r["what"][:2])):
        part, scenario, name, fence, rest = r["what"]
        if (part, scenario) != group:
            group = (part, scenario)
            print(f"{part}: {scenario}\n  {'':<34} {'old':>9} {'':>6} {'new':>9} {'':>6} {'change':>8}")
        label = " ".join(filter(None, (name, fence if fence == "full" else "", rest)))
        print(f"  {label[:34]:<34} {number(r['old']):>9} {percent(r['old_spread']):>6} {number(r['new']):>9} {percent(r['new_spread']):>6} "
              f"{percent(r['change'], '+'):>8} {r['verdict']}")
    counts = {v: sum(r["verdict"] == v for r in rows) for v in ("better", "worse", "none", "only old", "only new", "?")}
    print("\n" + ", ".join(f"{n} {v}" for v, n in counts.items() if n) + ". 'none': within the larger of the two spreads, "
          f"{percent(SMALL)} where there is none.")
