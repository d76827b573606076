#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""quiesce walkscale: every type finds all its keys, waiting objects are counted and bounded by the batch, mistakes are reported.

Counts are checked, rates are not.
"""
import sys

from cli import diagnosis
from measured import Tool
from tap import Tap, tool_options

SHORT = ["--seconds=0.01", "--runs=1", "--threads=2"]
STRUCTURES = ("list", "map", "tree", "skip")
OURS = ("none", "rcu", "hazptr", "exchange", "asymmetric")
BATCH = 64


def row_faults(row):
    if not 0 < row["min"] <= row["p50"] <= row["max"] or row["n"] != 1 or row["unit"] != "operations/s":
        yield f"figures {row['min']} {row['p50']} {row['max']}, n {row['n']}"
    if row["structure"] != row["type"].rsplit("_", 1)[1] or row["keys"] != "uniform:200" or row["updates"] != 50 or row["stalled"]:
        yield f"it is of {row['structure']}, {row['keys']}, {row['updates']}"
    if row["type"].startswith("exchange") and row["to_exchange"] != 1:
        yield f"it is {row['to_exchange']} of itself"
    if not 0 <= (row["waiting_mean"] or 0) <= (row["waiting"] or 0):
        yield f"{row['waiting']} elements wait at most, {row['waiting_mean']} in the mean"
    if row["to_exchange"] is None or row["to_exchange_low"] is not None:
        yield f"ratio {row['to_exchange']}, interval of one round {row['to_exchange_low']}"


def check_all(tap, tool, doc):
    types = tool.types()
    root = tool.root(*SHORT, "--keys=uniform:200", "--updates=50", "--type=" + ",".join(types))
    tap.result(sorted(r["type"] for r in root["rows"]) == sorted(types) and
               {f"{scheme}_{s}" for scheme in OURS for s in STRUCTURES} <= set(types), "every type has a row", types)
    tap.result(not root["notes"], "nothing is broken", "\n".join(root["notes"]))
    tap.result([list(r) for r in root["rows"]] == [tool.documented(doc)] * len(root["rows"]), "the fields are the documented ones",
               f"{[list(r) for r in root['rows'][:1]]}\n{tool.documented(doc)}")
    for row in root["rows"]:
        faults = list(row_faults(row))
        tap.result(not faults, f"row {row['type']}", "\n".join(faults))


def check_waiting(tap, tool):
    """A thread keeps its batch and protected objects; a tree's update retires two.  A reader that stays does not change that."""
    types = [f"{scheme}_{s}" for scheme in ("hazptr", "exchange", "asymmetric") for s in STRUCTURES]
    for more in ([], ["--stall"]):
        root = tool.root("--seconds=0.05", "--runs=1", "--threads=2", "--keys=uniform:200", "--updates=50", f"--batch={BATCH}",
                         *more, "--type=" + ",".join(types))
        waiting = {r["type"]: r["waiting"] for r in root["rows"]}
        tap.result(sorted(waiting) == sorted(types) and all(w <= 2 * (BATCH + 1) + 3 * 3 + 256 for w in waiting.values()),
                   f"a batch bounds what waits {''.join(more)}", waiting)
        tap.result(all(r["stalled"] == bool(more) for r in root["rows"]), f"rows say whether a reader stays {''.join(more)}", root)
    root = tool.root("--seconds=0.1", "--runs=1", "--threads=2", "--keys=uniform:200", "--updates=50", "--stall", "--type=rcu_map")
    tap.result(root["rows"] and root["rows"][0]["waiting"] > 10000, "behind a section that stays everything waits", root)


def check_broken(tap, tool):
    tool.noticed("an element that is dead before its readers have left is reported", "--threads=2", "--keys=uniform:64", "--type=busted_map",
                 "--updates=50")
    root = tool.root(*SHORT, "--keys=uniform:20000", "--type=hazptr_list,hazptr_map")
    tap.result({r["type"] for r in root["rows"]} == {"hazptr_map"}, "no list of so many keys", root)
    run = tool("--resize")
    tap.result(run.returncode == 2 and "--resize" in run.stderr, "it has no tables that are resized", diagnosis(run))


def main():
    opt = tool_options("doc")
    tap = Tap()
    tool = Tool(tap, opt.tool, "walkscale")
    check_all(tap, tool, opt.doc)
    check_waiting(tap, tool)
    check_broken(tap, tool)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
