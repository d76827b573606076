# SPDX-License-Identifier: MIT
"""Run the subcommands that a report is made of, one after the other, and put their JSON together."""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

READS = ["raw_load", "rcu", "shazptr", "hazptr", "counted_ptr", "srcu", "percpu_rwsem", "percpu_ref", "liburcu_memb", "ck_epoch", "ck_hp",
         "libcds_hp", "std_atomic_shared_ptr", "refcnt", "seqlock", "pthread_rwlock", "std_shared_mutex", "tbb_rw_mutex"]
WAITS = ["rcu", "rcu_expedited", "shazptr", "hazptr", "liburcu_memb"]
RETIRES = ["raw_malloc_free", "hazptr", "hazptr_inline", "hazard_pointer", "rcu", "liburcu_memb", "ck_hp", "ck_epoch", "libcds_hp"]
TABLES = ["hashmap", "hashtable", "rcu", "hazptr", "spinlock", "refcnt", "rwlock", "brlock", "liburcu_lfht", "ck_ht", "tbb_hash_map",
          "libcuckoo"]
LOCKS = ["gp", "expedited", "rcu_sync", "pthread_rwlock", "pthread_rwlock_writer", "std_shared_mutex", "tbb_rw_mutex"]

# name, what it is, subcommand, types, further arguments; the same of a quick report; about how many seconds each takes
PARTS = [
    ("reads", "what readers pay", "refscale", READS, ["--readers=1,2,64", "--runs=3"], ["--readers=1,2,64", "--runs=1"], 60, 20),
    ("waits", "how long updaters wait", "rcuscale", WAITS, ["--scenario=idle,same,others,long", "--runs=3", "--seconds=0.3"],
     ["--scenario=idle,same,others,long", "--runs=1", "--seconds=0.08"], 100, 13),
    ("retires", "deferred frees, and what waits for them", "retirescale", RETIRES,
     ["--scenario=published,stalled", "--threads=2", "--runs=5", "--seconds=0.2"],
     ["--scenario=published,stalled", "--threads=2", "--runs=2", "--seconds=0.08"], 35, 6),
    ("tables", "hash tables", "hashscale", TABLES, ["--keys=uniform:1000,uniform:1000000", "--runs=5", "--seconds=0.1"],
     ["--keys=uniform:1000,uniform:1000000", "--runs=1", "--seconds=0.03"], 100, 15),
    ("bursts", "bursts of writers", "rwscale", LOCKS, ["--readers=2", "--runs=5", "--seconds=0.5"], ["--readers=2", "--runs=2", "--seconds=0.1"],
     20, 3),
    ("study", "the case studies", "study", [], ["all"], ["all", "--quick"], 330, 100),
]


class Interrupted(Exception):
    pass


class Progress:
    """A line on a terminal that shows how far the report is; elsewhere a line for each part."""

    def __init__(self, total_s):
        self.total, self.began, self.label = total_s, time.monotonic(), ""
        self.terminal = sys.stderr.isatty()

    def part(self, number, of, what):
        self.label = f"{number}/{of} {what}"
        if not self.terminal:
            print(f"quiesce report: {self.label}", file=sys.stderr, flush=True)

    def tick(self):
        if not self.terminal:
            return
        passed = time.monotonic() - self.began
        filled = min(24, int(24 * passed / self.total))
        print(f"\r\033[K[{'#' * filled}{'.' * (24 - filled)}] {self.label}, {passed:.0f} of about {self.total:.0f} s", end="", file=sys.stderr,
              flush=True)

    def end(self):
        if self.terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def types_here(tool, command):
    """Peers that this build or machine does not have are left out."""
    text = subprocess.run([tool, command, "--help"], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"^  (\S+) ", text.partition("\nTypes:\n")[2].split("\n\n")[0], re.M))  # a deeper line continues a description


def run_part(command, progress):
    """The JSON of one run; Ctrl-C ends it, and it says what it has."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(command, stdout=out, stderr=err)
        stopped = False
        while process.poll() is None:
            try:
                progress.tick()
                time.sleep(0.1)
            except KeyboardInterrupt:
                stopped = True
                process.send_signal(signal.SIGINT)
        out.seek(0)
        err.seek(0)
        try:
            document = json.loads(out.read())
        except ValueError:
            lines = err.read().decode(errors="replace").strip().splitlines()
            document = {"rows": [], "notes": [f"{os.path.basename(command[0])} {command[1]}: {(lines or ['no result'])[-1]}"]}
        return document, process.returncode, stopped


def arguments(tool, part, quick):
    _, _, command, types, full, short, *_ = part
    args = [tool, command, *(short if quick else full), "--json"]
    if types:
        here = types_here(tool, command)
        args.append("--type=" + ",".join(t for t in types if t in here))
    if command in ("refscale", "rcuscale", "retirescale", "rwscale"):
        args.append("--fence=light" if has_light_fences(tool) else "--fence=full")
    return args


def ask(tool, command):
    return json.loads(subprocess.run([tool, command, "--json"], capture_output=True, text=True, check=True).stdout)


def has_light_fences(tool):
    return any(d["name"] == "fence mode in force" and d["value"].startswith("light") for d in ask(tool, "doctor")["doctor"])


def measure(tool, quick, only=None):
    """Everything; returns the document and whether something failed or was interrupted."""
    parts = [p for p in PARTS if not only or p[0] in only]
    progress = Progress(sum(p[7] if quick else p[6] for p in parts))
    version = subprocess.run([tool, "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]
    cases = ask(tool, "study")
    result = {"schema": 1, "report": 1, "quick": quick, "date": time.strftime("%Y-%m-%d"), "version": version, "host": cases["host"], "parts": {},
              "notes": [], "cases": cases["cases"]}
    failed = interrupted = False
    for number, part in enumerate(parts, 1):
        try:
            progress.part(number, len(parts), part[1])
            began = time.monotonic()
            command = arguments(tool, part, quick)
            document, status, interrupted = run_part(command, progress)
        except KeyboardInterrupt:  # between the runs
            result["notes"].append(f"interrupted: '{part[1]}' and what comes after it is missing")
            interrupted = True
            break
        result["host"] = document.get("host", result["host"])
        result["notes"] += [f"{part[0]}: {note}" for note in document.get("notes", [])]
        result["parts"][part[0]] = {"command": "quiesce " + " ".join(command[1:]), "seconds": round(time.monotonic() - began, 1),
                                    "rows": document["rows"], **({"shapes": document["shapes"]} if "shapes" in document else {})}
        failed = failed or status not in (0, 130)
        if interrupted:
            result["notes"].append(f"interrupted: what comes after '{part[1]}' is missing")
            break
    progress.end()
    return result, failed, interrupted
