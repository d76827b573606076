#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""quiesce study: the list, every case in its three formats, missing tools, interruption.

Counts are checked, times are not; the cases' own --check tests that no object is used after it was freed.
"""
import csv
import io
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile

from cli import HOST, Tool, diagnosis, interrupt, jobs_begun
from tap import Tap, execute, tool_options

CASES = ["lockdep-keys", "label", "hash2003", "timers", "toggle", "reload"]
SHORT = ["--quick", "--runs=1", "--seconds=0.005"]
FIELDS = ["subcommand", "case", "scenario", "variant", "fence", "metric", "n", "median", "min", "max", "spread"]
SHAPE = ["case", "what", "published", "median", "min", "max"]


def parse(tap, name, text):
    try:
        return json.loads(text)
    except ValueError as error:
        tap.result(False, f"{name} is JSON", f"{error}\n{text}")
        return {"rows": [], "shapes": [], "notes": [], "cases": []}


def row_faults(row):
    if list(row) != FIELDS or row["subcommand"] != "study":
        yield f"fields {list(row)}"
    elif not row["min"] <= row["median"] <= row["max"] or row["n"] < 1:
        yield f"{row}"


def check_list(tap, tool, root):
    """Returns the cases that were built."""
    listed = tool.good("study")
    tap.result(re.findall(r"^([\w-]+) +\w", listed, re.M) == CASES, "study lists its cases", listed)
    cases = parse(tap, "study --json", tool.good("study", "--json"))["cases"]
    tap.result([c["name"] for c in cases] == CASES, "study --json lists them too", cases)
    folders = sorted(p.name for p in (root / "cases").iterdir() if (p / "README.md").exists() and p.name != "pthread_rwlock")
    tap.result(folders == sorted(CASES), "each has a folder with a README", folders)
    return [c["name"] for c in cases if c["built"]]


def check_label(tap, tool):
    """Run one measurement by the case's program, because each takes a second of wrk."""
    program = pathlib.Path(os.path.realpath(tool.path)).parent.parent / "cases/label/label"
    run = execute([program, "--variant=hazptr", "--scenario=http", "--seconds=1"])
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    if run.returncode == 77:
        tap.skip("label under HTTP", lines)
        return
    tap.result(run.returncode == 0 and [(r["scenario"], r["errors"]) for r in lines] == [("http", 0)] and lines[0]["requests_s"] > 0,
               "label answers requests under HTTP", diagnosis(run))


def check_json(tap, tool, built, doc):
    built = [case for case in built if case != "label"]
    run = tool("study", *built, *SHORT, "--json")
    document = parse(tap, "study --json of all", run.stdout)
    rows, shapes, notes = document["rows"], document.get("shapes", []), document["notes"]
    without = {n.split(",")[0] for n in notes}  # rows without a measurement here have a note
    tap.result(run.returncode == (1 if any("not" in n for n in notes) else 0), "all cases: status", diagnosis(run)[-2000:])
    faults = [f for row in rows for f in row_faults(row)]
    tap.result(rows and not faults, "rows are whole", "\n".join(faults[:5]))
    measured = {row["case"] for row in rows}
    tap.result(measured | without >= set(built), "each case has rows", f"{measured} {notes}")
    tap.result(all(list(s) == SHAPE for s in shapes) and {s["case"] for s in shapes} == set(built), "shapes are whole", shapes[:3])
    known = os.uname().machine == "x86_64"  # elsewhere the kernel does not count function-call interrupts
    missing = [s["what"] for s in shapes if s["median"] is None and s["case"] not in without and (known or "IPIs" not in s["what"])]
    tap.result(not missing, "each published figure has one of this machine beside it", missing)
    section = pathlib.Path(doc).read_text().split("\n## study\n")[1].split("\n## ")[0]
    documented = re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", section, re.M)))
    tap.result(set(documented) == {*FIELDS, *SHAPE}, "the fields are the documented ones", documented)
    grace = [r["max"] for r in rows if (r["case"], r["variant"], r["metric"]) == ("toggle", "rcu_sync", "grace_periods")]
    tap.result(grace and max(grace) <= 3, "1000 toggles with rcu_sync take at most three grace periods", grace)
    return rows


def check_formats(tap, tool):
    args = ["study", "timers", "--runs=2", "--quick", "--seconds=0.002"]
    table = list(csv.reader(io.StringIO(tool.good(*args, "--csv"))))
    tap.result(table and table[0] == [*FIELDS, *HOST] and all(len(line) == len(table[0]) for line in table), "study --csv", table[:2])
    text = tool.good(*args)
    tap.result(re.search(r"^timers: ", text, re.M) and "Published: " in text and re.search(r"^rcu_lock .*%", text, re.M), "study, table", text)
    text = tool.good(*args, "--markdown")
    tap.result(re.search(r"^## timers: ", text, re.M) and re.search(r"^\| rcu_lock \|.*%", text, re.M), "study --markdown", text)
    text = tool.good("study", "timers", "timers", *SHORT)
    tap.result(len(re.findall(r"^timers: ", text, re.M)) == 1, "a case that is named twice is run once", text)


def check_places(tap, tool, built, tmp):
    """The programs are found beside the tool, in the build and installed; missing ones are reported."""
    (tmp / "bin").mkdir()
    copy = shutil.copy(os.path.realpath(tool.path), tmp / "bin" / "quiesce")
    alone = Tool(tap, copy)
    run = alone("study", "timers", *SHORT)
    tap.result(run.returncode == 1 and "timers: its program was not built" in run.stderr, "a case without its program says so", diagnosis(run))
    (tmp / "libexec/quiesce/cases").mkdir(parents=True)
    cases = pathlib.Path(os.path.realpath(tool.path)).parent.parent / "cases"
    shutil.copy(cases / "timers/timers", tmp / "libexec/quiesce/timers")
    shutil.copy(cases / "timers.json", tmp / "libexec/quiesce/cases/timers.json")
    tap.result("rcu_lock" in alone.good("study", "timers", *SHORT), "an installed case is found")
    script = tmp / "libexec" / "quiesce" / "timers"
    for body, text, what in (("kill -SEGV $$", "CRASHED by signal 11", "crashes"), ("echo nonsense", "said 'nonsense'", "talks nonsense")):
        script.write_text(f"#!/bin/sh\n{body}\n")
        run = alone("study", "timers", *SHORT)
        tap.result(run.returncode == 1 and text in run.stderr, f"a program that {what} is reported", diagnosis(run))


def check_interrupt(tap, tool):
    for case in ("timers", "toggle"):
        run = interrupt(tool, ["study", case, "--runs=1000"], lambda process: jobs_begun(process, 4))
        tap.result(run.returncode == 130 and "interrupted: " in run.stderr and f"\n{case}: " in run.stdout,
                   f"{case}: Ctrl-C ends it, and prints what there is", diagnosis(run))


def main():
    opt = tool_options("doc", "root")
    tap = Tap()
    tool = Tool(tap, opt.tool)
    built = check_list(tap, tool, pathlib.Path(opt.root))
    check_json(tap, tool, built, opt.doc)
    if "label" in built:
        check_label(tap, tool)
    check_formats(tap, tool)
    check_interrupt(tap, tool)
    with tempfile.TemporaryDirectory() as name:
        check_places(tap, tool, built, pathlib.Path(name))
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
