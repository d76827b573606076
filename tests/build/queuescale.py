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
OURS = {"wfcqueue": "liburcu_wfcq", "lfqueue": "liburcu_lfq", "wfstack": "liburcu_wfs", "lfstack": "liburcu_lfs"}
IN_SECTIONS = ("lfqueue", "lfstack", "liburcu_lfq", "liburcu_lfs")
SHAPES = {"1": (1, 0), "3": (3, 0), "1:1": (1, 1), "2:1": (2, 1), "1:4": (1, 4)}


def row_faults(row, types):
    if not 0 < row["min"] <= row["p50"] <= row["max"] or row["n"] != 1 or row["unit"] != "operations/s":
        yield f"figures {row['min']} {row['p50']} {row['max']}, n {row['n']}"
    if row["threads"] != row["producers"] + row["consumers"] or not row["pair_ns"] > 0:
        yield f"{row['producers']} and {row['consumers']} are {row['threads']}, {row['pair_ns']} ns"
    peer = OURS.get(row["type"])
    if row["peer"] != peer or (row["to_peer"] is not None) != (peer in types) or row["to_peer_low"] is not None:
        yield f"compared with {row['peer']}: {row['to_peer']}"
    if not 0 <= row["waited"] < 1 or (row["type"] not in IN_SECTIONS and row["waited"]):
        yield f"waited {row['waited']}"
    if not row["consumers"] and row["empty"] and row["type"] != "ck_fifo":
        yield f"pairs found nothing {row['empty']} times"


def check_all(tap, tool, doc):
    types = tool.types()
    root = tool.root(*SHORT, "--threads=" + ",".join(SHAPES), "--fence=light", "--type=" + ",".join(types))
    rows = root["rows"]
    tap.result(sorted((r["type"], r["producers"], r["consumers"]) for r in rows) ==
               sorted((t, *shape) for t in types for shape in SHAPES.values()) and set(OURS) <= set(types),
               "every type has a row of each shape", types)
    tap.result(not root["notes"], "nothing is broken", "\n".join(root["notes"]))
    tap.result([list(r) for r in rows] == [tool.documented(doc)] * len(rows), "the fields are the documented ones",
               f"{[list(r) for r in rows[:1]]}\n{tool.documented(doc)}")
    for row in rows:
        faults = list(row_faults(row, types))
        tap.result(not faults, f"row {row['type']} {row['producers']}:{row['consumers']}", "\n".join(faults))


def check_mistakes(tap, tool):
    root = tool.root(*SHORT, "--threads=1", "--type=busted", want=1)
    tap.result(any("BROKEN" in n and "not equal" in n for n in root["notes"]), "lost elements are reported", root["notes"])
    for value in ("1:0", "0:1", ":1", "1:", "1:5", "1:1:1"):
        run = tool(f"--threads={value}")
        tap.result(run.returncode == 2 and "--threads" in run.stderr, f"--threads={value} is refused", diagnosis(run))


def main():
    opt = tool_options("doc")
    tap = Tap()
    tool = Tool(tap, opt.tool, "queuescale")
    check_all(tap, tool, opt.doc)
    check_mistakes(tap, tool)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
