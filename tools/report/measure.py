# SPDX-License-Identifier: MIT
"""Run the subcommands that a report consists of, one after the other, and merge their JSON."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

# Each part has name, title, subcommand, the group of its types, further arguments and those of a quick report, approximate seconds and those of a quick report.
PARTS = [
    ("reads", "what readers pay", "refscale", "REPORT_READ", ["--readers=1,2,64", "--runs=3"], ["--readers=1,2,64", "--runs=1"], 75, 25),
    ("waits", "how long updaters wait", "rcuscale", "REPORT_WAIT", ["--scenario=idle,same,others,long", "--readers=1,64", "--runs=3", "--seconds=0.3"],
     ["--scenario=idle,same,others,long", "--readers=1,64", "--runs=1", "--seconds=0.08"], 130, 20),
    ("retires", "deferred frees, and what waits for them", "retirescale", "REPORT",
     ["--scenario=idle,stalled", "--threads=1,2", "--runs=5", "--seconds=0.15"],
     ["--scenario=idle,stalled", "--threads=1,2", "--runs=2", "--seconds=0.05"], 60, 10),
    ("tables", "hash tables", "hashscale", "REPORT", ["--keys=uniform:1000,uniform:1000000", "--runs=5", "--seconds=0.1"],
     ["--keys=uniform:1000,uniform:1000000", "--runs=1", "--seconds=0.03"], 100, 15),
    ("bursts", "bursts of writers", "rwscale", "REPORT_BURST", ["--readers=2", "--runs=5", "--seconds=0.5"], ["--readers=2", "--runs=2", "--seconds=0.1"],
     20, 3),
    ("study", "the case studies", "study", None, ["all"], ["all", "--quick", "--runs=1"], 330, 55),
]


class Stopped(Exception):
    """A signal has asked the report to end before it had asked the tool for anything."""


class Signals:
    """The first SIGINT or SIGTERM ends the measurement, and the page has what was measured; the second ends the process."""

    def __init__(self):
        self.stop = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.arrived)

    def arrived(self, _number, _frame):
        if self.stop:
            raise KeyboardInterrupt
        self.stop = True


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


class Tool:
    """A tool has the program that measures, and the signals that end it."""

    def __init__(self, path, signals):
        self.path, self.signals = path, signals

    def text(self, *args):
        """Return the output of a short run."""
        run = subprocess.run([self.path, *args], capture_output=True, text=True)
        if self.signals.stop:
            raise Stopped
        run.check_returncode()
        return run.stdout

    def ask(self, command):
        return json.loads(self.text(command, "--json"))

    def has_light_fences(self):
        return any(d["name"] == "fence mode in force" and d["value"].startswith("light") for d in self.ask("doctor")["doctor"])

    def run_part(self, args, progress):
        """The JSON of one run, and its status.  A run that is ended early prints what it has.

        The tool has a session of its own: a Ctrl-C at the terminal would reach it beside the signal that is sent here, and a second
        signal does not let it finish.
        """
        command, sent = [self.path, *args], False
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = subprocess.Popen(command, stdout=out, stderr=err, start_new_session=True)
            try:
                while process.poll() is None:
                    progress.tick()
                    time.sleep(0.1)
                    if self.signals.stop and not sent:
                        process.send_signal(signal.SIGINT)
                        sent = True
            finally:
                process.kill()  # the program still runs only if a second signal has come
            out.seek(0)
            err.seek(0)
            try:
                document = json.loads(out.read())
            except ValueError:
                lines = err.read().decode(errors="replace").strip().splitlines()
                document = {"rows": [], "notes": [f"{os.path.basename(self.path)} {args[0]}: {(lines or ['no result'])[-1]}"]}
            return document, process.returncode


def types(path):
    """The types of this build and machine, and the names of peers."""
    return json.loads(subprocess.run([path, "types"], capture_output=True, text=True, check=True).stdout)


def arguments(tool, part, quick, built, known):
    """@built: names of the case studies that this build has; @known: its types, without those of peers that are not installed."""
    _, _, command, group, full, short, *_ = part
    args = [command]
    for arg in short if quick else full:
        args += built if arg == "all" else [arg]
    args.append("--json")
    if group:
        args.append("--type=" + ",".join(t["type"] for t in known if t["subcommand"] == command and group in t["groups"]))
    if command in ("refscale", "rcuscale", "retirescale", "rwscale"):
        args.append("--fence=light" if tool.has_light_fences() else "--fence=full")
    return args


def measure(path, signals, quick, only, save):
    """Everything; returns the document, whether something failed, and whether a signal has ended it.

    @save: called with the document after each part.  Raises Stopped if there is nothing yet.
    """
    tool = Tool(path, signals)
    parts = [p for p in PARTS if not only or p[0] in only]
    progress = Progress(sum(p[7] if quick else p[6] for p in parts))
    version = tool.text("--version").split()[-1]
    cases = tool.ask("study")
    built = [case["name"] for case in cases["cases"] if case["built"]]
    result = {"schema": 1, "report": 1, "quick": quick, "date": time.strftime("%Y-%m-%d"), "version": version, "host": cases["host"], "parts": {},
              "notes": [f"study: {case['name']}: its program was not built" for case in cases["cases"] if not case["built"]],
              "cases": cases["cases"], **types(path)}
    failed = False
    for number, part in enumerate(parts, 1):
        progress.part(number, len(parts), part[1])
        began = time.monotonic()
        try:
            args = arguments(tool, part, quick, built, result["types"])
        except Stopped:
            result["notes"].append(f"interrupted: '{part[1]}' and what comes after it is missing")
            break
        document, status = tool.run_part(args, progress)
        result["host"] = document.get("host", result["host"])
        result["notes"] += [f"{part[0]}: {note}" for note in document.get("notes", [])]
        result["parts"][part[0]] = {"command": "quiesce " + " ".join(args), "seconds": round(time.monotonic() - began, 1),
                                    "rows": document["rows"], **({"shapes": document["shapes"]} if "shapes" in document else {})}
        failed = failed or status not in (0, 130)
        if signals.stop:
            result["notes"].append(f"interrupted: what comes after '{part[1]}' is missing")
            break
        save(result)
    progress.end()
    save(result)
    return result, failed, signals.stop
