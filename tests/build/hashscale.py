#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""quiesce hashscale: every type finds all its keys, a loss is detected, keys from files, ratios, growth; with --figures, figures alone.

Counts are checked, rates only where they can be wrong by themselves.
"""
import csv
import io
import os
import pathlib
import re
import sys
import tempfile
import time

from cli import children, diagnosis, interrupt, jobs_begun
from measured import Tool
from tap import Tap, execute, tool_options

SHORT = ["--seconds=0.002", "--runs=1", "--threads=2", "--keys=uniform:1000"]
OURS = ["hashmap", "hashmap_many", "hashmap_update", "hashtable", "hashtable_many", "hashtable_update", "hashtable_slab", "hashtable_hazptr", "xarray", "rcu", "hazptr"]
DOCUMENT = {"spinlock": 0.57, "refcnt": 0.54, "rwlock": 0.39}


# Their removed elements wait for readers, and are counted: by this library, or by the type.
COUNTED = ("rcu", "hazptr", "hashtable", "hashtable_many", "hashtable_update", "rcu_unordered_map", "hashtable_slab", "hashtable_hazptr", "liburcu_lfht", "liburcu_lfht_fixed",
           "liburcu_lfht_qsbr", "liburcu_lfht_qsbr_fixed")


def row_faults(row):
    figures = [row[f] for f in ("min", "p50", "max")]
    if figures != sorted(figures) or not figures[0] > 0 or row["n"] != 1 or row["unit"] != "operations/s":
        yield f"figures {figures}, n {row['n']}, unit {row['unit']}"
    if (row["keys"], row["nr_keys"], row["distribution"], row["updates"], row["turnovers"]) != ("uniform:1000", 1000, "uniform", 10, 0):
        yield f"keys {row['keys']}, {row['nr_keys']}, {row['distribution']}, {row['updates']}, {row['turnovers']}"
    # A key and its value have 16 bytes; the smallest table is not larger than a full one, unless it never has less.
    if row["element_bytes"] is not None and not (row["element_bytes"] >= 16 and row["empty_bytes"] > 0 and row["fill_ns"] > 0):
        yield f"bytes {row['element_bytes']}, {row['empty_bytes']}, fill {row['fill_ns']}"
    if row["article_efficiency"] != DOCUMENT.get(row["type"]):
        yield f"the article's {row['article_efficiency']}"
    if row["type"] == "raw_open_addressing" and row["to_base"] != 1:
        yield f"it is {row['to_base']} of itself"
    if row["to_base_low"] is not None or row["to_base_high"] is not None:
        yield f"one round has an interval: {row['to_base_low']} {row['to_base_high']}"
    most, mean = row["waiting"], row["waiting_mean"]
    if (most is None) == (row["type"] in COUNTED) or not 0 <= (mean or 0) <= (most or 0):
        yield f"{most} elements wait at most, {mean} in the mean"
    resized = [f for f in row if re.search("control|cost|resize|worst", f) and row[f] is not None]
    if resized:
        yield f"without --resize: {resized}"


def check_all(tap, tool, doc):
    """Half of the keys are never removed, and are looked up by all; the others come and go, and are there in the end."""
    types = tool.types()
    root = tool.root(*SHORT, "--updates=10", "--type=" + ",".join(types))
    lookups_only = [n.split(" ")[0] for n in root["notes"] if "left out with updates" in n]
    lookups_only = [t.rstrip(":") for t in lookups_only]
    wanted = sorted(t for t in types if t not in lookups_only)
    tap.result(sorted(r["type"] for r in root["rows"]) == wanted and set(OURS) < set(types), "every type has a row",
               [r["type"] for r in root["rows"]])
    tap.result(not [n for n in root["notes"] if "left out" not in n], "nothing is broken", "\n".join(root["notes"]))
    tap.result([list(r) for r in root["rows"]] == [tool.documented(doc)] * len(root["rows"]), "the fields are the documented ones",
               f"{[list(r) for r in root['rows'][:1]]}\n{tool.documented(doc)}")
    for row in root["rows"]:
        faults = list(row_faults(row))
        tap.result(not faults, f"row {row['type']}", "\n".join(faults))
    root = tool.root(*SHORT, "--type=busted", want=1)
    tap.result(any("BROKEN" in n for n in root["notes"]), "keys that are not found are reported", root["notes"])
    tool.noticed("an element that is dead before its readers have left is reported", "--threads=2", "--keys=uniform:64", "--type=busted_rcu",
                 "--updates=50")


def check_waiting(tap, tool):
    """Removed elements wait at some time; without updates nothing is sampled beside the lookups."""
    rows = tool.root("--seconds=0.05", "--runs=1", "--threads=2", "--updates=0,50", "--keys=uniform:1000", "--type=hashtable,hazptr")["rows"]
    found = {(r["type"], r["updates"]): r["waiting"] for r in rows}
    tap.result(len(found) == 4 and all((most is None) == (updates == 0) for (_, updates), most in found.items()) and
               all(most is None or most > 0 for most in found.values()), "elements that wait are counted with updates", found)


def check_dense(tap, tool):
    """Keys with neighbours: types that are made for them take other keys in part only, and report that."""
    root = tool.root("--seconds=0.01", "--runs=1", "--threads=2", "--updates=10", "--keys=dense:30000", "--type=xarray,hashmap")
    tap.result([(r["type"], r["keys"], r["nr_keys"]) for r in root["rows"]] == [(t, "dense:30000", 30000) for t in ("xarray", "hashmap")]
               and not root["notes"], "rows with dense keys", root)
    root = tool.root("--seconds=0.002", "--runs=1", "--threads=2", "--keys=uniform:30000", "--type=xarray,hashmap")
    tap.result([r["type"] for r in root["rows"]] == ["hashmap"] and any("left out with uniform:30000" in n for n in root["notes"]),
               "types with a node for each key leave out many scattered keys", root)


def check_windows(tap, tool):
    """A window is longer for more keys, and begins when as many operations were done, however short it is."""
    args = ["--runs=1", "--threads=1,2", "--type=raw_chained,hashmap,spinlock"]
    rows = tool.root(*args, "--keys=uniform:300000", "--seconds=0.001")["rows"]
    tap.result(len(rows) == 6 and all(r["warm_up"] >= r["nr_keys"] == 300000 and r["window_s"] == 0.001 for r in rows),
               "a short window begins when all keys could have been looked up", rows)
    rows = tool.root(*args, "--keys=uniform:64,uniform:300000")["rows"]
    found = {(r["nr_keys"], r["window_s"]) for r in rows}
    tap.result(len(found) == 2 and all(near(seconds, 0.03 + keys * 1e-7) for keys, seconds in found), "more keys have a longer window", found)


def check_turnovers(tap, tool):
    """Tables are turned over before they are measured; a lost key would be reported."""
    types = [t for t in [*OURS, "raw_chained", "spinlock", "liburcu_lfht", "tbb_unordered_map"] if t in tool.types()]
    root = tool.root(*SHORT, "--turnovers=3", "--type=" + ",".join(types))
    tap.result([r["type"] for r in root["rows"] if r["turnovers"] == 3] == types, "rows after three turnovers", root["rows"])
    tap.result(not root["notes"], "nothing is broken after three turnovers", "\n".join(root["notes"]))
    run = tool(*SHORT, "--turnovers=3", "--type=spinlock")
    tap.result(run.returncode == 0 and "hashscale uniform:1000, uniform, after 3 turnovers, 2 threads" in run.stdout,
               "the title names turnovers", diagnosis(run))
    for value in ("-1", "x", "1.5", "1000001", ""):
        run = tool(f"--turnovers={value}")
        tap.result(run.returncode == 2 and not run.stdout and f"--turnovers={value}" in run.stderr and run.stderr.count("\n") == 1,
                   f"wrong usage: --turnovers={value}", diagnosis(run))


def check_keys(tap, tool, tmp):
    lines = tmp / "lines"
    lines.write_text("\n".join(f"line {i % 500}" for i in range(700)) + "\n\n")
    few = tmp / "few"
    few.write_text("\n".join(f"line {i % 63}" for i in range(700)))
    args = [*SHORT[:-1], "--type=hashmap,spinlock", "--updates=0,1"]
    for distribution in ("zipf", "hot"):
        root = tool.root(*args, f"--keys={lines},uniform:64", f"--distribution={distribution}")
        rows = [r for r in root["rows"] if r["distribution"] == distribution]
        found = sorted((r["type"], r["keys"], r["nr_keys"], r["updates"]) for r in rows)
        wanted = sorted((t, *k, u) for t in ("hashmap", "spinlock") for k in (("lines", 500), ("uniform:64", 64)) for u in (0, 1))
        tap.result(found == wanted, f"{distribution}: different lines of a file, and generated keys", found)
    root = tool.root(*SHORT[:-1], "--type=spinlock", f"--keys={few}", want=1)
    tap.result(not root["rows"] and any("few" in n for n in root["notes"]), "too few lines", root)
    endless = tmp / "endless"
    with endless.open("wb") as f:
        f.truncate(1 << 40)  # a line of zeros
    root = tool.root(*SHORT[:-1], "--type=spinlock", f"--keys={endless}", want=1)
    tap.result(not root["rows"] and any("more than 4096 characters" in n for n in root["notes"]), "a line without an end", root)
    run = tool("--keys=uniform:64", "--threads=64", *SHORT[:2], "--type=spinlock")
    tap.result(run.returncode == 1 and "too few keys for 64 threads" in run.stderr, "too few keys for the threads", diagnosis(run))


def check_ratios(tap, tool):
    root = tool.root("--type=raw_chained", "--base=hashmap", "--threads=1,2", "--seconds=0.002", "--keys=uniform:64",
                     "--fence=full", "--runs=6")
    rows = {(r["type"], r["threads"]): r for r in root["rows"]}
    if not tap.result(len(rows) == 4, "six rounds: rows", list(rows)):
        return
    base, other, one = rows["hashmap", 2], rows["raw_chained", 2], rows["raw_chained", 1]["p50"]
    tap.result([base[f"to_base{f}"] for f in ("", "_low", "_high")] == [1, 1, 1] and base["base"] == "hashmap",
               "the base is once itself", base)
    tap.result(0 < other["to_base_low"] <= other["to_base"] <= other["to_base_high"], "a ratio is within its interval", other)
    tap.result(abs(other["efficiency"] * 2 * one - other["p50"]) < 1e-4 * other["p50"] and
               abs(other["efficiency"] * other["slowdown"] - 1) < 1e-4, "efficiency", other)


def near(a, b):
    # Rows have six digits: what is one less a ratio of two of them has so much of an error, however small it is.
    return abs(a - b) <= 1e-4 * max(abs(a), abs(b), 0.1)


def resize_faults(row, seconds):
    """Check a row with one round, whose figures can be compared with each other."""
    if not all(row[f] > 0 for f in ("p50", "control_small", "control_large", "resized", "worst_us", "control_worst_us", "resized_worst_us")):
        yield "a window is missing"
    if not near(row["control"], (row["control_small"] + row["control_large"]) / 2):
        yield "the control is not the mean of its sizes"
    if not near(row["cost"], 1 - row["resized"] / row["control"]) or not near(row["cost_in_all"], 1 - row["resized"] / row["p50"]):
        yield "cost"
    if row["cost_low"] is not None or row["cost_high"] is not None:
        yield "one round has an interval"
    # The table becomes larger in two steps and smaller in one, and the window ends with such a cycle.
    if row["resizes"] < 3 or row["resizes"] % 3 or row["resizes"] * row["resize_ms"] < seconds * 1000 * (1 - 1e-6):
        yield "resizes"


def check_resize(tap, tool):
    types = [t for t in ("hashmap", "hashtable", "liburcu_lfht", "liburcu_lfht_qsbr", "libcuckoo") if t in tool.types()]
    args = ["--resize", "--threads=1", "--seconds=0.01"]
    root = tool.root(*args, "--keys=uniform:1000", "--runs=1", "--type=" + ",".join(types))
    for row in root["rows"]:
        faults = list(resize_faults(row, 0.01))
        tap.result(not faults, f"{row['type']} is resized beside lookups", f"{faults}\n{row}")
    tap.result([r["type"] for r in root["rows"]] == types and not root["notes"], "nothing is lost meanwhile", root)
    # Updates find the table on its way, and move it along; in many groups of buckets it is left to chance which one lets it shrink.
    root = tool.root(*args, "--keys=uniform:20000", "--runs=6", "--updates=0,10", "--type=hashmap,hashtable,hashtable_hazptr")
    tap.result(len(root["rows"]) == 6 and not root["notes"], "resized beside updates", root)
    tap.result(all(r["cost_low"] <= r["cost"] <= r["cost_high"] <= 1 for r in root["rows"]), "a cost is within its interval", root)
    run = tool(*args, "--keys=uniform:64", "--runs=1", "--type=hashmap")
    tap.result(run.returncode == 0 and re.search(r"^type .* cost +interval .* ms each$", run.stdout, re.M), "a table of resizes", diagnosis(run))


def cpus_of(process):
    """Return, for each thread of the tool's child, its allowed CPUs."""
    found = []
    for child in children(process.pid):
        for status in pathlib.Path(f"/proc/{child}/task").glob("*/status"):
            try:
                found += re.findall(r"^Cpus_allowed_list:\s*(\S+)$", status.read_text(), re.M)
            except OSError:
                pass  # the thread has just ended
    return found


def check_resize_cpus(tap, tool):
    """The thread that looks up has a CPU alone: the other thread and the worker run elsewhere."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) == 1:
        tap.skip("the resizing thread has another CPU than the thread that looks up", "there is only one")
        return
    most = (0, 0)

    def ready(process):
        nonlocal most
        end = time.monotonic() + 30
        while process.poll() is None and most < (1, 3) and time.monotonic() < end:
            found = cpus_of(process)
            most = max(most, (found.count(str(cpus[0])), found.count(str(cpus[-1]))))
            time.sleep(0.001)
        return True
    interrupt(tool, ["hashscale", "--resize", "--threads=1", "--keys=uniform:1000", "--seconds=0.3", "--type=hashmap", "--runs=100"], ready)
    tap.result(most[0] == 1 and most[1] >= 3, "the resizing thread has another CPU than the thread that looks up", f"threads on the first and the last CPU: {most}")


def check_formats(tap, tool):
    args = [*SHORT[:2], "--type=spinlock,raw_chained", "--threads=1,2", "--keys=uniform:64"]
    run = tool(*args, "--csv")
    rows = list(csv.DictReader(io.StringIO(run.stdout)))
    tap.result(run.returncode == 0 and len(rows) == 4 and all(float(r["p50"]) > 0 and r["keys"] == "uniform:64" for r in rows),
               "--csv", diagnosis(run))
    run = tool(*args)
    tap.result(run.returncode == 0 and re.findall(r"^hashscale uniform:64, uniform, (\d) thread", run.stdout, re.M) == ["1", "2"] and
               re.search(r"^spinlock +- .* 57% ", run.stdout, re.M), "tables", diagnosis(run))
    run = interrupt(tool, ["hashscale", *args, "--runs=1000"], lambda p: jobs_begun(p, 2))
    tap.result(run.returncode == 130 and "Traceback" not in run.stderr, "SIGINT: status 130", diagnosis(run))


def check_figure(tap, tool, tmp):
    args = [*SHORT[:2], "--type=spinlock", "--threads=1,2", "--keys=uniform:64,uniform:65", "--updates=0,1"]
    run = tool(*args, f"--figure={tmp}/no.png", env={"PATH": str(tmp)})
    tap.result(run.returncode == 1 and re.fullmatch(r"quiesce hashscale: .*python3-matplotlib.*\n", run.stderr) and not run.stdout and
               not (tmp / "no.png").exists(), "no python3: one line", diagnosis(run))
    if all(execute([python, "-c", "import matplotlib"]).returncode for python in ("python3", "/usr/bin/python3")):
        tap.skip("figures", "python3-matplotlib is not installed")
        return
    for suffix, begin in (("png", b"\x89PNG"), ("svg", b"<?xml")):
        path = tmp / f"figure.{suffix}"
        run = tool(*args, f"--figure={path}")
        data = path.read_bytes() if path.exists() else b""
        tap.result(run.returncode == 0 and not run.stderr and data.startswith(begin) and len(data) > 5000,
                   f"a figure, {suffix}", diagnosis(run))
    text = re.sub(r"<[^>]*>", "", path.read_text())
    panels = sorted(set(re.findall(r"uniform:6[45], uniform.*", text)))
    tap.result(panels == sorted(f"uniform:{n}, uniform{u}" for n in (64, 65) for u in ("", ", 1% updates")),
               "a panel for each configuration", panels)


def main():
    figures = "--figures" in sys.argv  # these alone
    sys.argv = [a for a in sys.argv if a != "--figures"]
    opt = tool_options("doc")
    tap = Tap()
    tool = Tool(tap, opt.tool, "hashscale")
    with tempfile.TemporaryDirectory() as name:
        tmp = pathlib.Path(name)
        if figures:
            check_figure(tap, tool, tmp)
            return tap.finish()
        check_all(tap, tool, opt.doc)
        check_waiting(tap, tool)
        check_dense(tap, tool)
        check_windows(tap, tool)
        check_turnovers(tap, tool)
        check_keys(tap, tool, tmp)
        check_ratios(tap, tool)
        check_resize(tap, tool)
        check_resize_cpus(tap, tool)
        check_formats(tap, tool)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
