#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measure all workloads on the modelled machine, and write tables, JSON and a picture.

    scale.py --scale PROGRAM | --from FILE [--short] [--json FILE] [--picture FILE] [--page docs/scaling.md] [NAME...]

The names choose workloads, such as read/rcu, or groups.  The table has a line for each operation, and the costs of one operation in the
threads that make it, on several numbers of CPUs.  --page replaces the tables between the marks of a page.
"""
import argparse
import concurrent.futures
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys

CPUS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
SHORT = (1, 2, 16)
SHOWN = (2, 64, 256)
THREADS = 10000
STAY, SHORT_STAY = 20, 5 # ns
READERS = ("idle", "busy", "sleeping")


def cells(names, cpus):
    """The measurements: name, CPUs, callers, threads, readers."""
    for name, waits in names:
        if name.endswith("_after_10000"): # threads, which have ended
            if max(cpus) == max(CPUS):
                yield (name, 64, 1, 64, "idle")
            continue
        if name.endswith("_10000_threads"):
            if max(cpus) == max(CPUS):
                yield (name, 64, THREADS, THREADS, "idle")
            continue
        for nr in cpus:
            if not waits:
                yield (name, nr, nr, nr, "idle")
                continue
            for callers in sorted({1, 32, nr}):
                if callers <= nr:
                    yield from ((name, nr, callers, nr, reader) for reader in READERS if callers < nr or reader == "idle")
        if waits and max(cpus) == max(CPUS):
            yield (name, max(cpus), 1, THREADS, "idle")


def short_stays(todo):
    """Operations on containers, and retired objects, once more where lines that arrive are soon taken away."""
    return [(*cell, SHORT_STAY) for cell in todo if cell[0].split("/")[0] in ("retire", "update") and cell[1] in SHOWN[1:]]


def measure(program, cell):
    name, cpus, callers, threads, reader, *stay = cell
    result = subprocess.run([program, f"--stay={stay[0] if stay else STAY}", name, str(cpus), str(callers), str(threads), reader], capture_output=True, text=True, check=False)
    if result.returncode:
        raise SystemExit(f"scale: {' '.join(map(str, cell))}: {result.stderr.strip() or result.returncode}")
    return json.loads(result.stdout)


def progress(done, total):
    if sys.stderr.isatty():
        print(f"\r[{'#' * (40 * done // total):40}] {done} of {total}", end="" if done < total else "\n", file=sys.stderr, flush=True)


def measure_all(program, todo):
    results = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for result in pool.map(lambda cell: measure(program, cell), todo):
            results.append(result)
            progress(len(results), len(todo))
    return results


def number(value):
    return "0" if not value else f"{value:.0f}" if value >= 20 else f"{value:.1f}" if value >= 1 else f"{value:.2g}" if value >= 0.01 else "<0.01"


def time(ns):
    return f"{ns / 1e6:.1f} ms" if ns >= 1e6 else f"{ns / 1000:.1f} us" if ns >= 1000 else f"{ns:.0f} ns"


def table(rows, head):
    """Markdown, which is also legible in a terminal."""
    rows = [head, *rows]
    width = [max(len(row[i]) for row in rows) for i in range(len(head))]
    lines = ["| " + " | ".join(text.ljust(w) if i == 0 else text.rjust(w) for i, (text, w) in enumerate(zip(row, width))) + " |" for row in rows]
    lines.insert(1, "|" + "|".join("-" * (w + 2) if i == 0 else "-" * (w + 1) + ":" for i, w in enumerate(width)) + "|")
    return "\n".join(lines)


def by_cpus(results, shown):
    """A line for each operation that all threads make: transfers, locked instructions and modelled time."""
    found = {(r["group"] + "/" + r["name"], r["cpus"]): r for r in results if r["callers"] == r["cpus"] == r["threads"]}
    names = dict.fromkeys(name for name, _ in found if not name.startswith(("wait/", "flood/")))
    rows = []
    for name in names:
        row = [name]
        for cpus in shown:
            r = found.get((name, cpus))
            row += [number(r["own"]["transfers"]), number(r["own"]["locked"] + r["own"]["fences"]),
                    "" if name.startswith("thread/") else time(r["ns"])] if r else ["", "", ""]
        rows.append(row)
    head = ["operation"]
    for cpus in shown:
        head += [f"lines, {cpus} CPUs", "locked", "time"]
    return table(rows, head)


def whole(r, count):
    return sum(r[group][count] for group in ("own", "library", "others"))


def of_objects(results, shown):
    """Retired objects: the lines that the call moves, those that the library moves later, and how many have been freed."""
    found = {(r["group"] + "/" + r["name"], r["cpus"]): r for r in results if r["group"] == "retire"}
    rows = []
    for name in dict.fromkeys(name for name, _ in found):
        row = [name]
        for cpus in shown:
            r = found.get((name, cpus))
            row += [number(r["own"]["transfers"]), number(whole(r, "transfers") - r["own"]["transfers"]),
                    f"{whole(r, 'freed'):.2f}"] if r else ["", "", ""]
        rows.append(row)
    head = ["object"]
    for cpus in shown:
        head += [f"call, {cpus} CPUs", "later", "freed"]
    return table(rows, head)


def of_waits(results):
    rows = [[f"{r['name']}", str(r["cpus"]), str(r["callers"]), str(r["threads"]), r["readers"],
             *(number(r["own"][c]) for c in ("transfers", "lines", "locked", "membarriers", "interrupts", "waits")), time(r["ns"])]
            for r in results if r["group"] == "wait" and (r["cpus"] in SHOWN[1:] or len(results) < 200) and r["callers"] in (1, r["cpus"])]
    return table(rows, ["wait", "CPUs", "callers", "threads", "readers", "transfers", "lines", "locked", "membarriers", "interrupts", "sleeps",
                        "time"])


def of_floods(results, shown):
    """Callers that do not pause: what a call costs them, how fast all objects are freed, and how many wait."""
    rows = [[r["name"], str(r["cpus"]), str(r["callers"]), number(r["own"]["transfers"]), number(r["own"]["locked"] + r["own"]["fences"]),
             time(r["ns"]), f"{min(r['callers'], r['cpus']) * 1000 / r['ns']:.0f}", f"{r['freed_per_us']:.1f}", f"{r['most_waiting']} of {r['ops']}"]
            for r in results if r["group"] == "flood" and r["cpus"] in shown]
    return table(rows, ["objects", "CPUs", "threads", "lines of a call", "locked", "time of a call", "called in 1 us", "freed in 1 us", "most waiting"])


def of_stays(results):
    """Operations that move more lines where a line that arrives is taken away at once."""
    found = {(r["group"] + "/" + r["name"], r["cpus"], r["stay_ns"]): r for r in results if r["group"] in ("retire", "update")}
    rows = []
    for name in dict.fromkeys(name for name, _, stay in found if stay == SHORT_STAY):
        row, differs = [name], False
        for cpus in SHOWN[1:]:
            long, short = (found[name, cpus, stay] for stay in (STAY, SHORT_STAY))
            lines = [r["own"]["transfers"] for r in (long, short)]
            differs |= lines[1] > 1.2 * lines[0] + 0.1
            row += [number(lines[0]), number(lines[1]), time(long["ns"]), time(short["ns"])]
        if differs:
            rows.append(row)
    head = ["operation"]
    for cpus in SHOWN[1:]:
        head += [f"lines, {cpus} CPUs", f"after {SHORT_STAY} ns", "time", f"after {SHORT_STAY} ns"]
    return table(rows, head)


def find_matplotlib():
    """Continue in the distribution's Python if only that one has the library."""
    system = "/usr/bin/python3"
    if importlib.util.find_spec("matplotlib"):
        return
    if os.path.exists(system) and os.path.realpath(sys.executable) != os.path.realpath(system):
        os.execv(system, [system, *sys.argv])
    raise SystemExit("scale: --picture needs python3-matplotlib")


def picture(results, path):
    import matplotlib # pylint: disable=import-outside-toplevel
    matplotlib.use("Agg")
    from matplotlib import pyplot # pylint: disable=import-outside-toplevel
    panels = {"sections, and others' models": ("read", "peer"), "an object retired": ("retire",), "updates": ("update",), "threads": ("thread",)}
    figure, axes = pyplot.subplots(2, 2, figsize=(11, 9))
    for axis, (title, groups) in zip(axes.flat, panels.items()):
        for name in dict.fromkeys(r["group"] + "/" + r["name"] for r in results if r["group"] in groups):
            points = sorted((r["cpus"], r["own"]["transfers"]) for r in results if r["group"] + "/" + r["name"] == name)
            axis.plot(*zip(*points), marker="o", markersize=3, label=name.split("/")[1])
        axis.set_xscale("log", base=2)
        axis.set_yscale("symlog", linthresh=0.1)
        axis.set_ylim(bottom=0)
        axis.set_title(title)
        axis.set_xlabel("CPUs")
        axis.set_ylabel("lines moved for each operation")
        if axis.get_legend_handles_labels()[0]:
            axis.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=80)


def write_page(path, tables):
    """Replace what is between the marks of each table."""
    text = path.read_text()
    for name, body in tables.items():
        mark = re.compile(rf"(<!-- scale: {name} -->\n).*?(<!-- end -->)", re.S)
        if not mark.search(text):
            raise SystemExit(f"scale: {path} has no mark for the table {name}")
        text = mark.sub(lambda m, body=body: m.group(1) + body + "\n" + m.group(2), text)
    path.write_text(text)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale")
    parser.add_argument("--from", dest="earlier", type=pathlib.Path, help="the JSON of an earlier run, in place of a new one")
    parser.add_argument("--short", action="store_true", help="few CPUs, for a test")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--picture", type=pathlib.Path)
    parser.add_argument("--page", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    if bool(args.scale) == bool(args.earlier):
        parser.error("either --scale or --from")
    if args.picture:
        find_matplotlib()
    results = json.loads(args.earlier.read_text()) if args.earlier else measure_chosen(args)
    shown = SHORT if args.short else SHOWN
    usual = [r for r in results if r["stay_ns"] == STAY]
    tables = {"operations": by_cpus(usual, shown), "objects": of_objects(usual, shown), "waits": of_waits(usual),
              "floods": of_floods(usual, shown), "stays": of_stays(results)}
    for body in tables.values():
        print(body, end="\n\n")
    if args.json:
        args.json.write_text(json.dumps(results, indent=1) + "\n")
    if args.picture:
        picture(usual, args.picture)
    if args.page:
        write_page(args.page, {name: body for name, body in tables.items() if name != "stays"})


def measure_chosen(args):
    listed = [(line.split()[0], "waits" in line.split()[1:])
              for line in subprocess.run([args.scale, "--list"], capture_output=True, text=True, check=True).stdout.splitlines()]
    chosen = [(name, waits) for name, waits in listed if not args.names or name in args.names or name.split("/")[0] in args.names]
    if not chosen:
        raise SystemExit("scale: no such workload")
    todo = list(cells(chosen, SHORT if args.short else CPUS))
    return measure_all(args.scale, todo + ([] if args.short else short_stays(todo)))


if __name__ == "__main__":
    main()
