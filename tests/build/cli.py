#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The command line of the tool: options, mistakes, formats, interruption.

Other tests judge measurements; here no assertion depends on a time.
"""
import csv
import io
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

from tap import Tap, execute, tool_options

MEASURE = ["type", "readers", "fence", "alive", "runs"]
OPTIONS = {
    "refscale": [*MEASURE, "loops"],
    "rcuscale": [*MEASURE, "scenario", "seconds"],
    "retirescale": ["type", "fence", "alive", "runs", "scenario", "seconds", "threads", "batch", "bytes", "scan"],
    "rwscale": [*MEASURE, "scenario", "seconds", "sections", "latency", "bystanders"],
    "hashscale": ["type", "fence", "alive", "runs", "seconds", "threads", "keys", "distribution", "updates", "base", "turnovers",
                  "resize", "figure"],
    "walkscale": ["type", "fence", "alive", "runs", "seconds", "threads", "keys", "distribution", "updates", "batch", "stall", "figure"],
    "queuescale": ["type", "fence", "alive", "runs", "seconds", "threads", "burst"],
    "costs": ["type", "runs", "pairs"],
    "torture": [*MEASURE, "seconds", "mutant", "perturb", "keep-going"],
    "doctor": ["binary"],
    "run": ["markdown", "seconds", "runs", "record"],
    "report": ["quick", "compare"],
    "study": ["markdown", "figure", "seconds", "runs", "quick"],
}
COMMON = ["json", "csv", "output", "help"]
HOST = ["cpu", "cores", "kernel", "build"]
FIGURES = ["min", "p50", "p90", "p99", "max"]
SLOTS = {"thread", "cpu_id", "mm_cid", "shared"}
SLOTS_FOUND = ["slots of hazard pointers", "claims of hazard pointers", "slots, tried by 16 threads"]
COUNTED_FOUND = ["membarrier restarts sequences", "counters per CPU", "counters, tried by 4 threads", "helper thread",
                 "after a burst of writes"]
OWNED_FOUND = ["slots that readers own", "retired objects", "left behind by a thread"]
TEXTS = ["subcommand", "type", "scenario", "fence", "slot", "unit"]
FULL = r"quiesce: cannot write (the output|/dev/full): (No space left on device|a write failed)\n"
TYPES = ("rcu", "shazptr", "hazptr")
REFSCALE = ["refscale", "--type=noop," + ",".join(TYPES), "--readers=1", "--loops=1000", "--runs=1"]
RCUSCALE = ["rcuscale", "--type=noop," + ",".join(TYPES), "--readers=1", "--scenario=idle,same", "--seconds=0.02", "--runs=1"]

NUMBERS = ["0", "-1", "abc", "1.5", "1e9", "nan", "", "99999999999999999999"]
LISTS = {"type": ["bogus", "", "rcu,,rcu", "rcu,bogus"], "fence": ["bogus", "", "light,bogus"],
         "scenario": ["bogus", "read", "", "idle,bogus"]}
COUNTS = {"readers": [*NUMBERS, "1,0", "1,,2"], "threads": [*NUMBERS, "1,0", "1,,2"],
          "batch": NUMBERS, "sections": NUMBERS, "bytes": [*NUMBERS, "63"], "runs": NUMBERS, "alive": [n for n in NUMBERS if n != "0"],
          "loops": [n for n in NUMBERS if n != "1e9"] + ["1e99"], "seconds": ["0", "-1", "abc", "inf", "nan", "1e99", ""]}

HASHSCALE_MISTAKES = [
    ("--type=refcount", "valid: raw_open_addressing"), ("--base=bogus", "valid: raw_open_addressing"),
    ("--distribution=bogus", "valid: uniform zipf hot"), ("--keys=uniform:", "uniform:"), ("--keys=uniform:63", "uniform:63"),
    ("--keys=uniform:1e3", "uniform:1e3"), ("--keys=/none", "/none"),
    ("--keys=/dev/zero", "no regular file"), ("--keys=/", "no regular file"), ("--keys=uniform:64,", "uniform:64,"),
    ("--keys=" + ",".join(["uniform:64"] * 5), "--keys"), ("--updates=101", "--updates=101"), ("--updates=-1", "--updates=-1"),
    ("--updates=0,1,2,3,4,5,6", "--updates"), ("--resize --type=spinlock", "--resize"), ("--figure=x.pdf", "--figure=x.pdf"),
    ("--threads=1025", "--threads=1025")]


class Tool:
    def __init__(self, tap, path):
        self.tap, self.path = tap, path

    def __call__(self, *args, **more):
        return execute([self.path, *args], **more)

    def good(self, *args, want=0, **more):
        """Run a command that has to succeed, and return its standard output."""
        run = self(*args, **more)
        self.tap.result(run.returncode == want, f"{' '.join(args)}: status {want}", diagnosis(run))
        return run.stdout


def diagnosis(run):
    return f"status {run.returncode}\n{run.stdout}{run.stderr}"


# ---- help and version ----

def check_help(tap, tool, version):
    tap.result(tool.good("--version") == f"quiesce {version}\n", "--version prints the version")
    listed = re.findall(r"^  (\w+) +\S", tool.good("--help"), re.M)
    tap.result(sorted(listed) == sorted(OPTIONS), "--help lists the subcommands", f"it lists {listed}")
    for command, options in OPTIONS.items():
        # Fresh memory full of blanks: argp of glibc reads the character beyond a line that ends at the margin, and may take it for one.
        text = tool.good(command, "--help", env={"MALLOC_PERTURB_": "223"})
        found = set(re.findall(r"--([a-z-]+)", text.split("\n\n")[1]))
        tap.result(found - {"usage"} == {*options, *COMMON}, f"{command} --help has its options and no others",
                   f"it has {sorted(found)}")
        lists = re.split(r"^(?:Types|Scenarios):$", text, flags=re.M)[1:]
        stray = [line for part in lists for line in part.splitlines() if line and not re.match(r"  \w+ +\S| {21}\S", line) or len(line) > 79]
        tap.result(not stray, f"{command} --help: descriptions of types and scenarios keep their column", stray)


# ---- mistakes ----

def mistakes(tmp):
    """Arguments that are wrong usage, and what the one line about them has to contain."""
    yield [], "subcommand"
    for name in ("bogus", "", "--bogus", "Refscale"):
        yield [name], "valid: refscale"
    for command, options in OPTIONS.items():
        yield [command, "--bogus"], "--bogus"
        yield [command, "-x"], "-x"
        yield [command, "extra"], "extra"
        yield [command, "--json=1"], "--json=1"
        yield [command, "--output"], "--output"
        yield [command, f"--output={tmp}/none/x"], f"{tmp}/none/x"
        if command != "report":
            yield [command, "--output", f"{tmp}"], "directory"
        yield [command, "--json", "--csv"], "--json and --csv"
        for option in options:
            for value in LISTS.get(option, []):
                unknown = re.search("bogus|read", value) or (command in ("rwscale", "walkscale", "queuescale", "costs") and "rcu" in value)
                yield [command, f"--{option}={value}"], "valid:" if unknown else f"--{option}={value}"
            for value in COUNTS.get(option, []):
                if ((command, option) == ("rwscale", "readers") and value in ("0", "1,0")) or (option, value) == ("sections", "1e9"):
                    continue
                yield [command, f"--{option}={value}"], f"--{option}={'' if ',' in value else value}"
        for option in {*LISTS, *COUNTS} - {*options}:
            yield [command, f"--{option}=1"], "unknown option"
    yield ["run", "--csv", "--markdown"], "--csv and --markdown"
    yield ["run", "--markdown", "--json"], "--markdown and --json"
    yield ["torture", "--type=refcnt"], "valid: rcu"
    yield ["retirescale", "--type=refcnt"], "valid: raw_malloc_free"
    yield ["retirescale", "--scan=1"], "--scan"
    yield ["retirescale", "--scan", "--type=rcu"], "--scan"
    yield ["retirescale", "--type=hazptr_list"], "--scan"
    for option in ("scenario=idle", "threads=1", "seconds=1", "batch=10", "bytes=64"):
        yield ["retirescale", "--scan", f"--{option}"], option.split("=")[0]
    yield ["rwscale", "--type=rcu"], "valid: gp expedited rcu_sync pthread_rwlock"
    yield ["rwscale", "--latency", "--scenario=dense"], "--latency"
    yield ["rwscale", "--latency", "--sections=10"], "--sections"
    yield ["walkscale", "--resize"], "--resize"
    for args, text in HASHSCALE_MISTAKES:
        yield ["hashscale", *args.split()], text
    yield ["costs", "--pairs=2"], "--pairs=2"
    yield ["doctor", "--binary", "/none", "--bogus"], "unknown option '--bogus'"
    yield ["doctor", "--binary"], "'--binary' needs a value"
    yield ["torture", "--readers=1,2"], "--readers"
    yield ["torture", "--mutant=LK1:rmw"], "quiesce-torture"
    yield ["torture", "--perturb=1"], "quiesce-torture"
    yield ["rcuscale", "--scenario=callers", "--readers=2"], "--readers"


def check_mistakes(tap, tool, tmp):
    kept = tmp / "kept"
    for args, text in mistakes(tmp):
        kept.write_text("as before")
        output = [] if not args or "--output" in args[-1] or args[0] not in OPTIONS else [f"--output={kept}"]
        run = tool(*args[:1], *output, *args[1:])
        ok = run.returncode == 2 and not run.stdout and re.fullmatch(r"quiesce.*: .+\n", run.stderr)
        tap.result(ok and text in run.stderr and kept.read_text() == "as before",
                   f"wrong usage: quiesce {' '.join(args)}".replace(str(tmp), "DIR"),
                   f"want status 2, one line with '{text}', and an output file left alone\n{diagnosis(run)}")


# ---- formats ----

def documented(text):
    """Return the names of a row's fields, and the unit of each scenario of rcuscale, as docs/json.md has them."""
    rows = text.split("## A row")[1].split("\n## ")[0]
    fields = [name for line in re.findall(r"^\| (`.*?) \|", rows, re.M) for name in re.findall(r"`(\w+)`", line)]
    units = dict(re.findall(r"^\| `(\w+)` \| (us|ratio|waits/s|objects/s|objects) \|", text.split("## rcuscale")[1], re.M))
    return fields, units


def number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def row_faults(row, fields, nulls):
    """Return the faults of @row, whose fields @nulls do not apply."""
    if list(row) != fields:
        yield f"fields {list(row)}, documented {fields}"
        return
    for name in fields:
        if name == "ipis" and name not in nulls:
            wrong = row[name] is not None and (not number(row[name]) or row[name] < 0)
        elif name in nulls:
            wrong = row[name] is not None
        else:
            wrong = not (isinstance(row[name], str) if name in TEXTS else number(row[name]) and row[name] >= 0)
        if name == "slot" and row[name] and not set(str(row[name]).split("+")) <= SLOTS:
            wrong = True
        if wrong:
            yield f"{name} is {row[name]!r}"
    figures = [row[f] for f in FIGURES if number(row[f])]
    if figures != sorted(figures):
        yield f"not in order: {figures}"
    if not number(row["n"]) or row["n"] < 1 or not 0 <= row["disturbed"] <= row["n"]:
        yield f"n {row['n']}, disturbed {row['disturbed']}"
    elif number(row["mean"]) and not row["min"] <= row["mean"] <= row["max"]:
        yield f"mean {row['mean']} is not between min and max"


def nulls_of(row):
    never = {"fence"} if row["type"] == "noop" else set()
    if row["subcommand"] != "refscale" or row["type"] != "shazptr":
        never |= {"slot"}
    if row["subcommand"] == "refscale":
        return never | {"p90", "p99", "ipis", "membarriers", "wakeups", "cpu_s"}
    return never | {"spread"}  # a row of one round


def parse(tap, name, text):
    try:
        return json.loads(text)
    except ValueError as error:
        tap.result(False, f"{name} is JSON", f"{error}\n{text}")
        return {}


def kernel():
    return re.match(r"\d+\.\d+", os.uname().release)[0]


def check_host(tap, name, host):
    ok = list(host) == HOST and host["cores"] == os.sysconf("SC_NPROCESSORS_ONLN") and host["cpu"] and host["build"]
    tap.result(ok and host["kernel"] == kernel(),
               f"{name}: host has {', '.join(HOST)}", host)
    words = re.findall(r"[\w.-]+", f"{host.get('cpu')} {host.get('kernel')} {host.get('build')}")
    tap.result(socket.gethostname() not in words, f"{name}: host has no name", host)


def combinations(command, fences):
    scenarios = {"refscale": ["read"], "rcuscale": ["idle", "same"]}[command]
    return sorted((command, t, s, "1", f) for s in scenarios
                  for t, f in [("noop", ""), *((t, f) for t in TYPES for f in fences)])


def keys(rows):
    return sorted(tuple(str(row[k] or "") for k in ("subcommand", "type", "scenario", "threads", "fence")) for row in rows)


def check_json(tap, tool, args, fences, doc):
    name, (fields, units) = f"{args[0]} --json", documented(doc)
    root = parse(tap, name, tool.good(*args, "--json"))
    rows = root.get("rows", [])
    tap.result(list(root) == ["schema", "host", "rows", "notes"] and root["schema"] == 1 and root["notes"] == [],
               f"{name}: schema 1, host, rows, no notes", root)
    check_host(tap, name, root.get("host", {}))
    tap.result(keys(rows) == combinations(args[0], fences), f"{name}: a row for each combination", keys(rows))
    for row in rows:
        faults = list(row_faults(row, fields, nulls_of(row)))
        if row["unit"] != ("ns" if args[0] == "refscale" else units.get(row["scenario"])):
            faults.append(f"unit {row['unit']}")
        tap.result(not faults, f"{name}: row {' '.join(keys([row])[0])}", "\n".join(faults))
    return rows


def check_csv(tap, tool, args, fences, doc, tmp):
    name, fields = f"{args[0]} --csv", documented(doc)[0]
    out = tmp / "rows.csv"
    out.write_text("older and longer\n" * 1000)
    tap.result(tool.good(*args, "--csv", f"--output={out}") == "", f"{name} --output: nothing on the standard output")
    table = list(csv.reader(io.StringIO(out.read_text())))
    if not tap.result(table and table[0] == [*fields, *HOST], f"{name}: header", table[:1]):
        return
    rows = [dict(zip(table[0], line)) for line in table[1:] if len(line) == len(table[0])]
    tap.result(len(rows) == len(table) - 1 and keys(rows) == combinations(args[0], fences),
               f"{name}: a whole row for each combination", out.read_text())
    for row in rows:
        read = {f: row[f] if f in TEXTS and row[f] else float(row[f]) if row[f] else None for f in fields}
        faults = list(row_faults(read, fields, nulls_of(row)))
        tap.result(not faults, f"{name}: row {' '.join(keys([row])[0])}", "\n".join(faults))


def check_every_type(tap, tool, fences):
    """The peers too: each that is listed measures, without a note."""
    listed = re.findall(r"^  (\w+) +\S", tool.good("refscale", "--help").split("Types:")[1], re.M)
    args = ["refscale", "--readers=2", "--loops=100", "--runs=1", f"--fence={','.join(fences)}", "--json"]
    root = parse(tap, "refscale --json of every type", tool.good(*args))
    rows = {row["type"] for row in root.get("rows", [])}
    notes = [note for note in root.get("notes", []) if "left out with" not in note]  # locks with a queue, on one CPU
    listed = [name for name in listed if name in rows or not any(note.startswith(name + ":") for note in root["notes"])]
    tap.result(len(listed) > 10 and rows == set(listed) and notes == [], "refscale measures every type that it lists",
               f"{sorted(set(listed) ^ rows)} {root.get('notes')}")


def check_table(tap, tool, args, fences, build):
    out = tool.good(*args)
    name = f"{args[0]}, table"
    head = re.match(r"(.+),\s(\d+)\scores,\skernel\s(\d+\.\d+),\sbuild\stype\s(\S+)\n", out)
    tap.result(head and head[2] == str(os.sysconf("SC_NPROCESSORS_ONLN")) and head[3] == kernel() and
               head[4] == build, f"{name}: says where and what it is", out)
    wanted = [("noop", "-"), *((t, f) for t in TYPES for f in fences)] * len({c[2] for c in combinations(args[0], fences)})
    tap.result(re.findall(rf"^(noop|{'|'.join(TYPES)}) +(\S+) ", out, re.M) == wanted, f"{name}: all rows", out)


def check_formats(tap, tool, fences, opt, tmp):
    doc = pathlib.Path(opt.doc).read_text()
    check_columns(tap, tool, doc)
    fence = f"--fence={','.join(fences)}"
    for args in (REFSCALE, RCUSCALE):
        rows = check_json(tap, tool, [*args, fence], fences, doc)
        check_csv(tap, tool, [*args, fence], fences, doc, tmp)
        check_table(tap, tool, [*args, fence], fences, opt.buildtype)
    check_every_type(tap, tool, fences)
    valid = tool("rcuscale", "--scenario=bogus").stderr.split("valid:")[1].split()
    tap.result(sorted(valid) == sorted(documented(doc)[1]), "the scenarios are the documented ones", valid)
    # One updater alone: no wait is shared, none is saved.
    for fence, want in (("light", 1), ("full", 0)):
        name = f"rcu {fence} idle: {want:.2f} membarriers per wait"
        if fence not in fences:
            tap.skip(name, f"fence mode {fence} is not available here")
            continue
        found = [r["membarriers"] for r in rows if (r["type"], r["fence"], r["scenario"]) == ("rcu", fence, "idle")]
        tap.result(found == [want], name, found)


# ---- doctor ----

def doctor(tap, tool, **env):
    """Return the findings by name."""
    root = parse(tap, "doctor --json", tool.good("doctor", "--json", env=env))
    values = {d["name"]: d["value"] for d in root.get("doctor", [])}
    ok = root.get("schema") == 1 and root.get("rows") == [] and all(
        list(d) == ["name", "value", "note"] and isinstance(d["note"], (str, type(None))) for d in root["doctor"])
    tap.result(ok, "doctor --json: schema 1, no rows, findings with name, value, note", root)
    check_host(tap, "doctor --json", root.get("host", {}))
    return values


def check_doctor(tap, tool):
    """Returns the fence modes that this machine has."""
    found = doctor(tap, tool, QUIESCE_FENCE="full", QUIESCE_SLOTS="thread")
    asked = found.get("fence mode in force", "")
    tap.result(asked == "full (QUIESCE_FENCE asks for it)", "doctor shows QUIESCE_FENCE=full", asked)
    slots = [found.get(name, "") for name in SLOTS_FOUND]
    tap.result(slots[0].startswith("thread: ") and slots[0].endswith("(QUIESCE_SLOTS asks for it)") and
               slots[1:] == ["compare-and-exchange", "16 thread"], "doctor shows QUIESCE_SLOTS=thread", found)
    tap.result(found.get("counters per CPU") == "locked instruction", "doctor: with full fences counters are locked", found)
    found = doctor(tap, tool)
    mode = found.get("fence mode in force", "").split(" ")[0]
    tap.result(mode in ("light", "full"), "doctor shows the mode chosen by itself", mode)
    slots = [found.get(name, "") for name in SLOTS_FOUND]
    kinds = re.findall(r"(\d+) (\w+)", slots[2])
    tap.result(slots[0].split(":")[0] in SLOTS - {"shared"} and re.match("load and store|compare-and-exchange", slots[1]) and
               {k for _, k in kinds} <= SLOTS and sum(int(n) for n, _ in kinds) == 16,
               "doctor shows the slots chosen by itself", found)
    tap.result(re.match("restarts|no verdict|not tried", found.get("rseq in practice", "")),
               "doctor: what rseq interrupts it restarts", found)
    owned, retired, left = (found.get(name, "") for name in OWNED_FOUND)
    tap.result(re.match(r"16 lines for 16 threads, 16 for a context each, ", owned), "doctor: lines of threads and of contexts", owned)
    counts = re.match(r"10000: at the end (\d+) were waiting, (\d+) scans of the slots, 0 left after the barrier$", retired)
    tap.result(counts and int(counts[1]) <= 8192 and int(counts[2]) >= 1, "doctor: retired objects are few, and then none", retired)
    tap.result(left.startswith("100 objects: reclaimed, ") and left.endswith(" stays: yes"),
               "doctor: what a thread left behind is reclaimed, what is protected is not", left)
    restart, counters, tried, helper, back = (found.get(name, "") for name in COUNTED_FOUND)
    way = "restartable sequence" if mode == "light" and restart == "yes" and "registered by" in found.get("rseq", "").split("not")[0] \
        else "locked instruction"
    tap.result(re.match("yes|refused", restart) and counters.startswith(way), "doctor: how readers are counted",
               f"{restart}, {counters}")
    tap.result(re.match("right after", tried) and helper == "runs callbacks of call_srcu()" and
               re.search("fast again within [0-9]+ ms", back), "doctor: counters are right, the helper runs, readers are fast again",
               f"{tried}, {helper}, {back}")
    return ["light", "full"] if mode == "light" else ["full"]


# ---- what can go wrong outside ----

def check_full_device(tap, tool):
    if not os.path.exists("/dev/full"):
        tap.skip("a full device", "there is no /dev/full")
        return
    torture = ["torture", "--type=rcu", "--fence=full", "--seconds=0.05"]
    for args in (["--help"], ["--version"], ["refscale", "--help"], ["doctor", "--csv"], REFSCALE,
                 [*REFSCALE, "--json"], [*RCUSCALE, "--csv"], torture):
        full = execute(["sh", "-c", 'exec "$0" "$@" >/dev/full', tool.path, *args])
        runs = [("standard output", full)]
        if args[0] in OPTIONS and "--help" not in args:
            runs.append(("--output", tool(*args, "--output=/dev/full")))
        for where, run in runs:
            ok = run.returncode == 1 and re.fullmatch(FULL, run.stderr) and not run.stdout
            tap.result(ok, f"a full {where}: {' '.join(args)}", diagnosis(run))


def children(pid):
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(stat.read_text(errors="replace").rpartition(")")[2].split()[1]) == pid:
                yield stat.parent.name
        except (OSError, IndexError):
            pass  # the process has just ended


def jobs_begun(process, nr):
    """Wait until the tool has begun @nr jobs, one after the other, each in a process of its own."""
    seen, end = set(), time.monotonic() + 60
    while len(seen) < nr and process.poll() is None and time.monotonic() < end:
        seen.update(children(process.pid))
        time.sleep(0.002)
    return len(seen) >= nr


def interrupt(tool, args, ready):
    """Ctrl-C as from a terminal, to the tool and its children, as soon as @ready(process) is true.

    If that is a text, then it is what was printed before.
    """
    process = subprocess.Popen([tool.path, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               start_new_session=True)
    try:
        before = ready(process)
        if before:
            os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60 if before else 0.1)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
    try:
        os.killpg(process.pid, signal.SIGKILL)
        err += "a child was left behind\n"
    except ProcessLookupError:
        pass  # as it should be
    text = before if isinstance(before, str) else ""
    return subprocess.CompletedProcess(args, process.returncode, text + out, err)


def stopped(run, stderr=r"quiesce: interrupted: .+ stopped at .+\n"):
    return run.returncode == 130 and re.fullmatch(stderr, run.stderr)


def check_interrupted_torture(tap, tool, fences):
    def ready(process):
        """Return the lines up to the one that the child prints when it is about to begin."""
        text = ""
        for line in process.stdout:
            text += line
            if line.startswith("--- "):
                break
        time.sleep(0.2)  # for something to report; with less the report says so
        return text

    run = interrupt(tool, ["torture", "--type=rcu", f"--fence={fences[0]}", "--seconds=1000"], ready)
    ok = stopped(run) and re.search(r"^reads \d+", run.stdout, re.M)
    tap.result(ok and re.search(r"^--- rcu torture: \w+ after", run.stdout, re.M),
               "SIGINT: torture reports what it did, status 130", diagnosis(run))


def check_columns(tap, tool, doc):
    run = tool("--columns")
    tables = re.findall(r"(?:^\|.*\n)+?(?=\| field|\Z)", run.stdout, re.M)
    missing = [table for table in tables if table not in doc]
    tap.result(run.returncode == 0 and len(tables) > 5 and not missing, "docs/json.md has the tables of quiesce --columns", missing)


def check_interrupted_notes(tap, tool, doc):
    """Every subcommand that measures (study.py and report.py test theirs) reports an interruption in its JSON, as documented."""
    begin = re.search(r"a note that begins with `(.*?)`", doc)[1]
    for command in [c for c in OPTIONS if c not in ("doctor", "study", "report")]:
        args = [command, *([] if command in ("run", "costs") else ["--seconds=1000"] if "seconds" in OPTIONS[command] else ["--runs=1000"])]
        run = interrupt(tool, [*args, "--json"], lambda p: jobs_begun(p, 1))
        notes = parse(tap, f"interrupted {command}", run.stdout).get("notes", [])
        at = "refscale" if command == "run" else command
        tap.result(stopped(run) and len(notes) == 1 and notes[0].startswith(f"{begin}{at} stopped at "),
                   f"SIGINT: {command} --json has a note", diagnosis(run))


def check_interrupt(tap, tool, fences, doc):
    endless = ["--runs=1000", f"--fence={fences[0]}", "--type=noop,rcu", "--readers=1"]
    refscale = ["refscale", *endless, "--loops=100000"]
    rcuscale = ["rcuscale", *endless, "--scenario=idle", "--json"]
    run = interrupt(tool, refscale, lambda p: jobs_begun(p, 2))
    tap.result(stopped(run) and re.search(r"^noop +- +\d", run.stdout, re.M),
               "SIGINT: refscale prints the rows it has, status 130", diagnosis(run))
    for name, nr, args in (("what it has", 2, [*rcuscale, "--seconds=0.05"]),
                           ("no rows when it has none", 1, [*rcuscale, "--seconds=1000"])):
        run = interrupt(tool, args, lambda p, nr=nr: jobs_begun(p, nr))
        tap.result(stopped(run), f"SIGINT: rcuscale --json, {name}: status 130", diagnosis(run))
        root = parse(tap, "interrupted rcuscale", run.stdout)
        note = f"interrupted: rcuscale stopped at {'rcu' if nr == 2 else 'noop'} in round 1 of 1000"
        tap.result(root.get("notes") == [note] and f"quiesce: {note}\n" == run.stderr,
                   f"SIGINT: rcuscale --json, {name}: a note says where", diagnosis(run))
        found = [(row["type"], row["n"] > 0) for row in root.get("rows", [(None, False)])]
        tap.result(found[:1] == [("noop", True)][:nr - 1] and all(ok for _, ok in found),
                   f"SIGINT: rcuscale --json, {name}: rows", run.stdout)
    check_interrupted_notes(tap, tool, doc)
    check_interrupted_torture(tap, tool, fences)


# ---- on a terminal ----

def on_terminal(tool, *args):
    """Return the output on a terminal at the standard error."""
    master, slave = os.openpty()
    with subprocess.Popen([tool.path, *args], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=slave) as process:
        os.close(slave)
        text = b""
        try:
            while more := os.read(master, 4096):
                text += more
        except OSError:
            pass  # no process writes to it any more
        os.close(master)
    return process.returncode, text.decode()


def check_progress(tap, tool):
    status, text = on_terminal(tool, "rcuscale", "--type=noop", "--scenario=idle", "--readers=1", "--seconds=5", "--runs=1")
    filled = [len(bar) for bar in re.findall(r"\[(#*)\.*\] 1/1 rcuscale noop, ", text)]
    tap.result(status == 0 and len(set(filled)) > 1 and filled == sorted(filled) and text.endswith("\r\033[K"),
               "one job: the bar moves, and is gone at the end", f"{status} {filled} {text!r}")


# ---- torture ----

def check_torture(tap, tool, fences):
    out = tool.good("torture", "--seconds=1", "--type=busted", want=1)
    tap.result("busted torture: FAILURE" in out and "SUCCESS" not in out, "torture: busted is a FAILURE", out)
    out = tool.good("torture", "--seconds=1", "--type=rcu", f"--fence={','.join(fences)}")
    tap.result(out.count("rcu torture: SUCCESS") == len(fences) and "FAILURE" not in out,
               "torture: rcu is a SUCCESS in each fence mode", out)
    for kind, want in (("busted", 1), ("rcu", 0)):
        args = ["torture", "--seconds=1", f"--type={kind}", f"--fence={fences[0]}", "--json"]
        root = parse(tap, "torture --json", tool.good(*args, want=want))
        count = {row["scenario"]: row["mean"] for row in root.get("rows", []) if row["unit"] == "count"}
        tap.result(sorted(count) == ["close_calls", "errors", "reads", "reused", "updates"] and count["reads"] > 0
                   and (count["errors"] > 0) == bool(want), f"torture --json: counts of {kind}", root)


def main():
    opt = tool_options("doc", "version", "buildtype")
    tap = Tap()
    tool = Tool(tap, opt.tool)
    with tempfile.TemporaryDirectory() as name:
        tmp = pathlib.Path(name)
        check_help(tap, tool, opt.version)
        check_mistakes(tap, tool, tmp)
        fences = check_doctor(tap, tool)
        check_formats(tap, tool, fences, opt, tmp)
        check_full_device(tap, tool)
        check_interrupt(tap, tool, fences, pathlib.Path(opt.doc).read_text())
        check_progress(tap, tool)
        check_torture(tap, tool, fences)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
