#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""quiesce retirescale: every type in every scenario, nothing lost, a loss detected, garbage within its bound.

Counts are checked, rates are not; times must agree with each other, and show a planted sleep.
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

SCENARIOS = ["idle", "published", "busy", "gap", "stalled"]
THREADS = [1, 2]
OURS = ["hazptr", "hazptr_inline", "hazptr_free", "hazptr_cohort", "hazard_pointer", "hazard_delete", "rcu", "rcu_free",
        "slab", "slab_kfree_hazptr", "slab_kfree_rcu"]
# The garbage of these types has a bound for each thread, however long a reader stays: the header's, or two batches.
BOUNDED = ["hazptr_inline", "hazptr_free", "hazptr_cohort", "hazard_pointer", "hazard_delete", "slab_kfree_hazptr"]
BATCHED = ["raw_asym_hp_batch", "ck_hp"]
BATCH = 512
ODD = ["hazptr_list", "busted_hazptr", "busted_hoard", "busted_stall"]
STALL_NS = 1e6
COARSE_NS = 100  # a clock with such steps may find that a call takes no time
CALLS = ["call_p50_ns", "call_p99_ns", "call_p999_ns", "call_max_ns"]
SCAN_SLOTS = [1, 16, 64, 256, 1024, 4096]
SCAN_OBJECTS = [1000, 10000, 100000, 1000000]
SHORT = ["--seconds=0.01", "--runs=1"]


class Rows:
    """Run the tool with --json, and return its rows."""

    def __init__(self, tap, tool, *args, want=0):
        self.tap, self.args, self.run = tap, " ".join(args), execute([tool, "retirescale", *args, "--json"])
        try:
            self.root = json.loads(self.run.stdout)
        except ValueError:
            self.root = {"rows": [], "notes": ["no JSON"]}
        tap.result(self.run.returncode == want, f"retirescale {self.args}: status {want}", diagnosis(self.run))
        self.rows, self.notes = self.root["rows"], self.root["notes"]

    def keys(self):
        return sorted((r["type"], r["fence"] or "", r["scenario"], r["threads"]) for r in self.rows)


def types_of(tool):
    """Return the types of this build; --help marks those that exist for --scan only."""
    text = execute([tool, "retirescale", "--help"]).stdout.split("Types:\n")[1].split("\n\n")[0]
    return [t for t in re.findall(r"^ +(\w+)  +\S", text, re.M) if t not in ODD]


def documented(path):
    text = pathlib.Path(path).read_text()
    return fields_of(text, "retirescale"), scenarios_of(text, "retirescale")


def slots_of(row):
    """A line of seven for each thread, the main thread and the reader included: there are no more slots."""
    return 7 * (row["threads"] + 2)


def row_faults(row, bound):
    """Return the faults of @row of a run where @bound objects of each thread may wait."""
    figures = [row[f] for f in ("min", "p50", "max")]
    if figures != sorted(figures) or not figures[0] > 0 or row["n"] != 1 or row["unit"] != "objects/s":
        yield f"figures {figures}, n {row['n']}, unit {row['unit']}"
    halves = [g for g in (row["garbage_first"], row["garbage_second"]) if g is not None]
    if row["garbage"] != max(halves, default=None) or row["garbage_bytes"] != row["garbage"] * row["bytes"]:
        yield f"garbage {row['garbage']}, {row['garbage_bytes']} bytes, in halves {halves}"
    if not 0 <= row["garbage_mean"] <= row["garbage"]:
        yield f"garbage {row['garbage_mean']} in the mean, {row['garbage']} at most"
    limit = {**{t: bound for t in BOUNDED}, **{t: BATCH for t in BATCHED}}.get(row["type"])
    if limit and row["garbage"] > limit * row["threads"] + slots_of(row):
        yield f"garbage {row['garbage']}, at most {limit} for each of {row['threads']} threads and {slots_of(row)}"
    if row["type"] == "raw_malloc_free" and row["to_raw"] != 1:
        yield f"it is {row['to_raw']} of itself"
    if not (row["drain_ms"] >= 0 and row["cpu_ns"] > 0 and row["capped"] in (0, 1)):
        yield f"drain {row['drain_ms']} ms, {row['cpu_ns']} ns, capped {row['capped']}"
    yield from call_faults(row)


def call_faults(row):
    """Return the faults in the times of single calls in @row."""
    times = [row[f] for f in (*CALLS, "call_mean_ns", "clock_ns")]
    if None in times or not row["calls"] or row["call_capped"] not in (0, 1):
        yield f"calls {row['calls']}, capped {row['call_capped']}, times {times}"
        return
    *quantiles, mean, clock = times
    # Each thread retires a chunk of 64 objects at least.
    if quantiles != sorted(quantiles) or quantiles[0] < 0 or not 0 < mean <= quantiles[-1] or row["calls"] < 63 * row["threads"]:
        yield f"calls {row['calls']}, times {times}"
    # Half of the calls take the median at least, a hundredth p99: together no more than the mean allows.  Each includes the clock.
    if any(share * time > 1.1 * mean for share, time in zip((0.5, 0.01, 0.001), quantiles)):
        yield f"a mean of {mean} with {quantiles}"
    if not 0 <= clock < 10 * max(quantiles[0], COARSE_NS):
        yield f"an empty measurement takes {clock}, a call {quantiles[0]}"


def check_all(tap, tool, types, doc, bound):
    """Returns the fence modes that there were."""
    got = Rows(tap, tool, *SHORT, f"--batch={BATCH}")
    fields, scenarios = documented(doc)
    fences = sorted({r["fence"] for r in got.rows if r["fence"]})
    if "light" not in fences and any("left out" in note for note in got.notes):
        tap.skip("raw_asym_hp_batch", "there is no membarrier here")
        types = [t for t in types if t != "raw_asym_hp_batch"]
    wanted = sorted((t, f, s, n) for t in types for f in (fences if t in OURS else [""]) for s in SCENARIOS for n in THREADS)
    tap.result(fences and got.keys() == wanted, "each type in each fence mode, scenario and number of threads", got.keys())
    tap.result(not [n for n in got.notes if "left out" not in n], "nothing is lost", "\n".join(got.notes))
    tap.result([list(r) for r in got.rows] == [fields] * len(got.rows), "the fields are the documented ones",
               f"{[list(r) for r in got.rows[:1]]}\n{fields}")
    tap.result(scenarios == [*SCENARIOS, "scan"], "the scenarios are the documented ones", scenarios)
    for row in got.rows:
        faults = list(row_faults(row, bound))
        name = " ".join(str(row[k] or "-") for k in ("type", "fence", "scenario", "threads"))
        tap.result(not faults, f"row {name}", "\n".join(faults))
    return fences


def check_stalled(tap, tool, fences, bound):
    """In a run of many batches the garbage behind a reader that stays does not grow."""
    seconds = 0.2
    got = Rows(tap, tool, "--type=hazptr_inline,hazptr_cohort", "--scenario=stalled", f"--seconds={seconds}", "--runs=1",
               f"--fence={','.join(fences)}")
    for row in got.rows:
        # The rate is there for how much was retired: many times the bound, else this says nothing.
        done, limit = row["p50"] * seconds, bound * row["threads"] + slots_of(row)
        name = f"{row['type']} {row['fence']}, {row['threads']} threads: garbage of a stalled reader"
        if done < 4 * limit:
            tap.skip(name, f"this machine is so slow that only {done:.0f} objects were retired")
            continue
        tap.result(row["garbage"] <= limit, name, row)


def check_loss(tap, tool):
    got = Rows(tap, tool, "--type=busted_hazptr", *SHORT, "--scenario=idle", "--threads=1", want=1)
    tap.result(any("LOST: idle: " in note for note in got.notes), "a planted loss is reported", got.notes)


def check_hoard(tap, tool, bound):
    """The checks of garbage can fail: on a type that keeps all of it."""
    got = Rows(tap, tool, "--type=busted_hoard", "--runs=1", "--scenario=published", "--threads=1", "--seconds=0.3")
    faults = [fault for row in got.rows for fault in row_faults({**row, "type": "hazptr_inline"}, bound)]
    tap.result(faults and all("garbage" in fault for fault in faults), "planted garbage is seen", got.rows)


def check_stall(tap, tool):
    """A call in five hundred sleeps: the upper figures show it, the median does not."""
    got = Rows(tap, tool, "--type=busted_stall", "--runs=1", "--scenario=idle,stalled", "--threads=1", "--seconds=0.1")
    good = [r for r in got.rows if not list(call_faults(r)) and r["call_max_ns"] >= STALL_NS and
            r["call_p999_ns"] >= 0.97 * STALL_NS and r["call_p50_ns"] < STALL_NS]
    tap.result(got.rows and good == got.rows, "a planted sleep is seen in p99.9 and max", got.rows)
    for row in got.rows[:1]:
        planted = [{**row, f: v} for f in CALLS for v in (None, -1)]
        planted += [{**row, f: 2 * row["call_max_ns"]} for f in (*CALLS[:-1], "call_mean_ns", "clock_ns")]
        planted += [{**row, "calls": None}, {**row, "calls": 0}, {**row, "clock_ns": None}, {**row, "call_mean_ns": 1}]
        missed = [r for r in planted if not list(call_faults(r))]
        tap.result(not missed, "times that do not agree are noticed", missed)


def check_options(tap, tool, fences):
    args = ["--type=hazptr,raw_malloc_free", f"--fence={fences[0]}", "--scenario=idle,published", "--threads=3",
            "--bytes=4096", "--runs=2", "--seconds=0.01", "--alive=4"]
    got = Rows(tap, tool, *args)
    want = sorted((t, f, s, 3) for t, f in (("hazptr", fences[0]), ("raw_malloc_free", "")) for s in ("idle", "published"))
    tap.result(got.keys() == want and all(r["bytes"] == 4096 and r["n"] == 2 for r in got.rows), "options say what is measured",
               got.rows)
    run = execute([tool, "retirescale", *args, "--csv"])
    table = list(csv.reader(io.StringIO(run.stdout)))
    tap.result(run.returncode == 0 and table and table[0][:-4] == list(got.rows[0]) and len(table) == 5 and
               {len(line) for line in table} == {len(table[0])}, "--csv: the same columns, and the host's", diagnosis(run))
    run = execute([tool, "retirescale", *args])
    tap.result(run.returncode == 0 and len(re.findall(r"^retirescale (?:idle|published), 3 threads", run.stdout, re.M)) == 2 and
               len(re.findall(r"^one call of retirescale (?:idle|published), 3 threads", run.stdout, re.M)) == 2 and
               len(re.findall(r"^(?:hazptr|raw_malloc_free) ", run.stdout, re.M)) == 8, "two tables for each scenario", diagnosis(run))
    calls = re.findall(r"^(?:hazptr|raw_malloc_free) +\S+((?: +[\d.]+){6})$", run.stdout, re.M)
    tap.result(len(calls) == 4 and all(n[1:5] == sorted(n[1:5]) for n in ([float(x) for x in c.split()] for c in calls)),
               "the second has mean, p50, p99, p99.9, max and calls", diagnosis(run))


def check_small_batch(tap, tool):
    """With a batch of one, protected objects are as many as a batch."""
    got = Rows(tap, tool, *SHORT, "--type=raw_malloc_free,raw_asym_hp_batch", "--batch=1", "--scenario=stalled")
    tap.result({r["batch"] for r in got.rows} == {1} and not [n for n in got.notes if "left out" not in n], "a batch of one",
               got.notes)


def check_scan(tap, tool, fences):
    args = ["--scan", f"--fence={fences[0]}", "--runs=1", "--type=hazptr_inline,hazptr_list"]
    got = Rows(tap, tool, *args)
    found = {(r["type"], r["slots"], r["objects"]) for r in got.rows}
    want = {(t, m, n) for t in ("hazptr_inline", "hazptr_list") for m in SCAN_SLOTS for n in SCAN_OBJECTS}
    # Samples in which the library's worker took part are dropped, so long ones may be missing, and nothing else.
    tap.result(found <= want and {t for t, _, n in found if n == SCAN_OBJECTS[0]} == {t for t, _, _ in want} and not got.notes,
               "--scan: slots in use against objects", got.run.stdout)
    tap.result(all(r["unit"] == "ns" and r["p50"] > 0 and r["garbage"] is None and r["call_max_ns"] is None and r["scenario"] == "scan" for r in got.rows),
               "--scan: nanoseconds", got.run.stdout)


def check_interrupt(tap, tool, fences):
    class Path:
        path = tool

    def some(process):
        seen = set()
        while process.poll() is None and len(seen) < 3:
            seen.update(children(process.pid))
        return len(seen) >= 3
    args = ["retirescale", "--type=hazptr", f"--fence={fences[0]}", "--scenario=idle", "--threads=1", "--seconds=0.05",
            "--runs=1000"]
    run = interrupt(Path, args, some)
    tap.result(run.returncode == 130 and run.stderr.startswith("quiesce: interrupted: ") and
               re.search(r"^hazptr +\w+ +\d", run.stdout, re.M),
               "SIGINT: it prints the rows that it has, status 130", diagnosis(run))


def main():
    opt = tool_options("doc", "header")
    bound = int(re.search(r"#define HAZPTR_BATCH_MAX (\d+)", pathlib.Path(opt.header).read_text())[1])
    tap, tool = Tap(), opt.tool
    types = types_of(tool)
    tap.result({"raw_malloc_free", "hazptr", "rcu"} <= set(types), "--help lists the types", types)
    fences = check_all(tap, tool, types, opt.doc, bound)
    if fences:
        check_stalled(tap, tool, fences, bound)
        check_loss(tap, tool)
        check_hoard(tap, tool, bound)
        check_stall(tap, tool)
        check_options(tap, tool, fences)
        check_small_batch(tap, tool)
        check_scan(tap, tool, fences)
        check_interrupt(tap, tool, fences)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
