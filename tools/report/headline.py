# SPDX-License-Identifier: MIT
"""The first lines of a report: what a read, a wait, a retirement, a read lock, a reference and a lookup cost here, and the best peer's figure.

Definitions and peers are those of `quiesce run` (tools/quiesce/run/run_headline.c).
"""
TAIL = 10  # a 99th percentile is mentioned from this multiple of the median on

SUBCOMMANDS = {"reads": "refscale", "waits": "rcuscale", "retires": "retirescale", "tables": "hashscale"}
DEFINITIONS = {
    "Read": "CPU time of a section with two loads, one thread.",
    "Wait": "until readers have left, beside 64 busy readers of other objects.",
    "Retirement": "an object from malloc() to free(), by kfree_rcu() and kfree_hazptr(), one thread, no readers.",
    "Read lock": "percpu_rwsem, lock and unlock, CPU time; by two: two threads at once.",
    "Reference": "percpu_ref, get and put, CPU time.",
    "Lookup": "in a hashtable of 1000 and of a million objects, time of each of two threads.",
}
# Each line has, for each of its figures: its name, part, scenario (each set of keys has its own), type, threads, set of keys, and the group of its peers.
LINES = {
    "Read": [("RCU", "reads", "read", "rcu", 1, None, "PEER_RCU"), ("hazard pointer", "reads", "read", "hazptr", 1, None, "PEER_HAZPTR")],
    "Wait": [("all readers", "waits", "others", "rcu", 64, None, "PEER_RCU"), ("one object", "waits", "others", "shazptr", 64, None, "PEER_RCU")],
    "Retirement": [("RCU", "retires", "idle", "rcu_free", 1, None, "PEER_RCU"),
                   ("hazard pointer", "retires", "idle", "hazptr_free", 1, None, "PEER_HAZPTR")],
    "Read lock": [("", "reads", "read", "percpu_rwsem", 1, None, "PEER_LOCK"), ("by two", "reads", "read", "percpu_rwsem", 2, None, "PEER_LOCK")],
    "Reference": [("", "reads", "read", "percpu_ref", 1, None, "PEER_COUNT"), ("by two", "reads", "read", "percpu_ref", 2, None, "PEER_COUNT")],
    "Lookup": [("of 1000", "tables", "hash", "hashtable", 2, "uniform:1000", "PEER_TABLE"),
               ("of 1M", "tables", "hash", "hashtable", 2, "uniform:1000000", "PEER_TABLE")],
}
# Further cells have a row where a peer is faster.
MORE = {
    "Wait, 1 reader": [("all readers", "waits", "others", "rcu", 1, None, "PEER_RCU"), ("one object", "waits", "others", "shazptr", 1, None, "PEER_RCU")],
    "Retirement, stalled": [("RCU", "retires", "stalled", "rcu_free", 1, None, "PEER_RCU"),
                            ("hazard pointer", "retires", "stalled", "hazptr_free", 1, None, "PEER_HAZPTR")],
    "Lookup, 1 thread": [("of 1000", "tables", "hash", "hashtable", 1, "uniform:1000", "PEER_TABLE"),
                         ("of 1M", "tables", "hash", "hashtable", 1, "uniform:1000000", "PEER_TABLE")],
}


def plain(value):
    return f"{value:.2f}" if value < 9.995 else f"{value:.1f}" if value < 99.95 else f"{value:.0f}"


def duration(ns):
    for limit, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
        if ns >= 0.9995 * limit:
            return f"{plain(ns / limit)} {unit}"
    return f"{plain(ns)} ns"


def cell(document, figure, name):
    """(median, 99th percentile, half of the spread) of the type @name in the cell of @figure, in nanoseconds; None: it was not measured."""
    _, part, scenario, _, threads, keys, _ = figure
    for row in document["parts"].get(part, {}).get("rows", []):
        here = (row["type"], row["threads"], row.get("keys")) == (name, threads, keys) and (keys or row["scenario"] == scenario)
        if here and row["p50"] and not row.get("updates"):
            if row["unit"].endswith("/s"):
                median, tail = 1e9 * threads / row["p50"], None
            else:
                scale = {"ns": 1, "us": 1e3}[row["unit"]]
                median, tail = scale * row["p50"], scale * row["p99"] if row.get("p99") else None
            return median, tail, median * (row.get("spread") or 0) / 2
    return None


def peers_of(document, figure):
    """[(name, median, 99th percentile, half of the spread)] of the peers, the fastest first."""
    names = dict.fromkeys(t["type"] for t in document["types"] if figure[-1] in t["groups"])
    return sorted(((name, *cell(document, figure, name)) for name in names if cell(document, figure, name)), key=lambda f: f[1])


def is_ahead(peer, mine):
    """True if the peer is better by more than half of both spreads, and visibly: this is the rule of `quiesce run`."""
    return mine[0] - peer[1] > max(peer[3] + mine[2], 0.005 * mine[0])


def reason(document, figure, name):
    """Why the peer @name can be ahead, in its own words; None: no reason is known."""
    return next((t.get("reason") for t in document["types"] if (t["subcommand"], t["type"]) == (SUBCOMMANDS[figure[1]], name)), None)


def text(median, tail, _spread):
    return duration(median) + (f" (p99 {duration(tail)})" if tail and tail >= TAIL * median else "")


def factor(ratio, ahead):
    return f"{'faster: ' if ahead else ''}{ratio:.{2 if ratio < 0.995 else 1 if ratio < 9.95 else 0}f}x"


def line(document, label):
    ours, peers = [], []
    for figure in LINES[label]:
        mine, peer = cell(document, figure, figure[3]), next(iter(peers_of(document, figure)), None)
        if mine:
            ours.append(f"{figure[0]} {text(*mine)}".strip())
        if mine and peer:
            peers.append(f"{peer[0]} {text(*peer[1:])} ({factor(peer[1] / mine[0], is_ahead(peer, mine))})")
    if not ours:
        return None
    return {"name": label, "text": ", ".join(ours) + ("; best peer: " + ", ".join(peers) if peers else "; no peer is installed"),
            "definition": DEFINITIONS[label]}


def headline(document):
    return [entry for entry in (line(document, label) for label in LINES) if entry]


def faster(document):
    """The cells of these lines in which a peer is ahead: [{what, here, peer, takes, ratio, reason}]."""
    rows = []
    for label, figures in {**LINES, **MORE}.items():
        for figure in figures:
            mine = cell(document, figure, figure[3])
            peer = next((peer for peer in peers_of(document, figure) if mine and is_ahead(peer, mine)), None)
            if peer:
                rows.append({"what": ", ".join(filter(None, (label, figure[0]))), "here": duration(mine[0]), "peer": peer[0],
                             "takes": duration(peer[1]), "ratio": f"{peer[1] / mine[0]:.2f}x",
                             "reason": reason(document, figure, peer[0]) or "no reason is known"})
    return rows
