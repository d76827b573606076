#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""quiesce costs: each row, its units, two CPUs or one, all pairs, formats.

The test checks that printed figures agree with each other; times are not checked.
"""
import csv
import io
import json
import math
import os
import pathlib
import re
import sys

from cli import children, diagnosis, interrupt
from tap import Tap, execute, tool_options

UNITS = ["cycle", "instruction", "l1"]
DEAR = ["memory", "memory_huge"]  # a gigabyte each
PAIRS = ["transfer", "atomic_inc_two"]
TWO_CPUS = [*PAIRS, "membarrier_busy", "wake_call", "wake_run"]
ARTICLE = {"cycle": 1.4, "instruction": 0.7, "l2": 12.9, "memory": 162.4, "atomic_inc": 58.2, "cmpxchg_inc": 107.3,
           "spin_lock": 163.7, "transfer": 170.4}


class Tool:
    def __init__(self, tap, path):
        self.tap, self.path = tap, path

    def __call__(self, *args):
        return execute([self.path, "costs", *args])

    def rows(self, *args, want=0, name=""):
        run = self(*args, "--json")
        try:
            root = json.loads(run.stdout)
        except ValueError:
            root = {"rows": [], "notes": []}
        self.tap.result(run.returncode == want, f"costs {name or ' '.join(args)}: status {want}", diagnosis(run))
        return root["rows"], root["notes"]


def documented(path):
    """Check the fields of a row: those of all subcommands, and those of costs."""
    text = pathlib.Path(path).read_text()
    own = text.split("| field of costs")[1].split("\n\n")[0]
    common = text.split("## A row")[1].split("\n## ")[0]
    return [name for part in (common, own) for line in re.findall(r"^\| (`.*?) \|", part, re.M)
            for name in re.findall(r"`(\w+)`", line)]


def row_faults(row, units):
    figures = [row[f] for f in ("min", "p50", "p90", "p99", "max")]
    if figures != sorted(figures) or row["min"] <= 0 or row["n"] < 1 or row["unit"] != "ns" or row["scenario"] != "cost":
        yield f"figures {figures}, n {row['n']}, unit {row['unit']}"
    for field, unit in (("cycles", "cycle"), ("instructions", "instruction"), ("l1_hits", "l1")):
        if not math.isclose(row[field] * units[unit], row["p50"], rel_tol=1e-3):
            yield f"{field} is {row[field]}, of {units[unit]} ns each"
    if row["article_ns"] != ARTICLE.get(row["type"]) or (row["article_max_ns"] is not None) != (row["type"] == "transfer"):
        yield f"article: {row['article_ns']}, {row['article_max_ns']}"
    pair = row["type"] in PAIRS
    if pair != bool(re.fullmatch(r"\d+-\d+", row["cpus"] or "")) or row["threads"] not in ([2] if pair else [1, 2]):
        yield f"CPUs {row['cpus']}, threads {row['threads']}"
    walks = re.match(r"l\d|memory", row["type"])
    if bool(walks) != (row["bytes"] is not None) or (walks and math.log2(row["bytes"]) % 1):
        yield f"{row['bytes']} bytes"


def check_all(tap, tool, types, doc):
    types = [t for t in types if t not in DEAR]
    run = tool("--runs=2", f"--type={','.join(types)}", "--json")
    root = json.loads(run.stdout)
    rows, left = root["rows"], [note.split(":")[0] for note in root["notes"] if ": left out: " in note]
    tap.result(run.returncode == (1 if left else 0) and len(left) == len(root["notes"]), "each row that this machine has", diagnosis(run))
    tap.result(list(dict.fromkeys(r["type"] for r in rows)) == [t for t in types if t not in left],
               "in the order of --help, but for what is said to be left out", f"{[r['type'] for r in rows]} {left}")
    tap.result([list(r) for r in rows] == [documented(doc)] * len(rows), "the fields are the documented ones", rows[:1])
    units = {r["type"]: r["p50"] for r in rows if r["type"] in UNITS}
    tap.result(list(units) == UNITS, "the units are there", units)
    for row in rows:
        faults = list(row_faults(row, units))
        tap.result(not faults, f"row {row['type']} {row['cpus'] or ''}", "\n".join(faults))
    return rows


def check_one_cpu(tap, tool):
    """Rows that need two CPUs are omitted with a note; a request by name fails."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        rows, notes = tool.rows("--runs=2", f"--type={','.join(TWO_CPUS)},syscall", want=1, name="on one CPU")
    finally:
        os.sched_setaffinity(0, allowed)
    tap.result([r["type"] for r in rows] == [*UNITS, "syscall"], "one CPU: the other rows are there", rows)
    tap.result(sorted(notes) == sorted(f"{t}: left out: it needs two CPUs" for t in TWO_CPUS), "one CPU: it says what is left out, once", notes)


def check_pairs(tap, tool):
    run = tool("--runs=1", "--type=transfer", "--pairs=all")
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        tap.skip("--pairs=all", "there is one CPU")
        return
    head, *lines = run.stdout.split("ns\n")[-1].splitlines()
    table = {int(line.split()[0]): line.split()[1:] for line in lines}
    ok = run.returncode == 0 and [int(c) for c in head.split()] == cpus == sorted(table)
    tap.result(ok and all((table[a][i] == "-") == (a == b) and table[a][i] == table[b][k]
                          for k, a in enumerate(cpus) for i, b in enumerate(cpus)),
               "--pairs=all: a symmetric matrix of all CPUs", diagnosis(run))


def check_formats(tap, tool, rows):
    run = tool("--runs=1", "--type=atomic_inc", "--csv")
    table = list(csv.reader(io.StringIO(run.stdout)))
    tap.result(run.returncode == 0 and table[0][:-4] == list(rows[0]) and [line[1] for line in table[1:]] == [*UNITS, "atomic_inc"] and
               {len(line) for line in table} == {len(table[0])}, "--csv: the same columns, and the host's", diagnosis(run))
    run = tool("--runs=1", "--type=cycle,atomic_inc")
    tap.result(run.returncode == 0 and re.search(r"^cycle +\S+ +\S+ +\S+ +- +1\.00 .* 1\.4 +1\.00  \w", run.stdout, re.M) and
               re.search(r"^atomic_inc .* 58\.2 +41\.6  \w", run.stdout, re.M), "a table with the article's figures", diagnosis(run))


def check_interrupt(tap, tool):
    def some(process):
        seen = set()
        while process.poll() is None and len(seen) < 3:
            seen.update(children(process.pid))
        return len(seen) >= 3
    run = interrupt(tool, ["costs", "--type=syscall", "--runs=1000"], some)
    tap.result(run.returncode == 130 and run.stderr.startswith("quiesce: interrupted: ") and
               re.search(r"^cycle +\d", run.stdout, re.M),
               "SIGINT: it prints the rows that it has, status 130", diagnosis(run))


def main():
    opt = tool_options("doc")
    tap = Tap()
    tool = Tool(tap, opt.tool)
    text = tool("--help").stdout.split("Types:\n")[1].split("\n\n")[0]
    types = re.findall(r"^  (\w+)  *\S", text, re.M)
    tap.result(types[:3] == UNITS and {*DEAR, *TWO_CPUS, *ARTICLE} <= set(types), "--help lists the rows, units first", types)
    rows = check_all(tap, tool, types, opt.doc)
    check_one_cpu(tap, tool)
    check_pairs(tap, tool)
    check_formats(tap, tool, rows)
    check_interrupt(tap, tool)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
