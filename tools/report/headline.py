# SPDX-License-Identifier: MIT
"""Six lines in plain words: what a read, a wait, a retirement, a read lock, a reference and a lookup cost here."""


def cell(rows, scenario, fence=("light", "full", None), **what):
    for row in rows:
        if row["scenario"] == scenario and row["fence"] in fence and all(row.get(k) == v for k, v in what.items()):
            return row
    return None


def ratio(peer, ours):
    """The ratio of a peer's figure to ours, in words; single runs differ by up to 5 %."""
    if peer > 1.05 * ours:
        return f"{plain(peer / ours) if peer > 100 * ours else format(peer / ours, '.2g')} times as much"
    return "as much" if peer > ours / 1.05 else f"less: {peer / ours:.2g} of it"


def plain(value):
    return f"{value:.2f}" if value < 10 else f"{value:.0f}" if value < 10000 else f"{value:,.0f}".replace(",", " ")


def duration(ns):
    for limit, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
        if ns >= limit:
            return f"{plain(ns / limit)} {unit}"
    return f"{plain(ns)} ns"


def line(name, ours, text, peer, peer_text):
    """@ours and @peer: nanoseconds, None where there is none."""
    if ours is None:
        return None
    said = f"{duration(ours)} {text}"
    if peer is None:
        return {"name": name, "text": said + "; the peer is not installed"}
    return {"name": name, "text": f"{said}; {peer_text} {duration(peer)}, {ratio(peer, ours)}"}


def p50(row):
    return row["p50"] if row else None


def headline(document):
    parts = {name: part["rows"] for name, part in document["parts"].items()}
    reads, waits, retires, tables = (parts.get(p, []) for p in ("reads", "waits", "retires", "tables"))
    most = max((r["threads"] for r in reads), default=0)
    busy = max((r["threads"] for r in waits if r["scenario"] == "others"), default=0)
    two = max((r["threads"] for r in tables), default=0)
    locks = min(most, 2)

    def read(name, threads=1):
        return p50(cell(reads, "read", type=name, threads=threads))

    def wait(name):
        found = p50(cell(waits, "others", type=name, threads=busy))
        return found and 1e3 * found

    def retire(name):
        found = p50(cell(retires, "published", type=name, threads=2))
        return found and 1e9 / found

    def lookup(name):
        found = p50(cell(tables, "hash", type=name, threads=two))
        return found and 1e9 * two / found
    lines = [
        line("Read", read("rcu"), "for a section of RCU with two loads", read("liburcu_memb"), "liburcu's takes"),
        line("Wait", wait("shazptr"), f"until no reader holds an object, beside {busy} busy readers of others", wait("liburcu_memb"),
             "liburcu's grace period takes"),
        line("Retirement", retire("hazptr_inline"), "to allocate, retire and free an object", retire("liburcu_memb"), "liburcu's call_rcu() takes"),
        line("Read lock", read("percpu_rwsem", locks), f"to lock and unlock, {locks} threads", read("pthread_rwlock", locks),
             "pthread_rwlock takes"),
        line("Reference", read("percpu_ref", locks), f"to get and put, {locks} threads", read("refcnt", locks), "an atomic count takes"),
        line("Lookup", lookup("hashmap"), f"in a table of 1000, {two} threads", lookup("liburcu_lfht"), "liburcu's table takes"),
    ]
    return [entry for entry in lines if entry]
