#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""quiesce rwscale: every lock in every scenario, exclusion, a lock without it detected, the membarriers of a burst.

Counts are checked, times are not.
"""
import csv
import io
import json
import pathlib
import re
import sys

from cli import children, diagnosis, interrupt
from measured import fields_of, scenarios_of
from tap import Tap, execute, tool_options

BURSTS, LATENCIES = ["sparse", "dense"], ["rare", "often"]
OURS = ["gp", "expedited", "rcu_sync"]
SECTIONS = 50
SHORT = ["--runs=1", "--seconds=0.05"]
BURST_FIELDS = ["sections", "section_us"]
READER_FIELDS = ["quiet_ns", "reads"]


class Rows:
    """Run the tool with --json, and return its rows."""

    def __init__(self, tap, tool, *args, want=0):
        run = execute([tool, "rwscale", *SHORT, *args, "--json"])
        try:
            root = json.loads(run.stdout)
        except ValueError:
            root = {"rows": [], "notes": ["no JSON"]}
        tap.result(run.returncode == want, f"rwscale {' '.join(args)}: status {want}", diagnosis(run))
        self.rows, self.notes = root["rows"], root["notes"]

    def keys(self):
        return sorted((r["type"], r["fence"] or "", r["scenario"], r["threads"]) for r in self.rows)


def documented(path):
    text = pathlib.Path(path).read_text()
    return fields_of(text, "rwscale"), scenarios_of(text, "rwscale")


def row_faults(row):
    burst, readers = row["scenario"] in BURSTS, row["threads"] > 0
    figures = [row[f] for f in ("min", "p50", "p90", "p99", "max")]
    if figures != sorted(figures) or row["min"] < 0 or row["n"] < 1 or row["unit"] != ("ms" if burst else "us"):
        yield f"figures {figures}, n {row['n']}, unit {row['unit']}"
    for name in BURST_FIELDS + READER_FIELDS:
        if (row[name] is not None) != (burst and (readers or name in BURST_FIELDS)):
            yield f"{name} is {row[name]}"
    if row["cut"] not in (0, 1) or (burst and not row["cut"] and row["sections"] != SECTIONS):
        yield f"{row['sections']} sections, cut {row['cut']}"
    counted = burst and row["type"] in OURS
    if (row["grace_periods"] is not None) != counted or (row["burst_membarriers"] is not None) != counted:
        yield f"{row['grace_periods']} grace periods, {row['burst_membarriers']} membarriers"


def check_all(tap, tool, doc, types, scenarios, *args):
    """Every lock in @scenarios without and with a reader.  Returns the rows."""
    got = Rows(tap, tool, "--readers=0,1", *args)
    fields, _ = documented(doc)
    fences = sorted({r["fence"] for r in got.rows if r["fence"]})
    want = sorted((t, f, s, n) for t in types for f in (fences if t in OURS else [""]) for s in scenarios for n in (0, 1))
    left = {note.split(":")[0] for note in got.notes if "left out with" in note}  # locks with a queue, on one CPU
    tap.result(fences and [k for k in got.keys() if k[0] not in left] == [k for k in want if k[0] not in left],
               f"each lock in {' and '.join(scenarios)}", got.keys())
    tap.result([n for n in got.notes if "left out" not in n] == [], "no thread was inside beside a writer", got.notes)
    tap.result([list(r) for r in got.rows] == [fields] * len(got.rows), "the fields are the documented ones",
               f"{[list(r) for r in got.rows[:1]]}\n{fields}")
    for row in got.rows:
        faults = list(row_faults(row))
        tap.result(not faults, "row " + " ".join(str(row[k] or "-") for k in ("type", "fence", "scenario", "threads")),
                   "\n".join(faults))
    return got.rows


def check_counts(tap, rows):
    """A writer alone: what each kind of lock pays for a burst."""
    for row in rows:
        if row["threads"] or row["type"] not in OURS or row["scenario"] != "sparse":
            continue
        gps, fences = row["grace_periods"], row["burst_membarriers"]
        light = row["fence"] == "light"
        name = f"{row['type']} {row['fence']}: {gps:.0f} grace periods, {fences:.0f} membarriers in {SECTIONS} sections"
        if row["type"] == "rcu_sync":
            # More than one only if the machine stood still for so long that readers were fast again in between.
            tap.result(gps == 0 and (1 <= fences <= SECTIONS / 5 if light else fences == 0), name)
        else:
            tap.result(gps == 2 * SECTIONS and fences == (gps if light else 0), name)


def check_broken(tap, tool):
    got = Rows(tap, tool, "--type=busted", "--readers=2", "--scenario=dense", "--sections=100000", want=1)
    tap.result(any("BROKEN: dense" in note for note in got.notes), "a lock that locks nothing is reported", got.notes)


def check_starved(tap, tool):
    """Readers that come first, as many as keep the lock all the time: the writer gets it when the limit has come, at the latest."""
    got = Rows(tap, tool, "--type=pthread_rwlock", "--readers=16", "--scenario=dense", "--sections=1000000")
    tap.result([r["cut"] for r in got.rows] == [1] and 1 <= got.rows[0]["sections"] < 1000000,
               "a burst that does not end is cut off", got.rows)


def check_formats(tap, tool, rows):
    args = [*SHORT, "--type=pthread_rwlock,ck_rwlock" if any(r["type"] == "ck_rwlock" for r in rows) else "--type=pthread_rwlock",
            "--readers=1", f"--sections={SECTIONS}"]
    run = execute([tool, "rwscale", *args, "--csv"])
    table = list(csv.reader(io.StringIO(run.stdout)))
    tap.result(run.returncode == 0 and table and table[0][:-4] == list(rows[0]) and len(table) in (3, 5) and
               {len(line) for line in table} == {len(table[0])}, "--csv: the same columns, and the host's", diagnosis(run))
    run = execute([tool, "rwscale", *args])
    tap.result(run.returncode == 0 and re.findall(r"^rwscale (\w+), 1 readers", run.stdout, re.M) == BURSTS and
               len(re.findall(r"^pthread_rwlock ", run.stdout, re.M)) == 2, "a table for each scenario", diagnosis(run))
    run = execute([tool, "rwscale", *args[:-1], "--latency"])
    tap.result(run.returncode == 0 and re.findall(r"^rwscale (\w+), 1 readers", run.stdout, re.M) == LATENCIES,
               "--latency: its own tables", diagnosis(run))


def check_interrupt(tap, tool):
    class Path:
        path = tool

    def some(process):
        seen = set()
        while process.poll() is None and len(seen) < 3:
            seen.update(children(process.pid))
        return len(seen) >= 3
    args = ["rwscale", "--type=pthread_rwlock", "--readers=0", "--scenario=sparse", "--sections=10", "--runs=1000"]
    run = interrupt(Path, args, some)
    tap.result(run.returncode == 130 and run.stderr.startswith("quiesce: interrupted: ") and
               re.search(r"^pthread_rwlock +- +\d", run.stdout, re.M),
               "SIGINT: it prints the rows that it has, status 130", diagnosis(run))


def main():
    opt = tool_options("doc")
    tap, tool = Tap(), opt.tool
    text = execute([tool, "rwscale", "--help"]).stdout.split("Types:\n")[1].split("\n\n")[0]
    types = [t for t in re.findall(r"^  (\w+)  *\S", text, re.M) if t != "busted"]
    tap.result({*OURS, "pthread_rwlock"} <= set(types), "--help lists the locks", types)
    tap.result(documented(opt.doc)[1] == BURSTS + LATENCIES, "the scenarios are the documented ones", documented(opt.doc)[1])
    rows = check_all(tap, tool, opt.doc, types, BURSTS, f"--sections={SECTIONS}")
    check_counts(tap, rows)
    check_all(tap, tool, opt.doc, types, LATENCIES, "--latency", "--seconds=0.01")
    check_broken(tap, tool)
    check_starved(tap, tool)
    if rows:
        check_formats(tap, tool, rows)
    check_interrupt(tap, tool)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
