#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""quiesce queuescale: every type returns all its items, one that does not is reported, shapes are as requested.

Counts are checked, rates are not.
"""
import sys

from cli import diagnosis
from measured import Tool
from tap import Tap, tool_options

SHORT = ["--seconds=0.01", "--runs=1"]
OURS = {"wfcqueue": "liburcu_wfcq", "lfqueue": "liburcu_lfq", "lfqueue_slab": "liburcu_lfq", "wfstack": "liburcu_wfs", "lfstack": "liburcu_lfs"}
IN_SECTIONS = ("lfqueue", "lfstack", "liburcu_lfq", "liburcu_lfs")
SHAPES = {"1": (1, 0), "3": (3, 0), "1:1": (1, 1), "2:1": (2, 1), "1:4": (1, 4)}
MESSAGE_SHAPES = {"1": (1, 0), "1:4": (1, 4)} # A pair and the most threads show of messages what the other shapes would.
BURSTS = {"0": None, "1": 1, "1000": 1000}
MAY_MISS = ("ck_fifo", "moodycamel", "value_queue", "value_queue_bounded")
NO_MESSAGES, NO_NODES = ("ck_fifo", "ck_stack"), ("moodycamel_bulk", "lfqueue_slab", "value_queue_many")


def row_faults(row, types):
    if not 0 < row["min"] <= row["p50"] <= row["max"] or row["n"] != 1 or row["unit"] != "operations/s":
        yield f"figures {row['min']} {row['p50']} {row['max']}, n {row['n']}"
    if row["threads"] != row["producers"] + row["consumers"] or not row["pair_ns"] > 0:
        yield f"{row['producers']} and {row['consumers']} are {row['threads']}, {row['pair_ns']} ns"
    peer = OURS.get(row["type"])
    if row["peer"] != peer or (row["to_peer"] is not None) != (peer in types) or row["to_peer_low"] is not None:
        yield f"compared with {row['peer']}: {row['to_peer']}"
    if row["burst"]:
        if row["waited"] is not None or row["in_all"] is not None or not row["cpu_ns"] > 0:
            yield f"messages: waited {row['waited']}, in all {row['in_all']}, {row['cpu_ns']} ns"
        return
    if not 0 <= row["waited"] < 1 or (row["type"] not in IN_SECTIONS and row["waited"]):
        yield f"waited {row['waited']}"
    if not 0 < row["in_all"] <= row["p50"] or row["cpu_ns"] is not None:
        yield f"in all {row['in_all']} of {row['p50']}, {row['cpu_ns']} ns"
    if not row["consumers"] and row["empty"] and row["type"] not in MAY_MISS:
        yield f"pairs found nothing {row['empty']} times"


def wanted(types):
    for name in types:
        for burst in BURSTS.values():
            if name not in (NO_MESSAGES if burst else NO_NODES):
                yield from ((name, *shape, burst or 0) for shape in (MESSAGE_SHAPES if burst else SHAPES).values())


def check_all(tap, tool, doc):
    types = tool.types()
    roots = [tool.root(*SHORT, "--threads=" + ",".join(shapes), "--burst=" + bursts, "--fence=light", "--type=" + ",".join(types))
             for shapes, bursts in ((SHAPES, "0"), (MESSAGE_SHAPES, ",".join(burst for burst in BURSTS if BURSTS[burst])))]
    rows = [row for root in roots for row in root["rows"]]
    tap.result(sorted((r["type"], r["producers"], r["consumers"], r["burst"] or 0) for r in rows) == sorted(wanted(types)) and
               set(OURS) <= set(types), "every type has a row of each shape and burst", types)
    notes = [note for root in roots for note in root["notes"]]
    tap.result(not notes, "nothing is broken", "\n".join(notes))
    tap.result([list(r) for r in rows] == [tool.documented(doc)] * len(rows), "the fields are the documented ones",
               f"{[list(r) for r in rows[:1]]}\n{tool.documented(doc)}")
    for row in rows:
        faults = list(row_faults(row, types))
        tap.result(not faults, f"row {row['type']} {row['producers']}:{row['consumers']} {row['burst']}", "\n".join(faults))


def check_mistakes(tap, tool):
    for burst in BURSTS:
        root = tool.root(*SHORT, "--threads=1", "--type=busted", f"--burst={burst}", want=1)
        tap.result(any("BROKEN" in n and "not equal" in n for n in root["notes"]), f"lost elements are reported: {burst}", root["notes"])
    rows = tool.root(*SHORT, "--threads=1", "--type=wfcqueue,lfqueue", "--fence=light")["rows"]
    tap.result(sorted((r["type"], r["burst"] or 0) for r in rows) == [("lfqueue", 0), ("lfqueue", 1), ("wfcqueue", 0), ("wfcqueue", 1)],
               "nodes, and messages one by one, are the default", rows)
    for value in ("1:0", "0:1", ":1", "1:", "1:5", "1:1:1"):
        run = tool(f"--threads={value}")
        tap.result(run.returncode == 2 and "--threads" in run.stderr, f"--threads={value} is refused", diagnosis(run))
    for value in ("3", "", "-1", "1001", "1,x"):
        run = tool(f"--burst={value}")
        tap.result(run.returncode == 2 and "--burst" in run.stderr, f"--burst={value} is refused", diagnosis(run))


def main():
    opt = tool_options("doc")
    tap = Tap()
    tool = Tool(tap, opt.tool, "queuescale")
    check_all(tap, tool, opt.doc)
    check_mistakes(tap, tool)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
